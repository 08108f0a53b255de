"""The document of `learn`; docs/feedback.md tells what the numbers mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NotRequired, TypedDict

from steelyard_eval.common.documents.parts import Count, DecidedDocument


class SetAside(TypedDict):
    """Lines that were not used: the rule that they break, how many, and the first of them."""

    rule: str
    count: Count
    lines: NotRequired[list[int]]


class CensusRecord(TypedDict):
    """What was read of a log."""

    lines: NotRequired[Count]
    impressions: Count
    acts: Count
    disordered: NotRequired[Count]
    simulated: NotRequired[bool]
    set_aside: NotRequired[list[SetAside]]


class LogRecord(CensusRecord):
    """The same with the span of days and the number of distinct queries."""

    queries: Count
    span: str


class ClientsRecord(TypedDict):
    """How many searched, and the share of the searches that the largest one has."""

    count: Count
    largest: float


class PolicyRecord(TypedDict):
    """What ranked logged lists, and how far they can be computed again."""

    name: str
    searches: Count
    agreement: float
    how: str


class ExaminationRecord(TypedDict):
    """How far down people look: place k is examined k**-exponent times as often as the first."""

    exponent: float
    error: NotRequired[float | None]
    source: str
    text: NotRequired[str]


class ActKind(TypedDict):
    """A kind of act, how often it is done, and what it tells."""

    kind: str
    count: Count
    lift: float


class ActsRecord(TypedDict):
    """Acts per show by place, of relevant entries and of others."""

    lift: float
    relevant: list[float]
    other: list[float]
    kinds: list[ActKind]


class FollowRecord(TypedDict):
    """How much the label or a signal raises the logarithm of the odds of an act, given the place."""

    label: str
    delta: float
    low: float
    high: float


class LabelsRecord(TypedDict):
    """What labels alone say of a candidate, and (`both`) sharpened by acts."""

    queries: Count
    logged: NotRequired[Count]
    others: NotRequired[Count]
    share: float
    worth: NotRequired[float]
    gain: float
    error: float
    both_gain: float
    both_error: float


class Turns(TypedDict):
    """How often the other of two rankings that took turns won."""

    wins: NotRequired[Count]
    ties: NotRequired[Count]
    losses: NotRequired[Count]


class ClientTurns(Turns):
    """The same of one client."""

    client: str


class DuelRecord(Turns):
    """The same of all clients, and whether the other ranking is preferred."""

    other: str
    sentence: str
    strategy: NotRequired[str]
    clients: NotRequired[list[ClientTurns]]
    preferred: NotRequired[float | None]
    interval: NotRequired[list[float]]
    p: NotRequired[float]


class ViewRecord(TypedDict):
    """The gain by acts alone, with what was never shown counted at a share of what its signals suggest."""

    imputed: float
    gain: float
    error: float
    refit_error: NotRequired[float | None]


class PieceRecord(TypedDict):
    """The gain by one part of the log."""

    part: str
    queries: Count
    gain: float
    error: float


class LearnedDataset(TypedDict):
    """The data set that was searched."""

    name: str
    sha256: NotRequired[str | None]


class LearnedStrategy(TypedDict):
    """A strategy; of what is used today also its label."""

    strategy: str
    label: NotRequired[str]


class CloselyRecord(TypedDict):
    """One candidate closely: its gain by the acts in every view, and by parts of the log."""

    views: list[ViewRecord]
    pieces: NotRequired[list[PieceRecord]]
    unseen: float
    flip: NotRequired[float | None]
    effective_queries: NotRequired[float | None]


class LearnDocument(DecidedDocument, CloselyRecord):
    """What a log and labels suggest, and whether it is enough to change anything."""

    schema_version: Literal[1]
    kind: Literal["learn"]
    tool: str
    dataset: LearnedDataset
    log: LogRecord
    examination: ExaminationRecord
    acts: ActsRecord
    best: LearnedStrategy
    current: LearnedStrategy
    rule: NotRequired[str]
    counted: NotRequired[Mapping[str, float]]
    evidence: NotRequired[str]
    warning: NotRequired[str]
    chosen: NotRequired[LearnedStrategy | None]
    clients: NotRequired[ClientsRecord]
    policies: NotRequired[list[PolicyRecord]]
    follows: NotRequired[list[FollowRecord]]
    labels: NotRequired[LabelsRecord | None]
    candidates: NotRequired[Count | None]
    interleaved: NotRequired[list[DuelRecord]]
