"""Feedback in other formats: OpenSearch's User Behavior Insights, Soleri's brain_feedback."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.base.files import STRICT_JSON
from steelyard.feedback.log import ACTIONS, SCHEMA_VERSION, line
from steelyard_eval.datasets.logs import lines_of

UBI_ACTIONS = {
    "click": "clicked",
    "item_click": "clicked",
    "view": "opened",
    "add_to_cart": "accepted",
    "purchase": "used",
    "copy": "copied",
    "reject": "dismissed",
    "dismiss": "dismissed",
}
"""What common action names of UBI stand for; names of ours stand for themselves, others are left out."""


def from_ubi(paths: Iterable[str | Path]) -> Iterator[str]:
    """The lines of a log, from files of `ubi_queries` and `ubi_events`, one JSON document a line.

    Documents may stand in either file, as exported, with or without `_source`. The order of
    `query_response_hit_ids` is the order that was shown. Raises DataError for a line that is no JSON object.
    """
    events: dict[str, list[dict[str, object]]] = defaultdict(list)
    queries: list[Mapping[str, Any]] = []
    for path in paths:
        for record in _records(path):
            if "action_name" in record:
                events[str(record.get("query_id", ""))].append(_ubi_act(record))
            elif isinstance(shown_ids := record.get("query_response_hit_ids"), list) and shown_ids:
                queries.append(record)
    for record in queries:
        query_id = str(record.get("query_id", ""))
        hits = [
            {"object_id": str(name), "position": i} for i, name in enumerate(record["query_response_hit_ids"], 1)
        ]
        yield line(
            {
                "schema_version": SCHEMA_VERSION,
                "timestamp": record.get("timestamp"),
                "query_id": query_id,
                "user_query": str(record.get("user_query", "")),
                "client_id": str(record.get("client_id", "")),
                "policy": str(record.get("application", "")),
                "hits": hits,
                "actions": [act for act in events.get(query_id, []) if act.get("action_name")],
            }
        )


def _ubi_act(record: Mapping[str, object]) -> dict[str, object]:
    """An event as an act; without a name where it is none of ours."""
    attributes = record.get("event_attributes")
    target = attributes.get("object") if isinstance(attributes, Mapping) else None
    name = str(record["action_name"])
    action = name if name in ACTIONS else UBI_ACTIONS.get(name, "")
    object_id = target.get("object_id") if isinstance(target, Mapping) else None
    return {"action_name": action, "object_id": str(object_id)} if action and object_id else {}


def from_soleri(paths: Iterable[str | Path]) -> Iterator[str]:
    """The lines of a log, from rows of Soleri's table brain_feedback, one JSON object a line.

    A row holds a query, an entry and an action, and not what else was shown or where: each becomes a list of that
    entry alone. So these acts can be counted (`--rule adaptive`), and cannot be corrected for their places.
    """
    for path in paths:
        for record in _records(path):
            if record.get("action") not in ACTIONS or not record.get("entry_id"):
                continue
            entry = str(record["entry_id"])
            yield line(
                {
                    "schema_version": SCHEMA_VERSION,
                    "timestamp": _time(record.get("created_at")),
                    "query_id": str(record.get("id", "")),
                    "client_id": str(record.get("id", "")),  # an event of its own, which repeats no other
                    "user_query": str(record.get("query", "")),
                    "policy": "soleri",
                    "hits": [{"object_id": entry, "position": 1}],
                    "actions": [{"object_id": entry, "action_name": record["action"]}],
                }
            )


def _time(value: object) -> str | None:
    """A time as text; SQLite's own form lacks the T."""
    return None if value is None else str(value).replace(" ", "T")


def _records(path: str | Path) -> Iterator[Mapping[str, Any]]:
    for number, raw in lines_of(path):
        try:
            record = STRICT_JSON.decode(raw.decode())
            line({"": record}).encode()  # fails for half a surrogate pair, which could not be written again
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{shown(str(path), PATH_WIDTH)}:{number}: is not JSON ({error}); write one object a line"
            ) from None
        if not isinstance(record, Mapping):
            raise DataError(f"{shown(str(path), PATH_WIDTH)}:{number}: is no object; write one object a line")
        source = record.get("_source")
        yield source if isinstance(source, Mapping) else record
