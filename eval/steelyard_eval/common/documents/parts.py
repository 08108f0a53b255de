"""What several documents have: the answer, numbers with intervals, queries and their lists."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

Count = Annotated[int, ("minimum", 0)]
Share = Annotated[float, ("minimum", 0), ("maximum", 1)]
Depths = dict[str, int | None]
"""Retriever -> how many candidates it returns; None of one that has no depth."""


class StepRecord(TypedDict):
    """One thing to do: in words, and the command or the file; either may be empty."""

    what: str
    command: str


class AnsweredDocument(TypedDict, total=False):
    """What a job answers: the result in a sentence, what to do, the formula it is about, what else to know."""

    sentence: str
    steps: Annotated[list[StepRecord], ("maxItems", 100)]
    formula: str | None
    beside: str


class Ends(TypedDict, total=False):
    """The ends of a 95% interval, where it is known."""

    low: float | None
    high: float | None


class MeanRecord(Ends):
    """A mean, or a mean difference, with its interval."""

    mean: float


class Estimate(Ends, total=False):
    """The value of a setting, or a gain, over so many queries."""

    value: float
    queries: Count


class PromiseRecord(Estimate, total=False):
    """The gain on queries that were not seen; `harm` is the probability that it is a loss."""

    metric: str
    harm: Share


class RefusalRecord(TypedDict):
    """Why something does not ship whatever the figures say, and what would change that."""

    reason: str
    remedy: str


class DecidedDocument(AnsweredDocument, total=False):
    """What was decided: ship, try or keep.

    `promise_stated` says whether the gain is printed; nothing beats the current one by more than `bound`;
    `replaced` says what the weights files of before held.
    """

    verdict: Annotated[str, ("enum", ("ship", "try", "keep"))]
    promise: Annotated[PromiseRecord, ("required", ("metric", "value"))] | None
    promise_stated: bool
    refusal: RefusalRecord | None
    bound: float
    labels_needed: int | None
    replaced: list[str]


class CurvePoint(TypedDict):
    """A step of a curve: the weight at its middle and at its ends, and the value."""

    weight: float
    low: NotRequired[float]
    high: NotRequired[float]
    value: float


class CurveAxis(TypedDict, total=False):
    """Along which weight a curve runs, which share the others, and where the chosen and the current one are."""

    signal: str
    others: list[str]
    chosen: float | None
    current: float | None


class CurveRecord(TypedDict):
    """The objective along the first weight that moves; empty where nothing does."""

    curve: list[CurvePoint]
    axis: CurveAxis | None


class SettingsPart(TypedDict, total=False):
    """What else than its strategy a search has that its system has not: parameters, depths, stages."""

    settings: str


class QueryRecord(TypedDict):
    """A query with the primary metric of each contender."""

    id: str
    text: NotRequired[str | None]
    category: NotRequired[str | None]
    group: NotRequired[str | None]
    values: dict[str, float | None]


class ListRecord(TypedDict):
    """The first places of a list; of our own contenders with scores and what each signal adds to them."""

    entries: list[str]
    scores: NotRequired[list[float]]
    parts: NotRequired[dict[str, list[float]]]


class ContenderLists(TypedDict):
    """The lists of a contender by query."""

    label: str
    queries: dict[str, ListRecord]


class RankingsRecord(TypedDict, total=False):
    """The lists of contenders, the most important first; grades by query and entry; the opening of each entry."""

    lists: list[ContenderLists]
    grades: dict[str, dict[str, int]]
    entries: dict[str, str]
