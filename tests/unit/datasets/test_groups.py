# ruff: noqa: RUF001 -- texts in many scripts
"""Queries that vary together have one unit everywhere: in statistics, in folds, and in what is held out."""

import pytest

from steelyard.memory.query import Query
from steelyard_eval.datasets.groups import unit_numbers, wording


def test_a_group_called_like_a_query_or_a_text_is_neither():
    queries = [
        Query("a", id="q1"),
        Query("b", id="q2", group="q1"),
        Query("c", id="q3", group="a"),
        Query("d", id="q4", group="query q1"),
    ]

    assert unit_numbers(queries).tolist() == [0, 1, 2, 3]


def test_a_text_that_stands_in_two_groups_joins_them():
    # x and y are joined by the text "same", y and z by the group of "other"; "alone" stays apart.
    asked = [
        ("one", "x"),
        ("alone", ""),
        ("Same?", "x"),
        ("same", "y"),
        ("other", "y"),
        ("OTHER!", "z"),
        ("two", "z"),
    ]
    queries = [Query(text, id=str(at), group=group) for at, (text, group) in enumerate(asked)]

    assert unit_numbers(queries).tolist() == [0, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Where's the key?", "wheres THE  key"),
        ("STRASSE", "straße"),  # full case folding
        ("log-in page", "log in\u00a0page!"),
        ("caf\u00e9", "cafe\u0301"),  # composed and combining
        ("ＡＢＣ１２", "abc12"),  # full width
        ("東京の天気は？", "東京 の 天気は"),
        ("wie geht\u00b4s", "wie geht's"),  # NFKC makes a combining mark of the acute accent
        ("I \u2764\ufe0f tea", "i tea"),  # the mark of a symbol goes with it
        ("می\u200cخواهم", "میخواهم"),  # a zero width non-joiner
        ("?!", " ? ! "),
    ],
)
def test_the_same_question_in_another_dress(one, other):
    assert wording(one) == wording(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("कि", "की"),  # vowel signs are marks, and parts of words
        ("ไม", "ไม่"),
        ("cafe", "café"),
        ("が", "か"),
        ("???", "!"),
        ("👍", "👎"),
        ("chapter 2", "chapter 3"),
        ("?", "x"),
    ],
)
def test_different_questions(one, other):
    assert wording(one) != wording(other)
