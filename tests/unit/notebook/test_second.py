"""Labelled pairs that are asked again: what is asked, what is written, and how far both agree."""

import json
import shutil

from shared import STARTER, document, run, write_set

from steelyard_eval.datasets import load
from steelyard_eval.datasets.second_labels import judged_twice


def test_ten_labelled_pairs_are_asked_again_and_stand_beside_the_first_labels(tmp_path):
    """By hand: of ten pairs with grades that one key repeats, those of grade 2 agree."""
    folder = tmp_path / "mine"
    shutil.copytree(STARTER, folder, ignore=shutil.ignore_patterns(".steelyard"))
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


def test_what_was_left_can_be_labelled_when_nothing_else_is_open(tmp_path):
    """Two keys leave both queries; the third opens them again, goes back one query and labels its first entry."""
    folder = write_set(tmp_path / "mine", ["the red fox", "the blue whale"], ["red fox", "blue whale"])
    words = ("judge", folder, "bm25")
    run(*words, typed="ll")
    assert document(*words, "--list")["next"] == []
    run(*words, typed="h2q")
    lines = (folder / "judgments" / "judge.jsonl").read_text("utf-8").splitlines()
    assert sorted(str(json.loads(line)["grade"]) for line in lines) == ["2", "None"]
