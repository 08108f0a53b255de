"""The part of a document that is the decision."""

from __future__ import annotations

from steelyard_eval.choose.blockers import Refusal
from steelyard_eval.choose.rule import Decision
from steelyard_eval.common.documents.parts import DecidedDocument, RefusalRecord
from steelyard_eval.decide.provenance import promised


def told(refusal: Refusal) -> RefusalRecord:
    """A refusal, for a document."""
    return {"reason": refusal.reason, "remedy": refusal.remedy}


def decided(decision: Decision, metric: str, queries: int, stated: bool) -> DecidedDocument:
    """The part of a document that is the decision; `stated` says whether its gain is printed."""
    return {
        "verdict": decision.verdict,
        "promise": promised(decision.gain, metric, queries),
        "promise_stated": stated,
        "refusal": None if decision.refusal is None else told(decision.refusal),
        "bound": decision.bound,
        "labels_needed": decision.more,
    }
