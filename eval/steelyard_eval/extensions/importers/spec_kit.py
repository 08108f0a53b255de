"""system-spec-kit: `context-index.sqlite` with memories and edges, and `speckit-eval.db` beside it.

Columns are those of schema 20 (commit c7509739). The evaluation database has queries, labels and the lists of
every channel. The ledger `feedback_events` (075709df) lies in the index and holds no texts; where evaluation was
on, its `query_id` is one of the evaluation's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from steelyard.base.secret_texts import kept_text
from steelyard.feedback.log import SCHEMA_VERSION
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, filled, identifier, moment
from steelyard_eval.extensions.importers.columns import searched
from steelyard_eval.extensions.importers.database import Database, StoreRow
from steelyard_eval.extensions.importers.source import ForeignStore

INDEXES = ("context-index.sqlite", "context-index.db")
EVALUATION = "speckit-eval.db"
RECIPE = "{title}\n{text}"
ACTS = {"result_cited": "cited", "follow_on_tool_use": "used"}
"""Kinds of events that are acts; the others say what was shown, or that the question was asked again."""
OWN = """anchor_id session_id is_pinned confidence validation_count channel quality_score encoding_intent parent_id
    chunk_index chunk_label content_hash importance_weight expires_at""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
"""Columns that no field of ours stands for; an entry keeps them."""
SAME = """title importance_tier context_type memory_type document_type embedding_status stability difficulty
    review_count access_count half_life_days created_at updated_at last_review""".split()  # noqa: SIM905 -- a list literal of so many words reads worse


def homes(environ: Mapping[str, str]) -> Iterable[Path]:
    """The folder that SPEC_KIT_DB_DIR or MEMORY_DB_DIR names, else the program's own below here."""
    yield from (Path(environ[name]) for name in ("SPEC_KIT_DB_DIR", "MEMORY_DB_DIR") if environ.get(name))
    yield from sorted(Path().glob(".opencode/skill/system-spec-kit/mcp_server/database"))
    yield Path("mcp_server/database")


def matches(source: ForeignStore) -> bool:
    """An SQLite file with a memory_index."""
    return _index(source) is not None


def _index(source: ForeignStore) -> str | None:
    """The name of the file with the index."""
    for name in dict.fromkeys((*INDEXES, source.path.name)):
        if name != EVALUATION and source.is_database(name):
            with source.database(name) as db:
                if "memory_index" in db.columns:
                    return name
    return None


def read(source: ForeignStore) -> Imported:
    """Memories with their edges and vectors; queries, labels, lists of every channel, and the ledger."""
    imported = Imported(system="spec_kit", recipe=RECIPE)
    with source.database(_index(source) or INDEXES[0]) as db:
        edges: dict[str, list[Record]] = {}
        for row in db.rows("causal_edges"):
            names = {"type": "relation", "target": "target_id", "strength": "strength", "evidence": "evidence"}
            edge = filled({name: row.get(column) for name, column in names.items()})
            edges.setdefault(row["source_id"], []).append(edge)
        corrected = Counter(row["original_memory_id"] for row in db.rows("memory_corrections"))
        imported.add(db.rows("memory_index"), lambda row: _entry(row, edges, corrected, db))
        vectors = db.vectors("vec_memories")
        models = {row["embedding_model"] for row in db.rows("memory_index")} - {None, "", "not-loaded"}
        model = identifier(str(models.pop())) if len(models) == 1 else "spec-kit"
        imported.vectors = {model: {str(rowid): vector for rowid, vector in vectors.items()}}
        events = list(db.rows("feedback_events", "id"))
        imported.notes += db.notes()
    if source.has(EVALUATION):
        with source.database(EVALUATION) as db:
            _evaluation(imported, db)
            imported.notes += db.notes()
    _ledger(imported, events)
    return imported


def _entry(row: StoreRow, edges: Mapping[str, list[Record]], corrected: Mapping[int, int], db: Database) -> Record:
    weight, level = row["importance_weight"], row["spec_level"]
    accessed, own = row["last_accessed"], edges.get(str(row["id"]), [])
    record = filled(
        {
            "id": str(row["id"]),
            **{name: row.get(name) for name in SAME},
            "text": row["content_text"],
            "tags": db.json_list(row, "trigger_phrases"),
            "project": row["spec_folder"],
            "uri": row["file_path"],
            "importance": None if weight is None else weight * 10,
            "spec_level": None if level is None else str(level),
            "last_accessed_at": accessed / 1000 if isinstance(accessed, int) and accessed > 0 else None,
            "correction_count": corrected.get(row["id"]),
            "visibility": "archived" if row["is_archived"] else None,
            "relations": [{name: edge[name] for name in edge if name != "evidence"} for edge in own],
            "evidence": [edge for edge in own if "evidence" in edge],
            "related": db.json_list(row, "related_memories"),
            **{name: row[name] for name in OWN if name in row},
        }
    )
    return searched(record)


def _evaluation(imported: Imported, db: Database) -> None:
    """Queries, judgments, and the newest list of each channel for each query."""
    for row in db.rows("eval_ground_truth", "id"):
        imported.qrels.setdefault(str(row["query_id"]), {})[str(row["memory_id"])] = row["relevance"]
    for row in db.rows("eval_queries", "id"):
        nothing = row["category"] == "hard_negative" and not any(imported.qrels.get(str(row["id"]), {}).values())
        record = {
            "id": str(row["id"]),
            "text": row["query"],
            "intent": row["intent"],
            "category": row["category"],
            "filter": {"project": row["spec_folder"]} if row["spec_folder"] else None,
            "answerable": False if nothing else None,
            "difficulty": row["difficulty"],
        }
        imported.queries.append(filled(record))
    for table, channel in (("eval_channel_results", "channel"), ("eval_final_results", "")):
        for row in db.rows(table, "id"):
            scores = db.json_list(row, "scores")
            ids = [str(id_) for id_ in db.json_list(row, "result_memory_ids")]
            if len(scores) != len(ids) or not all(isinstance(score, int | float) for score in scores):
                scores = [None] * len(ids)
            name = identifier(str(row[channel])) if channel else "final"
            lists = imported.runs.setdefault(name, {})
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
    timeless = sum(not moment(_time(event)) for event in events)
    for event in events:
        if not moment(_time(event)):
            continue
        kind = shown if event["type"] == "search_shown" else acts
        kind.setdefault(event["query_id"], []).append(event)
    unnamed = 0
    for query_id, rows in shown.items():
        unnamed += query_id not in texts
        entries = list(dict.fromkeys(row["memory_id"] for row in rows))
        acted = [act for act in acts.get(query_id, []) if act["type"] in ACTS and act["memory_id"] in entries]
        cited = {act["memory_id"] for act in acted if act["type"] == "result_cited"}
        if cited == set(entries):  # content was included: the program then cites every row that it shows
            acted = [act for act in acted if act["type"] != "result_cited"]
        imported.feedback.append(
            {
                "schema_version": SCHEMA_VERSION,
                "timestamp": moment(_time(rows[0])),
                "query_id": f"ledger-{query_id}",
                "user_query": kept_text(str(texts.get(query_id, ""))),
                "client_id": rows[0]["session_id"] or "",
                "policy": "spec_kit",
                "hits": [{"object_id": entry, "position": place} for place, entry in enumerate(entries, 1)],
                "actions": [{"object_id": act["memory_id"], "action_name": ACTS[act["type"]]} for act in acted],
            }
        )
    imported.note(timeless, "event", "of the ledger without a time left out")
    imported.note(unnamed, "list", "of the ledger without a text: it keeps none, and no evaluation was on")


def _time(event: StoreRow) -> float | None:
    """When an event was, in seconds."""
    stamp = event["timestamp"]
    return stamp / 1000 if isinstance(stamp, int | float) else None


IMPORTER = Importer("spec_kit", "system-spec-kit: context-index.sqlite, speckit-eval.db", matches, read, homes)
