"""Importing into a folder: what is written, what stays on a second import, and what is refused."""

import contextlib
import json
import pickle
import shutil
import sqlite3
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from shared import document, done, tabled

import steelyard_eval
from steelyard.base.errors import ConfigError, DataError
from steelyard.memory.text import render
from steelyard.systems import find_system
from steelyard_eval.datasets import check, load
from steelyard_eval.extensions.importers import Options, import_store, load_store, refresh

NOTES = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))["NOTES"]


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes" / "ops").mkdir(parents=True)
    for name, text in NOTES.items():
        (tmp_path / "notes" / name).write_text(text)
    return tmp_path / "notes"


@pytest.fixture
def mine(notes, tmp_path):
    """The folder that an import of them made."""
    import_store(notes, tmp_path / "mine")
    return tmp_path / "mine"


def files(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@tabled
def test_a_title_that_is_the_first_heading_stands_once_in_what_is_searched(tmp_path, note, title, text):
    (tmp_path / "a.md").write_text(note)
    import_store(tmp_path / "a.md", tmp_path / "mine", "markdown")
    data = load(tmp_path / "mine")
    [entry] = data.entries
    assert (entry.title, entry.text) == (title, text)
    assert render(data.recipe, entry).strip() == f"{title}\n{text}".strip()


def test_labels_queries_and_other_files_survive_an_import(notes, mine):
    about = json.loads((mine / "dataset.json").read_text())
    (mine / "dataset.json").write_text(json.dumps(about | {"name": "my notes", "system": "bm25"}))
    (mine / "queries.jsonl").write_text('{"id": "q1", "text": "when do we deploy"}\n')
    (mine / "qrels.txt").write_text("q1 0 ops/deploy 2\nq1 0 keys -1\n")
    (mine / "reports").mkdir()
    (mine / "reports" / "baseline.json").write_text("{}")
    (notes / "ops" / "deploy.md").unlink()
    done = import_store(notes, mine)
    assert (mine / "qrels.txt").read_text() == "q1 0 keys -1\n"
    assert (mine / "qrels.lost.txt").read_text() == "q1 0 ops/deploy 2\n"
    assert any("1 label" in note and "ops/deploy" in note for note in done.notes)
    assert (mine / "reports" / "baseline.json").read_text() == "{}"
    (notes / "ops" / "deploy.md").write_text("Back.\n")
    import_store(notes, mine)
    found = load(mine)
    assert (found.qrels, found.name, found.system) == ({"q1": {"ops/deploy": 2, "keys": 0}}, "my notes", "bm25")
    assert not (mine / "qrels.lost.txt").exists()


def test_recorded_vectors_go_when_their_rows_no_longer_fit(notes, mine):
    np.save(mine / "corpus.small.f16.npy", np.ones((2, 3), dtype=np.float16))
    assert not import_store(notes, mine).changed
    (notes / "third.md").write_text("A third note.\n")
    done = import_store(notes, mine)
    assert not (mine / "corpus.small.f16.npy").exists()
    assert any("corpus.small.f16.npy" in note for note in done.notes)
    assert check(mine).faults == ()


def test_a_folder_alone_is_imported_again_by_who_imported_it(notes, mine, tmp_path, monkeypatch):
    assert not refresh(mine).changed
    (notes / "third.md").write_text("A third note.\n")
    assert (document("import", mine)["counts"], len(load(mine).entries)) == ({"entries": 3}, 3)
    (mine / "corpus.jsonl").write_bytes(b"\xff\n")
    assert (refresh(mine).changed, len(load(mine).entries)) == (True, 3)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a stranger's"))
    with pytest.raises(ConfigError, match="was not imported here"):
        refresh(mine)
    with pytest.raises(ConfigError, match="not made"):  # no import made it
        import_store(notes, tmp_path)


@tabled
def test_a_date_in_the_future_moves_no_clock_without_a_word(tmp_path, dates, as_of, ahead):
    """It is a slip: by hand, 2026-03-02T12:00:00Z is 1772452800."""
    rows = "".join(f"e{number},The lamp is lit.,{date}\n" for number, date in enumerate(dates))
    (tmp_path / "table.csv").write_text(f"id,text,created_at\n{rows}")
    done = import_store(tmp_path / "table.csv", tmp_path / "mine", clock=lambda: 1772452800.0)
    assert json.loads((tmp_path / "mine" / "dataset.json").read_text())["as_of"][:10] == as_of
    told = [note for note in done.notes if "future" in note]
    assert [ahead in note for note in told] == [True] * bool(ahead)


def test_an_id_that_is_there_twice_is_one_entry(tmp_path):
    table = tmp_path / "notes.csv"
    table.write_text("id,text\n1,The lamp is lit.\n2,The door is shut.\n1,The lamp is out.\n")
    done = import_store(table, tmp_path / "mine")
    assert done.counts == {"entries": 2} == {"entries": len(load(tmp_path / "mine").entries)}
    assert any("'1' (its id" in note for note in done.notes)


@tabled
def test_an_export_is_no_store(tmp_path, target, exported):
    file = tmp_path / "weights.json"
    if target:
        done("export", exported, "--to", target, "--out", file)
    else:
        find_system(exported).config(10).save(file)
    found = done("import", file, tmp_path / "mine", code=2)
    assert ("export" if target else "--weights") in found.output
    assert not (tmp_path / "mine").exists()


@tabled
def test_a_note_or_a_row_about_weights_is_one_entry(tmp_path, name, text, kind, entries):
    (tmp_path / name).write_text(text)
    assert len(load_store(tmp_path / name, kind).entries) == entries


def test_a_cell_has_16_mib_at_most(tmp_path):
    (tmp_path / "table.csv").write_text("id,text\na,%s\n" % ("x" * (16 * 2**20 + 1)))
    with pytest.raises(DataError, match="CSV"):
        load_store(tmp_path / "table.csv")


def test_links_are_neither_followed_nor_read(notes, tmp_path):
    secret = tmp_path / "secret.md"
    secret.write_text("the secret")
    (notes / "link.md").symlink_to(secret)
    (notes / "folder").symlink_to(tmp_path)
    assert "the secret" not in json.dumps([entry.to_json() for entry in load_store(notes).entries])


def test_every_kind_is_named_with_where_its_program_keeps_its_store():
    kinds = {row["kind"] for row in document("import", "--list")}
    assert {"echovault", "soleri", "spec_kit", "moltnet", "cortex_mem", "claude", "mem0", "table"} <= kinds


def test_a_store_is_indexed_and_loaded_without_a_folder_between(notes, tmp_path):
    assert "2 entries" in done("index", notes, tmp_path / "v.db", "--embedder", "none").output
    assert len(steelyard_eval.load(notes).dataset.entries) == 2


def test_a_program_s_own_place_is_found_by_its_name(store_root, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMORY_HOME", str(store_root / "echovault-newest"))
    assert "26 entries, 13 queries, 15 labels" in done("import", "echovault", tmp_path / "mine").output


def test_a_table_s_columns_are_guessed_and_can_be_named(tmp_path):
    table = tmp_path / "notes.csv"
    table.write_text('uuid,Body,when,labels\n1,"Rotate, weekly",2026-01-02,"ops, keys"\n2,At night,2026-01-03,\n')
    first, second = load_store(table, options=Options(columns={"created_at": "when"})).entries
    assert (first.id, first.text) == ("1", "Rotate, weekly")
    assert (first.tags, first.created_at) == (("ops", "keys"), 1767312000)
    assert second.tags == ()
    with pytest.raises(ConfigError, match=r"'wen'.*'when'"):
        load_store(table, options=Options(columns={"created_at": "wen"}))


def database(path, script):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(script)
    return path


@tabled
def test_other_tables_hold_the_same_rows(tmp_path, name, text):
    path = tmp_path / name
    (database if name == "a.db" else Path.write_text)(path, text)
    assert [(entry.id, entry.text) for entry in load_store(path).entries] == [("1", "one"), ("2", "two")]


def test_a_query_chooses_the_rows_of_a_database(tmp_path):
    script = "CREATE TABLE a(k, v); CREATE TABLE b(k, v); INSERT INTO b VALUES ('1', 'one')"
    path = database(tmp_path / "own.db", script)
    with pytest.raises(ConfigError, match=" a, b"):
        load_store(path)
    found = load_store(path, options=Options(sql="SELECT k AS id, v AS text FROM b"))
    assert found.entries[0].text == "one"
    with pytest.raises(ConfigError, match="not authorized"):
        load_store(path, options=Options(sql="ATTACH '/etc/passwd' AS x"))


def test_a_database_is_read_with_its_log_while_its_program_writes(tmp_path):
    path = tmp_path / "live.db"
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=wal")
    db.execute("CREATE TABLE notes(id, text)")
    db.execute("INSERT INTO notes VALUES ('1', 'only in the log')")
    db.commit()
    before = files(tmp_path)
    assert load_store(path).entries[0].text.endswith("the log")
    assert files(tmp_path) == before
    db.close()


def test_a_schema_runs_nothing(tmp_path):
    table = "CREATE TABLE memories(id, text, key DEFAULT (hex(randomblob(8))), more AS (upper(text)));"
    view = "CREATE VIEW notes AS SELECT load_extension('evil') AS id;"
    row = "INSERT INTO memories(id, text) VALUES ('1', 'one')"
    (entry,) = load_store(database(tmp_path / "evil.db", table + view + row)).entries
    assert (entry.text, "more" in entry.extra) == ("one", False)


@tabled
def test_damaged_sources_are_one_message(tmp_path, name, content, times, message):
    (tmp_path / name).write_text(content[0] + content[1] * times)
    found = done("import", tmp_path / name, tmp_path / "mine", code=2)
    assert (message in found.output, "Traceback" in found.output) == (True, False)
    assert not (tmp_path / "mine").exists()


def test_an_import_that_is_interrupted_leaves_the_old_folder(notes, mine, tmp_path, monkeypatch):
    before = files(mine)
    (notes / "third.md").write_text("A third note.\n")
    stop = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("steelyard_eval.extensions.importers.write.move_folder", stop)
    with pytest.raises(KeyboardInterrupt):
        import_store(notes, mine)
    assert files(mine) == before
    assert not list(tmp_path.glob(".mine.*"))


@pytest.fixture
def vault(store_copy):
    """A copy of EchoVault's store that may be changed."""
    return store_copy("echovault-newest", "vault")


def test_a_golden_query_keeps_its_id_and_labels_whatever_else_comes(vault, tmp_path):
    import_store(vault, tmp_path / "mine")
    before = load(tmp_path / "mine")
    golden = (vault / "golden.yaml").read_text()
    first = "queries:\n- query: a new one\n  expected: []\n"
    (vault / "golden.yaml").write_text(golden.replace("queries:\n", first, 1))
    again = {"query": before.queries[0].text, "expected": "Retry storms need jitter"}
    (vault / "golden.yml").write_text(json.dumps({"queries": [again]}))
    done = import_store(vault, tmp_path / "mine")
    after = load(tmp_path / "mine")
    assert sum(note.startswith("1 query without ") for note in done.notes) == 1
    old, new = ({(query.id, query.text) for query in data.queries} for data in (before, after))
    assert old < new
    assert after.qrels == before.qrels


def test_labels_that_name_no_query_or_have_no_grade_are_left_out_and_counted(store_copy, tmp_path, change):
    place = store_copy("spec-kit")
    whole = import_store(place, tmp_path / "whole").counts["labels"]
    wrong = "UPDATE eval_ground_truth SET relevance = 9 WHERE id = (SELECT min(id) FROM eval_ground_truth)"
    lacking = "DELETE FROM eval_queries WHERE id = (SELECT max(query_id) FROM eval_ground_truth)"
    change(place / "speckit-eval.db", wrong, lacking)
    done = import_store(place, tmp_path / "mine")
    assert check(tmp_path / "mine").faults == ()
    assert [note for note in done.notes if note.endswith(" -1 to 4")]
    assert [note for note in done.notes if "whose query" in note]
    assert len((tmp_path / "mine" / "qrels.txt").read_text().splitlines()) < whole


def test_a_vault_of_soleri_without_feedback_is_one(store_copy, change):
    place = store_copy("soleri")
    change(place / "vault.db", "DROP TABLE brain_feedback", "DROP TABLE memories")
    assert len(load_store(place).entries) == 23


@pytest.mark.parametrize("kept", ["memories", "history"])
def test_a_point_of_mem0_s_telemetry_is_no_memory(store_copy, kept, change):
    """It lies in a collection of its own, which a program has whose memories are elsewhere, too."""
    place = store_copy("mem0")
    whole, [memories] = load_store(place), place.rglob("storage.sqlite")
    telemetry = place / "migrations_qdrant" / "collection" / "mem0migrations" / memories.name
    telemetry.parent.mkdir(parents=True)
    shutil.copy(memories, telemetry)
    point = {"id": "7", "vector": [0.1], "payload": {"user_id": "ann", "type": "user_identity"}}
    raw = pickle.dumps(point, 4).hex()
    change(telemetry, "DELETE FROM points WHERE rowid > 1", f"UPDATE points SET point = X'{raw}'")
    if kept == "history":
        memories.unlink()
    found = load_store(place)
    assert {entry.id for entry in found.entries} == {entry.id for entry in whole.entries}
    assert sum("1 point" in note for note in found.notices) == 1


def test_vectors_that_came_later_are_written(store_copy, tmp_path, change):
    place = store_copy("langgraph-sqlite") / "store.db"
    assert import_store(place, tmp_path / "mine").models == ("langgraph",)
    vectors = np.load(tmp_path / "mine" / "corpus.langgraph.f16.npy")
    assert (vectors.shape, int((~vectors.any(axis=1)).sum())) == ((25, 64), 1)
    lacking = "FROM store WHERE (prefix, key) NOT IN (SELECT prefix, key FROM store_vectors)"
    made = f"SELECT prefix, key, '$', (SELECT embedding FROM store_vectors) {lacking}"
    change(place, f"INSERT INTO store_vectors (prefix, key, field_name, embedding) {made}")
    done = import_store(place, tmp_path / "mine")
    assert (done.models, done.changed) == (("langgraph",), True)
    assert np.load(tmp_path / "mine" / "corpus.langgraph.f16.npy").any(axis=1).all()
    assert not import_store(place, tmp_path / "mine").changed


def test_what_a_killed_import_left_goes_though_nothing_has_changed(notes, mine, tmp_path):
    (tmp_path / ".mine.0f9a2b7c.part").mkdir()  # the folder that was replaced, of a process that is dead
    assert not import_store(notes, mine).changed
    assert [path.name for path in tmp_path.glob(".mine.*")] == []


def test_a_file_that_is_not_there_is_not_taken_for_a_kind(tmp_path):
    (tmp_path / "how-to.csv").touch()
    with pytest.raises(ConfigError, match=r"howto.*did you mean 'how-to.csv'\?$"):
        import_store(tmp_path / "howto", tmp_path / "out", "table")


def test_first_labels_from_the_store_end_the_claim_that_queries_were_drawn(vault, tmp_path):
    mine = tmp_path / "mine"
    import_store(vault, mine)
    about = json.loads((mine / "dataset.json").read_text())
    (mine / "dataset.json").write_text(json.dumps(about | {"sampled": "random"}))
    import_store(vault, mine)
    assert load(mine).sampled == "random"  # no query has labels that had none
    whole = (mine / "qrels.txt").read_text().splitlines()
    first = whole[0].split()[0]
    (mine / "qrels.txt").write_text("".join(f"{line}\n" for line in whole if line.split()[0] != first))
    import_store(vault, mine)
    assert load(mine).sampled == "by hand"


def test_the_model_of_vectors_is_no_path_and_is_named_by_who_imports(tmp_path, store_copy):
    store = store_copy("soleri")
    for name, own in (("a", "nomic-ai/nomic-embed-text:latest"), ("b", "x/../../../voyage-3.5")):
        with contextlib.closing(sqlite3.connect(store / "vault.db")) as db, db:
            db.execute("UPDATE entry_vectors SET model = ?", [own])
        told = import_store(store, tmp_path / name).notes
        assert any(f"EMBEDDING_MODEL='{own}' and" in note for note in told)  # as its maker calls it
    import_store(store, tmp_path / "c", options=Options(model="mine"))
    models = [{model for model, _ in load(tmp_path / name).vectors} for name in "abc"]
    assert models == [{"nomic-embed-text-latest"}, {"voyage-3.5"}, {"mine"}]


def test_a_store_without_an_entry_is_said_to_be_empty(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as store:
        store.execute("CREATE TABLE store (prefix TEXT, key TEXT, value TEXT, created_at TEXT, updated_at TEXT)")
    with pytest.raises(DataError, match="it is empty"):
        import_store(tmp_path / "store.db", tmp_path / "set")
