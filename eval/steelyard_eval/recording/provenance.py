"""Where a weights file comes from: the data, the recording, the tool, the day."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

from steelyard import __version__
from steelyard.base.files import canonical
from steelyard.config.search_config import SearchConfig
from steelyard.memory.query import Query
from steelyard_eval.common.process import source_date
from steelyard_eval.datasets import Dataset, tuning_queries
from steelyard_eval.measures.spread import Gain, Interval
from steelyard_eval.recording.workspace import judged
from steelyard_eval.result.structs import Fact, Said

FOLDS = 5  # in which the choice is made again


def origin(
    dataset: Dataset, fingerprint: Mapping[str, object], seed: int, now: Callable[[], float]
) -> dict[str, object]:
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


def vouched(config: SearchConfig, facts: Mapping[str, object]) -> SearchConfig:
    """A configuration with its provenance, which names by its hash what was tuned: an edit by hand shows."""
    return replace(config, provenance={**facts, "tuned": _tuned(config)})


def _tuned(config: SearchConfig) -> str:
    record = config.to_json()
    read = {name: record[name] for name in ("strategy", "by_intent", "retrievers")}
    return sha256(canonical(read).encode()).hexdigest()


def edited(config: SearchConfig) -> bool:
    """Whether weights that were tuned are no longer those that the file was written with."""
    facts = config.provenance
    return "tuned" in facts and facts["tuned"] != _tuned(config)


def tuned_here(label: str, config: SearchConfig, dataset: Dataset, queries: Sequence[Query]) -> list[Said]:
    """A notice on weights that were chosen by the labels that they are now looked at with; none for others.

    The hash `tuned` in the provenance of a weights file says that they were searched for. `queries` are those that
    are looked at.
    """
    facts = config.provenance
    if "tuned" not in facts:
        return []
    if edited(config):
        return [Said("tuned_edited", {"label": label})]
    if facts.get("dataset_sha256") != dataset.sha256:
        return [Said("tuned_other_state", {"label": label})] if facts.get("dataset") == dataset.name else []
    every, part = judged(dataset, dataset.queries), judged(dataset, tuning_queries(dataset)[0])
    tuned = part if (facts.get("in_sample") or {}).get("queries") == len(part) else every
    both = len({query.id for query in tuned} & {query.id for query in queries})
    of: dict[str, Fact] = {"all": True} if both == len(queries) else {"both": both, "queries": len(queries)}
    return [Said("tuned_here", {"label": label, **of})] if both else []


def chosen_on(record: object) -> str:
    """The name of the data set that a weights file was chosen on; empty where the record names none."""
    facts = record.get("provenance") if isinstance(record, dict) else None
    name = facts.get("dataset") if isinstance(facts, dict) else None
    return name if isinstance(name, str) else ""


def day(now: Callable[[], float]) -> str:
    """Today, or the day of SOURCE_DATE_EPOCH, for reproducible files; ConfigError when that is no time."""
    given = source_date()
    return datetime.fromtimestamp(now() if given is None else given, UTC).date().isoformat()


def promised(gain: Gain, metric: str, queries: int) -> dict[str, object]:
    """The promise of a decision, for the file; with its odds, where anything is known of them."""
    promise: dict[str, object] = {"metric": metric, "value": gain.mean, "queries": queries}
    low, high = gain.stated(-1.0)
    if low is not None and high is not None:
        promise = {**promise, "low": low, "high": high}
    return promise if gain.worse is None else {**promise, "harm": gain.worse}


def estimate(interval: Interval, queries: int, least: float = 0.0) -> dict[str, object]:
    """A mean with its interval, as weights files write it, which leave out ends that are not known."""
    low, high = interval.stated(least)
    value: dict[str, object] = {"value": interval.mean, "queries": queries}
    return value if low is None or high is None else {**value, "low": low, "high": high}
