"""The sections of a report, for whatever result it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steelyard_eval.common.console import brief
from steelyard_eval.common.documents.results import ResultsDocument
from steelyard_eval.common.markup import MISSING
from steelyard_eval.show import further_tables as further
from steelyard_eval.show.report.blocks import Block, Notices, Page, Section, TermList, amount, table
from steelyard_eval.show.report.coverage import coverage
from steelyard_eval.show.report.decision_section import promised, weight
from steelyard_eval.show.report.differences import categories, comparisons, differences
from steelyard_eval.show.report.glossary import explained
from steelyard_eval.show.report.leaderboard import all_metrics, cost, leaderboard, metrics, ranked
from steelyard_eval.show.report.method import facts, method
from steelyard_eval.show.report.queries import disagreements, pairs
from steelyard_eval.show.report.sentences import caveat
from steelyard_eval.show.report.sides import sides


def page(results: ResultsDocument, sha256: str) -> Page:
    """The page of checked results; `sha256` is that of the report.json beside it."""
    measured, only = bool(results["configurations"]), results.get("only")
    subject = f"Weights of {brief(only)}" if only else "Search strategies"
    means = {record["label"]: record for record in ranked(results)}
    baseline = results.get("baseline") or ""
    return Page(
        title=f"{subject} on {results['dataset']['name']}",
        badge=results.get("verdict") or "",
        answer=results.get("sentence") or "",
        record=results,
        caveat="" if results.get("verdict") or not measured else caveat(means, baseline),
        description=results["dataset"].get("description") or "",
        facts=facts(results),
        sections=_sections(results, sha256, measured),
    )


def _sections(results: ResultsDocument, sha256: str, measured: bool) -> tuple[Section, ...]:
    two = sides(results)
    curve = weight(results.get("chosen") or {}, results["primary"])
    agreed = further.agreement(results)
    stale = _of_texts("Stale", further.STALE, further.stale(results))
    layers = _of_texts("Layers", further.LAYERED, further.layers(results))
    shown = [
        Section("notices", "Before you read on", Notices.of(results.get("notices", ()))),
        Section("decision", "Recommendation", promised(results)),
        Section("leaderboard", "Leaderboard", leaderboard(results)),
        Section("agreement", "How far the lists agree", _of_texts("Agreement", further.AGREEMENT, agreed)),
        Section("differences", "Differences to the baseline", differences(results)),
        Section("cost", "Quality against cost", cost(results)),
        Section("weight", "What the weight changes", curve, measured),
        Section("queries", "Queries", (*pairs(results, two), *disagreements(results)), folded=True),
        Section("categories", "Categories of queries", categories(results, two), folded=True),
        Section("metrics", "All metrics", all_metrics(results), folded=True),
        Section("tests", "Tests", comparisons(results), folded=True),
        Section("silence", "What is shown where nothing fits", _silence(results), folded=True),
        Section(
            "stale",
            "What was replaced or has expired",
            stale,
            folded=True,
        ),
        Section("layers", "Layered searches", layers, folded=measured),
        Section("labels", "How far the labels reach", coverage(results), folded=True),
        Section("strategies", "Strategies", _strategies(results), folded=True),
    ]
    how = Section("method", "Method", (TermList(method(results)),) if measured else (), folded=True)
    return explained(shown, _provenance(results, sha256), metrics(results), how)


def _silence(results: ResultsDocument) -> tuple[Block, ...]:
    more = "What other floors would lose of the relevant entries, and what they would answer and show."
    silent, others = further.silence(results), further.other_floors(results)
    return (*_of_texts("Silence", further.SILENCE, silent), *_of_texts("Floors", more, others))


def _of_texts(name: str, text: str, rows: Sequence[Mapping[str, str]]) -> tuple[Block, ...]:
    """A table of texts, the first column of which names the row; nothing without rows."""
    shown = (
        [(head, amount(None, text=value) if i else value) for i, (head, value) in enumerate(row.items())]
        for row in rows
    )
    return table(name, text, shown)


def _strategies(results: ResultsDocument) -> tuple[TermList, ...]:
    pairs = tuple((contender["label"], brief(contender["strategy"])) for contender in results["configurations"])
    return (TermList(pairs, code=True),) if pairs else ()


def _provenance(results: ResultsDocument, sha256: str) -> list[tuple[str, str]]:
    """The command, the tool, and the hashes that tell two reports apart."""
    terms = {
        "command": results.get("command"),
        "tool": results.get("tool"),
        "data set (SHA-256)": results["dataset"].get("sha256") or MISSING,
        "report.json (SHA-256)": sha256,
    }
    return [(name, value) for name, value in terms.items() if value]
