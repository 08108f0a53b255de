"""What a recommendation promises, as a report shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard_eval.report.text import MISSING, interval, number

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Recommendation:
    """The promise and what it rests on, as terms with their values; the rows with their gains; strategies."""

    facts: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]
    strategies: tuple[tuple[str, str], ...]


def recommendation(record: Record) -> Recommendation:
    """What a report shows of the document of `steelyard recommend`."""
    promise, chosen, second = record["promise"], record.get("chosen") or {}, record.get("runner_up") or {}
    optimum = chosen.get("optimum") or {}
    facts = (
        ("verdict", record["verdict"]),
        (
            f"gain promised ({promise['metric']})",
            _signed(promise) if record.get("promise_stated", True) else "not stated",
        ),
        ("probability that it is worse", number(promise.get("harm"))),
        ("nothing beats the current one by more than", number(record.get("bound"))),
        ("more labelled queries needed", number(record.get("labels_needed"), 0)),
        ("candidates", number(record.get("candidates"), 0)),
        ("queries, each used for choosing and proof", number(promise.get("queries"), 0)),
        ("runner-up", f"{second['label']}, {_parted(second)}" if second else MISSING),
        ("best weights of that setting on these queries", number(optimum.get("value"))),
    )
    strategies = (
        ("chosen", chosen.get("strategy") or MISSING),
        ("current", (record.get("current") or {}).get("strategy") or MISSING),
    )
    return Recommendation(facts, tuple(_row(row) for row in record.get("leaderboard", ())), strategies)


def _row(row: Record) -> tuple[str, ...]:
    """Label, value, its interval, the difference to the current one with its interval."""
    gain = row.get("gain") or {}
    change = _signed({**gain, "value": gain.get("mean")}) if gain else "current"
    return row["label"], number(row["mean"]), interval(row.get("low"), row.get("high")), change


def _signed(part: Record) -> str:
    return f"{number(part.get('value'), signed=True)} {interval(part.get('low'), part.get('high'))}".strip()


def _parted(second: Record) -> str:
    lead = _signed({**second, "value": second.get("mean")})
    can = "tell" if second.get("parted") else "cannot tell"
    return f"which these queries {can} apart: {lead}"
