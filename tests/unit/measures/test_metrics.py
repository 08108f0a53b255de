"""Expected values come from pytrec_eval, ir_measures and hand derivations."""

import math

import numpy as np
import pytest
import pytrec_eval
from by_trec_eval import oracle
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steelyard.base.errors import ConfigError, DataError
from steelyard.memory.entry import Entry, Relation
from steelyard_eval.compare.tables import Succession
from steelyard_eval.measures.metrics import Judgments, Measure, evaluate, parse_measures
from steelyard_eval.measures.runs import run_lines, write_run

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


@settings(max_examples=150, deadline=None)
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
    # ir_measures divides by zero on an empty list, and gives 0 to a query that the run does not have.
    run = {
        f"q{i}": {ENTRIES[e]: float(-rank) for rank, e in enumerate(ranked)}
        for i, ranked in enumerate(lists)
        if ranked
    }
    qrels = {f"q{i}": row for i, row in enumerate(grades)}
    measures = [ir_measures.Judged @ k for k in (1, 3, 10, 20)]
    theirs = {(str(m.measure), m.query_id): m.value for m in ir_measures.iter_calc(measures, qrels, run)}

    mine = values(lists, grades, [str(measure) for measure in measures])

    assert {(name, f"q{i}"): v for name, row in mine.items() for i, v in enumerate(row)} == pytest.approx(theirs)


def test_hand_derived_values():
    # Grades by rank: 0, 2, unjudged, 1; a third relevant id (grade 3) is not in the corpus.
    grades = {"e0": 0, "e1": 2, "e3": 1, "lost1": 3}
    found = values([[0, 1, 2, 3]], [grades], ["nDCG@4", "nDCG@2", "AP", "AP@2", "R@4", "RR", "P@10", "Judged@10"])
    dcg2 = 2 / math.log2(3)
    assert found["nDCG@2"][0] == pytest.approx(dcg2 / (3 + 2 / math.log2(3)))
    assert found["nDCG@4"][0] == pytest.approx((dcg2 + 1 / math.log2(5)) / (3 + 2 / math.log2(3) + 1 / 2))
    assert found["AP"][0] == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert found["AP@2"][0] == pytest.approx((1 / 2) / 3)
    assert found["R@4"][0] == pytest.approx(2 / 3)
    assert found["RR"][0] == 0.5
    assert found["P@10"][0] == pytest.approx(2 / 10)  # by k, though only 4 were returned
    assert found["Judged@10"][0] == pytest.approx(3 / 4)  # by what was returned


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


def test_no_judgments_are_those_of_labels_that_say_nothing():
    made, known = Judgments.none(2, 12), Judgments.of({}, ["q0", "q1"], ENTRIES)
    assert made.width == known.width
    for name in ("key", "grade", "judged", "relevant", "start", "ideal"):
        np.testing.assert_array_equal(getattr(made, name), getattr(known, name), strict=True)


def test_oracle_breaks_ties_as_trec_eval_does_also_at_the_cut():
    # Equal scores: ids descend, so the order is b, a.
    run, qrels = {"q": {"a": 1.0, "b": 1.0}}, {"q": {"a": 1}, "unanswered": {"a": 1}, "unjudged": {}}
    found = oracle(run, qrels, parse_measures(["RR@1", "RR@2", "P@1", "Judged@1", "RecallAny@1"]))
    assert {str(m): row for m, row in found.items()} == {
        "RR@1": {"q": 0.0, "unanswered": 0.0},
        "RR@2": {"q": 0.5, "unanswered": 0.0},
        "P@1": {"q": 0.0, "unanswered": 0.0},
    }
    assert oracle(run, qrels, parse_measures(["Judged@1"])) == {}


def test_names_are_those_of_ir_measures():
    import ir_measures as ir

    theirs = [ir.nDCG @ 10, ir.R @ 10, ir.RR @ 10, ir.AP @ 10, ir.AP, ir.P @ 5, ir.Success @ 5, ir.Judged @ 10]
    theirs += [ir.nDCG, ir.RR, ir.MRR @ 3, ir.MAP, ir.Recall @ 2, ir.NDCG @ 4, ir.Precision @ 6]
    written = [*map(str, theirs[:10]), "MRR@3", "MAP", "Recall@2", "NDCG@4", "Precision@6"]
    assert [str(measure) for measure in parse_measures(written)] == list(dict.fromkeys(map(str, theirs)))


def test_all_bad_names_are_reported_at_once():
    bad = {
        "Succes@5": "did you mean 'Success@5'?",
        "ndgc@10": "did you mean 'nDCG@10'?",
        "rprec": "valid: AP, Judged,",
        "zzz": "valid: AP, Judged,",
        "P(rel=2)@5": "did you mean 'P@5'?",
        "P": "cutoff is required; did you mean 'P@10'?",
        "RecallAny": "cutoff is required",
        "nDCG@0": "whole number from 1",
        "R@-3": "whole number from 1",
        "AP@1.5": "whole number from 1",
        "RR@": "whole number from 1",
        "nDCG@\u0663": "whole number from 1",
        "": "no such measure",
        "nDCG@10 RR": "whole number from 1",
    }
    with pytest.raises(ConfigError) as caught:
        parse_measures(["AP", *bad])
    lines = str(caught.value).removeprefix("metric ").split("; metric ")
    assert len(lines) == len(bad)
    for line, (name, remedy) in zip(lines, bad.items(), strict=True):
        assert line.strip().startswith(ascii(name)) and remedy in line


def test_run_file_reads_back_in_the_same_order(tmp_path):
    path = tmp_path / "echovault.documented.run"
    write_run(path, ["q1", "empty", "q2"], *csr([[3, 1, 2], [], [0]]), ENTRIES, "echovault")
    assert path.read_bytes() == (
        b"q1 Q0 e3 1 3 echovault\nq1 Q0 e1 2 2 echovault\nq1 Q0 e2 3 1 echovault\nq2 Q0 e0 1 1 echovault\n"
    )
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "a.run"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):  # a lone surrogate has no UTF-8
        write_run(path, ["q"], *csr([[0]]), ["\ud800"], "tag")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.run"]


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


FACTS = Succession.of(
    [
        Entry("first", superseded_by="second", created_at=1.0),
        Entry("second", created_at=2.0),
        Entry("third", created_at=3.0, relations=(Relation("supersedes", "second"),)),
        Entry("proposed", relations=(Relation("supersedes", "plain", status="proposed"),)),
        Entry("rule", valid_until=5.0),
        Entry("plain"),
        Entry("torn", superseded_by="nowhere"),
    ]
)


@pytest.mark.parametrize(
    ("ids", "clock", "stale"),
    [
        (["first", "second", "third"], 9.0, ["first", "second"]),
        (["third", "second", "first"], 9.0, []),
        (["second", "first", "third"], 9.0, ["second"]),  # for first, second stands above it
        (["third", "first"], 9.0, []),  # third came after what took the place of first
        (["first", "second"], 2.0, ["first"]),  # third was not there yet, so second was current
        (["first"], 1.5, []),
        (["rule"], 4.9, []),
        (["rule"], 5.0, ["rule"]),  # valid before valid_until
        (["plain", "torn", "proposed", "unknown"], 9.0, []),
    ],
)
def test_what_is_stale_has_nothing_above_it_that_took_its_place(ids, clock, stale):
    assert FACTS.stale(ids, clock) == stale


def test_entries_that_replace_each_other_end():
    turn = Succession.of([Entry("a", superseded_by="b"), Entry("b", superseded_by="a")])
    assert turn.stale(["a", "b"], 0.0) == ["a"]


def test_a_corpus_without_such_facts_has_nothing_to_say():
    assert not Succession.of([Entry("a"), Entry("b", superseded_by="a", created_at=3.0)]).ends
    assert not Succession.of([Entry("a"), Entry("b", superseded_by="elsewhere")])
