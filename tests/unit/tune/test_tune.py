"""Tuning: what is varied, what is chosen, the proof, and the file it writes."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from search_forms import measure

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.cli.main import main
from steelyard_eval.common.progress_bar import bar
from steelyard_eval.datasets import load, tuning_queries
from steelyard_eval.datasets.labels import JudgedPool
from steelyard_eval.datasets.starter import starter
from steelyard_eval.decide.out_of_fold import folds
from steelyard_eval.decide.rule import best
from steelyard_eval.measures.metrics import Judgments, evaluate
from steelyard_eval.recording.workspace import Workspace, judged
from steelyard_eval.tune import tune
from steelyard_eval.tune.task import prepare
from steelyard_eval.tune.tuned_parameters import depths, refuse_fixed, settings, shapes
from steelyard_eval.tune.tuner import proven
from steelyard_eval.tune.tuning_document import TuningDecision

MIXTURE = "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)"


@pytest.fixture(scope="module")
def space():
    return Workspace.open(load(starter()))


def task_of(space, strategy=MIXTURE, system="plain", seed=0):
    return prepare(space.dataset, system, strategy, "nDCG@10", None, "auto", seed, space)


@pytest.fixture(scope="module")
def mixed(space):
    return task_of(space)


# Shapes


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("weighted_sum(0.3*fts, 0.7*vector)", 5),  # none, max, minmax, zscore, rank
        ("weighted_sum(0.3*cosine, 0.7*tags)", 1),  # both lie in 0..1, so sums stay as they are
        ("rrf(fts, vector, k=60)", 7),  # 1, 5, 10, 20, 40, 60, 100
        ("rrf(fts, vector, k=30)", 8),
        ("rrf(fts, vector, k=60, bonus=times(0.1))", 35),  # 7 k by 0, 0.05, 0.1, 0.2, 0.4
        ("rrf(fts, vector, k=60, bonus=once(0.1))", 7),  # an added bonus is a weight
        ("tiered(fts, min_results=3, then=vector)", 6),  # 1, 3, 5, 10, 20, 50
        ("tiered(fts, min_results=4, then=weighted_sum(0.3*fts, 0.7*vector))", 35),  # 7 counts by 5
        (
            "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5)",
            5,
        ),  # 0.2 to 0.6, each with the steps of the ladder below it
        ("layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, cut=0.5)", 10),  # the same with and without the cut
        (
            "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.2], cut=step)",
            18,
        ),  # (2 ladders but for 0.2) x 2
        ("weighted_sum(0.5*cosine, 0.5*recency(half_life=10d))", 5),  # a quarter to four times
        ("by_intent(default=rrf(fts, vector), fix_bug=rrf(fts, vector))", 49),
        ("comb_max(fts, vector)", 5),
        ("rbc(fts, vector, phi=0.6)", 7),  # 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98
        ("tiered(fts, min_results=3, then=comb_mnz(fts, vector))", 30),  # 6 counts by 5
    ],
)
def test_every_discrete_parameter_is_varied_and_the_current_one_comes_first(text, count):
    found = shapes(parse_strategy(text))

    assert len(set(found)) == len(found) == count
    assert found[0] == parse_strategy(text)


def test_too_many_shapes_together_are_varied_one_parameter_at_a_time():
    inner = "rrf(fts, vector, k=60, bonus=times(0.1))"  # 35 each, 35 * 35 * 6 together
    found = shapes(parse_strategy(f"tiered({inner}, min_results=3, then={inner})"))

    # 34 others of either sum, 5 other counts, the current one
    assert len(found) == 1 + 34 + 34 + 5


def test_depths_are_halved_and_doubled_together_and_never_below_the_limit():
    config = find_system("plain").config(10).with_strategy(parse_strategy("rrf(fts, vector)"))

    here, half, double = depths(config)
    assert here == config
    assert (half.depths["fts"], double.depths["fts"]) == (50, 200)
    assert double.depths["l0"] is None  # layers score everything in scope
    assert [one.depths["fts"] for one in depths(find_system("plain").config(80))] == [100, 80, 200]
    assert [one.depths["fts"] for one in depths(find_system("echovault").config(10))] == [20, 10, 40]


def test_settings_are_every_shape_at_every_depth_the_current_one_first():
    config = find_system("plain").config(10).with_strategy(parse_strategy("rrf(fts, vector)"))
    found = settings(config)

    assert found[0] == config
    assert len(found) == 7 * 3
    assert len({(str(one.strategy), one.depths["fts"]) for one in found}) == 7 * 3


def test_a_strategy_without_weights_and_parameters_is_refused():
    with pytest.raises(ConfigError, match="nothing to tune"):
        refuse_fixed(parse_strategy("fts"))
    refuse_fixed(parse_strategy("tiered(fts, min_results=3, then=vector)"))


def test_a_data_set_with_one_judged_query_is_refused(space):
    first = space.dataset.queries[0].id
    lonely = replace(space.dataset, qrels={first: space.dataset.qrels[first]})
    with pytest.raises(ConfigError, match="two judged queries at least"):
        tune(lonely, strategy=MIXTURE, workspace=space)


# The decision


def test_what_is_chosen_without_a_fold_does_not_depend_on_its_labels(mixed):
    fold = folds(np.arange(len(mixed.queries)), 0)
    rest = fold != 2
    shuffled = dict(mixed.dataset.qrels)
    names = [q.id for q, out in zip(mixed.queries, ~rest, strict=True) if out]
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        shuffled[name] = mixed.dataset.qrels[other]
    judgments = Judgments.of(shuffled, mixed.table.queries, mixed.table.entries)
    other = replace(mixed, recordings=(replace(mixed.recordings[0], judgments=judgments),))

    assert not np.array_equal(other.values(mixed.config), mixed.values(mixed.config))
    assert best(other.evidence.on(rest)) == best(mixed.evidence.on(rest))


def test_tuned_on_train_where_there_is_a_split_and_the_gain_on_test_is_reported(space):
    names = [q.id for q in space.dataset.queries]
    parted = replace(
        space.dataset,
        queries=tuple(
            replace(q, split="test" if q.id in names[:20] else "train") for q in space.dataset.split("all")
        ),
    )
    record = tune(parted, "echovault", workspace=space).to_json()

    assert record["promise"]["queries"] == record["in_sample"]["queries"] == 39
    assert record["holdout"]["queries"] == 20


def test_without_a_split_every_query_serves_and_nothing_is_held_out(space):
    whole = replace(space.dataset, queries=tuple(replace(q, split="") for q in space.dataset.split("all")))
    record = tune(whole, "echovault", workspace=space).to_json()

    assert record["promise"]["queries"] == 59
    assert record["holdout"] is None


def test_ship_means_that_the_gain_is_proven_and_the_file_holds_what_was_chosen(space):
    # Nearly all weight on importance, which says nothing of the query: any weight on keywords is better.
    start = "weighted_sum(0.001*fts, 0.999*importance)"
    found = tune(space.dataset, "plain", start, workspace=space)
    record = found.to_json()

    assert record["verdict"] == "ship"
    assert record["sentence"].startswith("Ship: better than your current setting")
    assert record["formula"] == record["tuned"]
    assert record["promise"]["value"] > 0
    assert record["promise"]["harm"] < 0.05
    inside = record["in_sample"]["value"] - record["baseline"]["value"]  # the gain on the labels it was chosen by
    assert record["optimism"] == pytest.approx(inside - record["promise"]["value"], abs=1e-12)
    assert record["strategy"] == record["tuned"] == str(found.config.strategy)
    assert record["depths"]["strategy"] == record["depths"]["tuned"] == found.config.depths
    assert found.attempt is None
    for part in ("in_sample", "baseline", "plateau", "promise", "verdict"):
        assert found.config.provenance[part] == record[part]


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"sampled": "duel"}, "chosen because contenders disagree"),
        ({"sampled": "failing"}, "chosen for failing"),
        ({"pool": JudgedPool(("vector",), 10)}, "the first 10 of vector alone was judged"),
    ],
)
def test_what_chosen_labels_prove_is_worth_a_try_and_no_gain_is_promised(space, about, reason):
    start = "weighted_sum(0.001*fts, 0.999*importance)"
    chosen = replace(space.dataset, **about)
    found = tune(chosen, "plain", start, workspace=space)

    assert tune(space.dataset, "plain", start, workspace=space).record["verdict"] == "ship"
    assert found.record["verdict"] == "try"
    assert reason in found.record["sentence"]
    assert "expected" not in found.record["sentence"]
    assert str(found.config.strategy) == start
    assert str(found.attempt.strategy) == found.record["tuned"]


def test_under_keep_the_file_vouches_for_the_current_strategy(space):
    found = tune(space.dataset, "plain", MIXTURE, workspace=space)
    vouched = found.config.provenance

    assert vouched["verdict"] == "keep"
    assert str(found.config.strategy) == MIXTURE
    assert vouched["in_sample"] == vouched["baseline"]
    assert vouched["promise"]["value"] == 0.0
    assert vouched["plateau"] == []
    assert found.record["sentence"].startswith("Keep your current setting: nothing that was tried beats it by")


def test_under_try_two_files_are_named_by_what_they_hold_and_what_is_in_use_stays(space, tmp_path):
    # Two judged queries prove nothing, however large the gain.
    kept = [q.id for q in space.dataset.queries][:6]
    few = replace(space.dataset, qrels={name: space.dataset.qrels[name] for name in kept})
    out = tmp_path / "w.json"
    found = tune(few, "plain", "weighted_sum(0*bm25, 1*importance, normalize=minmax)", workspace=space)
    out.write_text("in use")
    files = found.save_weights(out)

    assert found.record["verdict"] == "try"
    assert files == [tmp_path / "w.current.json", tmp_path / "w.try.json"]
    assert out.read_text() == "in use"
    assert f"{out}: unchanged, from before this run" in found.saved(out, few)[1]
    assert SearchConfig.load(files[0]).strategy.weights == (0, 1)
    assert str(SearchConfig.load(files[1]).strategy) == found.record["tuned"]
    out.unlink()
    with pytest.raises(ConfigError, match=r"w\.json' is not there, but '.*w\.try\.json' is; name that"):
        SearchConfig.load(out)
    assert replace(found, attempt=None).save_weights(out) == [out]
    assert SearchConfig.load(out).strategy.weights == (0, 1)
    assert not any(file.exists() for file in files)


@pytest.mark.parametrize(
    ("system", "strategy"),
    [
        ("plain", "weighted_sum(0.9*bm25, 0.1*vector, normalize=minmax)"),
        ("plain", "rrf(fts, 0.01*vector)"),
        ("plain", "layered(0.2*l0, 0.3*l1, 0.5*l2)"),
        ("echovault", None),
    ],
)
def test_live_search_under_the_tuned_setting_has_the_value_that_is_reported(space, tmp_path, system, strategy):
    task = task_of(space, strategy, system)
    deep = settings(task.config)[-1]  # at another depth, where there is one
    for config in (TuningDecision(task).picked, task.best, deep):
        config.save(tmp_path / "search-weights.json")
        value = live_mean(space, SearchConfig.load(tmp_path / "search-weights.json"))
        assert value == pytest.approx(float(task.values(config)[task.inside].mean()), abs=1e-12)


def live_mean(space, config, metric="nDCG@10"):
    """The objective of live search, query by query, on the tuning queries."""
    queries = judged(space.dataset, tuning_queries(space.dataset)[0])
    searcher = space.searcher(config)
    ids = sorted(entry.id for entry in space.dataset.entries)
    code = {id_: at for at, id_ in enumerate(ids)}
    lists = [[code[hit.entry.id] for hit in searcher.search(query).hits] for query in queries]
    offsets = np.cumsum([0, *map(len, lists)])
    judgments = Judgments.of(space.dataset.qrels, [query.id for query in queries], ids)
    asked = measure(metric)
    entry = np.array([e for own in lists for e in own], dtype=np.int32)
    return float(evaluate(offsets, entry, judgments, [asked])[asked].mean())


def test_the_cost_of_a_setting_is_told(space):
    record = tune(space.dataset, "echovault", workspace=space).to_json()

    # 13 queries find fewer than 3 entries by keywords at a pool of 20 (the demo counts the same).
    assert record["embedding_calls"]["current"] == 13
    assert record["embedding_calls"]["queries"] == 59


def test_the_curve_follows_the_first_weight_of_what_was_tuned(mixed):
    record = proven(mixed).to_json()
    tuned = mixed.config.with_strategy(parse_strategy(record["tuned"]))
    weights = [point["weight"] for point in record["curve"]]

    assert weights == sorted(weights)
    assert 0 <= weights[0] < 0.05
    assert 0.95 < weights[-1] <= 1
    at = int(np.argmin(np.abs(np.array(weights) - 0.3)))
    near = tuned.strategy.with_weights([weights[at], 1 - weights[at]])
    value = float(mixed.values(tuned.with_strategy(near))[mixed.inside].mean())
    assert record["curve"][at]["value"] == pytest.approx(value, abs=1e-12)


def test_the_same_seed_gives_the_same_bytes_and_the_date_honours_source_date_epoch(space, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    documents = []
    for name in ("a.json", "b.json"):
        found = tune(space.dataset, "plain", "rrf(fts, vector)", seed=3, workspace=space)
        found.config.save(tmp_path / name)
        documents.append(json.dumps(found.to_json(), sort_keys=True))

    assert documents[0] == documents[1]
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert json.loads((tmp_path / "a.json").read_text())["provenance"]["date"] == "1970-01-02"


def test_a_bar_passes_everything_through_and_asks_how_it_goes_after_each_item(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    asked = []
    assert list(bar("test")([1, 2, 3], lambda: asked.append(1) or "well")) == [1, 2, 3]
    assert len(asked) == 3


def test_every_setting_is_tried_at_every_depth_as_long_as_there_are_not_too_many():
    """Shapes times depths: at the limit all, one more leaves the other depths the given shape alone."""
    from steelyard.fusion import parse_strategy
    from steelyard.systems import find_system
    from steelyard_eval.tune import tuned_parameters as module

    config = find_system("plain").config().with_strategy(parse_strategy("rrf(fts, bm25, k=60)"))
    every, places = len(module.shapes(config.strategy)), len(module.depths(config))
    assert len(module.settings(config, every * places)) == every * places
    assert len(module.settings(config, every * places - 1)) == every + places - 1


def test_what_a_data_set_cannot_supply_of_a_system_is_said(tmp_path):
    """Without abstracts Cortex-Mem is its last resort alone; the file under keep has that, so it must be told."""
    for name, rows in {
        "corpus.jsonl": [{"id": f"e{at}", "text": f"word{at} token{at % 2} other"} for at in range(4)],
        "queries.jsonl": [{"id": f"q{at}", "text": f"word{at} other"} for at in range(3)],
    }.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "qrels.txt").write_text("q0 0 e0 1\nq1 0 e1 1\nq2 0 e2 1\n")
    (tmp_path / "dataset.json").write_text(json.dumps({"name": "flat"}))
    ended = CliRunner().invoke(
        main, ["tune", str(tmp_path), "--system", "cortex_mem", "--out", str(tmp_path / "w.json")]
    )

    assert ended.exit_code == 0, ended.output
    assert "cortex_mem runs as" in ended.stderr
    assert f"without l0, l1, which {tmp_path.name} cannot supply" in " ".join(ended.stderr.split())
