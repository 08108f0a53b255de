"""Stores that other programs wrote, beside what was put into them; damaged rows cost that row and are counted."""

import json
import re
from pathlib import Path

import pytest
from shared import tabled

from steelyard.base.fields import parse_time
from steelyard.memory.query import Filters
from steelyard.memory.text import CONTENT
from steelyard_eval.extensions.importers import base, import_store, load_store
from steelyard_eval.measures.trec_runs import read_run


class Store:
    """A store as it was imported, and what it should hold."""

    def __init__(self, root, folder, source=None):
        self.expected = json.loads((root / folder / "expected.json").read_text())
        self.data = load_store(root / folder / (source or ""))
        self.entries = {entry.id: entry for entry in self.data.entries}


def pairs(form):
    return dict(part.split("=") if "=" in part else (part, part) for part in form.split())


def equal(entry, row, form, times="", extra=""):
    """Fields, times, and what no field stands for, each with its column: `ours=theirs`, or one name of both.

    None and nothing are the same.
    """
    found = {name: getattr(entry, name) for name in pairs(form) | pairs(times)}
    found = {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
    expected = {name: row.get(theirs) for name, theirs in pairs(form).items()}
    expected |= {name: parse_time(row[theirs]) for name, theirs in pairs(times).items() if row.get(theirs)}
    for name, theirs in pairs(extra).items():
        found[f"extra {name}"], expected[f"extra {name}"] = entry.extra.get(name), row.get(theirs)
    held, due = ({n: v for n, v in row.items() if v not in (None, "", (), [])} for row in (found, expected))
    assert held == due


def relations(entry):
    return sorted((relation.type, relation.target) for relation in entry.relations)


@tabled
def test_the_fields_of_what_programs_wrote(store_root, folder, source, part, key, fields, times, extra):
    store = Store(store_root, folder, source)
    entries = {getattr(entry, key): entry for entry in store.data.entries}
    assert store.expected[part]
    for row in store.expected[part]:
        known = [name.rstrip("?") for name in extra.split() if name[-1] != "?" or name[:-1] in row]
        equal(entries[str(row[key])], row, fields, times, " ".join(known))


@pytest.mark.parametrize("folder", ["echovault-seed-era", "echovault-newest"])
def test_echovault(store_root, folder):
    store = Store(store_root, folder)
    assert list(store.entries) == [memory["id"] for memory in store.expected["memories"]]
    for memory in store.expected["memories"]:  # the older schema has no column of it
        assert store.entries[memory["id"]].extra.get("status", "active") == memory["status"]


def test_echovault_golden_queries(store_root):
    store = Store(store_root, "echovault-newest")
    for query, golden in zip(store.data.queries, store.expected["golden"], strict=True):
        assert query.text == golden["query"]
        assert store.data.qrels.get(query.id, {}) == dict.fromkeys(golden["expected_ids"], 1)
        assert query.filters == Filters.of({"project": golden["project"]} if golden["project"] else {})
        assert query.answerable is not golden["negative"]


@tabled
def test_entries_and_their_relations_are_those_of_the_store(store_root, folder, source, parts, links, columns):
    """A relation begins at the entry of its `source_id`; `columns` names its parts as those of fields are."""
    store = Store(store_root, folder, source)
    assert set(store.entries) == {str(row["id"]) for part in parts for row in store.expected[part]}
    columns = pairs(columns)
    found = [[e.id, *(getattr(r, name) for name in columns)] for e in store.data.entries for r in e.relations]
    links = store.expected[links]
    assert sorted(found) == sorted([link["source_id"], *map(link.get, columns.values())] for link in links)


def test_soleri(store_root):
    store = Store(store_root, "soleri")
    notes = {
        (e.id, note["target"]): note["note"] for e in store.data.entries for note in e.extra.get("link_notes", [])
    }
    assert notes == {(link["source_id"], link["target_id"]): link["note"] for link in store.expected["links"]}
    assert {store.entries[row["id"]].kind for row in store.expected["memories"]} == {"memory"}


def feedback(store_root, folder, place):
    """What is expected of a store, and the lines of the log that its import writes."""
    import_store(store_root / folder, place)
    expected = json.loads((store_root / folder / "expected.json").read_text())
    return expected, [json.loads(line) for line in (place / "feedback.jsonl").read_text().splitlines()]


def test_soleri_feedback(store_root, tmp_path):
    expected, lines = feedback(store_root, "soleri", tmp_path / "mine")
    known = {row["id"] for row in (*expected["entries"], *expected["memories"])}
    names = ("query", "entry_id", "action", "created_at")
    found = [
        (line["user_query"], act["object_id"], act["action_name"], parse_time(line["timestamp"]))
        for line in lines
        for act in line["actions"]
    ]
    assert found == [tuple(map(row.get, names)) for row in expected["feedback"] if row["entry_id"] in known]


def test_spec_kit(store_root):
    store = Store(store_root, "spec-kit")
    weights = {str(memory["id"]): 10 * memory["importance_weight"] for memory in store.expected["memories"]}
    assert {id_: entry.importance for id_, entry in store.entries.items()} == pytest.approx(weights)


def test_spec_kit_evaluation(store_root, tmp_path):
    import_store(store_root / "spec-kit", tmp_path / "mine")
    store = Store(store_root, "spec-kit")
    expected = store.expected["eval"]
    for query, row in zip(store.data.queries, expected["queries"], strict=True):
        equal(query, row | {"id": str(row["id"])}, "id text=query intent category")
        assert query.filters == Filters.of({"project": row["spec_folder"]} if row["spec_folder"] else {})
    labels: dict = {}
    for row in expected["ground_truth"]:
        labels.setdefault(str(row["query_id"]), {})[str(row["memory_id"])] = row["relevance"]
    assert store.data.qrels == labels
    newest = {(row["channel"], str(row["query_id"])): row for row in expected["channel_results"]}
    newest |= {("final", str(row["query_id"])): row for row in expected["final_results"]}
    for (channel, query), row in newest.items():
        lists = read_run(tmp_path / "mine" / "runs" / f"{channel}.run")
        ids = [str(memory) for memory in row["result_memory_ids"]]
        assert [entry for entry, _ in lists.get(query, [])] == ids, (channel, query)


def test_spec_kit_ledger(store_root, tmp_path):
    expected, lines = feedback(store_root, "spec-kit", tmp_path / "mine")

    def events(kind):
        rows = [row for row in expected["feedback_events"] if row["type"] == kind]
        return dict.fromkeys((f"ledger-{row['query_id']}", row["memory_id"]) for row in rows)

    shown = events("search_shown")
    assert {line["query_id"] for line in lines} == {query for query, _ in shown}
    for line in lines:
        assert [hit["object_id"] for hit in line["hits"]] == [
            id_ for query, id_ in shown if query == line["query_id"]
        ]
    acts = [(line["query_id"], act) for line in lines for act in line["actions"]]
    used = {(query, act["object_id"]) for query, act in acts if act["action_name"] == "used"}
    assert used == {*events("follow_on_tool_use")}


@pytest.mark.parametrize("source", ["moltnet.sql", "export.json", ""])
def test_moltnet(store_root, source):
    store = Store(store_root, "moltnet", source)
    diaries = {diary["id"]: diary for diary in store.expected["diaries"]}
    for row in store.expected["entries"]:
        entry = store.entries[row["id"]]
        equal(entry, diaries[row["diary_id"]], "tenant=team_id visibility project=name")
        assert (entry.category == "suspicious") is row["injection_risk"]


def test_cortex_mem(store_root):
    store = Store(store_root, "cortex-mem")
    expected, by_uri = store.expected, {entry.uri: entry for entry in store.data.entries}
    for memory in expected["memories"]:
        made = parse_time(memory["created_at"][:26] + "Z")
        assert by_uri[memory["uri"]].created_at == pytest.approx(made, abs=1e-6)
    sessions = {session["thread_id"]: session for session in expected["sessions"]}
    for message in expected["messages"]:
        assert list(by_uri[message["uri"]].participants) == sessions[message["session"]]["participants"]
    directories = {layer["uri"].rpartition("/")[0] for layer in expected["layers"]}
    for layer in expected["layers"]:
        assert getattr(by_uri[layer["uri"].rpartition("/")[0]], f"l{layer['layer']}") == layer["text"]
    named = {row["uri"] for part in ("memories", "messages", "resources") for row in expected[part]}
    assert set(by_uri) == named | directories
    assert {entry.tenant for entry in store.data.entries} == {expected["tenant"]}


@pytest.mark.parametrize("source", ["store.db", ""])
def test_langgraph(store_root, source):
    store = Store(store_root, "langgraph-sqlite", source)
    found = {(entry.extra["item_key"], tuple(entry.extra["namespace"])): entry for entry in store.data.entries}
    assert set(found) == {(item["item_key"], tuple(item["namespace"])) for item in store.expected["items"]}
    for item in store.expected["items"]:
        entry = found[item["item_key"], tuple(item["namespace"])]
        assert entry.extra["value"] == item["value"]
        inner = item["value"].get("content", item["value"])
        assert (entry.title, entry.text) == (inner.get("title", ""), inner.get("text", inner.get("body", "")))
        assert list(entry.tags) == item["value"].get("tags", [])
        assert entry.created_at == parse_time(item["created_at"])
        assert entry.updated_at == parse_time(item["updated_at"])


def test_mem0(store_root):
    store = Store(store_root, "mem0")
    assert set(store.entries) == {memory["id"] for memory in store.expected["memories"]}
    for memory in store.expected["memories"]:
        equal(store.entries[memory["id"]], memory["metadata"], "tags title category project")
    assert ("mem0", "text") in store.data.vectors


def test_mcp_memory(store_root):
    store = Store(store_root, "mcp-memory", "memory.jsonl")
    ids = {entry.title: entry.id for entry in store.data.entries}
    assert list(ids) == [entity["name"] for entity in store.expected["entities"]]
    for entity in store.expected["entities"]:
        entry = store.entries[ids[entity["name"]]]
        assert (entry.type, entry.extra.get("observations", [])) == (entity["entityType"], entity["observations"])
        own = [r for r in store.expected["relations"] if r["from"] == entity["name"]]
        assert relations(entry) == sorted((r["relationType"], ids.get(r["to"], r["to"])) for r in own)


def test_basic_memory(store_root):
    store = Store(store_root, "basic-memory", "notes")
    by_title = {entry.title: entry for entry in store.data.entries}
    assert set(by_title) == {note["title"] for note in store.expected["notes"]}
    for note in store.expected["notes"]:
        entry = by_title[note["title"]]
        assert (entry.project, entry.type) == (note["directory"], note["note_type"])
        assert entry.text.startswith(note["text"])
        assert all(seen["content"] in entry.text for seen in note["observations"])
        assert list(entry.tags) == note["tags"]
        assert entry.created_at == parse_time(note["date"])
        assert entry.extra.get("observations", []) == note["observations"]
        ids = {r["to_name"]: r["to_name"].replace(" ", "%20") for r in note["relations"]}
        ids |= {title: named.id for title, named in by_title.items()}
        assert relations(entry) == sorted({(r["relation_type"], ids[r["to_name"]]) for r in note["relations"]})


def test_claude_memory(store_root):
    store = Store(store_root, "claude-memory")
    by_file = {entry.uri.rpartition("/")[2]: entry for entry in store.data.entries}
    stems = {entry.id: file.removesuffix(".md") for file, entry in by_file.items()}
    found = [(stems[e.id], stems[r.target]) for e in store.data.entries for r in e.relations]
    assert sorted(found) == sorted((link["source"], link["target"]) for link in store.expected["links"])
    for memory in store.expected["memories"]:
        entry = by_file.pop(memory["file"])
        assert entry.text == memory["body"]
        equal(entry, memory, "context=description type" + " title=name" * bool(memory["name"]))
    assert store.expected["index_only"]["text"] in by_file.pop("MEMORY.md").text
    assert not by_file


SEARCHED = (*CONTENT, "l0", "l1")
STORES = json.loads((Path(__file__).parents[3] / "data" / "stores.json").read_text("utf-8"))
PARTS = ["memories", "entries", "notes", "entities", "items", "messages", "layers", "resources", "edges", "links"]
"""Parts of expected.json that say what entries hold; the others are queries, logs, and what was deleted."""


def texts_in(value):
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_in(part)


def searched(data):
    return flat("\n".join(getattr(entry, name) for entry in data.entries for name in SEARCHED))


def flat(text):
    return " ".join(text.split())


@pytest.mark.parametrize("kind", sorted(STORES.keys() - {"markdown", "table"}))
def test_of_a_store_that_its_program_wrote(store_root, kind):
    expected = json.loads((store_root / STORES[kind].split("/")[0] / "expected.json").read_text())
    texts = {flat(text) for part in PARTS for text in texts_in(expected.get(part, [])) if len(text.split()) > 2}
    found = searched(load_store(store_root / STORES[kind], kind))
    assert len(texts) > 20
    assert [text for text in texts if text not in found] == []


MARKDOWN = Path(__file__).with_name("Cobalt.md").read_text("utf-8")
MARKED = [line for line in MARKDOWN.split("\n") if len(line.split()) > 2]


@tabled
def test_of_a_small_store(tmp_path, kind, more, files, texts):
    """Beside Cobalt.md, where its head says more; of MCP memory in test_benchmarks.py."""
    folder = tmp_path / "in"
    folder.mkdir()
    if more is not None:
        files, texts = files | {"Cobalt.md": MARKDOWN.replace("title:", f"{more}title:", 1)}, [*MARKED, *texts]
    for name, text in files.items():
        (folder / name).write_text(text)
    found = searched(load_store(folder if more is not None else folder / name, kind))
    said = [flat(re.sub("^(title: |summary: |aliases: |# )", "", line)) for line in texts]
    assert [text for text in said if text.replace("Smalt, ", "") not in found] == []


@pytest.fixture
def damaged(store_copy, change):
    """Copies a store and runs statements on one of its databases; the store before and after."""

    def make(folder, file, *statements):
        place = store_copy(folder, folder)
        whole = load_store(place)
        change(place / file, *statements)
        return whole, load_store(place)

    return make


def count(data, words):
    """The notes that say this."""
    return [note for note in data.notices if words in note]


@tabled
def test_what_is_archived_or_left_out_is_counted_and_the_generation_proposed(
    store_root, monkeypatch, folder, newest, notes
):
    monkeypatch.setattr(base, "SYSTEMS", {f"{newest}:newest"})  # whatever profiles there are
    data = load_store(store_root / folder)
    assert [note for note in notes if not count(data, note)] == []
    assert len(count(data, f"search it as {newest}:newest")) == (folder != "echovault-seed-era")
    if newest == "echovault":
        assert sum(entry.kind == "archived" for entry in data.entries) == 2 * (folder == "echovault-newest")


@tabled
def test_broken_json_costs_the_value_and_not_the_store(damaged, folder, file, table, column, field):
    with_some = f'id IN (SELECT id FROM {table} WHERE length("{column}") > 2 ORDER BY id LIMIT 2)'
    whole, found = damaged(folder, file, f"""UPDATE {table} SET "{column}" = '["open' WHERE {with_some}""")
    assert [entry.id for entry in found.entries] == [entry.id for entry in whole.entries]
    lost = [(was, now) for was, now in zip(whole.entries, found.entries, strict=True) if was.tags and not now.tags]
    assert len(lost) == 2
    assert all(now.text == was.text and now.created_at == was.created_at for was, now in lost)
    assert count(found, f"2 rows have {column} ")


@tabled
def test_a_value_that_is_none_costs_its_row_at_most(damaged, folder, file, table, column, value, lost, note):
    first = f"rowid = (SELECT min(rowid) FROM {table})"
    whole, found = damaged(folder, file, f"UPDATE {table} SET {column} = {value} WHERE {first}")
    assert len(found.entries) == len(whole.entries) - lost
    assert all(entry in whole.entries for entry in found.entries)
    assert count(found, note)


def test_a_date_or_number_that_is_none_costs_the_value(damaged):
    dates = "UPDATE memories SET created_at = 'soon', retrieved_count = 'many' WHERE rowid IN (1, 2)"
    branch = "UPDATE memories SET branch = X'FF00' WHERE rowid = 3"
    whole, found = damaged("echovault-newest", "index.db", dates, branch)
    assert [entry.text for entry in found.entries] == [entry.text for entry in whole.entries]
    assert sum(entry.created_at is None for entry in found.entries) == 2
    assert count(found, "without created_at")
    assert count(found, "without branch")


def anew(table):
    """The table as an older program may have had it, whose columns may be NULL."""
    made = f"CREATE TABLE other AS SELECT * FROM {table}"
    return made, f"DROP TABLE {table}", f"ALTER TABLE other RENAME TO {table}"


def test_feedback_of_soleri_without_a_time_is_left_out(damaged, tmp_path, store_root):
    _, whole = feedback(store_root, "soleri", tmp_path / "whole")
    change = "UPDATE brain_feedback SET created_at = iif(id = 1, NULL, 'soon') WHERE id < 3"
    damaged("soleri", "vault.db", *anew("brain_feedback"), change)
    done = import_store(tmp_path / "soleri", tmp_path / "mine")
    mine = [json.loads(line) for line in (tmp_path / "mine" / "feedback.jsonl").read_text().splitlines()]
    assert mine == [line for line in whole if line["query_id"] not in ("brain-1", "brain-2")]
    assert [note for note in done.notes if note.startswith("2 lists")]


def test_events_of_spec_kit_without_a_time_are_left_out(damaged, tmp_path):
    change = "UPDATE feedback_events SET timestamp = NULL WHERE id IN (SELECT min(id) FROM feedback_events)"
    damaged("spec-kit", "context-index.sqlite", *anew("feedback_events"), change)
    done = import_store(tmp_path / "spec-kit", tmp_path / "mine")
    assert [note for note in done.notes if note.startswith("1 list ")]
    assert done.counts["impressions"] > 1


def test_an_index_of_cortex_mem_that_is_no_json_costs_its_dates(store_copy):
    place = store_copy("cortex-mem")
    whole = load_store(place)
    min(place.rglob(".memory_index.json")).write_text('{"memories": ')
    found = load_store(place)
    assert [entry.text for entry in found.entries] == [entry.text for entry in whole.entries]
    assert count(found, "1 file") and count(found, ".memory_index.json'")
