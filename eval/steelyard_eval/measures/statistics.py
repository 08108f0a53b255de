"""Paired statistics over queries: intervals, tests, corrections, power, verdicts.

The unit is the query, or its group (such as a conversation): groups vary and are flipped as a whole, while
means are means over queries. Everything is a function of its arguments and the seed; memory is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri, stdtr, stdtrit

from steelyard.base.arrays import Floats, Indices
from steelyard_eval.measures.spread import Spread, by_unit, spread
from steelyard_eval.result import structs
from steelyard_eval.result.structs import Paired, Said, Verdict

TIE = 1e-12  # differences up to this are rounding
DRAWS = 10_000
ALPHA = 0.05
MARGIN = 0.02
UNSEEN = 0.65
"""A difference that a query outside the sample may show: the root mean square of them between two configurations
that differ on one query of eight (vectors beside the same under a cut, scifact; `make coverage`)."""
LABELLED_AT_MOST = 100_000
"""Queries beyond which the number that would be needed helps nobody: the difference is none in practice."""
_BLOCK = 1 << 20  # numbers in memory at a time while flipping signs
POWER = float(ndtri(1 - ALPHA / 2) + ndtri(0.80))
"""Standard errors that a difference has to be worth to show with 80% power."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the ends of its confidence interval, as the method gives them; equal ends are no interval."""

    mean: float
    low: float
    high: float

    def stated(self, least: float) -> tuple[float, float] | tuple[None, None]:
        """The ends as they are shown: from `least`, 0 of a metric and -1 of a difference of two, to 1.

        None each where there is no interval: one unit, or units that do not vary, tell nothing of others.

        >>> Interval(0.9, 0.6, 1.2).stated(0.0), Interval(1.0, 1.0, 1.0).stated(0.0)
        ((0.6, 1.0), (None, None))
        """
        return (max(self.low, least), min(self.high, 1.0)) if self.low < self.high else (None, None)


def normal_interval(mean: float, error: float) -> Interval:
    """The 95% interval of a mean whose standard error is known: 1.96 errors on either side."""
    return Interval(mean, mean - 1.96 * error, mean + 1.96 * error)


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

    Parameters
    ----------
    values : float64[n]
        One value per query, finite, n >= 1.
    groups : sequence of n, optional
        The group of each query, None for a query without one. The mean is still over queries; its
        variance is that of the ratio sum of sums / sum of counts over groups (Cochran, Sampling Techniques,
        3rd ed., 6.3), and the degrees of freedom are the groups less one.
    level : float
        Coverage, between 0 and 1.

    Notes
    -----
    On paired differences of real systems, which have many zeros, t covers what it promises from 20 queries on,
    where BCa bootstrap intervals cover too little: `make coverage`, docs/tuning.md. Undefined for one unit, or
    units of one mean: then low = high = mean, which `Interval.stated` shows as none.

    >>> mean_interval([0.5, 0.5, 0.5])
    Interval(mean=0.5, low=0.5, high=0.5)
    """
    checked = _checked(values)
    return _interval(spread(checked, _codes(groups, checked.size)), level)


def difference_interval(
    differences: ArrayLike, groups: Sequence[object] | None = None, *, level: float = 0.95
) -> Interval:
    """Return the mean of paired `differences` with its interval by Student's t, as if one more query had differed.

    Two configurations may agree on nearly all queries of a small sample and differ on others. So the sum of
    squares counts a query that was not drawn, with a difference of `UNSEEN`, times 1 / sqrt(m + 1) for m units
    that differ: the relative error of such a count (Poisson). Where nothing differs the interval is about
    +-1.3 / n, which is the rule of three (Hanley & Lippman-Hand, JAMA 1983: up to 3 / n of all queries may
    differ) for differences of 0.43; where many differ it is Student's. See `mean_interval` for the arguments.

    >>> difference_interval([0.0, 0.0, 0.0, 0.0]).high > 0
    True
    """
    checked = _checked(differences)
    return _difference(checked, _codes(groups, checked.size), level)


def _difference(differences: Floats, unit: Indices, level: float) -> Interval:
    sums, counts = by_unit(differences, unit)
    differ = int((np.abs(sums) > TIE).sum())
    added = (UNSEEN / float(counts.mean())) ** 2 / math.sqrt(differ + 1)
    return _interval(spread(differences, unit), level, added)


def _interval(found: Spread, level: float, added: float = 0.0) -> Interval:
    mean, n = float(found.mean), found.units
    if n < 2:
        return Interval(mean, mean, mean)
    squares = float(found.error) ** 2 * n * (n - 1) + added
    if squares <= TIE**2:
        return Interval(mean, mean, mean)
    reach = float(stdtrit(n - 1, (1 + level) / 2)) * math.sqrt(squares / (n - 1) / n)
    return Interval(mean, mean - reach, mean + reach)


def _blocks(draws: int, n: int) -> Iterator[slice]:
    step = max(1, _BLOCK // n)
    return (slice(start, min(start + step, draws)) for start in range(0, draws, step))


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
    for block in _blocks(total, max(1, sums.size)):
        flips = _patterns(block, sums.size) if exact else _coins(block, sums.size, rng)
        count += int(np.count_nonzero(np.abs(sums.sum() - 2 * (flips @ sums)) >= enough))
    return count / total if exact else (count + 1) / (total + 1)


def _patterns(block: slice, n: int) -> Floats:
    return (np.arange(block.start, block.stop)[:, None] >> np.arange(n) & 1).astype(np.float64)


def _coins(block: slice, n: int, rng: np.random.Generator) -> Floats:
    return rng.integers(0, 2, (block.stop - block.start, n), dtype=np.int8).astype(np.float64)


def compare_paired(
    challenger: ArrayLike,
    baseline: ArrayLike,
    groups: Sequence[object] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    margin: float = MARGIN,
) -> Paired:
    """Compare the values of two systems query by query; `p_holm` equals `p`.

    The interval is `difference_interval` of the differences, and `worse` of the same distribution. The
    test flips the signs of the differences, or of
    whole groups, and is exact when there are at most `draws` sign patterns
    (Smucker, Allan & Carterette, CIKM 2007).

    Parameters
    ----------
    challenger, baseline : float64[n]
        Values of the same queries in the same order.
    groups : sequence of n, optional
        As in `mean_interval`.
    draws, seed : int
        Number of sign patterns, and their seed.
    margin : float
        As in `verdict`.

    Examples
    --------
    >>> c = compare_paired([1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0])
    >>> c.p == 2 / 2**6, c.wins, c.verdict
    (True, 6, 'better')
    """
    better, worse = _checked(challenger), _checked(baseline)
    if better.size != worse.size:
        raise ValueError(f"{better.size} values against {worse.size}: a paired comparison needs the same queries")
    difference = better - worse
    unit = _codes(groups, difference.size)
    interval = _difference(difference, unit, 1 - ALPHA)
    p = _flip_p(by_unit(difference, unit)[0], draws, np.random.default_rng([seed, 1]))
    wins, losses = int((difference > TIE).sum()), int((difference < -TIE).sum())
    found = spread(difference, unit)
    detectable, needed = _power(found)
    low, high = interval.stated(-1.0)
    paired = Paired(
        structs.Interval(interval.mean, low, high), "open", p, p, wins, difference.size - wins - losses, losses,
        worse=_worse(interval, found.units), detectable=detectable, needed=needed,
    )  # fmt: skip
    return _told(paired, margin, 1)


def _worse(interval: Interval, units: int) -> float | None:
    """The probability of a loss by the distribution of the interval; None where nothing varies."""
    degrees = max(units - 1, 1)
    error = (interval.high - interval.low) / 2 / float(stdtrit(degrees, 1 - ALPHA / 2))
    return float(stdtr(degrees, -interval.mean / error)) if error > 0 else None


def _power(found: Spread) -> tuple[float | None, int | None]:
    """Return the smallest effect detectable with 80% power, and the number of queries for the observed effect.

    This is the normal approximation (z_.975 + z_.80) * sd / sqrt(n) over units, and the same solved for n, in
    queries of an average unit.
    """
    if found.units < 2:
        return None, None
    mean, detectable = float(found.mean), POWER * float(found.error)
    if abs(mean) <= TIE:
        return detectable, None
    units = max(1, math.ceil((detectable / mean) ** 2 * found.units))
    needed = math.ceil(units * found.queries / found.units)
    return detectable, needed if needed <= LABELLED_AT_MOST else None


def verdict(paired: Paired, margin: float = MARGIN) -> Verdict:
    """Return better or worse where p_holm < 0.05 and 0 is outside the interval; the same within +-margin.

    For everything else the queries are too few, and so they are on a single unit, whose interval is a point. The
    test alone calls too much better where differences are few and skewed (`make coverage`).
    """
    if paired.p_holm < ALPHA and _apart(paired.gain):
        return "better" if paired.gain.mean > 0 else "worse"
    low, high = paired.gain.low, paired.gain.high
    return "same" if low is not None and high is not None and -margin <= low and high <= margin else "open"


def _apart(gain: structs.Interval) -> bool:
    """Whether 0 lies outside the interval."""
    return gain.low is not None and gain.high is not None and (gain.low > 0 or gain.high < 0)


def _told(paired: Paired, margin: float, count: int) -> Paired:
    """The comparison with its verdict among so many, and why that leaves open what its interval seems to tell."""
    told, why = verdict(paired, margin), None
    if told == "open" and paired.detectable is not None:
        facts: dict[str, structs.Fact] = {"least": ALPHA}
        facts |= {"tried": count, "p": paired.p, "p_holm": paired.p_holm} if count > 1 else {"alone": paired.p}
        if paired.p_holm < ALPHA:
            why = Said("why_interval", facts)
        elif _apart(paired.gain):
            why = Said("why_p", facts)
    return structs.replace(paired, verdict=told, why=why)


def compare_all(
    challengers: Mapping[str, ArrayLike],
    baseline: ArrayLike,
    groups: Sequence[object] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    margin: float = MARGIN,
) -> dict[str, Paired]:
    """Compare each challenger with the baseline, with `p_holm` and `verdict` corrected over all of them.

    All use the same signs, so except for `p_holm` and the verdict the numbers of a challenger do not depend on
    the others. See `compare_paired` for the parameters.
    """
    alone = {
        name: compare_paired(values, baseline, groups, draws=draws, seed=seed, margin=margin)
        for name, values in challengers.items()
    }
    corrected = holm([c.p for c in alone.values()])
    joint = {
        name: structs.replace(c, p_holm=float(p)) for (name, c), p in zip(alone.items(), corrected, strict=True)
    }
    return {name: _told(c, margin, len(joint)) for name, c in joint.items()}


def holm(ps: ArrayLike) -> Floats:
    """Return Holm's step-down corrected p-values, in the order given (Holm 1979).

    >>> holm([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(ps, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return corrected


def benjamini_hochberg(ps: ArrayLike) -> Floats:
    """Return p-values corrected for the false discovery rate, in the order given (Benjamini & Hochberg 1995).

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.04, 0.04]
    """
    p = np.asarray(ps, dtype=np.float64)  # scipy.stats has it too, and takes a second to import
    order = np.argsort(p, kind="stable")[::-1]
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.minimum.accumulate(p[order] * (p.size / np.arange(p.size, 0, -1))), 1.0)
    return corrected
