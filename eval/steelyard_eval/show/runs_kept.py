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
from steelyard_eval.datasets.states import moved
from steelyard_eval.decide.steps import WEIGHTS
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.runs import PARTS, KeptRun, find_run, kept, states_of
from steelyard_eval.show.plots import trend
from steelyard_eval.show.spans import Span
from steelyard_eval.tune.attempt import save_weights

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NAMED = 5
"""Queries that are named where lists changed."""
COLUMNS = {
    "run": "run", "at": "when (UTC)", "kind": "job", "metric": "metric", "today": "today", "best": "best",
    "label": "best contender", "verdict": "verdict", "data": "since the last",
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
        return table(self._rows(), COLUMNS) if self.runs else "nothing was measured yet"

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

    def save_weights(self, run: int, path: str | Path) -> list[Path]:
        """Write what a run chose as it did: the weights file, or under try `*.current.json` and `*.try.json`.

        Returns what was written; ConfigError for a run that chose nothing, or none that is kept.
        """
        own = find_run(self.runs, run)
        if not any((found := own.facts.get("weights") or {}).values()):
            which = [one.id for one in self.runs if one.facts.get("weights")]
            known = f"; kept are those of {', '.join(map(str, which[-5:]))}" if which else ""
            raise ConfigError(f"run {run}, {own.kind}, keeps no weights; name one of recommend or tune{known}")
        place = f"run {run} of {self.dataset.name}"
        made = {name: one and SearchConfig.from_json(one, place) for name, one in found.items()}
        return save_weights(path, made.get("config") or None, made.get("attempt") or None)

    def changed(self, before: int, after: int) -> list[str]:
        """What changed between two runs, a line each: data, labels, code, weights, means, ranked queries."""
        one, other = find_run(self.runs, before), find_run(self.runs, after)
        return list(changes(self.dataset, one, other)) or ["nothing changed"]

    def _rows(self) -> list[dict[str, Any]]:
        last: KeptRun | None = None
        rows = []
        for run in self.runs:
            today, best = run.row(str(run.facts.get("baseline"))), run.best
            moved = [PARTS[name] for name in PARTS if last and last.states.get(name) != run.states.get(name)]
            rows.append(
                {
                    "run": run.id,
                    "at": run.at.replace("T", " ").rstrip("Z"),
                    "kind": run.kind,
                    "metric": run.facts.get("metric"),
                    "today": number(today["mean"] if today else None),
                    "best": number(best["mean"] if best else None),
                    "label": best["label"] if best else "-",
                    "verdict": run.facts.get("verdict", "-"),
                    "data": ", ".join(moved[:3]) or ("-" if last else "the first"),
                }
            )
            last = run
        return rows


Lines = dict[str, list[Span | None]]


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
    """A line for everything that differs between two runs."""
    for name, what in (
        ("tool", "tool"),
        ("code", "commit"),
        ("model", "model"),
        ("metric", "metric"),
        ("limit", "limit"),
    ):
        a, b = one.facts.get(name), other.facts.get(name)
        if a != b:
            yield f"{what}: {_short(a)} to {_short(b)}"
    before, after = states_of(dataset, one), states_of(dataset, other)
    for name in ("entries", "queries", "labels"):
        if one.states.get(name) != other.states.get(name):
            both = name in before and name in after
            yield f"{name}: {moved(before[name], after[name]) if both else 'changed'}"
    rows = {row["label"]: row for row in one.facts.get("rows", ())}
    for row in other.facts.get("rows", ()):
        old = rows.get(row["label"])
        if old and old.get("strategy") != row.get("strategy"):
            yield f"weights of {row['label']}: {_or_none(old.get('strategy'))} to {_or_none(row.get('strategy'))}"
        if old and old["mean"] != row["mean"]:
            gap = number(row["mean"] - old["mean"], 4, signed=True)
            yield f"{row['label']}: {number(old['mean'], 4)} to {number(row['mean'], 4)} ({gap})"
    if one.facts.get("chosen") != other.facts.get("chosen"):
        yield f"chosen: {_or_none(one.facts.get('chosen'))} to {_or_none(other.facts.get('chosen'))}"
    yield from _ranked(before.get("ranked") or {}, after.get("ranked") or {})


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


def _shown(row: Mapping[str, Any]) -> str:
    low, high = row.get("low"), row.get("high")
    around = "" if low is None or high is None else f" {ends(low, high, '.3f')}"
    return f"{row['mean']:.3f}{around}"
