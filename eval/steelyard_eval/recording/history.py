"""What was measured on a data set so far: the list, the trend of a metric, and two runs compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from steelyard.base.errors import ConfigError
from steelyard_eval.common.console import brief, table, wrapped
from steelyard_eval.common.markup import ends, number, p_value
from steelyard_eval.common.tabular import Tabular, frame_html
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.datasets.states import NAMED, moved
from steelyard_eval.measures.paired import paired
from steelyard_eval.recording.runs import KeptRun, find_run, kept, states_of
from steelyard_eval.result.sentences import say
from steelyard_eval.result.sentences.headings import VERDICTS
from steelyard_eval.result.structs import Fact, Said

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("run", "date", "command", "metric", "value", "contender", "changed since")
PARTS = {"entries": "corpus", "queries": "queries", "labels": "labels", "provenance": "provenance"}
SEARCH = {"strategy": "weights", "settings": "settings"}


class Runs(Tabular):
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
        return {
            "runs": [
                {"run": run.id, "at": run.at, "kind": run.kind, **msgspec.to_builtins(run.facts)}
                for run in self.runs
            ]
        }

    def to_frame(self) -> pd.DataFrame:
        """A row for each run."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=list(COLUMNS))

    def __str__(self) -> str:
        return table(self._rows(), dict(zip(COLUMNS, COLUMNS, strict=True))) if self.runs else "no run is kept yet"

    def _repr_html_(self) -> str:
        return frame_html(self.to_frame())

    def trend(self, metric: str) -> list[dict[str, Any]]:
        """A row for each run of a metric, oldest first; ConfigError without any."""
        rows = [row for row in self._rows() if row["metric"] == metric and row["contender"]]
        if not rows:
            known = ", ".join(sorted({str(run.facts.metric) for run in self.runs})) or "none"
            raise ConfigError(f"no run of {metric} is kept; kept are runs of {known}")
        return [{name: row[name] for name in ("run", "date", "value", "contender")} for row in rows]

    def between(self, before: int, after: int) -> dict[str, Any]:
        """Two runs: `difference` of what they are about, None where `sentence` says why not, and `changes`."""
        one, other = find_run(self.runs, before), find_run(self.runs, after)
        difference = self._difference(one, other)
        return {
            "before": before,
            "after": after,
            "sentence": difference if isinstance(difference, str) else _told(one, other, difference),
            "difference": None if isinstance(difference, str) else difference,
            "changes": self._changes(one, other),
        }

    def _difference(self, one: KeptRun, other: KeptRun) -> dict[str, Any] | str:
        """The paired difference over the queries that both asked and judged alike; else why there is none."""
        for name in ("metric", "split"):
            if getattr(one.facts, name) != getattr(other.facts, name):
                return say(Said("runs_by_another", {"old": one.id, "new": other.id, "what": name}))
        states = [states_of(self.dataset, run) for run in (one, other)]
        pairs = zip(states, (one.facts.own, other.facts.own), strict=True)
        old, new = (state.get("values", {}).get(row.label, {}) if row else {} for state, row in pairs)
        data = [[state.get(name, {}) for state in states] for name in ("queries", "labels")]
        alike = [
            query
            for query in new
            if None not in (new[query], old.get(query)) and all(a.get(query) == b.get(query) for a, b in data)
        ]
        if not alike:
            return say(Said("runs_without_values"))
        units = dict(
            zip((query.id for query in self.dataset.queries), unit_numbers(self.dataset.queries), strict=True)
        )
        groups = [int(units[query]) if query in units else query for query in alike]
        found = paired({"": [new[query] for query in alike]}, [old[query] for query in alike], groups)[""]
        interval = {"delta": found.gain.mean, "low": found.gain.low, "high": found.gain.high}
        return {**interval, "p": found.p, "queries": len(alike), "verdict": VERDICTS[found.verdict]}

    def _changes(self, one: KeptRun, other: KeptRun) -> dict[str, str]:
        """What differs, by its name."""
        before, after = (states_of(self.dataset, run) for run in (one, other))
        return {
            what: moved(before.get(part, {}), after.get(part, {}), named=NAMED) or "changed"
            for part, what in PARTS.items()
            if one.facts.states.get(part) != other.facts.states.get(part)
        } | dict(_of_search(one, other))

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for at, run in enumerate(self.runs):
            own = run.facts.own
            earlier = [old for old in self.runs[:at] if own and old.facts.best and _measure(old) == _measure(run)]
            value = f"{number(own.mean)} {ends(own.low, own.high, '.3f')}".rstrip() if own else ""
            rows.append(
                {
                    "run": run.id,
                    "date": run.at[:16].replace("T", " "),
                    "command": run.kind,
                    "metric": run.facts.metric,
                    "value": value,
                    "contender": own.label if own else "",
                    "changed since": _since(earlier[-1], run) if earlier else "",
                }
            )
        return rows


def _measure(run: KeptRun) -> tuple[str | None, str | None]:
    return run.facts.metric, run.facts.split


def in_words(found: dict[str, Any]) -> str:
    """What `Runs.between` found: the sentence, then a line for all that changed."""
    changes = [wrapped(f"{what}: {change}", 4) for what, change in found["changes"].items()]
    return "\n".join([wrapped(found["sentence"]), *(changes or ["nothing changed"])])


def _told(one: KeptRun, other: KeptRun, found: dict[str, Any]) -> str:
    old, new = (run.facts.own.label if run.facts.own else "" for run in (one, other))
    interval = f"{number(found['delta'], signed=True)} {ends(found['low'], found['high'], '+.3f')}"
    p = p_value(found["p"]).replace("<", "< ")
    facts: dict[str, Fact] = {"new": other.id, "label": new, "old": one.id, "other": old, "change": interval}
    facts |= {"metric": other.facts.metric, "queries": found["queries"], "verdict": found["verdict"]}
    return say(Said("runs_apart", {**facts, "p": p if p.startswith("<") else f"= {p}"}))


def _of_search(one: KeptRun, other: KeptRun) -> Iterator[tuple[str, str]]:
    """What differs between the searches that two runs are about, and between the tools that ran."""
    for name, what in SEARCH.items():
        old, new = (str((run.facts.own and getattr(run.facts.own, name)) or "-") for run in (one, other))
        if old != new:
            yield what, f"{brief(old)} to {brief(new)}"
    tools = [run.facts.tool for run in (one, other)]
    if tools[0] != tools[1]:
        yield "tool", " to ".join(tools)


def _since(one: KeptRun, other: KeptRun) -> str:
    """What differs in a word each, without reading what is kept of the data."""
    data = [what for part, what in PARTS.items() if one.facts.states.get(part) != other.facts.states.get(part)]
    return f"{one.id}: {', '.join([*data, *(what for what, _ in _of_search(one, other))]) or 'nothing'}"
