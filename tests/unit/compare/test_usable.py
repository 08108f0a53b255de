"""What is compared: labels, and what is left of a configuration on a data set."""

import pytest

from steelyard.base.errors import ConfigError
from steelyard_eval.cli.demonstration import starter
from steelyard_eval.compare.contenders import Contender, Setting, distinct, read_strategies, read_systems, usable
from steelyard_eval.datasets import load
from steelyard_eval.recording.workspace import Workspace


@pytest.fixture(scope="module")
def without_vectors():
    return Workspace.open(load(starter()), "none")


def contenders(systems, strategies, limit, model):
    named = distinct([*read_systems(systems), *read_strategies(strategies)])
    return [Contender(one.label, one.config(Setting(limit, model)), one.kind) for one in named]


def test_labels_are_names_without_the_default_profile_and_strategies_in_full():
    found = contenders(["bm25:documented", "soleri:shipped"], ["rrf(fts,bm25)"], 7, "minilm")

    assert [row.label for row in found] == ["bm25", "soleri:shipped", "rrf(fts, bm25, k=60)"]
    assert {row.config.limit for row in found} == {7}
    assert [row.config.name for row in found] == ["bm25:documented", "soleri:shipped", "plain:documented"]


@pytest.mark.parametrize(
    ("systems", "strategies", "message"),
    [
        (["bm25", "bm25:documented"], [], "bm25 is named twice"),
        ([], ["rrf(fts, bm25)", "rrf(fts,bm25,k=60)"], "is named twice"),
        ([], [], "there is nothing to compare"),
        (["bm52", "vectr"], [], "'bm52'.*'bm25'.*'vectr'.*'vector'"),
    ],
)
def test_what_cannot_be_compared_is_told(systems, strategies, message):
    with pytest.raises(ConfigError, match=message):
        contenders(systems, strategies, 10, "minilm")


def test_what_a_data_set_cannot_give_is_left_out_and_told(without_vectors):
    [row] = contenders([], ["weighted_sum(0.3*bm25, 0.7*vector, normalize=max)"], 10, "")

    left, notices = usable(without_vectors, row)

    assert str(left.config.strategy) == "weighted_sum(0.3*bm25, normalize=max)"
    assert left.label == row.label
    assert "without vector, which starter cannot supply (embedder: none)" in notices[0]


def test_a_configuration_of_which_nothing_is_left_is_refused(without_vectors):
    [row] = contenders(["vector"], [], 10, "")

    with pytest.raises(ConfigError, match="vector needs vector, which starter cannot supply"):
        usable(without_vectors, row)
