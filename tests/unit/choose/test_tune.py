"""Tuning: what is varied, what is chosen, the proof, and the file it writes."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from search_forms import measure

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.candidates.settings import depths, settings, shapes
from steelyard_eval.candidates.source import Source, read_only
from steelyard_eval.choose.recommend import recommend
from steelyard_eval.cli.main import main
from steelyard_eval.common.console import bar
from steelyard_eval.datasets import load, tuning_queries
from steelyard_eval.datasets.groups import judged
from steelyard_eval.datasets.labels import JudgedPool
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.measures.metrics import Judgments, evaluate
from steelyard_eval.recording.workspace import Workspace

USELESS = "weighted_sum(0.001*fts, 0.999*importance)"
"""Nearly all weight on importance, which says nothing of the query: any weight on keywords is better."""
MIXTURE = "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)"


@pytest.fixture(scope="module")
def space():
    return Workspace.open(load(starter()))


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


def test_a_strategy_without_weights_and_parameters_is_refused(space):
    source = Source.live(space)
    with pytest.raises(ConfigError, match="nothing to tune"):
        read_only("fts", 10, source, False)
    assert read_only("tiered(fts, min_results=3, then=vector)", 10, source, False).row.config.limit == 10


def only(space, strategy=MIXTURE, dataset=None, **options):
    held = space if dataset is None else replace(space, dataset=dataset)
    return recommend(held.dataset, only=strategy, workspace=held, timed=False, **options)


@pytest.fixture(scope="module")
def shipped(space):
    return only(space, USELESS)


def whole(dataset):
    return replace(dataset, queries=tuple(replace(query, split="") for query in dataset.split("all")))


def test_a_data_set_with_one_judged_query_is_refused(space):
    first = space.dataset.queries[0].id
    lonely = replace(space.dataset, qrels={first: space.dataset.qrels[first]})
    with pytest.raises(ConfigError, match="two judged queries"):
        only(space, dataset=lonely)


# One strategy


def test_one_strategy_is_tuned_on_train_where_there_is_a_split_and_else_on_all(space):
    names = [query.id for query in space.dataset.split("all")]
    parted = replace(
        space.dataset,
        queries=tuple(
            replace(q, split="test" if q.id in names[:20] else "train") for q in space.dataset.split("all")
        ),
    )
    told = [only(space, "echovault", own).result for own in (parted, whole(space.dataset))]

    assert [(one.provenance.data.judged, one.provenance.split) for one in told] == [(39, "train"), (59, "all")]
    # 13 queries find fewer than 3 entries by keywords at a pool of 20 (the demo counts the same).
    assert told[1].row("echovault").cost.embedded == 13


def test_no_other_family_is_tried_and_today_is_the_strategy_as_it_is_written(shipped):
    result = shipped.result

    assert result.provenance.command[:2] == ["steelyard", "tune"]
    assert result.provenance.command[3] == result.row(result.provenance.baseline).strategy == USELESS
    assert {row.label for row in result.rows} == {USELESS, f"{USELESS}, tuned"}
    assert parse_strategy(result.choice.strategy).signals <= {"fts", "importance"}


def test_what_is_used_today_may_be_another(space):
    result = only(space, "echovault", current="bm25").result

    assert (result.provenance.command[3], result.provenance.baseline) == ("echovault", "bm25")
    assert {row.label for row in result.rows} == {"bm25", "echovault", "echovault, tuned"}


def test_weights_alone_move_where_settings_are_to_stay(space, shipped):
    started = find_system("plain").config(10, space.model).with_strategy(parse_strategy(USELESS))
    fixed = only(space, USELESS, weights_only=True)

    assert fixed.result.provenance.candidates < shipped.result.provenance.candidates
    assert fixed.result.choice.strategy != USELESS
    assert fixed.config.strategy.with_weights(started.strategy.weights) == started.strategy
    assert fixed.config.depths == started.depths


def test_ship_means_that_the_gain_is_proven_and_the_file_holds_what_was_chosen(shipped):
    found, result = shipped, shipped.result
    decision, promise = result.decision, shipped.config.provenance["promise"]

    assert decision.verdict == "ship"
    assert result.answer.formula == result.choice.strategy == str(found.config.strategy)
    assert promise["value"] == decision.gain.mean > 0
    assert promise["harm"] == decision.worse < 0.05
    assert found.attempt is None
    assert found.config.provenance["in_sample"]["value"] == result.choice.means["nDCG@10"].mean
    (curve,) = [table for table in result.tables if table.key == "curve"]
    assert found.config.provenance["plateau"] == [curve.facts["plateau_low"], curve.facts["plateau_high"]]


@pytest.mark.parametrize(
    "about",
    [{"sampled": "duel"}, {"pool": JudgedPool(("vector",), 10)}],
    ids=["duel", "pool"],
)
def test_what_chosen_labels_prove_is_worth_a_try(space, about):
    found = only(space, USELESS, replace(space.dataset, **about))

    decision = found.result.decision
    assert decision.verdict == "try"
    assert decision.blocker.key == ("pool_misses" if "pool" in about else "chosen_queries")
    assert str(found.config.strategy) == USELESS
    assert str(found.attempt.strategy) == found.result.choice.strategy


def test_under_keep_the_file_has_the_strategy_as_it_is_written(space):
    found = only(space, MIXTURE)

    assert found.result.decision.verdict == "keep"
    assert found.result.choice is None
    assert str(found.config.strategy) == MIXTURE
    assert found.config.provenance["verdict"] == "keep"
    assert found.config.provenance["promise"]["value"] == 0.0


def test_under_try_two_files_are_named_by_what_they_hold_and_what_is_in_use_stays(space, tmp_path):
    # FewLabelCandidates judged queries prove nothing, however large the gain.
    kept = [q.id for q in space.dataset.queries][:6]
    few = replace(space.dataset, qrels={name: space.dataset.qrels[name] for name in kept})
    out = tmp_path / "w.json"
    found = only(space, "weighted_sum(0*bm25, 1*importance, normalize=minmax)", few)
    out.write_text("in use")
    files = found.save_weights(out)

    assert found.result.decision.verdict == "try"
    assert files == [tmp_path / "w.current.json", tmp_path / "w.try.json"]
    assert out.read_text() == "in use"
    assert any(line.startswith(f"{out}: unchanged") for line in found.saved(out, few)[1])
    assert SearchConfig.load(files[0]).strategy.weights == (0, 1)
    assert str(SearchConfig.load(files[1]).strategy) == found.result.choice.strategy
    out.unlink()
    with pytest.raises(ConfigError, match=r"w\.try\.json"):
        SearchConfig.load(out)
    assert replace(found, attempt=None).save_weights(out) == [out]
    assert SearchConfig.load(out).strategy.weights == (0, 1)
    assert not any(file.exists() for file in files)


def test_live_search_under_the_tuned_setting_has_the_value_that_is_reported(space, shipped, tmp_path):
    shipped.config.save(tmp_path / "search-weights.json")
    value = live_mean(space, SearchConfig.load(tmp_path / "search-weights.json"))
    assert value == pytest.approx(shipped.result.choice.means["nDCG@10"].mean, abs=1e-12)


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


def test_the_curve_follows_the_first_weight_of_what_was_tuned_and_says_where_it_stands_today(space, shipped):
    found = shipped
    (curve,) = [table for table in found.result.tables if table.key == "curve"]
    steps = {weight: value for weight, _, _, value in curve.rows}
    first = found.config.strategy.weights[0]
    at = min(steps, key=lambda weight: abs(weight - first))

    assert list(steps) == sorted(steps)
    assert (curve.facts["signal"], curve.facts["chosen"]) == ("fts", pytest.approx(first))
    assert curve.facts["current"] == pytest.approx(0.001 * sum(found.config.strategy.weights))
    near = found.config.strategy.with_weights([at, sum(found.config.strategy.weights) - at])
    assert steps[at] == pytest.approx(live_mean(space, found.config.with_strategy(near)), abs=1e-12)


def test_a_bar_passes_everything_through(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert list(bar("test")([1, 2, 3])) == [1, 2, 3]


def test_every_setting_is_tried_at_every_depth_as_long_as_there_are_not_too_many():
    """Shapes times depths: at the limit all, one more leaves the other depths the given shape alone."""
    from steelyard.fusion import parse_strategy
    from steelyard.systems import find_system
    from steelyard_eval.candidates import settings as module

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
    ended = CliRunner().invoke(main, ["tune", str(tmp_path), "cortex_mem", "--out", str(tmp_path / "w.json")])

    assert ended.exit_code == 0, ended.output
    assert "cortex_mem runs as" in ended.stderr
    assert "without l0, l1" in " ".join(ended.stderr.split())
