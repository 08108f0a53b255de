"""Parts of a recommendation, each beside what it has to be by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from search_forms import form_of

from steelyard.fusion import FAMILIES, parse_strategy
from steelyard.fusion.ranks import Isr
from steelyard.memory.entry import Entry
from steelyard.memory.query import Filters, Query
from steelyard.signals import PRIORS
from steelyard.signals.formulas import DerivedSignal, SignalValues
from steelyard.systems import find_system
from steelyard_eval.candidates.families import available, starts
from steelyard_eval.candidates.grid import _corners, shares
from steelyard_eval.candidates.settings import of_retrievers
from steelyard_eval.candidates.source import Source
from steelyard_eval.choose.differences import Scored
from steelyard_eval.choose.leaderboard import _amounts, _dominates
from steelyard_eval.choose.recommend import recommend
from steelyard_eval.choose.rule import gains_out_of_fold
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.lists_and_latency import latencies
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording.next_steps import named
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Cost, Latency


@pytest.fixture(scope="module")
def space():
    whole = load(starter())
    return Workspace.open(replace(whole, queries=whole.queries[:24]), "lsa")


def answer(space, current, **options):
    return recommend(space.dataset, current, timed=False, workspace=space, **options).result


def test_two_labelled_queries_are_the_fewest_that_decide_anything(space):
    few = [query for query in space.dataset.queries if any(space.dataset.qrels.get(query.id, {}).values())]
    two, one = (replace(space, dataset=replace(space.dataset, queries=tuple(few[:n]))) for n in (2, 1))
    assert answer(two, "bm25").decision.bound is not None
    assert answer(one, "bm25").answer.facts["unmeasured"]
    none = replace(space, dataset=replace(space.dataset, queries=()))
    assert answer(none, "bm25").answer.facts["unmeasured"]


def test_of_two_units_each_is_judged_by_a_choice_on_the_other_and_one_alone_by_none():
    gains = np.array([[0.5, 0.4, 0.1, 0.2], [0.1, 0.2, 0.5, 0.4]])  # each candidate is better on one unit
    two, one = (
        gains_out_of_fold(Scored.of(gains, gains, units=np.array(units)), 0)
        for units in ([0, 0, 1, 1], [0, 0, 0, 0])
    )
    assert (two.round(9).tolist(), one.tolist()) == ([0.1, 0.2, 0.1, 0.2], [0.0] * 4)


def test_signals_that_tell_no_candidates_apart_are_left_out_by_name(space):
    """Every entry has the same severity, no relation, and a date, of which one signal is enough."""
    entries = tuple(
        Entry(e.id, e.title, "x" * 200, severity="high", created_at=e.created_at) for e in space.dataset.entries
    )
    bare = Workspace.open(replace(space.dataset, entries=entries), "lsa")
    there = available(Source.live(bare), bare.dataset.queries, Setting(10, "lsa"))
    assert set(there.facts) == {"recency(half_life=90d)"}
    assert "graph" not in there.further
    found = starts(Source.live(bare), bare.dataset.queries, 10)
    assert any(start.label == "all signals" for start in found)


def test_a_new_signal_and_a_new_fusion_are_tried_without_being_named_anywhere_else(space, monkeypatch):
    class Twin(Isr):
        keyword, shown_as, common = "twin", "twin", True

    def place(table):
        return SignalValues((table.entry * 37 % 101).astype(np.float64), "by number")

    monkeypatch.setitem(PRIORS, "place", DerivedSignal(place))
    monkeypatch.setitem(FAMILIES, "twin", Twin)
    found = {start.label: start for start in starts(Source.live(space), space.dataset.queries, 10)}
    assert str(found["twin"].config.strategy) == "twin(bm25, vector)"
    assert any("place" in config.strategy.signals for config in found["all signals"].settings)
    assert any("place" in config.strategy.signals for config in found["boosted"].settings)
    assert any("graph" in config.strategy.signals for config in found["RRF"].settings)


def test_parameters_of_retrievers_are_tried_one_at_a_time_where_that_is_affordable():
    config = find_system("plain").config(10, "lsa").with_strategy(parse_strategy("rrf(bm25, vector, graph)"))
    found = [one.retrievers["graph"].parameters for one in of_retrievers(config, 100)]
    assert found == [{"seeds": 3}, {"seeds": 10}, {"hops": 1}, {"hops": 3}, {"decay": 0.3}, {"decay": 0.8}]
    assert of_retrievers(config, 200) == []  # six recordings of 200 queries are more than a thousand
    assert named(of_retrievers(config, 100)[0]) == "rrf(bm25, vector, graph, k=60) with graph.seeds=3"


def test_the_front_counts_the_bytes_of_both_indexes_together():
    def point(value, ms, calls, keywords, vectors):
        return -value, *_amounts(Cost(calls, keywords, vectors, Latency(ms)))

    points = [
        point(0.5, 2.0, 3, 10, 60),
        point(0.5, 2.0, 3, 0, 50),  # as good as the first in everything else, in fewer bytes
        point(0.5, 2.0, 3, 50, 0),  # just as many
        point(0.6, 9.0, 3, 60, 60),  # better
        point(0.1, 1.0, 0, 90, 90),  # faster
        point(0.4, 2.0, 4, 0, 50),  # worse in two
    ]
    beaten = [any(_dominates(other, own) for other in points) for own in points]
    assert beaten == [True, False, False, False, False, True]


def test_each_signal_is_tried_alone_and_at_a_tenth():
    """Of 0.5, 0.3 and 0.2 beside a weight of 1 that does not move: a tenth of 0.5 leaves 0.05 of 0.55."""
    found = list(_corners(np.array([1, 0.5, 0.3, 0.2]), [np.array([1, 2, 3])]))
    assert [row.tolist() for row in found[::2]] == [[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    assert found[1] == pytest.approx([1, 0.05 / 0.55, 0.3 / 0.55, 0.2 / 0.55])


def test_the_line_of_two_weights_leaves_out_what_equals_the_start_to_six_digits():
    """0.3 is one of the 71 shares of the line; the start 0.3000004 takes its place."""
    form = form_of([[0.9, 0.1], [0.2, 0.8]], [1, 0], [2])
    rows = shares(replace(form, weights=np.array([0.3000004, 0.6999996])), [np.array([0, 1])], 1600)
    assert rows[0].tolist() == pytest.approx([0.3000004, 0.6999996], abs=1e-12)
    assert len(rows) == 71
    assert 0.3 not in rows[1:, 0]


def test_what_is_warm_is_searched_once_in_every_scope_before_it_is_timed():
    """Four queries in two scopes: two searches that are not measured, then four that are."""
    asked = []
    searcher = SimpleNamespace(
        search=lambda query: asked.append(query.text) or SimpleNamespace(seconds={}), degraded=0, knows=None
    )
    dataset = SimpleNamespace(asked=lambda queries, knows: queries)
    scopes = [Filters(), Filters.of({"project": "p"})]
    queries = [Query(text, filters=scopes[at // 2]) for at, text in enumerate("abcd")]
    found = latencies(SimpleNamespace(searcher=lambda _: searcher, dataset=dataset), None, queries, 5, warm=True)
    assert len(found.searches) == 4
    assert sorted(asked[:2]) == ["a", "c"]
    assert asked[2:] == list("abcd")
