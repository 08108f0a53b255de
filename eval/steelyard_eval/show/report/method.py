"""Describes what was measured, and how: the facts above a report's tables and the definitions below them."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard_eval.common.documents.results import ResultsDocument
from steelyard_eval.common.markup import number
from steelyard_eval.measures.paired import ALPHA, DRAWS, MARGIN, UNSEEN

Pairs = tuple[tuple[str, str], ...]


def facts(results: ResultsDocument) -> Pairs:
    """List sizes and settings, without those that are not given."""
    dataset = results["dataset"]
    pairs = {
        "entries": _count(dataset.get("entries")),
        "queries": _count(dataset.get("queries")),
        "judged": _count(dataset.get("judged")),
        "split": results["split"],
        "limit": str(results["limit"]),
        "model": results.get("model"),
        "as of": dataset.get("as_of"),
        "licence": dataset.get("licence"),
        "set apart": _apart(dataset.get("set_apart")),
    }
    return tuple((name, value) for name, value in pairs.items() if value)


def method(results: ResultsDocument) -> Pairs:
    """Define the terms of the report, in reading order."""
    return tuple(_measurement(results)) + tuple(_statistics(results["primary"])) + _COSTS


def _measurement(results: ResultsDocument) -> Iterator[tuple[str, str]]:
    if results.get("dialect"):
        yield "Metric values", f"{results['dialect']}."
    yield (
        "Means",
        f"over the judged queries of the split {results['split']}. A judged query without results counts 0; "
        "a query without judgments is left out.",
    )
    yield "Limit", f"every configuration returns at most {results['limit']} entries for a query."
    if results.get("model"):
        recipe = f", made from the text {results['recipe']}" if results.get("recipe") else ""
        yield "Vectors", f"{results['model']}{recipe}; the same for all configurations."


def _statistics(primary: str) -> Iterator[tuple[str, str]]:
    yield (
        "Intervals",
        f"{1 - ALPHA:.0%}, Student's t over queries (or their groups); those of differences allow for a "
        f"query that was not drawn and differs by {UNSEEN}; the more queries differ, the less it counts.",
    )
    yield (
        "Test",
        "two-sided sign-flip randomisation on the differences of paired queries, exact where there are at most "
        f"{DRAWS:,} patterns. The corrected p is Holm's over all challengers of one baseline, "
        f"on the primary metric, {primary}.",
    )
    yield "Better, worse", f"the corrected p is below {ALPHA}, and 0 is outside the interval."
    yield "No difference", f"otherwise, when the whole interval of the difference is within \u00b1{MARGIN}."
    yield (
        "Too few queries to tell",
        "neither. It does not mean that the two are equal.",
    )
    yield (
        "Detectable, needed",
        f"the smallest difference found with 80% power at two-sided {ALPHA:.0%}, and about how many queries would "
        "find the observed difference with that power.",
    )


_COSTS = (
    (
        "Latency and calls",
        "median and 95th percentile per query on the machine that ran the comparison, and queries sent to the "
        "embedding model. They differ from run to run, so report.json leaves them out; they are in timing.json.",
    ),
)


def _apart(queries: int | None) -> str:
    """The queries that take part in nothing but simulated feedback."""
    return f"{_count(queries)} queries of the split log, for simulated feedback" if queries else ""


def _count(value: int | None) -> str:
    return "" if value is None else number(value, 0)
