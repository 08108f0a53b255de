"""Strategies as text, with every fault named at once, and the parameters next to their own that tuning tries."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.base.errors import ConfigError
from steelyard.feedback import Explore
from steelyard.fusion import ByIntent, Signal, Term, near_variants, parse_strategy
from steelyard.fusion.layered import Layered
from steelyard.fusion.ranks import Rrf
from steelyard.fusion.routing import Boost, Tiered
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
DOCUMENTED = {
    "EchoVault": "tiered(fts, min_results=3, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))",
    "Soleri": "weighted_sum(0.25*tfidf, 0.15*cosine, 0.15*severity, 0.15*recency(half_life=365d), 0.15*tags, "
    "0.15*domain)",
    "MoltNet": "weighted_sum(1*rrf(vector, fts, k=60), 0*recency(half_life=69h), 0*importance)",
    "Cortex-Mem": "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.4, 0.3])",
}


class TestRoundTrip:
    @given(expressions)
    def test_what_is_printed_reads_back_as_an_equal_strategy(self, strategy):
        assert parse_strategy(str(strategy)) == strategy

    @pytest.mark.parametrize("text", DOCUMENTED.values(), ids=DOCUMENTED)
    def test_documented_strategies_print_as_they_are_written(self, text):
        assert str(parse_strategy(text)) == text

    @pytest.mark.parametrize(
        ("written", "printed"),
        [
            (" rrf ( vector,fts,) ", "rrf(vector, fts, k=60)"),
            ("rrf(1*vector, 1.50*fts, k=6e1)", "rrf(vector, 1.5*fts, k=60)"),
            ("recency", "recency(half_life=365d)"),
            ("tiered(fts, then=vector)", "tiered(fts, min_results=3, then=vector)"),
            ("weighted_sum(.5*fts, normalize=none)", "weighted_sum(0.5*fts)"),
            ("rrf(fts, bonus=none)", "rrf(fts, k=60)"),
            ("layered(1*l2)", "layered(1*l2, threshold=0.5, relax=[0.4, 0.3])"),
            ("weighted_sum(1*\tfts,\n +2*vector)", "weighted_sum(1*fts, 2*vector)"),
        ],
    )
    def test_defaults_and_spacing_have_one_printed_form(self, written, printed):
        assert str(parse_strategy(written)) == printed

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_a_number_prints_so_that_it_reads_back(self, number):
        assert float(number_text(number)) == number


class TestHostileText:
    @settings(max_examples=300)
    @given(st.text() | st.text(alphabet="0123456789.eE+-*()[],= dhabfts_vectorrkmin\n\x00\u0663\xe9"))
    def test_any_text_is_read_or_refused_by_name(self, text):
        try:
            strategy = parse_strategy(text)
        except ConfigError as error:
            assert str(error)
        else:
            assert parse_strategy(str(strategy)) == strategy

    @settings(max_examples=300)
    @given(expressions.map(str), st.integers(0, 10_000), st.text(max_size=3), st.integers(0, 4))
    def test_a_damaged_strategy_is_read_or_refused(self, text, at, inserted, dropped):
        at %= len(text) + 1
        damaged = text[:at] + inserted + text[at + dropped :]
        try:
            strategy = parse_strategy(damaged)
        except ConfigError as error:
            assert str(error)
        else:
            assert parse_strategy(str(strategy)) == strategy

    @pytest.mark.parametrize(
        ("text", "fragment"),
        [
            ("", "expected a name at position 0, found the end"),
            ("rrf(fts", "a bracket is not closed; write ')' at its end"),
            ("rrf(fts))", "expected the end at position 8, found ')'"),
            ("weighted_sum(0.5*fts 0.5*vector)", "expected ',' at position 21, found '0.5'"),
            ("fts; DROP TABLE", "character ';' at position 3 is not allowed"),
            ("fts\x00", r"character '\x00' at position 3 is not allowed"),
            ("weighted_sum(1e999*fts)", "number 1e999 is too large; use a finite one"),
            ("weighted_sum(nan*fts)", "expected ',' at position 16, found '*'"),
            ("weighted_sum(3d*fts)", "weight 3d has a unit; a weight is a plain number"),
            ("recency(half_life=0d)", "half_life = 0d must be a positive span of time such as 365d or 69h"),
            ("rrf(3d)", "3d needs a name, as in half_life=3d"),
            ("x" * (MAX_LENGTH + 1), f"expression of {MAX_LENGTH + 1} characters is longer than {MAX_LENGTH}"),
            ("rrf(" * 40 + "fts" + ")" * 40, f"nested deeper than {MAX_NESTING}; simplify it"),
            ("tiered(fts, then=" * 500 + "fts" + ")" * 500, f"nested deeper than {MAX_NESTING}; simplify it"),
        ],
    )
    def test_broken_grammar_is_shown_with_its_place(self, text, fragment):
        with pytest.raises(ConfigError) as raised:
            parse_strategy(text)
        assert fragment in str(raised.value)


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "fragment"),
        [
            ("vectr", "unknown signal or fusion 'vectr'; did you mean 'vector'?"),
            ("rrf(fts, kk=60)", "rrf: unknown option 'kk'; did you mean 'k'?"),
            ("fts(vector)", "signal 'fts' takes no signals in brackets; remove them"),
            ("weighted_sum(1*fts, normalize=mx)", "unknown normalize 'mx'; did you mean 'max'?"),
            ("weighted_sum(1*fts, normalize=5)", "weighted_sum: normalize = 5 must be one of none, max"),
            ("weighted_sum(fts)", "weighted_sum: fts needs a weight, as in 0.5*fts"),
            ("weighted_sum()", "weighted_sum needs at least one signal or fusion in its brackets"),
            ("weighted_sum(-1*fts)", "weighted_sum: weight -1 is outside 0..1000000"),
            ("weighted_sum(5)", "a number was found where a signal or fusion is expected"),
            ("0.5*fts", "weight 0.5 before the whole strategy changes nothing; drop it"),
            ("rrf(fts, k=-1)", "rrf: k = -1 must be a number of at least 0"),
            ("rrf(fts, k=[1])", "rrf: k = [1] must be a number of at least 0"),
            ("rrf(fts, k=1, k=2)", "rrf has an option twice; write each once"),
            ("rrf(fts, bonus=times)", "rrf: bonus = times must be none, times(x)"),
            ("rrf(fts, bonus=times(-1))", "rrf: bonus = times(-1) must be none"),
            ("tiered(fts)", "tiered needs then=, a strategy without a weight before it"),
            ("tiered(0.5*fts, then=fts)", "first = 0.5*fts must be"),
            ("tiered(fts, min_results=2.5, then=fts)", "min_results = 2.5 must be a whole number of at least 0"),
            (
                "rrf(fts, bm25, k=[1, 2, 3])",
                "k = [1, 2, 3] must be a number of at least 0, or 2 of them in brackets",
            ),
            ("weighted_sum(1*fts, normalize=tmm)", "normalize=tmm has no scale for fts"),
            ("recency(half_life=365)", "recency: half_life = 365 must be a positive span of time"),
            ("layered(1*l0, relax=0.3)", "layered: relax = 0.3 must be a list of numbers"),
            ("by_intent(fix=fts)", "by_intent needs default=, a strategy without a weight before it"),
            ("by_intent(fts, default=fts)", "by_intent takes nothing in its brackets"),
        ],
    )
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

    (change,) = changes(parse_strategy("rrf(fts, vector)"), parse_strategy("rrf(fts, vector, bm25)"))
    assert (change.name, change.dropped) == ("strategy", False)  # of another shape it differs as a whole
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
