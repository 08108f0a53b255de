"""The comparison with Soleri sees what it is there to see."""

import importlib.util
import sys
from copy import copy, deepcopy
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("parity_report", Path(__file__).with_name("report.py"))
report = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(report)


@pytest.fixture(scope="module")
def soleri():
    """The module with the groups."""
    report.cases_of("soleri_recording", "soleri")
    return sys.modules["soleri"]


@pytest.fixture(scope="module")
def recording(soleri, oracle_root):
    return soleri.Fixture(oracle_root)


def a_factor_off(recorded):
    recorded["brain"][3]["results"][0]["b"]["semantic"] += 1e-6


def two_ranks_swapped(recorded):
    rows = recorded["hybrid"]["runs"][0]["results"]
    rows[0], rows[1] = rows[1], rows[0]


def a_row_that_was_not_found(recorded):
    recorded["fts"][0]["results"][-1][0] = "i18n-entry-314"


def the_best_row_lost(recorded):
    del recorded["scan"][0]["results"][0]


def the_last_row_lost(recorded):
    recorded["brain_with_timestamps"][0]["results"].pop()


def a_row_twice(recorded):
    rows = recorded["hybrid"]["cosine"][0]["top"]
    rows[1] = rows[0]


def one_result_more(recorded):
    recorded["manager"]["brain"][0]["n"] += 1


def another_tier(recorded):
    recorded["manager"]["search"][0]["results"][0][2] = "team"


def a_memory_lost(recorded):
    recorded["op"]["runs"][0]["results"].pop(0)


def another_snippet(recorded):
    recorded["op"]["runs"][4]["results"][0]["snippet"] = "x"


def a_weight_off(recorded):
    recorded["adaptive"][1]["weights"]["severity"] += 1e-6


def a_blank_query_that_finds(recorded):
    blank = next(run for run in recorded["brain"] if not run["query"].strip())
    blank["results"], blank["n"] = recorded["brain"][0]["results"], 30


@pytest.mark.parametrize(
    ("change", "group", "said"),
    [
        (a_factor_off, "rankings", "semantic is"),
        (two_ranks_swapped, "hybrid rankings", "the scores are not in order"),
        (a_row_that_was_not_found, "keyword lists", "i18n-entry-314 is no candidate"),
        (the_best_row_lost, "scan", "29 expected, 30 here"),
        (the_last_row_lost, "with timestamps", "30 expected, 29 here"),
        (a_row_twice, "nearest vectors", "an id appears twice"),
        (one_result_more, "federated rankings", "31 expected, 30 here"),
        (another_tier, "federated lists", "source is 'team', here 'ext-high'"),
        (a_memory_lost, "search operation", "19 expected, 20 here"),
        (another_snippet, "search operation", "snippet is 'x'"),
        (a_weight_off, "weights", "severity is"),
        (a_blank_query_that_finds, "rankings", "expected, [] here"),
    ],
)
def test_an_altered_recording_differs_in_one_case_that_is_named(soleri, recording, change, group, said):
    altered = copy(recording)
    altered.recorded = deepcopy(recording.recorded)
    change(altered.recorded)
    verdicts = [verdict for _, (verdict, _) in getattr(soleri, group.replace(" ", "_"))(altered)]
    (differing,) = filter(None, verdicts)
    assert differing.startswith("differs: ")
    assert said in differing


# a, at 3, and b, at 2, stand above the cut; c at 2, d at 2 and e at 1 are tied at it, for two places.


@pytest.fixture
def verdict(soleri):
    values = {id_: {"score": score} for id_, score in {"a": 3.0, "b": 2.0, "c": 2.0, "d": 2.0, "e": 1.0}.items()}
    pool = sys.modules["soleri_recording"].Pool(values, {"a", "b"}, [({"c", "d", "e"}, 2)])
    return lambda ids: pool.verdict([(id_, values[id_]) for id_ in ids])[0]


@pytest.mark.parametrize("ids", ["abcd", "adcb", "abce", "abde", "acd", "ab", "ac", "a"])
def test_ties_change_places_and_stand_for_each_other(verdict, ids):
    assert verdict(ids) == ""


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ("bacd", "not in order"),
        ("aabc", "twice"),
        ("ace", "b is missing"),
        ("b", "a is missing"),
        ("abcde", "2 of ['c', 'd', 'e'] are candidates"),  # and three are there
        ("abe", "2 of ['c', 'd', 'e'] are candidates"),  # of which c or d would stand before e
    ],
)
def test_what_no_choice_among_ties_explains_differs(verdict, ids, said):
    assert said in verdict(ids)
