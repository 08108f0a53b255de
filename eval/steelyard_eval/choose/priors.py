"""What public collections showed of each setting: where the posterior of a user's own data starts.

The table that comes with the package holds, for every configuration laid out around the common strategies, its
mean over the collections, and the variance of its difference to each of a few common current configurations;
nothing of the texts. `tests/benchmarks/priors.py` makes it. It counts as ten queries at most.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.files import STRICT_JSON
from steelyard_eval.choose.scored import PRIOR_QUERIES, PriorGains

FILE = "priors.npz"


@dataclass(frozen=True)
class PriorTable:
    """A table of S collections."""

    # provenance: collections with their hashes and licences, embedding model, metric, tool
    about: Mapping[str, Any]
    at: Mapping[str, int]  # mapping of configuration names to rows
    currents: Mapping[str, int]  # mapping of names to rows of the variances
    # metric, composite: float64[C], means over the collections, NaN where nothing is known
    metric: Floats
    composite: Floats
    # variances_metric, variances_composite: float64[K, C], of the difference between queries
    variances_metric: Floats
    variances_composite: Floats
    # current_metric, current_composite: float64[K]
    current_metric: Floats
    current_composite: Floats

    @property
    def collections(self) -> int:
        """S, how many collections it was made from."""
        return len(self.about["collections"])

    def fits(self, model: str, metric: str, sha256: str) -> bool:
        """Whether it may be used: for these vectors, this metric, and a data set that is not in it."""
        inside = any(collection["sha256"] == sha256 for collection in self.about["collections"])
        return model == self.about["model"] and metric == self.about["metric"] and not inside

    def priors(self, keys: Sequence[str], current: str) -> tuple[PriorGains, PriorGains]:
        """What is known of configurations by name, of the metric and the composite, against a current one."""
        k = self.currents[current]
        row = np.array([self.at.get(key, -1) for key in keys], dtype=np.int64)
        worth = np.where(row >= 0, PRIOR_QUERIES * self.collections / (self.collections + 1), 0.0)

        def of(means: Floats, variances: Floats, base: float) -> PriorGains:
            known = row >= 0
            return PriorGains(np.where(known, means[row] - base, 0.0), np.where(known, variances[row], 0.0), worth)

        return (
            of(self.metric, self.variances_metric[k], float(self.current_metric[k])),
            of(self.composite, self.variances_composite[k], float(self.current_composite[k])),
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> PriorTable:
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
    file = resources.files("steelyard_eval.choose").joinpath(FILE)
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
