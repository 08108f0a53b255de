"""The document of `compare` and `recommend`, which reports read.

What `recommend` alone writes, and what it writes without labels, stands below what both have; `only` names the one
strategy that `tune` tuned.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from steelyard.fusion.progress import ProgressSummary
from steelyard_eval.common.documents.parts import (
    Count,
    CurveAxis,
    CurvePoint,
    DecidedDocument,
    Depths,
    Ends,
    Estimate,
    MeanRecord,
    QueryRecord,
    RankingsRecord,
    SettingsPart,
    Share,
)


class DatasetRecord(TypedDict):
    """The data set, with its hash, sizes and clock; `path` is None for one that is in memory alone."""

    name: str
    path: NotRequired[str | None]
    description: NotRequired[str | None]
    licence: NotRequired[str | None]
    sha256: NotRequired[str | None]
    entries: NotRequired[Count | None]
    set_apart: NotRequired[Count | None]
    as_of: NotRequired[str | None]
    queries: NotRequired[Count | None]
    judged: NotRequired[Count | None]


class NamedSystem(TypedDict, total=False):
    """The system and the profile of a contender; None of lists."""

    system: str | None
    profile: str | None


class ContenderRecord(NamedSystem, SettingsPart):
    """What was compared; lists have their source as the strategy. `empty` counts queries without any result.

    `tuned` says that it was tuned on these queries, or some of them; `edited`, that its weights were edited since.
    """

    label: Annotated[str, ("minLength", 1)]
    strategy: str
    family: NotRequired[str | None]
    kind: NotRequired[str | None]
    empty: NotRequired[Count]
    tuned: NotRequired[bool]
    edited: NotRequired[bool]


class ResultRecord(NamedSystem, MeanRecord):
    """The mean of one contender by one metric, with its interval."""

    label: str
    metric: str
    strategy: NotRequired[str | None]
    queries: NotRequired[Count | None]


class PairedRecord(Ends):
    """A paired difference, see `Paired` in steelyard_eval.measures.paired."""

    delta: float
    verdict: Annotated[str, ("enum", ("better", "worse", "no difference", "too few queries to tell"))]
    p: NotRequired[Share | None]
    p_holm: NotRequired[Share | None]
    wins: NotRequired[Count | None]
    ties: NotRequired[Count | None]
    losses: NotRequired[Count | None]
    mde: NotRequired[float | None]
    queries_needed: NotRequired[Count | None]
    why: NotRequired[str | None]


class ComparedRecord(PairedRecord):
    """The test of a challenger against the baseline; `worse` is the probability that it is worse."""

    challenger: str
    baseline: str
    metric: str
    worse: NotRequired[Share | None]


class Percentiles(TypedDict, total=False):
    """Latency in milliseconds: half of the searches took less, 95 and 99 of 100."""

    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class TimingRecord(NamedSystem, Percentiles, total=False):
    """What searching costs; in timing.json, because it differs from run to run.

    `degraded` counts searches that the embedder failed; `pareto` is of recommend: no other row beats this one in
    the metric, in time, in calls and in bytes.
    """

    label: str
    queries: Count | None
    embedding_calls: Count | None
    layers: dict[str, Percentiles]
    degraded: Count
    keyword_bytes: Count | None
    vector_bytes: Count | None
    pareto: bool


class LayersRecord(ProgressSummary):
    """How far the layered searches of a contender went."""

    label: str


class FloorPoint(TypedDict):
    """What a floor loses of the relevant entries, and the shares of questions and of words that it leaves.

    `false` is the share of questions that nothing answers for which something is shown.
    """

    floor: float
    lost: float
    answered: float
    words: float
    false: NotRequired[float]


class DroppedPart(TypedDict, total=False):
    """What a floor loses, what it saves, and what others would."""

    lost: Share
    saved: Annotated[float, ("maximum", 1)]
    curve: list[FloorPoint]


class SilenceRecord(DroppedPart):
    """What a contender shows: of what it found, and (`none` and below) of questions that nothing answers.

    `low` and `high` are the ends of the interval of the share of false answers.
    """

    label: str
    floor: NotRequired[str | None]
    queries: Count
    answered: Count
    silenced: Count
    words: float
    none: NotRequired[Count]
    false_answers: NotRequired[Count]
    low: NotRequired[Share]
    high: NotRequired[Share]
    false_words: NotRequired[float]


class StaleRecord(TypedDict):
    """How many queries show what was replaced with nothing above it that took its place; `entries` by query."""

    label: str
    queries: Count
    stale: Count
    share: Share
    low: float
    high: float
    more: Count
    fewer: Count
    entries: dict[str, list[str]]


class AgreementRecord(TypedDict):
    """How far two contenders agree: means over queries, from 0 (nothing shared) to 1."""

    one: str
    other: str
    rbo: Share
    jaccard: Share


class AgreementPart(TypedDict):
    """What is known without labels: how far each two contenders agree."""

    agreement: list[AgreementRecord]
    disagreement: float | None


class VerifiedMetric(TypedDict):
    """How far our values of a metric are from those of ir_measures, at most and where; None: not checked."""

    metric: str
    checked: bool
    largest_difference: float | None
    label: str
    query: str


class VerificationRecord(TypedDict):
    """The check of a comparison by ir_measures."""

    tool: str
    tolerance: float
    metrics: list[VerifiedMetric]


class PublicRecord(TypedDict):
    """What public collections showed of a strategy: on how many it was better, and by how much."""

    default: str
    collections: Count
    better: Count
    mean: float
    worst: float
    near: str | None


class LeaderboardRecord(ContenderRecord, MeanRecord):
    """A row of the leaderboard; `gain` is the difference to the current configuration, which has none."""

    gain: MeanRecord | None
    tuned: NotRequired[bool]
    depths: NotRequired[Depths]
    embedding_calls: NotRequired[Count | None]


class ChosenRecord(NamedSystem, total=False):
    """What was decided on; without labels it has no values. `dropped` is what one strategy that was tuned lost."""

    strategy: str
    dropped: list[str]
    depths: Depths
    in_sample: Estimate
    plateau: list[float]
    curve: list[CurvePoint]
    axis: CurveAxis | None


class CurrentRecord(NamedSystem, total=False):
    """What is used today; without labels its label is all that is known."""

    label: str
    strategy: str
    family: str | None
    kind: str | None
    depths: Depths
    in_sample: Estimate
    embedding_calls: Count | None


class RunnerUpRecord(MeanRecord):
    """The next best: `mean` is by how much the choice is ahead, `parted` whether these queries tell them apart."""

    label: str
    strategy: NotRequired[str]
    parted: bool


class TableRecord(TypedDict):
    """How many candidates a table of public collections knows, and how many queries it is worth."""

    known: Count
    worth: float


class ResultsDocument(DecidedDocument):
    """A comparison, or a recommendation, or the layered searches of a log: what `steelyard report` reads."""

    schema_version: Literal[1]
    dataset: DatasetRecord
    split: str
    limit: Annotated[int, ("minimum", 1)]
    primary: str
    configurations: list[ContenderRecord]
    results: list[ResultRecord]
    comparisons: list[ComparedRecord]
    tool: NotRequired[str]
    command: NotRequired[str | None]
    intents: NotRequired[str | None]
    dialect: NotRequired[str]
    model: NotRequired[str | None]
    recipe: NotRequired[str | None]
    notices: NotRequired[list[str]]
    baseline: NotRequired[str | None]
    metrics: NotRequired[list[str]]
    per_query: NotRequired[list[QueryRecord]]
    rankings: NotRequired[Annotated[RankingsRecord, ("required", ("lists", "grades", "entries"))] | None]
    timing: NotRequired[list[Annotated[TimingRecord, ("required", ("label",))]]]
    layers: NotRequired[list[LayersRecord]]
    silence: NotRequired[list[SilenceRecord]]
    stale: NotRequired[list[StaleRecord]]
    verification: NotRequired[VerificationRecord]
    agreement: NotRequired[list[AgreementRecord]]
    disagreement: NotRequired[float | None]
    # recommend
    public: NotRequired[PublicRecord | None]
    labelled: NotRequired[Count]
    whole: NotRequired[bool]
    model_labels: NotRequired[dict[str, object] | None]
    only: NotRequired[str]
    current: NotRequired[CurrentRecord]
    chosen: NotRequired[ChosenRecord | None]
    runner_up: NotRequired[RunnerUpRecord | None]
    leaderboard: NotRequired[list[LeaderboardRecord]]
    candidates: NotRequired[Count]
    table: NotRequired[TableRecord | None]
