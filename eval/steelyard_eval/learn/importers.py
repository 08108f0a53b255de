"""Feedback in other formats: OpenSearch's User Behavior Insights, Soleri's brain_feedback, open-bandit."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, shown
from steelyard.base.files import STRICT_JSON
from steelyard.feedback.log import ACTIONS, SCHEMA_VERSION, line
from steelyard_eval.datasets.logs import lines_of
from steelyard_eval.learn.offpolicy import OffPolicy, estimate
from steelyard_eval.measures.statistics import normal_interval

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
    events: dict[str, list[dict[str, Any]]] = defaultdict(list)
    queries: list[Mapping[str, Any]] = []
    for path in paths:
        for record in _records(path):
            if "action_name" in record:
                events[str(record.get("query_id", ""))].append(_ubi_act(record))
            elif record.get("query_response_hit_ids"):
                queries.append(record)
    for record in queries:
        query_id = str(record.get("query_id", ""))
        hits = [
            {"object_id": str(name), "position": at} for at, name in enumerate(record["query_response_hit_ids"], 1)
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


def _ubi_act(record: Mapping[str, Any]) -> dict[str, Any]:
    """An event as an act; without a name where it is none of ours."""
    attributes = record.get("event_attributes")
    target = attributes.get("object") if isinstance(attributes, Mapping) else None
    name = str(record["action_name"])
    own = name if name in ACTIONS else UBI_ACTIONS.get(name, "")
    object_id = target.get("object_id") if isinstance(target, Mapping) else None
    return {"action_name": own, "object_id": str(object_id)} if own and object_id else {}


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
    for number, raw in enumerate(lines_of(path), 1):
        if not raw.strip():
            continue
        try:
            record = STRICT_JSON.decode(raw.decode())
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{shown(str(path), PATH_WIDTH)}:{number}: is not JSON ({error}); write one object a line"
            ) from None
        if not isinstance(record, Mapping):
            raise DataError(f"{shown(str(path), PATH_WIDTH)}:{number}: is no object; write one object a line")
        source = record.get("_source")
        yield source if isinstance(source, Mapping) else record


@dataclass(frozen=True)
class Campaign:
    """One campaign of open-bandit: the value of one policy, estimated from another, beside its own rate."""

    name: str
    own: float
    own_low: float
    own_high: float
    estimated: OffPolicy

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "campaign": self.name,
            "own": {"value": self.own, "low": self.own_low, "high": self.own_high},
            "estimated": self.estimated.to_json(),
        }


def open_bandit(path: str | Path, logged: str = "bts", target: str = "random") -> list[Campaign]:
    """Estimate the click rate of a policy from another's log, by campaign: Saito et al., NeurIPS 2021.

    `path` is feedback.csv.gz with the columns campaign, policy, item_id, click, propensity. The target's
    probabilities are one over the number of its items, so it has to be the uniform policy. Raises DataError for a
    file without these columns, ConfigError for an unknown policy.
    """
    rows = _columns(path)
    names = sorted(set(rows["policy"]))
    for policy in (logged, target):
        if policy not in names:
            raise ConfigError(f"{shown(str(path))} has no policy {shown(policy)}; it has {', '.join(names)}")
    return [_campaign(rows, name, logged, target) for name in sorted(set(rows["campaign"]))]


def _campaign(rows: Mapping[str, list[str]], name: str, logged: str, target: str) -> Campaign:
    chosen = {
        policy: [at for at, one in enumerate(rows["policy"]) if one == policy and rows["campaign"][at] == name]
        for policy in (logged, target)
    }

    def numbers(column: str, policy: str) -> Floats:
        return np.array([float(rows[column][at]) for at in chosen[policy]], dtype=np.float64)

    own = numbers("click", target)
    items: Indices = numbers("item_id", logged).astype(np.int64)
    known = np.unique(numbers("item_id", target).astype(np.int64))
    uniform = np.zeros(max(int(items.max()), int(known.max())) + 1)
    uniform[known] = 1.0 / len(known)
    weight = uniform[items] / numbers("propensity", logged)
    found = estimate(numbers("click", logged), weight, items, uniform, of=f"{target} from {logged}")
    rate = float(own.mean())
    around = normal_interval(rate, float(np.sqrt(rate * (1 - rate) / len(own))))
    return Campaign(name, rate, around.low, around.high, found)


def _columns(path: str | Path) -> dict[str, list[str]]:
    text = b"".join(lines_of(path)).decode()
    reader = csv.DictReader(io.StringIO(text))
    needed = ("campaign", "policy", "item_id", "click", "propensity")
    if missing := [name for name in needed if name not in (reader.fieldnames or ())]:
        raise DataError(
            f"{shown(str(path))} has no column {', '.join(missing)}; it is not open-bandit's feedback.csv"
        )
    found: dict[str, list[str]] = {name: [] for name in needed}
    for row in reader:
        for name in needed:
            found[name].append(row[name])
    return found
