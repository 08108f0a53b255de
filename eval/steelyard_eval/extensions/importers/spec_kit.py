"""system-spec-kit: `context-index.sqlite` with memories and edges, and `speckit-eval.db` beside it.

Columns are those of schema 20 (commit c7509739). The evaluation database has queries, labels and the lists of
every channel. The ledger `feedback_events` (075709df) lies in the index and holds no texts; where evaluation was
on, its `query_id` is one of the evaluation's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from steelyard_eval.extensions.importers.base import (
    Imported,
    Importer,
    Record,
    filled,
    grouped,
    identifier,
    moment,
)
from steelyard_eval.extensions.importers.columns import searched
from steelyard_eval.extensions.importers.database import Database, StoreRow
from steelyard_eval.extensions.importers.source import ForeignStore

INDEXES = ("context-index.sqlite", "context-index.db")
EVALUATION = "speckit-eval.db"
ACTS = {"result_cited": "cited", "follow_on_tool_use": "used"}
"""Kinds of events that are acts; the others say what was shown, or that the question was asked again."""
MEMORY = "id title importance_tier context_type memory_type document_type embedding_status stability difficulty "
MEMORY += "review_count access_count half_life_days created_at updated_at last_review text=content_text "
MEMORY += "tags=[trigger_phrases] project=spec_folder uri=file_path importance spec_level last_accessed_at "
MEMORY += (
    "correction_count visibility relations evidence related=[related_memories] anchor_id session_id is_pinned "
)
MEMORY += "confidence validation_count channel quality_score encoding_intent parent_id chunk_index chunk_label "
MEMORY += "content_hash importance_weight expires_at"
QUERY = "id text=query intent category filter answerable difficulty"


def homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The folder that SPEC_KIT_DB_DIR or MEMORY_DB_DIR names, else the program's own below here."""
    yield from (Path(environ[name]) for name in ("SPEC_KIT_DB_DIR", "MEMORY_DB_DIR") if environ.get(name))
    yield from sorted(Path().glob(".opencode/skill/system-spec-kit/mcp_server/database"))
    yield Path("mcp_server/database")


def _index(source: ForeignStore) -> str:
    """The name of the file with the index; empty for none."""
    names = (name for name in dict.fromkeys((*INDEXES, source.path.name)) if name != EVALUATION)
    return next((name for name in names if source.holds(name, memory_index=[])), "")


def read(source: ForeignStore) -> Imported:
    """Memories with their edges and vectors; queries, labels, lists of every channel, and the ledger."""
    imported = Imported(system="spec_kit")
    with source.database(_index(source) or INDEXES[0]) as db:
        edges = grouped(db.rows("causal_edges"), "source_id", "type=relation target=target_id strength evidence")
        corrected = Counter(row["original_memory_id"] for row in db.rows("memory_corrections"))
        imported.add(db.rows("memory_index"), lambda row: _entry(row, edges, corrected, db))
        models = {row["embedding_model"] for row in db.rows("memory_index")} - {None, "", "not-loaded"}
        model = models.pop() if len(models) == 1 else "spec-kit"
        for rowid, vector in db.vectors("vec_memories").items():
            imported.vector(model, str(rowid), vector)
        events = list(db.rows("feedback_events", "id"))
        imported.notes += db.notes()
    if source.has(EVALUATION):
        with source.database(EVALUATION) as db:
            _evaluation(imported, db)
            imported.notes += db.notes()
    _ledger(imported, events)
    return imported


def _entry(row: StoreRow, edges: Mapping[str, list[Record]], corrected: Mapping[int, int], db: Database) -> Record:
    weight, level, accessed = row["importance_weight"], row["spec_level"], row["last_accessed"]
    own = edges.get(str(row["id"]), [])
    record = db.picked(row, MEMORY) | {
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


def _evaluation(imported: Imported, db: Database) -> None:
    """Queries, judgments, and the newest list of each channel for each query."""
    for row in db.rows("eval_ground_truth", "id"):
        imported.qrels.setdefault(str(row["query_id"]), {})[str(row["memory_id"])] = row["relevance"]
    for row in db.rows("eval_queries", "id"):
        id_, project = str(row["id"]), row["spec_folder"]
        nothing = row["category"] == "hard_negative" and not any(imported.qrels.get(id_, {}).values())
        more = {"filter": {"project": project} if project else None, "answerable": False if nothing else None}
        imported.queries.append(filled(db.picked(row, QUERY) | {"id": id_, **more}))
    for table, channel in (("eval_channel_results", "channel"), ("eval_final_results", "")):
        for row in db.rows(table, "id"):
            scores = db.json_list(row, "scores")
            ids = [str(id_) for id_ in db.json_list(row, "result_memory_ids")]
            if len(scores) != len(ids) or not all(isinstance(score, int | float) for score in scores):
                scores = [None] * len(ids)
            lists = imported.runs.setdefault(identifier(str(row[channel])) if channel else "final", {})
            lists[str(row["query_id"])] = list(zip(ids, scores, strict=True))
    judged = sum(1 for _ in db.rows("eval_llm_judge_labels"))
    imported.note(judged, "label", "of a language model left out: they are no judgments of a person")
    selected = sum(1 for _ in db.rows("eval_user_selections"))
    imported.note(selected, "selection", "of users left out: what else was shown is not recorded with them")


def _ledger(imported: Imported, events: Sequence[StoreRow]) -> None:
    """The lists of the ledger as impressions: what was shown for one query, in the order of its rows."""
    texts = {query["id"]: query["text"] for query in imported.queries}
    shown: dict[str, list[StoreRow]] = {}
    acts: dict[str, list[StoreRow]] = {}
    for event in events:
        if _time(event):
            kind = shown if event["type"] == "search_shown" else acts
            kind.setdefault(event["query_id"], []).append(event)
    for query_id, rows in shown.items():
        entries = list(dict.fromkeys(row["memory_id"] for row in rows))
        acted = [act for act in acts.get(query_id, []) if act["type"] in ACTS and act["memory_id"] in entries]
        if {act["memory_id"] for act in acted if act["type"] == "result_cited"} == set(entries):
            # Content was included: the program then cites every row that it shows.
            acted = [act for act in acted if act["type"] != "result_cited"]
        named: list[Record] = [{"object_id": act["memory_id"], "action_name": ACTS[act["type"]]} for act in acted]
        client, text = rows[0]["session_id"] or "", texts.get(query_id)
        imported.impression(_time(rows[0]), f"ledger-{query_id}", client, text, entries, named)
    imported.note(sum(not _time(event) for event in events), "event", "of the ledger without a time left out")
    unnamed = len(shown.keys() - texts.keys())
    imported.note(unnamed, "list", "of the ledger without a text: it keeps none, and no evaluation was on")


def _time(event: StoreRow) -> str:
    """When an event was; empty where that is not known."""
    stamp = event["timestamp"]
    return moment(stamp / 1000) if isinstance(stamp, int | float) else ""


IMPORTER = Importer(
    "spec_kit",
    "system-spec-kit: context-index.sqlite, speckit-eval.db",
    lambda source: bool(_index(source)),
    read,
    homes,
)
