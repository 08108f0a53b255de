"""Kept runs: what is in them and what is not, hostile and read-only folders, writers at the same time."""

import json
import os
import re
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
from steelyard_eval.show.runs_paired import causes
from steelyard_eval.tune.replaced import keep_back

CORPUS = ['{"id": "m1", "text": "rotate the secret keys"}', '{"id": "m2", "text": "coffee"}']


def untold(later, earlier):
    return f"Whether run {later} is better than run {earlier} cannot be told"


def both(folder, *labels):
    """The command that measures both in one run."""
    words = f"compare {folder} {' '.join(labels)} --baseline {labels[0]}"
    return f"to tell, measure both alike: steelyard {words}"


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
    assert list(data.runs().to_frame()["value"]) == ["1.000", "1.000"]
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
        f"{untold(2, 1)} (entries, labels, weights changed): no query has the same labels in both; over all b "
        "went from 0.400 to 0.400.",
        "run 1: b 0.400, bm25",
        "run 2: b 0.400, rrf(bm25, vector)",
        "entries: 1 added ('m3'), 1 changed ('m2')",
        "labels: 1 added ('q1 m3'), 1 changed ('q1 m1')",
        "lists: 1 of 1 changed",
    ]
    assert sy.load(folder).runs().changed(1, 1) == ["nothing changed"]
    with pytest.raises(ConfigError, match="there is no run 9; kept are 1 to 2"):
        sy.load(folder).runs().changed(1, 9)
    listed = CliRunner().invoke(command, [str(folder)]).output
    assert "entries, labels" in listed
    assert "2026-11-23 17:40" in listed
    assert "labels: 1 added ('q1 m3')" in CliRunner().invoke(command, [str(folder), "1", "2"]).output


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
        keep(sy.load(folder).dataset, "compare", one | {"baseline": "a"}, now=lambda: NOW)
    assert "lists: 1 of 1 changed, most q1 +0.750" in sy.load(folder).runs().changed(1, 2)
    assert "lists: 1 of 1 changed, most q1 -0.750" in sy.load(folder).runs().changed(2, 1)


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


def test_what_two_runs_cannot_tell_they_say_how_to_tell(folder):
    """Without values by query a mean may move by chance; without a search in both there is none."""
    for means in ({"a": 0.4, "b": 0.5}, {"a": 0.3, "b": 0.6}, {"new": 0.5}):
        keep(sy.load(folder).dataset, "compare", of_means(means), now=lambda: NOW)
    assert sy.load(folder).runs().changed(1, 2) == [
        f"{untold(2, 1)}: no values by query are kept; over all b went from 0.500 to 0.600.",
        "run 1: b 0.500, -",
        "run 2: b 0.600, -",
    ]
    assert sy.load(folder).runs().changed(2, 3) == [
        f"{untold(3, 2)}: no contender is in both.",
        both(folder, "b", "new"),
    ]
    (folder / "qrels.txt").write_text("q1 0 m1 2\nq1 0 m2 1\n")
    found = {"config": weights("bm25").to_json()}
    keep(sy.load(folder).dataset, "compare", of_means({"a": 0.3}) | {"split": "dev"}, found, now=lambda: NOW)
    assert sy.load(folder).runs().changed(3, 4) == [
        f"{untold(4, 3)} (labels, split changed): they did not measure the same.",
        both(folder, "new", "run-4.json").replace(
            "steelyard compare", f"steelyard runs {folder} 4 --out run-4.json && steelyard compare"
        ),
        "labels: 1 added ('q1 m2')",
        "split: none to dev",
    ]
    keep(sy.load(folder).dataset, "tune", of_means({"a": 0.3}), found, now=lambda: NOW)  # the same without a split
    files = [f"steelyard runs {folder} {run} --out run-{run}.json" for run in (4, 5)]
    measured = [f"steelyard compare {folder} run-{run}.json" for run in (4, 5)]
    chain = " && ".join([*files, *measured, f"steelyard runs {folder}"])
    assert sy.load(folder).runs().changed(4, 5)[1] == f"to tell, measure both alike: {chain}"


def gated(strategy, mean):
    """What a gate keeps of a single contender."""
    row = {"label": "w.json", "strategy": strategy, "metrics": [{"now": mean}]}
    return {"objective": "nDCG@10", "verdict": "pass", "contenders": [row]}


def test_the_list_names_weights_and_says_what_the_newest_gained(folder):
    """Run 2 has the search of run 1, under another name; run 3 has nothing of theirs."""
    data = sy.load(folder)
    keep(data.dataset, "compare", document(), now=lambda: NOW)
    keep(data.dataset, "gate", gated("bm25", 0.456), now=lambda: NOW)
    keep(data.dataset, "learn", {"verdict": "keep"}, now=lambda: NOW)
    keep(data.dataset, "gate", gated("fts", 0.737), now=lambda: NOW)
    keep(data.dataset, "gate", gated("bm25", 0.5), now=lambda: NOW)
    assert list(data.runs().to_frame()["changed since run"]) == [
        "the first",
        "1: nothing",
        "-",
        "2: weights",
        "4: weights",
    ]
    lines = str(data.runs()).splitlines()
    told = "cannot be told (weights changed): no values by query are kept; over all w.json went from"
    assert lines[-2] == f"Whether run 5 is better than run 4 {told} 0.737 to 0.500."
    assert lines[-1] == f"more: steelyard runs {folder} 4 5"
    assert "\N{EN DASH}" not in "\n".join(lines)
    CliRunner().invoke(main, ["runs", str(folder), "5", "--delete"])
    assert f"Whether run 4 is better than run 2 {told} 0.456 to 0.737" in str(data.runs())
    (folder / "qrels.txt").write_text("q1 0 m1 1\n")
    keep(sy.load(folder).dataset, "gate", gated("bm25", 0.5), now=lambda: NOW)
    assert f"{untold(6, 2)} (labels changed)" in str(sy.load(folder).runs())


def test_where_nothing_changed_since_the_last_run_the_one_before_a_change_is_told_too(folder):
    """Run 1 had other weights; run 3 ran other contenders."""
    data = sy.load(folder)
    for found in (gated("bm25", 0.456), gated("fts", 0.737), of_means({"z": 0.9}), gated("fts", 0.737)):
        keep(data.dataset, "gate", found, now=lambda: NOW)
    assert str(data.runs()).split("\n\n")[1].splitlines() == [
        "Run 4 is as good as run 2: w.json has 0.737 nDCG@10.",
        f"{untold(4, 1)} (weights changed): no values by query are kept; over all w.json went "
        "from 0.456 to 0.737.",
        f"more: steelyard runs {folder} 1 4",
    ]


def test_the_same_weights_are_compared_whatever_they_are_called(folder):
    """What was chosen is called w.json later, beside another that had that name and 0.2."""
    data = sy.load(folder)
    means = {"weighted sum, tuned": ("weighted_sum(1*fts)", 0.5), "w.json": ("bm25", 0.2)}
    before = of_means({label: mean for label, (_, mean) in means.items()})
    before["configurations"] = [{"label": label, "strategy": own} for label, (own, _) in means.items()]
    keep(data.dataset, "recommend", before, {"config": weights("weighted_sum(1*fts)").to_json()}, now=lambda: NOW)
    keep(data.dataset, "gate", gated("weighted_sum(1*fts)", 0.75), now=lambda: NOW)
    assert data.runs().changed(1, 2) == [
        f"{untold(2, 1)}: no values by query are kept; over all w.json went from 0.500 to 0.750.",
        f"to tell, measure both alike: steelyard runs {folder} 1 --out run-1.json && "
        f"steelyard compare {folder} run-1.json w.json --baseline run-1.json",
        "run 1: weighted sum, tuned 0.500, weighted_sum(1*fts)",
        "run 2: w.json 0.750, weighted_sum(1*fts)",
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
    start = "Run 2 is worse than run 1 (weights changed): w.json is -0.200 nDCG@10 against that of run 1, "
    assert first.startswith(f"{start}95% sure of -0.233 to -0.167;")
    assert rest == ["run 1: w.json 0.500, bm25", "run 2: w.json 0.300, fts"]
    assert runs.changed(2, 1)[0].startswith("Run 1 is better than run 2 (weights changed): w.json is +0.200")
    assert runs.changed(2, 3) == ["nothing changed"]
    few = "Too few queries to tell whether run 4 is better than run 3 (result lists changed): w.json is 0.000"
    told, step, *_ = runs.changed(3, 4)
    assert told.startswith(few)
    assert step == "run 3: w.json 0.300, fts"  # the same weights, which no label tells apart


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
        "Run 2 is worse than run 1 (weights changed): w.json is -0.200 nDCG@10 against tuned of run 1,"
    )
    assert told[1:] == ["run 1: tuned 0.500, bm25", "run 2: w.json 0.300, fts"]


def test_contenders_of_other_depths_are_told_apart(folder):
    for deep in ({}, {"settings": "bm25.depth=5"}):
        found = of_queries(folder, [0.5] * 20, strategy="bm25", **deep)
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    runs = sy.load(folder).runs()
    assert "run 2: w.json 0.500, bm25 with bm25.depth=5" in runs.changed(1, 2)
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
        "Too few queries to tell whether run 2 is better than run 1 (labels changed): a, on the 2 queries with "
        "the same labels in both, is +0.200 nDCG@10 against that of run 1, and so few queries say nothing of "
        "others. Over all: 0.633 to 0.500.",
        "run 1: a 0.633, -",
        "run 2: a 0.500, -",
        "labels: 1 changed ('q1 m1')",
    ]
    assert "is +0.200 nDCG@10 against that of run 1" in str(sy.load(folder).runs())


def test_how_queries_were_drawn_is_told_as_changed_and_is_unknown_of_older_runs(folder):
    """The label is the same; first nothing is said of it, then that its query was drawn, then nothing is kept."""
    keep(sy.load(folder).dataset, "recommend", document())
    batch = {"sampled": "random", "labels": {"q1": ["m1"]}}
    (folder / "dataset.json").write_text(json.dumps({"name": "mine", "provenance": [batch]}))
    keep(sy.load(folder).dataset, "recommend", document())
    first, second = kept(sy.load(folder).dataset)
    assert causes(first, second) == ["provenance"]
    older = {name: digest for name, digest in first.states.items() if name != "provenance"}
    assert causes(replace(first, facts={**first.facts, "states": older}), second) == []


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
    assert "recommend: mismatch" in lines[2]
    assert max(map(len, lines)) <= 100
    assert len(lines) == 5  # the head, a line, the first run in two lines and the second


def weights(strategy):
    return SearchConfig("plain", "documented", 10, parse_strategy(strategy), {strategy: RetrieverConfig()}, ())


def test_a_run_is_deleted_with_what_was_kept_for_it_alone(folder):
    """The two runs share entries, queries, labels and provenance, and have result lists of their own."""
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
    assert (before, left) == (6, set(second.states.values()))
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
        f"{out}: replaced; to undo: {again}",
    ]
    assert json.loads(out.read_text()) == one
    for number in (1, 2):
        out.write_text(f"mine {number}")
        copy = folder / f"w.before-{number}.json"
        assert said("1")[1:] == [f"{out}: replaced; to undo: cp {copy} {out}"]
        assert copy.read_text() == f"mine {number}"
    out.write_text(json.dumps(two | {"provenance": {"by": "hand"}}))
    assert said("1") == [f"written: {out}, with fts"]
    assert data.runs().save_weights(2, out) == out


def test_what_is_replaced_says_of_which_other_data_set_it_was(folder, monkeypatch):
    """Default names are shared by all data sets of a folder; by hand, or of this set, it says nothing more."""
    monkeypatch.chdir(folder)
    data, file = sy.load(folder).dataset, Path("search-weights.json")
    for name, said in (("other", ", it was of the data set 'other'"), ("mine", ""), ("", "")):
        replace(weights("fts"), provenance={"dataset": name}).save(file)
        (line,) = keep_back(data, {file: weights("bm25")})
        assert line.startswith(f"{file}: replaced{said}; to undo: cp search-weights.before-")


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
        f"run.json: removed; to undo: steelyard runs {folder} 1 --out run.json",
        "none.json: removed; to undo: cp none.before-1.json none.json",
        "same.json: removed, it was of an earlier run",
    ]
    assert SearchConfig.load("none.before-1.json") == weights("vector")
    used = Path("w.current.json")  # of a try the file beside it has what was run
    weights("vector").save(used)
    assert keep_back(data, {used: None})[0].endswith(f"to undo: steelyard runs {folder} 1 --out {used}")
    assert sy.load(folder).runs().file(1, used) == weights("vector")
    (folder / FOLDER / FILE).write_bytes(b"no database")
    assert "cp run.before-1.json run.json" in keep_back(data, {files[0]: None})[0]


def test_python_loses_no_weights_and_json_tells_what_was_replaced(folder, monkeypatch, caplog):
    monkeypatch.chdir(folder)
    keep(sy.load(folder).dataset, "tune", document(), {"config": weights("fts").to_json(), "attempt": None})
    out = Path("w.json")
    weights("bm25").save(out)
    assert sy.load(folder).runs().save_weights(1, out) == out
    assert SearchConfig.load("w.before-1.json") == weights("bm25")
    assert "to undo: cp w.before-1.json w.json" in caplog.text
    weights("vector").save(out)
    ended = CliRunner().invoke(main, ["runs", str(folder), "1", "--out", str(out), "--json"])
    (line,) = json.loads(ended.stdout)["replaced"]
    assert line.endswith("to undo: cp w.before-2.json w.json")


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
        assert f"to undo: cp {copy}" in ended.stdout
        assert SearchConfig.load(copy) == weights("bm25")
    named = CliRunner().invoke(main, ["tune", str(folder), "plain", "--embedder", "lsa", "--out", str(out)])
    assert (named.exit_code, "tuned from" in named.stderr) == (0, False)
    same = ", the same search as before\n"  # what is run is plain's, as it was when nothing was named
    assert (same in ended.stdout, same in named.stdout) == (False, True)


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
    assert (refused.exit_code, "run 2, compare, has no weights file" in refused.output) == (2, True)
    assert f"those of 1 are kept: steelyard runs mine 1 --out {weights}" in refused.output
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
    first = f"Run 3 is the first of its kind; against run 2: steelyard runs {folder} 2 3"
    assert str(runs).split("\n\n")[1].startswith(f"{first}\n{start}")
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
    first = runs.changed(1, 2)[0]
    assert first.startswith(
        "Run 2 is worse than run 1 (weights changed): w.json is -0.200 nDCG@10 against fts, tuned of run 1,"
    )
    flatters = " Run {}'s weights were tuned on these queries, so its value is optimistic."
    assert first.endswith(flatters.format(1))
    assert runs.changed(2, 3)[0].endswith(flatters.format(3))
    assert runs.changed(1, 3)[1:] == ["run 1: fts, tuned 0.500, bm25", "run 3: w.json 0.500, bm25"]


def test_where_only_labels_changed_the_values_are_the_same_and_the_mean_is_told(folder):
    """By hand: other labels cost q00 0.6, of 20 queries, so 0.03; the other 19 have what they had."""
    for values in ([0.5] * 20, [-0.1] + [0.5] * 19):
        found = of_queries(folder, values, strategy="bm25")
        if values[0] < 0:
            lines = (folder / "qrels.txt").read_text().replace("q00 0 m1 1", "q00 0 m2 1")
            (folder / "qrels.txt").write_text(lines)
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    assert sy.load(folder).runs().changed(1, 2)[0] == (
        "Run 2 is as good as run 1 (labels changed): w.json, on the 19 queries with the same labels in both, "
        "has the same values. Over all: 0.500 to 0.470."
    )


def test_what_two_recommendations_chose_is_compared_and_shown_in_the_list(folder):
    """By hand: moltnet, tuned had 0.5 and 0.6; chosen was the other row, with 0.4 then, and moltnet now."""
    for value, name, best in ((0.4, "sum, tuned", 0.5), (0.6, "moltnet, tuned", 0.6)):
        found = of_queries(folder, [value] * 20, strategy=f"weighted_sum({value}*fts)")
        found = json.loads(json.dumps(found).replace("w.json", name))
        rest = "moltnet, tuned" if name[0] == "s" else "sum, tuned"
        found["results"].append({"label": rest, "metric": "nDCG@10", "mean": best})
        found["configurations"].append({"label": rest, "strategy": "bm25"})
        chosen = {"config": weights(f"weighted_sum({value}*fts)").to_json()}
        keep(sy.load(folder).dataset, "recommend", found | {"verdict": "ship"}, chosen, now=lambda: NOW)
    runs = sy.load(folder).runs()
    assert list(runs.to_frame()["of"]) == ["sum, tuned", "moltnet, tuned"]
    assert runs.changed(1, 2)[0].startswith(
        "Run 2 is better than run 1 (weights changed): moltnet, tuned is +0.200 nDCG@10 against sum, tuned of run"
    )


def test_a_weights_file_that_was_compared_can_be_had_again(folder, monkeypatch):
    """Compared beside a better contender, and edited by hand afterwards; so is one that was gated."""
    monkeypatch.chdir(folder.parent)
    file = Path("w.json")
    weights("fts").save(file)
    first = file.read_bytes()
    words = ["mine", "w.json", "bm25", "fts", "--embedder", "none"]
    assert CliRunner().invoke(main, ["compare", *words]).exit_code == 0
    assert CliRunner().invoke(main, ["gate", "mine", "w.json", "--update", "--because", "first"]).exit_code == 0
    assert CliRunner().invoke(main, ["gate", "mine"]).exit_code == 0
    for run in ("1", "2"):
        weights("vector").save(file)
        assert CliRunner().invoke(main, ["runs", "mine", run, "--out", "w.json"]).exit_code == 0
        assert file.read_bytes() == first
    weights("bm25").save(file)
    assert CliRunner().invoke(main, ["compare", *words]).exit_code == 0
    assert str(sy.load(folder).runs()).split("\n\n")[1].startswith("Run 3 is as good as run 1 (weights")


def test_a_weights_file_has_its_values_kept_beside_nine_others(folder):
    for value, strategy in ((0.5, "bm25"), (0.3, "fts")):
        found = of_queries(folder, [value] * 20, strategy=strategy)
        others = [{"label": f"other {number}", "queries": {}} for number in range(9)]
        found["rankings"]["lists"] = [*others, *found["rankings"]["lists"]]
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    assert (
        sy.load(folder).runs().changed(1, 2)[0].startswith("Run 2 is worse than run 1 (weights changed): w.json")
    )


def test_another_commit_hides_no_change_of_weights(folder, monkeypatch):
    for commit, value, strategy in (("a", 0.5, "bm25"), ("a", 0.3, "fts"), ("b", 0.3, "fts")):
        monkeypatch.setattr("steelyard_eval.recording.runs.revision", lambda _, commit=commit: commit)
        found = of_queries(folder, [value] * 20, strategy=strategy)
        keep(sy.load(folder).dataset, "compare", found)
    first, second, _ = str(sy.load(folder).runs()).split("\n\n")[1].splitlines()
    assert first.startswith("Run 3 is as good as run 2 (commit changed)")
    assert second.startswith("Run 3 is worse than run 1 (weights, commit changed)")


def test_python_keeps_the_file_that_it_compared(folder, tmp_path):
    weights("fts").save(tmp_path / "w.json")
    sy.load(folder).compare([str(tmp_path / "w.json"), "bm25"], timed=False)
    assert sy.load(folder).runs().chosen(1) == weights("fts")


def test_what_was_used_is_had_of_a_run_that_kept_it_alone(folder):
    """Ship replaces what was used, a comparison does not know it, and lists alone have no weights."""
    data, used, one = sy.load(folder), Path("w.current.json"), weights("bm25").to_json()
    for verdict, own in (("ship", {"config": one, "attempt": None}), (None, {"config": one})):
        keep(data.dataset, "tune", document() | {"verdict": verdict}, own)
    keep(data.dataset, "recommend", document() | {"verdict": "keep"}, {"config": None, "attempt": None})
    runs = data.runs()
    for run in (1, 2):
        assert runs.file(run, Path("w.json")) == weights("bm25")
        with pytest.raises(ConfigError, match=f"run {run}, tune, has no weights file of what was used then"):
            runs.file(run, used)
    assert ["as a file" in runs.one(run) for run in (1, 2, 3)] == [True, True, False]
    keep(data.dataset, "tune", document() | {"verdict": "keep"}, {"config": one, "attempt": None})
    assert data.runs().file(4, used) == weights("bm25")


def test_of_labels_too_many_to_keep_it_is_known_whether_they_are_the_same(folder, monkeypatch):
    monkeypatch.setattr("steelyard_eval.recording.runs.MOST", 20)
    for value, grade in ((0.5, 1), (0.3, 1), (0.3, 2)):
        found = of_queries(folder, [value] * 20, strategy="bm25")
        with (folder / "qrels.txt").open("a") as labels:
            labels.writelines(f"q{at:02} 0 m2 {grade}\n" for at in range(20))
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    runs = sy.load(folder).runs()
    assert runs.changed(1, 2)[0].startswith("Run 2 is worse than run 1 (result lists changed)")
    told, *lines = runs.changed(2, 3)
    assert told.startswith(f"{untold(3, 2)} (labels changed)")
    assert "labels: changed" in lines


def between_two_files(folder, monkeypatch, *values):
    """The sentence on runs of two weights files with these values, what it says to do, and the commands.

    The second file is still there, the first is no more.
    """
    monkeypatch.chdir(folder.parent)
    (folder / "corpus.jsonl").write_text("\n".join(CORPUS).replace("coffee", "who asks") + "\n")
    for row, strategy in zip(values, ("bm25", "fts"), strict=True):
        found = of_queries(folder, row, strategy=strategy)
        keep(sy.load("mine").dataset, "compare", found, {"config": weights(strategy).to_json()}, now=lambda: NOW)
    weights("fts").save("w.json")
    first, step, *_ = sy.load("mine").runs().changed(1, 2)
    what, *commands = re.split(": steelyard | && steelyard ", step)
    return first, what, commands


def test_too_few_queries_between_two_weights_are_settled_by_judging_these_two(folder, monkeypatch):
    first, what, commands = between_two_files(folder, monkeypatch, [0.5] * 6, [0.5, 0.1] * 3)
    assert first.startswith("Too few queries to tell whether run 2 is better than run 1 (weights changed)")
    assert (what, commands) == (
        "what to label for that",
        ["runs mine 1 --out run-1.json", "judge mine run-1.json w.json --list"],
    )
    assert [CliRunner().invoke(main, command.split()).exit_code for command in commands] == [0, 0]
    weights("vector").save("w.json")
    assert "runs mine 2 --out run-2.json && steelyard judge mine run-1.json run-2.json" in "".join(
        sy.load("mine").runs().changed(1, 2)
    )


def test_of_a_complete_pool_more_queries_are_asked_for_and_no_pairs(folder):
    """One without a label counts as not relevant there, so that only queries that are new can tell two apart."""
    (folder / "dataset.json").write_text('{"name": "mine", "pool": "complete"}')
    for values, strategy in (([0.5] * 6, "bm25"), ([0.5, 0.1] * 3, "fts")):
        found = of_queries(folder, values, strategy=strategy)
        keep(sy.load(folder).dataset, "compare", found, {"config": weights(strategy).to_json()}, now=lambda: NOW)
    _, step, *_ = sy.load(folder).runs().changed(1, 2)
    assert step.startswith("every query has labels; to tell more, write about ")
    assert step.endswith(f"then label them: steelyard judge {folder}")


def test_where_other_weights_are_worse_the_commands_show_on_which_queries(folder, monkeypatch):
    first, what, commands = between_two_files(folder, monkeypatch, [0.5] * 20, [0.1] * 20)
    assert first.startswith("Run 2 is worse than run 1 (weights changed)")
    assert (what, commands) == (
        "where it loses most, and why",
        ["runs mine 1 --out run-1.json", "explain mine w.json --against run-1.json"],
    )
    assert [CliRunner().invoke(main, command.split()).exit_code for command in commands] == [0, 0]
    _, gains, *_ = sy.load("mine").runs().changed(2, 1)
    assert gains.startswith("where it gains most, and why: ")
    assert gains.endswith("steelyard explain mine w.json --against run-1.json")


def test_where_weights_and_labels_changed_the_same_weights_under_other_labels_are_told(folder):
    """Back to the weights of run 1, without a label: run 2 had others, and says nothing of the labels."""
    for values, strategy in (([0.5] * 20, "bm25"), ([0.3] * 20, "fts"), ([0.1] + [0.5] * 19, "bm25")):
        found = of_queries(folder, values, strategy=strategy)
        if values[0] == 0.1:
            (folder / "qrels.txt").write_text((folder / "qrels.txt").read_text().replace("q00 0 m1", "q00 0 m2"))
        keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    runs = sy.load(folder).runs()
    assert list(runs.to_frame()["changed since run"]) == ["the first", "1: weights", "1: labels"]
    assert str(runs).split("\n\n")[1].splitlines() == [
        "Run 3 is as good as run 1 (labels changed): w.json, on the 19 queries with the same labels in both, has "
        "the same values. Over all: 0.500 to 0.480.",
        f"more: steelyard runs {folder} 1 3",
    ]
    keep(sy.load(folder).dataset, "compare", found, now=lambda: NOW)
    told = str(sy.load(folder).runs()).split("\n\n")[1].splitlines()
    assert [line.partition(":")[0] for line in told] == [
        "Run 4 is as good as run 3",
        "Run 4 is as good as run 1 (labels changed)",
        "more",
    ]


def test_the_list_has_what_was_compared_with_today_and_names_of_what_it_says_that_it_changed(folder):
    """Run 2 measured no tuned row; run 3 compared theirs with the file that is used today."""
    for kind, means in (
        ("recommend", {"old": 0.6, "sum, tuned": 0.8}),
        ("compare", {"old": 0.6, "moltnet": 0.7}),
        ("compare", {"w.json": 0.8, "theirs": 0.2, "old": 0.6}),
        ("compare", {"w.json": 0.8, "theirs": 0.2, "old": 0.6}),
    ):
        strategies = {"old": "fts", "moltnet": "vector", "theirs": "a Pipeline"}
        found = of_means(means) | {"baseline": "w.json" if "w.json" in means else "old", "verdict": None}
        found["configurations"] = [{"label": name, "strategy": strategies.get(name, "bm25")} for name in means]
        chosen = {"config": weights("bm25").to_json()} if kind == "recommend" or "w.json" in means else None
        keep(sy.load(folder).dataset, kind, found, chosen, now=lambda: NOW)
    listed = sy.load(folder).runs().to_frame()[["today", "value", "of", "changed since run"]]
    assert listed.to_numpy().tolist() == [
        ["0.600", "0.800", "sum, tuned", "the first"],
        ["0.600", "0.700", "moltnet", "1: nothing (old)"],
        ["0.800", "0.600", "old", "1: nothing"],
        ["0.800", "0.600", "old", "3: nothing"],
    ]


def test_a_run_is_held_against_one_of_the_same_job_and_last_against_a_gate_that_failed(folder):
    """A broken file was gated before the recommendation, and after it."""
    for kind, value, verdict in (
        ("compare", 0.5, None), ("gate", 0.1, "fail"), ("recommend", 0.5, "ship"), ("gate", 0.1, "fail"),
        ("compare", 0.5, None), ("gate", 0.5, "pass"), ("learn", 0.5, None),
    ):  # fmt: skip
        found = of_queries(folder, [value] * 20, strategy=f"weighted_sum({value}*fts)") | {"verdict": verdict}
        keep(sy.load(folder).dataset, kind, found, now=lambda: NOW)
    assert list(sy.load(folder).runs().to_frame()["changed since run"]) == [
        "the first", "1: weights", "1: nothing", "2: nothing", "1: nothing", "4: weights", "6: nothing",
    ]  # fmt: skip
    told = str(sy.load(folder).runs()).split("\n\n")[1].splitlines()
    assert told == ["Run 7 is as good as run 6: w.json has 0.500 nDCG@10."]  # not better than what never was used
    for run in ("6", "5", "3", "1"):
        CliRunner().invoke(main, ["runs", str(folder), run, "--delete"])
    assert list(sy.load(folder).runs().to_frame()["changed since run"])[-1] == "4: weights"


def test_weights_that_are_replaced_are_those_of_the_run_that_chose_them(folder, monkeypatch):
    """Run 1 chose them, run 2 chose others, run 3 measured them."""
    monkeypatch.chdir(folder)
    data, file = sy.load(folder).dataset, Path("w.json")
    for kind, strategy in (("recommend", "bm25"), ("recommend", "fts"), ("compare", "bm25")):
        keep(data, kind, document(), {"config": weights(strategy).to_json()})
    weights("bm25").save(file)
    again = f"steelyard runs {folder} {{}} --out w.json"
    assert keep_back(data, {file: weights("vector")}) == [f"w.json: replaced; to undo: {again.format(1)}"]
    CliRunner().invoke(main, ["runs", str(folder), "1", "--delete"])
    assert keep_back(data, {file: weights("vector")}) == [f"w.json: replaced; to undo: {again.format(3)}"]
