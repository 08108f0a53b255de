"""EchoVault's search against a plain run of what its document says: dictionaries and loops, no tables.

The one departure is the decided reading of DESIGN.md: a list whose maximum is not positive
contributes 0 (the document's `max(...) or 1.0` would turn negative scores upside down).
"""

import statements
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.finish import Cut
from steelyard.systems import find_system

LIMIT = 5
IDS = [f"m{at:02}" for at in range(14)]
scores = st.one_of(st.sampled_from([-1.5, -0.2, 0.0, 0.3, 0.5, 0.5, 2.0]), st.floats(-3, 10, width=32))


def lists(smallest):
    """Lists as a retriever returns them: each id once, best first, ties by id."""
    found = st.dictionaries(st.sampled_from(IDS), scores, min_size=smallest, max_size=2 * LIMIT)
    return found.map(lambda d: sorted(d.items(), key=lambda pair: (-pair[1], pair[0])))


def merged(keyword, vector):
    """Each list divided by its greatest score, 30% and 70%, one place an id, best first."""
    total = {}
    for share, found in ((0.3, keyword), (0.7, vector)):
        top = max((score for _, score in found), default=0.0)
        for id_, score in found:
            part = share * (score / top) if top > 0 else 0.0
            total[id_] = total.get(id_, 0.0) + part
    return sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))[:LIMIT]


def documented(keyword, vector):
    """Three keyword results or more answer alone; fewer are merged with the vectors."""
    return keyword[:LIMIT] if len(keyword) >= 3 else merged(keyword, vector)


def same(got, expected):
    """Scores to 1e-12 place by place; ids in order, where rows within 1e-12 may change places."""
    assert len(got) == len(expected)
    for (_, mine), (_, theirs) in zip(got, expected, strict=True):
        assert abs(mine - theirs) <= 1e-12
    for at, (id_, score) in enumerate(expected):
        alike = {other for other, value in got if abs(value - score) <= 1e-12}
        crossing = abs(score - expected[-1][1]) <= 1e-12  # equal rows may also be cut differently
        assert got[at][0] == id_ or id_ in alike or crossing


@settings(max_examples=600)
@given(lists(0), lists(0))
def test_the_preset_answers_and_merges_as_documented(keyword, vector):
    strategy = find_system("echovault").searching.strategy
    same(statements.merged(strategy, [Cut(LIMIT)], fts=keyword, vector=vector), documented(keyword, vector))
