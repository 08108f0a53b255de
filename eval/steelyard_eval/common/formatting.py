"""Numbers and hostile text as a report shows them."""

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

from steelyard.base.errors import visible

TOO_FEW_QUERIES = "[too few queries]"
MISSING = "–"  # noqa: RUF001 -- a dash, as in any printed table

_LETTER = r"[^\W_]"
_MARKDOWN = (
    # Underscores inside a word, and brackets around numbers, mean nothing; the rest could start something.
    (re.compile(rf"[\\`|*~$]|(?<!{_LETTER})_|_(?!{_LETTER})|\[(?![-+\d])|\](?=[(\[:])"), r"\\\g<0>"),
    # What a block starts with: a list item, a heading, a rule.
    (re.compile(r"^(\d*)([-+=#.)])(?=\s|$|[-=#])"), r"\1\\\2"),
    # A space without width parts an @ from a name, so that nobody is told of a report.
    (re.compile(r"(?<!\w)@(?=\w)"), "@\N{ZERO WIDTH SPACE}"),
    # Some renderers make links of bare addresses.
    (re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE), r"\\\g<0>"),
)
_CODE_BREAKS = re.compile(r"[`<>&|\\]|^\s|\s$|^$")
_IN_TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def markdown(text: str) -> str:
    r"""Text as Markdown that shows it: one line, no markup, no HTML, fit for a table cell.

    >>> print(markdown("a|b <i> *c* nDCG@10 [0.1, 0.2] min_results"))
    a\|b &lt;i&gt; \*c\* nDCG@10 [0.1, 0.2] min_results
    """
    escaped = visible(text).strip()
    for pattern, replacement in _MARKDOWN:
        escaped = pattern.sub(replacement, escaped)
    # After the backslashes: an entity holds nothing that they escape.
    escaped = escaped.replace("&", "&amp;").replace(">", "&gt;")
    return re.sub(r"<(?!\d)", "&lt;", escaped)  # <0.0001 starts no tag


def markdown_code(text: str) -> str:
    """Text as a code span; plain text where a character in it could end the span, or means something in one."""
    shown = visible(text)
    return markdown(text) if _CODE_BREAKS.search(shown) else f"`{shown}`"


def verbatim(text: str) -> str:
    """Text as a code span that nothing in it ends; for a line of its own, as a table would split it at a pipe.

    >>> print(verbatim("<i> *c* ``d` "))
    ``` <i> *c* ``d` ```
    """
    shown = visible(text).strip()
    marks = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown else ""
    return f"{marks}{pad}{shown}{pad}{marks}"


def tex(text: str) -> str:
    r"""Text as LaTeX prints it.

    >>> print(tex("0.3*bm25 & min_results"))
    0.3*bm25 \& min\_results
    """
    return "".join(_IN_TEX.get(character, character) for character in visible(text))


def columns_of(text: str) -> int:
    """How many columns of a terminal a text without control characters takes."""
    if text.isascii():  # the tables of Unicode take 20 ms to load
        return len(text)
    from apsw.unicode import text_width

    return text_width(text)


def start_of(text: str, most: int) -> str:
    """What stands in the first `most` columns of a text, without part of a grapheme cluster."""
    if text.isascii():
        return text[: max(0, most)]
    from apsw.unicode import text_width_substr

    return text_width_substr(text, most)[1] if most > 0 else ""


def clip(text: str, columns: int) -> str:
    """Visible text cut to `columns` of a terminal, an ellipsis at the cut.

    >>> clip("weighted_sum", 9)
    'weighted…'
    """
    shown = visible(text)
    return shown if columns_of(shown) <= columns else f"{start_of(shown, columns - 1)}…"


def number(value: float | None, digits: int = 3, *, signed: bool = False) -> str:
    """A number with `digits` decimals; None is a dash, and what rounds to zero has no sign.

    >>> number(-0.0004), number(0.25, signed=True), number(None)
    ('0.000', '+0.250', '–')
    """
    if value is None:
        return MISSING
    size = f"{abs(value):,.{digits}f}"
    if not size.strip("0.,"):
        return size
    return f"-{size}" if value < 0 else f"+{size}" if signed else size


def interval(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """The two ends of a metric's interval, or of a gain's (`signed`), in brackets; empty where there is none.

    Ends stay within the range of the metric, and one as wide as that, or wider, is no knowledge. The end of a gain
    that rounds to zero keeps its sign, by which a difference is better or open.

    >>> interval(0.046, 0.161), interval(-0.0001, 0.138, signed=True), interval(-5.84, 5.84, signed=True)
    ('[0.046, 0.161]', '[-0.000, +0.138]', '[too few queries]')
    """
    if low is None or high is None or low == high:
        return ""
    ends = [in_range(low), in_range(high)] if signed else [in_range(low, 0.0), in_range(high, 0.0)]
    shown = [f"{end:+,.3f}" if signed and end else number(end) for end in ends]
    return f"[{', '.join(shown)}]" if tells(low, high) else TOO_FEW_QUERIES


def in_range(end: float, least: float = -1.0) -> float:
    """The end of an interval within `least` to 1, beyond which no metric (0) and no difference of two (-1) lies.

    >>> in_range(1.2), in_range(-0.3), in_range(-0.3, 0.0)
    (1.0, -0.3, 0.0)
    """
    return min(max(end, least), 1.0)


def tells(low: float, high: float) -> bool:
    """Whether an interval is narrower than the range of a metric, from 0 to 1."""
    return high - low < 1.0


def p_value(p: float | None) -> str:
    """A p-value with four decimals, never as zero.

    >>> p_value(0.00001), p_value(0.0312)
    ('<0.0001', '0.0312')
    """
    return "<0.0001" if p is not None and p < 0.0001 else number(p, 4)


def counted(count: int, one: str, many: str = "") -> str:
    """Print a number with its noun, in the singular or the plural.

    >>> counted(1, "fault"), counted(50001, "fault"), counted(2, "query", "queries")
    ('1 fault', '50001 faults', '2 queries')
    """
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def spans(numbers: Sequence[int]) -> list[str]:
    """Ascending numbers, neighbours drawn together.

    >>> spans([1, 2, 3, 5, 7, 8])
    ['1 to 3', '5', '7 to 8']
    """
    begins = [n for n in numbers if n - 1 not in numbers]
    lasts = [n for n in numbers if n + 1 not in numbers]
    return [str(a) if a == b else f"{a} to {b}" for a, b in zip(begins, lasts, strict=True)]


def breakable(text: str) -> Markup:
    """Text as HTML that lines may break after the marks of a strategy, not just anywhere."""
    escaped = str(escape(visible(text)))  # as str: Markup would escape what is put in
    return Markup(re.sub(r"(?<! )[(]|,(?!\d)|[=:*]", r"\g<0><wbr>", escaped))  # noqa: S704 -- the marks stand in no entity
