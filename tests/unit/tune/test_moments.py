"""Moments by part are what adding up, query by query, gives: in whatever order groups and parts are numbered."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard_eval.decide.posterior import Moments


@st.composite
def parted(draw):
    """Differences float64[3, n], group numbers in any order and with gaps, and a part for every group."""
    names = draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=12, unique=True))
    distinct = draw(st.booleans())
    size = len(names) if distinct else draw(st.integers(1, 20))
    groups = names if distinct else draw(st.lists(st.sampled_from(names), min_size=size, max_size=size))
    part_of = {name: draw(st.integers(0, 3)) for name in names}
    values = draw(st.lists(st.integers(-8, 8), min_size=3 * size, max_size=3 * size))
    return np.array(values).reshape(3, size) / 8, groups, [part_of[group] for group in groups]


@given(parted())
def test_moments_by_part_are_sums_over_the_groups_of_each_part(case):
    differences, groups, part = case
    found = Moments.by_part(differences, np.array(groups), np.array(part))

    assert len(found) == max(part) + 1
    for number, sums in enumerate(found):
        own = sorted({group for group, at in zip(groups, part, strict=True) if at == number})
        members = [[at for at, group in enumerate(groups) if group == one] for one in own]
        for row, values in enumerate(differences.tolist()):
            totals = [sum(values[at] for at in places) for places in members]
            # Eighths of small integers add up without rounding.
            assert sums.total[row] == sum(totals)
            assert sums.squares[row] == sum(total**2 for total in totals)
            assert sums.crossed[row] == sum(t * len(places) for t, places in zip(totals, members, strict=True))
        sizes = [len(places) for places in members]
        assert (sums.queries, sums.groups) == (sum(sizes), len(sizes))
        assert sums.spread == sum(size**2 for size in sizes)
