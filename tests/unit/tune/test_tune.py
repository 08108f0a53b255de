"""Tuning: what is varied, what is chosen, the proof, and the file it writes."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from search_forms import form_of, measure

from steelyard.config import SearchConfig
from steelyard.errors import ConfigError
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.cli import main
from steelyard_eval.datasets import load, tuning_queries
from steelyard_eval.demonstration import starter
from steelyard_eval.kernel import Form, Kernel
from steelyard_eval.measures.metrics import Judgments, evaluate
from steelyard_eval.progress import bar
from steelyard_eval.recording.workspace import Workspace, judged
from steelyard_eval.tune import choice as choices
from steelyard_eval.tune import tune, tuner, verdict
from steelyard_eval.tune.candidate import Candidate
from steelyard_eval.tune.choice import Chooser, standard_error
from steelyard_eval.tune.settings import depths, refuse_fixed, settings, shapes
from steelyard_eval.tune.task import prepare
from steelyard_eval.tune.tuner import proven
from steelyard_eval.tune.verdict import folds, out_of_fold

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
        ("layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5)", 5),
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


def test_a_data_set_with_nothing_to_hold_out_is_refused(space):
    lonely = replace(
        space.dataset,
        queries=tuple(replace(q, split="", group="one") for q in space.dataset.queries),
    )
    with pytest.raises(ConfigError, match="judged queries to tune on and to hold out"):
        tune(lonely, strategy=MIXTURE, workspace=space)


# The choice


def test_the_standard_error_is_that_of_independent_queries():
    # sample variance (1 + 1 + 1 + 1) / 3; of the mean of four: sqrt(4 / 3 / 4)
    assert standard_error(np.array([1.0, -1.0, 1.0, -1.0]), np.arange(4)) == pytest.approx(np.sqrt(1 / 3))


def test_the_standard_error_adds_up_groups_before_it_squares():
    # mean 1; away from it by group: (1 - 1) + (3 - 1) = 2 and (0 - 1) + (0 - 1) = -2; sqrt(2 * (4 + 4)) / 4 = 1
    assert standard_error(np.array([1.0, 3.0, 0.0, 0.0]), np.array([7, 7, 9, 9])) == pytest.approx(1.0)


def test_a_single_group_proves_nothing():
    assert standard_error(np.array([1.0, 0.5, 0.7]), np.zeros(3, dtype=np.int64)) == np.inf


P1 = measure("P@1")


def turns(*thresholds):
    """A form whose queries turn at a share t of the first weight: right above t, or below it where t is negative.

    Two rows each: one scores by the first column, the other by the second, so they change places at t.
    """
    first, second, grades = [], [], []
    for t in thresholds:
        first += [1 - abs(t), 0.0]  # share * (1 - t) > (1 - share) * t exactly where share > t
        second += [0.0, abs(t)]
        grades += [int(t > 0), int(t < 0)]
    return form_of([first, second], grades, [2] * len(thresholds))


def chooser_of(*forms, weights=(0.3, 0.7), groups=None):
    """A chooser among forms over two signals; the k of their strategies is 60, 61, ..."""
    made = []
    for at, form in enumerate(forms):
        strategy = parse_strategy(f"rrf({weights[0]}*fts, {weights[1]}*vector, k={60 + at})")
        config = find_system("plain").config(10).with_strategy(strategy)
        own = replace(form, weights=np.array(weights), slot=np.arange(2))
        made.append(Candidate(config, own, P1))
    return Chooser(made, np.arange(forms[0].queries) if groups is None else np.array(groups), 0)


def chosen_by(chooser):
    return chooser.choose(np.ones(len(chooser.units), dtype=bool))


def share(config):
    weights = config.strategy.weights
    return weights[0] / sum(weights)


# 20 queries at weights 0.3 and 0.7: 10 turn right above 0.4, two above 0.6, one turns wrong there, 7 are always
# right. Means: 8/20 now, 18/20 above 0.4, 19/20 above 0.6. The last two differ by 1, 1, -1 and 17 times 0: mean
# 0.05, standard error sqrt((3 - 20 * 0.05^2) * 20 / 19) / 20 = 0.0881, so 0.57 of one.
LADDER = (*[0.4] * 10, 0.6, 0.6, -0.6, *[0.01] * 7)


def test_the_optimum_is_taken_where_nothing_nearer_ties(monkeypatch):
    monkeypatch.setattr(choices, "TIED", 0.5)
    found = chosen_by(chooser_of(turns(*LADDER)))

    assert (found.best, found.value) == (pytest.approx(19 / 20), pytest.approx(19 / 20))
    assert share(found.config) == pytest.approx(0.8)  # amid 0.6 .. 1
    assert found.plateau == (pytest.approx(0.6), pytest.approx(1.0))
    assert found.certificate == "exact"


def test_among_weights_that_tie_with_the_optimum_the_nearest_are_taken_amid_their_plateau(monkeypatch):
    monkeypatch.setattr(choices, "TIED", 0.6)
    found = chosen_by(chooser_of(turns(*LADDER)))

    assert found.value == pytest.approx(18 / 20)
    assert share(found.config) == pytest.approx(0.5)  # amid 0.4 .. 0.6
    assert found.plateau == (pytest.approx(0.4), pytest.approx(0.6))
    assert share(found.optimum) == pytest.approx(0.8)


def test_the_current_setting_stays_until_the_gain_is_proven(monkeypatch):
    # 11 more right of 20: mean 0.55; 12 differences of 1, one of -1, 7 of 0: sqrt((13 - 20 * 0.55^2)
    # * 20 / 19) / 20 = 0.1352, so 4.07 standard errors
    monkeypatch.setattr(choices, "SWITCH", 4.0)
    assert share(chosen_by(chooser_of(turns(*LADDER))).config) == pytest.approx(0.8)

    monkeypatch.setattr(choices, "SWITCH", 4.1)
    found = chosen_by(chooser_of(turns(*LADDER)))
    assert found.config.strategy.weights == (0.3, 0.7)
    assert found.value == pytest.approx(8 / 20)
    assert found.plateau == (pytest.approx(0.01), pytest.approx(0.4))


def test_a_gain_in_one_group_is_a_single_observation(monkeypatch):
    monkeypatch.setattr(choices, "SWITCH", 3.0)
    groups = [*[0] * 10, *range(1, 11)]  # the ten queries that gain share a cause
    # Mean 0.55. Away from it: 10 * 0.45 in the group, 0.45 twice, -1.55, and -0.55 seven times: squares 25.175;
    # sqrt(25.175 * 11 / 10) / 20 = 0.263, so 2.1 standard errors where single queries make 4.07.
    spread = chosen_by(chooser_of(turns(*LADDER))).config
    joined = chosen_by(chooser_of(turns(*LADDER), groups=groups)).config

    assert share(spread) == pytest.approx(0.8)
    assert share(joined) == pytest.approx(0.3)


def test_of_shapes_that_tie_the_nearest_to_the_current_one_is_chosen(monkeypatch):
    # The k = 62 form is best by one query in 20 net (0.58 standard errors, as above), k = 61 next.
    current, better, best = turns(*[0.4] * 20), turns(*LADDER[:10], *[0.01] * 9, -0.01), turns(*[0.01] * 20)
    monkeypatch.setattr(choices, "TIED", 1.1)
    assert "k=60" in str(chosen_by(chooser_of(current, better, best)).config.strategy)
    dull = turns(*[-0.01] * 10, *[0.4] * 10)  # at most 10 of 20
    assert "k=61" in str(chosen_by(chooser_of(dull, better, best)).config.strategy)
    monkeypatch.setattr(choices, "TIED", 0.0)
    assert "k=62" in str(chosen_by(chooser_of(dull, better, best)).config.strategy)


def test_a_signal_that_is_the_same_for_all_keeps_its_weight_and_the_rest_its_sum():
    columns = turns(*[0.6] * 20)
    form = replace(
        columns,
        columns=np.vstack([columns.columns, np.full(len(columns), 0.7)]),
        weights=np.array([0.1, 0.3, 0.6]),
        branch=np.zeros(3, dtype=np.int64),
        labels=("a", "b", "c"),
        slot=np.arange(3),
    )
    config = (
        find_system("plain")
        .config(10)
        .with_strategy(parse_strategy("weighted_sum(0.1*fts, 0.3*vector, 0.6*importance)"))
    )
    found = chosen_by(Chooser([Candidate(config, form, P1)], np.arange(20), 0))

    assert found.certificate == "exact"  # two weights are left to search
    assert found.config.strategy.weights == pytest.approx((0.32, 0.08, 0.6))  # 0.8 and 0.2 of 0.4
    assert found.plateau == (pytest.approx(0.24), pytest.approx(0.4))  # 0.6 .. 1 of 0.4


# Proof


def test_what_is_chosen_for_a_fold_does_not_depend_on_the_labels_of_that_fold(mixed):
    fold = np.concatenate((folds(mixed.tuned_on, 0), np.full(len(mixed.held_out), -1)))
    left_out = fold == 2
    rest = (fold >= 0) & ~left_out
    shuffled = dict(mixed.dataset.qrels)
    names = [q.id for q, out in zip(mixed.queries, left_out, strict=True) if out]
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        shuffled[name] = mixed.dataset.qrels[other]
    judgments = Judgments.of(shuffled, mixed.table.queries, mixed.table.entries)
    other = replace(mixed, judgments=judgments)

    assert not np.array_equal(other.values(mixed.config), mixed.values(mixed.config))
    assert other.chooser.choose(rest) == mixed.chooser.choose(rest)


def test_queries_of_one_group_share_a_fold(mixed):
    of = {}
    for query, fold in zip(mixed.tuned_on, folds(mixed.tuned_on, 3), strict=True):
        of.setdefault(query.group or query.id, set()).add(int(fold))
    assert {len(own) for own in of.values()} == {1}
    assert set().union(*of.values()) == set(range(5))


def test_out_of_fold_every_query_has_the_value_of_the_setting_chosen_without_its_fold(mixed):
    found = out_of_fold(mixed)
    fold = folds(mixed.tuned_on, 0)
    inside = np.arange(len(mixed.queries)) < len(mixed.tuned_on)
    for left_out in range(5):
        rest = inside.copy()
        rest[: len(fold)] &= fold != left_out
        values = mixed.values(mixed.chooser.choose(rest).config)[: len(fold)]
        assert found.values[fold == left_out].tolist() == values[fold == left_out].tolist()
    assert found.folds == 5


def leaders(task, setting, grid, count=3):
    """Which weights of float64[W, S] are best by the kernel, in float32: replaying only these takes a 30th."""
    form = Form.of(task.table, setting, setting.strategy, task.judgments)
    values = Kernel.of(form, [task.measure]).values(form.spread(grid))[task.measure]
    return np.argsort(-values[:, task.inside].mean(axis=1), kind="stable")[:count]


@pytest.mark.parametrize(
    "strategy",
    [
        MIXTURE,
        "rrf(fts, vector, k=60)",
        "tiered(fts, min_results=10, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))",
    ],
)
def test_the_optimum_is_never_below_the_best_of_a_grid_of_hundredths(space, strategy):
    task = task_of(space, strategy)
    found = task.chooser.choose(task.inside)

    best = 0.0
    for setting in settings(task.config):
        size = len(setting.strategy.weights)
        grid = np.array([[step, 1 - step][:size] for step in (np.arange(101) / 100).tolist()])
        for weights in grid[leaders(task, setting, grid)]:
            config = setting.with_strategy(setting.strategy.with_weights(weights.tolist()))
            best = max(best, float(task.values(config)[task.inside].mean()))
    assert found.best >= best - 1e-12
    assert float(task.values(found.optimum)[task.inside].mean()) == pytest.approx(found.best, abs=1e-12)


def test_ship_means_that_the_held_out_gain_is_proven_and_the_file_holds_what_was_tuned(space):
    # Nearly all weight on importance, which says nothing of the query: any weight on keywords is better.
    start = "weighted_sum(0.001*fts, 0.999*importance)"
    found = tune(space.dataset, "plain", start, workspace=space)
    record = found.to_json()

    assert record["verdict"] == "ship"
    assert record["gain"]["low"] > 0
    assert record["gain"]["p"] < 0.05
    assert record["strategy"] == record["tuned"] == str(found.config.strategy)
    assert record["depths"]["strategy"] == record["depths"]["tuned"] == found.config.depths
    assert record["optimism"] == pytest.approx(record["in_sample"]["value"] - record["out_of_fold"]["value"])
    for part in ("in_sample", "out_of_fold", "holdout", "baseline", "plateau"):
        assert found.config.provenance[part] == record[part]


def test_under_keep_default_the_file_vouches_for_the_current_strategy(space):
    found = tune(space.dataset, "plain", MIXTURE, workspace=space)
    vouched = found.config.provenance

    assert vouched["verdict"] == "keep-default"
    assert str(found.config.strategy) == MIXTURE
    assert vouched["out_of_fold"] == vouched["in_sample"]  # nothing was chosen, so every fold gives the same
    assert vouched["optimism"] == 0.0
    assert vouched["holdout"] == vouched["baseline"] == found.record["baseline"]
    assert vouched["plateau"] == []


def test_one_held_out_query_proves_nothing(space):
    # The interval of one query is a point; the smallest p of a sign-flip test on one query is 1.
    first = next(q for q in space.dataset.queries if q.id == "q01")
    few = replace(
        space.dataset,
        queries=tuple(replace(q, split="test" if q is first else "train") for q in space.dataset.queries),
    )
    found = tune(few, "plain", "weighted_sum(0*bm25, 1*vector, normalize=minmax)", workspace=space)

    assert found.record["holdout"]["queries"] == 1
    assert found.record["gain"]["p"] == 1.0
    assert found.record["verdict"] == "keep-default"


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
    choice = task.chooser.choose(task.inside)
    for config in (choice.config, choice.optimum, deep):
        config.save(tmp_path / "search-weights.json")
        value = live_mean(space, SearchConfig.load(tmp_path / "search-weights.json"))
        assert value == pytest.approx(float(task.values(config)[task.inside].mean()), abs=1e-12)
    assert live_mean(space, choice.config) == pytest.approx(choice.value, abs=1e-9)


def live_mean(space, config, metric="nDCG@10"):
    """The objective of live search, query by query, on the tuning queries."""
    queries = judged(space.dataset, tuning_queries(space.dataset, 0)[0])
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
    tuned = mixed.chooser.choose(mixed.inside).config
    record = proven(mixed).to_json()
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


# Ctrl-C


def breaking(at):
    """A progress wrapper that is interrupted before item `at`; it notes the words on how it goes."""

    def wrap(items, status=None):
        for count, item in enumerate(items):
            if count == at:
                raise KeyboardInterrupt
            yield item
            if status is not None:
                said.append(status())

    said = []
    wrap.said = said
    return wrap


def test_a_search_broken_off_gives_the_best_of_what_was_searched(mixed):
    progress = breaking(2)
    found = mixed.chooser.choose(mixed.inside, progress)

    best = max(mixed.candidate(one).search(mixed.inside, 0).value for one in settings(mixed.config)[:2])
    assert not found.whole
    assert found.best == best
    assert progress.said[-1] == f"best {best:.4f}"


def test_a_search_broken_off_before_anything_was_found_gives_nothing(mixed):
    with pytest.raises(KeyboardInterrupt):
        mixed.chooser.choose(mixed.inside, breaking(0))


@pytest.mark.parametrize(("module", "at"), [(tuner, 2), (verdict, 3)])
def test_ctrl_c_in_search_or_proof_writes_the_current_strategy_and_ends_with_130(
    tmp_path, monkeypatch, module, at
):
    monkeypatch.setattr(module, "bar", lambda label: breaking(at))
    out = tmp_path / "search-weights.json"
    start = "weighted_sum(1*bm25, 0*vector, normalize=minmax)"
    ended = CliRunner().invoke(main, ["tune", str(starter()), "--strategy", start, "--out", str(out), "--json"])

    assert ended.exit_code == 130
    record = json.loads(ended.stdout)
    assert record["whole"] is False
    assert record["verdict"] == "keep-default"
    assert record["out_of_fold"] is None
    assert record["optimism"] is None
    assert record["in_sample"]["value"] > record["baseline"]["value"]  # what was found is told all the same
    config = SearchConfig.load(out)
    assert config.strategy == parse_strategy(start)
    assert config.provenance["folds"] == 0
    assert "interrupted" in ended.stderr


def test_a_bar_passes_everything_through_and_asks_how_it_goes_after_each_item():
    asked = []
    assert list(bar("test")([1, 2, 3], lambda: asked.append(1) or "well")) == [1, 2, 3]
    assert len(asked) == 3


def test_every_setting_is_tried_at_every_depth_as_long_as_there_are_not_too_many(monkeypatch):
    """Shapes times depths: at the limit all, one more leaves the other depths the given shape alone."""
    from steelyard.fusion import parse_strategy
    from steelyard.systems import find_system
    from steelyard_eval.tune import settings as module

    config = find_system("plain").config().with_strategy(parse_strategy("rrf(fts, bm25, k=60)"))
    monkeypatch.setattr(module, "MOST", 10_000)
    own = module.shapes(config.strategy)
    every, places = len(own), len(module.depths(config))
    assert len(module.settings(config)) == every * places
    monkeypatch.setattr(module, "shapes", lambda strategy: own)
    monkeypatch.setattr(module, "MOST", every * places)
    assert len(module.settings(config)) == every * places
    monkeypatch.setattr(module, "MOST", every * places - 1)
    assert len(module.settings(config)) == every + places - 1
