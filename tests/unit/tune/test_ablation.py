"""The ablation: signals that are planted or say nothing, curves of weights, fewer labels."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.datasets.starter import starter
from steelyard_eval.decide.rule import best
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.tune import ablation as module
from steelyard_eval.tune import tuner
from steelyard_eval.tune.ablation import ablation
from steelyard_eval.tune.task import prepare
from steelyard_eval.tune.tuning_document import TuningDecision

# fts finds and orders; importance is the same for every entry of this task; cosine is planted.
STRATEGY = "weighted_sum(0.6*fts, 0.2*importance, 0.2*cosine, normalize=minmax)"


def perfect(table, judgments):
    """float64[N]: the grade of every row, which no ranking can beat."""
    grade = judgments.grades(table.query.astype(np.int64), table.entry)
    return np.maximum(grade, 0).astype(np.float64)


@pytest.fixture(scope="module")
def planted():
    """The starter set, with importance 5 everywhere and the judgments themselves as the cosine."""
    dataset = load(starter())
    dataset = replace(dataset, entries=tuple(replace(entry, importance=5) for entry in dataset.entries))
    task = prepare(dataset, "plain", STRATEGY, "nDCG@10", None, "auto", 0, Workspace.open(dataset))
    columns = dict(task.table.columns) | {"cosine": perfect(task.table, task.judgments)}
    known = replace(task.recordings[0], table=replace(task.table, columns=columns))
    return replace(task, recordings=(known,))


def judged_of(task):
    return TuningDecision(task)


@pytest.fixture(scope="module")
def found(planted):
    return ablation(planted, judged_of(planted))


def test_a_signal_that_is_the_same_for_all_is_worth_nothing(found):
    (row,) = [row for row in found["signals"] if row["signal"] == "importance"]

    assert row["in_sample"] == pytest.approx(0.0, abs=1e-12)
    assert row["held_out"]["value"] == pytest.approx(0.0, abs=1e-12)
    assert row["held_out"]["p"] == 1.0


def test_a_planted_signal_is_worth_the_way_from_keywords_to_the_best_order_of_what_they_find(planted, found):
    (row,) = [row for row in found["signals"] if row["signal"] == "cosine"]

    # Without it the order is that of fts, whatever the normalisation, as importance orders nothing (rank apart,
    # which breaks its ties by id: so at most that). With it, cosine alone gives the best order there is.
    alone = {
        name: planted.config.strategy.with_weights(w) for name, w in (("fts", (1, 0, 0)), ("best", (0, 0, 1)))
    }
    value = {name: planted.values(planted.config.with_strategy(one)) for name, one in alone.items()}
    inside = planted.inside
    assert row["in_sample"] == pytest.approx((value["best"] - value["fts"])[inside].mean(), abs=0.02)
    assert row["in_sample"] > 0.1
    assert row["held_out"]["low"] > 0
    assert row["held_out"]["p"] < 0.05
    assert "cosine" not in row["strategy"]


def test_the_only_finder_cannot_be_left_out(found):
    assert [row["signal"] for row in found["signals"]] == ["cosine", "importance"]


def test_curves_have_the_values_of_replay_at_their_ends_and_between(planted, found):
    tuned = judged_of(planted).picked
    names = [row["signal"] for row in found["weights"]]
    assert len(names) == 2  # importance orders nothing, so what is chosen is written without it

    def value(fts, cosine):
        strategy = tuned.strategy.with_weights([fts, cosine])
        return float(planted.values(tuned.with_strategy(strategy))[planted.inside].mean())

    first = found["weights"][0]
    assert first["without"] == pytest.approx(value(0, 0.8), abs=1e-12)
    assert first["alone"] == pytest.approx(value(0.8, 0), abs=1e-12)
    assert first["best"] == pytest.approx(value(first["at"], 0.8 - first["at"]), abs=1e-12)
    second = found["weights"][1]
    assert second["best"] == pytest.approx(value(0.8 - second["at"], second["at"]), abs=1e-12)
    assert first["at"] + second["at"] == pytest.approx(0.8)  # one line, followed from both ends
    for point in first["curve"][:: max(1, len(first["curve"]) // 7)]:
        assert point["value"] == pytest.approx(value(point["weight"], 0.8 - point["weight"]), abs=1e-12)
    assert max(point["value"] for point in first["curve"]) == pytest.approx(first["best"], abs=1e-12)


def test_the_learning_curve_ends_in_the_tuning_itself(planted, found):
    last = found["labels"][-1]
    values = planted.values(planted.grid.config(best(planted.evidence.on(planted.inside))))

    assert [row["queries"] for row in found["labels"]] == sorted(row["queries"] for row in found["labels"])
    assert last["queries"] == planted.inside.sum()
    assert last["in_sample"] == pytest.approx(values[planted.inside].mean(), abs=1e-12)
    assert last["held_out"] == last["low"] == last["high"] == pytest.approx(values[~planted.inside].mean())


def test_subsets_are_whole_groups_of_tuning_queries_nested_and_seeded(planted):
    groups = unit_numbers(planted.queries)
    smaller, larger = (list(module._subsets(planted, share)) for share in (0.2, 0.6))

    assert len(smaller) == len(larger) == module.DRAWS
    for few, many in zip(smaller, larger, strict=True):
        assert not (few & ~many).any()
        assert not (many & ~planted.inside).any()
        assert few.sum() < many.sum()
        assert not set(groups[many]) & set(groups[planted.inside & ~many])
    again = list(module._subsets(planted, 0.2))
    assert [s.tolist() for s in again] == [s.tolist() for s in smaller]


def test_held_out_queries_of_a_tuning_group_stay_held_out(planted):
    (group,) = {q.group for q in planted.tuned_on if q.id == "q01"}
    shared = replace(planted, held_out=tuple(replace(q, group=group) for q in planted.held_out))

    assert group
    for share in module.SIZES:
        assert all(not (subset & ~shared.inside).any() for subset in module._subsets(shared, share))


def test_the_command_prints_the_ablation_as_text_and_json(tmp_path):
    arguments = [
        "tune",
        str(starter()),
        "--strategy",
        "rrf(fts, vector)",
        "--ablate",
        "--out",
        str(tmp_path / "w"),
    ]
    text = CliRunner().invoke(main, arguments)
    document = CliRunner().invoke(main, [*arguments, "--json"])

    assert text.exit_code == document.exit_code == 0
    record = json.loads(document.stdout)["ablation"]
    assert [row["signal"] for row in record["signals"]] == ["fts", "vector"]
    for heading in ("worth in sample", "at weight", "labelled queries"):
        assert heading in text.stdout
    assert f"{record['labels'][0]['held_out']:.4f}" in text.stdout


def test_ctrl_c_during_the_ablation_keeps_the_proof(tmp_path, monkeypatch):
    def broken(task, choice):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuner, "ablation", broken)
    arguments = [
        "tune",
        str(starter()),
        "--strategy",
        "rrf(fts, vector)",
        "--ablate",
        "--out",
        str(tmp_path / "w"),
    ]
    ended = CliRunner().invoke(main, [*arguments, "--json"])

    assert ended.exit_code == 130
    record = json.loads(ended.stdout)
    assert record["ablation"] is None
    assert (tmp_path / "w.try.json").is_file()
