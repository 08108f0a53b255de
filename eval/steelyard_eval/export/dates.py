"""What recency runs from, in the terms of targets that have a decay by date."""

from __future__ import annotations

from collections.abc import Iterable

from steelyard.fusion import Signal
from steelyard.grammar import Duration
from steelyard_eval.export.base import Lost

DATES = {"updated_at": "the last update, else creation", "last_accessed_at": "the last access, else creation"}
"""The fields that age runs from, and what they hold."""
_FIELDS = {"update": "updated_at", "access": "last_accessed_at"}


def date_of(recency: Signal) -> str:
    """The field that age runs from; Lost where it runs from none."""
    since = str(recency.option("since"))
    if since not in _FIELDS:
        raise Lost(f"{recency} reads no date: only valid_until moves it, and a decay there runs from a date")
    return _FIELDS[since]


def half_life_of(recency: Signal) -> float:
    """The half-life in seconds."""
    half_life = recency.option("half_life")
    if not isinstance(half_life, Duration):
        raise Lost(f"half_life {half_life} is no span of time")
    return half_life.seconds


def dates_of(signals: Iterable[Signal]) -> list[str]:
    """The fields that the signals named recency run from, each once, in their order."""
    return list(dict.fromkeys(date_of(signal) for signal in signals if signal.name == "recency"))


def window_notes(signals: Iterable[Signal]) -> list[str]:
    """What happens to entries whose validity ends, where age runs from the update."""
    if "updated_at" not in dates_of(signals):
        return []
    return ["an entry with valid_until fades at the end of its window here, and ages like the others there"]
