"""A row of a store that its program would not have written costs that value or that row, and is counted."""

import contextlib
import json
import sqlite3

import pytest

from steelyard_eval.extensions.importers import import_store, load_store


@pytest.fixture
def damaged(store_copy):
    """Copies a store and runs statements on one of its databases; the store before and after."""

    def make(folder, file, *statements):
        place = store_copy(folder, folder)
        source = place / file if folder == "langgraph-sqlite" else place
        whole = load_store(source)
        with contextlib.closing(sqlite3.connect(place / file)) as db, db:
            for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
                db.execute(f'DROP TRIGGER "{name}"')
            for statement in statements:
                db.execute(statement)
        return whole, load_store(source)

    return make


def count(data, words):
    """The notes that say this."""
    return [note for note in data.notices if words in note]


# table, column, id, and the field that loses its value
LISTS = [
    ("echovault-newest", "index.db", "memories", "tags", "tags"),
    ("soleri", "vault.db", "entries", "tags", "tags"),
    ("soleri", "vault.db", "memories", "topics", "tags"),
    ("spec-kit", "context-index.sqlite", "memory_index", "trigger_phrases", "tags"),
]


@pytest.mark.parametrize(("folder", "file", "table", "column", "field"), LISTS)
def test_broken_json_costs_the_value_and_not_the_store(damaged, folder, file, table, column, field):
    with_some = f'id IN (SELECT id FROM {table} WHERE length("{column}") > 2 ORDER BY id LIMIT 2)'
    whole, found = damaged(folder, file, f"""UPDATE {table} SET "{column}" = '["open' WHERE {with_some}""")

    assert [entry.id for entry in found.entries] == [entry.id for entry in whole.entries]
    lost = [(was, now) for was, now in zip(whole.entries, found.entries, strict=True) if was.tags and not now.tags]
    assert len(lost) == 2
    assert all(now.text == was.text and now.created_at == was.created_at for was, now in lost)
    assert count(found, f"2 rows have {column} ")


# store, file, the table and its column with a value that is none, the entries that are lost, and what is said
ROWS = [
    ("langgraph-sqlite", "store.db", "store", "value", """'{"text": '""", 1, "1 row left"),
    ("soleri", "vault.db", "entries", "description", "X'FF00'", 1, " (text "),
    ("soleri", "vault.db", "entry_vectors", "vector", "X'0000'", 0, " cut short"),
    ("spec-kit", "speckit-eval.db", "eval_final_results", "scores", "'[0.5, '", 0, " scores that"),
]


@pytest.mark.parametrize(("folder", "file", "table", "column", "value", "lost", "note"), ROWS)
def test_a_value_that_is_none_costs_its_row_at_most(damaged, folder, file, table, column, value, lost, note):
    first = f"rowid = (SELECT min(rowid) FROM {table})"
    whole, found = damaged(folder, file, f"UPDATE {table} SET {column} = {value} WHERE {first}")

    assert len(found.entries) == len(whole.entries) - lost
    assert all(entry in whole.entries for entry in found.entries)
    assert count(found, note)


def test_a_date_or_number_that_is_none_costs_the_value(damaged):
    whole, found = damaged(
        "echovault-newest",
        "index.db",
        "UPDATE memories SET created_at = 'soon', retrieved_count = 'many' WHERE rowid IN (1, 2)",
        "UPDATE memories SET branch = X'FF00' WHERE rowid = 3",
    )

    assert [entry.text for entry in found.entries] == [entry.text for entry in whole.entries]
    assert sum(entry.created_at is None for entry in found.entries) == 2
    assert count(found, "without created_at")
    assert count(found, "without branch")


def test_feedback_of_soleri_without_a_time_is_left_out(damaged, tmp_path, store_root):
    import_store(store_root / "soleri", tmp_path / "whole")
    # As the column may not be NULL, the table is made anew, as an older program may have had it.
    damaged(
        "soleri",
        "vault.db",
        "CREATE TABLE other AS SELECT * FROM brain_feedback",
        "DROP TABLE brain_feedback",
        "ALTER TABLE other RENAME TO brain_feedback",
        "UPDATE brain_feedback SET created_at = NULL WHERE id = 1",
        "UPDATE brain_feedback SET created_at = 'soon' WHERE id = 2",
    )
    done = import_store(tmp_path / "soleri", tmp_path / "mine")

    whole, mine = ((tmp_path / name / "feedback.jsonl").read_text().splitlines() for name in ("whole", "mine"))
    assert mine == [line for line in whole if json.loads(line)["query_id"] not in ("brain-1", "brain-2")]
    assert [note for note in done.notes if note.startswith("2 lists")]


def test_events_of_spec_kit_without_a_time_are_left_out(damaged, tmp_path):
    damaged(
        "spec-kit",
        "context-index.sqlite",
        "CREATE TABLE other AS SELECT * FROM feedback_events",
        "DROP TABLE feedback_events",
        "ALTER TABLE other RENAME TO feedback_events",
        "UPDATE feedback_events SET timestamp = NULL WHERE id IN (SELECT min(id) FROM feedback_events)",
    )
    done = import_store(tmp_path / "spec-kit", tmp_path / "mine")

    assert [note for note in done.notes if note.startswith("1 list ")]
    assert done.counts["impressions"] > 1
