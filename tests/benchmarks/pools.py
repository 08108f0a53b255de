"""The first ten of everything that people run, on ten public collections: what few labels are measured on.

A file a collection and embedder, made once: `lists` int32[Q, S, 10] (entries by number, -1 for none), `gains`
int8[Q, S, 10], `ideal` float64[Q], and the names of the S contenders and of their configurations. At most 250
queries each, drawn by a seed, of the split that the collection reports.
"""

import argparse
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from evidence_matrices import DATA

from steelyard_eval.compare.arena import Arena
from steelyard_eval.compare.contenders import distinct, read_all
from steelyard_eval.datasets import load
from steelyard_eval.decide.priors import key_of
from steelyard_eval.decide.public import CONTENDERS as POOL
from steelyard_eval.decide.public import DEFAULT
from steelyard_eval.recording.workspace import Workspace, judged

CHOSEN = ("cacm", "cranfield", "scifact", "locomo", "madial")
CONFIRMED = ("cisi", "vaswani", "cosqa", "beam-128k", "locomo-sessions")
"""locomo-sessions has the conversations and questions of locomo, so it confirms nothing by itself."""
TWINS = {"locomo": "locomo-sessions", "locomo-sessions": "locomo"}
SHIPPED = tuple(f"{name}:shipped" for name in ("echovault", "soleri", "moltnet", "cortex_mem", "spec_kit"))
PRESETS = (*SHIPPED, "spec_kit:js", "isr(bm25, vector)", "weighted_sum(0.3*bm25, 0.7*vector, normalize=max)")
"""What else may be in use."""
PLACES = 10
QUERIES = 250
EMBEDDERS = ("recorded", "lsa", "wordllama")


@dataclass(frozen=True)
class Lists:
    """The first places of S contenders on Q queries of one collection; see the module."""

    name: str
    labels: tuple
    keys: tuple
    lists: np.ndarray
    gains: np.ndarray
    ideal: np.ndarray
    sha256: str
    licence: str
    model: str

    @classmethod
    def of(cls, name, folder, embedder="recorded"):
        """From the file, which is made where it is missing."""
        path = Path(folder) / f"{name}.{embedder}.pool.npz"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _make(name, embedder, path)
        with np.load(path) as z:
            texts = {key: tuple(z[key].tolist()) for key in ("labels", "keys")}
            about = {key: str(z[key]) for key in ("sha256", "licence", "model")}
            return cls(name, **texts, **{key: z[key] for key in ("lists", "gains", "ideal")}, **about)

    def only(self, labels):
        """The same of some contenders, in that order."""
        at = [self.labels.index(label) for label in labels]
        keys = tuple(self.keys[i] for i in at)
        made = {"labels": tuple(labels), "keys": keys, "lists": self.lists[:, at], "gains": self.gains[:, at]}
        return Lists(**{**{k: getattr(self, k) for k in self.__dataclass_fields__}, **made})

    @cached_property
    def values(self):
        """float64[S, Q]: nDCG@10."""
        discount = 1 / np.log2(np.arange(2, PLACES + 2))
        return ((self.gains * discount).sum(axis=2) / self.ideal[:, None]).T

    @cached_property
    def truth(self):
        """float64[S]: the mean over all queries."""
        return self.values.mean(axis=1)

    def loss(self, scores):
        """What the contender of the largest score lacks to the best one; the mean over what is tied."""
        return float(self.truth.max() - self.truth[scores >= scores.max() - 1e-9].mean())


def _make(name, embedder, path):
    dataset = load(DATA / name)
    rng = np.random.default_rng(7)
    split = dataset.split(None) if dataset.report_split else dataset.queries
    queries = [
        query for query in judged(dataset, split) if any(grade > 0 for grade in dataset.qrels[query.id].values())
    ]
    queries = [queries[at] for at in sorted(rng.permutation(len(queries))[:QUERIES].tolist())]
    space = Workspace.open(dataset, "auto" if embedder == "recorded" else embedder)
    named = distinct(read_all([*POOL, *PRESETS]))
    rows = Arena.of(dataset, named, PLACES, None, space).run(named, queries, timed=False)
    number = {entry.id: at for at, entry in enumerate(dataset.entries)}
    lists = np.full((len(queries), len(rows), PLACES), -1, dtype=np.int32)
    gains = np.zeros(lists.shape, dtype=np.int8)
    for s, row in enumerate(rows):
        for q, (query, own) in enumerate(zip(queries, row.ranked.lists(), strict=True)):
            for place, entry in enumerate(own[:PLACES]):
                lists[q, s, place] = number[entry]
                gains[q, s, place] = max(0, dataset.qrels[query.id].get(entry, 0))
    ideal = [_ideal(dataset.qrels[query.id]) for query in queries]
    draft = path.with_suffix(".draft.npz")
    np.savez_compressed(
        draft,
        labels=np.array([one.label for one in named]),
        keys=np.array([key_of(row.contender.config) for row in rows]),
        lists=lists,
        gains=gains,
        ideal=np.array(ideal),
        sha256=np.array(dataset.sha256),
        licence=np.array(dataset.licence),
        model=np.array("lsa" if embedder == "lsa" else space.model),
    )
    draft.rename(path)


def _ideal(grades):
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:PLACES]
    return sum(grade / np.log2(place + 2) for place, grade in enumerate(best))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("reports/evidence"))
    parser.add_argument("names", nargs="*", default=[*CHOSEN, *CONFIRMED])
    asked = parser.parse_args()
    for kind in EMBEDDERS:
        for one in asked.names:
            began = time.process_time()
            found = Lists.of(one, asked.folder, kind)
            best = int(found.truth.argmax())
            row = [
                found.labels[best],
                f"{found.truth[best]:.3f}",
                f"{found.truth[found.labels.index(DEFAULT)]:.3f}",
            ]
            print(
                one, kind, found.model, len(found.ideal), *row, f"{time.process_time() - began:.0f} s", flush=True
            )
