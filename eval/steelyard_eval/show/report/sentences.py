"""Sentences of a report: which strategy is best here, and whether to ship the tuned one or keep the default."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from steelyard_eval.common.markup import MISSING, interval, listed, number, p_value
from steelyard_eval.measures.statistics import MARGIN, TIE, TOO_FEW

Record = Mapping[str, Any]
VERDICTS = ("better", "worse", "no difference", TOO_FEW)


def answer(means: Mapping[str, Record], tested: Mapping[str, Record], metric: str, baseline: str) -> str:
    """State in one sentence which configuration is best, and whether it differs from the baseline.

    Parameters
    ----------
    means : result records of the primary metric by label.
    tested : comparisons with the baseline on that metric, by challenger.
    """
    if not means:
        return f"No configuration has a value of {metric}."
    best = _best(means)
    value = number(means[best[0]]["mean"])
    if len(means) == 1:
        return f"Only {best[0]} was measured: mean {metric} {value}, and nothing to compare it with."
    if len(best) > 1:
        verdicts = "; ".join(f"{label}: {_verdict(label, tested, baseline)}" for label in best[:4])
        return f"{listed(best)} share the highest mean {metric} ({value}). Against the baseline: {verdicts}."
    if best[0] == baseline:
        return f"The baseline {baseline} has the highest mean {metric} ({value}): {_challengers(means, tested)}."
    lead = f"{best[0]} has the highest mean {metric} ({value})"
    return f"{lead}{_against(tested.get(best[0]), means.get(baseline), baseline)}."


def caveat(means: Mapping[str, Record], baseline: str) -> str:
    """List the other configurations that may be as good as the best; empty when there are none."""
    best = _best(means)
    if len(best) != 1 or best[0] == baseline:
        return ""
    floor = means[best[0]].get("low")
    rivals = [label for label in means if label not in (best[0], baseline) and _reaches(means[label], floor)]
    if not rivals:
        return ""
    its = "their intervals overlap" if len(rivals) == 1 else "their intervals overlap with its own"
    tested = "Only differences from the baseline were tested"
    return f"{tested}: no test separates {best[0]} from {listed(rivals)}; {its}."


def decision(tuning: Record) -> str:
    """Return the sentence of a tuning; for a document without one, its verdict in words."""
    if tuning.get("sentence"):
        return str(tuning["sentence"])
    leads = {"ship": "Use the tuned strategy", "try": "Try the tuned strategy, unproven"}
    lead = leads.get(tuning["verdict"], "Keep the current one")
    return f"{lead}: the document has no promise; tune again for one."


def _best(means: Mapping[str, Record]) -> list[str]:
    """Labels that share the highest mean."""
    top = max((record["mean"] for record in means.values()), default=0.0)
    return [label for label, record in means.items() if record["mean"] >= top - TIE]


def _reaches(record: Record, floor: float | None) -> bool:
    high = record.get("high")
    return floor is not None and high is not None and high >= floor


def _verdict(label: str, tested: Mapping[str, Record], baseline: str) -> str:
    if label == baseline:
        return "is the baseline"
    return tested[label]["verdict"] if label in tested else "not compared"


def _challengers(means: Mapping[str, Record], tested: Mapping[str, Record]) -> str:
    """The verdicts on the challengers of a baseline that has the highest mean."""
    counts = Counter(record["verdict"] for label, record in tested.items() if label in means)
    others = len(means) - 1
    words = {TOO_FEW: "open for want of queries"}
    found = [(counts[verdict], words.get(verdict, verdict)) for verdict in VERDICTS if counts[verdict]]
    missing = others - counts.total()
    found += [(missing, "not compared")] if missing > 0 else []
    if len(found) == 1:
        state = {"no difference": f"equal within {MARGIN}"}.get(found[0][1], found[0][1])
        return f"the other is {state}" if others == 1 else f"all {others} others are {state}"
    return f"of {others} others, {listed([f'{count} {verdict}' for count, verdict in found], 5)}"


def _against(comparison: Record | None, base: Record | None, baseline: str) -> str:
    """The second half of the sentence, which compares the best configuration with the baseline."""
    if comparison is None:
        return "; it was not compared with a baseline"
    name = f"the baseline {baseline}" + (f" ({number(base['mean'])})" if base else "")
    change = (
        f"{number(comparison['delta'], signed=True)} {interval(comparison.get('low'), comparison.get('high'))}"
    )
    change = f"{change.strip()}, corrected p {p_value(comparison.get('p_holm'))}".replace(
        f"p {MISSING}", "p not given"
    )
    verdict = comparison["verdict"]
    if verdict in ("better", "worse"):
        return f" and is {verdict} than {name}: {change}"
    if verdict == "no difference":
        return f" but does not differ from {name} by more than {MARGIN}: {change}"
    needed = comparison.get("queries_needed")
    more = f"; a difference of this size needs about {needed:,} queries" if needed else ""
    return f" but these queries cannot distinguish it from {name}: {change}{more}"
