"""Parts of Soleri's code that its document does not say, and of system-spec-kit's scores by hand."""

from dataclasses import replace

import pytest
from shared import tabled, vault_with

from steelyard import Entry, Filters, Query, Searcher, parse_strategy
from steelyard.retrievers.vector import fading
from steelyard.signals.formulas import DOCUMENT_TYPES, TIERS
from steelyard.signals.reviews import stability_after
from steelyard.stores.base import plain_id
from steelyard.stores.federation import Federation, FederationRule, Tier
from steelyard.systems import spec_kit as forms
from steelyard.systems.soleri import DOCUMENTED, SHIPPED
from steelyard.systems.spec_kit.words import stem_js

# Recorded values are compared in tests/parity; here, what counts and what does not.


def found(system, rule, query):
    """Ids and places of what keywords find in two tiers."""
    # BM25 prefers the shorter text, so b leads the agent's list.
    agent = vault_with(
        Entry("a", text="token of some more words than that", domain="auth"),
        Entry("b", text="token", domain="web"),
        Entry("old", text="token", domain="auth", valid_until=5.0),
    )
    project = vault_with(Entry("c", text="token", domain="auth"))
    store = Federation([Tier("agent", agent), Tier("project", project)], rule)
    table = Searcher(store, system.config(), clock=lambda: 7.0).candidates(query, parse_strategy("fts"))
    places = table.positions["fts"].tolist()
    return {plain_id(table.entries[row]): place for row, place in zip(table.entry, places, strict=True)}


AUTH = Query("token", filters=Filters.of({"domain": "auth"}), asked_at=7.0)


def test_shipped_filters_act_on_the_merged_list_and_leave_gaps():
    rule = replace(SHIPPED.federation, per_tier=2)
    everything = found(SHIPPED, rule, replace(AUTH, filters=Filters()))
    assert sorted(everything) == ["a", "b", "c"]  # the entry whose time is over never takes a place
    assert found(SHIPPED, rule, AUTH) == {id_: place for id_, place in everything.items() if id_ != "b"}
    # With one match a tier, b takes the agent's only place before the filter drops it.
    assert sorted(found(SHIPPED, replace(rule, per_tier=1), AUTH)) == ["c"]


def test_documented_filters_act_in_every_tier():
    assert found(DOCUMENTED, FederationRule(per_tier=1), AUTH).keys() == {"a", "c"}


NOW = 1_800_000_000.0


@tabled
def test_the_scales_of_the_six_tiers_and_of_the_document_types(scale, values):
    numbers = TIERS.get(scale, DOCUMENT_TYPES)
    assert {name: numbers[name] for name in values} == values


def test_importance_fades_by_what_passed_since_the_date():
    """Half of 0.8 after a half-life of 30 days, half of that after another; 0.8 before the date or without one."""
    since = [{"updated_at": NOW - days * 86_400.0, "half_life_days": 30} for days in (30, 60, -30)]
    importance = fading([Entry("e", importance=8, **dates) for dates in (*since, {})])
    assert importance(NOW) == pytest.approx([0.4, 0.2, 0.8, 0.8])


def test_a_snippet_begins_before_the_first_word_that_was_asked():
    """At the beginning where a word is the first one; a quarter of 200 characters before it elsewhere."""
    text = "token " + "x" * 294 + " rotate" + "y" * 300
    assert forms.snippet_around(text, "rotate token") == text[:200]
    assert forms.snippet_around(text, "rotate") == text[251:451]


def test_stability_grows_more_where_it_is_easy_and_was_nearly_forgotten():
    """A difficulty of 6 gives 1 + 5 / 10, a retrievability of 0.8 gives 1 + 0.2 / 2, an easy review 1.3."""
    assert stability_after(10, 6, "easy", 0.8) == pytest.approx(10 * 1.5 * 1.1 * 1.3)
    assert [stability_after(days, 6, "again", 0.8) for days in (10, 0.1)] == [2.0, 0.1]


@pytest.mark.parametrize(("word", "stem"), [("ties", "ti"), ("sing", "sing"), ("flying", "fly")])
def test_a_javascript_stem_of_two_letters_stays(word, stem):
    """The suffixes in turn: ties loses ies for i; sing would keep one letter, so it stays whole."""
    assert stem_js(word) == stem
