"""Computes metrics of many weights over one form, fast and in float32, for search only; and the composite of them.

Its ranks differ from the engine's where two scores differ by less than float32 can represent. Every reported
number comes from `replay`, which uses the engine in float64.

One metric of one short list is noisy. The composite, by which candidates are chosen, is the mean of nDCG at 10, 20
and 100 and of AP at 100, each brought to the spread of nDCG@10, then averaged over neighbouring weights. It tells
more of nDCG@10 on unseen queries than nDCG@10 on the labelled ones does: docs/evidence/tuning.md.
"""

import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard_eval.candidates.linear_form import LANES, Form, pairs_of
from steelyard_eval.measures.metrics import ALL, ANY, FIRST, GAIN, HITS, PRECISIONS, Measure

Singles = NDArray[np.float32]

SMALL = 10_000_000  # work of fewer scores than this uses one thread
TINY = 300_000  # comparisons of two rows in one call, up to which numpy makes them
UNLOADED = 30_000_000  # those in a grid before numba is loaded, which takes as long as 100 million of them
STEP = 4  # columns are padded with zeros, which do not change a sum, to a multiple of this
METRIC = Measure("nDCG", 10)
PARTS: Mapping[Measure, float] = {
    METRIC: 1.0,
    Measure("nDCG", 20): 1.09,
    Measure("nDCG", 100): 1.25,
    Measure("AP", 100): 1.06,
}
"""With the standard deviation of nDCG@10's differences over its own, as measured on public collections."""
DEEPEST = 100
WIDTH = 0.25  # of the Gaussian that averages along the weight, on the scale of `stretched`


@dataclass(frozen=True)
class Kernel:
    """A form prepared for one set of measures; build it with `Kernel.of` and evaluate any number of weights.

    Columns and the weights of each configuration are divided by powers of two, so that no score leaves the range
    of float32; this changes no comparison. The bits of a result depend neither on the number of threads nor on
    the other weights evaluated with it.
    """

    form: Form
    measures: tuple[Measure, ...]
    rows: Singles  # float32[N, S']: the columns by row, padded with zeros to a multiple of four
    exponents: Indices  # int64[S]: the power of two that each column was divided by
    kinds: Indices  # int64[M]: how each measure is computed (see `compiled_loops`)
    cutoffs: Indices  # int64[M]
    divisors: Floats  # float64[M, Q]: what each measure is divided by for each query
    logs: Floats  # float64[deepest+1] log2(rank + 1)

    @classmethod
    def of(cls, form: Form, measures: Iterable[Measure]) -> "Kernel":
        """Prepare a form; ConfigError for a measure that is not a function of the ranks of relevant rows."""
        chosen = tuple(measures)
        for measure in chosen:
            if measure.tokens is not None:
                measure.sizes(form.judgments)  # refuses what is not known
        longest = int(np.diff(form.offsets).max(initial=0))
        reach = min(longest, longest if form.limit is None else form.limit)
        cutoffs = [reach if m.cutoff is None else min(m.cutoff, reach) for m in chosen]
        exponents = np.frexp(np.abs(form.columns).max(axis=1, initial=0.0))[1].astype(np.int64)
        return cls(
            form=form,
            measures=chosen,
            rows=_padded(np.ldexp(form.columns.T, -exponents)),
            exponents=exponents,
            kinds=np.array([m.kind for m in chosen], dtype=np.int64),
            cutoffs=np.array(cutoffs, dtype=np.int64),
            divisors=np.stack([m.divisor(form.judgments) for m in chosen]),
            logs=np.log2(np.arange(1, max(cutoffs) + 2, dtype=np.float64)),
        )

    def values(self, weights: ArrayLike, threads: int | None = None, alike: int = 10) -> dict[Measure, Floats]:
        """Compute every measure for every query, float64[W, Q] each, for weights float[W, S].

        So many `threads` share the weights; by default numba's, or one for little work. A grid has `alike` calls.
        """
        scaled = self._scaled(np.atleast_2d(np.asarray(weights, dtype=np.float64)))
        form = self.form
        pairs = len(scaled) * int(np.diff(form.offsets) @ np.diff(form.relevant_offsets))
        if any(measure.tokens for measure in self.measures):  # the compiled loops count ranks alone
            parts = np.array_split(scaled, max(1, -(-pairs // SMALL)))
            each = np.concatenate([self._in_numpy(part) for part in parts], axis=1)
        else:
            few = pairs <= TINY or ("numba" not in sys.modules and pairs * alike <= UNLOADED)
            each = self._in_numpy(scaled) if threads is None and few else self._compiled(scaled, threads)
        return dict(zip(self.measures, each, strict=True))

    def _scaled(self, weights: Floats) -> Singles:
        """float32[W, S']: weights scaled so that a configuration's largest product is near 1."""
        if weights.shape[1] != len(self.exponents) or not np.isfinite(weights).all():
            raise ConfigError(
                f"weights of shape {weights.shape} for {len(self.exponents)} columns; "
                f"give one finite weight for each column and configuration"
            )
        fraction, exponent = np.frexp(weights)
        exponent = np.where(fraction == 0, -(2**20), exponent + self.exponents)
        return _padded(np.ldexp(fraction, exponent - exponent.max(axis=1, initial=-(2**20), keepdims=True)))

    def _compiled(self, scaled: Singles, threads: int | None) -> Floats:
        """float64[M, W, Q]: every measure by the compiled loops."""
        from numba import config as numba_settings  # takes longer to load than a small search

        from steelyard_eval.candidates.compiled_loops import compiled

        fill_metrics, form = compiled(), self.form
        index = (form.offsets, form.relevant, form.relevant_offsets, form.grade)
        metrics = (self.kinds, self.cutoffs, self.divisors, self.logs)
        each = np.zeros((len(self.measures), len(scaled), form.queries))
        tiles = np.zeros((-(-len(scaled) // LANES) * LANES, scaled.shape[1]), dtype=np.float32)
        tiles[: len(scaled)] = scaled
        tiles = np.ascontiguousarray(tiles.reshape(-1, LANES, scaled.shape[1]).transpose(0, 2, 1))

        def work(first: int, last: int) -> None:
            lanes = slice(first * LANES, last * LANES)
            fill_metrics(self.rows, *index, tiles[first:last], *metrics, each[:, lanes])

        available: int = numba_settings.NUMBA_NUM_THREADS  # set as numba is loaded
        asked = threads or (1 if len(scaled) * len(form) < SMALL else available)
        count = max(1, min(asked, len(tiles)))
        ends = [len(tiles) * i // count for i in range(count + 1)]
        if count == 1:
            work(*ends)
        else:
            with ThreadPoolExecutor(count) as pool:
                list(pool.map(work, ends[:-1], ends[1:]))
        return each

    def _in_numpy(self, scaled: Singles) -> Floats:
        """float64[M, W, Q]: the same, bit by bit: scores are added in the order of the columns, gains by rank."""
        form = self.form
        each = np.zeros((form.queries, len(self.measures), len(scaled)))
        some = np.diff(form.relevant_offsets) > 0
        if not some.any():
            return each.transpose(1, 2, 0)
        rank, grade, used = self._ranks(self._scores(scaled))
        place = np.arange(1, rank.shape[1] + 1)[:, None]
        gains = grade / self.logs[np.minimum(rank, len(self.logs) - 1)]
        for m, (kind, cutoff) in enumerate(zip(self.kinds.tolist(), self.cutoffs.tolist(), strict=True)):
            shown = (rank <= cutoff) & (used <= (self.measures[m].tokens or np.inf))
            worth = gains if kind == GAIN else place / rank if kind in (PRECISIONS, FIRST) else np.ones(rank.shape)
            shown &= (place == 1) | (kind != FIRST)
            value = _added(np.where(shown, worth, 0.0))[some]
            divisor = self.divisors[m, some, None]
            if kind in (ANY, ALL):
                value = (value >= (1.0 if kind == ANY else divisor)).astype(np.float64)
            each[some, m] = value / divisor if kind in (GAIN, PRECISIONS, HITS) else value
        return np.ascontiguousarray(each.transpose(1, 2, 0))

    def _scores(self, scaled: Singles) -> Singles:
        """float32[N, W]: a weight of one configuration beside that of the next, so that they are added at once."""
        columns = np.ascontiguousarray(self.rows.T)
        scores = scaled[:, :1] * columns[0]
        product = np.empty_like(scores)
        for column in range(1, len(self.exponents)):
            scores += np.multiply(scaled[:, column, None], columns[column], out=product)
        return np.ascontiguousarray(scores.T)

    def _ranks(self, scores: Singles) -> tuple[Indices, Floats, Floats]:
        """int64[Q, R, W]: the ranks of the relevant rows of each query, ascending; in their order grades, and the
        tokens of the list down to each, 0 where nothing asks for them.
        """
        form = self.form
        of, row, begins = pairs_of(form.offsets, form.relevant, form.relevant_offsets)
        own = scores[form.relevant]
        bars = np.concatenate([np.nextafter(own, np.float32(-np.inf)), own])  # rows before it are ahead in a tie
        later = row >= form.relevant[of]
        ahead = scores.take(row, axis=0) > bars.take(of + len(own) * later, axis=0)
        smallest = np.min_scalar_type(int(np.diff(form.offsets).max()))  # that can count the rows of a query
        shape = form.queries, int(np.diff(form.relevant_offsets).max())
        rank = np.full((*shape, scores.shape[1]), len(form) + 1, dtype=np.int64)  # beyond all for what is no row
        counts = np.add.reduceat(ahead.view(np.uint8), begins, axis=0, dtype=smallest)
        rank[form.relevant_places] = 1 + counts.astype(np.int64)
        grade = np.zeros(shape)
        grade[form.relevant_places] = form.grade
        order, used = rank.argsort(axis=1), np.zeros(rank.shape)
        if len(form.tokens) and any(measure.tokens for measure in self.measures):
            before = np.add.reduceat(ahead * form.tokens[row, None], begins)
            used[form.relevant_places] = before + form.tokens[form.relevant, None]
        grades, down = (np.take_along_axis(values, order, 1) for values in (grade[..., None], used))
        return np.take_along_axis(rank, order, 1), grades, down


def _added(worth: Floats) -> Floats:
    """float64[Q, W]: the sum of float64[Q, R, W] over the places, from the first on, as the compiled loops add."""
    total = worth[:, 0].copy()
    for place in range(1, worth.shape[1]):
        total += worth[:, place]
    return total


def _padded(columns: Floats) -> Singles:
    width = max(STEP, -(-columns.shape[1] // STEP) * STEP)
    rows = np.zeros((len(columns), width), dtype=np.float32)
    rows[:, : columns.shape[1]] = columns
    return rows


def parts_for(metric: Measure) -> Mapping[Measure, float]:
    """The parts and their factors; a metric other than nDCG@10 is judged by itself, for no factors are known."""
    return PARTS if metric == METRIC else {metric: 1.0}


def composite(values: Mapping[Measure, NDArray[np.floating]], parts: Mapping[Measure, float]) -> Floats:
    """float64[..., n]: the mean of the parts, each times its factor."""
    total: Floats = np.sum([factor * values[part] for part, factor in parts.items()], axis=0, dtype=np.float64)
    return total / len(parts)


def stretched(share: Floats) -> Floats:
    """A weight's share of two, 0 to 1, on a scale where equal steps change rankings about equally."""
    return np.asarray(np.log((share + 0.03) / (1 - share + 0.03)), dtype=np.float64)


def smoothing(shares: Floats) -> Floats:
    """float64[W, W]: what each weight takes of its neighbours; rows sum to 1."""
    place = stretched(shares)
    pull = np.exp(-0.5 * ((place[:, None] - place[None, :]) / WIDTH) ** 2)
    return np.asarray(pull / pull.sum(axis=1, keepdims=True), dtype=np.float64)
