"""Labels that were given twice: where they stand, and how far both agree."""

import shutil

import pytest
from sklearn.metrics import cohen_kappa_score

from steelyard.base.errors import DataError
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.datasets.second_labels import judged_twice


def test_second_labels_stand_beside_the_first_and_agreement_is_that_of_scikit_learn(tmp_path):
    shutil.copytree(starter(), tmp_path, ignore=shutil.ignore_patterns(".steelyard"), dirs_exist_ok=True)
    dataset = load(tmp_path)
    assert judged_twice(dataset).key == "judged_once"
    pairs = [(query, entry) for query, row in sorted(dataset.qrels.items()) for entry in row][:40]
    graded = {pair: (dataset.qrels[pair[0]][pair[1]] + at % 3) % 4 for at, pair in enumerate(pairs)}
    lines = [f"{query} 0 {entry} {grade}\n" for (query, entry), grade in graded.items()]
    (tmp_path / "second-labels.txt").write_text("".join(lines))
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
