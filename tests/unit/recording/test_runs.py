"""Kept runs: what is in them and what is not, hostile and read-only folders, writers at the same time."""

import json
import os
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256

import apsw
import pytest
from scipy import stats
from shared import document as printed, tabled, write_set

import steelyard_eval as sy
from steelyard_eval.datasets import check
from steelyard_eval.recording.saved_runs import FILE, FOLDER, TABLES, keep, load_runs
from steelyard_eval.result import structs
from steelyard_eval.result.document import render
from steelyard_eval.result.structs import Answer, Decision, Estimate, Provenance, QueryRow, Result, Row, replace

CORPUS = ["rotate the secret keys", "coffee"]
NOW = datetime(2026, 11, 23, 17, 40, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data set of two entries, with kept runs switched on and a cache of its own."""
    monkeypatch.delenv("STEELYARD_RUNS")
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "400")
    return write_set(tmp_path / "mine", CORPUS, ["where are secrets"], "q1 0 m1 2\n")


def document(
    mean=0.5, strategy="bm25", values=None, *, means=None, kind="compare", metric="nDCG@10", verdict="",
    chosen=None, tool="steelyard 0.1.0", baseline="b", **about,
):  # fmt: skip
    """A comparison of a and b, b the baseline; `values` are those of a by query."""
    means = {"a": mean, "b": 0.4} if means is None else means
    values = {"q1": mean} if values is None else values
    job = {"command": ["steelyard", "tune"]} if kind == "tune" else {}
    return Result(
        "recommend" if kind == "tune" else kind,
        Answer(verdict if kind == "gate" else "alone"),
        Provenance(tool, structs.DataFacts("mine"), metrics=[metric], baseline=baseline, **job, **about),
        rows=[Row(label, "system", strategy, means={metric: Estimate(own)}) for label, own in means.items()],
        decision=Decision(verdict, chosen) if verdict and kind != "gate" else None,
        queries=[QueryRow(query, values={"a": own, "b": 0.4}) for query, own in values.items()],
    )


def test_nothing_is_kept_of_data_in_memory_nor_when_it_is_switched_off(folder, monkeypatch, tmp_path):
    held = sy.load({"corpus": {"a": "red"}, "queries": {"q": "red"}, "qrels": [("q", "a", 1)]})
    held.compare("bm25", timed=False)
    monkeypatch.setenv("STEELYARD_RUNS", "off")
    sy.load(folder).compare("bm25", timed=False)
    assert not (folder / FOLDER).exists()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("text", ["export PATH", None])
def test_a_link_in_our_folder_loses_nobody_a_file(folder, tmp_path, text):
    mine = tmp_path / "bashrc"
    if text:
        mine.write_text(text)
    (folder / FOLDER).mkdir()
    for name in (".gitignore", f"{FILE}-journal", f"{FILE}-wal", f"{FILE}-shm"):
        (folder / FOLDER / name).symlink_to(mine)
    keep(sy.load(folder).dataset, document())
    assert (mine.read_text() if text else mine.exists()) == (text or False)


def test_a_folder_that_is_a_link_or_a_file_has_its_runs_in_the_cache(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / FOLDER).symlink_to(elsewhere)
    keep(sy.load(folder).dataset, document())
    (folder / FOLDER).unlink()
    (folder / FOLDER).write_text("in the way")
    keep(sy.load(folder).dataset, document())
    assert list(elsewhere.iterdir()) == []
    assert len(list((tmp_path / "cache" / "runs").glob("*.db"))) == 1
    (folder / FOLDER).unlink()
    assert len(load_runs(sy.load(folder).dataset)) == 2


def test_a_locked_file_is_not_to_be_deleted(folder, monkeypatch):
    keep(sy.load(folder).dataset, document())
    monkeypatch.setattr("steelyard_eval.recording.saved_runs.BUSY_TIMEOUT_MS", 10)
    with closing(apsw.Connection(str(folder / FOLDER / FILE))) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sy.DataError, match="program; try again"):
            sy.load(folder).runs()


def execute(folder, statements, values=()):
    with apsw.Connection(str(folder / FOLDER / FILE)) as db:
        db.execute(statements, values)


def raw(folder, content):
    (folder / FOLDER / FILE).write_bytes(content)


TRIGGER = "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM states; END"


@pytest.mark.parametrize(
    ("write", "content", "why"),
    [
        (execute, "CREATE TABLE runs(id, at, kind, facts)", "of runs; move"),
        (execute, "; ".join([*TABLES, TRIGGER]), "of runs; move"),
        (raw, b"SQLite format 3\x00" + b"\xff" * 4096, "begin anew"),
        (raw, b"no database at all" * 100, "begin anew"),
    ],
)
def test_somebody_elses_or_a_damaged_file_is_refused_and_never_written(folder, write, content, why):
    """And stops no job."""
    (folder / FOLDER).mkdir()
    write(folder, content)
    before = (folder / FOLDER / FILE).read_bytes()
    assert sy.load(folder).compare("bm25", timed=False)
    assert (folder / FOLDER / FILE).read_bytes() == before
    with pytest.raises(sy.DataError, match=why):
        sy.load(folder).runs()


@tabled
def test_facts_of_other_types_are_damage(folder, facts):
    keep(sy.load(folder).dataset, document())
    execute(folder, "UPDATE runs SET facts = ?", (json.dumps(facts),))
    with pytest.raises(sy.DataError, match="damaged; delete"):
        sy.load(folder).runs()


def test_writers_at_the_same_time_lose_nothing(folder, tmp_path):
    code = (
        "import json, sys, steelyard_eval as sy; from steelyard_eval.recording.saved_runs import keep\n"
        "from steelyard_eval.result.document import read\n"
        "data, result = sy.load(sys.argv[1]).dataset, read(sys.argv[2].encode())\n"
        "for _ in range(10): keep(data, result)"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    made = render(replace(document(), answer=Answer("plain_text", {"text": "x"})))
    call = [sys.executable, "-c", code, str(folder), made]
    for process in [subprocess.Popen(call, env=environ) for _ in range(3)]:
        assert process.wait() == 0
    assert [one.id for one in load_runs(sy.load(folder).dataset)] == list(range(1, 31))
    assert not (tmp_path / "cache").exists()


@pytest.fixture
def many(folder):
    """Twelve queries, each answered by m1."""
    queries = [{"id": f"q{at}", "text": f"secret {at}"} for at in range(12)]
    return write_set(folder, CORPUS, queries, "".join(f"q{at} 0 m1 1\n" for at in range(12)))


def measured(folder, rise, **more):
    """Keep a comparison in which a has .5 and a rise on each of the twelve queries."""
    values = {f"q{at}": 0.5 + own for at, own in enumerate(rise)}
    found = document(sum(values.values()) / 12, **{"values": values, **more})
    keep(sy.load(folder).dataset, found, now=lambda: NOW)


def test_the_list_has_a_line_a_run(many):
    measured(many, [0.0] * 12)
    measured(many, [0.1] * 12, metric="P@5", means={})
    (many / "qrels.txt").write_text("".join(f"q{at} 0 m1 2\n" for at in range(12)))
    measured(many, [0.1] * 12, tool="steelyard 0.2.0")
    keep(sy.load(many).dataset, document(kind="gate", verdict="mismatch", means={}), now=lambda: NOW)
    rows = sy.load(many).runs().to_frame().to_dict("records")
    assert [row["date"] for row in rows] == ["2026-11-23 17:40"] * 4
    told = [("compare", "0.500", "a"), ("compare", "", ""), ("compare", "0.600", "a"), ("gate", "", "")]
    assert [(row["command"], row["value"], row["contender"]) for row in rows] == told
    assert [one["value"] for one in printed("runs", many, "--trend", "nDCG@10")["runs"]] == ["0.500", "0.600"]
    with pytest.raises(sy.ConfigError, match="P@5"):
        sy.load(many).runs().trend("MRR")


def test_two_runs_are_compared_by_query_where_both_kept_values(many):
    """Ten queries rise by .1, one falls: the test flips all 2**12 patterns of signs."""
    rise = [0.1] * 10 + [-0.05, 0.0]
    measured(many, [0.0] * 12)
    measured(many, rise)
    found = printed("runs", many, 1, 2)
    assert found["difference"]["delta"] == pytest.approx(0.95 / 12)
    assert found["difference"]["queries"] == 12
    flipped = stats.permutation_test((rise,), sum, permutation_type="samples", n_resamples=float("inf")).pvalue
    assert found["difference"]["p"] == pytest.approx(flipped)
    assert found["difference"]["low"] > 0
    assert found["changes"] == {}
    assert printed("runs", many, 2, 1)["difference"]["delta"] == pytest.approx(-0.95 / 12)


def test_over_queries_whose_labels_changed_nothing_is_compared(many):
    measured(many, [0.0] * 12)
    (many / "qrels.txt").write_text("".join(f"q{at} 0 m1 {1 + (at < 4)}\n" for at in range(12)))
    measured(many, [0.1] * 12, strategy="fts")
    found = sy.load(many).runs().between(1, 2)
    assert found["difference"]["queries"] == 8
    assert found["changes"] == {"labels": "4 changed ('q0 m1', 'q1 m1', 'q2 m1', ...)", "weights": "bm25 to fts"}
    assert b"secret" not in (many / FOLDER / FILE).read_bytes()  # ids are kept, and no texts
    with pytest.raises(sy.ConfigError, match="9"):
        sy.load(many).runs().between(1, 9)
    execute(many, "UPDATE states SET content = '[[1]]'")
    with pytest.raises(sy.DataError, match="damaged; delete"):
        sy.load(many).runs().between(1, 2)


@pytest.mark.parametrize("more", [{"split": "test"}, {"metric": "P@5"}, {"values": {}}])
def test_why_two_runs_are_not_compared_is_said_in_one_sentence(many, more):
    measured(many, [0.0] * 12)
    measured(many, [0.1] * 12, **more)
    found = printed("runs", many, 1, 2)
    assert found["difference"] is None
    assert found["sentence"].endswith(".") and found["sentence"].count(". ") == 0


@tabled
def test_a_run_is_about_what_it_chose_or_kept_else_its_only_weights_file(folder, more, own):
    keep(sy.load(folder).dataset, document(**more))
    assert load_runs(sy.load(folder).dataset)[-1].facts.own.label == own


def test_runs_are_listed_of_a_set_whose_labels_were_edited(folder):
    """dataset.json holds the hash of qrels.txt, which nobody renewed."""
    sealed = sha256((folder / "qrels.txt").read_bytes()).hexdigest()
    (folder / "dataset.json").write_text(json.dumps({"name": "mine", "files": {"qrels.txt": sealed}}))
    keep(check(folder).dataset, document())
    (folder / "qrels.txt").write_text("q1 0 m1 1\n")
    assert len(printed("runs", folder)["runs"]) == 1
