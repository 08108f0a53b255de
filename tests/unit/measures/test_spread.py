"""The spread of values is that of adding up, unit by unit: in whatever order units are numbered."""

from math import sqrt

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from steelyard_eval.measures.spread import BLOCK, by_unit, spread


@st.composite
def grouped(draw):
    """Values float64[3, n] and the numbers of their units, in any order and with gaps."""
    names = draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=12, unique=True))
    distinct = draw(st.booleans())
    size = len(names) if distinct else draw(st.integers(1, 20))
    units = names if distinct else draw(st.lists(st.sampled_from(names), min_size=size, max_size=size))
    values = draw(st.lists(st.integers(-8, 8), min_size=3 * size, max_size=3 * size))
    return np.array(values).reshape(3, size) / 8, units


@given(grouped())
def test_the_error_is_that_of_a_ratio_of_sums_to_counts(case):
    """Cochran 6.3 in plain Python: the squared residuals of the units' sums, less one degree, over the queries."""
    values, units = case
    found = spread(values, np.array(units))
    members = [[at for at, unit in enumerate(units) if unit == one] for one in set(units)]

    assert (found.queries, found.units) == (len(units), len(members))
    for row, own in enumerate(values.tolist()):
        mean = sum(own) / len(own)
        residuals = [sum(own[at] for at in places) - mean * len(places) for places in members]
        assert found.mean[row] == pytest.approx(mean, abs=1e-15)
        if len(members) == 1:
            assert found.error[row] == np.inf
            continue
        variance = sum(one**2 for one in residuals) * len(members) / (len(members) - 1) / len(own) ** 2
        assert found.error[row] == pytest.approx(sqrt(variance), abs=1e-15)


def test_without_units_it_is_the_standard_error_of_the_mean():
    values = np.random.default_rng(3).normal(size=(BLOCK + 2, 9)).astype(np.float32)
    found = spread(values)

    assert found.error == pytest.approx(scipy.stats.sem(values.astype(np.float64), axis=1))
    assert float(spread(values[0]).error) == pytest.approx(found.error[0])


def test_sums_are_in_the_order_of_the_numbers_of_units_and_of_queries_where_each_is_its_own():
    assert [part.tolist() for part in by_unit(np.array([1.0, 2.0, 4.0]), np.array([7, 2, 7]))] == [
        [2.0, 5.0],
        [1, 2],
    ]
    assert by_unit(np.array([1.0, 2.0]), np.array([9, 3]))[0].tolist() == [1.0, 2.0]
