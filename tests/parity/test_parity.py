"""Every system equals its recording, except where a named reason leaves a case out, and the comparison sees.

`make parity` prints the same counts as a table.
"""

from copy import copy, deepcopy
from functools import cache

import echovault
import echovault_recording
import echovault_service
import echovault_shipped
import moltnet
import pytest
import report
import soleri
from tests.unit.tabled import tabled
from verdicts import LEAST


@pytest.fixture(scope="module", params=report.SYSTEMS, ids=":".join)
def counted(request, oracle_root):
    return request.param, report.rows_of(request.param, oracle_root)


def test_nothing_differs_without_a_reason_and_every_group_compares_enough(counted):
    system, rows = counted
    assert [f"{row.group}, {case}" for row in rows for case in row.differing] == []
    expected = LEAST[" ".join(system)]
    assert {row.group: row.equal >= expected[row.group] for row in rows} == dict.fromkeys(expected, True)


def test_the_report_names_what_differs_and_says_that_it_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STEELYARD_ORACLES", str(tmp_path))
    found = [("a", ("differs: b", 0.5)), ("c", ("", 0.0)), ("d", ("left out: e", 0.0))]
    monkeypatch.setattr(report, "SYSTEMS", {("soleri", "shipped"): ()})
    every = dict.fromkeys(LEAST["soleri shipped"], (lambda _: found, None))
    monkeypatch.setattr(report, "groups_of", lambda *_: every)
    assert report.main() == 1
    printed = capsys.readouterr().out.splitlines()
    groups = len(LEAST["soleri shipped"])
    assert printed.count("DIFFERS soleri:shipped tokens, a: b") == 1
    assert sum(line.startswith("DIFFERS ") for line in printed) == groups
    assert f" {groups} differ, {groups} left out" in printed[-1]
    monkeypatch.setenv("STEELYARD_ORACLES", str(tmp_path / "absent"))
    assert (report.main(), capsys.readouterr().out[:9]) == (0, "skipped: ")


# Recordings that were altered: change, group, and what is said of it


def swapped(rows, one=0, other=1):
    rows[one], rows[other] = rows[other], rows[one]


def put(holder, key, change):
    holder[key] = change(holder[key])


def times(factor):
    return lambda value: value * factor


def plus(step):
    return lambda value: value + step


BOTH = [
    (lambda r: put(r["runs"]["e003"]["fts_pool"][4], 1, times(1 + 1e-6)), "keyword_lists", "e003 fts_pool"),
    (lambda r: swapped(r["runs"]["e018"]["vec_pool"], 2, 3), "vector_lists", "e018 vec_pool"),
]
SHIPPED = [
    (lambda r: r["context"][0]["out"].pop(), "context", "call 1"),
    (lambda r: put(r["runs"]["e018"]["tiered"][1], 1, times(1 + 2e-9)), "recorded_pools", "e018 tiered"),
    (lambda r: r["scenarios"]["delete"]["vec_after"].append([999, -0.14]), "scenarios", "delete: vectors after"),
]


# MoltNet: changes of (the recorded query, its recorded rows)


def a_rank_that_is_not_of_the_tie(query, rows):
    """By words 67 and 336 come first, each alone; their places are exchanged."""
    for n, rank in ((67, 2), (336, 1)):
        row = next(row for row in rows if row[0] == n)
        row[2] = 1 / (60 + rank)
        row[3] = row[1] + row[2]


def two_distances_swapped(query, rows):
    near = query["vec"]
    near[2][1], near[3][1] = near[3][1], near[2][1]


FUSION, END, WORDS, NEAR = "fusion_of_recorded_lists", "end_to_end", "keyword_lists", "vector_lists"
MOLTNET = [
    (lambda query, rows: put(rows[0], 3, plus(2e-9)), "m120", FUSION, END),
    (lambda query, rows: swapped(rows), "m120", END),
    (lambda query, rows: rows.pop(), "m120", FUSION),
    (lambda query, rows: rows.pop(), "m028", END),
    (lambda query, rows: put(rows, 1, lambda _: rows[0]), "m120", END),
    (a_rank_that_is_not_of_the_tie, "m140", FUSION, END),
    (lambda query, rows: put(query["fts"][0], 1, times(1 + 2e-6)), "m140", WORDS),
    (lambda query, rows: query["fts"].pop(), "m140", END),
    (lambda query, rows: put(query, "fts_total", plus(1)), "m140", WORDS),
    (lambda query, rows: put(query["vec"][2], 1, plus(2e-6)), "m140", NEAR),
    (lambda query, rows: swapped(query["vec"], 2, 3), "m140", NEAR),
    (two_distances_swapped, "m140", FUSION),
    (lambda query, rows: put(query, "w_recency", plus(1e-6)), "m088", END),
    (lambda query, rows: query.update(diaries=["D4"], teams=None), "m140", NEAR, END),
    (lambda query, rows: query.update(exclude_superseded=True), "m138", WORDS, END),
]


def a_blank_query_that_finds(recorded):
    blank = next(run for run in recorded["brain"] if not run["query"].strip())
    blank["results"], blank["n"] = recorded["brain"][0]["results"], 30


def twice(recorded):
    own = recorded["hybrid"]["cosine"][0]["top"]
    own[1] = own[0]


OFF = plus(1e-6)
SOLERI = [
    (lambda r: put(r["brain"][3]["results"][0]["b"], "semantic", OFF), "rankings", "semantic is"),
    (lambda r: swapped(r["hybrid"]["runs"][0]["results"]), "hybrid_rankings", "scores are not in order"),
    (lambda r: put(r["fts"][0]["results"][-1], 0, lambda _: "x"), "keyword_lists", "x is no candidate"),
    (lambda r: r["scan"][0]["results"].pop(0), "scan", "29 expected, 30 here"),
    (lambda r: r["brain_with_timestamps"][0]["results"].pop(), "with_timestamps", "30 expected, 29 here"),
    (twice, "nearest_vectors", "an id appears twice"),
    (lambda r: put(r["manager"]["brain"][0], "n", plus(1)), "federated_rankings", "31 expected, 30 here"),
    (lambda r: put(r["manager"]["search"][0]["results"][0], 2, lambda _: "team"), "federated_lists", "'ext-high'"),
    (lambda r: r["op"]["runs"][0]["results"].pop(0), "search_operation", "19 expected, 20 here"),
    (lambda r: put(r["op"]["runs"][4]["results"][0], "snippet", plus("x")), "search_operation", "snippet is"),
    (lambda r: put(r["adaptive"][1]["weights"], "severity", OFF), "weights", "severity is"),
    (a_blank_query_that_finds, "rankings", "expected, [] here"),
]


def of_query(qid, change):
    """A change of one recorded query of MoltNet and of its recorded rows; the others are left out."""

    def alter(fixture):
        fixture.runs = {qid: deepcopy(fixture.runs[qid])}
        fixture.queries = [deepcopy(query) for query in fixture.queries if query["qid"] == qid]
        change(fixture.queries[0], fixture.runs[qid])

    return alter


def of_recording(change):
    def alter(fixture):
        fixture.recorded = deepcopy(fixture.recorded)
        change(fixture.recorded)

    return alter


@cache
def opened(module, folder):
    return module.fixture(folder)


def altered(fixture, alter):
    own = copy(fixture)
    alter(own)
    return own


SERVICE = (echovault_shipped, echovault_service, echovault_recording)
ALTERED = [
    *(((echovault, echovault_recording), of_recording(change), *of) for change, *of in BOTH),
    *((SERVICE, of_recording(change), *of) for change, *of in BOTH + SHIPPED),
    *(((moltnet,), of_query(qid, change), group, qid) for change, qid, *groups in MOLTNET for group in groups),
    *(((soleri,), of_recording(change), *of) for change, *of in SOLERI),
]


@pytest.mark.parametrize(("modules", "change", "group", "said"), ALTERED)
def test_what_is_altered_differs_in_one_case_that_is_named(oracle_root, modules, change, group, said):
    fixture = altered(opened(modules[0], oracle_root), change)
    compared = next(getattr(module, group) for module in modules if hasattr(module, group))
    [(case, verdict)] = [(case, verdict) for case, (verdict, _) in compared(fixture) if verdict]
    assert verdict.startswith("differs: ") and said in f"{case}: {verdict}"


@tabled
def test_what_no_choice_among_ties_explains_differs(ids, said):
    """a, at 3, and b, at 2, stand above the cut; c at 2, d at 2 and e at 1 are tied at it, for two places."""
    values = {id_: {"score": score} for id_, score in zip("abcde", (3.0, 2.0, 2.0, 2.0, 1.0), strict=True)}
    pool = soleri.Pool(values, {"a", "b"}, [({"c", "d", "e"}, 2)])
    verdict = pool.verdict([(id_, values[id_]) for id_ in ids])[0]
    assert (said in verdict) and bool(said) == bool(verdict)
