"""Which two configurations a report compares query by query, and how a query did under each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steelyard_eval.common.documents.parts import QueryRecord
from steelyard_eval.common.documents.results import ResultsDocument


@dataclass(frozen=True)
class Sides:
    """What is used today (or the baseline) and what is proposed instead (or the best of the others)."""

    left: str
    right: str

    def rows(self, results: ResultsDocument) -> Iterator[tuple[QueryRecord, float, float]]:
        """The queries for which both have a value, with both values."""
        for query in results.get("per_query", ()):
            left, right = query["values"].get(self.left), query["values"].get(self.right)
            if left is not None and right is not None:
                yield query, left, right


def sides(results: ResultsDocument) -> Sides | None:
    """The two configurations; None where there are no values of two by query.

    The lists in the document come in the order of importance; without lists it is the baseline and the best other.
    """
    measured = {label for query in results.get("per_query", ()) for label in query["values"]}
    listed = [row["label"] for row in (results.get("rankings") or {}).get("lists", ()) if row["label"] in measured]
    means = {r["label"]: r["mean"] for r in results["results"] if r["metric"] == results["primary"]}
    best = sorted(means.keys() & measured, key=lambda label: (-means[label], label))
    base = results.get("baseline")
    order = [*listed, *([base] if base in measured else []), *best]
    two = list(dict.fromkeys(order))[:2]
    return Sides(*two) if len(two) == 2 else None
