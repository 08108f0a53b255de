"""The document of `explain`."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from steelyard_eval.recording.shown_lists import DatasetRecord


class ExplainedQuery(TypedDict):
    """The query, what is in its scope, and how many entries are judged for it."""

    id: str
    text: str
    intent: str
    category: str
    domain: str
    split: str
    tags: list[str]
    filter: str
    in_scope: int
    clock: str
    judged: int
    relevant: int


class RawSignal(TypedDict):
    """The raw value of a signal, and of a retriever the position in its list; None where it was not returned."""

    value: float | None
    position: int | None


class TermRecord(TypedDict):
    """A term of a score: the weight times the value, which a formula made of the signal."""

    signal: str
    weight: float
    value: float
    formula: str
    contribution: float


class FactorRecord(TypedDict):
    """What the sum of the terms is multiplied by, and its parts."""

    value: float
    formula: str
    parts: dict[str, float]


class ScoreTree(TypedDict):
    """An explained score; a value is None where a list does not have the entry."""

    value: float | None
    text: str
    combine: NotRequired[str]
    parts: NotRequired[list[ScoreTree]]


class ExplainedEntry(TypedDict):
    """An entry by its title or first words, with its grade for the query."""

    id: str
    headline: str
    grade: int | None


class ListedEntry(ExplainedEntry):
    """A place of a list; `fused` and `finished` are of one that a finish stage scored again."""

    rank: int
    score: float
    signals: dict[str, RawSignal]
    contributions: list[TermRecord]
    factor: FactorRecord | None
    fused: NotRequired[float | None]
    finished: NotRequired[ScoreTree]


class ListPosition(TypedDict):
    """Where an entry is in a retriever's whole list, and the depth to which that is read."""

    position: int | None
    depth: int | None


class PlaceRecord(TypedDict):
    """Where an entry is, see `place` in steelyard_eval.explain.places."""

    where: str
    rank: int | None
    why: str
    lists: dict[str, ListPosition]


class MissingEntry(ExplainedEntry, PlaceRecord):
    """A relevant entry that is not in the list."""


class AboutView(TypedDict):
    """What answered; lists have no system."""

    label: str
    system: str | None
    profile: str | None
    strategy: str
    limit: int | None
    depths: dict[str, int | None]
    asked: list[str]
    unasked: list[str]
    intent: str
    confidence: NotRequired[float | None]
    matched: str
    emptied: NotRequired[str]
    finish: list[str]


class ExplainedView(AboutView):
    """The same with its list; `role` is only, before or after."""

    role: str
    metrics: dict[str, float] | None
    ranked: int
    entries: list[ListedEntry]
    missing: list[MissingEntry]


class StandingRecord(TypedDict):
    """The lead of an entry over those with which its order turned, see steelyard_eval.explain.moves."""

    before: float
    after: float


class MoveRecord(TypedDict):
    """How an entry moved (stayed, moved, entered or left), by which signal, and the change of each lead."""

    id: str
    kind: str
    before: int | None
    after: int | None
    standing: StandingRecord | None
    by: str | None
    changes: dict[str, float]


class ChangeRecord(ExplainedEntry, MoveRecord):
    """The same of an entry, and why it is not in one of the lists."""

    why: str


class ExplainedTree(PlaceRecord):
    """One entry in one of the views; `matching` are the words of the query in it, by retriever."""

    role: str
    matching: dict[str, list[str]]
    explanation: ScoreTree | None


class RequestedEntry(ExplainedEntry):
    """The entry that was asked for, in each view."""

    configurations: list[ExplainedTree]


class ExplanationDocument(TypedDict):
    """One query under one configuration, or two and what changes between them."""

    schema_version: int
    tool: str
    dataset: DatasetRecord
    intents: str | None
    query: ExplainedQuery
    model: str
    configurations: list[ExplainedView]
    changes: list[ChangeRecord] | None
    entry: RequestedEntry | None
