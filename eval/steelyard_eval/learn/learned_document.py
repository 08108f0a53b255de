"""The JSON document of what was learned. Its shape is told in docs/feedback.md, for whoever renders it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from steelyard import __version__
from steelyard.base.arrays import Floats, Indices
from steelyard.fusion import Expr
from steelyard_eval.learn.case import LogCase, span
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.classes import fit
from steelyard_eval.learn.counts import sums
from steelyard_eval.learn.examination import examine
from steelyard_eval.learn.first_ten import CandidateLists
from steelyard_eval.learn.intent_verdicts import LEAST, combined, numbers
from steelyard_eval.learn.learned_sentence import needed, sentence
from steelyard_eval.learn.logged import of_log
from steelyard_eval.learn.rivals import rivals
from steelyard_eval.learn.verdict import Judged
from steelyard_eval.learn.views import STRENGTHS, flip, per_query, statistics, unseen
from steelyard_eval.measures.statistics import Interval, normal_interval
from steelyard_eval.tune.recommendation_sentence import named

Record = dict[str, Any]
NONE: Mapping[str, Judged] = {}


def document(case: LogCase, judged: Judged, extra: Record, intents: Mapping[str, Judged] = NONE) -> Record:
    """Everything that was learned, as JSON values; `extra` goes beside it."""
    about = judged.candidate or judged.best
    shipped = combined(case, judged, intents)
    verdict = "ship" if shipped.by_intent else judged.verdict
    picked = shipped if verdict == "ship" else case.lists.config(judged.candidate)
    chosen = None if verdict == "keep" else named(picked)
    return {
        "schema_version": 1,
        "tool": f"steelyard {__version__}",
        "kind": "learn",
        "sentence": _sentence(case, judged, intents, shipped.by_intent),
        "verdict": verdict,
        "refusal": None if judged.refusal is None else vars(judged.refusal),
        "dataset": {"name": case.space.dataset.name, "sha256": case.space.dataset.sha256},
        "current": {"label": case.label, "strategy": str(case.config.effective)},
        "chosen": None if chosen is None else {"strategy": chosen},
        "best": {"strategy": named(case.lists.config(about)), "gain": _promise(judged, about)},
        "log": {**case.log.census.to_json(), "span": span(case.log), "queries": len(judged.cells.queries)},
        "policies": [vars(policy) for policy in case.policies],
        "examination": {
            "exponent": judged.examination.exponent,
            "error": judged.examination.error if np.isfinite(judged.examination.error) else None,
            "source": judged.examination.source,
        },
        "acts": _acts(judged),
        "views": _views(judged, about),
        "labels": _labels(judged, about),
        "unseen": unseen(case.lists, judged.cells, about),
        "flip": flip(case.lists, judged.cells, judged.classes, about) if about else None,
        "queries_needed": needed(judged, about),
        "effective_queries": effective(judged.cells),
        "halves": _halves(case, about),
        "intents": _intents(case, judged, intents, about),
        "off_policy": of_log(case, about, judged.examination.exponent),
        "rivals": _rivals(case, judged),
        "candidates": len(case.lists),
        **extra,
    }


def promise(judged: Judged, candidate: int) -> Interval:
    """The gain that is expected of a candidate, with its 95% interval, on the scale of nDCG@10."""
    if judged.pooled:
        gain, error = float(judged.pooled.gain[candidate]), float(judged.pooled.error[candidate])
    else:
        gain = float(judged.views.gain[1, candidate])
        error = float(np.hypot(judged.views.error[1, candidate], judged.views.refit[1, candidate]))
    return normal_interval(gain, error)


def _promise(judged: Judged, candidate: int) -> Record:
    found = promise(judged, candidate)
    return {"metric": "nDCG@10", "value": found.mean, "low": found.low, "high": found.high}


def effective(cells: Cells) -> float:
    """How many equally frequent queries the searches are worth: (sum of shows)^2 over the sum of their squares."""
    shows = sums(cells.query, cells.shown)
    return float(shows.sum() ** 2 / max(float((shows**2).sum()), 1e-12))


def _acts(judged: Judged) -> Record:
    """How often each class is acted upon at each place, and what each kind of act is worth."""
    classes = judged.classes
    counts = judged.cells.by_kind()
    strengths = classes.strengths(judged.cells)
    return {
        "lift": classes.lift,
        "relevant": classes.relevant.sum(axis=1).tolist(),
        "other": classes.other.sum(axis=1).tolist(),
        "kinds": [{"kind": kind, "count": counts[kind], "lift": strengths[kind]} for kind in counts],
    }


def _views(judged: Judged, candidate: int) -> list[Record]:
    seen = judged.views
    return [
        {
            "imputed": strength,
            "gain": float(seen.gain[at, candidate]),
            "error": float(seen.error[at, candidate]),
            "refit_error": float(seen.refit[at, candidate]) if at else None,
        }
        for at, strength in enumerate(STRENGTHS)
    ]


def _labels(judged: Judged, candidate: int) -> Record | None:
    pooled = judged.pooled
    if pooled is None or pooled.labels is None:
        return None
    return {
        "queries": pooled.labels.queries,
        "gain": float(pooled.labels.gain[candidate]),
        "error": float(pooled.labels.error[candidate]),
        "pooled_gain": float(pooled.gain[candidate]),
        "pooled_error": float(pooled.error[candidate]),
    }


def _halves(case: LogCase, candidate: int) -> list[Record]:
    """The gain of a candidate by the earlier and the later half of the log, each learned by itself."""
    rows = []
    for name, cells in zip(("earlier", "later"), case.halves, strict=True):
        if len(cells.queries) >= LEAST and cells.positive.any():
            rows.append({"half": name, **_alone(case.lists, cells, candidate)})
    return rows


def _alone(lists: CandidateLists, cells: Cells, candidate: int) -> Record:
    exponent = examine(lists, cells).exponent
    gains = per_query(lists, cells, fit(lists, cells, exponent), candidate)
    return {"queries": len(gains), "exponent": exponent, **_mean(gains, lists.unit[cells.queries])}


def _mean(gains: Floats, unit: Indices) -> Record:
    gain, error = statistics(np.stack([np.zeros(len(gains)), gains]), unit)
    return {"gain": float(gain[1]), "error": float(error[1])}


def _intents(case: LogCase, judged: Judged, intents: Mapping[str, Judged], candidate: int) -> list[Record]:
    """The gain of a candidate on the queries of each intent, and what the intent's own queries would choose."""
    gains = per_query(case.lists, judged.cells, judged.classes, candidate)
    rows = []
    for intent, at in numbers(case, judged.cells.queries).items():
        unit = case.lists.unit[judged.cells.queries[at]]
        row = {"intent": intent, "queries": len(at), **_mean(gains[at], unit)}
        if own := intents.get(intent):
            picked = case.lists.config(own.candidate).effective
            row |= {"verdict": own.verdict, "strategy": str(picked) if own.candidate else None}
        rows.append(row)
    return rows


def _sentence(case: LogCase, judged: Judged, intents: Mapping[str, Judged], own: Mapping[str, Expr]) -> str:
    """What to do, and what to do otherwise for single intents; what ships comes first."""
    chosen = named(case.lists.config(judged.candidate)) if judged.candidate else ""
    parts = []
    for intent, strategy in own.items():
        found = intents[intent]
        gain = promise(found, found.candidate).mean
        parts.append(f"For {intent} queries use {strategy}: {gain:+.3f}, by {len(found.cells.queries)} of them.")
    whole = sentence(judged, chosen, case.label)
    if judged.verdict == "ship" or not parts:
        return " ".join([whole, *parts])
    return " ".join([*parts, f"For all others: {whole[0].lower()}{whole[1:]}"])


def _rivals(case: LogCase, judged: Judged) -> list[Record]:
    """What simpler rules would choose, and what the learner expects of it."""
    if not judged.cells.positive.any():
        return []
    found = rivals(case.lists, judged.cells, judged.examination)
    return [
        {
            "rule": rule,
            "strategy": named(case.lists.config(candidate)),
            "gain": float(judged.views.gain[1, candidate]),
        }
        for rule, candidate in found.items()
    ]
