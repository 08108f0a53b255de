"""Reviews: what is written to an entry, by whom, and what the signal makes of it."""

import json

import pytest
from click.testing import CliRunner

from steelyard.base.errors import ConfigError, DataError
from steelyard.feedback import review
from steelyard.memory.entry import DAY, Entry
from steelyard.stores.sqlite import Vault
from steelyard_eval.cli.main import main
from steelyard_eval.vaults.read import RankedBy, open_searcher

NOW = 1_767_225_600.0


def stored(**facts):
    vault = Vault(":memory:")
    vault.upsert([Entry("a", text="x", **facts)])
    return vault


def test_a_review_writes_stability_difficulty_time_and_count():
    """S = 9, t = 9 days: R = 0.9. Good: 9 * (1 + (11 - 6) / 10) * 1 * (1 + 0.1 / 2) = 14.175."""
    vault = stored(stability=9.0, difficulty=6.0, last_review=NOW - 9 * DAY, review_count=2.0)
    review(vault, "a", "good", NOW)
    (entry,) = vault.get(["a"])
    assert (entry.stability, entry.difficulty) == (pytest.approx(14.175), 6.0)
    assert (entry.last_review, entry.review_count) == (NOW, 3.0)


@pytest.mark.parametrize(
    ("grade", "stability", "difficulty"),
    [("again", 0.2, 6.0), ("hard", 1.6 * 0.8, 5.5), ("good", 1.6, 5.0), ("easy", 1.6 * 1.3, 4.5)],
)
def test_a_first_review_starts_from_a_day_and_a_difficulty_of_5(grade, stability, difficulty):
    """At once: R = 1; 1 * (1 + 0.6) by the ease of the grade, and a fifth for `again`."""
    entry = review(stored(), "a", grade, NOW)
    assert (entry.stability, entry.difficulty) == (pytest.approx(stability), difficulty)


def test_what_cannot_be_reviewed_is_refused():
    with pytest.raises(DataError, match="no entry 'b'"):
        review(stored(), "b", "good", NOW)
    with pytest.raises(ConfigError, match="grade 'god'; did"):
        review(stored(), "a", "god", NOW)


def run(*words, code=0):
    ended = CliRunner().invoke(main, [str(word) for word in words])
    assert ended.exit_code == code, ended.output
    return ended


@pytest.fixture
def logged(tmp_path):
    (tmp_path / "set").mkdir()
    rows = [{"id": name, "text": f"{name} keys", "created_at": "2020-01-01"} for name in ("one", "two", "three")]
    (tmp_path / "set" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "set" / "queries.jsonl").write_text('{"id": "q", "text": "keys"}\n')
    (tmp_path / "set" / "qrels.txt").write_text("q 0 one 1\n")
    (tmp_path / "set" / "dataset.json").write_text('{"name": "two"}')
    run("index", tmp_path / "set", tmp_path / "v.db")
    shown = run("search", tmp_path / "v.db", "keys", "--log", tmp_path / "log.jsonl", "--json")
    return tmp_path, json.loads(shown.stdout)["query_id"]


def signal(folder):
    asked = "weighted_sum(1*fts, 1*retrievability)"
    with open_searcher([str(folder / "v.db")], RankedBy("plain", asked), 5) as searcher:
        return {hit.entry.id: hit.signals["retrievability"] for hit in searcher.search("keys").hits}


def test_a_review_by_command_makes_the_signal_live_and_survives_indexing(logged):
    folder, query_id = logged
    before = signal(folder)
    run("vault", "act", folder / "log.jsonl", query_id, "one", "--action", "reviewed", "--vault", folder / "v.db")
    after = signal(folder)

    assert before["one"] == before["two"] < 0.1  # years after a day's stability
    assert after["one"] == pytest.approx(1.0, abs=1e-3)
    assert after["two"] == pytest.approx(before["two"], abs=1e-3)
    assert '"reviewed"' in (folder / "log.jsonl").read_text()
    run("index", folder / "set", folder / "v.db")
    assert signal(folder)["one"] == pytest.approx(1.0, abs=1e-3)


def test_a_review_that_cannot_be_logged_is_not_written(logged):
    folder, _ = logged
    before = (folder / "log.jsonl").read_text()
    act = (
        "vault",
        "act",
        folder / "log.jsonl",
        "nobody",
        "one",
        "--action",
        "reviewed",
        "--vault",
        folder / "v.db",
    )
    assert "no impression" in run(*act, code=2).stderr
    assert signal(folder)["one"] < 0.1
    assert (folder / "log.jsonl").read_text() == before
