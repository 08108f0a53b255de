"""Labelled pairs that are asked again: what is asked, what is written, and how far both agree."""

import shutil

from command_line import document, run

from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.datasets.second_labels import judged_twice


def test_ten_labelled_pairs_are_asked_again_and_stand_beside_the_first_labels(tmp_path):
    """By hand: of ten pairs with grades that one key repeats, those of grade 2 agree."""
    folder = tmp_path / "mine"
    shutil.copytree(starter(), folder, ignore=shutil.ignore_patterns(".steelyard"))
    first = load(folder).qrels
    words = ("judge", folder, "--second-judge-of", "labels", "--judge", "again")
    run(*words, typed="2" * 12)
    written = document(*words, "--apply")
    second = load(folder).second
    pairs = {(query, entry): grade for query, row in second.items() for entry, grade in row.items()}
    assert (written["added"], len(pairs), set(pairs.values())) == (10, 10, {2})
    assert load(folder).qrels == first
    equal = sum(first[query][entry] == 2 for query, entry in pairs)
    told = judged_twice(load(folder))
    assert (told.key, told.facts["count"], told.facts["equal"]) == ("judged_twice", 10, equal / 10)
