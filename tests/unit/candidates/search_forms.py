"""Forms for the tests of the search over weights, and the slow, plain way to evaluate them."""

import numpy as np
from hypothesis import strategies as st

from steelyard_eval.candidates.linear_form import Form
from steelyard_eval.measures.metrics import Judgments, evaluate, parse_measures

MEASURES = ("nDCG@3", "nDCG", "R@2", "P@3", "RR@3", "RR", "Success@2", "AP@4", "RecallAll@3")


def form_of(columns, grades, sizes, extra=(), limit=None):
    """A form of queries with `sizes` rows; `grades` int[N] of the rows; `extra` grades that no list holds."""
    columns = np.array(columns, dtype=np.float64)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    entries = [f"e{at:04d}" for at in range(max([*sizes, 1]))]
    names = [f"q{at}" for at in range(len(sizes))]
    qrels = {}
    for q, name in enumerate(names):
        own = grades[offsets[q] : offsets[q + 1]]
        qrels[name] = {entries[at]: int(grade) for at, grade in enumerate(own)}
        qrels[name] |= {f"lost{at}": grade for at, grade in enumerate(extra)} | {"judged": 0}
    relevant = np.flatnonzero(np.asarray(grades) > 0).astype(np.int64)
    size = len(columns)
    return Form(
        offsets=offsets,
        columns=columns,
        labels=tuple(f"c{at}" for at in range(size)),
        branch=np.zeros(size, np.int64),
        weights=np.full(size, 1 / size),
        relevant=relevant,
        relevant_offsets=np.searchsorted(relevant, offsets).astype(np.int64),
        grade=np.asarray(grades, dtype=np.float64)[relevant],
        judgments=Judgments.of(qrels, names, entries),
        limit=limit,
    )


def measure(name):
    return parse_measures([name])[0]


def directly(form, name, weights):
    """float64[Q]: sort every query's rows and ask `metrics.evaluate`, as replay does."""
    scores = form.scores(np.asarray(weights, dtype=np.float64))
    entry = []
    for a, b in zip(form.offsets[:-1], form.offsets[1:], strict=True):
        entry += np.argsort(-scores[a:b], kind="stable").tolist()[: form.limit]
    kept = np.minimum(np.diff(form.offsets), form.limit if form.limit is not None else len(form))
    offsets = np.concatenate(([0], np.cumsum(kept)))
    asked = measure(name)
    return evaluate(offsets, np.array(entry, dtype=np.int64), form.judgments, [asked])[asked]


def random_form(rng, columns=2, queries=4, rows=9, *, levels=None, limit=None):
    """Uniform scores, or `levels` many different ones, which tie a lot."""
    sizes = rng.integers(0, rows + 1, queries)
    made = rng.random((columns, sizes.sum()))
    if levels is not None:
        made = np.floor(made * levels) / 8
    grades = np.where(rng.random(sizes.sum()) < 0.35, rng.integers(1, 4, sizes.sum()), 0)
    return form_of(made, grades, sizes, extra=rng.integers(1, 3, rng.integers(0, 2)).tolist(), limit=limit)


@st.composite
def drawn_forms(draw, columns=2):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = draw(st.sampled_from([None, None, 3, 9]))
    limit = draw(st.sampled_from([None, None, 2]))
    queries, rows = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    return random_form(rng, columns, queries, rows, levels=levels, limit=limit)
