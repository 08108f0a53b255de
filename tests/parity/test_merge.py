"""EchoVault's search, on random lists, against a plain run of what its document says."""

from echovault_recording import fused, merge
from hypothesis import given, settings, strategies as st
from verdicts import TIE, compare

from steelyard.systems.echovault import DOCUMENTED

LIMIT = 5
scores = st.one_of(st.sampled_from([-1.5, -0.2, 0.0, 0.3, 0.5, 0.5, 2.0]), st.floats(-3, 10, width=32))
found = st.dictionaries(st.sampled_from([f"m{at:02}" for at in range(14)]), scores, max_size=2 * LIMIT)


@settings(max_examples=200)
@given(found, found)
def test_the_preset_answers_and_merges_as_documented(keyword, vector):
    """Three keyword results or more answer alone; fewer are merged with the vectors."""
    keyword, vector = (sorted(own.items(), key=lambda pair: (-pair[1], pair[0])) for own in (keyword, vector))
    whole = keyword if len(keyword) >= 3 else merge(keyword, vector)
    got = fused({"fts": keyword, "vector": vector}, str(DOCUMENTED.searching.strategy), LIMIT)
    assert compare(whole[:LIMIT], got, TIE, floor=1.0, beyond=whole)[0] == ""
