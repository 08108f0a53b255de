"""What was measured on a data set so far: the list, the trend of a metric, and two runs compared."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from steelyard.base.errors import ConfigError, DataError
from steelyard_eval.common.console import brief, table, wrapped
from steelyard_eval.common.formatting import interval, number, p_value
from steelyard_eval.common.tabular import Frame, Tabular, as_frame
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.dataset import MAX_NAMED_IDS, changed_ids
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.measures.paired import paired
from steelyard_eval.recording.saved_runs import SavedRun, find_run, load_runs, parts_of, states_of
from steelyard_eval.result.sentences import VERDICTS, say
from steelyard_eval.result.structs import Fact, Message

COLUMNS = ("run", "date", "command", "metric", "value", "contender")
PARTS = {"entries": "corpus", "queries": "queries", "labels": "labels", "provenance": "provenance"}
SEARCH = {"strategy": "weights", "settings": "settings"}


class Runs(Tabular):
    """The runs that are kept of a data set, oldest first."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.runs = load_runs(dataset)

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        return f"Runs({len(self.runs)} of {self.dataset.name})"

    def to_json(self) -> dict[str, Any]:
        """Every run with what it found."""
        told = ({"run": run.id, "at": run.at, "kind": run.kind} for run in self.runs)
        return {
            "runs": [{**one, **msgspec.to_builtins(run.facts)} for one, run in zip(told, self.runs, strict=True)]
        }

    def to_frame(self) -> Frame:
        """A row for each run."""
        return as_frame(self._rows(), [*COLUMNS])

    def __str__(self) -> str:
        return table(self._rows(), dict(zip(COLUMNS, COLUMNS, strict=True))) if self.runs else "no run is kept yet"

    def trend(self, metric: str) -> list[dict[str, Any]]:
        """A row for each run of a metric, oldest first; ConfigError without any."""
        rows = [row for row in self._rows() if row["metric"] == metric and row["contender"]]
        if not rows:
            known = ", ".join(sorted({run.facts.metric for run in self.runs})) or "none"
            raise ConfigError(f"there is no run of {metric}; there are runs of {known}")
        return [{name: row[name] for name in ("run", "date", "value", "contender")} for row in rows]

    def between(self, before: int, after: int) -> dict[str, Any]:
        """Two runs: `difference` of what they are about, None where `sentence` says why not, and `changes`."""
        one, other = find_run(self.runs, before), find_run(self.runs, after)
        states = [states_of(self.dataset, run) for run in (one, other)]
        sentence, difference = self._difference(one, other, states)
        changes = {
            what: changed_ids(states[0].get(part, {}), states[1].get(part, {}), named=MAX_NAMED_IDS) or "changed"
            for part, what in PARTS.items()
            if one.facts.states.get(part) != other.facts.states.get(part)
        } | dict(_search_changes(one, other))
        return {
            "before": before, "after": after, "sentence": sentence, "difference": difference, "changes": changes
        }  # fmt: skip

    def _difference(
        self, one: SavedRun, other: SavedRun, states: Sequence[dict[str, Any]]
    ) -> tuple[str, dict[str, Any] | None]:
        """The paired difference over the queries that both asked and judged alike; else why there is none."""
        for name in ("metric", "split"):
            if getattr(one.facts, name) != getattr(other.facts, name):
                return say(Message("runs_by_another", {"old": one.id, "new": other.id, "what": name})), None
        pairs = zip(states, (one.facts.own, other.facts.own), strict=True)
        old, new = (state.get("values", {}).get(row.label, {}) if row else {} for state, row in pairs)
        data = [[state.get(name, {}) for state in states] for name in ("queries", "labels")]
        alike = [
            query
            for query in new
            if None not in (new[query], old.get(query)) and all(a.get(query) == b.get(query) for a, b in data)
        ]
        if not alike:
            measured = all(state.get("values") for state in states)
            return say(Message("runs_without_values", {"unmeasured": not measured, "measured": measured})), None
        queries = self.dataset.queries
        units = dict(zip((query.id for query in queries), unit_numbers(queries).tolist(), strict=True))
        groups = [units.get(query, query) for query in alike]
        found = paired({"": [new[query] for query in alike]}, [old[query] for query in alike], groups)[""]
        gain, p, verdict = found.gain, p_value(found.p).replace("<", "< "), VERDICTS[found.verdict]
        change = f"{number(gain.mean, signed=True)} {interval(gain.low, gain.high, signed=True)}"
        labels = (run.facts.own.label if run.facts.own else "" for run in (one, other))
        facts: dict[str, Fact] = dict(zip(("other", "label"), labels, strict=True))
        facts |= {"new": other.id, "old": one.id, "change": change, "metric": other.facts.metric}
        facts |= {"queries": len(alike), "verdict": verdict, "p": p if p.startswith("<") else f"= {p}"}
        numbers = {"delta": gain.mean, "low": gain.low, "high": gain.high, "p": found.p}
        return say(Message("runs_apart", facts)), {**numbers, "queries": len(alike), "verdict": verdict}

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for run in self.runs:
            own = run.facts.own
            value = f"{number(own.mean)} {interval(own.low, own.high)}".rstrip() if own else ""
            named = run.at[:16].replace("T", " "), run.kind, run.facts.metric
            rows.append(dict(zip(COLUMNS, (run.id, *named, value, own.label if own else ""), strict=True)))
        return rows


def describe_comparison(comparison: dict[str, Any]) -> str:
    """What `Runs.between` found: the sentence, then a line for all that changed."""
    changes = [wrapped(f"{what}: {change}", 4) for what, change in comparison["changes"].items()]
    return "\n".join([wrapped(comparison["sentence"]), *(changes or ["nothing changed"])])


def changes_since_last_run(dataset: Dataset) -> list[str]:
    """What is no longer as the last kept run measured it, a line a part; nothing where that cannot be told."""
    with suppress(DataError):
        for run in [run for run in load_runs(dataset) if run.facts.verdict != "mismatch"][-1:]:
            before, now = states_of(dataset, run), parts_of(dataset)
            told = {
                name: changed_ids(before.get(name) or part, part, named=MAX_NAMED_IDS)
                for name, part in now.items()
                if part
            }
            return [f"{name} since run {run.id}: {change}" for name, change in told.items() if change]
    return []


def _search_changes(one: SavedRun, other: SavedRun) -> Iterator[tuple[str, str]]:
    for name, what in SEARCH.items():
        old, new = (str((run.facts.own and getattr(run.facts.own, name)) or "-") for run in (one, other))
        if old != new:
            yield what, f"{brief(old)} to {brief(new)}"
    if one.facts.tool != other.facts.tool:
        yield "tool", f"{one.facts.tool} to {other.facts.tool}"
