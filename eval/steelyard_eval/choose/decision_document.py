"""The part of a document that is the decision."""

from __future__ import annotations

from steelyard_eval.choose.rule import Decision
from steelyard_eval.common.documents.parts import DecidedDocument, RefusalRecord
from steelyard_eval.decide.provenance import promised
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Blocker, Said


def told(blocker: Blocker) -> RefusalRecord:
    """A blocker, for a document."""
    return {"reason": say(blocker), "remedy": say(Said(blocker.remedy, blocker.facts))}


def decided(decision: Decision, metric: str, queries: int, stated: bool) -> DecidedDocument:
    """The part of a document that is the decision; `stated` says whether its gain is printed."""
    return {
        "verdict": decision.verdict,
        "promise": promised(decision.gain, metric, queries),
        "promise_stated": stated,
        "refusal": None if decision.blocker is None else told(decision.blocker),
        "bound": decision.bound,
        "labels_needed": decision.more,
    }
