"""Every system equals its recording, except where a named reason leaves a case out.

`make parity` prints the same counts as a table.
"""

import gzip
import importlib.util
import json
import math
import sys
from pathlib import Path

import pytest

# The folder is no package: the report is loaded by its path, and loads the systems by theirs.
_spec = importlib.util.spec_from_file_location("parity_report", Path(__file__).with_name("report.py"))
report = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(report)

LEAST = {
    ("echovault", "documented"): {
        "match expressions": 40,
        "keyword lists": 80,
        "keyword totals": 40,
        "vector lists": 80,
        "tiered by keywords": 25,
        "keywords alone": 80,
        "embedding calls": 40,
        "tiered by vectors": 20,
        "hybrid always": 40,
        "scaled vectors": 40,
        "min results": 20,
        "merge function": 8,
        "context": 20,
        "result form": 19,
        "scenarios": 14,
    },
    ("moltnet", "shipped"): {
        "tsvectors": 390,
        "tsqueries": 150,
        "negation flags": 150,
        "ranks of recorded vectors": 1700,
        "own analysis": 300,
        "keyword lists": 85,
        "vector lists": 85,
        "fusion of recorded lists": 90,
        "end to end": 91,
    },
    ("soleri", "shipped"): {
        "tokens": 35,
        "match expressions": 30,
        "tag overlap": 5,
        "keyword lists": 40,
        "expired too": 10,
        "vocabulary": 500,
        "rankings": 40,
        "with timestamps": 40,
        "scan": 10,
        "weights": 20,
        "adapted rankings": 10,
        "embedding": 200,
        "nearest vectors": 10,
        "hybrid rankings": 40,
        "federation": 5,
        "federated lists": 20,
        "federated rankings": 20,
        "search operation": 40,
    },
    ("cortex_mem", "shipped"): {
        "intents": 40,
        "directories": 10,
        "snippets": 12,
        "cosines": 4,
        "layered runs": 30,
        "semantic runs": 30,
    },
    ("echovault", "shipped"): {
        "match expressions": 50,
        "keyword lists": 100,
        "keyword totals": 50,
        "vector lists": 100,
        "recorded pools": 130,
        "tiered": 100,
        "keywords alone": 150,
        "hybrid always": 50,
        "scaled vectors": 90,
        "min results": 30,
        "merge function": 10,
        "context": 25,
        "result form": 20,
        "search tool": 6,
        "scenarios": 27,
    },
    ("spec_kit", "both"): {
        "stemmer": 70,
        "tokenize": 92,
        "stop words": 2,
        "sanitized": 47,
        "bm25": 99,
        "classified": 144,
        "keywords": 12,
        "fuzzy": 108,
        "fused shipped": 18,
        "fused js": 10,
        "simple fusion": 23,
        "intent weights": 7,
        "length penalties": 9,
        "reranked": 3,
        "cache and guard": 27,
        "spaced repetition": 23,
        "tables": 15,
        "coactivation": 9,
        "keyword lists": 46,
        "vector lists": 23,
        "fused lists": 42,
        "sorted again": 3,
    },
}
"""Fewest cases that must be equal, so that a recording that stopped being read is seen."""


@pytest.fixture(scope="module", params=report.SYSTEMS, ids=":".join)
def counted(request, oracle_root):
    return request.param, report.rows_of(request.param, oracle_root)


def test_nothing_differs_without_a_reason(counted):
    _, rows = counted
    assert [f"{row.group}, {case}" for row in rows for case in row.differing] == []


def test_every_group_compares_enough_cases(counted):
    system, rows = counted
    assert {row.group: row.equal >= LEAST[system][row.group] for row in rows} == dict.fromkeys(LEAST[system], True)


@pytest.fixture
def altered(oracle_root, tmp_path, monkeypatch):
    """The report's exit code on a recording of EchoVault that was altered, for one profile."""

    def run(change, profile):
        system = ("echovault", profile)
        monkeypatch.setattr(report, "SYSTEMS", {system: report.SYSTEMS[system]})
        recorded = json.loads(gzip.decompress((oracle_root / "echovault.json.gz").read_bytes()))
        change(recorded["runs"]["seed_era"])
        (tmp_path / "echovault.json.gz").write_bytes(gzip.compress(json.dumps(recorded).encode()))
        monkeypatch.setenv("STEELYARD_ORACLES", str(tmp_path))
        return report.main()

    return run


def off_by_a_millionth(recorded):
    recorded["runs"]["e003"]["fts_pool"][4][1] *= 1 + 1e-6


def two_places_swapped(recorded):
    pool = recorded["runs"]["e018"]["vec_pool"]
    pool[2], pool[3] = pool[3], pool[2]


def a_result_off_by_two_billionths(recorded):
    recorded["runs"]["e018"]["tiered"][1][1] *= 1 + 2e-9


def a_slot_kept(recorded):
    recorded["scenarios"]["delete"]["vec_after"].append([999, -0.14])


def a_row_less(recorded):
    recorded["context"][0]["out"].pop()


def nothing(recorded):
    pass


def topup_by_configuration(recorded):
    """The call that turned topping up off by an argument, as one that did so by configuration."""
    case = next(case for case in recorded["context"] if case["args"].get("topup_recent") is False)
    del case["args"]["topup_recent"]
    case["args"]["semantic_mode"] = "never"
    case["label"] = "config topup_recent=false"


def settings(call):
    report.cases_of("echovault_recording", "echovault_service", "echovault")
    return sys.modules["echovault_recording"].settings(*call)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("provider=openai", {}), ("auto", True)),
        (("config semantic=never", {}), ("never", True)),
        (("config topup_recent=false", {}), ("auto", False)),
        (("config topup_recent=false", {"topup_recent": True, "semantic_mode": "always"}), ("always", True)),
        (("config semantic=always, topup_recent=false", {}), ("always", False)),
    ],
)
def test_what_a_label_says_of_the_configuration_is_configuration(call, expected):
    assert settings(call) == expected


DIFFERENCES = {
    "documented": {
        off_by_a_millionth: "keyword lists, e003 fts_pool",
        two_places_swapped: "vector lists, e018 vec_pool",
        a_row_less: "context, call 1",
    },
    "shipped": {
        off_by_a_millionth: "keyword lists, e003 fts_pool",
        two_places_swapped: "vector lists, e018 vec_pool",
        a_result_off_by_two_billionths: "recorded pools, e018 tiered",
        a_slot_kept: "scenarios, delete: vectors after",
        a_row_less: "context, call 1",
    },
}


@pytest.mark.parametrize("profile", DIFFERENCES)
def test_the_report_fails_on_differences_and_names_each(altered, profile, capsys):
    assert altered(lambda recorded: [change(recorded) for change in DIFFERENCES[profile]], profile) == 1
    printed = capsys.readouterr().out.splitlines()
    for case in DIFFERENCES[profile].values():
        assert any(line.startswith(f"DIFFERS echovault:{profile} {case}") for line in printed), case
    told = sum(line.startswith("DIFFERS ") for line in printed)  # the pool of a query stands in several groups
    assert f" {told} differ, " in printed[-1]


@pytest.mark.parametrize("profile", ["documented", "shipped"])
def test_topping_up_may_be_turned_off_by_configuration(altered, profile, capsys):
    assert altered(topup_by_configuration, profile) == 0


def test_expected_cosines_are_in_the_order_of_the_cosines(oracle_root):
    """|a - b|^2 = |a|^2 + |b|^2 - 2ab: of two vectors with nearly one cosine the shorter one can be nearer."""
    cases = report.cases_of("echovault_recording", "echovault_service", "echovault")
    fixture = object.__new__(sys.modules[cases.__module__].Documented)
    asked, long, short = [1.0, 0.0], [0.8 * 1.00001, 0.6 * 1.00001], [0.8 - 4e-6, 0.6]
    fixture.asked, fixture.stored = {"x": asked}, {"00001": long, "00002": short}
    pool = [[row, 1.0 - math.dist(asked, vector)] for row, vector in ((1, long), (2, short))]
    pool.sort(key=lambda row: -row[1])
    found = fixture.cosines("x", pool)
    expected = [(id_, v[0] / math.hypot(*v)) for id_, v in fixture.stored.items()]
    assert [row for row, _ in pool] == [2, 1]  # by distance
    assert [id_ for id_, _ in found] == ["00001", "00002"]  # by cosine
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-12)


def test_the_report_ends_with_its_summary(altered, capsys):
    assert altered(nothing, "documented") == 0
    assert " 0 differ, " in capsys.readouterr().out.splitlines()[-1]


def test_the_report_says_that_it_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STEELYARD_ORACLES", str(tmp_path / "absent"))
    assert report.main() == 0
    assert capsys.readouterr().out.startswith("skipped: ")
