"""Formats the result of tuning for a report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard_eval.layout import brief
from steelyard_eval.report.charts import CurveChart, curve_chart
from steelyard_eval.report.sentences import decision
from steelyard_eval.report.text import MISSING, clip, interval, number, system_name

Record = Mapping[str, Any]
_STRATEGIES = (("written to search-weights.json", "strategy"), ("chosen", "tuned"), ("current", "current"))
_PARTS = (
    ("chosen, on these queries", "in_sample"),
    ("current, on these queries", "baseline"),
    ("gain promised", "promise"),
    ("gain, held out", "holdout"),
)
_GAINS = ("promise", "holdout")


@dataclass(frozen=True)
class Tuning:
    """The result of tuning: a sentence, numbers, the curve and strategies."""

    sentence: str
    parts: tuple[tuple[str, tuple[str, ...]], ...]
    facts: tuple[tuple[str, str], ...]
    strategies: tuple[tuple[str, str], ...]
    curve: CurveChart | None


def tuning(record: Record) -> Tuning:
    """What a report shows of a tuning record."""
    optimism = number(record["optimism"], signed=True) if record.get("optimism") is not None else MISSING
    best = record.get("optimum") or {}
    return Tuning(
        sentence=decision(record),
        parts=tuple((name, _part(record.get(key), key in _GAINS)) for name, key in _PARTS),
        facts=(
            ("system", system_name(record)),
            ("objective", record.get("objective") or MISSING),
            ("value of the chosen setting", number(record.get("value"))),
            ("best value found", number(best.get("value"))),
            ("certificate", record.get("certificate") or MISSING),
            ("plateau", _plateau(record.get("plateau"))),
            ("depth, current and tuned", _depths(record.get("depths") or {})),
            ("optimism (gain on these queries less the promise)", optimism),
        ),
        strategies=(
            *((key, brief(record.get(name) or MISSING)) for key, name in _STRATEGIES),
            ("best found", best.get("strategy") or MISSING),
        ),
        curve=curve_chart(record.get("curve") or (), record.get("plateau"), record.get("objective") or ""),
    )


def _part(part: Record | None, signed: bool) -> tuple[str, str, str]:
    """Value, interval and queries of a part of the evidence."""
    part = part or {}
    ends = interval(part.get("low"), part.get("high")) or MISSING
    return number(part.get("value"), signed=signed), ends, number(part.get("queries"), 0)


def _depths(depths: Record) -> str:
    """The depths of the current and of the tuned setting, each number once."""
    sides = [depths.get(side) or {} for side in ("current", "tuned")]
    texts = [", ".join(str(depth) for depth in sorted({d for d in side.values() if d})) for side in sides]
    return " and ".join(texts) if all(texts) else MISSING


def _plateau(plateau: object) -> str:
    match plateau:
        case [int() | float() as low, int() | float() as high]:
            return f"weights from {number(low)} to {number(high)}"
    return clip(json.dumps(plateau, ensure_ascii=False), 200) if plateau else MISSING
