"""Feedback in other formats: OpenSearch's User Behavior Insights, Soleri's brain_feedback, open-bandit."""

from __future__ import annotations

import csv
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import LISTED, PATH_WIDTH, ConfigError, DataError, shown, visible
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
COLUMNS = ("campaign", "policy", "item_id", "click", "propensity")
"""The columns of open-bandit that are read."""
MOST_GROUPS, MOST_ROWS = 1_000, 20_000_000
"""Campaigns and policies of one file, and its rows."""


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
            elif isinstance(shown_ids := record.get("query_response_hit_ids"), list) and shown_ids:
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
    rows = _rows(path)
    names = sorted({policy for _, policy in rows})
    for policy in (logged, target):
        if policy not in names:
            known = ", ".join(map(visible, names[:LISTED]))
            raise ConfigError(f"{shown(str(path))} has no policy {shown(policy)}; it has {known}")
    campaigns = sorted({name for name, _ in rows})
    for missing in [name for name in campaigns if not {(name, logged), (name, target)} <= rows.keys()]:
        raise DataError(f"{shown(str(path))}: campaign {shown(missing)} has not both policies; leave it out")
    of = f"{target} from {logged}"
    return [_campaign(name, rows[name, logged], rows[name, target], of) for name in campaigns]


def _campaign(name: str, logged: _Rows, target: _Rows, of: str) -> Campaign:
    items, clicks, propensity = logged.columns()
    known, own, _ = target.columns()
    every = np.unique(np.concatenate([items, known]))
    uniform = np.isin(every, known) / len(np.unique(known))
    place = np.searchsorted(every, items)
    found = estimate(clicks, uniform[place] / propensity, place, uniform, of=of)
    rate = float(own.mean())
    around = normal_interval(rate, float(np.sqrt(rate * (1 - rate) / len(own))))
    return Campaign(name, rate, around.low, around.high, found)


class _Rows:
    """The rows of one campaign and policy as plain numbers: a row takes 17 bytes."""

    def __init__(self) -> None:
        self._items, self._clicks, self._propensity = array("q"), array("b"), array("d")

    def add(self, item: str, click: str, propensity: str) -> None:
        """One row; ValueError for what is no item number, no click (0 or 1) or no probability above 0."""
        number, clicked, share = float(item), float(click), float(propensity)
        if not (0 <= number < 2**53 and number.is_integer() and clicked in (0, 1) and 0 < share <= 1):
            raise ValueError
        self._items.append(int(number))
        self._clicks.append(int(clicked))
        self._propensity.append(share)

    def columns(self) -> tuple[Indices, Floats, Floats]:
        """Items, clicks and probabilities."""
        items, clicks, shares = map(np.array, (self._items, self._clicks, self._propensity))
        return items, clicks.astype(np.float64), shares


def _rows(path: str | Path) -> dict[tuple[str, str], _Rows]:
    """The rows by campaign and policy."""
    place = shown(str(path), PATH_WIDTH)
    found: dict[tuple[str, str], _Rows] = {}
    reader = csv.DictReader(raw.decode() for _, raw in lines_of(path))
    try:
        if missing := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
            raise DataError(f"{place} has no column {', '.join(missing)}; it is not open-bandit's feedback.csv")
        for count, row in enumerate(reader, 1):
            campaign, policy, *values = (row[name] or "" for name in COLUMNS)
            found.setdefault((campaign, policy), _Rows()).add(*values)
            if len(found) > MOST_GROUPS or count > MOST_ROWS:
                most = f"{MOST_GROUPS:,} campaigns and policies or {MOST_ROWS:,} rows"
                raise DataError(f"{place} has more than {most}; split it")
    except (ValueError, TypeError, csv.Error):
        raise DataError(
            f"{place}: the row {reader.line_num} cannot be read; it needs a campaign, a policy, an item number, "
            "a click of 0 or 1, a propensity above 0, in UTF-8"
        ) from None
    return found
