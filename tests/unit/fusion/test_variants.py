"""What tuning and exploring try: the parameters next to a strategy's own."""

from itertools import pairwise

import pytest

from steelyard.feedback.explore import Explore
from steelyard.fusion import parse_strategy
from steelyard.fusion.boost import Boost
from steelyard.fusion.layered import Layered
from steelyard.fusion.tiered import Tiered
from steelyard.fusion.walk import near_variants
from steelyard.systems import find_system


def counts(text):
    expr = parse_strategy(text)
    assert isinstance(expr, Tiered)
    return [one.min_results for one in expr.variants()]


def test_a_second_tier_is_tried_after_one_to_fifty_results_and_its_own_number():
    assert counts("tiered(fts, min_results=3, then=vector)") == [1, 3, 5, 10, 20, 50]
    assert counts("tiered(fts, min_results=7, then=vector)") == [1, 3, 5, 7, 10, 20, 50]


def test_numbers_of_results_lie_apart_by_their_order_of_magnitude():
    places = [parse_strategy(f"tiered(fts, min_results={n}, then=vector)").coordinates() for n in (0, 9, 99)]
    assert places == [(0.0,), (1.0,), (2.0,)]
    assert all(b > a for a, b in pairwise(places))


@pytest.mark.parametrize(("own", "others"), [("decay", [0, 0.5]), ("0.7*decay", [0, 0.5, 1])])
def test_a_factor_is_tried_at_none_half_and_all_of_its_strength(own, others):
    expr = parse_strategy(f"boost(rrf(fts, vector), {own})")
    assert isinstance(expr, Boost)
    first, *found = expr.variants()
    assert first == expr
    assert [one.factors[0].weight for one in found] == others


def test_variants_of_a_part_leave_the_other_parts_in_their_places():
    expr = parse_strategy("rrf(tiered(fts, min_results=3, then=bm25), vector, weighted_sum(1*importance), k=60)")
    found = list(near_variants(expr))

    assert len({str(one) for one in found}) > 6
    for one in found:
        first, second, third = one.children()
        assert first.children() == expr.children()[0].children()
        assert (second, third) == expr.children()[1:]


def test_drawn_weights_have_four_decimals_and_lie_around_the_own():
    config = find_system("plain").config(10).with_strategy(parse_strategy("weighted_sum(0.25*bm25, 0.75*vector)"))
    explore = Explore(share=1.0, seed=5)
    drawn = [explore.draw(config).strategy.weights for _ in range(50)]

    texts = [repr(weight).partition(".")[2] for pair in drawn for weight in pair]
    assert max(map(len, texts)) == 4
    assert all(sum(pair) == pytest.approx(1.0, abs=2e-4) for pair in drawn)
    assert all(a >= 0.125 and b >= 0.375 for a, b in drawn)  # halfway between the own and drawn ones


def test_the_ladder_of_cortex_mem_is_the_usual_one_and_is_tried():
    assert Layered.relax == (0.4, 0.3)
    assert Layered.relax in Layered.LADDERS
