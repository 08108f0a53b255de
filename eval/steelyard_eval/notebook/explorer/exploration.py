"""The explorer without the widget: what was moved, and what that does to the labelled queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.memory.query import Query
from steelyard.systems import SYSTEMS
from steelyard_eval.choose.answer import write_and_log
from steelyard_eval.common.configurations import NamedConfig, read_configuration
from steelyard_eval.compare.contenders import Given, read, read_config
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.measures.metrics import evaluate_lists
from steelyard_eval.measures.paired import TIE, difference_interval, mean_interval
from steelyard_eval.notebook.explorer import explored_data
from steelyard_eval.recording.replay import replay

SLIDER_STEPS = 100
CURVE_POINTS = 160
LISTED_EXTREMES = 6
MAX_BARS = 200


@dataclass(frozen=True)
class Reference:
    """What the explored configuration is held against: its label, its values and its lists, query by query."""

    label: str
    values: Floats
    lists: Sequence[Sequence[str]]


class Exploration:
    """A configuration that is moved, from `start` or else from what is used today, and what is shown of it."""

    def __init__(self, bench: explored_data.ExplorerData, start: NamedConfig | None, current: Given) -> None:
        self.bench = bench
        used = read(current, lists=bench.source.lists or ())
        begin = start or read_config(used)
        self.entries = bench.entries
        self._starts: dict[str, NamedConfig] = {begin.label: begin}
        for name in SYSTEMS if bench.source.space else ():
            system = read_configuration(name)
            self._starts.setdefault(system.label, system)
        self._used = used
        if isinstance(used, NamedConfig):
            trial = bench.trial(bench.config(used))
            values, ranked = trial.values(trial.weights), replay(trial.table, trial.config).ranked
        else:
            values, ranked = self._listed(used, bench.queries)
        self.current = Reference(used.label, values, ranked.lists())
        self.query = 0
        self._take_up(begin.label, bench.config(begin))
        self.query = _first(self.values, self.current.lists)
        if self.weights:
            self.curve(0)  # compiles what curves need, once a machine, before the first move waits for it

    @property
    def config(self) -> SearchConfig:
        """The configuration as it stands."""
        return self.trial.written(self.weights)

    def _take_up(self, label: str, config: SearchConfig) -> None:
        self.start = label
        self.trial = self.bench.trial(config)
        self.weights = list(self.trial.weights)
        self.values = self.trial.values(self.weights)
        self.top = explored_data.top_of(self.weights)

    def weigh(self, at: int, value: float) -> explored_data.Record:
        """Set one weight, and measure."""
        if not 0 <= at < len(self.weights) or not 0 <= value <= self.top:
            raise ConfigError(f"weight {at} of {value} is outside 0..{self.top:g}")
        self.weights[at] = float(value)
        self.values = self.trial.values(self.weights)
        return self.measured()

    def begin(self, label: str) -> explored_data.Record:
        """StartingPoint from another system, or from where it all began."""
        if label not in self._starts:
            raise ConfigError(f"{label} is not among {', '.join(self._starts)}")
        self._take_up(label, self.bench.config(self._starts[label]))
        return self.opened()

    def write(self, text: str) -> explored_data.Record:
        """StartingPoint from a strategy that was typed, under the settings of the system at hand."""
        named = read_configuration(text, lists=self.bench.source.lists or ())
        self._take_up(named.label, self.bench.config(named))
        self._starts.setdefault(named.label, named)
        return self.opened()

    def look(self, query: int) -> explored_data.Record:
        """Show the list of another query."""
        self.query = query % len(self.bench.queries)
        return {"ranking": self._ranking()}

    def find(self, text: str) -> explored_data.Record:
        """Show the first query of this id, else the next whose text contains the words."""
        queries, wanted = self.bench.queries, text.casefold().strip()
        after = [(self.query + 1 + step) % len(queries) for step in range(len(queries))]
        hits = [query for query in after if queries[query].id.casefold() == wanted]
        hits += [query for query in after if wanted in queries[query].text.casefold()]
        if not hits:
            raise ConfigError(f"no query contains {text!r}")
        return self.look(hits[0])

    def adopt(self, path: str | Path) -> Path:
        """Write the configuration as a weights file that is marked as chosen by hand."""
        config = self.config
        proof = self.bench.proof(config)
        after = None if proof is None else (proof.values(self.weights), self._held_out())
        chosen = explored_data.adopted(self.bench, config, self.values, self.current.values, after)
        return write_and_log({Path(path): chosen})[0]

    def opened(self) -> explored_data.Record:
        """Everything, for a picture that is drawn anew."""
        controls: explored_data.Record = {
            "systems": list(self._starts),
            "system": self.start,
            "metric": str(self.bench.measure),
            "queries": len(self.bench.queries),
            "held_out": len(self.bench.held_out),
            "dataset": self.bench.dataset.name,
            "top": self.top,
            "step": self.top / SLIDER_STEPS,
            "curves": self.trial.form is not None,
            "weights": explored_data.weight_names(self.trial.config.strategy),
        }
        return {"controls": controls, **self.measured()}

    def measured(self) -> explored_data.Record:
        """What changes with a weight: the measure, and the list of the chosen query."""
        return {"result": self._result(), "ranking": self._ranking()}

    def curve(self, at: int) -> explored_data.Record:
        """The exact curve under one weight: its course, the plateau around the weight, and the best one."""
        curve = self.trial.curve(at, self.weights, self.top)
        if curve is None:
            return {"at": at, "points": [], "here": None, "best": None}
        mean, value = float(self.values.mean()), self.weights[at]
        here, best = curve.around(value, mean), curve.choose(near=value)
        places = np.linspace(0.0, self.top, CURVE_POINTS + 1)
        heights = curve.values[np.searchsorted(curve.edges[1:-1], places, side="right")]
        heights[[0, -1]] = curve.ends  # where a weight of 0 ties rows, an end is no part of the piece beside it
        return {
            "at": at,
            "points": np.column_stack([places, heights]).round(6).tolist(),
            "here": [here.low, here.high],
            "best": [best.low, best.high, best.value],
        }

    def _result(self) -> explored_data.Record:
        values, base, groups = self.values, self.current.values, self.bench.units
        differences = values - base
        mean, gain = mean_interval(values, groups), difference_interval(differences, groups)
        order = np.argsort(differences, kind="stable")
        evenly = np.unique(np.linspace(0, len(order) - 1, min(len(order), MAX_BARS)).astype(np.int64))
        return {
            "strategy": str(self.config.strategy),
            "weights": self.weights,
            "mean": mean.mean,
            "low": mean.stated(0.0)[0],
            "high": mean.stated(0.0)[1],
            "against": self.current.label,
            "base": float(base.mean()),
            "gain": [gain.mean, *gain.stated(-1.0)],
            "wins": int((differences > TIE).sum()),
            "losses": int((differences < -TIE).sum()),
            "categories": [
                [name, int(inside.sum()), float(values[inside].mean()), float(base[inside].mean())]
                for name, inside in self.bench.by_category().items()
            ],
            "differences": differences[order[evenly]].round(4).tolist(),
            "worst": self._described_moves(order[:LISTED_EXTREMES], differences, -1.0),
            "best": self._described_moves(order[::-1][:LISTED_EXTREMES], differences, 1.0),
        }

    def _described_moves(self, places: Indices, differences: Floats, sign: float) -> list[explored_data.Record]:
        queries = self.bench.queries
        return [
            {"at": i, "id": queries[i].id, "text": queries[i].text, "difference": float(differences[i])}
            for i in places.tolist()
            if sign * differences[i] > TIE
        ]

    def _ranking(self) -> explored_data.Record:
        query = self.bench.queries[self.query]
        grades = self.bench.dataset.qrels.get(query.id, {})
        before = self.current.lists[self.query]
        now = explored_data.top(self.trial.table, self.config, self.query, self.entries, grades, before)
        return {
            "at": self.query,
            "id": query.id,
            "text": query.text,
            "value": float(self.values[self.query]),
            "base": float(self.current.values[self.query]),
            "now": now,
            "before": [explored_data.described(id_, self.entries, grades) for id_ in before[: len(now) or 10]],
        }

    def _held_out(self) -> Floats:
        """float64[H]: the current one on the queries held out."""
        bench, used = self.bench, self._used
        if isinstance(used, NamedConfig):
            proof = bench.proof(bench.config(used))
            return np.zeros(0) if proof is None else proof.values(proof.weights)
        return self._listed(used, bench.held_out)[0]

    def _listed(self, used: ListContender, queries: Sequence[Query]) -> tuple[Floats, Ranked]:
        bench = self.bench
        ranked = used.answers(queries, bench.limit, bench.dataset).ranked(queries, bench.limit)
        values = evaluate_lists(ranked, bench.dataset.qrels, [bench.measure], bench.dataset.tokens)
        return values[bench.measure], ranked


def _first(values: Floats, lists: Sequence[Sequence[str]]) -> int:
    """The query to begin with: the worst that shows something relevant, else anything, else the first."""
    hits = np.array([bool(ids) for ids in lists], dtype=np.bool_)
    for wanted in (hits & (values > 0), hits):
        if wanted.any():
            return int(np.flatnonzero(wanted)[np.argmin(values[wanted])])
    return 0
