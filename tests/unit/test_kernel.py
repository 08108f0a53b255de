"""The kernel of search: forms against the engine's plans, its values against replay and pytrec_eval."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.config import RetrieverConfig, SearchConfig
from steelyard.errors import ConfigError, DataError
from steelyard.finish import Cut
from steelyard.fusion import fuse, parse_strategy
from steelyard.table import RETRIEVERS
from steelyard.testing import random_table
from steelyard_eval.kernel import Form
from steelyard_eval.metrics import Judgments

STRATEGIES = (
    "fts",
    *(
        f"weighted_sum(0.3*fts, 0.7*vector, normalize={name})"
        for name in ("none", "max", "minmax", "zscore", "rank")
    ),
    "weighted_sum(0.2*tfidf, 0.2*cosine, 0.15*severity, 0.2*recency(half_life=90d), 0.15*tags, 0.1*domain)",
    "weighted_sum(1*rrf(vector, fts, k=60), 0.2*recency(half_life=69h), 0.1*importance)",
    "rrf(vector, 2*fts, 0.5*bm25, k=10)",
    *(f"rrf(vector, fts, 1.5*bm25, k=60, bonus={bonus})" for bonus in ("times(0.1)", "once(0.1)", "each(0.1)")),
    "tiered(fts, min_results=5, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))",
    "tiered(fts, min_results=4, then=tiered(vector, min_results=6, then=rrf(fts, vector, bm25)))",
    "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=1.5, relax=[1])",
    "by_intent(default=rrf(fts, vector), fix=weighted_sum(1*fts, 0.5*recency), learn=vector)",
)


def configured(text, limit=10, depth=None):
    """A configuration of the strategy, every retriever to one depth."""
    depths = {name: RetrieverConfig(depth=depth) for name in RETRIEVERS}
    finish = () if limit is None else (Cut(limit),)
    return SearchConfig("plain", "documented", limit or 10, parse_strategy(text), depths, finish)


def judged(table, rng, share=0.25):
    """Random qrels: some relevant entries of each query, some irrelevant, some that the corpus lacks."""
    qrels = {}
    for query in table.queries:
        row = {id_: int(rng.integers(0, 4)) for id_ in table.entries if rng.random() < share}
        qrels[query] = {**row, "lost": int(rng.integers(0, 3))}
    return qrels


def case(seed, *, ties=True, **sizes):
    """A random table with qrels and judgments."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, ties=ties, **sizes)
    qrels = judged(table, rng)
    return table, qrels, Judgments.of(qrels, table.queries, table.entries)


@pytest.mark.parametrize("text", STRATEGIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_form_scores_the_rows_that_the_strategy_ranks_as_the_engine_does(text, seed):
    table, _, judgments = case(seed)
    config = configured(text, depth=9)

    form = Form.of(table, config, config.strategy, judgments)

    scores = fuse(table.at_depth(config.depths), config.strategy)
    rows = np.flatnonzero(~np.isnan(scores))
    np.testing.assert_allclose(form.scores(form.weights), scores[rows], rtol=0, atol=1e-12)
    assert np.diff(form.offsets).tolist() == np.bincount(table.query[rows], minlength=len(table.queries)).tolist()


@given(seed=st.integers(0, 2**32 - 1))
def test_a_form_knows_the_relevant_rows_of_the_qrels(seed):
    table, qrels, judgments = case(seed)
    config = configured("fts")

    form = Form.of(table, config, config.strategy, judgments)

    rows = np.flatnonzero(~np.isnan(table.columns["fts"]))
    grades = [qrels[table.queries[table.query[row]]].get(table.entries[table.entry[row]], 0) for row in rows]
    relevant = [at for at, grade in enumerate(grades) if grade >= 1]
    assert form.relevant.tolist() == relevant
    assert form.grade.tolist() == [grades[at] for at in relevant]
    owners = np.repeat(np.arange(form.queries), np.diff(form.relevant_offsets))
    assert owners.tolist() == [table.query[rows[at]] for at in relevant]
    assert form.total_relevant.tolist() == [sum(g >= 1 for g in qrels[q].values()) for q in table.queries]


def test_the_tiers_of_a_form_are_branches_of_their_own():
    table, _, judgments = case(3)
    config = configured("tiered(fts, min_results=5, then=rrf(fts, 2*vector, bonus=times(0.5)))")

    form = Form.of(table, config, config.strategy, judgments)

    assert form.labels == ("fts", "fts", "vector")
    assert form.branch.tolist() == [0, 1, 1]
    assert form.weights.tolist() == [1.0, 1.0, 2.0]
    assert not (np.any(form.columns[:1], axis=0) & np.any(form.columns[1:], axis=0)).any()


def test_a_form_that_ranks_nothing_has_no_rows():
    table, _, judgments = case(3)
    empty = replace(table, columns={**table.columns, "fts": np.full(len(table), np.nan)})
    config = configured("tiered(fts, min_results=0, then=vector)")

    form = Form.of(empty, config, config.strategy, judgments)

    assert (len(form), form.columns.shape, form.offsets.tolist()) == (0, (0, 0), [0] * (len(table.queries) + 1))


def test_queries_without_judgments_are_refused():
    table, qrels, _ = case(3)
    del qrels["q1"]
    config = configured("fts")

    with pytest.raises(DataError, match="query 'q1' and 0 others have no judgments"):
        Form.of(table, config, config.strategy, Judgments.of(qrels, table.queries, table.entries))


def test_a_form_keeps_the_first_of_several_cuts_and_refuses_other_stages():
    table, _, judgments = case(3)
    config = configured("fts")

    cut = Form.of(table, replace(config, finish=(Cut(8), Cut(3), Cut(5))), config.strategy, judgments)

    assert cut.limit == 3
    assert Form.of(table, replace(config, finish=()), config.strategy, judgments).limit is None
    with pytest.raises(ConfigError, match="is no cut"):
        Form.of(table, replace(config, finish=(lambda table, ranking: ranking,)), config.strategy, judgments)
