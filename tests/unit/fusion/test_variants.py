"""What tuning and exploring try: the parameters next to a strategy's own."""

import pytest

from steelyard.feedback import Explore
from steelyard.fusion import near_variants, parse_strategy
from steelyard.fusion.routing import Boost, Tiered
from steelyard.systems import find_system
from steelyard_eval.export.changes import changes


def counts(text):
    expr = parse_strategy(text)
    assert isinstance(expr, Tiered)
    return [one.min_results for one in expr.variants()]


def test_a_second_tier_is_tried_after_one_to_fifty_results_and_its_own_number():
    assert counts("tiered(fts, min_results=3, then=vector)") == [1, 3, 5, 10, 20, 50]
    assert counts("tiered(fts, min_results=7, then=vector)") == [1, 3, 5, 7, 10, 20, 50]


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
        first, second, third = one.children
        assert first.children == expr.children[0].children
        assert (second, third) == expr.children[1:]


def test_drawn_weights_have_four_decimals_and_lie_around_the_own():
    config = find_system("plain").config(10).with_strategy(parse_strategy("weighted_sum(0.25*bm25, 0.75*vector)"))
    explore = Explore(share=1.0, seed=5)
    drawn = [explore.draw(config).strategy.weights for _ in range(50)]

    texts = [repr(weight).partition(".")[2] for pair in drawn for weight in pair]
    assert max(map(len, texts)) == 4
    assert all(sum(pair) == pytest.approx(1.0, abs=2e-4) for pair in drawn)
    assert all(a >= 0.125 and b >= 0.375 for a, b in drawn)  # halfway between the own and drawn ones


def test_the_ladder_of_a_layered_search_stays_wherever_steps_are_below_its_threshold():
    found = list(
        parse_strategy("layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.4, 0.3], cut=step)").variants()
    )
    assert {(one.threshold, one.relax) for one in found} == {
        (0.6, (0.4, 0.3)), (0.5, (0.4, 0.3)), (0.4, (0.3,)), (0.3, ()), (0.2, ()),
    }  # fmt: skip
    assert {one.cut for one in found} == {"step", None}


def test_what_a_strategy_drops_of_another_is_named():
    layers = "layered(0.2*l0, {}*l1, 0.5*l2, threshold=0.5, relax={}{})"
    one = layers.format(0.3, "[0.4, 0.3]", ", cut=step")
    old = parse_strategy(f"by_intent(default={one}, factual={one})")
    new = parse_strategy(
        f"by_intent(default={layers.format(0, '[]', '')}, factual={layers.format(0.4, '[0.4]', ', cut=0.2')})"
    )

    found = [
        (*str(change).replace(" for ", "\n").replace(" instead of ", "\n").split("\n"), change.dropped)
        for change in changes(old, new)
    ]
    assert found == [
        ("weight of l1", "default 0", "0.3", True),
        ("relax", "default none", "[0.4, 0.3]", True),
        ("cut", "default none", "step", True),
        ("weight of l1", "factual 0.4", "0.3", False),
        ("relax", "factual [0.4]", "[0.4, 0.3]", False),
        ("cut", "factual 0.2", "step", False),
    ]


def test_cases_of_one_kind_are_varied_together_too():
    one = "layered(0.2*l0, 0.8*l2, threshold={}, relax=[])"
    expr = parse_strategy(f"by_intent(default={one.format(0.5)}, factual={one.format(0.4)})")
    pairs = {tuple(case.threshold for case in other.children) for other in near_variants(expr)}

    assert {(t, t) for t in (0.2, 0.3, 0.4, 0.5, 0.6)} <= pairs
    assert (0.2, 0.6) not in pairs  # one parameter at a time, or all alike
    mixed = parse_strategy("by_intent(default=rrf(fts, vector), factual=tiered(fts, then=vector))")
    assert all(
        one.children[0] == mixed.children[0] or one.children[1] == mixed.children[1]
        for one in near_variants(mixed)
    )


def test_every_pair_of_ks_is_tried_where_each_list_has_its_own():
    """7 values and the 3 that is not among them, for each of two lists; of three lists one after the other."""
    assert len(list(parse_strategy("rrf(fts, vector, k=[3, 60])").variants())) == 64
    three = list(parse_strategy("rrf(fts, bm25, vector, k=[1, 5, 60])").variants())
    assert len(three) == 1 + 3 * 6


def test_only_a_scale_of_ends_reads_those_that_follow_the_query():
    """docs/strategies.md: bm25 ends at the most that its query allows, a cosine at -1 and 1."""
    of = "weighted_sum(1*bm25, 2*cosine, normalize={})"
    assert parse_strategy(of.format("theoretical")).reads_ends == {"bm25"}
    assert parse_strategy(of.format("minmax")).reads_ends == frozenset()
