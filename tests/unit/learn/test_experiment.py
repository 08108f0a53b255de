"""Rankings that take turns: how many searches tell them apart, and what `learn` does once they did."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from made_world import made

from steelyard.config.search_config import policy_of, ranking_of
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.datasets.starter import starter
from steelyard_eval.learn.acts import KINDS
from steelyard_eval.learn.cells import Cells
from steelyard_eval.learn.experiment import experiment
from steelyard_eval.learn.first_ten import PLACES
from steelyard_eval.learn.gains import ClickGains
from steelyard_eval.workbench import load


def test_two_entries_exchanged_are_what_coins_and_rates_make_of_them():
    """One relevant entry, first by the candidate and second today, acted upon in 1/2 of looks at the first place
    and 1/4 at the second; the other entry never is. A coin decides who drafts first, and so where it stands: wins
    1/2 * 1/2 + 1/2 * 1/4 = 3/8, no losses. At a share of 1 the test of one proportion needs (1.96 * 0.5 / 0.5)^2 =
    3.84, so 4 decided searches. Of 20,000 searches the share has a standard error of .0034; 4 of them are .014."""
    pairs = made()[0].pairs
    cells = Cells(np.array([0]), np.array([0]), np.ones(1), np.ones((1, len(KINDS))), np.array([0]))
    fitted = ClickGains.of(pairs, cells)
    rates = np.zeros((PLACES, len(KINDS)))
    rates[:2, KINDS.index("clicked")] = 0.5, 0.25
    relevance = np.zeros(pairs.rows)
    relevance[1] = 1.0
    classes = replace(fitted.classes, relevance=relevance, prior=relevance, relevant=rates, other=0 * rates)
    known = replace(fitted, classes=classes)
    known.__dict__["shown"] = np.ones(pairs.rows, dtype=bool)
    top = np.full((2, len(pairs.queries), PLACES), -1)
    top[0, 0, :2], top[1, 0, :2] = (0, 1), (1, 0)

    found = experiment(known, top)

    assert (found["wins"], found["losses"]) == (pytest.approx(3 / 8, abs=0.014), 0.0)
    assert found["searches"] == -(-4 // found["wins"])


OTHER = "weighted_sum(0.3*bm25, 0.67*vector, 0.03*graph, normalize=minmax)"
"""About what acts suggest on the starter set."""
TURNS = 200
"""Searches in which it took turns, where it lost."""


@pytest.fixture(scope="module")
def data():
    return load(starter())


@pytest.mark.parametrize("won", [True, False])
def test_a_ranking_that_won_is_worth_a_try_and_one_that_lost_is_not(tmp_path, data, won):
    other = find_system("plain").config(10).with_strategy(parse_strategy(OTHER))
    log = tmp_path / "feedback.jsonl"
    with gzip.open(starter() / "feedback.jsonl.gz", "rt") as stream, log.open("w") as out:
        out.write(
            json.dumps({"schema_version": 1, "policy": policy_of(other), "configuration": ranking_of(other)})
        )
        for at, text in enumerate(stream):
            turned = at < TURNS or won  # where it lost, all other searches speak for it
            out.write(
                "\n" + (json.dumps(drafted(json.loads(text), policy_of(other), won)) if turned else text.strip())
            )

    found = data.learn(log, labels=False)

    (duel,) = (row for row in found.record["interleaved"] if row["other"] == policy_of(other))
    assert duel["p"] < 0.05
    assert duel["preferred"] == float(won)
    if won:
        assert found.record["verdict"] == "try"
        assert found.record["sentence"].startswith("Try: taking turns with what you use today it won 100%")
        assert len(found.record["sentence"]) <= 200
        assert found.attempt.strategy == other.strategy
    else:
        assert found.record["verdict"] == "keep"


def drafted(record, other, won):
    """An impression as if the other ranking had placed every second entry, the winner's alone acted upon."""
    if "hits" not in record:
        return record
    teams = {hit["object_id"]: other if hit["position"] % 2 else record["policy"] for hit in record["hits"]}
    hits = [{**hit, "interleaved": teams[hit["object_id"]]} for hit in record["hits"]]
    kept = [act for act in record["actions"] if (teams.get(act.get("object_id")) == other) == won]
    return {**record, "hits": hits, "actions": kept}
