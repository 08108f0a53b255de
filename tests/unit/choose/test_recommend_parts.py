"""What is tried, what it is judged on, and the answer from end to end."""

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from markupsafe import escape
from search_forms import form_of

from steelyard import Entry, Filters, Query, SearchConfig, find_system, parse_strategy
from steelyard.fusion import FAMILIES, Isr
from steelyard.memory.text import content, terms
from steelyard.signals import PRIORS
from steelyard.signals.formulas import DerivedSignal, SignalValues
from steelyard.systems import SYSTEMS
from steelyard_eval.candidates import candidates as layout
from steelyard_eval.candidates.families import StartingPoint, available, starts
from steelyard_eval.candidates.grid import LINE, _corners, shares
from steelyard_eval.candidates.kernel import PARTS, composite, smoothing
from steelyard_eval.candidates.settings import of_retrievers, texts_with_shares, with_shares
from steelyard_eval.choose import blockers
from steelyard_eval.choose.answer import describe_decision
from steelyard_eval.choose.differences import Scored
from steelyard_eval.choose.leaderboard import Place
from steelyard_eval.choose.public import PriorTable, load_priors
from steelyard_eval.choose.recommend import recommend
from steelyard_eval.choose.result import simpler
from steelyard_eval.choose.rule import Ruling, gains_out_of_fold
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.lists_and_latency import latencies
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets.groups import judged
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.export import TARGETS
from steelyard_eval.export.engines import ENGINES
from steelyard_eval.measures.metrics import parse_measures
from steelyard_eval.measures.spread import NO_GAIN, Gain
from steelyard_eval.recording.next_steps import describe_config
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.sentences import say

pytestmark = pytest.mark.usefixtures("opened_once")


@pytest.fixture(scope="module")
def space(dataset):
    return Workspace.open(dataset)


@pytest.fixture(scope="module")
def queries(space):
    return judged(space.dataset, space.dataset.queries)


@pytest.fixture(scope="module")
def found(space):
    return recommend(space.dataset, timed=False, workspace=space)


def test_what_no_target_can_run_says_what_was_tried_why_not_and_what_to_do(space, found, tmp_path):
    (line,) = [line for line in found.saved(tmp_path / "w.json", space.dataset)[1] if line.startswith("export: ")]
    assert "graph" in found.result.answer.formula
    assert all(target in line for target in TARGETS)  # python as what remains
    assert "graph is no part of a hybrid query" in line
    fits = replace(found, config=config_of("rrf(bm25, vector, k=1)")).saved(tmp_path / "w.json", space.dataset)[1]
    (line,) = [line.split("not fit")[0] for line in fits if line.startswith("export: ")]
    assert {target for target in TARGETS if target in line} == {*ENGINES} - {"weaviate"}


def config_of(text, system="plain"):
    return find_system(system).config(10, "minilm").with_strategy(parse_strategy(text))


def test_the_composite_is_the_mean_of_its_parts_each_at_its_own_scale():
    values = {part: np.array([at + 1.0]) for at, part in enumerate(PARTS)}
    # (1 * 1 + 1.09 * 2 + 1.25 * 3 + 1.06 * 4) / 4
    assert composite(values, PARTS) == pytest.approx([2.7925])


def test_smoothing_keeps_means_and_takes_most_from_the_nearest():
    kernel = smoothing(LINE)
    assert np.allclose(kernel.sum(axis=1), 1.0)
    assert np.allclose(kernel @ np.full(len(LINE), 0.4), 0.4)
    # Between shares 0.5 and 0.52 the scale log((t + .03) / (1.03 - t)) moves by log(.55/.51) - log(.53/.53).
    middle = int(np.flatnonzero(LINE == 0.5)[0])
    ratio = kernel[middle, middle + 1] / kernel[middle, middle]
    assert ratio == pytest.approx(np.exp(-0.5 * (np.log(0.55 / 0.51) / 0.25) ** 2))


def test_what_reads_layers_is_recorded_apart_and_nothing_else_changes(space, queries):
    """A layer has a value for every entry, so that a recording with one has a row for every query and entry."""
    words, layers = config_of("weighted_sum(1*bm25, 1*fts)"), config_of("layered(0.2*l0, 0.3*l1, 0.5*l2)")
    tried = [StartingPoint("words", words, (words,)), StartingPoint("layers", layers, (layers,))]
    narrow, wide = layout.record_all(Source.live(space), queries, tried)
    together = record(space, queries, [words, layers])
    assert narrow.table.columns.keys() == {"bm25", "fts"}
    assert len(narrow.table) < len(wide.table) == len(together)
    for config, own in ((words, narrow), (layers, wide)):
        assert layout.recording_for((narrow, wide), config) is own
        assert replay(own.table, config).ranked.lists() == replay(together, config).ranked.lists()


def test_every_family_is_tried_and_the_starts_do_not_depend_on_labels(space, queries):
    tried = [start.config.strategy.keyword for start in starts(Source.live(space), queries, 10)]
    # ranx's other fusions gained nothing on public collections; the sigmoid of gated suits one scale of BM25
    left = {name for name in FAMILIES if name.startswith("comb_")} | {"isr", "log_isr", "borda", "rbc", "gated"}
    assert set(FAMILIES) - left <= set(tried)
    assert left.isdisjoint(tried)
    unlabelled = Source.live(replace(space, dataset=replace(space.dataset, qrels={})))
    own, other = (starts(source, queries, 10) for source in (Source.live(space), unlabelled))
    assert [start.config for start in own] == [start.config for start in other]


NAMES = [*SYSTEMS, "rrf(bm25, vector)", "weighted_sum(0.5*bm25, 0.5*fts, normalize=max)", "borda(bm25, vector)"]


@pytest.mark.parametrize("name", NAMES)
def test_many_weights_are_named_as_each_is_alone(name):
    """Weights of 1, which some families do not write, of 0, and of no sum."""
    strategy = find_system(name).config(10).effective if name in SYSTEMS else parse_strategy(name)
    drawn = np.random.default_rng(0).random((5, len(strategy.weights))).round(6)
    rows = [*drawn.tolist(), *np.eye(len(strategy.weights)).tolist(), [0.0] * len(strategy.weights)]
    assert texts_with_shares(strategy, rows) == [str(with_shares(strategy.with_weights(row))) for row in rows]


def test_the_shipped_table_names_its_collections_and_fits_what_it_may():
    table = load_priors()
    names = {one["name"] for one in table.about["collections"]}
    assert "cosqa" in names
    assert "locomo" not in names  # its licence allows no commercial use
    assert all(len(one["sha256"]) == 64 for one in table.about["collections"])
    assert table.fits("minilm", "nDCG@10", "0" * 64)
    assert not table.fits("lsa", "nDCG@10", "0" * 64)
    assert not table.fits("minilm", "R@10", "0" * 64)
    assert not table.fits("minilm", "nDCG@10", table.about["collections"][0]["sha256"])


def test_a_table_gives_differences_to_a_current_configuration():
    about = {"collections": [{"sha256": "a"}, {"sha256": "b"}], "model": "m", "metric": "nDCG@10"}
    numbers = {"metric": np.array([0.5, 0.25]), "composite": np.array([0.5, 0.75])}
    variances = {"variances_metric": np.array([[0.125, 0.25]]), "variances_composite": np.array([[0.5, 0.0625]])}
    bases = {"current_metric": np.array([0.25]), "current_composite": np.array([0.5])}
    table = PriorTable(about, {"x": 0, "y": 1}, {"now": 0}, **numbers, **variances, **bases)
    metric, steady = table.priors(["y", "unknown", "x"], "now")
    assert metric.mean.tolist() == [0.0, 0.0, 0.25]
    assert steady.mean.tolist() == [0.25, 0.0, 0.0]
    assert steady.variance.tolist() == [0.0625, 0.0, 0.5]
    assert metric.effective_n == pytest.approx([20 / 3, 0, 20 / 3])  # ten queries times 2 of 3


def test_the_first_line_is_the_verdict_in_words_and_the_rest_agrees(found, space):
    result, decision = found.result, found.result.decision
    assert (decision.verdict, result.answer.key) == ("ship", "ship")
    assert result.answer.formula.startswith(result.choice.strategy)
    short = next(query.text for query in space.dataset.queries if len(query.text) <= 60)
    assert [step.command for step in result.answer.steps] == [
        ["steelyard", "index", str(starter()), "starter.db", "--weights", "search-weights.json"],
        ["steelyard", "search", "starter.db", short, "--weights", "search-weights.json"],
    ]
    # what dataset.json names
    assert result.answer.facts["current"] == result.provenance.baseline == "echovault"
    assert result.provenance.command == ["steelyard", "recommend", str(starter()), "--current", "echovault"]
    assert result.answer.facts["gain"] == decision.gain
    assert str(found.config.effective) == result.choice.strategy
    assert found.config.provenance["promise"]["value"] == decision.gain.mean
    means = [row.means["nDCG@10"].mean for row in result.rows]
    assert means == sorted(means, reverse=True)
    # What was tuned on these labels cannot be tested on them, so only presets are compared.
    presets = {row.label for row in result.rows} - {"echovault"}
    tested = {row.label for row in result.rows if row.against}
    assert tested == {label for label in presets if not label.endswith(", tuned")}


def test_every_row_of_the_leaderboard_has_the_value_of_live_search(space, queries, found):
    row = found.result.row("RRF, tuned")
    config = config_of(row.strategy)
    at_depth = {name: replace(one, depth=row.depths[name]) for name, one in config.retrievers.items()}
    config = replace(config, retrievers=at_depth)
    searcher = space.searcher(config)
    values = []
    for query in queries:  # nDCG@10 by hand, with linear gain and log2(rank + 1)
        grades, hits = space.dataset.qrels[query.id], searcher.search(query).hits
        gain = sum(grades.get(hit.entry.id, 0) / np.log2(rank + 2) for rank, hit in enumerate(hits))
        ideal = sum(g / np.log2(r + 2) for r, g in enumerate(sorted(grades.values(), reverse=True)[:10]))
        values.append(gain / ideal)
    assert row.means["nDCG@10"].mean == pytest.approx(np.mean(values), abs=1e-9)


INTERRUPTED = """
import os, signal, sys
from steelyard_eval.candidates.grid import LabelScorer
from steelyard_eval.cli.main import main
made, calls = LabelScorer.grid, []
def breaking(*arguments):
    calls.append(arguments)
    if len(calls) == 40:
        os.kill(os.getpid(), signal.SIGINT)
    return made(*arguments)
LabelScorer.grid = breaking
sys.argv = ["steelyard", "recommend", *sys.argv[1:]]
main()
"""


def test_a_real_ctrl_c_ends_with_130_and_a_whole_file_of_the_current_weights(tmp_path):
    out = tmp_path / "search-weights.json"
    command = [sys.executable, "-c", INTERRUPTED, str(starter()), "--out", str(out), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    record = json.loads(ended.stdout)
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr
    assert (record["decision"]["verdict"], record["decision"]["blocker"]["key"]) == ("try", "interrupted")
    assert record["answer"]["steps"][-1]["key"] == "search_again"
    rows = {row["label"]: row for row in record["rows"]}
    today = SearchConfig.load(tmp_path / "search-weights.current.json")
    assert str(today.strategy) == rows[record["provenance"]["baseline"]]["strategy"]
    attempt = SearchConfig.load(tmp_path / "search-weights.try.json")
    assert str(attempt.effective) == rows[record["decision"]["chosen"]]["strategy"]


def test_the_cost_of_a_row_counts_the_indexes_that_it_reads(space, found):
    costs = {row.label: row.cost for row in found.result.rows}
    vectors = 4 * 384 * len(space.dataset.entries)  # float32 of 384 dimensions
    assert (costs["vector"].keyword_bytes, costs["vector"].vector_bytes) == (0, vectors)
    assert (costs["bm25"].vector_bytes, costs["fts"].vector_bytes) == (0, 0)
    words = sum(len(set(terms(content(entry)))) for entry in space.dataset.entries)
    assert costs["bm25"].keyword_bytes == 16 * words
    stored = space.store._db.execute("SELECT block FROM fts_content_data").fetchall()
    lengths = space.store._db.execute("SELECT sz FROM fts_content_docsize").fetchall()
    assert costs["fts"].keyword_bytes == sum(len(part) for (part,) in [*stored, *lengths])
    assert costs["soleri"].vector_bytes == vectors


def test_the_sentence_comes_first_and_the_page_has_the_steps_before_the_formula(found, tmp_path):
    """The command runs in docs/start.md, and its report and its file in test_shared_options.py."""
    result = found.result
    assert " ".join(str(found).split("\n\n")[0].split()) == say(result.answer)
    page = found.report(tmp_path)[0].read_text()
    shown = (escape(say(result.answer)[5:]), "--weights search-weights.json", result.answer.formula)
    places = [page.index(part) for part in shown]
    assert places == sorted(places)  # what to expect, what to do, the formula


def test_what_is_said_has_the_metric_today_and_expected_with_its_range():
    # 1.959964 * .0298 = .0584
    ship = Ruling("ship", 3, Gain.of(0.0612, 0.0298), 0.1, None)
    attempt = replace(ship, verdict="try", more=37)
    keep = Ruling("keep", None, NO_GAIN, 0.0551, 183)
    said = describe_decision(ship, "echovault", "nDCG@10", "soleri", 0.6)
    gain = said.facts["gain"]
    assert (said.key, said.facts["before"], said.facts["after"]) == ("ship", 0.6, pytest.approx(0.6612))
    assert (gain.low, gain.high) == pytest.approx((0.0028, 0.1196), abs=1e-4)
    near_the_top = describe_decision(ship, "echovault", "nDCG@10", "soleri", 0.95).facts["gain"]
    assert near_the_top.high == pytest.approx(0.05)  # at most 1
    failing = blockers.chosen_queries("failing")
    wide, endless = (replace(attempt, more_range=ends) for ends in ((12, 183), (12, None)))
    for ruling, key, fact, value in (
        (attempt, "try_more", "more", 40),
        (attempt, "try_more", "strict", True),  # the range is above 0, and yet it does not ship
        (replace(attempt, gain=Gain.of(0.05, 0.03)), "try_more", "strict", False),
        (wide, "try_more", "most", 180),
        (wide, "try_more", "rough", None),
        (replace(attempt, more_range=(8, 183)), "try_more", "rough", True),  # more than twenty times as many
        (endless, "try_more", "least", None),
        (endless, "try_more", "rough", True),
        (replace(attempt, more_range=(36, 38)), "try_more", "least", None),  # one number when rounded
        (replace(attempt, more=None), "try_more", "more", None),
        (replace(attempt, blocker=blockers.INTERRUPTED), "try_interrupted", "bound", None),
        (keep, "keep", "bound", 0.0551),
        (replace(keep, blocker=failing), "keep_failing", "bound", None),
    ):
        said = describe_decision(ruling, "bm25", "nDCG@10")
        assert (said.key, said.facts.get(fact)) == (key, value)


# Parts of a recommendation, each beside what it has to be by hand


@pytest.fixture(scope="module")
def small(dataset):
    return Workspace.open(replace(dataset, queries=dataset.queries[:24]), "lsa")


def answer(small, current, **options):
    return recommend(small.dataset, current, timed=False, workspace=small, **options).result


class TestParts:
    def test_two_labelled_queries_are_the_fewest_that_decide_anything(self, small):
        few = [query for query in small.dataset.queries if any(small.dataset.qrels.get(query.id, {}).values())]
        sets = (replace(small.dataset, queries=tuple(few[:count])) for count in range(3))
        none, one, two = (answer(replace(small, dataset=own), "bm25") for own in sets)
        assert two.decision.bound is not None
        assert none.answer.facts["unmeasured"] and one.answer.facts["unmeasured"]

    def test_of_two_units_each_is_judged_by_a_choice_on_the_other_and_one_alone_by_none(self):
        gains = np.array([[0.5, 0.4, 0.1, 0.2], [0.1, 0.2, 0.5, 0.4]])  # each candidate is better on one unit
        two, one = (
            gains_out_of_fold(Scored.of(gains, gains, units=np.array(units)), 0)
            for units in ([0, 0, 1, 1], [0, 0, 0, 0])
        )
        assert (two.round(9).tolist(), one.tolist()) == ([0.1, 0.2, 0.1, 0.2], [0.0] * 4)

    def test_signals_that_tell_no_candidates_apart_are_left_out_by_name(self, small):
        """Every entry has the same severity, no relation, and a date, of which one signal is enough."""
        entries = tuple(
            Entry(e.id, e.title, "x" * 200, severity="high", created_at=e.created_at)
            for e in small.dataset.entries
        )
        bare = Workspace.open(replace(small.dataset, entries=entries), "lsa")
        source, queries = Source.live(bare), bare.dataset.queries
        there = available(source, queries, Setting(10, "lsa"))
        assert set(there.facts) == {"recency(half_life=90d)"}
        assert "graph" not in there.further
        assert any(start.label == "all signals" for start in starts(source, queries, 10))

    def test_a_new_signal_and_a_new_fusion_are_tried_without_being_named_anywhere_else(self, small, monkeypatch):
        class Twin(Isr):
            keyword, shown_as, common = "twin", "twin", True

        def place(table):
            return SignalValues((table.entry * 37 % 101).astype(np.float64), "by number")

        monkeypatch.setitem(PRIORS, "place", DerivedSignal(place))
        monkeypatch.setitem(FAMILIES, "twin", Twin)
        found = {start.label: start for start in starts(Source.live(small), small.dataset.queries, 10)}
        assert str(found["twin"].config.strategy) == "twin(bm25, vector)"
        for label, signal in (("all signals", "place"), ("boosted", "place"), ("RRF", "graph")):
            assert any(signal in config.strategy.signals for config in found[label].settings)

    def test_parameters_of_retrievers_are_tried_one_at_a_time_where_that_is_affordable(self):
        config = find_system("plain").config(10, "lsa").with_strategy(parse_strategy("rrf(bm25, vector, graph)"))
        words = {"identifiers", "ngrams"}
        found = [one.retrievers["graph"].parameters for one in of_retrievers(config, 100, words)]
        assert found == [{"seeds": 3}, {"seeds": 10}, {"hops": 1}, {"hops": 3}, {"decay": 0.3}, {"decay": 0.8}]
        assert of_retrievers(config, 200, words) == []  # six recordings of 200 queries are more than a thousand
        first = describe_config(of_retrievers(config, 100, words)[0])
        assert first == "rrf(bm25, vector, graph, k=60) with graph.seeds=3"
        tried = [one.retrievers["bm25"].parameters for one in of_retrievers(config, 200)]
        assert tried == [{"identifiers": "both"}, {"identifiers": "split"}, {"ngrams": 3}, {"ngrams": 4}]

    @pytest.mark.parametrize(("picked", "factor"), [("soleri", 1.0), ("soleri", 0.4), ("vector", 1.0)])
    def test_the_simplest_preset_that_is_as_good_is_named(self, picked, factor):
        """Over ten queries vector is better by .1 as often as it is worse, or keeps less than half of the gain."""
        (measure,), gains = parse_measures(["nDCG@10"]), np.tile([0.2, 0.3], 5)
        values = {"bm25": gains - 0.15, "vector": factor * gains[::-1], "soleri": gains}
        configs = {name: find_system(name).config(10, "lsa") for name in values}
        places = [Place(name, configs[name], {measure: own}, False, 0) for name, own in values.items()]
        current = SimpleNamespace(values={measure: np.zeros(10)})
        choice = SimpleNamespace(metric=measure, current=current, scored=SimpleNamespace(units=np.arange(10)))
        found = simpler(choice, places, next(place for place in places if place.label == picked))
        assert [one.facts["label"] for one in found] == ["vector"] * (picked == "soleri" and factor == 1.0)

    def test_each_signal_is_tried_nearly_alone_and_at_a_tenth(self):
        """Of 0.5, 0.3 and 0.2 beside a weight of 1 that does not move: a tenth of 0.5 leaves 0.05 of 0.55."""
        found = list(_corners(np.array([1, 0.5, 0.3, 0.2]), [np.array([1, 2, 3])]))
        assert found[0] == pytest.approx([1, 0.995, 0.003, 0.002])
        assert found[4] == pytest.approx([1, 0.005, 0.003, 0.992])
        assert found[1] == pytest.approx([1, 0.05 / 0.55, 0.3 / 0.55, 0.2 / 0.55])

    def test_the_line_of_two_weights_leaves_out_what_equals_the_start_to_six_digits(self):
        """0.3 is one of the 69 shares of the line; the start 0.3000004 takes its place."""
        form = form_of([[0.9, 0.1], [0.2, 0.8]], [1, 0], [2])
        rows = shares(replace(form, weights=np.array([0.3000004, 0.6999996])), [np.array([0, 1])], 1600)
        assert rows[0].tolist() == pytest.approx([0.3000004, 0.6999996], abs=1e-12)
        assert len(rows) == 69
        assert 0.3 not in rows[1:, 0]

    def test_every_scope_is_searched_once_before_it_is_timed(self):
        """Four queries in two scopes: two searches that are not measured, then four that are."""
        asked = []
        searcher = SimpleNamespace(
            search=lambda query: asked.append(query.text) or SimpleNamespace(seconds={}), degraded=0, knows=None
        )
        dataset = SimpleNamespace(with_known_intents=lambda queries, knows: queries)
        workers = SimpleNamespace(started=False)
        space = SimpleNamespace(searcher=lambda _: searcher, dataset=dataset, workers=workers)
        scopes = [Filters(), Filters.of({"project": "p"})]
        queries = [Query(text, filters=scopes[at // 2]) for at, text in enumerate("abcd")]
        assert len(latencies(space, None, queries, 5).searches) == 4
        assert sorted(asked[:2]) == ["a", "c"]
        assert asked[2:] == list("abcd")
        workers.started = True  # what they recorded was not kept in this process
        latencies(space, None, queries, 5)
        assert asked[6:] == list("abcdabcd")
