"""What was measured on a data set so far: the list, one run, what changed between two, and the trend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard_eval.common.answer import step_in_terminal
from steelyard_eval.common.console import brief, table, wrapped
from steelyard_eval.common.markup import ends, number
from steelyard_eval.common.results import Result, frame_html
from steelyard_eval.datasets import Dataset
from steelyard_eval.decide.steps import WEIGHTS
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.runs import CURRENT, KeptRow, KeptRun, find_run, kept, moved_since_last
from steelyard_eval.show.plots import trend
from steelyard_eval.show.runs_between import changes, newest
from steelyard_eval.show.runs_paired import alike, changed_for, own_of, written
from steelyard_eval.show.spans import Span
from steelyard_eval.tune.replaced import write_and_log

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = {
    "run": "run", "at": "when (UTC)", "kind": "job", "metric": "metric", "today": "today", "value": "value",
    "label": "of", "verdict": "verdict", "data": "changed since run",
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
        return {"runs": [{"run": run.id, "at": run.at, "kind": run.kind, **run.facts} for run in self.runs]}

    def to_frame(self) -> pd.DataFrame:
        """A row for each run."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=list(COLUMNS)).rename(columns=COLUMNS)

    def __str__(self) -> str:
        if not self.runs:
            return "nothing was measured yet"
        one = len({run.facts.get("metric") for run in self.runs} - {None}) < 2
        columns = {
            name: head for name, head in COLUMNS.items() if name != "verdict" and (name != "metric" or not one)
        }
        rows = [{**row, "kind": f"{row['kind']}: {row['verdict']}".removesuffix(": -")} for row in self._rows()]
        last = [*newest(self.dataset, self.runs), *self._since()]
        return "\n\n".join(filter(None, [table(rows, columns, folded=FOLDED), "\n".join(map(printed, last))]))

    def _since(self) -> list[str]:
        """What changed since the last run, and how to measure again: the list cannot tell what that did."""
        lines = moved_since_last(self.dataset)
        file = [str(WEIGHTS)] if WEIGHTS.is_file() else []
        again = lines and spelled("compare", self.dataset, *file, options={})
        return [*lines, *([f"measure again: {again}"] if again else [])]

    def _repr_html_(self) -> str:
        return frame_html(self.to_frame())

    def plot(self) -> Figure:
        """Plot what is used today and the best contender over time, of the last runs that are alike (`trends`)."""
        history = trends(self.runs)
        if not history:
            raise ConfigError("no two runs did the same job by the same metric yet, so there is no trend to plot")
        return trend(*history)

    def one(self, run: int) -> str:
        """A run in words: its numbers, contenders and strategies."""
        past = find_run(self.runs, run)
        facts = past.facts
        head = [f"run {past.id}, {past.kind}, {past.at}, {facts.get('tool', '')}"]
        head += [f"commit {facts['code'][:12]}"] if facts.get("code") else []
        head += [f"verdict: {facts['verdict']}"] if facts.get("verdict") else []
        head += [wrapped(f"chosen:  {brief(facts['chosen'])}", 9)] if facts.get("chosen") else []
        rows = [{**row, "mean": _shown(row), "strategy": written(row)} for row in facts.get("rows", ())]
        columns = {"label": "", "mean": f"{facts.get('metric')} [95%]", "strategy": "strategy"}
        file = spelled("runs", self.dataset, str(run), options={"--out": WEIGHTS}) if past.chosen else None
        steps = [printed(f"as a file: {file}")] if file else []
        return "\n\n".join(["\n".join(head), *steps, *([table(rows, columns)] if rows else [])])

    def chosen(self, run: int) -> SearchConfig:
        """What a run chose, under try what to try; ConfigError where it chose nothing, or is not kept."""
        return self.file(run, WEIGHTS)

    def file(self, run: int, path: Path) -> SearchConfig:
        """What a run has for a weights file: see `KeptRun.file`."""
        past = find_run(self.runs, run)
        record = past.file(path)
        if record is None:
            ids = [str(other.id) for other in self.runs if other.file(path)]
            command = ("runs", ids[-1:], {"--out": path}) if ids else ("recommend", [], {})
            which = f"those of {', '.join(ids)} are kept" if ids else "no run does yet"
            step = spelled(command[0], self.dataset, *command[1], options=command[2])
            then = " of what was used then" if path.name.endswith(CURRENT) else ""
            raise ConfigError(f"run {run}, {past.kind}, has no weights file{then}; {which}: {step}")
        return SearchConfig.from_json(record, f"run {run} of {self.dataset.name}")

    def save_weights(self, run: int, path: str | Path) -> Path:
        """Write what a run has for this file (see `file`), which is returned; what it replaces is copied first."""
        return write_and_log({Path(path): self.file(run, Path(path))})[0]

    def changed(self, before: int, after: int) -> list[str]:
        """Whether the later of two runs is better, then a line for all that differs."""
        old, new = find_run(self.runs, before), find_run(self.runs, after)
        return list(changes(self.dataset, old, new, self.runs)) or ["nothing changed"]

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for at, run in enumerate(self.runs):
            row = _told(run)
            before = next(alike(run, self.runs[:at]), None)
            restriction = run.facts.get("restriction")
            first = f"the first{f' with {restriction}' if restriction else ''}" if row else "-"
            moved = f"{before.id}: {changed_for(before, run, row)}" if before else first
            rows.append(
                {
                    "run": run.id,
                    "at": run.at[:16].replace("T", " "),
                    "kind": run.kind,
                    "metric": run.facts.get("metric"),
                    "today": number(run.today["mean"]) if run.today else "-",
                    "value": number(row["mean"]) if row else "-",
                    "label": row["label"] if row else "-",
                    "verdict": run.facts.get("verdict", "-"),
                    "data": moved,
                }
            )
        return rows


FOLDED = 16
"""Columns of text are folded to no less than this, so that a row of the list fits 100 columns."""
Lines = dict[str, list[Span | None]]


def trends(runs: Sequence[KeptRun]) -> tuple[Lines, str] | None:
    """A line for what was used and one for the best, with the metric, of the job that was last done twice alike.

    Runs of other jobs, metrics and splits measured something else, and would look like a change. None without two.
    """
    alike: dict[tuple[object, ...], list[KeptRun]] = {}
    for run in (run for run in runs if run.best):
        alike.setdefault((run.kind, run.facts.get("metric"), run.facts.get("split")), []).append(run)
    twice = [group for group in alike.values() if len(group) > 1]
    if not twice:
        return None
    same = max(twice, key=lambda group: group[-1].id)
    lines: Lines = {"best": [], "today": []}
    for run in same:
        when = run.at[5:16].replace("T", " ")
        for name, row in (("best", run.best), ("today", run.today)):
            span = row and Span(str(row["label"]), row["mean"], row.get("low"), row.get("high"), when)
            lines[name].append(span or None)
    return {name: line for name, line in lines.items() if any(line)}, str(same[-1].facts["metric"])


def printed(line: str) -> str:
    """A line of text; a command at its end is on one line, because a folded one cannot be pasted."""
    what, found, command = line.partition(": steelyard ")
    if not found:
        return wrapped(line, 4)
    return step_in_terminal({"what": what, "command": f"steelyard {command}"})


def _told(run: KeptRun) -> KeptRow | None:
    """What the list has under `of`: what a run is about, where that is not run today, else the best other."""
    own, today = own_of(run), run.today
    if run.facts.get("verdict") == "keep":
        return own or today
    others = [row for row in run.facts.get("rows", ()) if row != today]
    return own if own and own != today else max(others, key=lambda row: row["mean"], default=today)


def _shown(row: KeptRow) -> str:
    return f"{row['mean']:.3f} {ends(row.get('low'), row.get('high'), '.3f')}".rstrip()
