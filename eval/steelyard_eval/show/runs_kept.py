"""What was measured on a data set so far: the list, one run, what changed between two, and the trend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard_eval.common.console import table, wrapped
from steelyard_eval.common.markup import ends, number
from steelyard_eval.common.results import Result, frame_html
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.faults import counted
from steelyard_eval.datasets.states import moved
from steelyard_eval.decide.steps import WEIGHTS
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.runs import PARTS, KeptRow, KeptRun, find_run, kept, states_of
from steelyard_eval.show.plots import trend
from steelyard_eval.show.spans import Span
from steelyard_eval.tune.replaced import write_and_log

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NAMED = 5
"""Queries that are named where lists changed, and contenders whose means moved."""
COLUMNS = {
    "run": "run", "at": "when (UTC)", "kind": "job", "metric": "metric", "today": "today", "best": "best",
    "label": "best contender", "verdict": "verdict", "data": "changed since the run before",
}  # fmt: skip


class Runs(Result):
    """The runs that are kept of a data set, oldest first."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.runs = kept(dataset)

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        return f"Runs({len(self.runs)} of {self.dataset.name})"

    def to_json(self) -> dict[str, Any]:
        """Every run with what it found."""
        return {"runs": [{"run": one.id, "at": one.at, "kind": one.kind, **one.facts} for one in self.runs]}

    def to_frame(self) -> pd.DataFrame:
        """A row for each run."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=list(COLUMNS)).rename(columns=COLUMNS)

    def __str__(self) -> str:
        if not self.runs:
            return "nothing was measured yet"
        return "\n\n".join([table(self._rows(), COLUMNS), *_newest(self.runs)])

    def _repr_html_(self) -> str:
        return frame_html(self.to_frame())

    def plot(self) -> Figure:
        """Plot what is used today and the best contender over time, of the last runs that are alike (`trends`)."""
        found = trends(self.runs)
        if not found:
            raise ConfigError("no two runs did the same job by the same metric yet, so there is no trend to plot")
        return trend(*found)

    def one(self, run: int) -> str:
        """A run in words: its numbers, contenders and strategies."""
        own = find_run(self.runs, run)
        facts = own.facts
        head = [f"run {own.id}, {own.kind}, {own.at}, {facts.get('tool', '')}"]
        head += [f"commit {facts['code'][:12]}"] if facts.get("code") else []
        head += [f"verdict: {facts['verdict']}"] if facts.get("verdict") else []
        head += [wrapped(f"chosen:  {facts['chosen']}", 9)] if facts.get("chosen") else []
        rows = [{**row, "mean": _shown(row)} for row in facts.get("rows", ())]
        columns = {"label": "", "mean": f"{facts.get('metric')} [95%]", "strategy": "strategy"}
        file = spelled("runs", self.dataset, str(run), options={"--out": WEIGHTS}) if "weights" in facts else None
        steps = [wrapped(f"as a file: {file}", 4)] if file else []
        return "\n\n".join(["\n".join(head), *steps, *([table(rows, columns)] if rows else [])])

    def chosen(self, run: int) -> SearchConfig:
        """What a run chose, under try what to try; ConfigError where it chose nothing, or is not kept."""
        return self.file(run, WEIGHTS)

    def file(self, run: int, path: Path) -> SearchConfig:
        """What a run has for a weights file: for `*.current.json` what was run then, else what it chose."""
        own = find_run(self.runs, run)
        record = own.file(path)
        if record is None:
            which = ", ".join(str(one.id) for one in self.runs if one.chosen is not None)
            known = f"; kept are those of {which}" if which else ""
            raise ConfigError(f"run {run}, {own.kind}, keeps no weights; name one of recommend or tune{known}")
        return SearchConfig.from_json(record, f"run {run} of {self.dataset.name}")

    def save_weights(self, run: int, path: str | Path) -> Path:
        """Write what a run has for this file (see `file`), which is returned; what it replaces is copied first."""
        return write_and_log({Path(path): self.file(run, Path(path))})[0]

    def changed(self, before: int, after: int) -> list[str]:
        """What changed between two runs, a line each: data, labels, code, weights, means, result lists."""
        one, other = find_run(self.runs, before), find_run(self.runs, after)
        return list(changes(self.dataset, one, other)) or ["nothing changed"]

    def _rows(self) -> list[dict[str, Any]]:
        last: KeptRun | None = None
        rows = []
        for run in self.runs:
            today, best = run.row(str(run.facts.get("baseline"))), run.best
            moved = list(_moved(last, run)) if last else []
            rows.append(
                {
                    "run": run.id,
                    "at": run.at.replace("T", " ").rstrip("Z"),
                    "kind": run.kind,
                    "metric": run.facts.get("metric"),
                    "today": number(today["mean"]) if today else "-",
                    "best": number(best["mean"]) if best else "-",
                    "label": best["label"] if best else "-",
                    "verdict": run.facts.get("verdict", "-"),
                    "data": ", ".join(moved) or ("-" if last else "the first"),
                }
            )
            last = run
        return rows


Lines = dict[str, list[Span | None]]
Pairs = dict[str, tuple[float, float]]


def trends(runs: Sequence[KeptRun]) -> tuple[Lines, str] | None:
    """A line for what was used and one for the best, with the metric, of the job that was last done twice alike.

    Runs of other jobs, metrics and splits measured something else, and would look like a change. None without two.
    """
    alike: dict[tuple[object, ...], list[KeptRun]] = {}
    for run in (one for one in runs if one.best):
        alike.setdefault((run.kind, run.facts.get("metric"), run.facts.get("split")), []).append(run)
    twice = [own for own in alike.values() if len(own) > 1]
    if not twice:
        return None
    same = max(twice, key=lambda own: own[-1].id)
    lines: Lines = {"best": [], "today": []}
    for run in same:
        when = run.at[5:16].replace("T", " ")
        for name, row in (("best", run.best), ("today", run.row(str(run.facts.get("baseline"))))):
            span = row and Span(str(row["label"]), row["mean"], row.get("low"), row.get("high"), when)
            lines[name].append(span or None)
    return {name: own for name, own in lines.items() if any(own)}, str(same[-1].facts["metric"])


def changes(dataset: Dataset, one: KeptRun, other: KeptRun) -> Iterator[str]:
    """A line for everything that differs between two runs, below one on what that says of the contenders."""
    before, after = states_of(dataset, one), states_of(dataset, other)
    reasons = list(_incomparable(one, other, before, after))
    pairs = _pairs(one, other)
    rest = [*_alone(one, other), *_settings(one, other), *_weights(one, other), *_means(pairs)]
    if one.facts.get("chosen") != other.facts.get("chosen"):
        rest.append(f"chosen: {_or_none(one.facts.get('chosen'))} to {_or_none(other.facts.get('chosen'))}")
    rest += _ranked(before.get("ranked") or {}, after.get("ranked") or {})
    if reasons:
        yield f"Not comparable: {'; '.join(reasons)}"
    elif rest or one.facts.get("rows") != other.facts.get("rows"):
        yield f"Same data and labels: {_verdict(pairs)}"
    yield from rest


def _moved(one: KeptRun, other: KeptRun) -> Iterator[str]:
    """What differs between two runs, in a word each; lists of jobs that keep none are no change."""
    for name, what in PARTS.items():
        a, b = one.states.get(name), other.states.get(name)
        if a != b and (name != "ranked" or (a and b)):
            yield what
    if any(_weights(one, other)):
        yield "weights"


def _newest(runs: Sequence[KeptRun]) -> Iterator[str]:
    """What the last run found, against the last before it that measured one of its contenders on the same data."""
    measured = [run for run in runs if run.best]
    for before in measured[-2::-1]:
        own = measured[-1]
        pairs = {} if any(_incomparable(before, own, {}, {})) else _pairs(before, own)
        if pairs:
            gains = [f"{label} {number(b - a, 4, signed=True)}" for label, (a, b) in pairs.items()]
            said = _verdict(pairs) if len(gains) > 1 else f"{gains[0]} {own.facts.get('metric')}"
            yield f"run {own.id} against run {before.id}, on the same data and labels: {said}"
            return


def _incomparable(
    one: KeptRun, other: KeptRun, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[str]:
    """Why means of two runs measure something else."""
    for name in ("metric", "split"):
        a, b = one.facts.get(name), other.facts.get(name)
        if a != b:
            yield f"{name} {_or_none(a)} to {_or_none(b)}"
    for name in ("entries", "queries", "labels"):
        if one.states.get(name) != other.states.get(name):
            both = name in before and name in after
            yield f"{name} {moved(before[name], after[name], named=NAMED) if both else 'changed'}"


def _alone(one: KeptRun, other: KeptRun) -> Iterator[str]:
    """Contenders that only one of two runs has."""
    for run, without in ((one, other), (other, one)):
        alone = [row["label"] for row in run.facts.get("rows", ()) if not without.row(row["label"])]
        if alone:
            more = f"; {len(alone) - NAMED} more" if len(alone) > NAMED else ""
            yield f"only run {run.id} has {'; '.join(alone[:NAMED])}{more}"


def _settings(one: KeptRun, other: KeptRun) -> Iterator[str]:
    for name, what in (("tool", "tool"), ("code", "commit"), ("model", "model"), ("limit", "limit")):
        a, b = one.facts.get(name), other.facts.get(name)
        if a != b:
            yield f"{what}: {_short(a)} to {_short(b)}"


def _weights(one: KeptRun, other: KeptRun) -> Iterator[str]:
    for row in other.facts.get("rows", ()):
        old = one.row(row["label"])
        if old and old.get("strategy") != row.get("strategy"):
            yield f"weights of {row['label']}: {_or_none(old.get('strategy'))} to {_or_none(row.get('strategy'))}"


def _pairs(one: KeptRun, other: KeptRun) -> Pairs:
    """Both means of each contender of both runs, the worst change first."""
    both = [(row, old) for row in other.facts.get("rows", ()) if (old := one.row(row["label"]))]
    return {
        row["label"]: (old["mean"], row["mean"])
        for row, old in sorted(both, key=lambda pair: pair[0]["mean"] - pair[1]["mean"])
    }


def _verdict(pairs: Pairs) -> str:
    """How many means moved either way, and the ones that did most, in words."""
    fell = [f"{label} by {number(a - b, 4)}" for label, (a, b) in pairs.items() if b < a]
    rose = [f"{label} by {number(b - a, 4)}" for label, (a, b) in pairs.items() if b > a][::-1]
    told = [
        f"{len(own)} {how} ({'most ' if len(own) > 1 else ''}{own[0]})"
        for own, how in ((fell, "fell"), (rose, "rose"))
        if own
    ]
    if not pairs:
        return "nothing in common was measured"
    return f"of {counted(len(pairs), 'mean')} {' and '.join(told) or 'none moved'}"


def _means(pairs: Pairs) -> Iterator[str]:
    """The means that moved most, the worst first, and how many more did."""
    gaps = {label: b - a for label, (a, b) in pairs.items() if a != b}
    most = sorted(gaps, key=lambda label: -abs(gaps[label]))[:NAMED]
    for label in (label for label in gaps if label in most):
        a, b = (number(mean, 4) for mean in pairs[label])
        yield f"{label}: {a} to {b} ({number(gaps[label], 4, signed=True)})"
    if rest := len(gaps) - len(most):
        yield f"{rest} more moved less"


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


def _shown(row: KeptRow) -> str:
    return f"{row['mean']:.3f} {ends(row.get('low'), row.get('high'), '.3f')}".rstrip()
