"""Figures of results: every name draws, the numbers are where they should be, and unknown names are refused."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

import steelyard_eval as sy
from steelyard.base.errors import ConfigError
from steelyard_eval.show import figures, plots


@pytest.fixture(scope="module")
def comparison():
    return sy.demo().compare("fts, bm25, echovault", baseline="fts", timed=False)


@pytest.mark.parametrize("what", ["means", "differences", "queries", "categories", "cost"])
def test_a_comparison_draws_every_figure(comparison, what):
    (axes,) = comparison.plot(what=what).axes
    assert axes.get_xlabel()


def test_an_unknown_figure_is_refused_with_the_known_ones(comparison):
    with pytest.raises(
        ConfigError, match=r"no figure 'categorys'.*did you mean 'categories'\?.*means, differences"
    ):
        comparison.plot(what="categorys")


def test_differences_are_drawn_where_the_document_has_them(comparison):
    (axes,) = comparison.plot(what="differences").axes
    drawn = {line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"}
    assert drawn == {row["delta"] for row in comparison.to_json()["comparisons"]}


def test_differences_of_queries_are_ordered_and_counted():
    (axes,) = plots.query_differences([0.2, -0.5, 0.0, 0.7], "m").axes
    heights = [patch.get_height() for patch in axes.patches]
    assert heights == [0.7, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0, -0.5]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["2 better", "1 worse"]


def test_a_curve_names_its_signal_and_marks_both_weights():
    axis = {"signal": "fts", "others": ["vector"], "current": 0.3, "chosen": 0.4}
    points = [{"weight": at / 10, "value": at % 3} for at in range(11)]
    (axes,) = plots.curve(points, "m", axis, [0.35, 0.45]).axes
    assert axes.get_xlabel() == "weight of fts (the rest: vector)"
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["plateau of the chosen weight", "current, 0.3", "chosen, 0.4"]


def test_the_front_of_costs_is_what_nothing_beats_in_both():
    rows = [
        {"label": label, "mean": mean, "p50_ms": cost}
        for label, mean, cost in (("a", 0.5, 1.0), ("b", 0.7, 2.0), ("c", 0.6, 3.0), ("d", 0.8, 4.0))
    ]
    (axes,) = plots.cost(rows, "m").axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["1 a", "2 b", "3 d"]


def test_a_tuning_with_ablation_draws_signals_and_labels():
    held = {"value": 0.1, "low": 0.0, "high": 0.2}
    record = {
        "objective": "nDCG@10", "curve": [{"weight": 0.0, "value": 0.5}], "axis": None, "plateau": [],
        "ablation": {
            "signals": [{"signal": "fts", "in_sample": 0.1, "held_out": held}],
            "labels": [{"queries": 4, "in_sample": 0.6, "held_out": 0.5, "low": 0.4, "high": 0.55}],
        },
    }  # fmt: skip
    assert {len(figures.tuned(record, what).axes) for what in ("curve", "signals", "labels")} == {1}


def test_learning_draws_acts_and_examination():
    record = {
        "examination": {"exponent": 1.0, "source": "joint"},
        "acts": {"relevant": [0.9, 0.4], "other": [0.2, 0.1]},
    }
    (axes,) = figures.learned(record, "examination").axes
    # A place is examined in proportion to place ** -1: 1, 1/2.
    assert axes.lines[0].get_ydata().tolist() == [1.0, 0.5]
    assert len(figures.learned(record, "acts").axes) == 1


def test_colours_of_the_style_can_be_told_apart_in_grey():
    text = (Path(plots.__file__).parent / "steelyard.mplstyle").read_text("utf-8")
    colours = json.loads(text.split("cycler('color', ")[1].split(")")[0].replace("'", '"'))
    # Luma of Rec. 601; neighbours in the cycle differ by a tenth.
    luma = [sum(w * int(c[i : i + 2], 16) for w, i in ((0.299, 0), (0.587, 2), (0.114, 4))) / 255 for c in colours]
    assert all(abs(a - b) > 0.1 for a, b in pairwise(luma)), luma
