"""What is tried, what it is judged on, and the answer from end to end."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from steelyard_eval.compare.warnings import effective_number

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import FAMILIES, parse_strategy
from steelyard.memory.text import content, terms
from steelyard.systems import find_system
from steelyard_eval.cli.main import main
from steelyard_eval.compare import compare
from steelyard_eval.compare.agreement import overlap, rank_biased
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.datasets import load
from steelyard_eval.datasets.starter import starter
from steelyard_eval.decide.composite import PARTS, composite, smoothing
from steelyard_eval.decide.decision import Decision
from steelyard_eval.decide.grid import LINE, grid, measured
from steelyard_eval.decide.priors import PriorTable, key_of, shipped
from steelyard_eval.decide.promise import NO_GAIN, Gain, usual_over
from steelyard_eval.decide.refusal import Refusal
from steelyard_eval.decide.wording import is_stated, sentence
from steelyard_eval.measures.metrics import Judgments, Measure
from steelyard_eval.recording.record import record, record_systems
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace, judged
from steelyard_eval.show.report.leaderboard import leaderboard
from steelyard_eval.show.terminal import recommendation
from steelyard_eval.tune import layout
from steelyard_eval.tune.families import Start, starts
from steelyard_eval.tune.layout import lay_out
from steelyard_eval.tune.recommendation import recommend
from steelyard_eval.tune.source import Live
from steelyard_eval.tune.tuned_parameters import settings

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


@pytest.mark.parametrize(("current", "told"), [("echovault", False), ("cortex_mem", True)])
def test_a_layer_without_vectors_is_told_in_the_document_and_where_layers_are_in_sight(current, told, caplog):
    """The starter has vectors of l0 and l1, and none of l2; what few queries put first reads no layers."""
    data = load(starter())
    few = dict(list(data.qrels.items())[:20])
    found = recommend(replace(data, qrels=few), current, timed=False)
    (notice,) = [notice for notice in found.record["notices"] if "no vectors of the layer l2" in notice]
    assert (notice not in found.aside) == told
    assert caplog.records == []


def test_a_signal_that_nothing_in_sight_reads_is_named_in_the_document_alone(found):
    """No type of the starter's entries is one that an intent prefers, and only spec_kit reads that."""
    (notice,) = [notice for notice in found.record["notices"] if "promised" in notice]
    assert notice in found.aside


def test_settings_that_were_not_tuned_are_named_in_the_document_alone(found):
    (notice,) = [notice for notice in found.record["notices"] if "not tuned" in notice]
    assert "bm25.k1" in notice
    assert notice in found.aside


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
    made = grid(table, settings(config)[:3], judgments, NDCG, 300)

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
    made = grid(table, [config], judgments, NDCG)

    metric, steady = measured(table, config, judgments, NDCG)
    assert np.allclose(made.metric[0], metric, atol=1e-6)
    assert np.allclose(made.composite[0], steady, atol=1e-6)


def test_the_composite_of_a_layered_search_earns_nothing_below_its_cut(space, queries):
    """The composite reads lists of 100, in which what the cut dropped must not come again."""
    config = config_of("layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.3, relax=[], cut=0.45)")
    table = record(space, queries, [config])
    judgments = Judgments.of(space.dataset.qrels, table.queries, table.entries)
    made = grid(table, [config], judgments, NDCG, 20)

    for candidate in (0, 4, 20):
        metric, steady = measured(table, made.config(candidate), judgments, NDCG)
        assert np.allclose(made.metric[candidate], metric, atol=1e-6)
        assert np.allclose(made.composite[candidate], steady, atol=1e-6)


@pytest.mark.parametrize("name", ["cortex_mem", "cortex_mem:shipped"])
def test_cortex_mem_is_laid_out_with_thresholds_ladders_cuts_and_weights(space, queries, name):
    source = Live(space)
    start = Start.around(Contender(name, find_system(name).config(10, "minilm"), "system"), source)
    made = lay_out(source, queries, [start], NDCG)

    assert made.skipped == ()
    tried = [re.search(r"default=layered\((.*?)\)", str(config.strategy))[1] for config in start.settings]
    assert {re.search(r"threshold=([0-9.]+)", text)[1] for text in tried} == {"0.2", "0.3", "0.4", "0.5", "0.6"}
    assert len({re.search(r"relax=(\[.*?\])", text)[1] for text in tried}) > 1
    assert any("cut=" not in text for text in tried)
    assert len({made.grid.config(at).strategy.weights for at in range(len(made.grid))}) > 10


def test_what_reads_layers_is_recorded_apart_and_nothing_else_changes(space, queries):
    """A layer has a value for every entry, so that a recording with one has a row for every query and entry."""
    words, layers = config_of("weighted_sum(1*bm25, 1*fts)"), config_of("layered(0.2*l0, 0.3*l1, 0.5*l2)")
    tried = [Start("words", words, (words,)), Start("layers", layers, (layers,))]
    narrow, wide = layout.record_all(Live(space), queries, tried)
    together = record(space, queries, [words, layers])

    assert narrow.table.columns.keys() == {"bm25", "fts"}
    assert len(narrow.table) < len(wide.table) == len(together)
    for config, own in ((words, narrow), (layers, wide)):
        assert layout.serving((narrow, wide), config) is own
        assert replay(own.table, config).ranked.lists() == replay(together, config).ranked.lists()


def test_every_family_is_tried_and_the_starts_do_not_depend_on_labels(space, queries):
    tried = [start.config.strategy.keyword for start in starts(Live(space), queries, 10)]
    # ranx's other fusions gained nothing on public collections; the sigmoid of gated suits one scale of BM25
    left = {name for name in FAMILIES if name.startswith("comb_")} | {"isr", "log_isr", "borda", "rbc", "gated"}
    assert set(FAMILIES) - left <= set(tried)
    assert left.isdisjoint(tried)
    shuffled = replace(space.dataset, qrels={})
    other = Live(replace(space, dataset=shuffled))
    assert [s.config for s in starts(other, queries, 10)] == [s.config for s in starts(Live(space), queries, 10)]


def test_all_five_systems_are_tried_unless_their_layers_are_missing(space, queries):
    names = {start.label for start in starts(Live(space), queries, 10) if start.preset}
    assert names == {"fts", "bm25", "vector", "echovault", "soleri", "moltnet", "spec_kit", "cortex_mem"}
    flat = {key: rows for key, rows in space.dataset.vectors.items() if key[1] == "text"}
    without = Live(replace(space, dataset=replace(space.dataset, vectors=flat)))
    assert names - {start.label for start in starts(without, queries, 10)} == {"cortex_mem"}


# The table of other collections


def test_names_do_not_depend_on_the_scale_of_weights():
    assert key_of(config_of("rrf(bm25, 3*vector)")) == key_of(config_of("rrf(2*bm25, 6*vector)"))
    assert key_of(config_of("rrf(bm25, 3*vector)")) != key_of(config_of("rrf(3*bm25, vector)"))
    assert key_of(find_system("bm25").config(10)) == key_of(config_of("bm25"))


def test_the_shipped_table_names_its_collections_and_fits_what_it_may():
    table = shipped()
    names = {one["name"] for one in table.about["collections"]}

    assert "cosqa" in names
    assert "locomo" not in names  # its licence allows no commercial use
    assert all(len(one["sha256"]) == 64 for one in table.about["collections"])
    assert table.fits("minilm", "nDCG@10", "0" * 64)
    assert not table.fits("lsa", "nDCG@10", "0" * 64)
    assert not table.fits("minilm", "R@10", "0" * 64)
    assert not table.fits("minilm", "nDCG@10", table.about["collections"][0]["sha256"])


def test_a_table_reads_back_and_gives_differences_to_a_current_configuration():
    about = {"collections": [{"sha256": "a"}, {"sha256": "b"}], "model": "m", "metric": "nDCG@10"}
    numbers = {"metric": np.array([0.5, 0.25]), "composite": np.array([0.5, 0.75])}
    variances = {"variances_metric": np.array([[0.125, 0.25]]), "variances_composite": np.array([[0.5, 0.0625]])}
    bases = {"current_metric": np.array([0.25]), "current_composite": np.array([0.5])}
    table = PriorTable(about, {"x": 0, "y": 1}, {"now": 0}, **numbers, **variances, **bases)

    metric, steady = PriorTable.from_bytes(table.to_bytes()).priors(["y", "unknown", "x"], "now")

    assert metric.mean.tolist() == [0.0, 0.0, 0.25]
    assert steady.mean.tolist() == [0.25, 0.0, 0.0]
    assert steady.variance.tolist() == [0.0625, 0.0, 0.5]
    assert metric.worth == pytest.approx([20 / 3, 0, 20 / 3])  # ten queries times 2 of 3


# The answer


def test_the_first_line_is_the_verdict_in_words_and_the_rest_agrees(found, space):
    document = found.to_json()

    assert document["verdict"] == "ship"
    assert document["sentence"].startswith("Ship: +")
    assert document["formula"].startswith(document["chosen"]["strategy"])
    short = next(query.text for query in space.dataset.queries if len(query.text) <= 60)
    assert [shlex.split(step["command"]) for step in document["steps"]] == [
        ["steelyard", "index", str(starter()), "starter.db", "--weights", "search-weights.json"],
        ["steelyard", "search", "starter.db", short, "--weights", "search-weights.json"],
    ]
    assert "over your echovault" in document["sentence"]  # what dataset.json names
    assert document["current"]["label"] == "echovault"
    assert document["command"] == f"steelyard recommend {starter()} --current echovault"
    assert f"{document['promise']['value']:+.3f} nDCG@10 expected" in document["sentence"]
    assert str(found.config.effective) == document["chosen"]["strategy"]
    assert found.config.provenance["promise"] == document["promise"]
    means = [row["mean"] for row in document["leaderboard"]]
    assert means == sorted(means, reverse=True)
    # What was tuned on these labels cannot be tested on them, so only presets are compared.
    presets = {row["label"] for row in document["leaderboard"]} - {"echovault"}
    tested = {test["challenger"] for test in document["comparisons"]}
    assert tested == {label for label in presets if not label.endswith(", tuned")}


def test_every_row_of_the_leaderboard_has_the_value_of_live_search(space, queries, found):
    row = next(row for row in found.to_json()["leaderboard"] if row["label"] == "RRF, tuned")
    config = config_of(row["strategy"])
    config = replace(
        config,
        retrievers={name: replace(one, depth=row["depths"][name]) for name, one in config.retrievers.items()},
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
    assert row["mean"] == pytest.approx(np.mean(values), abs=1e-9)


def test_any_contender_can_be_the_current_one(space, tmp_path):
    few = replace(space.dataset, queries=space.dataset.queries[:8])
    small = replace(space, dataset=few)
    nothing = recommend(few, lambda query: ["no such entry"], timed=False, workspace=small)

    assert nothing.record["current"]["in_sample"]["value"] == 0.0
    assert nothing.record["current"]["embedding_calls"] is None
    config_of("rrf(bm25, vector)").save(tmp_path / "w.json")
    weights = recommend(few, str(tmp_path / "w.json"), timed=False, workspace=small)
    assert weights.record["current"]["strategy"] == "rrf(bm25, vector, k=60)"
    with pytest.raises(ConfigError, match="no system, strategy"):
        recommend(few, "nothing such", timed=False, workspace=small)


def test_what_is_broken_off_ships_nothing(space, monkeypatch):
    made = layout.grid
    calls = []

    def breaking(*arguments):
        calls.append(arguments)
        if len(calls) > 9:  # the first family has seven recordings
            raise KeyboardInterrupt
        return made(*arguments)

    monkeypatch.setattr(layout, "grid", breaking)
    found = recommend(space.dataset, timed=False, workspace=space)

    assert found.interrupted
    assert found.record["verdict"] in ("try", "keep")
    assert str(found.config.strategy) == str(find_system("echovault").config(10).strategy)


INTERRUPTED = """
import os, signal, sys
from steelyard_eval.cli.main import main
from steelyard_eval.tune import layout

made, calls = layout.grid, []


def breaking(*arguments):
    calls.append(arguments)
    if len(calls) == 10:
        os.kill(os.getpid(), signal.SIGINT)
    return made(*arguments)


layout.grid = breaking
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
    assert not record["whole"]
    assert record["verdict"] == "try"
    assert record["sentence"] == "Try: not proven, because the search was broken off."
    assert record["steps"][-1]["what"] == "run it again to prove it"
    today = SearchConfig.load(tmp_path / "search-weights.current.json")
    assert str(today.strategy) == record["current"]["strategy"]
    attempt = SearchConfig.load(tmp_path / "search-weights.try.json")
    assert str(attempt.effective) == record["chosen"]["strategy"]


def test_a_recording_gives_the_choice_of_a_search_among_what_it_holds(space, tmp_path):
    out = tmp_path / "own"
    record_systems(space.dataset, ["plain"], out, "all", 10, "auto")
    found = recommend(space.dataset, "fts", recording=out / "plain.documented").to_json()
    assert found["command"].endswith(f"--recording {out / 'plain.documented'}")

    labels = {row["label"]: row for row in found["leaderboard"]}
    assert {"fts", "vector", "RRF, tuned", "weighted sum, tuned"} <= labels.keys()  # over fts: it has no bm25
    assert not {"bm25", "echovault", "soleri", "moltnet"} & labels.keys()
    row = labels["RRF, tuned"]
    assert row["depths"]["vector"] == 100  # that of plain, so a comparison searches the same
    (same,) = compare(space.dataset, row["strategy"], timed=False, metrics="nDCG@10").values.values()
    assert row["mean"] == pytest.approx(same["nDCG@10"].mean(), abs=1e-12)
    assert all("p50_ms" not in row for row in found["timing"])
    with pytest.raises(ConfigError, match="Record again with this configuration"):
        recommend(space.dataset, "echovault", recording=out / "plain.documented")


def test_the_cost_of_a_row_counts_the_indexes_that_it_reads(space, found):
    timing = {row["label"]: row for row in found.to_json()["timing"]}
    vectors = 4 * 384 * len(space.dataset.entries)  # float32 of 384 dimensions

    assert (timing["vector"]["keyword_bytes"], timing["vector"]["vector_bytes"]) == (0, vectors)
    assert (timing["bm25"]["vector_bytes"], timing["fts"]["vector_bytes"]) == (0, 0)
    words = sum(len(set(terms(content(entry)))) for entry in space.dataset.entries)
    assert timing["bm25"]["keyword_bytes"] == 16 * words
    stored = space.store._db.execute("SELECT block FROM fts_content_data").fetchall()
    lengths = space.store._db.execute("SELECT sz FROM fts_content_docsize").fetchall()
    assert timing["fts"]["keyword_bytes"] == sum(len(part) for (part,) in [*stored, *lengths])
    assert timing["soleri"]["vector_bytes"] == vectors


def test_the_command_prints_the_sentence_first_and_writes_file_and_report(tmp_path):
    out = tmp_path / "search-weights.json"
    arguments = ["recommend", str(starter()), "--out", str(out), "--report", str(tmp_path / "report")]
    ended = CliRunner().invoke(main, arguments)
    record = json.loads((tmp_path / "report" / "report.json").read_text())

    assert ended.exit_code == 0
    assert " ".join(ended.stdout.split("\n\n")[0].split()) == record["sentence"]
    assert "unbeaten" in ended.stdout
    assert str(SearchConfig.load(out).effective) == record["chosen"]["strategy"]
    page = (tmp_path / "report" / "report.html").read_text()
    assert record["sentence"].removeprefix("Ship: ") in page
    places = [page.index(record["sentence"][6:]), page.index(f"--weights {out}"), page.index(record["formula"])]
    assert places == sorted(places)  # what to expect, what to do, the formula


@pytest.mark.parametrize("stated", [True, False])
def test_a_gain_that_is_not_stated_is_not_said_to_stand_above(found, stated):
    record = {**found.record, "promise_stated": stated, "chosen": {**found.record["chosen"], "depths": {}}}
    told = " ".join(recommendation(record).split())
    assert ", current:" not in told  # depths that are not there need no comma
    caption = " ".join(map(str, leaderboard(record)))
    assert told.index("so they are optimistically biased") < told.index("against current [95%]")
    expected = record["sentence"].split()[1]  # Ship: +0.062 nDCG@10 ...
    assert not any(
        "are few" in notice for notice in record["notices"]
    )  # beside a proven gain it would contradict it
    assert (f"the {expected} above, measured on queries that had no part in the choice" in told) == stated
    assert "so their values are optimistically biased" in caption
    assert ("the promise above is not" in caption) == stated


# Words


def test_the_three_sentences():
    # Phi(-0.0612 / 0.0298) = Phi(-2.054) = .02, and 1.96 * .0298 = .0584; Phi(-1.2816) = .1
    ship = Decision("ship", 3, Gain.of(0.0612, 0.0298), 0.1, None)
    attempt = Decision("try", 3, Gain.of(0.0128155, 0.01), 0.1, 37)
    keep = Decision("keep", None, NO_GAIN, 0.0551, 183)

    assert sentence(ship, "echovault", "nDCG@10") == (
        "Ship: +0.061 nDCG@10 expected over your echovault, 95% sure of +0.003 to +0.120; "
        "1 in 50 that it is worse."
    )
    assert sentence(attempt, "bm25", "nDCG@10") == (
        "Try: likely better than your bm25 (1 in 10 that it is worse), not proven."
    )
    # Of a gain below 0 nobody says that it is likely better: Phi(-1) = .159
    assert sentence(replace(attempt, gain=Gain.of(-0.01, 0.01)), "bm25", "nDCG@10") == (
        "Try: your labels and public collections favour it over your bm25, though it did worse on queries kept "
        "aside (by those, 1 in 6 that it is better)."
    )
    # Phi(-.2) = .42, which nobody calls likely
    assert sentence(replace(attempt, gain=Gain.of(0.002, 0.01)), "bm25", "nDCG@10").startswith(
        "Try: perhaps better than your bm25 (2 in 5 that it is worse), not proven."
    )
    assert sentence(ship, "mine", "nDCG@10", 60, 100) == (
        "Ship: better than your mine (1 in 50 that it is worse); it takes 100 different "
        "labelled queries to say by how much (60 now)."
    )
    refused = replace(attempt, refusal=Refusal("the search was broken off", "run it again"))
    assert sentence(refused, "bm25", "nDCG@10") == "Try: not proven, because the search was broken off."
    assert sentence(keep, "echovault", "nDCG@10") == (
        "Keep your echovault: nothing that was tried beats it by more than 0.055 nDCG@10 (95% sure)."
    )


def test_a_gain_is_stated_of_what_ships_and_over_little_from_more_queries_on():
    ship = Decision("ship", 3, Gain.of(0.06, 0.02), 0.1, None)
    fewest = [
        usual_over(config).stated
        for config in (
            find_system("echovault").config(10),
            config_of("bm25"),
            config_of("rrf(bm25, vector)"),
            None,
        )
    ]
    assert fewest == [40, 100, 200, 200]
    assert [is_stated(ship, n, 100) for n in (99, 100)] == [False, True]
    assert not is_stated(replace(ship, verdict="try"), 400, 100)


def test_queries_of_one_scope_that_agree_are_worth_one_each():
    # Ten scopes of six equal values: ten independent observations, up to the factors n - 1 and g - 1.
    values = np.repeat(np.random.default_rng(0).random(10), 6)
    assert effective_number(values, [str(at // 6) for at in range(60)]) == pytest.approx(60 * 9 / 59, rel=0.01)


# Without labels


def test_rank_biased_overlap_of_the_papers_kind():
    # Webber et al., equation 30, by hand for two of depth 2 that share their second entry only: agreements 0 and
    # 1/2; .5 * .9^2 + (.1 / .9) * (.5 * .9^2) = 0.405 + 0.045.
    assert rank_biased(["a", "x"], ["b", "x"]) == pytest.approx(0.45)
    assert overlap(["a", "x"], ["b", "x"]) == pytest.approx(1 / 3)


def test_without_labels_the_answer_is_the_default_who_agrees_and_where_to_label(space):
    bare = replace(space.dataset, qrels={}, queries=space.dataset.queries[:6])
    found = recommend(bare, "bm25", workspace=replace(space, dataset=bare))
    record = found.to_json()

    assert record["verdict"] == "try"
    assert "nothing was measured on your notes; on ten public collections it beat your bm25" in record["sentence"]
    assert str(found.config.strategy) == "bm25"
    assert str(found.attempt.strategy) == "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"
    assert [step["command"] for step in record["steps"]][-1] == f"steelyard judge {bare.path}"
    assert all(0 <= row["rbo"] <= 1 and 0 <= row["jaccard"] <= 1 for row in record["agreement"])


def test_what_is_worth_trying_without_labels_is_a_weights_file_that_can_be_read(space, tmp_path):
    bare = replace(space.dataset, qrels={}, queries=())
    recommend(bare, "bm25", workspace=replace(space, dataset=bare)).save_weights(tmp_path / "w.json")
    attempt = SearchConfig.load(tmp_path / "w.try.json")

    assert str(attempt.strategy) == "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"
    assert attempt.provenance["learned_from"] == "public collections"


def test_without_queries_the_sentence_stands_alone(space, tmp_path):
    bare = replace(space.dataset, qrels={}, queries=())
    found = recommend(bare, "bm25", workspace=replace(space, dataset=bare))

    assert found.record["verdict"] == "try"
    assert any("public collections" in path.read_text() for path in found.report(tmp_path))


def test_few_labels_that_prove_nothing_give_way_to_public_collections(space):
    few = dict(list(space.dataset.qrels.items())[:2])
    own = replace(space.dataset, qrels=few)
    found = recommend(own, "bm25", workspace=replace(space, dataset=own), timed=False)

    assert found.record["verdict"] == "try"
    assert "the 2 labelled queries of your notes prove nothing yet; on ten public" in found.sentence
    assert str(found.attempt.strategy) == "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)"
