"""Labels that were given twice: which are asked again, where they stand, and how far both agree."""

import shutil
from dataclasses import replace

import pytest
from sklearn.metrics import cohen_kappa_score

from steelyard.base.errors import DataError
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.datasets.second_labels import judged_twice, keep_second, to_ask_again


def test_ten_pairs_are_asked_again_half_of_them_relevant_and_none_twice():
    dataset = load(starter())
    pairs = to_ask_again(dataset)
    assert len(set(pairs)) == 10
    assert sum(dataset.qrels[query][entry] > 0 for query, entry in pairs) >= 5
    again = replace(dataset, second={query: {entry: 1} for query, entry in pairs})
    assert not set(to_ask_again(again)) & set(pairs)
    assert to_ask_again(replace(dataset, qrels={"q": {"a": 0}})) == [("q", "a")]


def test_second_labels_stand_beside_the_first_and_agreement_is_that_of_scikit_learn(tmp_path):
    shutil.copytree(starter(), tmp_path, ignore=shutil.ignore_patterns(".steelyard"), dirs_exist_ok=True)
    dataset = load(tmp_path)
    assert judged_twice(dataset).key == "judged_once"
    pairs = to_ask_again(dataset, 40)
    graded = {pair: (dataset.qrels[pair[0]][pair[1]] + at % 3) % 4 for at, pair in enumerate(pairs)}
    keep_second(dataset, dict(list(graded.items())[:5]))
    keep_second(load(tmp_path), dict(list(graded.items())[5:]))

    found = load(tmp_path)
    assert (found.sha256, found.qrels) == (dataset.sha256, dataset.qrels)  # they decide nothing
    said = judged_twice(found)
    first = [dataset.qrels[query][entry] for query, entry in graded]
    kappa = cohen_kappa_score(first, list(graded.values()), weights="quadratic")
    assert (said.key, said.facts["count"], said.facts["low"]) == ("judged_twice", 40, kappa < 0.6)
    assert (said.facts["equal"], said.facts["kappa"]) == pytest.approx((14 / 40, kappa))

    (tmp_path / "second-labels.txt").write_text("nobody 0 nothing 1\n")
    with pytest.raises(DataError, match="second-labels"):
        load(tmp_path)
