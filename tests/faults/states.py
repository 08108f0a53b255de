"""The commands that are killed: what they start from, what they are, and what their folder holds afterwards."""

import contextlib
import gzip
import hashlib
import itertools
import json
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import apsw
import numpy as np
import sqlite_vec

from steelyard.config import SearchConfig
from steelyard.feedback import line
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import KeywordIndex
from steelyard.stores.sqlite import Vault, words
from steelyard.stores.sqlite.schema import tokenizing
from steelyard.systems import SYSTEMS, analyses, find_system
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load as load_dataset
from steelyard_eval.recording.disk import load as load_recording
from steelyard_eval.vaults import index_dataset

STARTER = Path(__file__).resolve().parents[2] / "qrels" / "starter"
ENTRIES, QUERIES = 36, 16
CURRENT = "weighted_sum(0.3*fts, 0.7*vector, normalize=max)"


class LostError(AssertionError):
    """Something that should be there is not, or is broken."""


def right(condition, what):
    if not condition:
        raise LostError(what)


@dataclass(frozen=True)
class Command:
    """`prepare` fills a folder; `words` are run in it; `state` reads what it holds, or raises where it is broken.

    `allowed` says whether a state after a kill is right, given the states before and after a whole run.
    """

    name: str
    prepare: Callable[[Path, Path], None]
    words: tuple[str, ...]
    state: Callable[[Path], dict]
    allowed: Callable[[dict, dict, dict], bool]


def piecewise(found, before, after):
    names = found.keys() | before.keys() | after.keys()
    return all(found.get(name) in (before.get(name), after.get(name)) for name in names)


def piecewise_or_unproven(found, before, after):
    """An interrupted search writes too: a whole file that holds the current strategy and no proof."""
    written = found.get("w.json")
    if piecewise(found, before, after) or written is None:
        return piecewise(found, before, after)
    record = json.loads(written)
    unproven = record["provenance"]["verdict"] in ("try", "keep")
    return unproven and record["strategy"] == CURRENT and found.keys() == after.keys()


def whole(found, before, after):
    return found in (before, after)


def growing(found, before, after):
    return before.keys() <= found.keys() <= after.keys()


def indexed(found, before, after):
    """Entries, keyword indexes and the model each are the old ones or the new ones.

    The vectors of the model are complete, but for entries that are changed already.
    """
    known = all(found[part] in (before[part], after[part]) for part in ("entries", "indexes", "model"))
    if not known and before["entries"]:  # in a new vault the indexes come one by one
        return False
    if found["model"] == after["model"] and found["model"]:
        return found["answers"] == after["answers"]
    kept = {id_ for id_, entry in found["entries"].items() if before["entries"].get(id_) == entry}
    return all(
        found["answers"].get(space, {}).get(id_) == vector
        for space, vectors in before["answers"].items()
        for id_, vector in vectors.items()
        if id_ in kept
    )


def commands():
    """Every command with each state it may start from."""
    table = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    found = {}
    for name, (typed, state, allowed, starts) in table.items():
        words = tuple(shlex.split(typed.format(current=CURRENT)))
        rules = globals()[state], globals()[allowed]
        found[name] = [Command(start, globals()[make], words, *rules) for start, make in starts.items()]
    return found


def nothing(data, folder):
    """Start from an empty folder."""


def weights(data, folder):
    find_system("fts").config().save(folder / "w.json")


def simulated(data, folder):
    """The first searches of the starter's own log, as far as they are about these entries."""
    with gzip.open(STARTER / "feedback.jsonl.gz", "rt", encoding="utf-8") as log:
        (folder / "log.jsonl").write_text("".join(itertools.islice(log, 600)), encoding="utf-8")


def logged(data, folder):
    hits = [{"object_id": f"m{at}", "position": at} for at in (1, 2)]
    shown = {"schema_version": 1, "query_id": "s1", "user_query": "token", "timestamp": "2026-01-02T03:04:05Z"}
    (folder / "log.jsonl").write_text(line(shown | {"hits": hits}))


def searched(data, folder):
    older_vault(data, folder)
    logged(data, folder)


def foreign(data, folder):
    find_system("spec_kit").config().save(folder / "w.json")
    command("export", folder / "w.json", "--to", "spec_kit", "--out", folder / "foreign.json")
    (folder / "w.json").unlink()


def new_store(data, folder):
    """A store as LangGraph writes it, of every entry but the first five, with a vector each."""
    _store(folder / "store.db", load_dataset(data).entries[5:])


def grown_store(data, folder):
    """A folder that was imported when the store had other items, with labels that are the user's; both changed."""
    os.environ["XDG_STATE_HOME"] = str(folder.parent / "state")
    entries = load_dataset(data).entries
    _store(folder / "store.db", [replace(entry, title="formerly") for entry in entries[: ENTRIES // 2]])
    command("import", folder / "store.db", folder / "mine")
    (folder / "mine" / "queries.jsonl").write_text('{"id": "q1", "text": "mine"}\n')
    labels = [f"q1 0 notes/{entry.id} 1\n" for entry in entries[3:8]]  # two of them will have left
    (folder / "mine" / "qrels.txt").write_text("".join(labels))
    (folder / "mine" / "notes.txt").write_text("kept")
    (folder / "store.db").unlink()
    new_store(data, folder)


def _store(path, entries):
    with contextlib.closing(apsw.Connection(str(path))) as db, db:
        db.execute("CREATE TABLE store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)")
        db.execute("CREATE TABLE store_vectors (prefix, key, field_name, embedding, created_at, updated_at)")
        for entry in entries:
            value = json.dumps({"title": entry.title, "text": entry.text})
            day = "2026-03-01 10:00:00"
            db.execute("INSERT INTO store VALUES ('notes', ?, ?, ?, ?, NULL, NULL)", (entry.id, value, day, day))
            vector = np.full(8, len(entry.text), dtype="<f4").tobytes()
            db.execute("INSERT INTO store_vectors VALUES ('notes', ?, '$', ?, ?, ?)", (entry.id, vector, day, day))


def imported_state(folder):
    """Every file of an imported folder, which has to be a sound data set; its source is named by its file."""
    if not (folder / "mine").exists():
        return {}
    load_dataset(folder / "mine")
    about = json.loads((folder / "mine" / "dataset.json").read_text())
    about["source"]["path"] = Path(about["source"]["path"]).name
    return files(folder, "mine/*") | {"dataset.json": json.dumps(about)}


def log_state(folder):
    """What a log says, each thing once and without its time; a line that was cut off says nothing."""
    whole, _, _ = (folder / "log.jsonl").read_text().rpartition("\n")
    said = set()
    for one in map(json.loads, whole.split("\n")):
        acts = [(act["action_name"], act["object_id"]) for act in one.get("actions", ())]
        said.add(repr((one.get("user_query"), acts, one.get("configuration"))))
    return dict.fromkeys(said, "")


def whole_or_missing(found, before, after):
    """A recommendation that was broken off may be an attempt, beside the weights."""
    return set(found) <= {*after, "search-weights.try.json", "search-weights.current.json"}


def names(folder):
    """Which files are there, each whole; their timings differ from run to run."""
    return dict.fromkeys(files(folder), "whole")


def older_vault(data, folder):
    """Two thirds of the entries, every fifth with another text."""
    dataset = load_dataset(data)
    entries = [
        replace(entry, text=f"{entry.text} formerly") if at % 5 == 0 else entry
        for at, entry in enumerate(dataset.entries[: ENTRIES * 2 // 3])
    ]
    index_dataset(replace(dataset, entries=tuple(entries)), str(folder / "vault"))


def stale_vault(data, folder):
    """New entries that the model was not fitted on, without vectors, and an index of another tokenizer."""
    older_vault(data, folder)
    with Vault(folder / "vault") as vault:
        vault.upsert(load_dataset(data).entries)
        rows = vault._db.execute("SELECT name, fields FROM keyword_indexes").fetchall()
        indexes = [(name, json.loads(fields)) for name, fields in rows]
        vault.rebuild_indexes([KeywordIndex(name, tuple(fields), "unicode61") for name, fields in indexes])


def older_recording(data, folder):
    command("record", data, folder / "tables", "--systems", "fts,echovault", "--limit", "5")


def older_weights(data, folder):
    command("tune", data, "rrf(fts, bm25, k=60)", "--out", folder / "w.json")


def older_report(data, folder):
    record = json.loads((data.parent / "results.json").read_text())
    about = {**record["provenance"], "limit": record["provenance"]["limit"] + 1}
    (folder / "older.json").write_text(json.dumps({**record, "provenance": about}))
    command("report", folder / "older.json", "--out", folder / "report")


def vault_state(folder):
    """A vault in parts that can be compared: pages and revision numbers depend on how often it was begun."""
    path = folder / "vault"
    if not path.exists() or _is_blank(path):
        return {"entries": {}, "indexes": {}, "model": {}, "answers": {}}
    Vault(path).close()  # it opens
    _words_agree(path)
    with looked_into(path) as vault:
        _sound(vault)
        columns = [row[1] for row in _rows(vault, "PRAGMA table_info(entries)")]
        entries = {row[columns.index("id")]: repr(row) for row in _rows(vault, "SELECT * FROM entries")}
        settings = {name: (fields, tok) for name, fields, tok in _rows(vault, "SELECT * FROM keyword_indexes")}
        indexes = {name: [*about, _terms(vault, name)] for name, about in settings.items()}
        model = {row[0]: [row[1], row[2]] for row in _rows(vault, "SELECT * FROM models")}
        for name, key, blob in _rows(vault, "SELECT * FROM model_arrays"):
            model[f"{name} {key}"] = hashlib.sha256(blob).hexdigest()
        answers = {}
        for number, *space in _rows(vault, "SELECT space, model, layer, recipe FROM spaces"):
            sql = f"SELECT e.id, v.embedding FROM vec_{number} v JOIN entries e ON e.rowid = v.rowid"
            answers[" ".join(space)] = {id_: hashlib.sha256(blob).hexdigest() for id_, blob in _rows(vault, sql)}
    return {"entries": entries, "indexes": indexes, "model": model, "answers": answers}


def _is_blank(path):
    """Whether a vault was begun and has no table yet, as whoever is killed before the first one leaves it."""
    with looked_into(path) as vault:
        return _rows(vault, "SELECT count(*) FROM sqlite_schema") == [(0,)]


@contextlib.contextmanager
def looked_into(path):
    """A connection that may do what a vault's own may not."""
    db = tokenizing(apsw.Connection(str(path)))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    yield db
    db.close()


def keep_words():
    """Store the words of however few entries, and store them anew when a tenth has changed."""
    words.MIN_TEXTS_TO_STORE, words.CHANGES, words.CHANGES_SHARE = 0, 0, 0.1


def _words_agree(path):
    """What is stored of words, with what the journal lists, is what counting all entries gives.

    An index stores them before the vectors: a vault with vectors lacks none that are worth it.
    """
    with Vault(path) as vault, Vault(":memory:") as fresh, vault.snapshot():
        fresh.upsert(vault.entries())
        stored = {name for name, _ in vault.word_indexes()}
        for analysis in analyses(SYSTEMS.values(), vault):
            if analysis.key not in stored:
                few = not vault.spaces() or vault.count() < words.MIN_TEXTS_TO_STORE
                right(few, f"no words of {analysis.key} are stored")
                continue
            ours, theirs = (one.counted(analysis, EVERYTHING) for one in (vault, fresh))
            for word in {word for entry in fresh.entries() for word in analysis.read(entry)[0]}:
                pair = [
                    dict(zip(c.ids(p.at), p.counts.tolist(), strict=True))
                    for c, p in ((ours, ours.posting(word)), (theirs, theirs.posting(word)))
                ]
                right(pair[0] == pair[1], f"{analysis.key} has {pair[0]} of {word}, its entries {pair[1]}")


def _sound(vault):
    faults = _rows(vault, "PRAGMA integrity_check")
    right(faults == [("ok",)], f"integrity_check: {faults}")
    for (name,) in _rows(vault, "SELECT name FROM keyword_indexes"):
        _rows(vault, f"INSERT INTO fts_{name}(fts_{name}, rank) VALUES('integrity-check', 1)")
    tables = {name for (name,) in _rows(vault, "SELECT name FROM sqlite_schema WHERE sql LIKE '%USING vec0%'")}
    listed = {f"vec_{number}" for (number,) in _rows(vault, "SELECT space FROM spaces")}
    right(tables == listed, f"vector tables {tables} are not the spaces listed, {listed}")
    for table in tables:
        strays = _rows(vault, f"SELECT rowid FROM {table} WHERE rowid NOT IN (SELECT rowid FROM entries)")
        right(not strays, f"{table} has vectors of no entry: {strays}")


def _terms(vault, name):
    _rows(vault, f"CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, fts_{name}, instance)")
    places = "SELECT term, e.id, col, offset FROM temp.terms JOIN entries e ON e.rowid = doc"
    found = _rows(vault, places)
    _rows(vault, "DROP TABLE temp.terms")
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()


def _rows(vault, sql):
    try:
        return vault.execute(sql).fetchall()
    except apsw.Error as error:
        raise LostError(f"{sql}: {error}") from error


def recording_state(folder):
    places = sorted(p for p in folder.glob("tables/*") if not p.name.startswith("."))
    for place in places:
        load_recording(place)  # raises where a column is short or missing
    return {place.name: files(place, "*") for place in places}


def weights_state(folder):
    for path in folder.glob("w.json"):
        SearchConfig.load(path)
    return files(folder, "w.json")


def files(folder, pattern="report/*"):
    states = {}
    for path in sorted(p for p in folder.glob(pattern) if not p.name.startswith(".")):
        raw = path.read_bytes()
        if path.suffix == ".json":
            json.loads(raw)
        elif path.suffix == ".html":
            right(raw.rstrip().endswith(b"</html>"), f"{path.name} is cut off")
        states[path.name] = raw.decode() if path.suffix == ".json" else hashlib.sha256(raw).hexdigest()
    return states


# The data, small so that a run is short


def small(folder):
    folder.mkdir()
    manifest = json.loads((STARTER / "dataset.json").read_text())
    kept = {}
    for name, count in (("corpus", ENTRIES), ("queries", QUERIES)):
        lines = (STARTER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[:count]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        kept[name] = {json.loads(line)["id"] for line in lines}
        for path in STARTER.glob(f"{name}.*.npy"):
            np.save(folder / path.name, np.load(path)[:count])
    judgments = [line for line in (STARTER / "qrels.txt").read_text().splitlines() if line.strip()]
    rows = [line for line in judgments if line.split()[0] in kept["queries"] and line.split()[2] in kept["corpus"]]
    (folder / "qrels.txt").write_text("\n".join(rows) + "\n")
    facts = {name: manifest[name] for name in ("name", "description", "licence", "as_of", "text_for_embedding")}
    (folder / "dataset.json").write_text(json.dumps(facts))


def command(*words):
    try:
        main([str(word) for word in words], standalone_mode=True)
    except SystemExit as ended:
        if ended.code:
            raise


def bench(root):
    """The data set and the results of a comparison; every command has run once, so that all is imported."""
    small(root / "data")
    results = ("fts,bm25", "--metrics", "nDCG@10", "--out", root / "results.json")
    command("compare", root / "data", *results)
    (root / "warm").mkdir()
    command("index", root / "data", root / "warm" / "vault")
    command("index", root / "warm" / "vault", "--rebuild")
    older_recording(root / "data", root / "warm")
    older_weights(root / "data", root / "warm")
    older_report(root / "data", root / "warm")
    return root
