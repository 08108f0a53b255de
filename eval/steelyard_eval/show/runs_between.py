"""What differs between two kept runs, and what the newest one gained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from steelyard_eval.common.markup import counted, interval, number
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.datasets.states import moved
from steelyard_eval.decide.promise import Gain
from steelyard_eval.decide.wording import in_words
from steelyard_eval.measures.statistics import MARGIN, TOO_FEW, Interval, Paired, compare_paired
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.runs import PARTS, KeptRow, KeptRun, states_of
from steelyard_eval.show.runs_paired import (
    Pairs,
    alike,
    answer_of,
    configuration,
    gain_of,
    pairs_of,
    weights,
    written,
)

NAMED = 5
"""Queries that are named where lists changed, and contenders whose means moved."""
DATA = ("entries", "queries", "labels")
"""The parts that are not the search."""


def changes(dataset: Dataset, one: KeptRun, other: KeptRun, runs: Sequence[KeptRun]) -> Iterator[str]:
    """One sentence on whether the later run is better, and why; below it a line for everything that differs."""
    between = Between.of(dataset, one, other, runs)
    pairs, before, after = between.pairs, between.before, between.after
    rest = [
        *between.data_alone(dataset),
        *([f"changed: {'; '.join(between.reasons)}"] if between.reasons else ()),
        *_alone(one, other, pairs),
        *_renamed(one, pairs),
        *_settings(one, other),
        *weights({label: pair for label, pair in pairs.items() if not _another(*pair)}),
        *(between.alike() if between.reasons else ()),
        *between.means(),
    ]
    if one.facts.get("chosen") and other.facts.get("chosen") not in (None, one.facts["chosen"]):
        rest.append(f"chosen: {one.facts['chosen']} to {other.facts['chosen']}")
    lists = before.get("ranked") or {}
    renamed = {label: lists[old["label"]] for label, (old, _) in pairs.items() if old["label"] in lists}
    rest += _ranked(renamed, after.get("ranked") or {})
    if rest or one.facts.get("rows") != other.facts.get("rows"):
        yield between.sentence
    yield from rest


def moved_parts(one: KeptRun, other: KeptRun) -> Iterator[str]:
    """What differs between two runs, in a word each.

    Lists are named where nothing else explains that they differ: the contenders and the labels are the same.
    """
    kept = {name: (one.states.get(name), other.states.get(name)) for name in PARTS}
    moved = [name for name, (a, b) in kept.items() if a != b]
    same = [[(row["label"], *configuration(row)) for row in run.facts.get("rows", ())] for run in (one, other)]
    if moved != ["ranked"] or not all(kept["ranked"]) or sorted(same[0]) != sorted(same[1]):
        moved = [name for name in moved if name != "ranked"]
    yield from (PARTS[name] for name in moved)
    yield from dict.fromkeys(line.partition(" of ")[0] for line in weights(pairs_of(one, other)))


def newest(dataset: Dataset, runs: Sequence[KeptRun]) -> Iterator[str]:
    """Whether the last run of which an earlier one measured the same is better than that one.

    Where neither data nor labels nor weights differ, also against the last one before any of them changed.
    """
    for at in range(len(runs) - 1, 0, -1):
        run, told = runs[at], False
        for before in alike(run, runs[:at]):
            between = Between.of(dataset, before, run, runs)
            moved = between.reasons or any(weights(between.pairs))
            if told and not moved:
                continue
            yield between.sentence
            yield from between.data_alone(dataset)
            told = True
            if moved:
                yield f"more: {spelled('runs', dataset, str(before.id), str(run.id), options={})}"
                return
        if told:
            return


@dataclass(frozen=True)
class Between:
    """Two runs side by side: `before` and `after` are their states, `units` what queries of today vary with.

    `runs` are all that are kept.
    """

    one: KeptRun
    other: KeptRun
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    units: Mapping[str, int]
    runs: Sequence[KeptRun]

    @classmethod
    def of(cls, dataset: Dataset, one: KeptRun, other: KeptRun, runs: Sequence[KeptRun]) -> Between:
        """Of runs of a data set."""
        units = dict(
            zip((query.id for query in dataset.queries), unit_numbers(dataset.queries).tolist(), strict=True)
        )
        return cls(one, other, states_of(dataset, one), states_of(dataset, other), units, runs)

    @cached_property
    def pairs(self) -> Pairs:
        """The contenders of both."""
        return pairs_of(self.one, self.other)

    @property
    def apart(self) -> list[str]:
        """What makes their means numbers of two kinds."""
        both = [(name, *(run.facts.get(name) for run in (self.one, self.other))) for name in ("metric", "split")]
        return [f"{name} {_or_none(a)} to {_or_none(b)}" for name, a, b in both if a != b]

    @cached_property
    def reasons(self) -> list[str]:
        """What else than the search differs."""
        both = self.before.keys() & self.after.keys()
        return self.apart + [
            f"{name} {moved(self.before[name], self.after[name], named=NAMED) if name in both else 'changed'}"
            for name in self._data_moved
        ]

    @property
    def _data_moved(self) -> list[str]:
        return [name for name in DATA if self.one.states.get(name) != self.other.states.get(name)]

    @property
    def sentence(self) -> str:
        """Better, worse, or not to be told; why, by how much, and how sure that is."""
        then, now = f"run {self.one.id}", f"Run {self.other.id}"
        why = f" ({', '.join(causes)} changed)" if (causes := self.causes) else ""
        untold = f"Whether {now[0].lower()}{now[1:]} is better than {then} cannot be told{why}: "
        if self.apart or not self.pairs:
            return f"{untold}{'; '.join(self.apart) or 'no contender is in both'}."
        label = self._label
        old, mean = self.pairs[label][0]["label"], self.pairs[label][1]["mean"]
        metric, queries = self.metric, self.both(label)
        if (paired := self.paired(label)) is None:
            has = f"{now} is as good as {then}{why}: {label} has {number(mean)} {metric}."
            return f"{untold}{self._unknown}." if self._moved else has
        on = f", on the {len(queries)} queries with the same labels in both," if self.reasons else ""
        if paired.wins == paired.losses == 0:
            has = " has the same values" if self.reasons else f" has {number(mean)} {metric}"
            return f"{now} is as good as {then}{why}: {label}{on}{has}."
        units = len({self.units.get(query, query) for query in queries})
        gain = Gain.within(Interval(paired.delta, paired.low, paired.high), units)
        told = {"better": f"{now} is better than {then}", "worse": f"{now} is worse than {then}"}
        alike = f"{now} is no different from {then} by {MARGIN} or more"
        head = untold if paired.verdict == TOO_FEW else f"{told.get(paired.verdict, alike)}{why}: "
        against = f"against its {old}" if _another(*self.pairs[label]) else "against it"
        return f"{head}{label}{on} is {in_words(gain, metric, against)}.{self._optimism(label)}"

    def data_alone(self, dataset: Dataset) -> Iterator[str]:
        """What the data alone did where the search changed, too: by a run of the one search on the other data."""
        if self.apart or not self.pairs or not self._data_moved:
            return
        old, new = map(configuration, self.pairs[self._label])
        then, now = ([run.states.get(name) for name in DATA] for run in (self.one, self.other))
        for run in reversed(self.runs if old != new else ()):
            on = [run.states.get(name) for name in DATA]
            for search, data, pair in ((new, then, (run, self.other)), (old, now, (self.one, run))):
                if not search or on != data:
                    continue
                part = Between.of(dataset, *pair, ())
                for label, rows in ({} if part.apart else part.pairs).items():
                    if {*map(configuration, rows)} == {search}:
                        yield part._gained(label, " and ".join(self._data_moved))
                        return

    def _gained(self, label: str, what: str) -> str:
        """By how much a contender moved, on what is the same in both and over all."""
        queries, paired = counted(len(self.both(label)), "query", "queries"), self.paired(label)
        same = f"{number(paired.delta, 4, signed=True)} on the {queries} with the same labels, " if paired else ""
        over_all = number(gain_of(*self.pairs[label]), 4, signed=True)
        return f"the {what} alone, run {self.one.id} to run {self.other.id}: {label} {same}{over_all} over all"

    def _optimism(self, label: str) -> str:
        """Whose weights were tuned on these very queries, where those of the other were not."""
        tuned = {
            configuration(row)
            for run in self.runs
            if run.kind in ("recommend", "tune")
            for row in run.facts.get("rows", ())
            if row["label"].endswith("tuned") and row.get("strategy")
        }
        runs = zip((self.one, self.other), self.pairs[label], strict=True)
        found = [run.id for run, row in runs if configuration(row) in tuned]
        said = "weights were tuned on these queries, so its value is optimistic"
        return f" Run {found[0]}'s {said}." if len(found) == 1 else ""

    @cached_property
    def _label(self) -> str:
        """Of which contender the sentence is."""
        return max(self.pairs, key=self._weight)

    @property
    def metric(self) -> str:
        """The metric of the later run."""
        return self.other.facts.get("metric") or "nDCG@10"

    @property
    def causes(self) -> list[str]:
        """What differs, in a word each."""
        settings = [line.partition(":")[0] for line in _settings(self.one, self.other)]
        return [*moved_parts(self.one, self.other), *settings]

    def _weight(self, label: str) -> tuple[bool, bool, bool, float, bool]:
        """What was chosen first, then what has other weights, what moved most, what is used today."""
        old, new = self.pairs[label]
        moved, today = any(weights({label: (old, new)})), label == self.other.facts.get("baseline")
        return new == answer_of(self.other), moved, bool(self.both(label)), abs(gain_of(old, new)), today

    @property
    def _moved(self) -> bool:
        return bool(self.reasons) or any(gain_of(*pair) for pair in self.pairs.values())

    @property
    def _unknown(self) -> str:
        """What is known where no values by query are."""
        noise = "which may be noise, as no values by query are kept"
        return f"{_verdict(self.pairs)}, {noise}; `steelyard compare` with the weights of both tells"

    @cached_property
    def _same(self) -> set[str]:
        """The queries whose text and labels are the same."""
        parts = [(self.before.get(name, {}), self.after.get(name, {})) for name in ("labels", "queries")]
        return {query for query in parts[0][1] if all(a.get(query) == b.get(query) for a, b in parts)}

    def _values(self, label: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        old = self.pairs[label][0]["label"]
        return self.before.get("ranked", {}).get(old, {}), self.after.get("ranked", {}).get(label, {})

    def both(self, label: str) -> list[str]:
        """The queries alike in both runs of which values of a contender are kept."""
        a, b = self._values(label)
        return sorted(
            query for query in self._same & a.keys() & b.keys() if None not in (a[query][0], b[query][0])
        )

    def paired(self, label: str) -> Paired | None:
        """A contender beside itself, over these queries; None without any."""
        queries = self.both(label)
        a, b = ([part[query][0] for query in queries] for part in self._values(label))
        return compare_paired(b, a, [self.units.get(query) for query in queries]) if queries else None

    def _told(self, label: str) -> str:
        """A mean on these queries then and now, with the interval of the difference or how many moved."""
        paired, queries, (a, _) = self.paired(label), self.both(label), self._values(label)
        if paired is None:
            return "nothing to compare"
        old = sum(a[query][0] for query in queries) / len(queries)
        if not round(paired.delta, 9):
            rose = counted(paired.wins, "query", "queries")
            return f"{number(old, 4)} in both, {rose} rose and {paired.losses} fell"
        sure = interval(paired.low, paired.high, signed=True)
        return _change(old, old + paired.delta, f" {sure}" if len(queries) > 1 else "")

    def alike(self) -> Iterator[str]:
        """How contenders did on the queries that both runs asked and judged alike, as far as values are kept."""
        if self.apart:
            return
        unknown = 0
        for label in self.pairs:
            a, b = self._values(label)
            if not a or not b:
                unknown += 1
                continue
            if (paired := self.paired(label)) and paired.wins == paired.losses == 0:
                continue
            on = f"{len(self.both(label))} of {counted(len(a.keys() | b.keys()), 'query', 'queries')}"
            yield f"{label}, on the {on} with the same labels in both runs: {self._told(label)}"
        if 0 < unknown < len(self.pairs):
            yield f"of {counted(unknown, 'other contender')} no values by query are kept"

    def means(self) -> Iterator[str]:
        """The means that moved most, the worst first, and how many more did."""
        gaps = {label: gain for label, pair in self.pairs.items() if (gain := gain_of(*pair))}
        most = sorted(gaps, key=lambda label: -abs(gaps[label]))[:NAMED]
        for label in (label for label in gaps if label in most):
            old, new = self.pairs[label]
            if self.reasons:
                yield f"{label}, over all queries and labels of each run: {_change(old['mean'], new['mean'])}"
            else:
                yield f"{label}: {self._told(label) if self.both(label) else _change(old['mean'], new['mean'])}"
        if rest := len(gaps) - len(most):
            yield f"{rest} more moved less"


def _alone(one: KeptRun, other: KeptRun, pairs: Pairs) -> Iterator[str]:
    """Contenders that only one of two runs has."""
    for run, both in ((one, {old["label"] for old, _ in pairs.values()}), (other, {*pairs})):
        alone = [row["label"] for row in run.facts.get("rows", ()) if row["label"] not in both]
        if alone:
            more = f"; {len(alone) - NAMED} more" if len(alone) > NAMED else ""
            yield f"only run {run.id} has {'; '.join(alone[:NAMED])}{more}"


def _renamed(one: KeptRun, pairs: Pairs) -> Iterator[str]:
    """Contenders that had another name in the run before, and another search that is set against them."""
    for label, (old, new) in pairs.items():
        if _another(old, new):
            searches = " to ".join(written(row) for row in (old, new))
            yield f"{label} against {old['label']} of run {one.id}: {searches}"
        elif old["label"] != label:
            yield f"{label} was called {old['label']} in run {one.id}"


def _another(old: KeptRow, new: KeptRow) -> bool:
    """Whether these are two searches of two names."""
    return old["label"] != new["label"] and configuration(old) != configuration(new)


def _settings(one: KeptRun, other: KeptRun) -> Iterator[str]:
    for name, what in (("tool", "tool"), ("code", "commit"), ("model", "model"), ("limit", "limit")):
        a, b = one.facts.get(name), other.facts.get(name)
        if a and b and a != b:  # a gate keeps no model and no limit
            yield f"{what}: {_short(a)} to {_short(b)}"
    then, now = (run.facts.get("restriction") for run in (one, other))
    if then != now:
        yield f"restriction: {_or_none(then)} to {_or_none(now)}"


def _verdict(pairs: Pairs) -> str:
    """How many means moved either way, and the ones that did most, in words."""
    gains = {label: gain_of(*pair) for label, pair in pairs.items()}
    fell = [f"{label} by {number(-gain, 4)}" for label, gain in gains.items() if gain < 0]
    rose = [f"{label} by {number(gain, 4)}" for label, gain in gains.items() if gain > 0][::-1]
    told = [
        f"{len(texts)} {how} ({'most ' if len(texts) > 1 else ''}{texts[0]})"
        for texts, how in ((fell, "fell"), (rose, "rose"))
        if texts
    ]
    if len(pairs) == 1:
        (only,) = gains
        how = f"fell by {number(-gains[only], 4)}" if fell else f"rose by {number(gains[only], 4)}"
        return f"{only}, the only contender in both runs, {how if fell or rose else 'did not move'}"
    return f"of {len(pairs)} contenders in both runs {' and '.join(told) or 'none moved'}"


def _change(old: float, new: float, sure: str = "") -> str:
    gain = round(new - old, 9)
    return f"{number(old, 4)} to {number(new, 4)} ({number(gain, 4, signed=True)}{sure})"


def _short(value: object) -> str:
    text = _or_none(value)
    return text[:12] if len(text) == 40 else text


def _or_none(value: object) -> str:
    return "none" if value is None else str(value)


def _ranked(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for label in [label for label in other if label in one]:
        both = [query for query in other[label] if query in one[label]]
        moved = [query for query in both if one[label][query][1] != other[label][query][1]]
        if not moved:
            continue
        gaps = {query: (other[label][query][0] or 0) - (one[label][query][0] or 0) for query in moved}
        most = sorted((query for query in moved if gaps[query]), key=lambda query: (-abs(gaps[query]), query))[
            :NAMED
        ]
        named = ", ".join(f"{query} {number(gaps[query], signed=True)}" for query in most)
        yield f"{label}: {len(moved)} of {len(both)} lists changed" + (f", most {named}" if named else "")
