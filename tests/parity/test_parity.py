"""Every system equals its recording, except where a named reason leaves a case out, and the comparison sees.

`make parity` prints the same counts as a table.
"""

from copy import copy
from functools import cache, reduce
from operator import getitem

import pytest
import report
import soleri
from tests.unit.shared import tabled
from verdicts import LEAST

GONE = object()


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


@cache
def compared_of(system, folder):
    """A system's groups, each with the function that compares it and the recording that it is given."""
    return report.groups_of(tuple(system.split()), folder)


def read(recorded, path):
    return reduce(getitem, path, recorded)


def change(recorded, how, path, other=GONE):
    """What was recorded, with what a row of the table says done at a path; `other` may be another path."""
    old = read(recorded, path)
    match how:
        case "plus":
            new = old + other
        case "times":
            new = old * other
        case "without" | "is":
            new = other
        case "like" | "exchanged":
            new = read(recorded, other)
    return put(put(recorded, other, old) if how == "exchanged" else recorded, path, new)


def put(recorded, path, new):
    """A copy with another value at a path; what lies beside the path is not copied, which would take long."""
    own, (key, *below) = copy(recorded), path
    if below or new is not GONE:
        own[key] = put(own[key], below, new) if below else new
    else:
        del own[key]
    return own


def altered(fixture, said, changes):
    """With changes in a copy of what was recorded: of MoltNet one query and its rows, the others are left out."""
    own, whole = copy(fixture), hasattr(fixture, "recorded")
    queries = [] if whole else [query for query in own.queries if query["qid"] == said]
    recorded = own.recorded if whole else {"query": queries[0], "rows": own.runs[said]}
    for one in changes:
        recorded = change(recorded, *one)
    if whole:
        own.recorded = recorded
    else:
        own.queries, own.runs = [recorded["query"]], {said: recorded["rows"]}
    return own


@tabled
def test_what_is_altered_differs_in_one_case_that_is_named(oracle_root, system, groups, said, changes):
    for group in groups:
        compared, given = compared_of(system, oracle_root)[group]
        cases = compared(altered(given, said, changes))
        [(case, verdict)] = [(case, verdict) for case, (verdict, _) in cases if verdict]
        assert verdict.startswith("differs: ") and said in f"{case}: {verdict}"


@tabled
def test_what_no_choice_among_ties_explains_differs(ids, said):
    """a, at 3, and b, at 2, stand above the cut; c at 2, d at 2 and e at 1 are tied at it, for two places."""
    values = {id_: {"score": score} for id_, score in zip("abcde", (3.0, 2.0, 2.0, 2.0, 1.0), strict=True)}
    pool = soleri.Pool(values, {"a", "b"}, [({"c", "d", "e"}, 2)])
    verdict = pool.verdict([(id_, values[id_]) for id_ in ids])[0]
    assert (said in verdict) and bool(said) == bool(verdict)
