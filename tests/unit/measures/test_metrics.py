"""Expected values come from pytrec_eval, ir_measures and hand derivations."""

import itertools
import math
from math import sqrt

import numpy as np
import pytest
import pytrec_eval
import scipy.stats
from by_trec_eval import oracle
from hypothesis import example, given, settings, strategies as st
from shared import beside, tabled

from steelyard.base.errors import ConfigError, DataError
from steelyard.memory.entry import Entry, read_entry
from steelyard_eval.compare.result import Succession
from steelyard_eval.measures.metrics import Judgments, Measure, evaluate, known_mean, parse_measures
from steelyard_eval.measures.paired import _why, difference_interval, mean_interval, paired, verdict
from steelyard_eval.measures.spread import ROWS_PER_BLOCK, Interval, benjamini_hochberg, by_unit, holm, spread
from steelyard_eval.measures.trec_runs import run_lines, write_run

TABLES = beside(__file__)
ENTRIES = [f"e{i}" for i in range(12)]
OUTSIDE = ["lost1", "lost2", "lost3"]  # judged, but not in the corpus
TREC = [f"{family}@{k}" for family in ("nDCG", "R", "AP", "P", "Success", "RR") for k in range(1, 21)]
TREC += ["nDCG", "AP", "RR"]


def csr(lists):
    lengths = [len(ranked) for ranked in lists]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return offsets, np.array([i for ranked in lists for i in ranked], dtype=np.int32)


def values(lists, grades, names):
    """Evaluate lists of entry numbers against one {id: grade} a query."""
    queries = [f"q{i}" for i in range(len(lists))]
    judgments = Judgments.of(dict(zip(queries, grades, strict=True)), queries, ENTRIES)
    found = evaluate(*csr(lists), judgments, parse_measures(names))
    return {str(measure): value for measure, value in found.items()}


ranked_lists = st.lists(st.integers(0, len(ENTRIES) - 1), unique=True, max_size=len(ENTRIES))
one_query_grades = st.dictionaries(st.sampled_from(ENTRIES + OUTSIDE), st.integers(0, 4), min_size=1)
cases = st.lists(st.tuples(ranked_lists, one_query_grades), min_size=1, max_size=6)


@settings(max_examples=75, deadline=None)
@given(cases)
@example([([], {"e0": 1})])
@example([([0, 1, 2], {"e0": 0, "e1": 0})])
@example([(list(range(12)), dict.fromkeys(ENTRIES, 4))])
@example([([0], {"lost1": 3, "lost2": 1})])
def test_equals_pytrec_eval_query_by_query_on_the_written_run(case):
    lists, grades = zip(*case, strict=True)
    queries = [f"q{i}" for i in range(len(lists))]
    qrels = dict(zip(queries, grades, strict=True))
    measures = parse_measures(TREC)
    mine = evaluate(*csr(lists), Judgments.of(qrels, queries, ENTRIES), measures)
    run = pytrec_eval.parse_run(run_lines(queries, *csr(lists), ENTRIES, "tag"))
    theirs = oracle(run, qrels, measures)
    assert set(theirs) == set(measures)
    for measure in measures:
        expected = [theirs[measure][query] for query in queries]
        np.testing.assert_allclose(mine[measure], expected, rtol=0, atol=1e-9, err_msg=str(measure))


@settings(max_examples=50, deadline=None)
@given(cases)
def test_judged_equals_ir_measures(case):
    import ir_measures

    lists, grades = zip(*case, strict=True)
    # ir_measures divides by zero on an empty list, and gives 0 to a query that the run does not have: not known.
    run = {
        f"q{i}": {ENTRIES[e]: float(-rank) for rank, e in enumerate(ranked)}
        for i, ranked in enumerate(lists)
        if ranked
    }
    qrels = {f"q{i}": row for i, row in enumerate(grades)}
    measures = [ir_measures.Judged @ k for k in (1, 3, 10, 20)]
    theirs = {(str(m.measure), m.query_id): m.value for m in ir_measures.iter_calc(measures, qrels, run)}

    mine = values(lists, grades, [str(measure) for measure in measures])

    for name, row in mine.items():
        assert [math.isnan(value) for value in row] == [not ranked for ranked in lists]
        assert {(name, f"q{i}"): v for i, v in enumerate(row) if lists[i]} == pytest.approx(
            {key: value for key, value in theirs.items() if key[0] == name and lists[int(key[1][1:])]}
        )
        # The mean over the queries of the run is the one that its authors compute of its file.
        some = [theirs[name, query] for query in run]
        assert known_mean(row) == pytest.approx(sum(some) / max(len(some), 1))


def test_hand_derived_values():
    # Grades by rank: 0, 2, unjudged, 1; a third relevant id (grade 3) is not in the corpus.
    grades = {"e0": 0, "e1": 2, "e3": 1, "lost1": 3}
    dcg2 = 2 / math.log2(3)
    expected = {
        "nDCG@2": dcg2 / (3 + 2 / math.log2(3)),
        "nDCG@4": (dcg2 + 1 / math.log2(5)) / (3 + 2 / math.log2(3) + 1 / 2),
        "AP": (1 / 2 + 2 / 4) / 3,
        "AP@2": (1 / 2) / 3,
        "R@4": 2 / 3,
        "RR": 0.5,
        "P@10": 2 / 10,  # by k, though only 4 were returned
        "Judged@10": 3 / 4,  # by what was returned
    }
    found = values([[0, 1, 2, 3]], [grades], [*expected])
    assert {name: value[0] for name, value in found.items()} == pytest.approx(expected)


def test_memory_sets_are_met_partly_or_wholly():
    grades = [{"e0": 1, "e1": 2}] * 2 + [{"e0": 1, "lost1": 1}, {"e0": 0}]
    found = values([[0, 2, 1], [2, 3], [0], [0]], grades, ["RecallAny@2", "RecallAll@2", "RecallAll@3"])
    assert found["RecallAny@2"].tolist() == [1, 0, 1, 0]
    assert found["RecallAll@2"].tolist() == [0, 0, 0, 0]
    assert found["RecallAll@3"].tolist() == [1, 0, 0, 0]  # the lost id can never be returned


def test_a_grade_below_zero_is_judged_without_gain():
    found = values([[0, 1]], [{"e0": -1, "e1": 2}], ["nDCG@2", "P@2", "Judged@2"])
    assert found["nDCG@2"][0] == pytest.approx(1 / math.log2(3))
    assert (found["P@2"][0], found["Judged@2"][0]) == (0.5, 1.0)
    (value,) = oracle({"q": {"e0": 2, "e1": 1}}, {"q": {"e0": -3, "e1": 2}}, [Measure("nDCG", 2)]).values()
    assert value["q"] == pytest.approx(1 / math.log2(3))


def test_a_query_without_judgments_scores_0_and_is_marked():
    judgments = Judgments.of({"q1": {"e0": 1}}, ["q0", "q1"], ENTRIES)
    found = evaluate(*csr([[0], [0]]), judgments, parse_measures(["nDCG@3", "Judged@3"]))
    assert judgments.judged.tolist() == [0, 1]
    assert [value.tolist() for value in found.values()] == [[0, 1], [0, 1]]


def test_names_are_those_of_ir_measures():
    import ir_measures as ir

    theirs = [ir.nDCG @ 10, ir.R @ 10, ir.RR @ 10, ir.AP @ 10, ir.AP, ir.P @ 5, ir.Success @ 5, ir.Judged @ 10]
    theirs += [ir.nDCG, ir.RR, ir.MRR @ 3, ir.MAP, ir.Recall @ 2, ir.NDCG @ 4, ir.Precision @ 6]
    written = [*map(str, theirs[:10]), "MRR@3", "MAP", "Recall@2", "NDCG@4", "Precision@6"]
    assert [str(measure) for measure in parse_measures(written)] == list(dict.fromkeys(map(str, theirs)))


def test_all_bad_names_are_reported_at_once():
    bad = TABLES["BAD"]
    with pytest.raises(ConfigError) as caught:
        parse_measures(["AP", *bad])
    lines = str(caught.value).removeprefix("metric ").split("; metric ")
    assert len(lines) == len(bad)
    for line, (name, remedy) in zip(lines, bad.items(), strict=True):
        assert line.strip().startswith(ascii(name)) and remedy in line


def test_run_file_reads_back_in_the_same_order(tmp_path):
    path = tmp_path / "echovault.documented.run"
    write_run(path, ["q1", "empty", "q2"], *csr([[3, 1, 2], [], [0]]), ENTRIES, "echovault")
    written = "q1 Q0 e3 1 3 echovault\nq1 Q0 e1 2 2 echovault\nq1 Q0 e2 3 1 echovault\nq2 Q0 e0 1 1 echovault\n"
    assert path.read_text() == written
    with pytest.raises(UnicodeEncodeError):  # a lone surrogate has no UTF-8: the old file is left, and no draft
        write_run(path, ["q"], *csr([[0]]), ["\ud800"], "tag")
    assert path.read_text() == written
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["two words", "", "tab\t", "line\n", "no\u00a0break", "sep\x1c"])
def test_ids_that_would_break_the_format_are_refused(tmp_path, name):
    with pytest.raises(DataError, match="1 do"):
        write_run(tmp_path / "a.run", ["q"], *csr([[0]]), [name, "an unused one"], "tag")
    assert not list(tmp_path.iterdir())


def test_long_lists_keep_their_order_in_float32():
    lists = [list(range(5000))[::-1]]
    entries = [f"{i:05}" for i in range(5000)]
    run = pytrec_eval.parse_run(run_lines(["q"], *csr(lists), entries, "t"))
    qrels = {"q": {entries[0]: 1}}  # the last of 5,000
    assert oracle(run, qrels, [Measure("RR", None)]) == {Measure("RR", None): {"q": 1 / 5000}}


@tabled
def test_what_is_stale_has_nothing_above_it_that_took_its_place(ids, clock, stale):
    assert Succession.of(read_entry(row)[0] for row in TABLES["ENTRIES"]).stale(ids, clock) == stale


def test_a_corpus_without_such_facts_has_nothing_to_say():
    assert not Succession.of([Entry("a"), Entry("b", superseded_by="a", created_at=3.0)]).ends
    assert not Succession.of([Entry("a"), Entry("b", superseded_by="elsewhere")])


def compared(challenger, baseline, groups=None, **more):
    return paired({"": challenger}, baseline, groups, **more)[""]


# In 2**-20ths, so that sums are exact: scipy counts ties with the mean without tolerance.
SKEWED = np.round(np.random.default_rng(7).beta(0.4, 1.6, size=60) * 2**20) / 2**20


@pytest.mark.parametrize("n", [2, 20, 60])
@pytest.mark.parametrize("level", [0.90, 0.95])
def test_interval_equals_scipys_t_interval(n, level):
    found = mean_interval(SKEWED[:n], level=level)
    theirs = scipy.stats.ttest_1samp(SKEWED[:n], 0).confidence_interval(level)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert found.mean == pytest.approx(SKEWED[:n].mean())


def test_grouped_interval_of_equal_groups_is_that_of_their_means():
    # With m queries in each group the ratio estimator is the plain mean of the group means.
    values = SKEWED.reshape(12, 5)
    theirs = scipy.stats.ttest_1samp(values.mean(axis=1), 0).confidence_interval()
    found = mean_interval(SKEWED, np.repeat(np.arange(12), 5).tolist())
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@tabled
def test_intervals_by_hand(kind, values, groups, mean, half):
    found = {"mean": mean_interval, "difference": difference_interval}[kind](values, groups)
    assert found.mean == pytest.approx(mean, abs=1e-12)
    assert (found.high - mean, mean - found.low) == pytest.approx((half, half), rel=1e-6)


def test_many_differences_leave_little_to_an_unseen_one():
    assert difference_interval(SKEWED).high == pytest.approx(mean_interval(SKEWED).high, rel=5e-3)
    assert compared(SKEWED, np.zeros(60)).gain.high == difference_interval(SKEWED).high


@pytest.mark.parametrize("values", [[], [[0.1]], [0.1, float("nan")], [math.inf]])
def test_values_must_be_finite_and_one_a_query(values):
    with pytest.raises(ValueError, match="finite value per"):
        mean_interval(values)


def enumerated(sums):
    """Every sign pattern, added up one by one."""
    patterns = itertools.product((1, -1), repeat=len(sums))
    totals = [abs(sum(s * v for s, v in zip(signs, sums, strict=True))) for signs in patterns]
    return sum(total >= abs(sum(sums)) - 1e-9 for total in totals) / len(totals)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([-0.3, -0.1, 0.0, 0.1, 0.2, 0.7]), min_size=1, max_size=10))
def test_small_tests_are_exact(differences):
    zeros = np.zeros(len(differences))
    assert compared(differences, zeros, draws=1024).p == enumerated(differences)


def test_exact_test_equals_scipys_permutation_test():
    differences = np.array([0.31, -0.12, 0.22, 0.08, 0.45, -0.05, 0.19, 0.27])
    how = {"permutation_type": "samples", "n_resamples": np.inf, "vectorized": True}
    theirs = scipy.stats.permutation_test((differences,), lambda x, axis: x.mean(axis=axis), **how)
    assert compared(differences, np.zeros(8)).p == pytest.approx(theirs.pvalue, abs=1e-15)


def test_sampled_test_agrees_with_the_exact_one():
    differences = np.random.default_rng(3).normal(0.2, 0.5, size=16)
    exact = compared(differences, np.zeros(16), draws=2**16).p
    sampled = compared(differences, np.zeros(16), draws=2**16 - 1).p
    assert exact == enumerated(differences)
    assert sampled != exact
    assert sampled == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / 2**16))


def test_test_flips_whole_groups():
    differences, groups = [0.2, 0.1, 0.3, -0.1, 0.2, 0.4], list("aabbcc")
    assert compared(differences, np.zeros(6), groups).p == enumerated([0.3, 0.2, 0.6]) == 2 / 8


def test_sampled_test_keeps_its_level():
    rng = np.random.default_rng(11)
    rejected = sum(compared(rng.normal(size=25), np.zeros(25), draws=399).p <= 0.05 for _ in range(400))
    assert 7 <= rejected <= 35  # 20 expected, binomial sd 4.4


@tabled
def test_a_comparison_by_hand(challenger, baseline, groups, expected):
    found = compared(challenger, baseline, groups and list(groups), draws=9_999)
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected)
    assert found.gain.mean == pytest.approx(np.mean(np.subtract(challenger, baseline)), abs=1e-12)
    assert (found.gain.low is None) == (groups == "aa")  # of a single unit there is no interval
    assert challenger != baseline or found.gain.low == -found.gain.high


@tabled
def test_verdicts(gain, p_holm, detectable, margin, expected):
    assert verdict(Interval(*gain), p_holm, detectable, margin) == expected
    assert (_why(Interval(*gain), 0.01, 0.5, 1) is None) is (gain[1] <= 0 <= gain[2])


@tabled
def test_holm_on_the_textbook_example(ps, corrected):
    assert holm(ps).tolist() == pytest.approx(corrected)


def test_benjamini_hochberg_on_the_original_example():
    # Benjamini & Hochberg 1995, section 4.1: 15 comparisons, 4 discoveries at 0.05, where Bonferroni has 3.
    ps = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]  # fmt: skip  # noqa: E501 -- one list of the paper on one line
    found = benjamini_hochberg(ps)
    assert (found <= 0.05).sum() == 4
    assert found[3] == pytest.approx(0.0095 * 15 / 4)
    assert benjamini_hochberg([]).size == 0


def test_challengers_are_corrected_together():
    rng = np.random.default_rng(9)
    base = rng.random(40)
    challengers = {f"c{i}": base + rng.normal(shift, 0.2, 40) for i, shift in enumerate((0.0, 0.08, 0.12))}
    found = paired(challengers, base, draws=2000, seed=4)
    alone = {name: compared(values, base, draws=2000, seed=4) for name, values in challengers.items()}
    assert list(found) == list(challengers)
    for one, joint, p in zip(alone.values(), found.values(), holm([c.p for c in alone.values()]), strict=True):
        gain = Interval(one.gain.mean, one.gain.low, one.gain.high)
        assert (joint.gain, joint.p, joint.p_holm) == (one.gain, one.p, p)
        assert joint.verdict == verdict(gain, p, one.detectable)
    assert paired({}, base) == {}


def test_correction_can_take_a_verdict_back_and_says_why():
    # Six wins of six: two of 64 patterns are as extreme, and two challengers double that; the interval lacks 0.
    wins = np.array([0.5, 0.6, 0.4, 0.5, 0.6, 0.4])
    found = paired({"good": wins, "copy": wins}, np.zeros(6))
    assert (compared(wins, np.zeros(6)).verdict, compared(wins, np.zeros(6)).why) == ("better", None)
    for one in found.values():
        assert (one.p, one.p_holm, one.verdict, one.gain.low > 0) == (2 / 64, 4 / 64, "open", True)
        assert (one.why.key, one.why.facts) == ("p_proves_nothing", {"p": 2 / 64, "p_holm": 4 / 64, "tried": 2})


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
    values = np.random.default_rng(3).normal(size=(ROWS_PER_BLOCK + 2, 9)).astype(np.float32)
    found = spread(values)
    assert found.error == pytest.approx(scipy.stats.sem(values.astype(np.float64), axis=1))
    assert float(spread(values[0]).error) == pytest.approx(found.error[0])


@tabled
def test_sums_are_in_the_order_of_the_numbers_of_units_and_of_queries_where_each_is_its_own(
    values, unit, sums, counts
):
    found = by_unit(np.array(values), np.array(unit))
    assert [part.tolist() for part in found] == [sums, counts]
