"""Differences on the same queries: the one place that knows a standard error, an interval, a test and power.

Queries that vary together (of one conversation, or asking the same) are one unit: the variance is that over units,
while means are means over queries. Everything is a function of its arguments and the seed; memory is bounded.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri, stdtrit

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.measures.spread import ALPHA, Interval, Spread, by_unit, holm, spread
from steelyard_eval.result.structs import Estimate, Fact, Message, Paired, Verdict

TIE = 1e-12  # differences up to this are rounding
DRAWS = 10_000
MARGIN = 0.02
EXTRA_QUERY_RMS = 0.65
"""A difference that a query outside the sample may show: the root mean square of them between two configurations
that differ on one query of eight (vectors beside the same under a cut, scifact)."""
LABELLED_AT_MOST = 100_000
"""Queries beyond which the number that would be needed helps nobody: the difference is none in practice."""
_BLOCK = 1 << 20  # numbers in memory at a time while flipping signs
POWER = float(ndtri(1 - ALPHA / 2) + ndtri(0.80))
"""Standard errors that a difference has to be worth to show with 80% power."""


def _codes(groups: Sequence[object] | None, size: int) -> Indices:
    """int64[n]: groups numbered by first appearance; a query without one is its own group."""
    if groups is None:
        return np.arange(size)
    if len(groups) != size:
        raise ValueError(f"{len(groups)} groups for {size} values")
    seen: dict[object, int] = {}
    keys = [(i, None) if group is None else group for i, group in enumerate(groups)]
    return np.array([seen.setdefault(key, len(seen)) for key in keys])


def exact_interval(errors: int, count: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of a rate, from counts; (0, 1) of none."""
    tail = (1 - level) / 2
    low = 0.0 if not errors else float(betaincinv(errors, count - errors + 1, tail))
    return low, 1.0 if errors == count else float(betaincinv(errors + 1, count - errors, 1 - tail))


def _checked(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size or not np.isfinite(array).all():
        raise ValueError(f"needs one finite value per query, at least one; got shape {array.shape}")
    return array


def mean_interval(values: ArrayLike, groups: Sequence[object] | None = None, *, level: float = 0.95) -> Interval:
    """Compute the mean of `values` with its interval by Student's t.

    `values`: float64[n]: one value per query, finite, n >= 1; `groups`: the group of each query, None for a query
    without one. The mean is still over queries; its variance is that of the ratio sum of sums / sum of counts
    over groups (Cochran, Sampling Techniques, 3rd ed., 6.3), and the degrees of freedom are the groups less one;
    `level`: coverage, between 0 and 1.

    On paired differences of real systems, which have many zeros, t covers what it promises from 20 queries on,
    where BCa bootstrap intervals cover too little: docs/evidence/tuning.md. Undefined for one
    unit, or units of one mean: then low = high = mean, which `Interval.stated` shows as none.

    >>> mean_interval([0.5, 0.5, 0.5])
    Interval(mean=0.5, low=0.5, high=0.5)
    """
    checked = _checked(values)
    return _interval(spread(checked, _codes(groups, checked.size)), level)


def mean_intervals(values: Mapping[str, Floats], groups: Sequence[object]) -> dict[str, Estimate]:
    """Of every measure by name, over the queries where it is known; one that is known of none is left out."""
    unit, found = _codes(groups, len(groups)), {}
    for name, own in values.items():
        if (some := np.isfinite(own)).any():
            found[name] = mean_interval(own[some], unit[some].tolist()).shown(0.0)
    return found


def difference_interval(differences: ArrayLike, groups: Sequence[object] | None = None) -> Interval:
    """Return the mean of paired `differences` with its 95% interval, as if one more query had differed.

    Two configurations may agree on nearly all queries of a small sample and differ on others. So the sum of
    squares counts a query that was not drawn, with a difference of `EXTRA_QUERY_RMS`, times 1 / sqrt(m + 1) for m
    units that differ: the relative error of such a count (Poisson). Where nothing differs the interval is about
    +-1.3 / n, which is the rule of three (Hanley & Lippman-Hand, JAMA 1983: up to 3 / n of all queries may
    differ) for differences of 0.43; where many differ it is Student's. See `mean_interval` for the arguments.

    >>> difference_interval([0.0, 0.0, 0.0, 0.0]).high > 0
    True
    """
    checked = _checked(differences)
    return _difference(checked, _codes(groups, checked.size))


def _difference(differences: Floats, unit: Indices) -> Interval:
    return _interval(spread(differences, unit), 1 - ALPHA, _unseen(differences, unit))


def _unseen(differences: Floats, unit: Indices) -> float:
    """What a query that was not drawn adds to the sum of squares."""
    sums, counts = by_unit(differences, unit)
    differ = int((np.abs(sums) > TIE).sum())
    return float((EXTRA_QUERY_RMS / float(counts.mean())) ** 2 / math.sqrt(differ + 1))


def _interval(found: Spread, level: float, added: float = 0.0) -> Interval:
    mean, n = float(found.mean), found.units
    if n < 2:
        return Interval(mean, mean, mean)
    squares = float(found.error) ** 2 * n * (n - 1) + added
    if squares <= TIE**2:
        return Interval(mean, mean, mean)
    reach = float(stdtrit(n - 1, (1 + level) / 2)) * math.sqrt(squares / (n - 1) / n)
    return Interval(mean, mean - reach, mean + reach)


def _flip_p(sums: Floats, draws: int, rng: np.random.Generator) -> float:
    """Return the two-sided p-value of |sum| under random signs; exact when all signs fit in `draws`.

    The exact p-value is the share of the 2^n sign patterns; else it is (b + 1) / (m + 1), Phipson & Smyth 2010.
    Units that tie are dropped, because their sign changes nothing.
    """
    sums = sums[np.abs(sums) > TIE]
    exact = 2**sums.size <= draws
    total = 2**sums.size if exact else draws
    # A flipped pattern may add up to the observed value in a different order, with different rounding.
    enough = abs(sums.sum()) - TIE * np.abs(sums).sum()
    count = 0
    step = max(1, _BLOCK // max(1, sums.size))
    for begin in range(0, total, step):
        rows = np.arange(begin, min(begin + step, total))
        if exact:
            flips = (rows[:, None] >> np.arange(sums.size) & 1).astype(np.float64)
        else:
            flips = rng.integers(0, 2, (len(rows), sums.size), dtype=np.int8).astype(np.float64)
        count += int(np.count_nonzero(np.abs(sums.sum() - 2 * (flips @ sums)) >= enough))
    return count / total if exact else (count + 1) / (total + 1)


def paired(
    challengers: Mapping[str, ArrayLike],
    baseline: ArrayLike,
    groups: Sequence[object] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    margin: float = MARGIN,
) -> dict[str, Paired]:
    """Compare each challenger with the baseline, query by query; `p_holm` and the verdict are corrected over all.

    The interval is `difference_interval` of the differences. The test flips the signs of the differences, or of
    whole groups, and is exact when there are at most `draws` sign patterns
    (Smucker, Allan & Carterette, CIKM 2007). All use the same signs, so except for the correction the numbers of a
    challenger do not depend on the others.

    `challengers` and `baseline` float64[n] are of the same queries in the same order, else ValueError; `groups`
    are as in `mean_interval`, `margin` as in `verdict`.

    >>> found = paired({"mine": [1, 1, 1, 1, 1, 1]}, [0, 0, 0, 0, 0, 0])["mine"]
    >>> found.p == 2 / 2**6, found.wins, found.verdict
    (True, 6, 'better')
    """
    base = _checked(baseline)
    unit = _codes(groups, base.size)
    own = {label: _checked(values) for label, values in challengers.items()}
    if odd := [values.size for values in own.values() if values.size != base.size]:
        raise ValueError(f"{odd[0]} values against {base.size}: a paired comparison needs the same queries")
    differences = {label: values - base for label, values in own.items()}
    ps = [_flip_p(by_unit(of, unit)[0], draws, np.random.default_rng([seed, 1])) for of in differences.values()]
    rows = zip(differences.items(), ps, holm(ps).tolist(), strict=True)
    return {label: _paired(of, unit, p, p_holm, margin, len(ps)) for (label, of), p, p_holm in rows}


def _paired(difference: Floats, unit: Indices, p: float, p_holm: float, margin: float, count: int) -> Paired:
    found, interval = spread(difference, unit), _difference(difference, unit)
    wins, losses = int((difference > TIE).sum()), int((difference < -TIE).sum())
    detectable, needed = _power(found, _unseen(difference, unit))
    told = verdict(interval, p_holm, detectable, margin)
    return Paired(
        gain=interval.shown(-1.0),
        verdict=told,
        p=p,
        p_holm=p_holm,
        wins=wins,
        ties=difference.size - wins - losses,
        losses=losses,
        worse=interval.probability_worse(found.units),
        detectable=detectable,
        needed=needed,
        why=_why(interval, p, p_holm, count) if told == "open" and detectable is not None else None,
    )


def _power(found: Spread, unseen: float) -> tuple[float | None, int | None]:
    """Return the smallest effect detectable with 80% power, and the number of queries for the observed effect.

    This is the normal approximation (z_.975 + z_.80) * sd / sqrt(n) over units, and the same solved for n, in
    queries of an average unit. The effect allows for a query that was not drawn, as the interval does.
    """
    if found.units < 2:
        return None, None
    mean, error, n = float(found.mean), float(found.error), found.units
    detectable = POWER * math.sqrt(error**2 + unseen / n / (n - 1))
    if abs(mean) <= TIE:
        return detectable, None
    units = max(1, math.ceil((POWER * error / mean) ** 2 * n))
    needed = math.ceil(units * found.queries / found.units)
    return detectable, needed if needed <= LABELLED_AT_MOST else None


def verdict(gain: Interval, p_holm: float, detectable: float | None, margin: float = MARGIN) -> Verdict:
    """Return better or worse where p_holm < 0.05 and 0 is outside the interval; the same within +-margin.

    For everything else the queries leave it open, and so they do on a single unit, whose interval is a point and
    which has no `detectable` difference. The test alone calls too much better where differences are few and skewed
    (docs/evidence/tuning.md).
    """
    if p_holm < ALPHA and (gain.low > 0 or gain.high < 0):
        return "better" if gain.mean > 0 else "worse"
    inside = -margin <= gain.low and gain.high <= margin
    return "same" if inside and detectable is not None else "open"


def _why(gain: Interval, p: float, p_holm: float, count: int) -> Message | None:
    """Why a difference is left open whose interval is without 0, or whose p is below 0.05."""
    facts: dict[str, Fact] = {"p": p, "p_holm": p_holm, "tried": count if count > 1 else None}
    if p_holm < ALPHA:
        return Message("interval_holds_zero" if count > 1 else "interval_holds_zero_alone", facts)
    if gain.low > 0 or gain.high < 0:
        return Message("p_proves_nothing" if count > 1 else "p_proves_nothing_alone", facts)
    return None
