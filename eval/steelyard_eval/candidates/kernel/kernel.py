"""Computes metrics of many weights over one form, fast and in float32, for search only.

Its ranks differ from the engine's where two scores differ by less than float32 can represent. Every reported
number comes from `exact` or `replay`, which use the engine in float64.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import config as numba_settings
from numpy.typing import ArrayLike, NDArray

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard_eval.candidates.kernel.form import Form
from steelyard_eval.candidates.kernel.lanes import LANES, STEP, compiled
from steelyard_eval.measures.metrics import Measure

Singles = NDArray[np.float32]

SMALL = 10_000_000
"""Work of fewer scores than this uses one thread."""


@dataclass(frozen=True)
class Kernel:
    """A form prepared for one set of measures; build it with `Kernel.of` and evaluate any number of weights.

    Columns and the weights of each configuration are divided by powers of two, so that no score leaves the range
    of float32; this changes no comparison. The bits of a result depend neither on the number of threads nor on
    the other weights evaluated with it.

    Attributes
    ----------
    rows : float32[N, S']
        The columns by row, padded with zeros to a multiple of four.
    exponents : int64[S]
        The power of two that each column was divided by.
    kinds, cutoffs : int64[M]
        How each measure is computed (see `lanes`), and its cutoff.
    divisors : float64[M, Q]
        What each measure is divided by for each query.
    logs : float64[deepest+1]
        log2(rank + 1).
    """

    form: Form
    measures: tuple[Measure, ...]
    rows: Singles
    exponents: Indices
    kinds: Indices
    cutoffs: Indices
    divisors: Floats
    logs: Floats

    @classmethod
    def of(cls, form: Form, measures: Iterable[Measure]) -> Kernel:
        """Prepare a form; ConfigError for a measure that is not a function of the ranks of relevant rows."""
        chosen = tuple(measures)
        longest = int(np.diff(form.offsets).max(initial=0))
        reach = min(longest, longest if form.limit is None else form.limit)
        cutoffs = [reach if m.cutoff is None else min(m.cutoff, reach) for m in chosen]
        exponents = np.frexp(np.abs(form.columns).max(axis=1, initial=0.0))[1].astype(np.int64)
        return cls(
            form=form,
            measures=chosen,
            rows=_filled(np.ldexp(form.columns.T, -exponents)),
            exponents=exponents,
            kinds=np.array([m.kind for m in chosen], dtype=np.int64),
            cutoffs=np.array(cutoffs, dtype=np.int64),
            divisors=np.stack([m.divisor(form.ideal_at, form.total_relevant) for m in chosen]),
            logs=np.log2(np.arange(1, max(cutoffs) + 2, dtype=np.float64)),
        )

    def values(self, weights: ArrayLike, threads: int | None = None) -> dict[Measure, Floats]:
        """Compute every measure for every query, float64[W, Q] each, for weights float[W, S].

        So many `threads` share the weights; by default numba's number, or one for little work.
        """
        asked = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        each = np.zeros((len(asked), self.form.queries, len(self.measures)))
        self._run(self._tiles(asked), each, threads)
        return {m: np.ascontiguousarray(each[..., i]) for i, m in enumerate(self.measures)}

    def _run(self, tiles: Singles, each: Floats, threads: int | None) -> None:
        fill_metrics, form = compiled(), self.form
        index = (form.offsets, form.relevant, form.relevant_offsets, form.grade)
        metrics = (self.kinds, self.cutoffs, self.divisors, self.logs)

        def work(first: int, last: int) -> None:
            lanes = slice(first * LANES, last * LANES)
            fill_metrics(self.rows, *index, tiles[first:last], *metrics, each[lanes])

        count = _workers(threads, len(each) * len(form), len(tiles))
        ends = [len(tiles) * i // count for i in range(count + 1)]
        if count == 1:
            work(*ends)
            return
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(work, ends[:-1], ends[1:]))

    def _tiles(self, weights: Floats) -> Singles:
        """Weights by tile, float32[T, S', LANES], scaled so that a configuration's largest product is near 1."""
        if weights.shape[1] != len(self.exponents) or not np.isfinite(weights).all():
            raise ConfigError(
                f"weights of shape {weights.shape} for {len(self.exponents)} columns; "
                f"give one finite weight for each column and configuration"
            )
        fraction, exponent = np.frexp(weights)
        exponent = np.where(fraction == 0, -(2**20), exponent + self.exponents)
        scaled = _filled(np.ldexp(fraction, exponent - exponent.max(axis=1, initial=-(2**20), keepdims=True)))
        tiles = np.zeros((-(-len(scaled) // LANES) * LANES, scaled.shape[1]), dtype=np.float32)
        tiles[: len(scaled)] = scaled
        return np.ascontiguousarray(tiles.reshape(-1, LANES, scaled.shape[1]).transpose(0, 2, 1))


def _filled(columns: Floats) -> Singles:
    """Pad float64[n, S] to float32[n, S']."""
    width = max(STEP, -(-columns.shape[1] // STEP) * STEP)
    rows = np.zeros((len(columns), width), dtype=np.float32)
    rows[:, : columns.shape[1]] = columns
    return rows


def _workers(threads: int | None, scores: int, tiles: int) -> int:
    """The number of threads that share the tiles."""
    available: int = numba_settings.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # set as numba is loaded
    return max(1, min(threads or (1 if scores < SMALL else available), tiles))
