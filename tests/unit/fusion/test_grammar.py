"""Strategies as text: they print, parse back, and every fault of a text is named at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.base.errors import ConfigError
from steelyard.fusion import ByIntent, Signal, Term, parse_strategy
from steelyard.fusion.layered import Layered
from steelyard.fusion.ranks import Rrf
from steelyard.fusion.routing import Tiered
from steelyard.fusion.sums import TRIED, WeightedSum
from steelyard.grammar import MAX_LENGTH, MAX_NESTING, Call, Duration, Item, number_text, parse_call
from steelyard.node import MAX_WEIGHT, Amount
from steelyard.retrievers import FETCHED
from steelyard.signals import PRIORS

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
            "'ftz'; did you mean 'fts'?",
            "min_results = -1",
            "'vectr'; did you mean 'vector'?",
            "unknown signal or fusion 'graph_'",
            "'bm52'; did you mean 'bm25'?",
            "weight -2 is outside",
            "k = x must be a number",
            "unknown option 'bonuss'; did you mean 'bonus'?",
        ]
        assert [fragment for fragment in fragments if fragment not in message] == []


class TestGrammar:
    def test_a_call_is_a_tree_of_items_and_options(self):
        item = parse_call("0.5*rrf(fts, 2*vector, k=60, bonus=times(0.1), half_life=69h, relax=[1, .5])")

        assert item == Item(
            0.5,
            Call(
                "rrf",
                (Item(None, Call("fts")), Item(2.0, Call("vector"))),
                (
                    ("k", 60.0),
                    ("bonus", Item(None, Call("times", (Item(0.1, Call("")),)))),
                    ("half_life", Duration(69.0, "h")),
                    ("relax", (1.0, 0.5)),
                ),
            ),
        )
        assert parse_call(str(item)) == item
