"""The document of `gate`."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from steelyard_eval.common.documents.parts import AnsweredDocument, Count, Ends, SettingsPart, Share


class GatedDataset(TypedDict):
    """The data set that was gated."""

    name: str
    entries: NotRequired[Count]


class FindingRecord(TypedDict):
    """What was found; of a mismatch `digests` has what differs: part -> before and now -> hash."""

    kind: str
    verdict: str
    text: str
    contender: NotRequired[str | None]
    digests: NotRequired[dict[str, dict[str, str]]]


class GatedMetric(TypedDict):
    """The mean of a metric in the baseline, now and in the anchor."""

    metric: NotRequired[str]
    before: float
    now: float
    delta: NotRequired[float]
    anchor: NotRequired[float]


class AgainstRecord(Ends):
    """The rule on the differences of nDCG@10 to the baseline or the anchor, see steelyard_eval.gate.rule."""

    name: str
    date: NotRequired[str | None]
    verdict: str
    reason: NotRequired[str]
    delta: float
    worse: NotRequired[Share | None]
    composite: NotRequired[float]
    p_worse: NotRequired[float | None]
    p_better: NotRequired[float]
    p_ndcg: NotRequired[float]
    upper: NotRequired[float | None]
    limit: NotRequired[float | None]


class SliceRecord(TypedDict):
    """The change of nDCG@10 of a category or an intent; `p` is None of too few, `worse`: it fell beyond doubt."""

    field: str
    value: str
    queries: Count
    delta: float
    p: NotRequired[float | None]
    p_adjusted: NotRequired[float | None]
    worse: bool


class BrokenPromise(TypedDict):
    """How many entries of a list break a promise that no list of the baseline broke."""

    promise: str
    query: str
    entries: Count


class LostQuery(TypedDict):
    """A query that lost nDCG@10, with both rankings."""

    id: str
    text: NotRequired[str | None]
    before: float
    now: float
    delta: NotRequired[float]
    list_before: list[str]
    list_now: list[str]


class PowerRecord(TypedDict):
    """How far the gate can be trusted on one contender: the shares blocked of drops and of what is as good."""

    drop: NotRequired[float]
    caught: float
    asleep: bool
    false_alarms: NotRequired[float]


class GatedConfiguration(SettingsPart):
    """What a contender is; lists have neither system nor limit."""

    label: str
    kind: NotRequired[str]
    system: NotRequired[str | None]
    profile: NotRequired[str | None]
    strategy: NotRequired[str | None]
    limit: NotRequired[int | None]


class GatedRecord(GatedConfiguration):
    """A contender beside its baseline."""

    strategy_before: NotRequired[str]
    settings_before: NotRequired[str | None]
    check: NotRequired[str]
    verdict: str
    reason: NotRequired[str]
    text: str
    queries: Count
    units: NotRequired[Count]
    deep: NotRequired[bool]
    touched: NotRequired[float]
    lists_changed: Count
    scores_changed: NotRequired[Count]
    metrics: Annotated[list[GatedMetric], ("minItems", 1)]
    against: Annotated[list[AgainstRecord], ("minItems", 1)]
    slices: list[SliceRecord]
    broken: NotRequired[list[BrokenPromise]]
    worst: list[LostQuery]
    notices: NotRequired[list[str]]
    power: PowerRecord


class GatePower(TypedDict):
    """The share of drops of this size that the gate catches at least, and the contenders it hardly watches."""

    drop: float
    least: float
    asleep: list[str]


class BaselineRecord(TypedDict):
    """The baseline: its file, when, why and with what it was written, and what it was measured on."""

    path: str
    date: str
    because: NotRequired[str]
    tool: str
    hashes: NotRequired[dict[str, str]]


class GateHead(TypedDict):
    """What was gated: the data set, the baseline, and the settings."""

    schema_version: Literal[1]
    kind: Literal["gate"]
    tool: str
    dataset: GatedDataset
    baseline: BaselineRecord
    split: NotRequired[str | None]
    intents: NotRequired[str | None]
    dialect: NotRequired[str]
    budget: NotRequired[float | None]
    rebaseline: NotRequired[str | None]


class TrustPart(TypedDict, total=False):
    """The gate's own error rates, those of the worst contender."""

    false_alarm_rate: float | None
    power: GatePower | None


class GateDocument(AnsweredDocument, GateHead, TrustPart):
    """Did search get worse? The verdict, every contender, and how far to trust the gate itself."""

    verdict: Annotated[str, ("enum", ("pass", "fail", "inconclusive", "mismatch"))]
    findings: list[FindingRecord]
    contenders: list[GatedRecord]
    notices: list[str]
    check: NotRequired[str | None]
