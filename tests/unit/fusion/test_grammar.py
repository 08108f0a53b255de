"""Strategies as text, with every fault named at once, and the parameters next to their own that tuning tries."""

import re

import pytest
from hypothesis import given, settings, strategies as st
from shared import beside, tabled

from steelyard.base.errors import ConfigError
from steelyard.feedback import Explore
from steelyard.fusion import Boost, ByIntent, Layered, Rrf, Signal, Term, Tiered, near_variants, parse_strategy
from steelyard.fusion.sums import TRIED, WeightedSum
from steelyard.grammar import MAX_LENGTH, MAX_NESTING, Duration, number_text
from steelyard.node import MAX_WEIGHT, Amount
from steelyard.retrievers import FETCHED
from steelyard.signals import PRIORS
from steelyard.systems import find_system
from steelyard_eval.export.strategy_changes import changes

amounts = st.floats(0, MAX_WEIGHT)
thresholds = st.floats(-1, 10)
intents = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(lambda name: name != "default")
durations = st.builds(Duration, st.floats(1e-3, 1e6), st.sampled_from("dh"))
plain = st.sampled_from(sorted(FETCHED | PRIORS.keys() - {"recency"})).map(Signal)
dated = durations.map(lambda span: Signal("recency", (("half_life", span),)))
bonuses = st.none() | st.builds(Amount, st.sampled_from(["times", "once", "each"]), amounts)


def fusions(inner):
    terms = st.lists(st.builds(Term, amounts, inner), min_size=1, max_size=4).map(tuple)
    cases = st.lists(st.tuples(intents, inner), max_size=3, unique_by=lambda case: case[0]).map(tuple)
    return st.one_of(
        st.builds(WeightedSum, terms, st.sampled_from(sorted(TRIED))),
        st.builds(Rrf, terms, amounts, bonuses),
        st.builds(Tiered, inner, st.integers(0, 1000), then=inner),
        st.builds(Layered, terms, thresholds, st.lists(thresholds, max_size=3).map(tuple)),
        st.builds(ByIntent, inner, cases),
    )


def layers_deep(expr):
    """How many layered expressions stand inside each other, at most."""
    return isinstance(expr, Layered) + max(map(layers_deep, expr.children), default=0)


# layered inside layered is refused
expressions = st.recursive(plain | dated, fusions, max_leaves=8).filter(lambda expr: layers_deep(expr) < 2)


class TestRoundTrip:
    @given(expressions)
    def test_what_is_printed_reads_back_as_an_equal_strategy(self, strategy):
        assert parse_strategy(str(strategy)) == strategy

    @tabled
    def test_defaults_and_spacing_have_one_printed_form(self, written, printed):
        assert str(parse_strategy(written)) == printed

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_a_number_prints_so_that_it_reads_back(self, number):
        assert float(number_text(number)) == number


def read_or_refused(text):
    try:
        strategy = parse_strategy(text)
    except ConfigError as error:
        assert str(error)
    else:
        assert parse_strategy(str(strategy)) == strategy


class TestHostileText:
    @settings(max_examples=150)
    @given(st.text() | st.text(alphabet="0123456789.eE+-*()[],= dhabfts_vectorrkmin\n\x00\u0663\xe9"))
    def test_any_text_is_read_or_refused_by_name(self, text):
        read_or_refused(text)

    @settings(max_examples=150)
    @given(expressions.map(str), st.integers(0, 10_000), st.text(max_size=3), st.integers(0, 4))
    def test_a_damaged_strategy_is_read_or_refused(self, text, at, inserted, dropped):
        at %= len(text) + 1
        read_or_refused(text[:at] + inserted + text[at + dropped :])

    @pytest.mark.parametrize(
        ("text", "fragment"),
        [
            ("x" * (MAX_LENGTH + 1), f"expression of {MAX_LENGTH + 1} characters is longer than {MAX_LENGTH}"),
            ("rrf(" * 40 + "fts" + ")" * 40, f"nested deeper than {MAX_NESTING}; simplify it"),
            ("tiered(fts, then=" * 500 + "fts" + ")" * 500, f"nested deeper than {MAX_NESTING}; simplify it"),
        ],
    )
    def test_what_is_too_long_or_too_deep_is_refused(self, text, fragment):
        with pytest.raises(ConfigError) as raised:
            parse_strategy(text)
        assert fragment in str(raised.value)


class TestFaults:
    @tabled
    def test_a_fault_is_named_with_its_rule(self, text, fragment):
        with pytest.raises(ConfigError) as raised:
            parse_strategy(text)
        assert fragment in str(raised.value)

    def test_all_faults_are_named_at_once(self):
        text = "tiered(ftz, min_results=-1, then=rrf(vectr, -2*graph_(bm52), k=x, bonuss=1))"
        with pytest.raises(ConfigError) as raised:
            parse_strategy(text)
        message = str(raised.value)
        fragments = [
            *("'ftz'; did you mean 'fts'?", "min_results = -1", "'vectr'; did you mean 'vector'?"),
            *("unknown signal or fusion 'graph_'", "'bm52'; did you mean 'bm25'?", "weight -2 is outside"),
            *("k = x must be a number", "unknown option 'bonuss'; did you mean 'bonus'?"),
        ]
        assert [fragment for fragment in fragments if fragment not in message] == []


@pytest.mark.parametrize(("own", "tried"), [(3, [1, 3, 5, 10, 20, 50]), (7, [1, 3, 5, 7, 10, 20, 50])])
def test_a_second_tier_is_tried_after_one_to_fifty_results_and_its_own_number(own, tried):
    expr = parse_strategy(f"tiered(fts, min_results={own}, then=vector)")
    assert isinstance(expr, Tiered)
    assert [one.min_results for one in expr.variants()] == tried


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
    expr = parse_strategy("layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.4, 0.3], cut=step)")
    found = list(expr.variants())
    ladders = {(0.6, (0.4, 0.3)), (0.5, (0.4, 0.3)), (0.4, (0.3,)), (0.3, ()), (0.2, ())}
    assert {(one.threshold, one.relax) for one in found} == ladders
    assert {one.cut for one in found} == {"step", None}


def test_what_a_strategy_drops_of_another_is_named():
    layers = "layered(0.2*l0, {}*l1, 0.5*l2, threshold=0.5, relax={}{})"
    one = layers.format(0.3, "[0.4, 0.3]", ", cut=step")
    flat, other = layers.format(0, "[]", ""), layers.format(0.4, "[0.4]", ", cut=0.2")
    old = parse_strategy(f"by_intent(default={one}, factual={one})")
    new = parse_strategy(f"by_intent(default={flat}, factual={other})")
    found = [(*re.split(" for | instead of ", str(change)), change.dropped) for change in changes(old, new)]
    assert found == [tuple(row) for row in beside(__file__)["dropped"]]
    (change,) = changes(parse_strategy("rrf(fts, vector)"), parse_strategy("rrf(fts, vector, bm25)"))
    assert (change.name, change.dropped) == ("strategy", False)  # of another shape it differs as a whole


def test_cases_of_one_kind_are_varied_together_too():
    one = "layered(0.2*l0, 0.8*l2, threshold={}, relax=[])"
    expr = parse_strategy(f"by_intent(default={one.format(0.5)}, factual={one.format(0.4)})")
    pairs = {tuple(case.threshold for case in other.children) for other in near_variants(expr)}
    assert {(t, t) for t in (0.2, 0.3, 0.4, 0.5, 0.6)} <= pairs
    assert (0.2, 0.6) not in pairs  # one parameter at a time, or all alike
    mixed = parse_strategy("by_intent(default=rrf(fts, vector), factual=tiered(fts, then=vector))")
    for one in near_variants(mixed):
        assert one.children[0] == mixed.children[0] or one.children[1] == mixed.children[1]


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
