"""Memory systems with SQLite files: EchoVault, Soleri, system-spec-kit.

EchoVault (commits 18790d6 to a1f74ca): what an older store lacks is not given. The database has the newest text,
so the Markdown files are not read. Soleri (d87b305): times of entries are seconds, those of links milliseconds;
archived entries are in a table that the program does not search. system-spec-kit (schema 20, c7509739): the index
has memories and edges, `speckit-eval.db` beside it queries, labels and the lists of every channel. The ledger
`feedback_events` (075709df) lies in the index and holds no texts; where evaluation was on, its `query_id` is one
of the evaluation's.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path

from steelyard.base.errors import DataError
from steelyard.base.files import canonical
from steelyard.feedback import ACTIONS
from steelyard_eval.extensions.importers.base import FORMS, Imported, Record, filled, grouped, identifier, importer
from steelyard_eval.extensions.importers.database import Database, StoreRow
from steelyard_eval.extensions.importers.source import ForeignStore, read_yaml
from steelyard_eval.extensions.importers.table import searched

INDEX = "index.db"
GOLDEN = ("golden.yaml", "golden.yml")
GRADE = 1  # Of an entry that a golden query expects: the file has no grades
RECIPE = "{title}\n{text}\n{why}\n{impact}\n{tags}"
VAULT = "vault.db"
INDEXES = ("context-index.sqlite", "context-index.db")
EVALUATION = "speckit-eval.db"
ACTS = {"result_cited": "cited", "follow_on_tool_use": "used"}
"""Kinds of events of the ledger that are acts; others say what was shown, or that it was asked again."""


@importer(
    lambda source: source.holds(INDEX, memories=["what"], memory_details=[]),
    lambda environ: [Path(environ.get("MEMORY_HOME") or Path.home() / ".memory")],
)
def echovault(source: ForeignStore) -> Imported:
    """EchoVault: index.db, golden.yaml. Memories, their vectors and counters, golden queries."""
    imported = Imported(system="echovault", recipe=RECIPE)
    with source.database(INDEX) as db:
        details = {row["memory_id"]: row["body"] for row in db.rows("memory_details")}
        rows = list(db.rows("memories"))

        def entry(row: StoreRow) -> Record:
            body = details.get(row["id"])  # which the program opens and does not search; other searches do
            kind = "archived" if row["status"] == "archived" else None  # which the newest profile hides
            more = {"details": body, "context": body, "kind": kind}
            return filled(searched(db.picked(row, FORMS["echovault"]) | more))

        imported.add(rows, entry)
        vectors = db.vectors("memories_vec")  # those of deleted memories are still in the file
        model = {row["key"]: row["value"] for row in db.rows("meta")}.get("embedding_model")
        for row in rows:
            imported.vector(model or "echovault", row["id"], vectors.get(row["rowid"]))
        gone = vectors.keys() - {row["rowid"] for row in rows}
        imported.note(len(gone), "vector", "of deleted memories left out")
        imported.notes += db.notes()
        imported.left_out(db)
    ids = {row["title"]: row["id"] for row in reversed(rows)} | {row["id"]: row["id"] for row in rows}
    for name in filter(source.has, GOLDEN):
        _golden(imported, read_yaml(source.text(name), f"{source}: {name}"), ids, f"{source}: {name}")
    return imported


def _golden(imported: Imported, document: object, ids: Mapping[str, str], place: str) -> None:
    """The queries of a file with the entries that they expect, which are named by title or id."""
    queries = document.get("queries") if isinstance(document, dict) else None
    if not isinstance(queries, list) or not all(
        isinstance(q, dict) and isinstance(q.get("query"), str) for q in queries
    ):
        raise DataError(f"{place} has no list of golden queries; restore it or move it away")
    missing, negative = 0, 0
    for golden in queries:
        text, project, expected = golden["query"], golden.get("project"), golden.get("expected") or []
        # By what it asks: its place changes when another is added before it.
        id_ = "golden-" + sha256(canonical([text, project]).encode()).hexdigest()[:12]
        filters = {"project": project} if project else None
        query = {"id": id_, "text": text, "filter": filters, "answerable": None if expected else False}
        imported.queries.append(filled(query))
        entries = [ids.get(str(name)) for name in ([expected] if isinstance(expected, str) else expected)]
        missing, negative = missing + entries.count(None), negative + (not expected)
        # As of the queries themselves, of which another with this id is left out: the first counts.
        imported.qrels.setdefault(id_, {entry: GRADE for entry in entries if entry})
    imported.note(len(queries), "golden query", f"read, {negative} of them without an answer", "golden queries")
    imported.note(missing, "expected entry is", "not in the store", "expected entries are")


def soleri_homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The vaults of all agents below SOLERI_HOME, else ~/.soleri; then those of agents that live in ~ itself."""
    home = Path(environ.get("SOLERI_HOME") or Path.home() / ".soleri")
    yield from sorted(path.parent for path in home.glob(f"*/{VAULT}"))
    yield home
    yield from sorted(path.parent for path in Path.home().glob(f".*/{VAULT}"))


@importer(lambda source: source.holds(VAULT, entries=["severity", "domain"]), soleri_homes)
def soleri(source: ForeignStore) -> Imported:
    """Soleri: vault.db. Entries and memories, links as relations, vectors, and feedback."""
    imported = Imported(system="soleri")
    with source.database(VAULT) as db:
        links = grouped(db.rows("vault_links"), "source_id", "soleri_link")

        def entry(row: StoreRow) -> Record:
            own = links.get(row["id"], [])
            more = {
                "impact": _joined(row["example"], row["counter_example"], *(link.get("note") for link in own)),
                "relations": [{name: link[name] for name in ("type", "target")} for link in own],
                "link_notes": [link for link in own if "note" in link],
            }
            return filled(db.picked(row, FORMS["soleri"]) | more)

        def memory(row: StoreRow) -> Record:
            record = db.picked(row, FORMS["soleri_memory"])
            lists = [value for name in ("decisions", "next_steps") if isinstance(value := record[name], list)]
            said = _joined(record["intent"], record["current_state"], *chain.from_iterable(lists))
            return filled(record | {"impact": said, "kind": "memory"})

        imported.add(db.rows("entries"), entry)
        imported.add(db.rows("memories"), memory)
        known = {one["id"] for one in imported.entries}
        for row in db.rows("entry_vectors"):
            if row["entry_id"] in known:
                imported.vector(row["model"], row["entry_id"], db.floats(row["vector"]))
        rows = list(db.rows("brain_feedback", "id"))
        for row in rows:
            if row["action"] in ACTIONS and row["entry_id"] in known:
                # A list of the one entry, of a client of its own: it repeats no other.
                name, act = f"brain-{row['id']}", {"object_id": row["entry_id"], "action_name": row["action"]}
                imported.impression(row["created_at"], name, name, row["query"], [row["entry_id"]], [act])
        rest = (
            f"of feedback, of which {len(imported.feedback)} name an entry of the store; they are weak evidence, "
        )
        imported.note(len(rows), "row", rest + "because the other entries of each list are not recorded")
        imported.notes += db.notes()
        imported.left_out(db)
    return imported


def _joined(*texts: object) -> str:
    """What no search of Soleri reads, for the searches that do."""
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def spec_kit_homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The folder that SPEC_KIT_DB_DIR or MEMORY_DB_DIR names, else the program's own below here."""
    yield from (Path(environ[name]) for name in ("SPEC_KIT_DB_DIR", "MEMORY_DB_DIR") if environ.get(name))
    yield from sorted(Path().glob(".opencode/skill/system-spec-kit/mcp_server/database"))
    yield Path("mcp_server/database")


def _index(source: ForeignStore) -> str:
    names = (name for name in dict.fromkeys((*INDEXES, source.path.name)) if name != EVALUATION)
    return next((name for name in names if source.holds(name, memory_index=[])), "")


@importer(lambda source: bool(_index(source)), spec_kit_homes)
def spec_kit(source: ForeignStore) -> Imported:
    """system-spec-kit: context-index.sqlite, speckit-eval.db. Memories; queries, labels, lists, ledger."""
    imported = Imported(system="spec_kit")
    with source.database(_index(source) or INDEXES[0]) as db:
        edges = grouped(db.rows("causal_edges"), "source_id", "spec_kit_edge")
        corrected = Counter(row["original_memory_id"] for row in db.rows("memory_corrections"))

        def entry(row: StoreRow) -> Record:
            weight, level, accessed = row["importance_weight"], row["spec_level"], row["last_accessed"]
            own = edges.get(str(row["id"]), [])
            record = db.picked(row, FORMS["spec_kit"]) | {
                "id": str(row["id"]),
                "importance": None if weight is None else weight * 10,
                "spec_level": None if level is None else str(level),
                "last_accessed_at": accessed / 1000 if isinstance(accessed, int) and accessed > 0 else None,
                "correction_count": corrected.get(row["id"]),
                "visibility": "archived" if row["is_archived"] else None,
                "relations": [{name: edge[name] for name in edge if name != "evidence"} for edge in own],
                "evidence": [edge for edge in own if "evidence" in edge],
            }
            return searched(filled(record))

        imported.add(db.rows("memory_index"), entry)
        models = {row["embedding_model"] for row in db.rows("memory_index")} - {None, "", "not-loaded"}
        model = models.pop() if len(models) == 1 else "spec-kit"
        for rowid, vector in db.vectors("vec_memories").items():
            imported.vector(model, str(rowid), vector)
        events = list(db.rows("feedback_events", "id"))
        imported.notes += db.notes()
        imported.left_out(db)
    if source.has(EVALUATION):
        with source.database(EVALUATION) as db:
            _evaluation(imported, db)
            imported.notes += db.notes()
    _ledger(imported, events)
    return imported


def _evaluation(imported: Imported, db: Database) -> None:
    for row in db.rows("eval_ground_truth", "id"):
        imported.qrels.setdefault(str(row["query_id"]), {})[str(row["memory_id"])] = row["relevance"]
    for row in db.rows("eval_queries", "id"):
        id_, project = str(row["id"]), row["spec_folder"]
        nothing = row["category"] == "hard_negative" and not any(imported.qrels.get(id_, {}).values())
        more = {"filter": {"project": project} if project else None, "answerable": False if nothing else None}
        imported.queries.append(filled(db.picked(row, FORMS["spec_kit_query"]) | {"id": id_, **more}))
    for table, channel in (("eval_channel_results", "channel"), ("eval_final_results", "")):
        for row in db.rows(table, "id"):
            scores = db.json(row, "scores", list)
            ids = [str(id_) for id_ in db.json(row, "result_memory_ids", list)]
            if len(scores) != len(ids) or not all(isinstance(score, int | float) for score in scores):
                scores = [None] * len(ids)
            lists = imported.runs.setdefault(identifier(str(row[channel])) if channel else "final", {})
            lists[str(row["query_id"])] = list(zip(ids, scores, strict=True))
    imported.left_out(db)


def _ledger(imported: Imported, events: Sequence[StoreRow]) -> None:
    """The lists of the ledger as impressions: what was shown for one query, in the order of its rows."""
    texts = {query["id"]: query["text"] for query in imported.queries}
    shown: dict[str, list[StoreRow]] = {}
    acts: dict[str, list[StoreRow]] = {}
    for event in events:
        (shown if event["type"] == "search_shown" else acts).setdefault(event["query_id"], []).append(event)
    for query, rows in shown.items():
        entries = list(dict.fromkeys(row["memory_id"] for row in rows))
        acted = [act for act in acts.get(query, []) if act["type"] in ACTS and act["memory_id"] in entries]
        if {act["memory_id"] for act in acted if act["type"] == "result_cited"} == {*entries}:
            # Content was included: the program then cites every row that it shows.
            acted = [act for act in acted if act["type"] != "result_cited"]
        named: list[Record] = [{"object_id": act["memory_id"], "action_name": ACTS[act["type"]]} for act in acted]
        client, time = rows[0]["session_id"] or "", rows[0]["timestamp"]
        imported.impression(time, f"ledger-{query}", client, texts.get(query), entries, named)
    unnamed = len(shown.keys() - texts.keys())
    imported.note(unnamed, "list", "of the ledger without a text: it keeps none, and no evaluation was on")
