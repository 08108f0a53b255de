"""Where a weights file comes from: the data, the recording, the tool, the day."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from steelyard import __version__
from steelyard.base.errors import ConfigError, shown
from steelyard.base.fields import parse_number
from steelyard.base.files import canonical
from steelyard_eval.datasets import Dataset
from steelyard_eval.decide.decision import Decision
from steelyard_eval.decide.promise import Gain
from steelyard_eval.decide.rule import FOLDS
from steelyard_eval.measures.statistics import Interval

Record = dict[str, Any]


def origin(dataset: Dataset, fingerprint: Mapping[str, object], seed: int, now: Callable[[], float]) -> Record:
    """The facts that every weights file names."""
    return {
        "dataset": dataset.name,
        "dataset_sha256": dataset.sha256,
        "fingerprint": sha256(canonical(dict(fingerprint)).encode()).hexdigest(),
        "seed": seed,
        "folds": FOLDS,
        "learned_from": "labels",
        "tool": f"steelyard {__version__}",
        "date": day(now),
    }


def day(now: Callable[[], float]) -> str:
    """Today, or the day of SOURCE_DATE_EPOCH, for reproducible files; ConfigError when that is no time."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        return datetime.fromtimestamp(parse_number(epoch) if epoch else now(), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise ConfigError(f"SOURCE_DATE_EPOCH {shown(epoch)} is no time in seconds; unset it") from None


def promised(decision: Decision, metric: str, queries: int) -> Record:
    """The promise of a decision, for the document and the file."""
    gain = decision.gain
    ends = {"value": gain.mean, "low": gain.low, "high": gain.high, "queries": queries}
    return {"metric": metric, **ends, **harm(gain)}


def harm(gain: Gain) -> Record:
    """The odds that a gain is a loss, where anything is known of it."""
    return {} if gain.worse is None else {"harm": gain.worse}


def decided(decision: Decision, metric: str, queries: int, stated: bool) -> Record:
    """The part of a document that is the decision; `stated` says whether its gain is printed."""
    return {
        "verdict": decision.verdict,
        "promise": promised(decision, metric, queries),
        "promise_stated": stated,
        "refusal": None if decision.refusal is None else vars(decision.refusal),
        "bound": decision.bound,
        "labels_needed": decision.more,
    }


def estimate(interval: Interval, queries: int) -> Record:
    """A mean with its interval, as weights files write it."""
    return {"value": interval.mean, "low": interval.low, "high": interval.high, "queries": queries}
