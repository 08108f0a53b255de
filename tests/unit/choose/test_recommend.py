"""What is tried, what it is judged on, and the answer from end to end."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from markupsafe import escape

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.fusion import FAMILIES, parse_strategy
from steelyard.memory.text import content, terms
from steelyard.systems import SYSTEMS, find_system
from steelyard_eval.candidates import candidates as layout
from steelyard_eval.candidates.candidates import build_candidates
from steelyard_eval.candidates.families import StartingPoint, starts
from steelyard_eval.candidates.grid import LINE, LabelledRecording, LabelScorer, measured
from steelyard_eval.candidates.kernel import PARTS, composite, smoothing
from steelyard_eval.candidates.settings import config_key, settings, texts_with_shares, with_shares
from steelyard_eval.candidates.source import Source
from steelyard_eval.choose import blockers
from steelyard_eval.choose.answer import said_of
from steelyard_eval.choose.public import PriorTable, load_priors
from steelyard_eval.choose.recommend import recommend
from steelyard_eval.choose.rule import Ruling
from steelyard_eval.cli.main import main
from steelyard_eval.compare import compare
from steelyard_eval.compare.answer import effective_number
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.result import rank_biased
from steelyard_eval.datasets import load
from steelyard_eval.datasets.groups import judged
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.measures.spread import NO_GAIN, Gain
from steelyard_eval.recording.record import record, record_systems
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.document import read
from steelyard_eval.result.sentences import say

NDCG = Measure("nDCG", 10)


@pytest.fixture(scope="module")
def space():
    return Workspace.open(load(starter()))


@pytest.fixture(scope="module")
def queries(space):
    return judged(space.dataset, space.dataset.queries)


@pytest.fixture(scope="module")
def found(space):
    return recommend(space.dataset, timed=False, workspace=space)


def config_of(text, system="plain"):
    return find_system(system).config(10, "minilm").with_strategy(parse_strategy(text))


@pytest.mark.parametrize(("current", "told"), [("echovault", 0), ("cortex_mem", 1)])
def test_a_layer_without_vectors_is_told_where_what_is_used_reads_it(current, told, caplog):
    """The starter has vectors of l0 and l1, and none of l2; what few queries put first reads no layers."""
    data = load(starter())
    few = dict(list(data.qrels.items())[:20])
    found = recommend(replace(data, qrels=few), current, timed=False)
    assert sum(said.key == "layer_stands_in" for said in found.result.notices) == told
    assert caplog.records == []


# What candidates are judged on


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


# The grid


def test_the_line_has_71_shares_with_both_ends():
    assert len(LINE) == 71
    assert (LINE[0], LINE[-1]) == (0.0, 1.0)
    assert np.allclose(LINE, 1 - LINE[::-1])


@pytest.mark.parametrize(
    "text",
    [
        "rrf(bm25, vector, k=60)",
        "weighted_sum(0.4*bm25, 0.4*vector, 0.2*importance, normalize=minmax)",
        "tiered(fts, min_results=10, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))",
    ],
)
def test_every_column_is_what_replay_says_of_its_configuration(space, queries, text):
    config = config_of(text)
    table = record(space, queries, settings(config))
    judgments = Judgments.of(space.dataset.qrels, table.queries, table.entries)
    made = LabelScorer(NDCG).grid(LabelledRecording(table, judgments), settings(config)[:3], 300)

    assert made.config(0) == config
    for candidate in np.random.default_rng(0).integers(0, len(made), 12).tolist():
        own = replay(table, made.config(candidate)).metrics(judgments, [NDCG])[NDCG]
        # Reciprocal ranks nearly tie, and float32 parts some ties otherwise than float64 does.
        assert np.isclose(made.metric[candidate], own, atol=1e-6).mean() > 0.9
        assert made.metric[candidate].mean() == pytest.approx(own.mean(), abs=0.003)


def test_a_single_retriever_is_judged_by_the_composite_of_its_own_list(space, queries):
    config = config_of("bm25")
    table = record(space, queries, [config])
    judgments = Judgments.of(space.dataset.qrels, table.queries, table.entries)
    made = LabelScorer(NDCG).grid(LabelledRecording(table, judgments), [config])

    metric, steady = measured(LabelledRecording(table, judgments), config, NDCG)
    assert np.allclose(made.metric[0], metric, atol=1e-6)
    assert np.allclose(made.composite[0], steady, atol=1e-6)


def test_the_composite_of_a_layered_search_earns_nothing_below_its_cut(space, queries):
    """The composite reads lists of 100, in which what the cut dropped must not come again."""
    config = config_of("layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.3, relax=[], cut=0.45)")
    table = record(space, queries, [config])
    judgments = Judgments.of(space.dataset.qrels, table.queries, table.entries)
    made = LabelScorer(NDCG).grid(LabelledRecording(table, judgments), [config], 20)

    for candidate in (0, 4, 20):
        metric, steady = measured(LabelledRecording(table, judgments), made.config(candidate), NDCG)
        assert np.allclose(made.metric[candidate], metric, atol=1e-6)
        assert np.allclose(made.composite[candidate], steady, atol=1e-6)


@pytest.mark.parametrize("name", ["cortex_mem", "cortex_mem:shipped"])
def test_cortex_mem_is_laid_out_with_thresholds_ladders_cuts_and_weights(space, queries, name):
    source = Source.live(space)
    start = StartingPoint.around(Contender(name, find_system(name).config(10, "minilm"), "system"), source)
    made = build_candidates(layout.record_all(source, queries, [start]), [start], LabelScorer(NDCG))

    assert made.skipped == ()
    tried = [re.search(r"default=layered\((.*?)\)", str(config.strategy))[1] for config in start.settings]
    assert {re.search(r"threshold=([0-9.]+)", text)[1] for text in tried} == {"0.2", "0.3", "0.4", "0.5", "0.6"}
    assert len({re.search(r"relax=(\[.*?\])", text)[1] for text in tried}) > 1
    assert any("cut=" not in text for text in tried)
    assert len({made.grid.config(at).strategy.weights for at in range(len(made.grid))}) > 10


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
    shuffled = replace(space.dataset, qrels={})
    other = Source.live(replace(space, dataset=shuffled))
    assert [s.config for s in starts(other, queries, 10)] == [
        s.config for s in starts(Source.live(space), queries, 10)
    ]


def test_all_five_systems_are_tried_unless_their_layers_are_missing(space, queries):
    names = {start.label for start in starts(Source.live(space), queries, 10) if start.preset}
    assert names == {"fts", "bm25", "vector", "echovault", "soleri", "moltnet", "spec_kit", "cortex_mem"}
    flat = {key: rows for key, rows in space.dataset.vectors.items() if key[1] == "text"}
    without = Source.live(replace(space, dataset=replace(space.dataset, vectors=flat)))
    assert names - {start.label for start in starts(without, queries, 10)} == {"cortex_mem"}


# The table of other collections


def test_names_do_not_depend_on_the_scale_of_weights():
    assert config_key(config_of("rrf(bm25, 3*vector)")) == config_key(config_of("rrf(2*bm25, 6*vector)"))
    assert config_key(config_of("rrf(bm25, 3*vector)")) != config_key(config_of("rrf(3*bm25, vector)"))
    assert config_key(find_system("bm25").config(10)) == config_key(config_of("bm25"))


@pytest.mark.parametrize(
    "name",
    [*SYSTEMS, "rrf(bm25, vector)", "weighted_sum(0.5*bm25, 0.5*fts, normalize=max)", "borda(bm25, vector)"],
)
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


# The answer


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
    config = replace(
        config,
        retrievers={name: replace(one, depth=row.depths[name]) for name, one in config.retrievers.items()},
    )
    searcher = space.searcher(config)
    lists = [[hit.entry.id for hit in searcher.search(query).hits] for query in queries]
    # nDCG@10 by hand, with linear gain and log2(rank + 1)
    values = []
    for query, ids in zip(queries, lists, strict=True):
        grades = space.dataset.qrels[query.id]
        gain = sum(grades.get(id_, 0) / np.log2(rank + 2) for rank, id_ in enumerate(ids))
        ideal = sum(g / np.log2(r + 2) for r, g in enumerate(sorted(grades.values(), reverse=True)[:10]))
        values.append(gain / ideal)
    assert row.means["nDCG@10"].mean == pytest.approx(np.mean(values), abs=1e-9)


def test_any_contender_can_be_the_current_one(space, tmp_path):
    few = replace(space.dataset, queries=space.dataset.queries[:8])
    small = replace(space, dataset=few)
    nothing = recommend(few, lambda query: ["no such entry"], timed=False, workspace=small)

    today = nothing.result.row(nothing.result.provenance.baseline)
    assert (today.means["nDCG@10"].mean, today.cost.embedded) == (0.0, None)
    config_of("rrf(bm25, vector)").save(tmp_path / "w.json")
    weights = recommend(few, str(tmp_path / "w.json"), timed=False, workspace=small)
    assert weights.result.row("w.json").strategy == "rrf(bm25, vector, k=60)"
    with pytest.raises(ConfigError, match="no system, strategy"):
        recommend(few, "nothing such", timed=False, workspace=small)


def test_what_is_broken_off_ships_nothing(space, monkeypatch):
    made = LabelScorer.grid
    calls = []

    def breaking(*arguments):
        calls.append(arguments)
        if len(calls) > 9:  # the first family has seven recordings
            raise KeyboardInterrupt
        return made(*arguments)

    monkeypatch.setattr(LabelScorer, "grid", breaking)
    found = recommend(space.dataset, timed=False, workspace=space)

    assert found.interrupted
    assert found.result.decision.verdict in ("try", "keep")
    assert str(found.config.strategy) == str(find_system("echovault").config(10).strategy)


INTERRUPTED = """
import os, signal, sys
from steelyard_eval.candidates.grid import LabelScorer
from steelyard_eval.cli.main import main

made, calls = LabelScorer.grid, []


def breaking(*arguments):
    calls.append(arguments)
    if len(calls) == 10:
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
    assert record["decision"]["verdict"] == "try"
    assert record["decision"]["blocker"]["key"] == "interrupted"
    assert record["answer"]["steps"][-1]["key"] == "search_again"
    rows = {row["label"]: row for row in record["rows"]}
    today = SearchConfig.load(tmp_path / "search-weights.current.json")
    assert str(today.strategy) == rows[record["provenance"]["baseline"]]["strategy"]
    attempt = SearchConfig.load(tmp_path / "search-weights.try.json")
    assert str(attempt.effective) == rows[record["decision"]["chosen"]]["strategy"]


def test_a_recording_gives_the_choice_of_a_search_among_what_it_holds(space, tmp_path):
    out = tmp_path / "own"
    record_systems(space.dataset, ["plain"], out, "all", 10, "auto")
    found = recommend(space.dataset, "fts", recording=out / "plain.documented").result
    assert found.provenance.command[-2:] == ["--recording", str(out / "plain.documented")]

    labels = {row.label: row for row in found.rows}
    assert {"fts", "vector", "RRF, tuned", "weighted sum, tuned"} <= labels.keys()  # over fts: it has no bm25
    assert not {"bm25", "echovault", "soleri", "moltnet"} & labels.keys()
    row = labels["RRF, tuned"]
    assert row.depths["vector"] == 100  # that of plain, so a comparison searches the same
    (same,) = compare(space.dataset, row.strategy, timed=False, metrics="nDCG@10").values.values()
    assert row.means["nDCG@10"].mean == pytest.approx(same["nDCG@10"].mean(), abs=1e-12)
    assert all(row.cost.latency is None for row in found.rows)
    with pytest.raises(ConfigError, match="Record again"):
        recommend(space.dataset, "echovault", recording=out / "plain.documented")


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


def test_the_command_prints_the_sentence_first_and_writes_file_and_report(tmp_path):
    out = tmp_path / "search-weights.json"
    arguments = ["recommend", str(starter()), "--out", str(out), "--report", str(tmp_path / "report")]
    ended = CliRunner().invoke(main, arguments)
    result = read((tmp_path / "report" / "report.json").read_bytes())

    assert ended.exit_code == 0
    assert " ".join(ended.stdout.split("\n\n")[0].split()) == say(result.answer)
    assert str(SearchConfig.load(out).effective) == result.choice.strategy
    page = (tmp_path / "report" / "report.html").read_text()
    places = [
        page.index(part) for part in (escape(say(result.answer)[5:]), f"--weights {out}", result.answer.formula)
    ]
    assert places == sorted(places)  # what to expect, what to do, the formula


def test_a_gain_that_is_stated_is_said_to_stand_above_and_beside_it_nothing_is_few(found):
    (said,) = [said for said in found.result.answer.because if said.key == "tuned_rows"]
    assert said.facts["expected"] == found.result.decision.gain.mean
    assert not {said.key for said in found.result.notices} & {"few_queries", "tell_little"}


# Words


def test_what_is_said_has_the_metric_today_and_expected_with_its_range():
    # 1.959964 * .0298 = .0584
    ship = Ruling("ship", 3, Gain.of(0.0612, 0.0298), 0.1, None)
    attempt = replace(ship, verdict="try", more=37)
    keep = Ruling("keep", None, NO_GAIN, 0.0551, 183)

    said = said_of(ship, "echovault", "nDCG@10", "soleri", 0.6)
    gain = said.facts["gain"]
    assert (said.key, said.facts["before"], said.facts["after"]) == ("ship", 0.6, pytest.approx(0.6612))
    assert (gain.low, gain.high) == pytest.approx((0.0028, 0.1196), abs=1e-4)
    assert said_of(ship, "echovault", "nDCG@10", "soleri", 0.95).facts["gain"].high == pytest.approx(
        0.05
    )  # at most 1
    assert said_of(attempt, "bm25", "nDCG@10").facts["more"] == 40
    assert said_of(replace(attempt, more=None), "bm25", "nDCG@10").facts["more"] is None
    assert said_of(replace(attempt, blocker=blockers.INTERRUPTED), "bm25", "nDCG@10").key == "try_interrupted"
    assert said_of(keep, "echovault", "nDCG@10").facts["bound"] == 0.0551
    failing = blockers.chosen_queries("failing")
    assert said_of(replace(keep, blocker=failing), "bm25", "nDCG@10").key == "keep_failing"


def test_queries_of_one_scope_that_agree_are_worth_one_each():
    # Ten scopes of six equal values: ten independent observations, up to the factors n - 1 and g - 1.
    values = np.repeat(np.random.default_rng(0).random(10), 6)
    assert effective_number(values, [str(at // 6) for at in range(60)]) == pytest.approx(60 * 9 / 59, rel=0.01)


# Without labels


def test_rank_biased_overlap_of_the_papers_kind():
    # Webber et al., equation 30, by hand for two of depth 2 that share their second entry only: agreements 0 and
    # 1/2; .5 * .9^2 + (.1 / .9) * (.5 * .9^2) = 0.405 + 0.045.
    assert rank_biased(["a", "x"], ["b", "x"]) == pytest.approx(0.45)


def test_without_labels_the_answer_is_the_default_who_agrees_and_where_to_label(space):
    bare = replace(space.dataset, qrels={}, queries=space.dataset.queries[:6])
    found = recommend(bare, "bm25", workspace=replace(space, dataset=bare))
    result = found.result

    assert (result.decision.verdict, result.answer.key) == ("try", "public_try")
    assert (result.answer.facts["collections"], result.answer.facts["unmeasured"]) == (10, True)
    assert str(found.config.strategy) == "bm25"
    assert str(found.attempt.strategy) == "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"
    assert result.answer.steps[-1].command == ["steelyard", "judge", str(bare.path)]
    (agreed,) = [table for table in result.tables if table.key == "agreement"]
    assert all(0 <= rbo <= 1 for _, _, rbo in agreed.rows)


def test_what_is_worth_trying_without_labels_is_a_weights_file_that_can_be_read(space, tmp_path):
    bare = replace(space.dataset, qrels={}, queries=())
    recommend(bare, "bm25", workspace=replace(space, dataset=bare)).save_weights(tmp_path / "w.json")
    attempt = SearchConfig.load(tmp_path / "w.try.json")

    assert str(attempt.strategy) == "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"
    assert attempt.provenance["learned_from"] == "public collections"


def test_without_queries_the_sentence_stands_alone(space, tmp_path):
    bare = replace(space.dataset, qrels={}, queries=())
    found = recommend(bare, "bm25", workspace=replace(space, dataset=bare))

    assert found.result.decision.verdict == "try"
    assert any("public collections" in path.read_text() for path in found.report(tmp_path))


def test_few_labels_that_prove_nothing_give_way_to_public_collections(space):
    few = dict(list(space.dataset.qrels.items())[:2])
    own = replace(space.dataset, qrels=few)
    found = recommend(own, "bm25", workspace=replace(space, dataset=own), timed=False)

    assert (found.result.decision.verdict, found.result.answer.key) == ("try", "public_try")
    assert found.result.answer.facts["labelled"] == 2
    assert str(found.attempt.strategy) == "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"
