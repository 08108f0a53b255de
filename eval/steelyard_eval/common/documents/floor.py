"""The document of `floor`; docs/floor.md tells what is promised."""

from __future__ import annotations

from typing import Literal, TypedDict

from steelyard_eval.common.documents.parts import DecidedDocument
from steelyard_eval.common.documents.results import FloorPoint


class ClaimRecord(TypedDict):
    """One promise: `lost` or `false` at most this share; what was measured, and the bound that keeps it."""

    name: str
    share: float
    measured: float
    bound: float
    queries: int
    units: int
    floor: float | None


class QuestionsRecord(TypedDict):
    """A kind of question: how many are answered, with the interval of their share; what is left of their lists."""

    questions: str
    count: int
    answered: float
    low: float
    high: float
    hits: float
    words: float


class FloorDocument(DecidedDocument):
    """The score below which nothing is shown; `floor` is None where none keeps what was promised."""

    kind: Literal["floor"]
    label: str
    strategy: str
    floor: float | None
    on: str
    sure: float
    claims: list[ClaimRecord]
    questions: list[QuestionsRecord]
    curve: list[FloorPoint]
    dataset: dict[str, object]
