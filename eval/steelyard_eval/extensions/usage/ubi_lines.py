"""Feedback in the format of OpenSearch's User Behavior Insights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.base.fields import format_time
from steelyard.base.files import STRICT_JSON
from steelyard.feedback.log import ACTIONS, SCHEMA_VERSION, line
from steelyard_eval.common.times import seconds
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


SHOWN = ("impression", "impressions")
"""Events of UBI that say what was shown, which is no act."""
NAMED = 20
"""Names of actions that are told apart in the counts of what is left out."""


def from_ubi(paths: Iterable[str | Path], left_out: Counter[str]) -> Iterator[str]:
    """The lines of a log, from files of `ubi_queries` and `ubi_events`, one JSON document a line.

    Documents may stand in either file, as exported, with or without `_source`. The order of
    `query_response_hit_ids` is the order that was shown. What has no place in a log is counted in `left_out`, by
    the reason in words. Raises DataError for a line that is no JSON object.
    """
    events: list[Mapping[str, Any]] = []
    queries: list[Mapping[str, Any]] = []
    for path in paths:
        for record in _records(path):
            (events if "action_name" in record else queries).append(record)
    asked = {_text(record, "query_id") for record in queries}
    lists = [record for record in queries if _has_list(record, left_out)]
    acts: dict[str, list[dict[str, object]]] = {_text(record, "query_id"): [] for record in lists}
    for event in events:
        query_id = _text(event, "query_id")
        if isinstance(act := _ubi_act(event), str):
            if act:
                left_out[_few(act, left_out)] += 1
        elif query_id not in acts:
            left_out[f"acts of a query {'that is left out' if query_id in asked else 'that is not there'}"] += 1
        else:
            acts[query_id].append(act)
    for record in lists:
        query_id = _text(record, "query_id")
        hits = [
            {"object_id": str(name), "position": i} for i, name in enumerate(record["query_response_hit_ids"], 1)
        ]
        yield line(
            {
                "schema_version": SCHEMA_VERSION,
                "timestamp": _time(record.get("timestamp")),
                "query_id": query_id,
                "user_query": _text(record, "user_query"),
                "client_id": _text(record, "client_id"),
                "policy": _text(record, "application"),
                "hits": hits,
                "actions": acts[query_id],
            }
        )


def _has_list(record: Mapping[str, object], left_out: Counter[str]) -> bool:
    """Whether a document is a query that can be learned from; what it lacks is counted."""
    hits, time = record.get("query_response_hit_ids"), record.get("timestamp")
    if not (hits and isinstance(hits, list)):
        known = "query_id" in record
        left_out[
            "queries without query_response_hit_ids" if known else "documents that are no query and no event"
        ] += 1
    elif time is not None and _time(time) is None:
        left_out["queries with a time that cannot be read"] += 1
    else:
        return True
    return False


def _ubi_act(record: Mapping[str, object]) -> dict[str, object] | str:
    """An event as an act, or in words why it is none; empty for what only says that something was shown."""
    attributes = record.get("event_attributes")
    target = attributes.get("object") if isinstance(attributes, Mapping) else None
    name = str(record["action_name"])
    action = name if name in ACTIONS else UBI_ACTIONS.get(name, "")
    object_id = target.get("object_id") if isinstance(target, Mapping) else None
    if not action:
        return "" if name in SHOWN else f"acts by a name that is not known ({shown(name)})"
    if object_id in (None, ""):
        return "acts that name no entry"
    return {"action_name": action, "object_id": str(object_id)}


def _few(reason: str, left_out: Counter[str]) -> str:
    """A reason, or one for all further ones where there are many."""
    return reason if reason in left_out or len(left_out) < NAMED else "acts by other names that are not known"


def _text(record: Mapping[str, object], name: str) -> str:
    """A field as text; empty where it is missing or null."""
    value = record.get(name)
    return "" if value is None else str(value)


def _time(value: object) -> str | None:
    """A time as our log writes it, from text or a number; None for what is none."""
    return None if (time := seconds(value)) is None else format_time(time)


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
