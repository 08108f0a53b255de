"""Per-query values of every candidate on every collection, computed once and kept: what all evidence is drawn
from.

A collection is recorded once (the product's own recordings), then laid out twice by the product's own code:
around four strategies for `tune`, and over all families for `recommend`. Each step is a file of its own, so that
a run that is broken off goes on where it stopped.
"""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from steelyard import find_system, parse_strategy
from steelyard.base.errors import ConfigError
from steelyard_eval.candidates.candidates import candidates_around
from steelyard_eval.candidates.families import PRESETS, starts
from steelyard_eval.candidates.grid import LabelledRecording, LabelScorer, measured
from steelyard_eval.candidates.settings import config_key, settings
from steelyard_eval.common.configurations import written_name
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import load
from steelyard_eval.datasets.groups import judged
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.recording import disk as files
from steelyard_eval.recording.provenance import share
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace

DATA = Path(os.environ.get("STEELYARD_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
METRIC = Measure("nDCG", 10)
EVERY = 10**9  # no bound on the weights that are laid out
CASES = {
    "ws": ("plain", "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)"),
    "ws50": ("plain", "weighted_sum(0.5*bm25, 0.5*vector, normalize=max)"),
    "rrf": ("plain", "rrf(bm25, vector, k=60)"),
    "echo": ("echovault", None),
}
"""What is tuned: a strategy over the baselines' retrievers, or a system's own."""
FUSIONS = {"weighted sum": CASES["ws"], "weighted sum, half": CASES["ws50"], "RRF": CASES["rrf"]}
"""Current configurations beside the baselines and the systems."""


def save_whole(path, arrays, save=np.savez):
    """Write a file of arrays, the whole of it or nothing."""
    draft = path.with_suffix(".draft.npz")
    save(draft, **{name: np.array(value) for name, value in arrays.items()})
    draft.rename(path)


@dataclass(frozen=True)
class Matrices:
    """CandidateSet' keys, float32[C, Q] of the metric and the composite, and currents' float64[Q] of both."""

    keys: tuple
    owner: np.ndarray
    labels: tuple
    metric: np.ndarray
    composite: np.ndarray
    currents: dict

    @cached_property
    def moments(self):
        sides = (self.metric, self.composite)
        return tuple((side.mean(axis=1, dtype=np.float64), side.var(axis=1, ddof=1)) for side in sides)

    def save(self, path):
        names, rows = list(self.currents), list(self.currents.values())
        own = {"keys": self.keys, "owner": self.owner, "labels": self.labels}
        own |= {"metric": self.metric, "composite": self.composite, "names": names}
        own |= {"current_keys": [key for key, *_ in rows], "currents": [values for _, *values in rows]}
        save_whole(path, own)

    @classmethod
    def joined(cls, parts, currents):
        owner = np.repeat(np.arange(len(parts)), [len(part.keys) for part in parts])
        keys = tuple(key for part in parts for key in part.keys)
        sides = (np.concatenate([getattr(part, side) for part in parts]) for side in ("metric", "composite"))
        return cls(keys, owner, tuple(part.labels[0] for part in parts), *sides, currents)

    @classmethod
    def load(cls, path):
        with np.load(path) as z:
            rows = zip(z["names"].tolist(), z["current_keys"].tolist(), z["currents"], strict=True)
            currents = {name: (key, *values) for name, key, values in rows}
            texts = (tuple(z["keys"].tolist()), z["owner"], tuple(z["labels"].tolist()))
            return cls(*texts, z["metric"], z["composite"], currents)


def keys_of(made):
    return tuple(config_key(block.written(row)) for block in made.blocks for row in range(len(block.weights)))


def deep_enough(table, config):
    """Whether a recording, which may have been made for other configurations, is as deep as this one looks."""
    try:
        table.at_depth(config.depths)
    except ConfigError:
        return False
    return True


@dataclass(frozen=True)
class Collection:
    """One data set, opened when something of it is missing."""

    name: str
    folder: Path

    @cached_property
    def space(self):
        return Workspace.open(load(DATA / self.name))

    def config(self, system, strategy=None):
        config = find_system(system).config(10, self.space.model)
        return config.with_strategy(parse_strategy(strategy)) if strategy else config

    def table(self, config, configs):
        """The recording for configurations that retrieve like this one, and its judgments."""
        path = self.folder / f"{self.name}.{written_name(config)}.recording"
        table = files.load(path) if path.exists() else None
        if table is None or not all(deep_enough(table, one) for one in configs):
            queries = judged(self.space.dataset, self.space.dataset.queries)
            files.save(record(self.space, queries, configs), path)
            table = files.load(path)
        return table, Judgments.of(self.space.dataset.qrels, table.queries, table.entries)

    @property
    def starts(self):
        return starts(Source.live(self.space), judged(self.space.dataset, self.space.dataset.queries), 10)

    def recorded(self, config):
        """The recording of a configuration, wide enough for all that is laid out."""
        every = [part for start in self.starts for part in start.parts]
        parts = [part for part in every if len(share([part[0], config])) == 1]
        wide = [setting for part in parts for setting in [*part, *settings(part[0])]]
        return self.table(parts[0][0] if parts else config, [*wide, config])

    def tuned(self, case):
        path = self.folder / f"{self.name}.{case}.npz"
        if not path.exists():
            config = self.config(*CASES[case])
            table, judgments = self.recorded(config)
            made = LabelScorer(METRIC).grid(LabelledRecording(table, judgments), settings(config), EVERY)
            current = {case: (config_key(config), *measured(LabelledRecording(table, judgments), config, METRIC))}
            Matrices(keys_of(made), np.zeros(len(made)), (case,), made.metric, made.composite, current).save(path)
        return Matrices.load(path)

    def families(self):
        path = self.folder / f"{self.name}.families.npz"
        if not path.exists():
            parts = [part for start in self.starts if (part := self._laid_out(start)) is not None]
            Matrices.joined(parts, self._currents()).save(path)
        return Matrices.load(path)

    def _laid_out(self, start):
        """The matrices of one start; None where nothing is left to lay out."""
        path = self.folder / f"{self.name}.start.{start.label}.npz"
        if not path.exists():
            made, _ = candidates_around(
                [LabelledRecording(*self.recorded(part[0])) for part in start.parts], start, LabelScorer(METRIC)
            )
            if made is None:
                return None
            texts = (keys_of(made), np.zeros(len(made)), (start.label,))
            Matrices(*texts, made.metric, made.composite, {}).save(path)
        return Matrices.load(path)

    def _currents(self):
        """Systems, of which one may have lost a part here, and fusions."""
        configs = {name: self.config(name) for name in PRESETS}
        configs |= {name: self.config(*case) for name, case in FUSIONS.items()}
        found = {}
        for name, config in configs.items():
            own = usable(self.space, Contender(name, config, "system"))[0].config
            table, judgments = self.recorded(own)
            found[name] = (config_key(own), *measured(LabelledRecording(table, judgments), own, METRIC))
        return found

    @property
    def about(self):
        dataset = self.space.dataset
        count = len(judged(dataset, dataset.queries))
        return {"name": self.name, "sha256": dataset.sha256, "licence": dataset.licence, "queries": count}
