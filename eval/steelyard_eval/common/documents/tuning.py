"""The document of `tune`."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from steelyard_eval.common.documents.parts import (
    CurveAxis,
    CurvePoint,
    DecidedDocument,
    Estimate,
    HeldOutGain,
    QueryRecord,
    RankingsRecord,
)

Depths = dict[str, int | None]
"""Retriever -> how many candidates it returns; None of one that has no depth."""


class DepthsRecord(TypedDict, total=False):
    """The depths of what the weights file holds, of what was tuned and of what is used today."""

    strategy: Depths
    tuned: Depths
    current: Depths


class EmbeddedRecord(TypedDict):
    """Of so many queries, how many live search embeds now and when tuned; None of other engines' lists."""

    queries: int
    current: int | None
    tuned: int | None


class SignalWorth(TypedDict):
    """What a signal is worth: the best value with it less the best value of the strategy without it."""

    signal: str
    strategy: str
    in_sample: float
    held_out: HeldOutGain | None


class WeightWorth(TypedDict):
    """The curve of a weight: where it stands, the best value and where, and the values at both ends."""

    signal: str
    weight: float
    best: float
    at: float
    without: float
    alone: float
    curve: list[CurvePoint]


class LabelsWorth(TypedDict):
    """What a share of the labels gives: the value where chosen, and elsewhere with the least and greatest one."""

    share: float
    queries: float
    in_sample: float
    held_out: float
    low: float
    high: float


class AblationRecord(TypedDict, total=False):
    """What a tuned setting rests on."""

    signals: list[SignalWorth]
    weights: list[WeightWorth]
    labels: list[LabelsWorth]


class QueriesPart(TypedDict, total=False):
    """Values and lists of every query; nothing where the current setting was chosen."""

    per_query: list[QueryRecord]
    rankings: RankingsRecord


class TuningDocument(DecidedDocument, QueriesPart):
    """What was tuned, and what it promises."""

    system: str
    strategy: str
    schema_version: Literal[1]
    tool: NotRequired[str]
    command: NotRequired[str | None]
    dataset: NotRequired[str]
    dataset_sha256: NotRequired[str]
    limit: NotRequired[int]
    intents: NotRequired[str | None]
    profile: NotRequired[str | None]
    objective: NotRequired[str | None]
    tuned: NotRequired[str | None]
    current: NotRequired[str | None]
    dropped: NotRequired[list[str]]
    notices: NotRequired[list[str]]
    depths: NotRequired[DepthsRecord]
    value: NotRequired[float | None]
    plateau: NotRequired[list[float]]
    in_sample: NotRequired[Estimate | None]
    baseline: NotRequired[Estimate | None]
    holdout: NotRequired[HeldOutGain | None]
    optimism: NotRequired[float | None]
    embedding_calls: NotRequired[EmbeddedRecord]
    curve: NotRequired[list[CurvePoint]]
    axis: NotRequired[CurveAxis | None]
    ablation: NotRequired[AblationRecord | None]
