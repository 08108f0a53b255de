"""The first ten of everything that people run, on ten public collections: what few labels are measured on.

A file a collection and embedder, made where there is none or where what decides it has changed: `lists`
int32[Q, S, 10] (entries by number, -1 for none), `gains` int8[Q, S, 10], `ideal` float64[Q], and the names of the
S contenders and of their configurations. At most 250 queries each, drawn by a seed, of the split that the
collection reports.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
from evidence_matrices import DATA, save_whole

from steelyard.base.files import canonical
from steelyard_eval.candidates.settings import config_key
from steelyard_eval.choose.public import CONTENDERS as POOL
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import distinct, read_all
from steelyard_eval.compare.lists_and_latency import Runner
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import load
from steelyard_eval.datasets.groups import judged
from steelyard_eval.recording.workspace import Workspace

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
    digest: str

    @classmethod
    def of(cls, name, folder, embedder="recorded"):
        """From the file, which is made where it is missing or stale."""
        path = Path(folder) / f"{name}.{embedder}.pool.npz"
        dataset = load(DATA / name)
        if not _current(path, digest(dataset)):
            path.parent.mkdir(parents=True, exist_ok=True)
            made = vars(ran(dataset, drawn(dataset), embedder))
            save_whole(path, {key: made[key] for key in made if key != "name"}, np.savez_compressed)
        with np.load(path) as z:
            texts = {key: tuple(z[key].tolist()) for key in ("labels", "keys")}
            about = {key: str(z[key]) for key in ("sha256", "licence", "model", "digest")}
            return cls(name, **texts, **{key: z[key] for key in ("lists", "gains", "ideal")}, **about)

    def only(self, labels):
        at = [self.labels.index(label) for label in labels]
        made = {"keys": tuple(self.keys[i] for i in at), "lists": self.lists[:, at], "gains": self.gains[:, at]}
        return replace(self, labels=tuple(labels), **made)

    @cached_property
    def values(self):
        """float64[S, Q]: nDCG@10."""
        discount = 1 / np.log2(np.arange(2, PLACES + 2))
        return ((self.gains * discount).sum(axis=2) / self.ideal[:, None]).T

    @cached_property
    def truth(self):
        return self.values.mean(axis=1)

    def loss(self, scores):
        """What the contender of the largest score lacks to the best one; the mean over what is tied."""
        return float(self.truth.max() - self.truth[scores >= scores.max() - 1e-9].mean())


def drawn(dataset):
    split = dataset.split(None) if dataset.report_split else dataset.queries
    queries = [query for query in judged(dataset, split) if max(dataset.qrels[query.id].values()) > 0]
    chosen = np.random.default_rng(7).permutation(len(queries))[:QUERIES]
    return [queries[at] for at in sorted(chosen.tolist())]


def contenders():
    return distinct(read_all([*POOL, *PRESETS]))


def digest(dataset):
    """Hash of what decides the lists of a collection, but for the code that ranks."""
    decides = {
        "data": [dataset.sha256, dataset.vectors_sha256],
        "queries": [query.id for query in drawn(dataset)],
        "contenders": {one.label: config_key(one.config(Setting(PLACES))) for one in contenders()},
    }
    return sha256(canonical(decides).encode()).hexdigest()


def _current(path, wanted):
    if not path.exists():
        return False
    with np.load(path) as z:
        return str(z.get("digest")) == wanted


def ran(dataset, queries, embedder):
    named = contenders()
    space = Workspace.open(dataset, "auto" if embedder == "recorded" else embedder)
    rows = Runner(Source.needed_by(named, dataset, space), PLACES).run(named, queries, timed=False)
    number = {entry.id: at for at, entry in enumerate(dataset.entries)}
    lists = np.full((len(queries), len(rows), PLACES), -1, dtype=np.int32)
    gains = np.zeros(lists.shape, dtype=np.int8)
    for s, row in enumerate(rows):
        for q, (query, own) in enumerate(zip(queries, row.ranked.lists(), strict=True)):
            for place, entry in enumerate(own[:PLACES]):
                lists[q, s, place] = number[entry]
                gains[q, s, place] = max(0, dataset.qrels[query.id].get(entry, 0))
    grades = [sorted((max(0, one) for one in dataset.qrels[query.id].values()), reverse=True) for query in queries]
    return Lists(
        dataset.name,
        tuple(one.label for one in named),
        tuple(config_key(row.contender.config) for row in rows),
        lists,
        gains,
        np.array([sum(grade / np.log2(place + 2) for place, grade in enumerate(own[:PLACES])) for own in grades]),
        dataset.sha256,
        dataset.licence,
        "lsa" if embedder == "lsa" else space.model,
        digest(dataset),
    )
