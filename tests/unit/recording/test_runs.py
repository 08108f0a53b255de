"""Kept runs: what is in them and what is not, hostile and read-only folders, writers at the same time."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner

import steelyard_eval as sy
from steelyard.base.errors import ConfigError, DataError
from steelyard.config.search_config import RetrieverConfig, SearchConfig
from steelyard.fusion import parse_strategy
from steelyard_eval.cli.commands.runs import runs as command
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import check
from steelyard_eval.recording.runs import FILE, FOLDER, TABLES, keep, kept
from steelyard_eval.show.report import write_report
from steelyard_eval.show.runs_kept import trends
from steelyard_eval.tune.replaced import keep_back

CORPUS = ['{"id": "m1", "text": "rotate the secret keys"}', '{"id": "m2", "text": "coffee"}']
NOISE = "which may be noise, as no values by query are kept; `steelyard compare` with the weights of both tells."


def untold(later, earlier):
    return f"Whether run {later} is better than run {earlier} cannot be told"


NOW = datetime(2026, 11, 23, 17, 40, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data set of two entries, with kept runs switched on and a cache of its own."""
    monkeypatch.delenv("STEELYARD_RUNS")
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "400")
    at = tmp_path / "mine"
    at.mkdir()
    (at / "dataset.json").write_text('{"name": "mine"}')
    (at / "corpus.jsonl").write_text("\n".join(CORPUS) + "\n")
    (at / "queries.jsonl").write_text('{"id": "q1", "text": "where are secrets"}\n')
    (at / "qrels.txt").write_text("q1 0 m1 2\n")
    return at


def document(mean=0.5, strategy="bm25", entries=("m1", "m2")):
    values = {"a": mean, "b": 0.4}
    lists = [{"label": label, "queries": {"q1": {"entries": list(entries)}}} for label in values]
    return {
        "tool": "steelyard 0.1.0", "primary": "nDCG@10", "baseline": "b", "limit": 10,
        "configurations": [{"label": label, "strategy": strategy} for label in values],
        "results": [{"label": label, "metric": "nDCG@10", "mean": own} for label, own in values.items()],
        "per_query": [{"id": "q1", "text": "where are secrets", "values": values}],
        "rankings": {"lists": lists},
    }  # fmt: skip


def test_a_comparison_is_kept_and_the_data_set_stays_what_it_was(folder):
    before = sy.load(folder).dataset.sha256
    sy.load(folder).compare("bm25, fts", timed=False)
    sy.load(folder).compare("bm25", timed=False)
    data = sy.load(folder)
    assert [(one.id, one.kind) for one in data.runs().runs] == [(1, "compare"), (2, "compare")]
    assert data.dataset.sha256 == before
    assert list(data.runs().to_frame()["best"]) == ["1.000", "1.000"]
    assert data.runs().plot().axes


def test_no_text_is_kept(folder):
    sy.load(folder).compare("bm25", timed=False)
    raw = (folder / FOLDER / FILE).read_bytes()
    assert b"secret" not in raw
    assert b"q1" in raw


def test_what_changed_is_told_by_part(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    keep(sy.load(folder).dataset, "compare", document(), now=lambda: NOW)
    now = [CORPUS[0], CORPUS[1].replace("coffee", "tea"), CORPUS[1].replace("m2", "m3")]
    (folder / "corpus.jsonl").write_text("\n".join(now) + "\n")
    (folder / "qrels.txt").write_text("q1 0 m1 1\nq1 0 m3 1\n")
    changed = document(0.75, "rrf(bm25, vector)", ("m2", "m1"))
    keep(sy.load(folder).dataset, "compare", changed, now=lambda: NOW)
    assert sy.load(folder).runs().changed(1, 2) == [
        f"{untold(2, 1)} (entries, labels, weights changed): of 2 contenders in both runs 1 rose (a by 0.2500), "
        f"{NOISE}",
        "changed: entries 1 added ('m3'), 1 changed ('m2'); labels 1 added ('q1 m3'), 1 changed ('q1 m1')",
        "weights of b: bm25 to rrf(bm25, vector)",
        "weights of a: bm25 to rrf(bm25, vector)",
        "b, on the 0 of 1 query with the same labels in both runs: nothing to compare",
        "a, on the 0 of 1 query with the same labels in both runs: nothing to compare",
        "a, over all queries and labels of each run: 0.5000 to 0.7500 (+0.2500)",
        "a: 1 of 1 lists changed, most q1 +0.250",
        "b: 1 of 1 lists changed",
    ]
    assert sy.load(folder).runs().changed(1, 1) == ["nothing changed"]
    with pytest.raises(ConfigError, match="there is no run 9; kept are 1 to 2"):
        sy.load(folder).runs().changed(1, 9)
    listed = CliRunner().invoke(command, [str(folder)]).output
    assert "entries, labels" in listed
    assert "2026-11-23 17:40:00" in listed
    assert "labels 1 added ('q1 m3')" in CliRunner().invoke(command, [str(folder), "1", "2"]).output


def test_a_folder_that_cannot_be_written_has_its_runs_in_the_cache(folder, tmp_path):
    (folder / FOLDER).write_text("in the way")
    sy.load(folder).compare("bm25", timed=False)
    assert len(list((tmp_path / "cache" / "runs").glob("*.db"))) == 1
    (folder / FOLDER).unlink()
    assert len(sy.load(folder).runs()) == 1


def test_nothing_is_kept_of_data_in_memory_nor_when_it_is_switched_off(folder, monkeypatch, tmp_path):
    sy.load({"corpus": {"a": "red"}, "queries": {"q": "red"}, "qrels": [("q", "a", 1)]}).compare(
        "bm25", timed=False
    )
    monkeypatch.setenv("STEELYARD_RUNS", "off")
    sy.load(folder).compare("bm25", timed=False)
    assert not (folder / FOLDER).exists()
    assert not (tmp_path / "cache").exists()


def test_links_are_not_followed(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / FOLDER).symlink_to(elsewhere)
    keep(sy.load(folder).dataset, "compare", document())
    assert list(elsewhere.iterdir()) == []
    assert len(kept(sy.load(folder).dataset)) == 1


@pytest.mark.parametrize("text", ["export PATH", None])
def test_a_link_in_our_folder_loses_nobody_a_file(folder, tmp_path, text):
    mine = tmp_path / "bashrc"
    if text:
        mine.write_text(text)
    (folder / FOLDER).mkdir()
    for name in (".gitignore", f"{FILE}-journal", f"{FILE}-wal", f"{FILE}-shm"):
        (folder / FOLDER / name).symlink_to(mine)
    keep(sy.load(folder).dataset, "compare", document())
    assert (mine.read_text() if text else mine.exists()) == (text or False)


def test_a_query_without_a_value_counts_as_0_where_lists_changed(folder):
    """Of the two runs one has no value of the query, so the gap is 0.75, up or down."""
    before, now = document(), document(0.75, entries=("m2", "m1"))
    before["per_query"][0]["values"] = {"a": None, "b": None}
    for one in (before, now):
        keep(sy.load(folder).dataset, "compare", one, now=lambda: NOW)
    assert "a: 1 of 1 lists changed, most q1 +0.750" in sy.load(folder).runs().changed(1, 2)
    assert "a: 1 of 1 lists changed, most q1 -0.750" in sy.load(folder).runs().changed(2, 1)


def test_a_locked_file_is_not_to_be_deleted(folder, monkeypatch):
    keep(sy.load(folder).dataset, "compare", document())
    monkeypatch.setattr("steelyard_eval.recording.runs.PATIENCE", 10)
    with closing(apsw.Connection(str(folder / FOLDER / FILE))) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DataError, match="is locked by another program; try again"):
            sy.load(folder).runs()


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE runs(id, at, kind, facts)",
        "; ".join(TABLES) + "; CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM states; END",
    ],
)
def test_somebody_elses_file_is_refused_and_never_written(folder, statements):
    (folder / FOLDER).mkdir()
    with apsw.Connection(str(folder / FOLDER / FILE)) as db:
        db.execute(statements)
    before = (folder / FOLDER / FILE).read_bytes()
    keep(sy.load(folder).dataset, "compare", document())
    assert (folder / FOLDER / FILE).read_bytes() == before
    with pytest.raises(DataError, match="no file of kept runs; move it away"):
        sy.load(folder).runs()


@pytest.mark.parametrize("raw", [b"SQLite format 3\x00" + b"\xff" * 4096, b"no database at all" * 100])
def test_a_damaged_file_is_named_and_stops_no_job(folder, raw):
    (folder / FOLDER).mkdir()
    (folder / FOLDER / FILE).write_bytes(raw)
    assert sy.load(folder).compare("bm25", timed=False)
    with pytest.raises(DataError, match=r"runs\.db.*delete it to begin anew"):
        sy.load(folder).runs()


def test_facts_that_are_no_object_are_damage(folder):
    keep(sy.load(folder).dataset, "compare", document())
    with apsw.Connection(str(folder / FOLDER / FILE)) as db:
        db.execute("UPDATE runs SET facts = '[NaN]'")
    with pytest.raises(DataError, match="is damaged"):
        sy.load(folder).runs()


ROW = {"label": "a", "mean": 0.5}


@pytest.mark.parametrize(
    "facts",
    [
        {"rows": 5},
        {"rows": "abc"},
        {"rows": [{}]},
        {"rows": [{"label": "a"}]},
        {"rows": [{**ROW, "mean": None}]},
        {"rows": [{**ROW, "mean": "x"}]},
        {"rows": [{**ROW, "low": "x"}]},
        {"rows": [{**ROW, "label": ["a"]}]},
        {"states": ["entries"]},
        {"states": {"entries": [1]}},
        {"code": 5},
        {"metric": ["nDCG@10"]},
        {"verdict": {"a": 1}},
    ],
)
def test_facts_of_other_types_are_damage(folder, facts):
    keep(sy.load(folder).dataset, "compare", document())
    with apsw.Connection(str(folder / FOLDER / FILE)) as db:
        db.execute("UPDATE runs SET facts = ?", (json.dumps(facts),))
    with pytest.raises(DataError, match="is damaged; delete it"):
        sy.load(folder).runs()


@pytest.mark.parametrize("content", ['{"a": {"q1": 5}}', '{"a": {"q1": ["x", "y"]}}', "[[1]]"])
def test_states_of_other_types_are_damage(folder, content):
    keep(sy.load(folder).dataset, "compare", document())
    keep(sy.load(folder).dataset, "compare", document(entries=("m2", "m1")))
    with apsw.Connection(str(folder / FOLDER / FILE)) as db:
        db.execute("UPDATE states SET content = ?", (content,))
    with pytest.raises(DataError, match="is damaged; delete it"):
        sy.load(folder).runs().changed(1, 2)


def test_text_that_is_no_unicode_is_damage_and_half_an_interval_is_left_out(folder):
    keep(sy.load(folder).dataset, "compare", document())
    with apsw.Connection(str(folder / FOLDER / FILE)) as db:
        facts = json.dumps({"rows": [{**ROW, "low": 0.25}]})
        db.execute("UPDATE runs SET facts = ?", (facts,))
    shown = CliRunner().invoke(command, [str(folder), "1"])
    assert (shown.exit_code, "0.500" in shown.output, "0.250" in shown.output) == (0, True, False)
    with apsw.Connection(str(folder / FOLDER / FILE)) as db:
        db.execute("UPDATE runs SET kind = CAST(x'ff' AS TEXT)")
    with pytest.raises(DataError, match="cannot read"):
        sy.load(folder).runs()


def test_a_damaged_file_costs_a_recommendation_its_trend_alone(folder, tmp_path):
    (folder / FOLDER).mkdir()
    (folder / FOLDER / FILE).write_bytes(b"no database at all" * 100)
    out = [str(tmp_path / "weights.json"), "--report", str(tmp_path / "report")]
    ended = CliRunner().invoke(main, ["recommend", str(folder), "--embedder", "none", "-o", *out])
    assert ended.exit_code == 0
    assert "note: the report has no trend: cannot read" in ended.stderr
    assert "Over time" not in (tmp_path / "report" / "report.html").read_text("utf-8")


def test_writers_at_the_same_time_lose_nothing(folder, tmp_path):
    code = (
        "import json, sys, steelyard_eval as sy; from steelyard_eval.recording.runs import keep\n"
        "data, document = sy.load(sys.argv[1]).dataset, json.loads(sys.argv[2])\n"
        "for _ in range(10): keep(data, 'compare', document)"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    call = [sys.executable, "-c", code, str(folder), json.dumps(document())]
    for process in [subprocess.Popen(call, env=environ) for _ in range(3)]:
        assert process.wait() == 0
    assert [one.id for one in kept(sy.load(folder).dataset)] == list(range(1, 31))
    assert not (tmp_path / "cache").exists()


def test_the_commit_is_read_from_gits_files(folder, tmp_path, monkeypatch):
    git = tmp_path / "repository" / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs" / "heads" / "main").write_text("ab" * 20 + "\n")
    monkeypatch.chdir(git.parent)
    keep(sy.load(folder).dataset, "compare", document())
    (git / "HEAD").write_text("ref: refs/../../../../etc/passwd\n")
    keep(sy.load(folder).dataset, "compare", document())
    assert [one.facts.get("code") for one in kept(sy.load(folder).dataset)] == ["ab" * 20, ""]


def test_the_report_has_the_trend_and_without_runs_the_bytes_that_it_had(folder, tmp_path):
    data = sy.load(folder)
    found = data.compare("bm25", timed=False)
    data.compare("bm25", timed=False)
    found.report(tmp_path / "a")
    found.report(tmp_path / "b", data.runs())
    plain, told = ((tmp_path / name / "report.html").read_text("utf-8") for name in "ab")
    assert "Over time" not in plain
    assert "Over time" in told
    names = ("report.json", "leaderboard.csv")
    assert all((tmp_path / "a" / n).read_bytes() == (tmp_path / "b" / n).read_bytes() for n in names)
    shutil.rmtree(Path(folder / FOLDER))
    found.report(tmp_path / "a")
    assert (tmp_path / "a" / "report.html").read_text("utf-8") == plain


def of_means(means):
    return {
        "primary": "nDCG@10",
        "results": [{"label": name, "metric": "nDCG@10", "mean": own} for name, own in means.items()],
    }


def test_on_the_same_data_the_first_line_says_what_moved_and_the_most_moved_follow_worst_first(folder):
    """By hand: c to h rise by 0.01 to 0.06, of which h is most; a and b fall by 0.1 and 0.2; five moved most."""
    before = dict.fromkeys("abcdefgh", 0.5) | {"only then": 0.1}
    after = {"a": 0.4, "b": 0.3} | {name: 0.5 + place / 100 for place, name in enumerate("cdefgh", 1)}
    for means in (before, after, {"new": 0.5}):
        keep(sy.load(folder).dataset, "compare", of_means(means), now=lambda: NOW)
    assert sy.load(folder).runs().changed(1, 2) == [
        f"{untold(2, 1)}: of 8 contenders in both runs 2 fell (most b by 0.2000) "
        f"and 6 rose (most h by 0.0600), {NOISE}",
        "only run 1 has only then",
        "b: 0.5000 to 0.3000 (-0.2000)",
        "a: 0.5000 to 0.4000 (-0.1000)",
        "f: 0.5000 to 0.5400 (+0.0400)",
        "g: 0.5000 to 0.5500 (+0.0500)",
        "h: 0.5000 to 0.5600 (+0.0600)",
        "3 more moved less",
    ]
    assert sy.load(folder).runs().changed(2, 3) == [
        f"{untold(3, 2)}: no contender is in both.",
        "only run 2 has h; g; f; e; d; 3 more",  # rows are kept best first
        "only run 3 has new",
    ]
    (folder / "qrels.txt").write_text("q1 0 m1 2\nq1 0 m2 1\n")
    keep(sy.load(folder).dataset, "compare", of_means(after) | {"split": "dev"}, now=lambda: NOW)
    assert sy.load(folder).runs().changed(2, 4) == [
        f"{untold(4, 2)} (labels changed): split none to dev.",
        "changed: split none to dev; labels 1 added ('q1 m2')",
    ]


def gated(strategy, mean):
    """What a gate keeps of a single contender."""
    row = {"label": "w.json", "strategy": strategy, "metrics": [{"now": mean}]}
    return {"objective": "nDCG@10", "verdict": "pass", "contenders": [row]}


def test_the_list_names_weights_and_says_what_the_newest_gained(folder):
    """By hand: 0.737 - 0.456 = 0.281; runs 2 and 4 share w.json and the labels, run 3 has nothing of theirs."""
    data = sy.load(folder)
    keep(data.dataset, "compare", document(), now=lambda: NOW)
    keep(data.dataset, "gate", gated("bm25", 0.456), now=lambda: NOW)
    keep(data.dataset, "learn", {"verdict": "keep"}, now=lambda: NOW)
    keep(data.dataset, "gate", gated("fts", 0.737), now=lambda: NOW)
    keep(data.dataset, "gate", gated("bm25", 0.5), now=lambda: NOW)
    assert list(data.runs().to_frame()["changed since run"]) == [
        "the first",
        "the first",
        "-",
        "2: weights",
        "4: weights",
    ]
    lines = str(data.runs()).splitlines()
    told = "cannot be told (weights changed): w.json, the only contender in both runs,"
    assert lines[-2] == f"Whether run 5 is better than run 4 {told} fell by 0.2370, {NOISE}"
    assert lines[-1] == f"more: steelyard runs {folder} 4 5"
    assert "\N{EN DASH}" not in "\n".join(lines)
    CliRunner().invoke(main, ["runs", str(folder), "5", "--delete"])
    assert f"Whether run 4 is better than run 2 {told} rose by 0.2810" in str(data.runs())
    (folder / "qrels.txt").write_text("q1 0 m1 1\n")
    keep(sy.load(folder).dataset, "gate", gated("bm25", 0.5), now=lambda: NOW)
    assert f"{untold(6, 4)} (labels, weights changed)" in str(sy.load(folder).runs())


def test_where_nothing_changed_since_the_last_run_the_one_before_a_change_is_told_too(folder):
    """By hand: 0.737 - 0.456 = 0.281, over run 1, which had other weights; run 3 ran other contenders."""
    data = sy.load(folder)
    for found in (gated("bm25", 0.456), gated("fts", 0.737), of_means({"z": 0.9}), gated("fts", 0.737)):
        keep(data.dataset, "gate", found, now=lambda: NOW)
    assert str(data.runs()).split("\n\n")[1].splitlines() == [
        "Run 4 is as good as run 2: w.json has 0.737 nDCG@10.",
        f"{untold(4, 1)} (weights changed): w.json, the only contender in both runs, rose by 0.2810, {NOISE}",
        f"more: steelyard runs {folder} 1 4",
    ]


def test_the_same_weights_are_compared_whatever_they_are_called(folder):
    """By hand: 0.75 - 0.5 = 0.25 of what is called w.json later, beside another that had that name and 0.2."""
    data = sy.load(folder)
    means = {"weighted sum, tuned": ("weighted_sum(1*fts)", 0.5), "w.json": ("bm25", 0.2)}
    before = of_means({label: mean for label, (_, mean) in means.items()})
    before["configurations"] = [{"label": label, "strategy": own} for label, (own, _) in means.items()]
    keep(data.dataset, "recommend", before, now=lambda: NOW)
    keep(data.dataset, "gate", gated("weighted_sum(1*fts)", 0.75), now=lambda: NOW)
    assert data.runs().changed(1, 2) == [
        f"{untold(2, 1)}: w.json, the only contender in both runs, rose by 0.2500, {NOISE}",
        "only run 1 has w.json",
        "w.json was called weighted sum, tuned in run 1",
        "w.json: 0.5000 to 0.7500 (+0.2500)",
    ]


def of_queries(folder, values, **row):
    """What a comparison of one weights file keeps, with values by query."""
    ids = [f"q{at:02}" for at in range(len(values))]
    (folder / "queries.jsonl").write_text("".join(f'{{"id": "{id_}", "text": "asks {id_}"}}\n' for id_ in ids))
    (folder / "qrels.txt").write_text("".join(f"{id_} 0 m1 1\n" for id_ in ids))
    found = of_means({"w.json": sum(values) / len(values)})
    found["configurations"] = [{"label": "w.json", "system": "plain", **row}]
    found["per_query"] = [{"id": id_, "values": {"w.json": value}} for id_, value in zip(ids, values, strict=True)]
    found["rankings"] = {"lists": [{"label": "w.json", "queries": {}}]}
    return found


def test_two_runs_end_in_one_sentence_with_the_interval_of_the_paired_difference(folder):
    """By hand: all of 20 fall by 0.2, so Student's t reaches 2.093 * sqrt(0.65^2 / sqrt(21) / 19 / 20) = 0.033."""
    for values, strategy in (
        ([0.5] * 20, "bm25"),
        ([0.3] * 20, "fts"),
        ([0.3] * 20, "fts"),
        ([0.1, 0.5] * 10, "fts"),
    ):
        found = of_queries(folder, values, strategy=strategy)
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    runs = sy.load(folder).runs()
    first, *rest = runs.changed(1, 2)
    start = "Run 2 is worse than run 1 (weights changed): w.json is -0.200 nDCG@10 against it, "
    assert first.startswith(f"{start}95% sure of -0.233 to -0.167;")
    assert "w.json: 0.5000 to 0.3000 (-0.2000 [-0.233, -0.167])" in rest
    assert runs.changed(2, 1)[0].startswith("Run 1 is better than run 2 (weights changed): w.json is +0.200")
    assert runs.changed(2, 3) == ["nothing changed"]
    assert f"{untold(4, 3)} (result lists changed): w.json is 0.000" in runs.changed(3, 4)[0]


def test_what_a_run_chose_goes_with_the_weights_file_that_was_edited_since(folder):
    chosen = of_queries(folder, [0.5] * 20, strategy="bm25")
    for part in (chosen["configurations"], chosen["results"], chosen["rankings"]["lists"]):
        part[0]["label"] = "tuned"
    chosen["per_query"] = [{**row, "values": {"tuned": 0.5}} for row in chosen["per_query"]]
    edited = of_queries(folder, [0.3] * 20, strategy="fts")
    keep(sy.load(folder).dataset, "recommend", chosen, {"config": weights("bm25").to_json()}, now=lambda: NOW)
    keep(sy.load(folder).dataset, "compare", edited, now=lambda: NOW)
    told = sy.load(folder).runs().changed(1, 2)
    assert told[0].startswith(
        "Run 2 is worse than run 1 (weights changed): w.json is -0.200 nDCG@10 against its tuned,"
    )
    assert told[1:3] == [
        "w.json against tuned of run 1: bm25 to fts",
        "w.json: 0.5000 to 0.3000 (-0.2000 [-0.233, -0.167])",
    ]


def test_contenders_of_other_depths_are_told_apart(folder):
    for deep in ({}, {"settings": "bm25.depth=5"}):
        found = of_queries(folder, [0.5] * 20, strategy="bm25", **deep)
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    runs = sy.load(folder).runs()
    assert "settings of w.json: the usual ones to bm25.depth=5" in runs.changed(1, 2)
    assert list(runs.to_frame()["changed since run"]) == ["the first", "1: settings"]
    assert "bm25 with bm25.depth=5" in runs.one(2)


def test_runs_are_listed_of_a_set_whose_labels_were_edited_and_say_what_to_do(folder):
    """dataset.json holds the hash of qrels.txt, which nobody renewed; run 2, a mismatch, measured nothing."""
    sealed = sha256((folder / "qrels.txt").read_bytes()).hexdigest()
    (folder / "dataset.json").write_text(json.dumps({"name": "mine", "files": {"qrels.txt": sealed}}))
    keep(sy.load(folder).dataset, "compare", document(), now=lambda: NOW)
    (folder / "qrels.txt").write_text("q1 0 m1 1\n")
    keep(check(folder, sealed=False).dataset, "gate", {"verdict": "mismatch"}, now=lambda: NOW)
    done = CliRunner().invoke(main, ["runs", str(folder)])
    assert done.exit_code == 0
    assert f"if this was on purpose: steelyard check {folder} --accept" in done.stderr
    assert done.stdout.splitlines()[-2:] == [
        "labels since run 1: 1 changed ('q1 m1')",
        f"measure again: steelyard compare {folder}",
    ]


def test_a_gate_keeps_its_values_by_query(folder, monkeypatch):
    """Else only means could be told; the only query has its relevant entry first."""
    monkeypatch.chdir(folder.parent)
    for words in (["bm25", "--update", "--because", "first"], [], []):
        assert CliRunner().invoke(main, ["gate", "mine", *words, "--embedder", "none"]).exit_code == 0
    assert str(sy.load(folder).runs()).endswith("Run 2 is as good as run 1: bm25 has 1.000 nDCG@10.")
    sy.load(folder).gate()
    assert str(sy.load(folder).runs()).endswith("Run 3 is as good as run 2: bm25 has 1.000 nDCG@10.")


def test_where_no_mean_moved_the_best_is_named(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for mean in (0.5, 0.5):
        keep(sy.load(folder).dataset, "compare", of_means({"a": mean, "b": 0.3}), now=lambda: NOW)
    assert str(sy.load(folder).runs()).endswith("Run 2 is as good as run 1: a has 0.500 nDCG@10.")


def test_changed_labels_are_told_from_a_change_of_search(folder):
    """By hand: q2 and q3 keep their labels: (0.4 + 0.6) / 2 = 0.5 before, (0.5 + 0.9) / 2 = 0.7 after."""
    texts = [f'{{"id": "q{at}", "text": "query {at}"}}' for at in (1, 2, 3)]
    (folder / "queries.jsonl").write_text("\n".join(texts) + "\n")
    for grade, values in ((2, (0.9, 0.4, 0.6)), (1, (0.1, 0.5, 0.9))):
        (folder / "qrels.txt").write_text(f"q1 0 m1 {grade}\nq2 0 m1 1\nq3 0 m2 1\n")
        found = of_means({"a": round(sum(values) / 3, 4), "z": 0.5})
        found["per_query"] = [{"id": f"q{at}", "values": {"a": own, "z": 0.5}} for at, own in enumerate(values, 1)]
        found["rankings"] = {"lists": [{"label": "a", "queries": {}}]}
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    assert sy.load(folder).runs().changed(1, 2) == [
        f"{untold(2, 1)} (labels changed): a, on the 2 queries with the same labels "
        "in both, is +0.200 nDCG@10 against it, and so few queries say nothing of others.",
        "changed: labels 1 changed ('q1 m1')",
        "a, on the 2 of 3 queries with the same labels in both runs: 0.5000 to 0.7000 (+0.2000 [too few queries])",
        "of 1 other contender no values by query are kept",
        "a, over all queries and labels of each run: 0.6333 to 0.5000 (-0.1333)",
    ]
    assert "is +0.200 nDCG@10 against it" in str(sy.load(folder).runs())


def test_lists_are_named_as_changed_where_the_contenders_and_labels_are_the_same(folder):
    """Run 2 has other lists of the same contenders, run 3 another contender."""
    for found in (document(), document(entries=("m2", "m1")), document(strategy="fts")):
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    told = list(sy.load(folder).runs().to_frame()["changed since run"])
    assert told == ["the first", "1: result lists", "2: weights"]


def test_half_lives_are_short_in_a_run(folder):
    keep(sy.load(folder).dataset, "compare", document(strategy="recency(half_life=68.96756393652842h)"))
    assert "half_life=68.97h" in sy.load(folder).runs().one(1)


def test_runs_that_are_kept_are_named_without_those_that_were_deleted(folder):
    for _ in range(4):
        keep(sy.load(folder).dataset, "compare", of_means({"a": 0.5}), now=lambda: NOW)
    CliRunner().invoke(main, ["runs", str(folder), "3", "--delete"])
    with pytest.raises(ConfigError, match=r"there is no run 3; kept are 1 to 2, 4$"):
        sy.load(folder).runs().changed(1, 3)


def test_the_list_fits_a_terminal_of_100_columns(folder, monkeypatch):
    """Of one metric it has no column."""
    monkeypatch.setenv("COLUMNS", "100")
    for found in (of_means({"weighted sum, tuned": 0.5}), of_means({"weighted sum, tuned": 0.6})):
        found |= {
            "verdict": "mismatch",
            "restriction": {"target": "elasticsearch"},
            "baseline": "weighted sum, tuned",
        }
        keep(sy.load(folder).dataset, "recommend", found, now=lambda: NOW)
    lines = str(sy.load(folder).runs()).split("\n\n")[0].splitlines()
    assert "verdict   changed since run" in lines[0]
    assert max(map(len, lines)) <= 100
    assert len(lines) == 6  # the head, a line, the first run in three lines and the second


def weights(strategy):
    return SearchConfig("plain", "documented", 10, parse_strategy(strategy), {strategy: RetrieverConfig()}, ())


def test_a_run_is_deleted_with_what_was_kept_for_it_alone(folder):
    """The two runs share entries, queries and labels, and have result lists of their own."""
    data = sy.load(folder)
    for entries in (["m1", "m2"], ["m2", "m1"]):
        keep(data.dataset, "compare", document(entries=entries))
    with closing(apsw.Connection(str(folder / FOLDER / FILE))) as db:
        (before,) = db.execute("SELECT count(*) FROM states").fetchone()
    first, second = kept(data.dataset)
    said = CliRunner().invoke(main, ["runs", str(folder), "1", "--delete"]).stdout
    with closing(apsw.Connection(str(folder / FOLDER / FILE))) as db:
        left = {digest for (digest,) in db.execute("SELECT digest FROM states")}

    assert said == f"deleted: run 1, compare of {first.at}\nkept are: 2\n"
    assert kept(data.dataset) == [second]
    assert (before, left) == (5, set(second.states.values()))
    for words in (["1", "--delete"], ["--delete"], ["2", "2", "--delete"], ["2", "--delete", "--out", "w.json"]):
        assert CliRunner().invoke(main, ["runs", str(folder), *words]).exit_code == 2
    assert kept(data.dataset) == [second]


def test_the_number_of_a_deleted_run_is_given_to_no_other(folder):
    """Also in a file whose schema an earlier version wrote, which it can still read."""
    for number in (1, 2, 3):
        keep(sy.load(folder).dataset, "compare", document(), now=lambda: NOW)
        if number > 1:
            CliRunner().invoke(main, ["runs", str(folder), str(number), "--delete"])
    keep(sy.load(folder).dataset, "compare", document(), now=lambda: NOW)
    CliRunner().invoke(main, ["runs", str(folder), "1", "--delete"])
    keep(sy.load(folder).dataset, "compare", document(), now=lambda: NOW)
    assert [one.id for one in kept(sy.load(folder).dataset)] == [4, 5]
    with closing(apsw.Connection(str(folder / FOLDER / FILE))) as db:
        assert {sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")} == {*TABLES}


def test_a_run_is_written_to_the_file_that_was_named_and_to_no_other(folder):
    """Under try the thing to try; what stood there is copied, unless a kept run or the new file has it."""
    data, out = sy.load(folder), folder / "w.json"
    one, two = (weights(name).to_json() for name in ("bm25", "fts"))
    for own in ({"config": one, "attempt": two}, {"config": one, "attempt": None}):
        keep(data.dataset, "tune", document(), own)
    there = {*folder.iterdir()}

    def said(run):
        *lines, check = CliRunner().invoke(main, ["runs", str(folder), run, "--out", str(out)]).stdout.splitlines()
        assert check == f"to check it: steelyard compare {folder} {out}"
        return lines

    assert said("1") == [f"written: {out}, with fts"]
    assert (json.loads(out.read_text()), {*folder.iterdir()} - there) == (two, {out})
    again = f"steelyard runs {folder} 1 --out {out}"
    assert said("2") == [
        f"written: {out}, with bm25",
        f"{out}: replaced, it held what run 1 chose; to have it again: {again}",
    ]
    assert json.loads(out.read_text()) == one
    for number in (1, 2):
        out.write_text(f"mine {number}")
        copy = folder / f"w.before-{number}.json"
        told = f"is now in {copy}; to have it again: cp {copy} {out}"
        assert said("1")[1:] == [f"{out}: replaced, what it held {told}"]
        assert copy.read_text() == f"mine {number}"
    out.write_text(json.dumps(two | {"provenance": {"by": "hand"}}))
    assert said("1") == [f"written: {out}, with fts"]
    assert data.runs().save_weights(2, out) == out


def test_what_is_replaced_says_of_which_other_data_set_it_was(folder, monkeypatch):
    """Default names are shared by all data sets of a folder; by hand, or of this set, it says nothing more."""
    monkeypatch.chdir(folder)
    data, file = sy.load(folder).dataset, Path("search-weights.json")
    for name, said in (("other", "it was of the data set 'other', and "), ("mine", ""), ("", "")):
        replace(weights("fts"), provenance={"dataset": name}).save(file)
        (line,) = keep_back(data, {file: weights("bm25")})
        assert line.startswith(f"{file}: replaced, {said}what it held is now in")


def test_what_an_earlier_run_left_is_named_with_how_to_have_it_again(folder, monkeypatch):
    """A kept run has the first of three that are removed, none the second, the new file the third."""
    monkeypatch.chdir(folder)
    data = sy.load(folder).dataset
    keep(
        data, "recommend", document(), {"config": weights("vector").to_json(), "attempt": weights("fts").to_json()}
    )
    files = [Path(f"{name}.json") for name in ("run", "none", "same")]
    for file, name in zip(files, ("fts", "vector", "bm25"), strict=True):
        weights(name).save(file)
    assert keep_back(data, {**dict.fromkeys(files), Path("new.json"): weights("bm25")}) == [
        f"run.json: removed, it held what run 1 chose; to have it again: steelyard runs {folder} 1 --out run.json",
        "none.json: removed, what it held is now in none.before-1.json; "
        "to have it again: cp none.before-1.json none.json",
        "same.json: removed, it was of an earlier run",
    ]
    assert SearchConfig.load("none.before-1.json") == weights("vector")
    used = Path("w.current.json")  # of a try the file beside it has what was run
    weights("vector").save(used)
    assert (
        f"it held what was used at run 1; to have it again: steelyard runs {folder} 1"
        in keep_back(data, {used: None})[0]
    )
    assert sy.load(folder).runs().file(1, used) == weights("vector")
    (folder / FOLDER / FILE).write_bytes(b"no database")
    assert "now in run.before-1.json" in keep_back(data, {files[0]: None})[0]


def test_python_loses_no_weights_and_json_tells_what_was_replaced(folder, monkeypatch, caplog):
    monkeypatch.chdir(folder)
    keep(sy.load(folder).dataset, "tune", document(), {"config": weights("fts").to_json(), "attempt": None})
    out = Path("w.json")
    weights("bm25").save(out)
    assert sy.load(folder).runs().save_weights(1, out) == out
    assert SearchConfig.load("w.before-1.json") == weights("bm25")
    assert "is now in w.before-1.json" in caplog.text
    weights("vector").save(out)
    ended = CliRunner().invoke(main, ["runs", str(folder), "1", "--out", str(out), "--json"])
    (line,) = json.loads(ended.stdout)["replaced"]
    assert "is now in w.before-2.json" in line


def test_a_tuning_that_names_nothing_says_what_it_took_and_loses_no_weights(folder, tmp_path):
    (folder / "corpus.jsonl").write_text("\n".join([*CORPUS, '{"id": "m3", "text": "green tea leaves"}']) + "\n")
    (folder / "queries.jsonl").write_text('{"id": "q1", "text": "secrets"}\n{"id": "q2", "text": "coffee"}\n')
    (folder / "qrels.txt").write_text("q1 0 m1 2\nq2 0 m2 1\n")
    out, attempt = tmp_path / "w.json", tmp_path / "w.try.json"
    for path in (out, attempt):
        weights("bm25").save(path)
    ended = CliRunner().invoke(main, ["tune", str(folder), "--embedder", "lsa", "--out", str(out)])
    said = f"tuned from rrf(fts, vector, k=60), as what you run today was not named: steelyard tune {folder}"
    assert said in ended.stderr
    for copy in (tmp_path / "w.before-1.json", tmp_path / "w.try.before-1.json"):
        assert f"is now in {copy}" in ended.stdout
        assert SearchConfig.load(copy) == weights("bm25")
    named = CliRunner().invoke(main, ["tune", str(folder), "plain", "--embedder", "lsa", "--out", str(out)])
    assert (named.exit_code, "tuned from" in named.stderr) == (0, False)


def test_a_run_can_be_made_a_file_again(folder, monkeypatch):
    """What `recommend` said to run and what the kept run writes are the same, to the byte."""
    monkeypatch.chdir(folder.parent)
    weights = folder.parent / "search-weights.json"
    assert CliRunner().invoke(main, ["recommend", "mine"]).exit_code == 0
    assert CliRunner().invoke(main, ["compare", "mine", "bm25", "fts"]).exit_code == 0
    files = {path.name: path.read_bytes() for path in folder.parent.glob("search-weights*.json")}
    said = files.get("search-weights.try.json") or files["search-weights.json"]

    told = CliRunner().invoke(main, ["runs", "mine", "1"]).stdout
    step = " ".join(told.split("as a file: steelyard ")[1].split("\n\n")[0].split()).split()
    for path in folder.parent.glob("search-weights*.json"):
        path.unlink()
    assert CliRunner().invoke(main, step).exit_code == 0
    assert {path.name: path.read_bytes() for path in folder.parent.glob("search-weights*.json")} == {
        "search-weights.json": said
    }

    refused = CliRunner().invoke(main, ["runs", "mine", "2", "--out", str(weights)])
    assert (refused.exit_code, "run 2, compare, keeps no weights" in refused.output) == (2, True)
    assert "name one of recommend or tune; kept are those of 1" in refused.output
    assert CliRunner().invoke(main, ["runs", "mine", "--out", str(weights)]).exit_code == 2


def test_the_trend_is_of_runs_that_did_the_same(folder):
    """A comparison between two recommendations measured something else, and no dip."""
    data = sy.load(folder)
    for kind, mean in (("recommend", 0.5), ("compare", 0.1), ("tune", 0.2), ("recommend", 0.6), ("tune", 0.3)):
        keep(data.dataset, kind, {**document(mean), "baseline": "a"}, now=lambda: NOW)
    assert [span.value for span in trends(data.runs().runs)[0]["today"]] == [0.2, 0.3]
    assert [span.value for span in trends(data.runs().runs[:4])[0]["today"]] == [0.5, 0.6]
    assert trends(data.runs().runs[:3]) is None
    record, _ = (data.compare("bm25, fts", timed=False).record for _ in range(2))
    for runs, has in ((data.runs().runs[:-1], False), (data.runs().runs, True)):  # one such comparison, and two
        page = write_report(record, folder / "report", runs)[0].read_text("utf-8")
        assert ('id="trend"' in page) is has


def test_damaged_weights_of_a_run_are_refused(folder):
    keep(sy.load(folder).dataset, "tune", document(), {"config": {"system": "no"}, "attempt": None})
    found = CliRunner().invoke(main, ["runs", str(folder), "1", "--out", str(folder / "w.json")])
    assert (found.exit_code, (folder / "w.json").exists()) == (2, False)
    assert "run 1 of mine" in found.output


def test_what_two_runs_chose_is_told_and_nothing_of_one_that_chooses_nothing(folder):
    for formula in ("bm25 with graph.seeds=3", "fts", None):
        chosen = {"chosen": {"strategy": formula}, "formula": formula} if formula else {}
        keep(sy.load(folder).dataset, "compare", document() | chosen, now=lambda: NOW)
    assert sy.load(folder).runs().changed(1, 2)[1:] == ["chosen: bm25 with graph.seeds=3 to fts"]
    assert sy.load(folder).runs().changed(2, 3) == ["nothing changed"]


def recommended(folder, value, strategy="bm25", **more):
    """What `recommend` keeps that measured one row, `fts, tuned`, beside what is run today."""
    found = of_queries(folder, [value] * 20, strategy=strategy)
    text = json.dumps({**found, **more}).replace("w.json", "fts, tuned")
    return json.loads(text)


def test_the_headline_is_of_the_newest_run_that_measured_the_same_under_the_same_restriction(folder):
    """Run 3 may choose only what embeds nothing; run 4 measured another contender; 0.5 - 0.3 = 0.2."""
    for value, strategy in ((0.5, "bm25"), (0.3, "fts")):
        found = of_queries(folder, [value] * 20, strategy=strategy)
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    only = {"restriction": {"embedding_calls_of_100": 0.0, "latency_ms": None, "target": None}}
    restricted = of_queries(folder, [0.1] * 20, strategy="fts") | only
    keep(sy.load(folder).dataset, "recommend", restricted, {"config": weights("fts").to_json()}, now=lambda: NOW)
    runs = sy.load(folder).runs()
    start = "Run 2 is worse than run 1 (weights changed): w.json is -0.200 nDCG@10"
    assert str(runs).split("\n\n")[1].startswith(start)
    assert list(runs.to_frame()["changed since run"])[1:] == ["1: weights", "the first with --embedding-calls 0"]
    assert "restriction changed)" in runs.changed(2, 3)[0]
    keep(sy.load(folder).dataset, "compare", of_means({"z": 0.9}), now=lambda: NOW)
    keep(sy.load(folder).dataset, "compare", of_queries(folder, [0.5] * 20, strategy="bm25"), now=lambda: NOW)
    runs = sy.load(folder).runs()
    assert str(runs).split("\n\n")[1].startswith("Run 5 is better than run 2 (weights changed): w.json is +0.200")
    assert list(runs.to_frame()["changed since run"])[3:] == ["the first", "2: weights"]


def test_under_keep_the_answer_is_what_is_run_and_not_the_best_that_may_be_chosen(folder):
    found = of_queries(folder, [0.5] * 20, strategy="bm25")
    keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    found = recommended(folder, 0.3, "fts", verdict="keep")
    kept_ = {"config": weights("bm25").to_json(), "attempt": weights("fts").to_json()}
    keep(sy.load(folder).dataset, "recommend", found, kept_, now=lambda: NOW)
    assert sy.load(folder).runs().changed(1, 2)[0] == f"{untold(2, 1)}: no contender is in both."
    used = json.loads(json.dumps(of_queries(folder, [0.4] * 20, strategy="bm25")).replace("w.json", "plain"))
    keep(sy.load(folder).dataset, "recommend", used | {"verdict": "keep"}, kept_, now=lambda: NOW)
    assert "no contender is in both" in sy.load(folder).runs().changed(2, 3)[0]


def test_two_searches_are_not_one_that_was_renamed_and_a_tuned_value_is_said_to_flatter(folder):
    found = recommended(folder, 0.5, verdict="ship")
    keep(sy.load(folder).dataset, "recommend", found, {"config": weights("bm25").to_json()}, now=lambda: NOW)
    keep(sy.load(folder).dataset, "compare", of_queries(folder, [0.3] * 20, strategy="fts"), now=lambda: NOW)
    keep(sy.load(folder).dataset, "compare", of_queries(folder, [0.5] * 20, strategy="bm25"), now=lambda: NOW)
    runs = sy.load(folder).runs()
    first, second, *_ = runs.changed(1, 2)
    assert first.startswith(
        "Run 2 is worse than run 1 (weights changed): w.json is -0.200 nDCG@10 against its fts, tuned,"
    )
    flatters = " Run {}'s weights were tuned on these queries, so its value is optimistic."
    assert first.endswith(flatters.format(1))
    assert second == "w.json against fts, tuned of run 1: bm25 to fts"
    assert runs.changed(2, 3)[0].endswith(flatters.format(3))
    assert runs.changed(1, 3)[1:] == ["w.json was called fts, tuned in run 1"]


def test_where_labels_and_weights_changed_the_labels_alone_are_told(folder):
    """By hand: with bm25 other labels cost q00 0.6, of 20 queries, so 0.03; the other 19 have what they had."""
    for values, strategy in (([0.5] * 20, "bm25"), ([0.3] * 20, "fts"), ([-0.1] + [0.5] * 19, "bm25")):
        found = of_queries(folder, values, strategy=strategy)
        if values[0] < 0:
            lines = (folder / "qrels.txt").read_text().replace("q00 0 m1 1", "q00 0 m2 1")
            (folder / "qrels.txt").write_text(lines)
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    told = sy.load(folder).runs().changed(2, 3)
    assert "Run 3 is better than run 2 (labels, weights changed): w.json, on the 19 queries" in told[0]
    assert told[1] == (
        "the labels alone, run 1 to run 3: w.json 0.0000 on the 19 queries with the same labels, -0.0300 over all"
    )


def test_a_mean_that_stayed_while_queries_moved_says_so(folder):
    """By hand: q2 rises by 0.1 and q3 falls by 0.1; z has the same value twice, of which nothing is said."""
    for grade, values in ((2, (0.9, 0.4, 0.6)), (1, (0.1, 0.5, 0.5))):
        (folder / "queries.jsonl").write_text(
            "".join(f'{{"id": "q{n}", "text": "query {n}"}}\n' for n in (1, 2, 3))
        )
        (folder / "qrels.txt").write_text(f"q1 0 m1 {grade}\nq2 0 m1 1\nq3 0 m2 1\n")
        found = of_means({"a": 0.5, "z": 0.5})
        found["per_query"] = [{"id": f"q{at}", "values": {"a": own, "z": 0.5}} for at, own in enumerate(values, 1)]
        found["rankings"] = {"lists": [{"label": label, "queries": {}} for label in "az"]}
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    told = sy.load(folder).runs().changed(1, 2)
    assert (
        "a, on the 2 of 3 queries with the same labels in both runs: 0.5000 in both, 1 query rose and 1 fell"
    ) in told
    assert not [line for line in told if line.startswith("z")]
