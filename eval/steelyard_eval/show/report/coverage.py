"""How far the labels reach: judged hits, judgments per query, and whether that favours somebody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from steelyard_eval.common.documents.results import ResultsDocument
from steelyard_eval.common.markup import listed
from steelyard_eval.show.report.blocks import Block, Paragraph, TermList
from steelyard_eval.show.report.leaderboard import ranked

UNJUDGED = 0.05
"""A difference in the share of judged hits that can make a loser of a better list."""
LOW = 0.5
"""Below this share the values themselves are hardly worth reading."""


def coverage(results: ResultsDocument) -> tuple[Block, ...]:
    """The share of judged hits by configuration, what the judgments look like, and warnings."""
    shares = {r["label"]: r["mean"] for r in results["results"] if r["metric"].startswith("Judged")}
    order = [record["label"] for record in ranked(results) if record["label"] in shares]
    name = next((r["metric"] for r in results["results"] if r["metric"].startswith("Judged")), "")
    pairs = [*_judgments(results), *((f"{name} of {label}", f"{shares[label]:.0%}") for label in order)]
    warnings = tuple(Paragraph(text, "warning") for text in _warnings(results.get("baseline"), shares))
    return (*warnings, TermList(tuple(pairs))) if pairs else ()


def _warnings(baseline: str | None, shares: Mapping[str, float]) -> Iterator[str]:
    base = shares.get(baseline or "")
    if base is None:
        return
    fewer = [label for label, share in shares.items() if share < base - UNJUDGED]
    more = [label for label, share in shares.items() if share > base + UNJUDGED]
    if fewer:
        yield (
            f"Fewer hits are judged than of {baseline} ({base:.0%}): {listed(fewer, 6)}. An unjudged hit counts "
            "as a miss, so these may be better than they look."
        )
    if more:
        yield (
            f"More hits are judged than of {baseline} ({base:.0%}): {listed(more, 6)}. The labels may favour "
            "these: judge the unjudged hits of the baseline before a small difference decides."
        )
    if base < LOW:
        yield (
            f"Only {base:.0%} of the hits of {baseline} are judged. Means are too low for everybody, and a new "
            "configuration pays for every hit that nobody has seen before."
        )


def _judgments(results: ResultsDocument) -> Iterator[tuple[str, str]]:
    grades = (results.get("rankings") or {}).get("grades") or {}
    if not grades:
        return
    judged = [len(entries) for entries in grades.values()]
    relevant = [sum(grade >= 1 for grade in entries.values()) for entries in grades.values()]
    yield "judgments per query", f"median {median(judged):g}, from {min(judged)} to {max(judged)}"
    yield "relevant entries per query", f"median {median(relevant):g}, from {min(relevant)} to {max(relevant)}"
    none = sum(not count for count in relevant)
    if none:
        yield "queries without a relevant entry", f"{none} of {len(relevant)}, which score 0 for everybody"
