"""What recordings and weights files say of how they came about: what can share a recording, what was edited."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from steelyard import __version__
from steelyard.base.errors import ConfigError
from steelyard.base.files import canonical
from steelyard.config import SearchConfig
from steelyard.live.sources import identity
from steelyard.memory.query import Query
from steelyard.retrievers import RETRIEVER_KINDS
from steelyard_eval.common.process import day
from steelyard_eval.datasets import Dataset, tuning_queries
from steelyard_eval.datasets.groups import judged
from steelyard_eval.measures.spread import Gain, Interval
from steelyard_eval.result.structs import Fact, Message

TOOL = f"steelyard {__version__}"  # the program and its version, as documents and files name it
STORED_BY_RETRIEVER = ("field_weights", "filters", "similarity", "after")


def share(configs: Iterable[SearchConfig]) -> list[list[int]]:
    """Group configurations that can share a recording; each joins the first group that fits, by position."""
    groups: list[list[int]] = []
    identities = [_flat(identity(config)) for config in configs]
    for i, asked in enumerate(identities):
        fitting = (g for g in groups if not any(_differences(asked, identities[other]) for other in g))
        if (group := next(fitting, None)) is None:
            groups.append(group := [])
        group.append(i)
    return groups


def agreeing(config: SearchConfig, fingerprints: Sequence[Mapping[str, object]]) -> list[bool]:
    """Whether a configuration differs from each recording in nothing."""
    asked, models = _flat(identity(config)), config.models
    return [models <= {held.get("model", "")} and not _differences(asked, _flat(held)) for held in fingerprints]


def agree(config: SearchConfig, fingerprint: Mapping[str, object]) -> None:
    """Raise ConfigError listing every parameter in which a configuration differs from a recording."""
    recorded = fingerprint.get("model", "")
    problems = _differences(_flat(identity(config)), _flat(fingerprint))
    problems += [("model", model, recorded) for model in sorted(config.models - {recorded})]
    if problems:
        told = [f"{name} is {asked!r}, the recording has {held!r}" for name, asked, held in problems]
        raise ConfigError("; ".join(told) + ". Record again with this configuration")


def _differences(asked: Mapping[str, object], held: Mapping[str, object]) -> list[tuple[str, object, object]]:
    """What differs of flat values; a retriever that only one side has is not a difference."""
    return [
        (name, value, held.get(name))
        for name, value in asked.items()
        if value != held.get(name) and (name in held or not name.startswith("retrievers."))
    ]


def _flat(parts: Mapping[str, object]) -> dict[str, object]:
    """The same values under distinct names such as ``retrievers.fts.filters`` and ``retrievers.bm25.k1``."""
    flat: dict[str, object] = {}
    for key, value in parts.items():
        if key in STORED_BY_RETRIEVER and isinstance(value, Mapping):
            flat |= {f"retrievers.{name}.{key}": setting for name, setting in value.items()}
        elif key in RETRIEVER_KINDS and isinstance(value, Mapping):
            every = RETRIEVER_KINDS[key].quiet | dict(value)
            flat |= {f"retrievers.{key}.{name}": setting for name, setting in every.items()}
        else:
            flat[key] = value
    return flat


FOLDS = 5  # in which the choice is made again


def origin(dataset: Dataset, fingerprint: Mapping[str, object], seed: int) -> dict[str, object]:
    """The facts that every weights file names."""
    return {
        "dataset": dataset.name,
        "dataset_sha256": dataset.sha256,
        "fingerprint": sha256(canonical(dict(fingerprint)).encode()).hexdigest(),
        "seed": seed,
        "folds": FOLDS,
        "learned_from": "labels",
        "tool": TOOL,
        "date": day(time.time),
    }


def with_certificate(config: SearchConfig, facts: Mapping[str, object]) -> SearchConfig:
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


def overlap_notice(label: str, config: SearchConfig, dataset: Dataset, queries: Sequence[Query]) -> list[Message]:
    """A notice on weights that were chosen by the labels that they are now looked at with; none for others.

    The hash `tuned` in the provenance of a weights file says that they were searched for. `queries` are those that
    are looked at.
    """
    facts = config.provenance
    if "tuned" not in facts:
        return []
    if edited(config):
        return [Message("tuned_edited", {"label": label})]
    if facts.get("dataset_sha256") != dataset.sha256:
        return [Message("tuned_other_state", {"label": label})] if facts.get("dataset") == dataset.name else []
    every, part = judged(dataset, dataset.queries), judged(dataset, tuning_queries(dataset)[0])
    tuned = part if (facts.get("in_sample") or {}).get("queries") == len(part) else every
    both = len({query.id for query in tuned} & {query.id for query in queries})
    of: dict[str, Fact] = {"all": True} if both == len(queries) else {"both": both, "queries": len(queries)}
    return [Message("tuned_here", {"label": label, **of})] if both else []


def tuned_on_dataset(record: object) -> str:
    """The name of the data set that a weights file was chosen on; empty where the record names none."""
    facts = record.get("provenance") if isinstance(record, dict) else None
    name = facts.get("dataset") if isinstance(facts, dict) else None
    return name if isinstance(name, str) else ""


def promised(gain: Gain, metric: str, queries: int) -> dict[str, object]:
    """The promise of a decision, for the file; with its odds, where anything is known of them."""
    promise = {"metric": metric, **estimate(gain, queries, -1.0)}
    return promise if gain.worse is None else {**promise, "harm": gain.worse}


def estimate(interval: Interval, queries: int, least: float = 0.0) -> dict[str, object]:
    """A mean with its interval, as weights files write it, which leave out ends that are not known."""
    low, high = interval.stated(least)
    value: dict[str, object] = {"value": interval.mean, "queries": queries}
    return value if low is None or high is None else {**value, "low": low, "high": high}
