"""What the comparisons of all systems say: ("" where both agree, else "differs: ...", and the worst error)."""

EXACT = 1e-9  # the same formulas, in double precision on both sides
SINGLE = 1e-6  # what went through single precision there (oracles/README.md)
TIE = 1e-12  # rows this near may change places, also at a cut


def run_groups(groups, *given):
    """Every comparison of these generators of (case, (verdict, error)): (group, case, verdict, error)."""
    for group in groups:
        for case, (verdict, error) in group(*given):
            yield group.__name__.replace("_", " "), case, verdict, error


def same(expected, got):
    """Verdict of two plain values."""
    return ("" if expected == got else f"differs: {str(expected)[:200]} expected, {str(got)[:200]} here"), 0.0


def both(*verdicts):
    """The first difference, and the worst error."""
    return next((verdict for verdict, _ in verdicts if verdict), ""), max(error for _, error in verdicts)
