"""The document of `explain`."""

from typing import Any, NotRequired, TypedDict

RawSignal = dict[str, float | None]
"""The `value` of a signal, and of a retriever the `position` in its list; None where it was not returned."""
ListPosition = dict[str, int | None]
"""The `position` of an entry in a retriever's whole list, and the `depth` to which that is read."""


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
    parts: "NotRequired[list[ScoreTree]]"


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


class PlaceRecord(TypedDict):
    """Where an entry is, see `ListView.place`; `dated` and `as_new` are of one that its age keeps out."""

    where: str
    rank: int | None
    why: str
    lists: dict[str, ListPosition]
    dated: NotRequired[str]
    as_new: NotRequired[int]


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
    searched_retrievers: list[str]
    skipped_retrievers: list[str]
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


class ChangeRecord(ExplainedEntry):
    """How an entry moved (stayed, moved, entered or left), by which signal, and the change of each lead.

    `standing` has the lead before and after over those with which its order turned, see `explain.moves`;
    `why` says why it is not in one of the lists.
    """

    kind: str
    before: int | None
    after: int | None
    standing: dict[str, float] | None
    by: str | None
    changes: dict[str, float]
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
    """One query under one configuration, or two and what changes between them.

    `dataset` has what a result says of a data set; `query` has the fields of the query, how many entries are in
    its scope, and how many are judged and relevant.
    """

    schema_version: int
    tool: str
    dataset: dict[str, Any]
    intents: str | None
    query: dict[str, Any]
    model: str
    configurations: list[ExplainedView]
    changes: list[ChangeRecord] | None
    entry: RequestedEntry | None
