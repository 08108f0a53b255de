"""Translates the dates that recency is counted from, for targets that have a decay by date."""

from __future__ import annotations

from collections.abc import Iterable

from steelyard.fusion import Signal
from steelyard.grammar import Duration
from steelyard_eval.export.base import Lost

DATES = {"updated_at": "the last update, else creation", "last_accessed_at": "the last access, else creation"}
"""The fields that age is counted from, and their meaning."""
_FIELDS = {"update": "updated_at", "access": "last_accessed_at"}


def date_of(recency: Signal) -> str:
    """Return the field that age is counted from; Lost when there is none."""
    since = str(recency.option("since"))
    if since not in _FIELDS:
        raise Lost(f"{recency} reads no date: only valid_until moves it, and a decay there runs from a date")
    return _FIELDS[since]


def half_life_of(recency: Signal) -> float:
    """Return the half-life in seconds."""
    half_life = recency.option("half_life")
    if not isinstance(half_life, Duration):
        raise Lost(f"half_life {half_life} is no span of time")
    return half_life.seconds


def dates_of(signals: Iterable[Signal]) -> list[str]:
    """List the fields that signals named recency are counted from, each once, in order."""
    return list(dict.fromkeys(date_of(signal) for signal in signals if signal.name == "recency"))


def window_notes(signals: Iterable[Signal]) -> list[str]:
    """Notes on entries whose validity ends, when age is counted from the update."""
    if "updated_at" not in dates_of(signals):
        return []
    return ["an entry with valid_until fades at the end of its window here, and ages like the others there"]
