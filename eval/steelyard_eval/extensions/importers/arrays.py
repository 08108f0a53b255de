"""What a data set can hold of an import, and notes on the rest: entries, clock, vectors, queries, labels."""

import json
import re
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import quote
from steelyard.base.fields import TIME_FIELDS, format_time
from steelyard.base.files import STRICT_JSON
from steelyard.memory.entry import Entry, read_entry
from steelyard_eval.common.times import seconds, time_of
from steelyard_eval.extensions.importers.base import Imported, Record

NEEDED = frozenset(("id", "text"))  # Fields without which an entry is none
GRADES = frozenset(range(-1, 5))
DAY = 86_400
SHOWN = 3  # How many faults of one kind are named

Labels = dict[tuple[str, str], int]


def checked(imported: Imported) -> list[tuple[Entry, str]]:
    """The entries that a corpus can hold, with their lines; the others are noted.

    A value that its field cannot have stays with the entry, under `as_written`.
    """
    kept: dict[str, tuple[Entry, str]] = {}
    wrong: list[str] = []
    without: Counter[str] = Counter()
    for given in imported.entries:
        record = {name: time_of(value) if name in TIME_FIELDS else value for name, value in given.items()}
        entry, faults = read_entry(record)
        spoilt = {fault.field: fault.rule for fault in faults} | _unheld(record)
        if spoilt and not spoilt.keys() & NEEDED:
            unread = {name: given[name] for name in spoilt if not _unheld({name: given[name]})}
            record = {name: value for name, value in record.items() if name not in spoilt}
            record |= {"as_written": unread} if unread else {}
            entry, faults = read_entry(record)
            without.update(f"{name}, which {rule}" for name, rule in spoilt.items())
        if entry is None:
            reason = "; ".join(f"{fault.field} {fault.rule}" for fault in faults)
            wrong.append(f"{quote(str(record.get('id', '')), 40)} ({reason})")
        elif entry.id in kept:
            wrong.append(f"{quote(entry.id, 40)} (its id is there twice)")
        else:
            kept[entry.id] = entry, line_of(record)
    for what, count in without.items():
        imported.note(count, "entry is", f"read without {what}", "entries are")
    imported.note(len(wrong), "entry is", f"left out: {', '.join(wrong[:SHOWN])}", "entries are")
    return list(kept.values())


def _unheld(record: Record) -> dict[str, str]:
    """The values that strict JSON cannot hold, such as bytes, half a surrogate pair, deep nests, a key twice."""
    try:
        line = line_of(record)
        line.encode()
        STRICT_JSON.decode(line)
    except (TypeError, ValueError, RecursionError):
        if len(record) == 1:
            return dict.fromkeys(record, "JSON cannot hold")
        return dict(item for name, value in record.items() for item in _unheld({name: value}).items())
    return {}


def clock(imported: Imported, entries: list[Entry], now: float) -> Record:
    """`as_of`: the latest date of the store, so that importing twice writes the same bytes.

    A date in the future is a slip of somebody's pen or clock. It is noted, and counts only where no entry has
    another one: with a clock that far ahead all other entries would be equally old.
    """
    dates = {(t, entry.id) for entry in entries for t in (entry.created_at, entry.updated_at) if t is not None}
    ahead = {(t, id_) for t, id_ in dates if t > now + DAY}  # a day: dates of other time zones
    if not dates:
        return {}
    as_of = format_time(max(dates - ahead or dates)[0])
    named = ", ".join(f"{quote(id_, 40)} {format_time(t)}" for t, id_ in sorted(ahead)[-SHOWN:])
    rest = f"in the future ({named}); as_of, the clock, is {as_of}; correct the store"
    imported.note(len({id_ for _, id_ in ahead}), "entry has a date", rest, "entries have dates")
    return {"as_of": as_of}


def arrays_of(imported: Imported, entries: list[Entry]) -> dict[str, NDArray[np.float16]]:
    """The vectors of every model, with zeros for an entry that has none that can be used; these are noted."""
    arrays: dict[str, NDArray[np.float16]] = {}
    for model, vectors in sorted(imported.vectors.items()):
        halves = [_half(vectors.get(entry.id)) for entry in entries]
        lengths = Counter(len(half) for half in halves if half is not None).most_common(1)
        if not lengths:
            imported.notes.append(f"the vectors of {quote(model)} are left out: none can be used")
            continue
        name = re.sub(r"[^\w.-]+", "-", model.rpartition("/")[2])  # in which no provider and no path stands
        matrix = arrays[f"corpus.{name}.f16.npy"] = np.zeros((len(entries), lengths[0][0]), dtype=np.float16)
        for row, half in enumerate(halves):
            if half is not None and len(half) == matrix.shape[1]:
                matrix[row] = half
        rest = f"no usable vector of {quote(model)}, of {len(entries)} in all: keyword search finds them, "
        missing = int((~matrix.any(axis=1)).sum())
        imported.note(missing, "entry has", rest + "vector search does not", "entries have")
        imported.notes.append(
            f"EMBEDDING_MODEL={quote(model)} and --embedder api embed queries by the model of these vectors; for "
            "another model, import with --set model=NAME"
        )
    return arrays


def _half(vector: NDArray[np.float32] | None) -> NDArray[np.float16] | None:
    """A vector in half precision; None for none, and for one that is all zeros or not finite there."""
    if vector is None or vector.ndim != 1:
        return None
    with np.errstate(over="ignore"):
        half: NDArray[np.float16] = vector.astype(np.float16)
    return half if half.any() and np.isfinite(half).all() else None


def complete(imported: Imported) -> list[Record]:
    """The queries that have an id and a text, without times that are none; the others are noted."""
    kept, odd = dict[object, Record](), 0
    for query in imported.queries:
        if not query.get("id") or not isinstance(query.get("text"), str):
            continue
        asked = query.get("asked_at")
        time = {"asked_at": time_of(asked)} if asked else {}
        if asked and seconds(time["asked_at"]) is None:
            odd, time = odd + 1, {"as_written": {"asked_at": asked}}
        rest = {name: value for name, value in query.items() if name != "asked_at"}
        kept.setdefault(query["id"], rest | time)
    imported.note(odd, "query is", "read without asked_at, which is no time", "queries are")
    lacking = len(imported.queries) - len(kept)
    imported.note(lacking, "query", "without an id of its own or a text left out", "queries")
    return list(kept.values())


def usable(imported: Imported, queries: list[Record]) -> Labels:
    """The labels of queries that are there, with grades that are some; the others are noted."""
    labels = {(query, entry): grade for query, grades in imported.qrels.items() for entry, grade in grades.items()}
    asked = {query["id"] for query in queries}
    kept = {pair: grade for pair, grade in labels.items() if pair[0] in asked and grade in GRADES}
    rest = "left out, whose query is not there, or whose grade is not one of -1 to 4"
    imported.note(len(labels) - len(kept), "label", rest)
    return kept


def line_of(record: Record) -> str:
    """The record as a line of JSON Lines, without its end; ValueError or TypeError for what JSON cannot hold."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False)
