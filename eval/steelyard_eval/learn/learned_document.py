"""The JSON document of what was learned. Its shape is told in docs/feedback.md, for whoever renders it."""

from __future__ import annotations

import numpy as np

from steelyard import __version__
from steelyard.base.arrays import Ints
from steelyard_eval.choose.rule import Ruling
from steelyard_eval.common.documents.learn import (
    ActsRecord,
    ClientsRecord,
    CloselyRecord,
    LabelsRecord,
    LearnDocument,
    LearnedStrategy,
    PieceRecord,
    ViewRecord,
)
from steelyard_eval.common.documents.parts import DecidedDocument, RefusalRecord
from steelyard_eval.decide.provenance import promised
from steelyard_eval.decide.wording import named
from steelyard_eval.learn.case import LogCase, span
from steelyard_eval.learn.decided import LogDecision
from steelyard_eval.learn.follows import follows
from steelyard_eval.learn.gains import STRENGTHS
from steelyard_eval.learn.learned_sentence import answer, contradiction, evidence, unlisted
from steelyard_eval.learn.tally import sums
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Blocker, Said

MOST_DUELS = 4
"""Interleaved rankings that are told of, all of them together being one."""


def document(decision: LogDecision, rule: str) -> LearnDocument:
    """Everything that was learned, as JSON values; `rule` is how weights were chosen."""
    case, learned = decision.case, decision.case.learned
    about = decision.candidate if decision.candidate is not None else decision.favourite
    lists = None if about is None or case.listless else decision.both(about)
    chosen: LearnedStrategy | None = None if decision.offered is None else {"strategy": named(decision.offered)}
    best: LearnedStrategy = {"strategy": named(case.config if about is None else decision.config(about))}
    cause = follows(case.pairs, case.cells, case.space.dataset.qrels)
    closely = _closely(decision, lists)
    record: LearnDocument = {
        "schema_version": 1,
        "tool": f"steelyard {__version__}",
        "kind": "learn",
        "rule": rule,
        "evidence": evidence(decision),
        "warning": contradiction(decision, cause),
        "dataset": {"name": case.space.dataset.name, "sha256": case.space.dataset.sha256},
        "current": {"label": case.label, "strategy": str(case.config.effective)},
        "chosen": chosen,
        "best": best,
        "log": {**case.log.census.to_json(), "span": span(case.log), "queries": len(case.cells.queries)},
        "clients": _clients(case),
        "policies": case.policies,
        "examination": {
            "exponent": learned.examination.exponent,
            "error": learned.examination.error if np.isfinite(learned.examination.error) else None,
            "source": learned.examination.source,
            "text": learned.examination.in_words(case.log.census.to_json()["acts"]),
        },
        "acts": _acts(case),
        "follows": [effect.to_json() for effect in cause],
        "labels": _labels(decision, about),
        "candidates": len(decision.layout.grid),
        "interleaved": [duel.to_json() for duel in case.duels[:MOST_DUELS]],
        "views": closely["views"],
        "pieces": closely["pieces"],
        "unseen": closely["unseen"],
        "flip": closely["flip"],
        "effective_queries": closely["effective_queries"],
    }
    said, outcome = answer(decision).to_json(), _decided(decision)
    return {**record, **said, **outcome, "verdict": decision.verdict, "refusal": _refusal(decision)}


def _refusal(decision: LogDecision) -> RefusalRecord | None:
    blocker = None if decision.recommended is None else decision.recommended.decision.blocker
    if decision.case.listless and decision.recommended is None:
        refusal = unlisted(decision.case)
        return {"reason": refusal.reason, "remedy": refusal.remedy}
    return None if blocker is None else told(blocker)


def _decided(decision: LogDecision) -> DecidedDocument:
    """The promise and the bound, where labels decide."""
    case = decision.recommended
    if case is None:
        return {"promise": None, "promise_stated": False}
    return decided(case.decision, str(case.metric), len(case.queries), case.stated)


def _clients(case: LogCase) -> ClientsRecord:
    """How many searched, and what the largest one has of the searches."""
    counts = case.log.clients.searches
    largest = max(counts.values(), default=0)
    return {"count": len(counts), "largest": largest / max(sum(counts.values()), 1)}


def _acts(case: LogCase) -> ActsRecord:
    """How often each class is acted upon at each place, and what each kind of act is worth."""
    classes = case.learned.classes
    counts = case.cells.by_kind()
    strengths = classes.strengths(case.cells)
    return {
        "lift": classes.lift,
        "relevant": classes.relevant.sum(axis=1).tolist(),
        "other": classes.other.sum(axis=1).tolist(),
        "kinds": [{"kind": kind, "count": counts[kind], "lift": strengths[kind]} for kind in counts],
    }


def _labels(decision: LogDecision, about: int | None) -> LabelsRecord | None:
    """What labels alone, acts alone and both say of a candidate; None where too few labels decide nothing."""
    case = decision.recommended
    if case is None or about is None:
        return None
    alone, both = case.scored_with(None).of_metric, case.scored.of_metric
    return {
        "queries": len(case.queries),
        "logged": len(decision.logged),
        "others": decision.others,
        "share": decision.share,
        "worth": decision.worth,
        "gain": float(alone.mean[about]),
        "error": float(alone.deviation[about]),
        "both_gain": float(both.mean[about]),
        "both_error": float(both.deviation[about]),
    }


def _closely(decision: LogDecision, lists: Ints | None) -> CloselyRecord:
    """One candidate closely: its gain by the acts in every view, and by parts of the log."""
    if lists is None:
        return {
            "views": [],
            "pieces": [],
            "unseen": 0.0,
            "flip": None,
            "effective_queries": 0.0,
        }
    case, learned = decision.case, decision.learned
    seen = learned.views(lists)
    rows: list[ViewRecord] = [
        {
            "imputed": strength,
            "gain": float(seen.gain[view]),
            "error": float(seen.error[view]),
            "refit_error": float(seen.refit[view]) if view else None,
        }
        for view, strength in enumerate(STRENGTHS)
    ]
    parts = [_part(decision, name, lists) for name in case.parts]
    return {
        "views": rows,
        "pieces": [part for part in parts if part is not None],
        "unseen": learned.unseen(lists[1]),
        "flip": learned.flip(lists),
        "effective_queries": _effective(case),
    }


def _part(decision: LogDecision, name: str, lists: Ints) -> PieceRecord | None:
    cells = decision.case.parts[name].on(decision.sampled)
    gain, error = decision.learned.without(cells, lists)
    return (
        {"part": name, "queries": len(cells.queries), "gain": gain, "error": error} if np.isfinite(gain) else None
    )


def _effective(case: LogCase) -> float:
    """How many equally frequent queries the searches are worth: (sum of shows)^2 over the sum of their squares."""
    shows = sums(case.cells.query, case.cells.shown)
    return float(shows.sum() ** 2 / max(float((shows**2).sum()), 1e-12))


def told(blocker: Blocker) -> RefusalRecord:
    """A blocker, for a document."""
    return {"reason": say(blocker), "remedy": say(Said(blocker.remedy, blocker.facts))}


def decided(decision: Ruling, metric: str, queries: int, stated: bool) -> DecidedDocument:
    """The part of a document that is the decision; `stated` says whether its gain is printed."""
    return {
        "verdict": decision.verdict,
        "promise": promised(decision.gain, metric, queries),
        "promise_stated": stated,
        "refusal": None if decision.blocker is None else told(decision.blocker),
        "bound": decision.bound,
        "labels_needed": decision.more,
    }
