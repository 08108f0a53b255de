"""Scores of system-spec-kit's code that its search does not call, by hand from the formulas of its fact sheet."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from steelyard.memory.entry import Entry

# The folder is no package: the module is loaded by its path.
_spec = importlib.util.spec_from_file_location("speckit_uncalled", Path(__file__).with_name("speckit_uncalled.py"))
uncalled = sys.modules.setdefault("speckit_uncalled", importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(uncalled)

NOW = 1_800_000_000.0


def ago(days):
    return NOW - days * 86_400.0


def entry(**fields):
    return Entry("e", **fields)


def test_the_other_fusion_of_the_javascript_code():
    """The larger score, a quarter of the smaller one, a tenth a matching word up to two tenths; 1 at most."""
    assert uncalled.fused_advanced(0.5, 0.2, 1) == pytest.approx(0.5 + 0.05 + 0.1)
    assert uncalled.fused_advanced(0.2, 0.4, 9) == pytest.approx(0.4 + 0.05 + 0.2)
    assert uncalled.fused_advanced(0.9, 0.9, 2) == 1.0
    assert uncalled.fused_advanced(-0.5, 0.3, 0) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 0.5),
        ({"created_at": ago(81 / 19)}, 2**-0.5),  # FSRS: (1 + 19/81 * t/S)^-0.5, S of a day
        ({"created_at": ago(99), "updated_at": ago(81 / 19)}, 2**-0.5),
        ({"updated_at": ago(99), "last_review": ago(3 * 81 / 19)}, 0.5),
        ({"created_at": ago(3 * 81 / 19), "stability": 3.0}, 2**-0.5),
        ({"created_at": ago(-5)}, 1.0),  # dated after the clock
    ],
)
def test_retrievability_runs_since_the_last_review_else_the_last_change(fields, expected):
    assert uncalled.retrievability(entry(**fields), NOW) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 0.0),
        ({"access_count": 3}, 0.6 * 2 / 5),
        ({"access_count": 100, "last_accessed_at": ago(45)}, 0.6 + 0.4 / 2),
        ({"access_count": 1, "last_accessed_at": ago(200)}, 0.6 / 5),
    ],
)
def test_popularity(fields, expected):
    assert uncalled.popularity(entry(**fields), NOW) == pytest.approx(expected)


def test_recency_and_citation_halve_in_ten_days():
    assert uncalled.recency(entry(updated_at=ago(10)), NOW) == pytest.approx(0.5)
    assert uncalled.recency(entry(created_at=ago(40)), NOW) == pytest.approx(0.2)
    assert uncalled.recency(entry(created_at=ago(40), importance_tier="constitutional"), NOW) == 1.0
    assert uncalled.recency(entry(), NOW) == uncalled.citation(entry(), NOW) == 0.5
    assert uncalled.citation(entry(last_accessed_at=ago(10), updated_at=ago(80)), NOW) == pytest.approx(0.5)
    assert uncalled.citation(entry(updated_at=ago(40)), NOW) == pytest.approx(0.2)
    assert uncalled.citation(entry(updated_at=ago(90)), NOW) == 0.0


def test_a_pattern_is_similarity_title_and_type():
    assert uncalled.pattern(entry(), "anything", 0.6) == pytest.approx(0.3)
    assert uncalled.pattern(entry(), "anything", 0.9) == pytest.approx(0.5)  # what lies above 0.8 counts twice
    assert uncalled.pattern(entry(title="Token refresh"), "token", 0.0) == pytest.approx(0.3)
    assert uncalled.pattern(entry(title="Token refresh"), "refresh of gateways", 0.0) == pytest.approx(0.075)
    asked = "why was that decided, what plan"
    assert uncalled.pattern(entry(memory_type="decision", document_type="plan"), asked, 0.2) == pytest.approx(0.5)
    assert uncalled.pattern(entry(title="why", memory_type="decision"), "why", 1.0) == 1.0


def test_five_factors_and_six():
    own = uncalled.factors(entry(importance=8.0, importance_tier="critical", access_count=4), "x", 0.0, NOW)
    assert (own.usage, own.importance) == pytest.approx((0.4, 0.6))
    assert uncalled.factors(entry(access_count=20), "x", 0.0, NOW).usage == 1.0
    # An entry of which nothing is known: .25 * .5 + .15 * 0 + .25 * .5 / 2 + .2 * .5 / 2 + .15 * .5
    assert uncalled.five_factors(entry(), "x", 50.0, NOW) == pytest.approx(0.3125)
    assert uncalled.five_factors(entry(document_type="spec"), "x", 50.0, NOW) == pytest.approx(0.3125 * 1.4)
    # .3 * .5 + .25 * .5 + .1 * .5 + .15 * 0 + .05 * .5 + .15 * .5
    assert uncalled.six_factors(entry(), 50.0, NOW) == pytest.approx(0.425)
    assert uncalled.six_factors(entry(document_type="scratch"), 50.0, NOW) == pytest.approx(0.255)
    full = entry(document_type="constitutional", importance=10.0, created_at=NOW)
    assert uncalled.six_factors(full, 100.0, NOW) == 1.0


def test_words_in_the_title_and_in_tags_count_more():
    entries = [
        Entry("title", title="Use JWT", importance=5.0),  # (1 + 2) * (0.5 + 0.5)
        Entry("tag", tags=("jwt",)),  # (1 + 1.5) * 0.5
        Entry("path", uri="specs/jwt.md", importance=10.0),  # 1 * 1.5
        Entry("text", text="jwt"),
    ]
    assert uncalled.substring_scores(entries, "JWT a") == [("title", 3.0), ("path", 1.5), ("tag", 1.25)]
    bonus = uncalled.term_bonus({"title": 0.1, "text": 0.12}, entries, "use jwt a")
    assert [name for name, _ in bonus] == ["title", "text"]
    assert [score for _, score in bonus] == pytest.approx([0.2, 0.12])


def test_twenty_constitutional_entries_come_first_at_100_percent():
    entries = [Entry(f"c{at:02}", importance_tier="constitutional", importance=at / 3) for at in range(25)]
    found = uncalled.constitutional_first([*entries, Entry("other")], [("a", 80.0), ("b", 70.0)], 21)
    assert found == [*((f"c{at:02}", 100.0) for at in range(24, 4, -1)), ("a", 80.0)]


@pytest.mark.parametrize(
    ("days", "uses", "expected"), [(6.9, 0, 0.6), (7, 5, 0.65), (29.9, 10, 0.8), (30, 99, 0.65), (None, 0, 0.6)]
)
def test_smart_scores_weigh_relevance_recency_in_steps_and_use(days, uses, expected):
    # .2 * similarity of 50% + .5 * (1, .8 from 7 days, .5 from 30) + .3 * uses / 10
    own = entry(created_at=None if days is None else ago(days), access_count=uses)
    assert uncalled.smart_score(own, 50.0, NOW) == expected


def test_short_and_long_texts_are_penalised_and_places_scored():
    lengths = (49, 50, 2000, 2001)
    assert list(map(uncalled.step_penalty, lengths)) == [0.9, 1.0, 1.0, 0.95]
    assert uncalled.positional(4) == [0.5, 0.375, 0.25, 0.125]
    assert uncalled.matching_words("jwt validation flow", "JWT Validation in the auth flow") == 2


CACHED = [("", []), ("how do tokens expire", [7, 12, 3]), ("b", ["x"]), ("héllo €", [1])]


@pytest.mark.parametrize(("asked", "ids"), CACHED)
def test_the_key_of_a_cached_list_is_the_absolute_value_of_javascripts_32_bit_hash(asked, ids):
    whole = 0
    for character in f"{asked}:{','.join(sorted(map(str, ids)))}":
        whole = 31 * whole + ord(character)
    signed = (whole + 2**31) % 2**32 - 2**31
    assert uncalled.cache_key(asked, ids) == f"rerank-{np.base_repr(abs(signed), 36).lower()}"
    if len(ids) == 3:
        assert signed < 0
        assert uncalled.cache_key(asked, ids) == uncalled.cache_key(asked, ids[::-1])


@pytest.mark.parametrize(("days", "expected"), [(90, "DORMANT"), (90.5, "ARCHIVED")])
def test_what_is_forgotten_is_archived_after_ninety_days(days, expected):
    assert uncalled.state(0.019, days) == expected
    assert uncalled.state(0.02, days) == "DORMANT"
