"""Scores of system-spec-kit's code that its search does not call, by hand from the formulas of its fact sheet."""

import numpy as np
import pytest

from steelyard.feedback.reviews import stability_after
from steelyard.memory.entry import Entry
from steelyard.retrievers.importance import Importance
from steelyard.signals.types import DOCUMENT_TYPES, TIERS
from steelyard.systems.spec_kit import composite, forms, legacy, scoring

NOW = 1_800_000_000.0


def ago(days):
    return NOW - days * 86_400.0


def entry(**fields):
    return Entry("e", **fields)


def test_the_other_fusion_of_the_javascript_code():
    """The larger score, a quarter of the smaller one, a tenth a matching word up to two tenths; 1 at most."""
    assert scoring.fused_advanced(0.5, 0.2, 1) == pytest.approx(0.5 + 0.05 + 0.1)
    assert scoring.fused_advanced(0.2, 0.4, 9) == pytest.approx(0.4 + 0.05 + 0.2)
    assert scoring.fused_advanced(0.9, 0.9, 2) == 1.0
    assert scoring.fused_advanced(-0.5, 0.3, 0) == pytest.approx(0.3)


def test_the_scales_of_the_six_tiers_and_of_the_document_types():
    tiers = ["constitutional", "critical", "important", "normal", "temporary", "deprecated"]
    assert {scale: [values[tier] for tier in tiers] for scale, values in TIERS.items()} == {
        "multiplier": [2.0, 1.5, 1.3, 1.0, 0.6, 0.1],
        "value": [1.0, 1.0, 0.8, 0.5, 0.3, 0.1],
        "boost": [3.0, 2.0, 1.5, 1.0, 0.5, 0.0],
    }
    assert [DOCUMENT_TYPES[name] for name in ("spec", "decision_record", "plan", "tasks")] == [1.4, 1.4, 1.3, 1.1]
    assert [DOCUMENT_TYPES[name] for name in ("constitutional", "readme", "scratch")] == [2.0, 0.8, 0.6]


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
    assert composite.retrievability(entry(**fields), NOW) == pytest.approx(expected)


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
    assert composite.popularity(entry(**fields), NOW) == pytest.approx(expected)


def test_recency_and_citation_halve_in_ten_days():
    assert composite.recency(entry(updated_at=ago(10)), NOW) == pytest.approx(0.5)
    assert composite.recency(entry(created_at=ago(40)), NOW) == pytest.approx(0.2)
    assert composite.recency(entry(created_at=ago(40), importance_tier="constitutional"), NOW) == 1.0
    assert composite.recency(entry(), NOW) == composite.citation(entry(), NOW) == 0.5
    assert composite.citation(entry(last_accessed_at=ago(10), updated_at=ago(80)), NOW) == pytest.approx(0.5)
    assert composite.citation(entry(updated_at=ago(40)), NOW) == pytest.approx(0.2)
    assert composite.citation(entry(updated_at=ago(90)), NOW) == 0.0


def test_a_pattern_is_similarity_title_and_type():
    assert composite.pattern(entry(), "anything", 0.6) == pytest.approx(0.3)
    assert composite.pattern(entry(), "anything", 0.9) == pytest.approx(0.5)  # what lies above 0.8 counts twice
    assert composite.pattern(entry(title="Token refresh"), "token", 0.0) == pytest.approx(0.3)
    assert composite.pattern(entry(title="Token refresh"), "refresh of gateways", 0.0) == pytest.approx(0.075)
    asked = "why was that decided, what plan"
    assert composite.pattern(entry(memory_type="decision", document_type="plan"), asked, 0.2) == pytest.approx(0.5)
    assert composite.pattern(entry(title="why", memory_type="decision"), "why", 1.0) == 1.0


def test_five_factors_and_six():
    own = composite.factors(entry(importance=8.0, importance_tier="critical", access_count=4), "x", 0.0, NOW)
    assert (own.usage, own.importance) == pytest.approx((0.4, 0.6))
    assert composite.factors(entry(access_count=20), "x", 0.0, NOW).usage == 1.0
    # An entry of which nothing is known: .25 * .5 + .15 * 0 + .25 * .5 / 2 + .2 * .5 / 2 + .15 * .5
    assert composite.five_factors(entry(), "x", 50.0, NOW) == pytest.approx(0.3125)
    assert composite.five_factors(entry(document_type="spec"), "x", 50.0, NOW) == pytest.approx(0.3125 * 1.4)
    # .3 * .5 + .25 * .5 + .1 * .5 + .15 * 0 + .05 * .5 + .15 * .5
    assert composite.six_factors(entry(), 50.0, NOW) == pytest.approx(0.425)
    assert composite.six_factors(entry(document_type="scratch"), 50.0, NOW) == pytest.approx(0.255)
    full = entry(document_type="constitutional", importance=10.0, created_at=NOW)
    assert composite.six_factors(full, 100.0, NOW) == 1.0


def test_words_in_the_title_and_in_tags_count_more():
    entries = [
        Entry("title", title="Use JWT", importance=5.0),  # (1 + 2) * (0.5 + 0.5)
        Entry("tag", tags=("jwt",)),  # (1 + 1.5) * 0.5
        Entry("path", uri="specs/jwt.md", importance=10.0),  # 1 * 1.5
        Entry("text", text="jwt"),
    ]
    assert legacy.substring_scores(entries, "JWT a") == [("title", 3.0), ("path", 1.5), ("tag", 1.25)]
    bonus = legacy.term_bonus({"title": 0.1, "text": 0.12}, entries, "use jwt a")
    assert [name for name, _ in bonus] == ["title", "text"]
    assert [score for _, score in bonus] == pytest.approx([0.2, 0.12])


def test_twenty_constitutional_entries_come_first_at_100_percent():
    entries = [Entry(f"c{at:02}", importance_tier="constitutional", importance=at / 3) for at in range(25)]
    found = legacy.constitutional_first([*entries, Entry("other")], [("a", 80.0), ("b", 70.0)], 21)
    assert found == [*((f"c{at:02}", 100.0) for at in range(24, 4, -1)), ("a", 80.0)]


@pytest.mark.parametrize(
    ("days", "uses", "expected"), [(6.9, 0, 0.6), (7, 5, 0.65), (29.9, 10, 0.8), (30, 99, 0.65), (None, 0, 0.6)]
)
def test_smart_scores_weigh_relevance_recency_in_steps_and_use(days, uses, expected):
    # .2 * similarity of 50% + .5 * (1, .8 from 7 days, .5 from 30) + .3 * uses / 10
    own = entry(created_at=None if days is None else ago(days), access_count=uses)
    assert legacy.smart_score(own, 50.0, NOW) == expected


def test_short_and_long_texts_are_penalised_and_places_scored():
    lengths = (49, 50, 2000, 2001)
    assert list(map(legacy.step_penalty, lengths)) == [0.9, 1.0, 1.0, 0.95]
    assert legacy.positional(4) == [0.5, 0.375, 0.25, 0.125]
    assert legacy.matching_words("jwt validation flow", "JWT Validation in the auth flow") == 2


CACHED = [("", []), ("how do tokens expire", [7, 12, 3]), ("b", ["x"]), ("héllo €", [1])]


@pytest.mark.parametrize(("asked", "ids"), CACHED)
def test_the_key_of_a_cached_list_is_the_absolute_value_of_javascripts_32_bit_hash(asked, ids):
    whole = 0
    for character in f"{asked}:{','.join(sorted(map(str, ids)))}":
        whole = 31 * whole + ord(character)
    signed = (whole + 2**31) % 2**32 - 2**31
    assert legacy.cache_key(asked, ids) == f"rerank-{np.base_repr(abs(signed), 36).lower()}"
    if len(ids) == 3:
        assert signed < 0
        assert legacy.cache_key(asked, ids) == legacy.cache_key(asked, ids[::-1])


def test_importance_fades_by_what_passed_since_the_date():
    """Half of 0.8 after a half-life of 30 days, half of that after another; 0.8 before the date or without one."""
    since = [{"updated_at": ago(days), "half_life_days": 30} for days in (30, 60, -30)]
    facts = Importance.of([entry(importance=8, **dates) for dates in (*since, {})])
    assert facts.at(NOW) == pytest.approx([0.4, 0.2, 0.8, 0.8])


@pytest.mark.parametrize(("days", "expected"), [(90, "DORMANT"), (90.5, "ARCHIVED")])
def test_what_is_forgotten_is_archived_after_ninety_days(days, expected):
    assert scoring.state(0.019, days) == expected
    assert scoring.state(0.02, days) == "DORMANT"


def test_a_snippet_begins_before_the_first_word_that_was_asked():
    """At the beginning where a word is the first one; a quarter of 200 characters before it elsewhere."""
    text = "token " + "x" * 294 + " rotate" + "y" * 300
    assert forms.snippet(text, "rotate token") == text[:200]
    assert forms.snippet(text, "rotate") == text[251:451]


def test_stability_grows_more_where_it_is_easy_and_was_nearly_forgotten():
    """A difficulty of 6 gives 1 + 5 / 10, a retrievability of 0.8 gives 1 + 0.2 / 2, an easy review 1.3."""
    assert stability_after(10, 6, 4, 0.8) == pytest.approx(10 * 1.5 * 1.1 * 1.3)
    assert [stability_after(days, 6, 1, 0.8) for days in (10, 0.1)] == [2.0, 0.1]
