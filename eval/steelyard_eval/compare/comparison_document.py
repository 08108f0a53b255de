"""The document of a comparison: what was compared, means, tests, lists, timing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from steelyard import __version__
from steelyard.base.arrays import Floats
from steelyard.memory.query import Query
from steelyard_eval.common.answer import Conclusion
from steelyard_eval.common.configurations import Named, written_as
from steelyard_eval.common.documents.parts import AnsweredDocument, RankingsRecord
from steelyard_eval.common.documents.results import (
    AgreementPart,
    ComparedRecord,
    ContenderRecord,
    ResultRecord,
    ResultsDocument,
    SilenceRecord,
    StaleRecord,
)
from steelyard_eval.common.progress_bar import bar
from steelyard_eval.compare.agreement import agreement, in_words
from steelyard_eval.compare.arena import Arena, ArenaRow
from steelyard_eval.compare.compared_answer import TOO_FEW, answer
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.warnings import JUDGED, shallow, warnings
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.alike import alike
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.decide.provenance import edited, mean_of, tuned_here
from steelyard_eval.decide.steps import installed_first, judging
from steelyard_eval.measures.metrics import Measure
from steelyard_eval.measures.paired import Interval, mean_interval, paired
from steelyard_eval.recording.rankings import ShownLists, described, ordered, query_rows, rankings, spelled
from steelyard_eval.recording.select import intents_of
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Paired

TIES = "ties by entry id, ascending"
DIALECT = (
    f"trec_eval: linear gain, discount log2(rank + 1), ideal cut at k; {TIES}; "
    "queries that nothing answers are left out"
)
"""How values are computed, of contenders that are configurations; see `dialect`."""


def dialect(kinds: Iterable[str], lists: bool = False) -> str:
    """How the values of contenders of these kinds are computed; `lists`: from recorded lists of other engines."""
    ties = {
        "run": "ties of runs and tables by entry id, descending",
        "frame": "ties of runs and tables by entry id, descending",
        "function": "answers in the order given",
        "endpoint": "answers in the order given",
    }
    ours = "ties of a recorded list in its order, of fusions by entry id, ascending" if lists else TIES
    return DIALECT.replace(TIES, "; ".join(dict.fromkeys(ties.get(kind, ours) for kind in sorted({*kinds}))))


@dataclass(frozen=True)
class ComparisonCase:
    """Everything the document of a comparison is made from.

    Attributes
    ----------
    named, rows : the contenders as they were named, and what came of each, in the same order.
    values : label -> metric -> float64[Q], over the judged queries; nothing where there are none.
    chosen, queries : the queries of the split, and those of them with judgments.
    asked : the metrics as they were named; `measures` has Judged beside them.
    used : whether the baseline is what is used today, as the call or dataset.json says.
    recording : the folder that the lists are from, None for live searches.
    silence : a row for each contender on what it shows and what it keeps silent about, see `silence`.
    stale : a row for each contender on what it shows above what took its place, see `stale_lists`.
    """

    dataset: Dataset
    arena: Arena
    named: Sequence[Named | ListContender]
    rows: Sequence[ArenaRow]
    values: Mapping[str, Mapping[str, Floats]]
    chosen: Sequence[Query]
    queries: Sequence[Query]
    asked: Sequence[str]
    measures: Sequence[Measure]
    baseline: str
    used: bool
    split: str | None
    asked_limit: int | None
    limit: int
    seed: int
    timed: bool
    recording: str | Path | None
    silence: Sequence[SilenceRecord] = ()
    stale: Sequence[StaleRecord] = ()

    @property
    def primary(self) -> str:
        """The metric that is tested."""
        return str(self.measures[0])

    @cached_property
    def tests(self) -> list[ComparedRecord]:
        """A row for every challenger; none without judgments."""
        primary = {label: metrics[self.primary] for label, metrics in self.values.items() if metrics}
        challengers = {label: values for label, values in primary.items() if label != self.baseline}
        if not challengers:
            return []
        units = unit_numbers(self.queries).tolist()
        return tested(
            paired(challengers, primary[self.baseline], units, seed=self.seed), self.baseline, self.primary
        )


VERDICTS = {"same": "no difference", "open": TOO_FEW}


def tested(found: Mapping[str, Paired], baseline: str, metric: str) -> list[ComparedRecord]:
    """A row for each challenger, by its label."""
    return [
        {
            "challenger": label,
            "baseline": baseline,
            "metric": metric,
            "delta": test.gain.mean,
            "low": test.gain.low,
            "high": test.gain.high,
            "p": test.p,
            "p_holm": test.p_holm,
            "wins": test.wins,
            "ties": test.ties,
            "losses": test.losses,
            "mde": test.detectable,
            "queries_needed": test.needed,
            "verdict": VERDICTS.get(test.verdict, test.verdict),
            "why": say(test.why) if test.why else "",
            "worse": test.worse,
        }
        for label, test in found.items()
    ]


def document(case: ComparisonCase) -> ResultsDocument:
    """The JSON document; without judgments it has how far the lists agree in place of means and tests."""
    values = {label: metrics[case.primary] for label, metrics in case.values.items() if metrics}
    record: ResultsDocument = {
        "schema_version": 1,
        "tool": f"steelyard {__version__}",
        "command": _command(case),
        "dataset": {**described(case.dataset), "queries": len(case.chosen), "judged": len(case.queries)},
        "split": case.split or case.dataset.report_split or "all",
        "limit": case.limit,
        "intents": intents_of(case.dataset, case.arena.table),
        "dialect": dialect((one.kind for one in case.named), case.arena.setting.lists is not None),
        "model": case.arena.model,
        "recipe": case.arena.recipe,
        "notices": _notices(case),
        "primary": case.primary,
        "baseline": case.baseline,
        "configurations": [_configuration(case, row) for row in case.rows],
        "results": _results(case),
        "comparisons": case.tests,
        "per_query": query_rows(case.queries, values),
        "rankings": _rankings(case) if case.queries else None,
        "timing": [row.timing() for row in case.rows],
        "layers": [{"label": row.label, **row.progress} for row in case.rows if row.progress],
    }
    if case.silence:
        record["silence"] = [*case.silence]
    if case.stale:
        record["stale"] = [*case.stale]
    if not case.queries:
        said, alike = _alike(case)
        return {**record, **said, **alike}
    words = {contender.label: _word(contender) for contender in case.named}
    said = answer(record, case.dataset, words, _searched(case), used=case.used).to_json()
    return {**record, **said, "steps": installed_first(said["steps"])}


def _notices(case: ComparisonCase) -> list[str]:
    return [
        *case.dataset.notices,
        *(notice for row in case.rows for notice in row.notices),
        *(notice for row in case.rows for notice in _tuned(case, row)),
        *_empty(case.rows),
        *shallow(case.measures, case.limit),
        *case.arena.notices(case.rows, case.timed),
        *(_warnings(case) if case.queries else []),
    ]


def _configuration(case: ComparisonCase, row: ArenaRow) -> ContenderRecord:
    made: ContenderRecord = {**row.about(), "empty": row.empty}
    if isinstance(row.contender, Contender) and edited(row.contender.config):
        made["edited"] = True
    return {**made, "tuned": True} if _tuned(case, row) else made


def _tuned(case: ComparisonCase, row: ArenaRow) -> list[str]:
    """A notice on weights that were chosen by the labels that they are compared with."""
    if not case.queries or not isinstance(row.contender, Contender):
        return []
    return tuned_here(row.label, row.contender.config, case.dataset, case.queries)


def _empty(rows: Sequence[ArenaRow]) -> list[str]:
    """How many queries each contender leaves without any result."""
    counts = [f"{row.label} {row.empty}" for row in rows if row.empty]
    total = len(rows[0].ranked.queries) if rows else 0
    return [f"of {total} queries these many end without any result: {', '.join(counts)}"] if counts else []


def _warnings(case: ComparisonCase) -> list[str]:
    values, judged = (
        {label: metrics[name] for label, metrics in case.values.items() if name in metrics}
        for name in (case.primary, str(JUDGED))
    )
    near, judged = alike(case.dataset, case.queries), {} if case.dataset.complete else judged
    return warnings(
        case.queries, values, judged, case.baseline, case.tests, case.arena.model, near, dataset=case.dataset
    )


def _alike(case: ComparisonCase) -> tuple[AnsweredDocument, AgreementPart]:
    """How far the lists agree, and what to label first, for queries without judgments."""
    part = agreement({row.label: row.ranked.lists() for row in case.rows})
    told = f"Keep {case.baseline} for now: {in_words(part['disagreement'])}."
    step = judging(case.dataset, case.dataset.first_pairs)
    return Conclusion(told, (step,)).to_json(), part


def _results(case: ComparisonCase) -> list[ResultRecord]:
    """Tidy records, one for each contender and metric."""
    groups = unit_numbers(case.queries).tolist()
    records: list[ResultRecord] = []
    for row in bar("intervals")(case.rows):
        about = row.about()
        for metric, per_query in case.values[row.label].items():
            interval = mean_interval(per_query, groups)
            records.append(result_of(about, metric, interval, len(per_query)))
    return records


def result_of(about: ContenderRecord, metric: str, interval: Interval, queries: int) -> ResultRecord:
    """The tidy record of one mean of a contender."""
    return {
        "label": about["label"],
        "system": about.get("system"),
        "profile": about.get("profile"),
        "strategy": about["strategy"],
        "metric": metric,
        **mean_of(interval),
        "queries": queries,
    }


def _rankings(case: ComparisonCase) -> RankingsRecord:
    """The lists of the baseline, then of the others, best first."""
    lists: dict[str, ShownLists] = {row.label: row.lists for row in case.rows}
    means = {label: float(metrics[case.primary].mean()) for label, metrics in case.values.items()}
    labels = ordered(means, [case.baseline])
    return rankings(case.dataset, case.queries, [(label, partial(lists.__getitem__, label)) for label in labels])


def _command(case: ComparisonCase) -> str | None:
    """The command that compares the same; None where a contender is known in Python alone."""
    words = [_word(contender) for contender in case.named]
    if None in words:
        return None
    options: dict[str, object] = {
        "--metrics": ",".join(case.asked),
        "--baseline": case.baseline,
        "--split": case.split,
        "--limit": case.asked_limit,
        **_searched(case),
        "--seed": case.seed or None,
    }
    return spelled("compare", case.dataset, *filter(None, words), options=options)


def _searched(case: ComparisonCase) -> dict[str, object]:
    """The options by which a command searches in the same way."""
    return case.arena.space.options if case.arena.space else {"--recording": case.recording}


def _word(one: Named | ListContender) -> str | None:
    if isinstance(one, Named):
        return one.word
    return written_as(one.label, one.source) if one.kind in ("run", "endpoint") else None
