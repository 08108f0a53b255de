"""Every system equals its recording, except where a named reason leaves a case out, and the comparison sees.

`make parity` prints the same counts as a table.
"""

import gzip
import json
import math
from copy import copy, deepcopy

import echovault
import echovault_recording
import moltnet
import pytest
import report
import soleri
import soleri_recording
from verdicts import LEAST


@pytest.fixture(scope="module", params=report.SYSTEMS, ids=":".join)
def counted(request, oracle_root):
    return request.param, report.rows_of(request.param, oracle_root)


def test_nothing_differs_without_a_reason_and_every_group_compares_enough(counted):
    system, rows = counted
    assert [f"{row.group}, {case}" for row in rows for case in row.differing] == []
    expected = LEAST[" ".join(system)]
    assert {row.group: row.equal >= expected[row.group] for row in rows} == dict.fromkeys(expected, True)


# Recordings that were altered


def swapped(rows, one=0, other=1):
    rows[one], rows[other] = rows[other], rows[one]


def put(holder, key, change):
    holder[key] = change(holder[key])


@pytest.fixture
def altered(oracle_root, tmp_path, monkeypatch):
    def run(change, profile):
        system = ("echovault", profile)
        monkeypatch.setattr(report, "SYSTEMS", {system: report.SYSTEMS[system]})
        recorded = json.loads(gzip.decompress((oracle_root / "echovault.json.gz").read_bytes()))
        change(recorded["runs"]["seed_era"])
        (tmp_path / "echovault.json.gz").write_bytes(gzip.compress(json.dumps(recorded).encode()))
        monkeypatch.setenv("STEELYARD_ORACLES", str(tmp_path))
        return report.main()

    return run


BOTH = {
    "keyword lists, e003 fts_pool": lambda r: put(r["runs"]["e003"]["fts_pool"][4], 1, lambda v: v * (1 + 1e-6)),
    "vector lists, e018 vec_pool": lambda r: swapped(r["runs"]["e018"]["vec_pool"], 2, 3),
}
SHIPPED = {
    "context, call 1": lambda r: r["context"][0]["out"].pop(),
    "recorded pools, e018 tiered": lambda r: put(r["runs"]["e018"]["tiered"][1], 1, lambda v: v * (1 + 2e-9)),
    "scenarios, delete: vectors after": lambda r: r["scenarios"]["delete"]["vec_after"].append([999, -0.14]),
}
DIFFERENCES = {"documented": BOTH, "shipped": BOTH | SHIPPED}


@pytest.mark.parametrize("profile", DIFFERENCES)
def test_the_report_fails_on_differences_and_names_each(altered, profile, capsys):
    changes = DIFFERENCES[profile]
    assert altered(lambda recorded: [change(recorded) for change in changes.values()], profile) == 1
    printed = capsys.readouterr().out.splitlines()
    for case in changes:
        assert any(line.startswith(f"DIFFERS echovault:{profile} {case}") for line in printed), case
    told = sum(line.startswith("DIFFERS ") for line in printed)  # the pool of a query stands in several groups
    assert f" {told} differ, " in printed[-1]


def topup_by_configuration(recorded):
    """The call that turned topping up off by an argument, as one that did so by configuration."""
    case = next(case for case in recorded["context"] if case["args"].get("topup_recent") is False)
    del case["args"]["topup_recent"]
    case["args"]["semantic_mode"] = "never"
    case["label"] = "config topup_recent=false"


def test_topping_up_may_be_turned_off_by_configuration(altered, capsys):
    assert altered(topup_by_configuration, "shipped") == 0
    assert " 0 differ, " in capsys.readouterr().out.splitlines()[-1]


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
    assert echovault_recording.settings(*call) == expected


def test_expected_cosines_are_in_the_order_of_the_cosines():
    """|a - b|^2 = |a|^2 + |b|^2 - 2ab: of two vectors with nearly one cosine the shorter one can be nearer."""
    fixture = object.__new__(echovault.Documented)
    asked, long, short = [1.0, 0.0], [0.8 * 1.00001, 0.6 * 1.00001], [0.8 - 4e-6, 0.6]
    fixture.asked, fixture.stored = {"x": asked}, {"00001": long, "00002": short}
    pool = [[row, 1.0 - math.dist(asked, vector)] for row, vector in ((1, long), (2, short))]
    pool.sort(key=lambda row: -row[1])
    found = fixture.near("x", pool)
    expected = [(id_, v[0] / math.hypot(*v)) for id_, v in fixture.stored.items()]
    assert [row for row, _ in pool] == [2, 1]  # by distance
    assert [id_ for id_, _ in found] == ["00001", "00002"]  # by cosine
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-12)


def test_the_report_says_that_it_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STEELYARD_ORACLES", str(tmp_path / "absent"))
    assert report.main() == 0
    assert capsys.readouterr().out.startswith("skipped: ")


# MoltNet: changes of (the recorded query, its recorded rows)


def a_rank_that_is_not_of_the_tie(query, rows):
    """By words 67 and 336 come first, each alone; their places are exchanged."""
    first, second = (next(row for row in rows if row[0] == n) for n in (67, 336))
    for row, rank in ((first, 2), (second, 1)):
        row[2] = 1 / (60 + rank)
        row[3] = row[1] + row[2]


def two_distances_swapped(query, rows):
    near = query["vec"]
    near[2][1], near[3][1] = near[3][1], near[2][1]


FUSION, END, WORDS, NEAR = "fusion_of_recorded_lists", "end_to_end", "keyword_lists", "vector_lists"
OFF, LOST = lambda query, rows: put(rows[0], 3, lambda v: v + 2e-9), lambda query, rows: rows.pop()
ELSEWHERE = lambda query, rows: query.update(diaries=["D4"], teams=None)  # noqa: E731 -- a row of what follows
FILTERED = lambda query, rows: query.update(exclude_superseded=True)  # noqa: E731 -- as above
MOLTNET = [
    *((OFF, "m120", group) for group in (FUSION, END)),
    (lambda query, rows: swapped(rows), "m120", END),
    *((LOST, "m120", FUSION), (LOST, "m028", END)),
    (lambda query, rows: put(rows, 1, lambda _: rows[0]), "m120", END),
    *((a_rank_that_is_not_of_the_tie, "m140", group) for group in (FUSION, END)),
    (lambda query, rows: put(query["fts"][0], 1, lambda v: v * (1 + 2e-6)), "m140", WORDS),
    (lambda query, rows: query["fts"].pop(), "m140", END),
    (lambda query, rows: put(query, "fts_total", lambda v: v + 1), "m140", WORDS),
    (lambda query, rows: put(query["vec"][2], 1, lambda v: v + 2e-6), "m140", NEAR),
    (lambda query, rows: swapped(query["vec"], 2, 3), "m140", NEAR),
    (two_distances_swapped, "m140", FUSION),
    (lambda query, rows: put(query, "w_recency", lambda v: v + 1e-6), "m088", END),
    *((ELSEWHERE, "m140", group) for group in (NEAR, END)),
    *((FILTERED, "m138", group) for group in (WORDS, END)),
]


@pytest.fixture(scope="module")
def moltnets(oracle_root):
    return moltnet.Recording(oracle_root)


@pytest.mark.parametrize(("change", "qid", "group"), MOLTNET)
def test_what_is_altered_differs(moltnets, change, qid, group):
    def verdicts(change):
        altered = copy(moltnets)
        altered.runs = {qid: deepcopy(moltnets.runs[qid])}
        [query] = [deepcopy(query) for query in moltnets.queries if query["qid"] == qid]
        change(query, altered.runs[qid])
        altered.queries = [query]
        return [verdict for _, (verdict, _) in getattr(moltnet, group)(altered)]

    assert verdicts(lambda *_: None) == [""]
    [verdict] = verdicts(change)
    assert verdict.startswith("differs: ")


# Soleri


def a_blank_query_that_finds(recorded):
    blank = next(run for run in recorded["brain"] if not run["query"].strip())
    blank["results"], blank["n"] = recorded["brain"][0]["results"], 30


def off(value):
    return value + 1e-6


SOLERI = [
    (lambda r: put(r["brain"][3]["results"][0]["b"], "semantic", off), "rankings", "semantic is"),
    (lambda r: swapped(r["hybrid"]["runs"][0]["results"]), "hybrid rankings", "scores are not in order"),
    (
        lambda r: put(r["fts"][0]["results"][-1], 0, lambda _: "i18n-entry-314"),
        "keyword lists",
        "314 is no candidate",
    ),
    (lambda r: r["scan"][0]["results"].pop(0), "scan", "29 expected, 30 here"),
    (lambda r: r["brain_with_timestamps"][0]["results"].pop(), "with timestamps", "30 expected, 29 here"),
    (
        lambda r: put(own := r["hybrid"]["cosine"][0]["top"], 1, lambda _: own[0]),
        "nearest vectors",
        "an id appears twice",
    ),
    (lambda r: put(r["manager"]["brain"][0], "n", lambda n: n + 1), "federated rankings", "31 expected, 30 here"),
    (
        lambda r: put(r["manager"]["search"][0]["results"][0], 2, lambda _: "team"),
        "federated lists",
        "source is 'team', here 'ext-high'",
    ),
    (lambda r: r["op"]["runs"][0]["results"].pop(0), "search operation", "19 expected, 20 here"),
    (
        lambda r: put(r["op"]["runs"][4]["results"][0], "snippet", lambda _: "x"),
        "search operation",
        "snippet is 'x'",
    ),
    (lambda r: put(r["adaptive"][1]["weights"], "severity", off), "weights", "severity is"),
    (a_blank_query_that_finds, "rankings", "expected, [] here"),
]


@pytest.fixture(scope="module")
def soleris(oracle_root):
    return soleri.Fixture(oracle_root)


@pytest.mark.parametrize(("change", "group", "said"), SOLERI)
def test_an_altered_recording_differs_in_one_case_that_is_named(soleris, change, group, said):
    altered = copy(soleris)
    altered.recorded = deepcopy(soleris.recorded)
    change(altered.recorded)
    verdicts = [verdict for _, (verdict, _) in getattr(soleri, group.replace(" ", "_"))(altered)]
    (differing,) = filter(None, verdicts)
    assert differing.startswith("differs: ")
    assert said in differing


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        # Ties change places and stand for each other.
        *((ids, "") for ids in ("abcd", "adcb", "abce", "abde", "acd", "ab", "ac", "a")),
        *(("bacd", "not in order"), ("aabc", "twice"), ("ace", "b is missing"), ("b", "a is missing")),
        ("abcde", "2 of ['c', 'd', 'e'] are candidates"),  # and three are there
        ("abe", "2 of ['c', 'd', 'e'] are candidates"),  # of which c or d would stand before e
    ],
)
def test_what_no_choice_among_ties_explains_differs(ids, said):
    """a, at 3, and b, at 2, stand above the cut; c at 2, d at 2 and e at 1 are tied at it, for two places."""
    values = {id_: {"score": score} for id_, score in zip("abcde", (3.0, 2.0, 2.0, 2.0, 1.0), strict=True)}
    pool = soleri_recording.Pool(values, {"a", "b"}, [({"c", "d", "e"}, 2)])
    verdict = pool.verdict([(id_, values[id_]) for id_ in ids])[0]
    assert (said in verdict) and bool(said) == bool(verdict)
