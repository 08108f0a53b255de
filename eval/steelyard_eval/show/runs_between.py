"""Whether the later of two kept runs is better, by how much, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from steelyard_eval.common.markup import number
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.datasets.states import NAMED, moved
from steelyard_eval.decide.promise import NO_GAIN, Gain
from steelyard_eval.decide.steps import labelling
from steelyard_eval.decide.wording import in_words
from steelyard_eval.measures.statistics import MARGIN, TOO_FEW, compare_paired
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.rankings.spelling import word
from steelyard_eval.recording.runs import KeptRow, KeptRun, states_of
from steelyard_eval.show.runs_paired import (
    DATA,
    PROVENANCE,
    alike,
    causes,
    configuration,
    failed,
    own_of,
    pair_of,
    searched,
    settings,
    written,
)
from steelyard_eval.tune.replaced import holds

SAME = "the same values"
TO_LABEL, TO_TELL = "what to label for that", "to tell, measure both alike"
TO_SEE = "where it {} most, and why"
Step = tuple[str, list[str], dict[str, object]]
"""A command: its name, words and options."""


def changes(dataset: Dataset, one: KeptRun, other: KeptRun, runs: Sequence[KeptRun]) -> Iterator[str]:
    """The sentence, how to tell what it cannot, then a line for all that differs; `runs` are all that are kept."""
    between = Between(dataset, one, other, runs)
    if between.causes or one.facts.get("rows") != other.facts.get("rows"):
        yield between.sentence
        yield from between.steps()
        yield from between.lines()


def newest(dataset: Dataset, runs: Sequence[KeptRun]) -> Iterator[str]:
    """Whether the last run of which an earlier one measured the same is better than that one.

    Where nothing changed since, also than the last one before something did that is no failed gate. Where none
    did before the last run, the command that holds it against the run before.
    """
    *_, before, last = [None, None, *(run for run in runs if run.facts.get("rows"))]
    if before and last and not any(alike(last, runs[: runs.index(last)])):
        command = spelled("runs", dataset, str(before.id), str(last.id), options={})
        yield f"Run {last.id} is the first of its kind; against run {before.id}: {command}"
    for at in range(len(runs) - 1, 0, -1):
        found = [Between(dataset, before, runs[at], runs) for before in alike(runs[at], runs[:at])]
        used = [*found[:1], *(between for between in found[1:] if not failed(between.one))]
        changed = next((between for between in used if {*between.causes} - {"tool", "commit"}), None)
        for between in dict.fromkeys((found[0], changed or found[0])) if found else ():
            yield between.sentence
            yield from between.steps()
        if changed:
            yield f"more: {spelled('runs', dataset, str(changed.one.id), str(changed.other.id), options={})}"
        if found:
            return


@dataclass(frozen=True, eq=False)
class Between:
    """Two runs side by side; `runs` are all that are kept."""

    dataset: Dataset
    one: KeptRun
    other: KeptRun
    runs: Sequence[KeptRun]

    @cached_property
    def causes(self) -> list[str]:
        """What differs, in a word each."""
        return causes(self.one, self.other)

    @property
    def sentence(self) -> str:
        """Better, worse, or not to be told; why, by how much, and how sure that is."""
        then, now = f"run {self.one.id}", f"run {self.other.id}"
        why = f" ({', '.join(self.causes)} changed)" if self.causes else ""
        if self._untold or not self._pair:
            return f"Whether {now} is better than {then} cannot be told{why}: {self._untold}."
        (old, new), (verdict, gain, _), metric = self._pair, self._tested, str(self.other.facts.get("metric"))
        on = f", on the {len(self._values)} queries with the same labels in both," if self._data else ""
        over = f" Over all: {number(old['mean'])} to {number(new['mean'])}." if self._data else ""
        if verdict == SAME:
            has = f"has {SAME}" if self._data else f"has {number(new['mean'])} {metric}"
            return f"R{now[1:]} is as good as {then}{why}: {new['label']}{on} {has}.{over}"
        told = {
            "better": f"R{now[1:]} is better than {then}",
            "worse": f"R{now[1:]} is worse than {then}",
            TOO_FEW: f"Too few queries to tell whether {now} is better than {then}",
        }
        head = told.get(verdict, f"R{now[1:]} is no different from {then} by {MARGIN} or more")
        against = f"against {'that' if old['label'] == new['label'] else old['label']} of {then}"
        return f"{head}{why}: {new['label']}{on} is {in_words(gain, metric, against)}.{over}{self._optimism}"

    def steps(self) -> Iterator[str]:
        """The commands that show why one is better, or tell what the two runs cannot."""
        verdict, _, more = self._tested
        told, few = not self._untold, verdict == TOO_FEW
        if told and (verdict == SAME or not searched(self.one, self.other) or "model" in self.causes):
            return
        if told and few and self.dataset.complete and not self.dataset.unlabelled:  # no label of a pair would help
            step = labelling(self.dataset, more, "")
            yield f"{step.what}: {step.command}"
            return
        rows = self._pair if told else [own_of(run) or run.today or run.best for run in self._runs]
        words = [_words(run, row, of_files=told) for run, row in zip(self._runs, rows, strict=True)]
        names = [name for name, _ in words]
        if len({*names} - {""}) < 2:
            return
        steps: list[Step] = [("runs", [id_], {"--out": name}) for name, id_ in words if id_]
        if told:
            lost, won = names if verdict == "better" else names[::-1]
            see: Step = ("explain", [lost], {"--against": won})
            steps += [("judge", names, {"--list": True}) if few else see]
        elif all(run.chosen for run in self._runs):  # one after the other, for each may need vectors of its own
            steps += [*(("compare", [name], {}) for name in names), ("runs", [], {})]
        else:
            steps += [("compare", names, {"--baseline": names[0]})]
        lines = (spelled(job, self.dataset, *given, options=options) for job, given, options in steps)
        see_what = TO_SEE.format("gains" if verdict == "better" else "loses")
        yield f"{TO_TELL if not told else TO_LABEL if few else see_what}: {' && '.join(map(str, lines))}"

    def lines(self) -> Iterator[str]:
        """What was compared, and all that differs."""
        for run, row in zip(self._runs, self._pair, strict=False):
            yield f"run {run.id}: {row['label']} {number(row['mean'])}, {written(row)}"
        before, after = self._states
        for name in (*self._data, *({PROVENANCE} & {*self.causes})):
            known = before.get(name) and after.get(name)
            yield f"{name}: {moved(before[name], after[name], named=NAMED) if known else 'changed'}"
        yield from settings(self.one, self.other)
        then, now = self.one.today, self.other.today
        if then and now and now not in self._pair and configuration(then) == configuration(now):
            means = [number(row["mean"]) for row in (then, now)]
            yield f"today, {now['label']}: {' to '.join(dict.fromkeys(means))}"
        gaps = {query: (new[0] or 0) - (old[0] or 0) for query, old, new in self._ranked if old[1] != new[1]}
        moved_most = (query for query, gap in gaps.items() if gap and (query in self._values or not self._data))
        most = sorted(moved_most, key=lambda query: (-abs(gaps[query]), query))[:NAMED]
        named = ", ".join(f"{query} {number(gaps[query], signed=True)}" for query in most)
        if gaps:
            yield f"lists: {len(gaps)} of {len(self._ranked)} changed{f', most {named}' if named else ''}"

    @property
    def _runs(self) -> tuple[KeptRun, KeptRun]:
        return self.one, self.other

    @cached_property
    def _pair(self) -> tuple[KeptRow, ...]:
        """The contender of each that is compared; empty without any."""
        return pair_of(self.one, self.other) or ()

    @cached_property
    def _states(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return states_of(self.dataset, self.one), states_of(self.dataset, self.other)

    @property
    def _data(self) -> list[str]:
        return [name for name in DATA if name in self.causes]

    @cached_property
    def _ranked(self) -> list[tuple[str, Sequence[Any], Sequence[Any]]]:
        """The queries of both runs, with the value and the hash of the list that each of the pair has there."""
        pairs = zip(self._states, self._pair, strict=False)
        old, new = [state.get("ranked", {}).get(row["label"], {}) for state, row in pairs] or ({}, {})
        return [(query, old[query], new[query]) for query in sorted(new) if query in old]

    @cached_property
    def _values(self) -> dict[str, tuple[float, float]]:
        """What the pair has on every query that both runs asked and judged alike."""
        other = [name for name in ("labels", "queries") if name in self.causes]
        pairs = [[state.get(name, {}) for state in self._states] for name in other]
        return {
            query: (old[0], new[0])
            for query, old, new in self._ranked
            if None not in (old[0], new[0])
            if all(query in now and then.get(query) == now[query] for then, now in pairs)
        }

    @cached_property
    def _tested(self) -> tuple[str, Gain, int | None]:
        """The verdict on these values, by how much they rose, and how many more queries would tell."""
        if not self._values:
            return SAME, NO_GAIN, None
        queries = self.dataset.queries
        numbers = dict(zip((query.id for query in queries), unit_numbers(queries).tolist(), strict=True))
        units = [numbers.get(query, query) for query in self._values]
        old, new = zip(*self._values.values(), strict=True)
        paired = compare_paired(new, old, units)
        gain = Gain.within(paired.interval, len({*units}))
        more = max(0, paired.queries_needed - len(self._values)) if paired.queries_needed else None
        return paired.verdict if paired.wins + paired.losses else SAME, gain, more

    @cached_property
    def _untold(self) -> str:
        """Why nothing can be told; empty where something can."""
        if {"metric", "split"} & {*self.causes}:
            return "they did not measure the same"
        if not self._pair:
            return "no contender is in both"
        then, now = (row["mean"] for row in self._pair)
        if self._values or (not self._data and round(now - then, 9) == 0):
            return ""
        reason = "no query has the same labels in both" if self._ranked else "no values by query are kept"
        return f"{reason}; over all {self._pair[1]['label']} went from {number(then)} to {number(now)}"

    @property
    def _optimism(self) -> str:
        """Whose weights were tuned on these very queries, where those of the other were not."""
        rows = [row for run in self.runs for row in run.facts.get("rows", ())]
        tuned = {row.get("strategy") for row in rows if row["label"].endswith("tuned")} - {None}
        ids = [run.id for run, row in zip(self._runs, self._pair, strict=True) if row.get("strategy") in tuned]
        said = "weights were tuned on these queries, so its value is optimistic"
        return f" Run {ids[0]}'s {said}." if len(ids) == 1 else ""


def _words(run: KeptRun, row: KeptRow | None, *, of_files: bool) -> tuple[str, str]:
    """How a command names what a run measured, and the run whose weights are to be written to that file first.

    Empty where only a file will do and none was kept.
    """
    label = row["label"] if row else ""
    if run.chosen and (not of_files or row == own_of(run)):
        there = of_files and holds(Path(label), run.chosen)
        return (word(Path(label)), "") if there else (f"run-{run.id}.json", str(run.id))
    return "" if of_files else label, ""
