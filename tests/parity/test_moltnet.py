"""The comparison with MoltNet sees what it is there to see."""

import importlib.util
import sys
from copy import copy, deepcopy
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("parity_report", Path(__file__).with_name("report.py"))
report = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(report)


@pytest.fixture(scope="module")
def moltnet():
    """The module with the groups."""
    report.cases_of("moltnet")
    return sys.modules["moltnet"]


@pytest.fixture(scope="module")
def recording(moltnet, oracle_root):
    return moltnet.Recording(oracle_root)


# Changes of (the recorded query, its recorded rows)


def nothing(query, rows):
    pass


def a_score_off_by_two_billionths(query, rows):
    rows[0][3] += 2e-9


def two_rows_swapped(query, rows):
    rows[0], rows[1] = rows[1], rows[0]


def the_last_row_lost(query, rows):
    rows.pop()


def a_row_twice(query, rows):
    rows[1] = rows[0]


def a_rank_that_is_not_of_the_tie(query, rows):
    """By words 67 and 336 come first, each alone; their places are exchanged."""
    first, second = (next(row for row in rows if row[0] == n) for n in (67, 336))
    for row, rank in ((first, 2), (second, 1)):
        row[2] = 1 / (60 + rank)
        row[3] = row[1] + row[2]


def a_keyword_rank_off(query, rows):
    query["fts"][0][1] *= 1 + 2e-6


def a_match_lost(query, rows):
    query["fts"].pop()


def one_match_more(query, rows):
    query["fts_total"] += 1


def a_distance_off(query, rows):
    query["vec"][2][1] += 2e-6


def two_neighbours_swapped(query, rows):
    query["vec"][2:4] = reversed(query["vec"][2:4])


def two_distances_swapped(query, rows):
    near = query["vec"]
    near[2][1], near[3][1] = near[3][1], near[2][1]


def another_weight(query, rows):
    query["w_recency"] += 1e-6


def another_scope(query, rows):
    query["diaries"], query["teams"] = ["D4"], None


def another_filter(query, rows):
    query["exclude_superseded"] = True


@pytest.mark.parametrize(
    ("change", "qid", "group"),
    [
        (a_score_off_by_two_billionths, "m120", "fusion_of_recorded_lists"),
        (a_score_off_by_two_billionths, "m120", "end_to_end"),
        (two_rows_swapped, "m120", "end_to_end"),
        (the_last_row_lost, "m120", "fusion_of_recorded_lists"),
        (the_last_row_lost, "m028", "end_to_end"),
        (a_row_twice, "m120", "end_to_end"),
        (a_rank_that_is_not_of_the_tie, "m140", "fusion_of_recorded_lists"),
        (a_rank_that_is_not_of_the_tie, "m140", "end_to_end"),
        (a_keyword_rank_off, "m140", "keyword_lists"),
        (a_match_lost, "m140", "end_to_end"),
        (one_match_more, "m140", "keyword_lists"),
        (a_distance_off, "m140", "vector_lists"),
        (two_neighbours_swapped, "m140", "vector_lists"),
        (two_distances_swapped, "m140", "fusion_of_recorded_lists"),
        (another_weight, "m088", "end_to_end"),
        (another_scope, "m140", "vector_lists"),
        (another_scope, "m140", "end_to_end"),
        (another_filter, "m138", "keyword_lists"),
        (another_filter, "m138", "end_to_end"),
    ],
)
def test_what_is_altered_differs(moltnet, recording, change, qid, group):
    assert verdicts(moltnet, recording, nothing, qid, group) == [""]
    [verdict] = verdicts(moltnet, recording, change, qid, group)
    assert verdict.startswith("differs: ")


def verdicts(moltnet, recording, change, qid, group):
    """What one group says of one case after a change of the recording."""
    altered = copy(recording)
    altered.runs = {qid: deepcopy(recording.runs[qid])}
    [query] = [deepcopy(query) for query in recording.queries if query["qid"] == qid]
    change(query, altered.runs[qid])
    return [verdict for verdict, _ in getattr(moltnet, group)(moltnet.Case(altered, query))]
