"""What public collections showed of what people run, and of each setting: where a posterior starts.

`public.json` holds means of nDCG@10, a row a contender and a column a collection, for each class of embedders
that was measured, and what the places of an entry say of its relevance: all that can be said where nothing is
labelled. `priors.npz` holds, for every configuration laid out around the common strategies, its mean over the
collections, and the variance of its difference to a few common current ones. It has no texts (`make priors`).
"""

import io
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.files import STRICT_JSON
from steelyard.config import SearchConfig
from steelyard.fusion import Linear
from steelyard_eval.candidates.settings import config_key
from steelyard_eval.result.structs import Fact

FILE = "public.json"
DEFAULT = "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"
"""Nothing without labels chooses better than always this: docs/evidence/few-labels.md."""
SUMS = tuple(f"weighted_sum({1 - w / 10:.1f}*bm25, {w / 10:.1f}*vector, normalize=minmax)" for w in range(1, 10))
CONTENDERS = (
    *("bm25", "fts", "vector", *SUMS),
    "weighted_sum(0.5*bm25, 0.5*vector, normalize=max)",
    "weighted_sum(0.3*fts, 0.7*vector, normalize=max)",
    *("rrf(bm25, vector, k=10)", "rrf(bm25, vector, k=60)", "rrf(2*bm25, vector, k=60)"),
    *("rrf(bm25, 2*vector, k=60)", "rrf(fts, vector, k=60)"),
    *("comb_mnz(bm25, vector, normalize=minmax)", "borda(bm25, vector)"),
    *("echovault", "soleri", "moltnet", "cortex_mem", "spec_kit"),
)
"""What few labels choose from: one of each kind, so that few are tried and luck has little to choose among."""
DEFAULT_WEIGHT_RANGE = (0.4, 0.6)  # sums of bm25 and vector between these weights are as good a guess
SCALED = frozenset({"minmax", "max", "theoretical", "tmm"})
"""Normalisations under which the weights of bm25 and vector mean much the same."""
METRIC = "nDCG@10"
MINILM = "minilm"
CLASSES = {"lsa": "LSA", MINILM: "MiniLM", "wordllama": "WordLlama"}
"""The embedders that were measured: what the names of their models begin with, and how they are called."""


@dataclass(frozen=True)
class PublicGains:
    """What the default gained over one contender on S public collections."""

    gains: Floats  # float64[S], nDCG@10 of the default less that of the contender, mean over queries
    near: str = ""  # what was measured in the contender's place, where it is only the nearest; else empty

    @property
    def likely(self) -> bool:
        """Whether the default was better on most of them, and on average."""
        return bool((self.gains > 0).sum() * 2 > len(self.gains) and self.gains.mean() > 0)

    @property
    def facts(self) -> dict[str, Fact]:
        """What is known, for a sentence about the default."""
        mean = float(self.gains.mean())
        return {
            "collections": len(self.gains),
            "near": bool(self.near),
            "exact": not self.near,
            "better": int((self.gains > 0).sum()),
            "gained": mean if mean >= 0 else None,
            "lost": -mean if mean < 0 else None,
            "worst": float(self.gains.min()),
        }


@dataclass(frozen=True)
class PublicTable:
    """The table."""

    about: Mapping[str, Any]  # provenance: the command, and the collections with their days, hashes and licences
    rows: Mapping[str, str]  # name of a configuration (`candidates.settings.config_key`) -> label
    means: Mapping[str, Mapping[str, Floats]]  # class of embedders -> label -> float64[S]
    variances: Mapping[str, Mapping[str, Floats]]  # the same of the difference to the default between queries
    relevance: Mapping[str, Floats]  # class of embedders -> coefficients of `features`

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "PublicTable":
        """From the document of the file."""

        def arrays(rows: Mapping[str, Any]) -> dict[str, Floats]:
            return {label: np.array(row, dtype=np.float64) for label, row in rows.items()}

        means, variances = (
            {model: arrays(rows) for model, rows in record[side].items()} for side in ("means", "variances")
        )
        return cls(record["about"], record["rows"], means, variances, arrays(record["relevance"]))

    def against(self, config: SearchConfig, model: str, sha256: str = "") -> PublicGains | None:
        """What the default gained over a configuration; None where nothing like it was run.

        `sha256` is of the user's own data: a public collection says nothing about itself.
        """
        label, near = self._row(config)
        known = self.means.get(class_of(model), {})
        if label not in known:
            return None
        return PublicGains((known[DEFAULT] - known[label])[self.others(sha256)], label if near else "")

    def others(self, sha256: str) -> list[int]:
        """The places of the collections that are not this data set."""
        return [i for i, collection in enumerate(self.about["collections"]) if collection["sha256"] != sha256]

    def _row(self, config: SearchConfig) -> tuple[str, bool]:
        """The label of its row, and whether that is only the nearest: a sum's share to the next tenth."""
        if (label := self.rows.get(config_key(config))) is not None:
            return label, False
        share = share_of_vector(config, scaled={"minmax"})
        if share is None or not 0.05 <= share < 0.95:
            return "", False
        return SUMS[round(share * 10) - 1], True


def class_of(model: str) -> str:
    """The class of embedders that stands for a model: its own where it was measured, else MiniLM's."""
    return next((name for name in CLASSES if model.startswith(name)), MINILM)


def vectors_of(model: str) -> str | None:
    """Whose vectors stand for a model, where that has to be said; None where they are MiniLM's own."""
    return None if model.startswith("minilm") else CLASSES[class_of(model)]


def share_of_vector(config: SearchConfig, *, scaled: Container[str] = SCALED) -> float | None:
    """The share of vector's weight in a sum of bm25 and vector that was brought to one scale; else None.

    >>> from steelyard import find_system, parse_strategy
    >>> config = find_system("plain").config(10)
    >>> share_of_vector(config.with_strategy(parse_strategy("weighted_sum(3*vector, 1*bm25, normalize=max)")))
    0.75
    """
    strategy = config.effective
    described = strategy.describe()
    if config.system != "plain" or not isinstance(described, Linear) or described.scale not in scaled:
        return None
    weights = dict(zip(map(str, strategy.children), strategy.weights, strict=True))
    if weights.keys() != {"bm25", "vector"} or sum(weights.values()) <= 0:
        return None
    return weights["vector"] / sum(weights.values())


def near_default(config: SearchConfig) -> bool:
    """Whether a configuration is as good a guess as the default: such a sum at .4 to .6."""
    share = share_of_vector(config)
    return share is not None and DEFAULT_WEIGHT_RANGE[0] - 1e-9 <= share <= DEFAULT_WEIGHT_RANGE[1] + 1e-9


@cache
def public_table() -> PublicTable:
    """The table in the package."""
    text = resources.files("steelyard_eval.choose").joinpath(FILE).read_text(encoding="utf-8")
    return PublicTable.from_json(STRICT_JSON.decode(text))


def features(places: Mapping[str, Floats], worth: Floats) -> Floats:
    """float64[P, 10]: what is known of a pair without its label; see `PublicTable.relevance`.

    `places`: mapping of bm25, fts and vector to float64[P]: ``1 / (1 + rank)``, 0 beyond the first ten; `worth`:
    float64[C, P]: ``1 / log2(1 + rank)`` in every contender's list, 0 beyond the first ten.
    """
    words, text, vector = (places[name] for name in ("bm25", "fts", "vector"))
    flags = [words > 0, vector > 0, (words > 0) & (vector > 0)]
    shares = [(worth > 0).mean(axis=0), worth.mean(axis=0)]
    rows: Sequence[Any] = [np.ones(worth.shape[1]), words, text, vector, words * vector, *flags, *shares]
    return np.stack(rows, axis=1).astype(np.float64)


def reciprocal(worth: Floats) -> Floats:
    """``1 / (1 + rank)`` from ``1 / log2(1 + rank)``; 0 stays 0.

    >>> reciprocal(np.array([1.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    ranked = worth > 0
    return np.where(ranked, 2.0 ** -(1.0 / np.where(ranked, worth, 1.0)), 0.0)


PRIOR_QUERIES = 10.0
"""Queries that the table of other collections counts as at most, for the mean and for the variance."""
PRIORS_FILE = "priors.npz"


@dataclass(frozen=True)
class PriorGains:
    """What other collections showed of each candidate, as differences to the same current configuration."""

    mean: Floats  # float64[C]: mean over the collections of the mean difference; 0 where nothing is known
    variance: Floats  # float64[C]: mean over the collections of the variance between queries
    effective_n: Floats  # float64[C]: how many queries that counts as; 0 where nothing is known

    @classmethod
    def none(cls, count: int) -> "PriorGains":
        """Nothing is known of any of the candidates."""
        return cls(np.zeros(count), np.zeros(count), np.zeros(count))


def table_weight(collections: Indices) -> Floats:
    """float64[C]: the queries that means over so many collections, int64[C], count as; they are few themselves."""
    return np.asarray(PRIOR_QUERIES * collections / (collections + 1), dtype=np.float64)


@dataclass(frozen=True)
class PriorTable:
    """A table of S collections."""

    about: Mapping[str, Any]  # provenance: collections with hashes and licences, embedding model, metric, tool
    at: Mapping[str, int]  # names of configurations -> rows
    currents: Mapping[str, int]  # names of current ones -> rows of the variances
    metric: Floats  # float64[C], means over the collections, NaN where nothing is known
    composite: Floats
    variances_metric: Floats  # float64[K, C], of the difference between queries
    variances_composite: Floats
    current_metric: Floats  # float64[K]
    current_composite: Floats

    def fits(self, model: str, metric: str, sha256: str) -> bool:
        """Whether it may be used: for these vectors, this metric, and a data set that is not in it."""
        inside = any(collection["sha256"] == sha256 for collection in self.about["collections"])
        return model == self.about["model"] and metric == self.about["metric"] and not inside

    def priors(self, keys: Sequence[str], current: str) -> tuple[PriorGains, PriorGains]:
        """What is known of configurations by name, of the metric and the composite, against a current one."""
        k = self.currents[current]
        row = np.array([self.at.get(key, -1) for key in keys], dtype=np.int64)
        known = row >= 0
        worth = table_weight(known * len(self.about["collections"]))

        def of(means: Floats, variances: Floats, base: float) -> PriorGains:
            return PriorGains(np.where(known, means[row] - base, 0.0), np.where(known, variances[row], 0.0), worth)

        return (
            of(self.metric, self.variances_metric[k], float(self.current_metric[k])),
            of(self.composite, self.variances_composite[k], float(self.current_composite[k])),
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "PriorTable":
        """The table of a file."""
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            texts = {name: bytes(archive[name]).decode() for name in ("about", "keys", "currents")}
            numbers = {name: archive[name].astype(np.float64) for name in archive.files if name not in texts}
        return cls(
            about=STRICT_JSON.decode(texts["about"]),
            at={key: row for row, key in enumerate(texts["keys"].split("\n"))},
            currents={key: row for row, key in enumerate(texts["currents"].split("\n"))},
            **numbers,
        )


@cache
def load_priors() -> PriorTable | None:
    """The table in the package."""
    file = resources.files("steelyard_eval.choose").joinpath(PRIORS_FILE)
    return PriorTable.from_bytes(file.read_bytes()) if file.is_file() else None


def lookup_priors(
    keys: Callable[[Container[str]], Sequence[str]], current: str | None, model: str, metric: str, sha256: str
) -> tuple[PriorGains, PriorGains] | None:
    """What the shipped table knows of the candidates; None where it may not be used or knows no such current.

    `keys` names the candidates in a table whose names it is given (`Grid.keys`).
    """
    table = load_priors()
    if table is None or current is None or current not in table.currents or not table.fits(model, metric, sha256):
        return None
    return table.priors(keys(table.at), current)
