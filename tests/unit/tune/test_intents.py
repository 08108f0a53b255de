"""Weights by intent, pulled to those of all queries."""

import numpy as np
import pytest

from steelyard.fusion import parse_strategy
from steelyard_eval.cli.demonstration import starter
from steelyard_eval.datasets import load
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.tune.candidate import Candidate
from steelyard_eval.tune.intent_weights import M
from steelyard_eval.tune.task import prepare
from steelyard_eval.weights.exact.optimise import movable, optimise
from steelyard_eval.weights.kernel import Form

SUM = "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"


@pytest.fixture(scope="module")
def task():
    dataset = load(starter(), "given")
    strategy = f"by_intent(default={SUM}, fix_bug={SUM}, security_audit={SUM})"
    return prepare(dataset, "plain", strategy, "nDCG@10", None, "auto", 0, Workspace.open(dataset))


def test_an_intent_is_pulled_to_all_queries_by_how_few_it_has(task):
    queries = np.ones(len(task.table.queries), dtype=bool)
    intents = [query.intent for query in task.queries]
    form = Form.of(task.table, task.config, task.config.strategy, task.judgments)
    own = optimise(form, task.measure, form.weights, 0, queries)
    common = Form.of(task.table, task.config, parse_strategy(SUM), task.judgments)
    together = optimise(common, task.measure, common.weights, 0, queries).weights

    found = Candidate(task.config, form, task.measure).search(queries, 0)

    counts = [sum(i not in ("fix_bug", "security_audit") for i in intents)]
    counts += [intents.count("fix_bug"), intents.count("security_audit")]
    for branch, n in zip(movable(form), counts, strict=True):
        expected = (n * own.weights[branch] + M * together) / (n + M)
        assert found.weights[branch] == pytest.approx(expected, abs=1e-9)
    assert found.certificate == "best-found"


def test_an_intent_without_a_label_takes_the_weights_of_all(task):
    queries = np.array([query.intent != "fix_bug" for query in task.queries])
    form = Form.of(task.table, task.config, task.config.strategy, task.judgments)
    common = Form.of(task.table, task.config, parse_strategy(SUM), task.judgments)

    found = Candidate(task.config, form, task.measure).search(queries, 0)

    together = optimise(common, task.measure, common.weights, 0, queries).weights
    assert found.weights[movable(form)[1]] == pytest.approx(together, abs=1e-9)


def test_strategies_that_weigh_other_signals_are_left_alone(task):
    text = f"by_intent(default={SUM}, fix_bug=weighted_sum(0.5*vector, 0.5*bm25, normalize=minmax))"
    form = Form.of(task.table, task.config, parse_strategy(text), task.judgments)
    queries = np.ones(len(task.table.queries), dtype=bool)
    config = task.config.with_strategy(parse_strategy(text))

    found = Candidate(config, form, task.measure).search(queries, 0)

    assert found.weights.tolist() == optimise(form, task.measure, form.weights, 0, queries).weights.tolist()
