"""Tuning: what is varied, what is chosen, the proof, and what is written of it."""

from dataclasses import replace

import numpy as np
import pytest
from shared import tabled

from steelyard import SearchConfig, find_system, parse_strategy
from steelyard.base.errors import ConfigError
from steelyard_eval.candidates.families import Source, read_only
from steelyard_eval.candidates.settings import depths, round_weights, settings, shapes, simplify_config
from steelyard_eval.choose.recommend import recommend
from steelyard_eval.common.console import brief as shown
from steelyard_eval.datasets.groups import judged
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace

USELESS = "weighted_sum(0.001*fts, 0.999*importance)"
"""Nearly all weight on importance, which says nothing of the query: any weight on keywords is better."""


@pytest.fixture(scope="module")
def space(dataset):
    return Workspace.open(dataset)


class TestShapes:
    @tabled
    def test_every_discrete_parameter_is_varied_and_the_current_one_comes_first(self, text, count):
        found = shapes(parse_strategy(text))
        assert len(set(found)) == len(found) == count
        assert found[0] == parse_strategy(text)

    def test_too_many_shapes_together_are_varied_one_parameter_at_a_time(self):
        inner = "rrf(fts, vector, k=60, bonus=times(0.1))"  # 35 each, 35 * 35 * 6 together
        found = shapes(parse_strategy(f"tiered({inner}, min_results=3, then={inner})"))
        # 34 others of either sum, 5 other counts, the current one
        assert len(found) == 1 + 34 + 34 + 5

    def test_depths_are_halved_and_doubled_together_and_never_below_the_limit(self):
        config = find_system("plain").config(10).with_strategy(parse_strategy("rrf(fts, vector)"))
        here, half, double = depths(config)
        assert here == config
        assert (half.depths["fts"], double.depths["fts"]) == (50, 200)
        assert double.depths["l0"] is None  # layers score everything in scope
        assert [one.depths["fts"] for one in depths(find_system("plain").config(80))] == [100, 80, 200]
        assert [one.depths["fts"] for one in depths(find_system("echovault").config(10))] == [20, 10, 40]

    def test_a_strategy_without_weights_and_parameters_is_refused(self, space):
        source = Source.live(space)
        with pytest.raises(ConfigError, match="nothing to tune"):
            read_only("fts", 10, source, False)
        assert read_only("tiered(fts, min_results=3, then=vector)", 10, source, False).row.config.limit == 10


def only(space, strategy, dataset=None, **options):
    held = space if dataset is None else replace(space, dataset=dataset)
    return recommend(held.dataset, only=strategy, workspace=held, timed=False, **options)


@pytest.fixture(scope="module")
def shipped(space):
    return only(space, USELESS)


class TestOneStrategy:
    def test_weights_alone_move_where_settings_are_to_stay(self, space, shipped):
        started = find_system("plain").config(10, space.model).with_strategy(parse_strategy(USELESS))
        fixed = only(space, USELESS, weights_only=True)
        assert fixed.result.provenance.candidates < shipped.result.provenance.candidates
        assert fixed.result.choice.strategy != USELESS
        assert fixed.config.strategy.with_weights(started.strategy.weights) == started.strategy
        assert fixed.config.depths == started.depths
        assert "--weights-only" in fixed.result.provenance.command

    def test_ship_means_that_the_gain_is_proven_and_the_file_holds_what_was_chosen(self, shipped):
        result, provenance = shipped.result, shipped.config.provenance
        decision, promise = result.decision, provenance["promise"]
        assert decision.verdict == "ship"
        assert result.answer.formula == result.choice.strategy == str(shipped.config.strategy)
        assert promise["value"] == decision.gain.mean > 0
        assert promise["harm"] == decision.worse < 0.05
        assert shipped.attempt is None
        assert provenance["in_sample"]["value"] == result.choice.means["nDCG@10"].mean
        (curve,) = [table for table in result.tables if table.key == "curve"]
        assert provenance["plateau"] == [curve.facts["plateau_low"], curve.facts["plateau_high"]]

    def test_under_try_two_files_are_named_by_what_they_hold_and_what_is_in_use_stays(self, space, tmp_path):
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

    def test_the_curve_follows_the_first_weight_of_what_was_tuned_and_says_where_it_stands_today(self, shipped):
        (curve,) = [table for table in shipped.result.tables if table.key == "curve"]
        steps = {weight: value for weight, _, _, value in curve.rows}
        first = shipped.config.strategy.weights[0]
        at = min(steps, key=lambda weight: abs(weight - first))
        assert list(steps) == sorted(steps)
        assert (curve.facts["signal"], curve.facts["chosen"]) == ("fts", pytest.approx(first))
        assert curve.facts["current"] == pytest.approx(0.001 * sum(shipped.config.strategy.weights))
        assert steps[at] == pytest.approx(shipped.result.choice.means["nDCG@10"].mean, abs=1e-3)

    def test_every_setting_is_tried_at_every_depth_as_long_as_there_are_not_too_many(self):
        """Shapes times depths: at the limit all, one more leaves the other depths the given shape alone."""
        config = find_system("plain").config().with_strategy(parse_strategy("rrf(fts, bm25, k=60)"))
        every, places = len(shapes(config.strategy)), len(depths(config))
        assert len(settings(config, every * places)) == every * places
        assert len(settings(config, every * places - 1)) == every + places - 1


# What is written of a choice: few digits, no signal whose facts the data lacks, the limit asked for


@pytest.mark.parametrize(("moves", "written"), [(0, "0.12*bm25, 0.88*vector"), (1, "0.123*bm25, 0.877*vector")])
def test_weights_have_two_digits_or_as_many_as_metrics_need(moves, written):
    long = find_system("plain").config(10)
    long = long.with_strategy(parse_strategy("weighted_sum(0.123456789*bm25, 0.876543211*vector, normalize=max)"))
    found = round_weights(long, lambda config: np.array([moves * config.strategy.weights[0]]))
    assert str(found.strategy) == f"weighted_sum({written}, normalize=max)"


def test_a_half_life_in_four_digits_ranks_alike(space):
    """What reports print of MoltNet's 0.99 an hour."""
    config = find_system("moltnet").config(10, space.model)
    weighted = str(config.strategy).replace("0*recency", "0.3*recency")
    table = record(space, space.dataset.queries, [config])
    configs = (config.with_strategy(parse_strategy(text)) for text in (weighted, shown(weighted)))
    one, other = (replay(table, config) for config in configs)
    assert "68.97h" in shown(weighted)
    assert one.ranked.lists() == other.ranked.lists()


@pytest.fixture(scope="module")
def told_space(dataset):
    """Notes that all have one severity and no domain; no query is of a domain."""
    entries = tuple(replace(e, severity="warning", domain="", kind="") for e in dataset.entries)
    return Workspace.open(replace(dataset, entries=entries), "lsa")


@tabled
def test_what_hardly_matters_goes_where_no_metric_moves(told_space, system, strategy, moved_by, left):
    """What moves is said here, as the place of Soleri's memories at a fixed 0.5 would move by severity."""
    config = find_system(system).config(10, told_space.model)
    config = config.with_strategy(parse_strategy(strategy)) if strategy else config
    table = record(told_space, judged(told_space.dataset, told_space.dataset.queries), [config])
    made = simplify_config(table, config, lambda one: np.array([float(moved_by in one.strategy.signals)]))
    assert made.strategy.signals == {*left}
    assert len(left) > 1 or str(made.strategy) == "vector"  # and not a sum of one


def test_a_search_by_what_was_chosen_returns_the_limit(told_space):
    """Soleri's document shows all of a small vault where keywords find fewer than 50, which its program does."""
    query = told_space.dataset.queries[0]
    found = recommend(told_space.dataset, only="soleri", workspace=told_space, timed=False)
    asked = [find_system("soleri").config(10), found.attempt or found.config]
    chosen = set(parse_strategy(found.result.choice.strategy).signals)
    assert {"severity", "domain"}.isdisjoint(chosen)  # all notes are equal in both
    assert {"tfidf", "cosine"} <= chosen
    documented, chosen = (len(told_space.searcher(config).search(query).hits) for config in asked)
    assert documented > 10
    assert chosen == 10
