"""Queries that ask nearly the same, by shingles and by vectors, on texts and vectors made by hand."""

import numpy as np
import pytest

from steelyard_eval.datasets.alike import by_shingles, by_vectors, named_numbers, shared, shingles


def numbers(texts):
    known: dict = {}
    return np.array([known.setdefault(named_numbers(text), len(known)) for text in texts])


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("how do we rotate the signing keys", "how do we rotate the signing key", True),  # retyped
        ("how do we rotate the signing keys", "when may we deploy on fridays", False),
        ("incident 12 in the night of the release", "incident 13 in the night of the release", False),  # a number
    ],
)
def test_texts_that_share_nearly_all_shingles_are_paired(one, other, found):
    texts = [one, "something else entirely", other]
    assert list(by_shingles(texts, np.arange(3), numbers(texts))) == ([(0, 2)] if found else [])


def test_what_is_one_unit_already_is_not_proposed():
    texts = ["how do we rotate the keys", "how do we rotate the key"]
    assert list(by_shingles(texts, np.zeros(2, dtype=int), numbers(texts))) == []


def test_a_query_is_paired_with_the_first_whose_vector_is_close():
    # Cosines: 1 and 2 with 0 are .95 and .95, 3 is orthogonal to all.
    vectors = np.array([[1, 0, 0], [0.95, 0.3122499, 0], [0.95, -0.3122499, 0], [0, 0, 1]], dtype=np.float32)
    texts = ["a", "b", "c", "d"]
    assert list(by_vectors(vectors, np.arange(4), numbers(texts))) == [(0, 1), (0, 2)]


def test_the_share_is_jaccard_s():
    # abcd has abc and bcd, bcde has bcd and cde: one of three.
    assert shared(shingles("abcd"), shingles("bcde")) == pytest.approx(1 / 3)
