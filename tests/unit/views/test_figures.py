"""Figures of results: every name draws, the numbers are where they should be, and unknown names are refused."""

import json
import re
import warnings
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.path import Path as Line
from matplotlib.transforms import Bbox

import steelyard_eval as sy
from steelyard.base.errors import ConfigError
from steelyard_eval.candidates.curve.curve import Curve
from steelyard_eval.candidates.weight_curve import COLUMNS, steps_of
from steelyard_eval.datasets.starter import starter
from steelyard_eval.result.structs import Cost, Estimate, Latency
from steelyard_eval.views.drawing import canvas, plots, spans
from steelyard_eval.views.drawing.cost_plot import CostPoint, cost
from steelyard_eval.views.drawing.picture import picture
from steelyard_eval.views.figures import cost_points, difference

from .made import result, row


@pytest.fixture(scope="module")
def comparison():
    return sy.load(starter()).compare("fts, bm25, echovault", current="fts", timed=False)


@pytest.mark.parametrize("what", ["means", "differences", "queries", "categories"])
def test_a_comparison_draws_every_figure(comparison, what):
    (axes,) = comparison.plot(what=what).axes
    assert axes.get_xlabel()


def test_axes_keep_their_margins_in_inches():
    with canvas.drawing(2.0, left=0.5, below=0.4, above=0.1) as (figure, axes):
        box = axes.get_position().transformed(figure.transFigure)
    width, height = figure.get_size_inches()
    inches = [value / figure.dpi for value in (box.x0, box.y0, box.x1, box.y1)]
    assert height == 2.0
    assert inches == pytest.approx([0.5, 0.4, width - 0.1, 1.9])


def test_an_unknown_figure_is_refused_with_the_known_ones(comparison):
    with pytest.raises(ConfigError, match=r"mean 'categories'\?.*means, differences"):
        comparison.plot(what="categorys")


def test_differences_are_drawn_where_the_document_has_them(comparison):
    (axes,) = comparison.plot(what="differences").axes
    drawn = {line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"}
    assert drawn == {row.against.gain.mean for row in comparison.result.rows if row.against}


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
    assert (names[0].startswith("plateau of"), names[1:]) == (True, ["current, 0.3", "chosen, 0.4"])


def test_a_curve_falls_where_its_value_does():
    """By hand: two steps, 0.86 below the weight 0.442 and 0.846 above it, of a sum with the total 0.5."""
    rows = steps_of(Curve(np.array([0.0, 0.884, 1.0]), np.array([0.86, 0.846]), (0.8, 0.8)), 0.5)
    steps = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    assert [point["weight"] for point in steps] == pytest.approx([0.221, 0.471])
    (axes,) = plots.curve(steps, "nDCG@10").axes
    line = axes.lines[0]
    assert (
        line.get_drawstyle() == "default"
    )  # joined as they are: a step between two points is drawn at no other place
    assert line.get_xdata() == pytest.approx([0.0, 0.442, 0.442, 0.5])
    assert line.get_ydata() == pytest.approx([0.86, 0.86, 0.846, 0.846])


def test_a_thinned_curve_keeps_its_edges_and_its_highest_point():
    """10,000 points in [0, 0.1], then one fall at 0.7: of 120 columns 12 have many points, of which two stay."""
    many = [(at / 100_000, 0.5) for at in range(10_000)]
    many[5_003] = (0.05003, 0.9)
    kept = plots.thinned([*many, (0.7, 0.5), (0.7, 0.2), (1.0, 0.2)])
    assert kept[0] == (0.0, 0.5)
    assert kept[-3:] == [(0.7, 0.5), (0.7, 0.2), (1.0, 0.2)]
    assert (0.05003, 0.9) in kept
    assert len(kept) == 2 * 12 + 1 + 3


def test_the_front_of_costs_is_what_nothing_beats_in_both():
    values = {"c": (3, 0.6), "a": (1, 0.5), "b": (2, 0.7), "d": (4, 0.8)}
    rows = [row(one, mean, cost=Cost(latency=Latency(at))) for one, (at, mean) in values.items()]
    points, key = cost_points(result(*rows))
    assert key == "p50_ms"
    # c costs more than b and has less.
    assert {point.label for point in points if point.front} == {"a", "b", "d"}
    assert [point.label for point in points if point.baseline] == ["c"]


def test_costs_begin_at_zero_and_at_a_power_of_ten_where_they_span_decades():
    near = [CostPoint(str(at), at, 0.5, True) for at in (2, 8)]
    far = [CostPoint(str(at), at, 0.5, True) for at in (2, 800)]
    assert cost(near, "m", "ms").axes[0].get_xlim()[0] == 0
    assert cost(far, "m", "ms").axes[0].get_xlim()[0] == 1
    free = [CostPoint("a", 0.0, 0.5, True)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cost(free, "m", "queries embedded").axes[0].get_xlim()[0] == 0


def test_a_metric_that_was_not_compared_is_named():
    data = sy.load({"corpus": {"a": "red"}, "queries": {"q": "red"}, "qrels": [("q", "a", 1)]})
    with pytest.raises(ConfigError, match="'R@3' was not"):
        data.compare("bm25", timed=False).plot("R@3")


def test_names_of_the_front_the_choice_and_the_baseline_cover_nothing():
    """30 points in a crowd: texts keep clear of one another, of marks and of the line of the front."""
    crowd = [CostPoint(f"grey {at}", 1.0 + at % 6, 0.6 - at / 200, False) for at in range(24)]
    front = [CostPoint(f"rrf(a, {at}*b), tuned", 1.0 + at, 0.6 + at / 40, True) for at in range(5)]
    told = [*front[:-1], replace(front[-1], chosen=True), CostPoint("fts", 1.3, 0.58, False, baseline=True)]
    figure = cost([*told, *crowd], "nDCG@10", "p50 ms")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    names = {text.get_text(): text.get_window_extent() for text in axes.texts if text.get_text()}
    assert set(names) <= {point.name for point in told}
    assert {"rrf(a, 4*b), tuned (chosen)", "fts (baseline)"} <= set(names)
    assert len(names) >= 5
    assert not any(one.overlaps(other) for one, other in combinations(names.values(), 2))
    half = 2.5 * figure.dpi / 72
    marks = axes.transData.transform([(point.cost, point.value) for point in (*told, *crowd)])
    line = Line(axes.transData.transform([(point.cost, point.value) for point in front]))
    for box in names.values():
        assert not any(box.overlaps(Bbox.from_bounds(x - half, y - half, 2 * half, 2 * half)) for x, y in marks)
        assert not line.intersects_bbox(box.padded(-1), filled=False)


def test_a_verdict_is_never_cut():
    """Number, interval and verdict together are 46 characters, wider than two thirds of a column of print."""
    gain = Estimate(0.055, -0.024, 0.134)
    figure = spans.spans([difference(gain, "vector", "hollow", "too few queries to tell")], "m", 0.0)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["vector", "+0.055 too few queries to tell"]


def test_names_that_differ_in_their_weights_are_told_apart():
    """The weights are read where the verdict would hide them; a hollow mark says that nothing is decided."""
    names = [f"weighted_sum(0.{at}*bm25, 0.{9 - at}*vector, normalize=minmax)" for at in (1, 2)]
    gain = Estimate(0.012, -0.1, 0.1)
    rows = [difference(gain, name, "hollow", "too few queries to tell") for name in names]
    texts = [text.get_text() for text in spans.spans(rows, "m", 0.0).axes[0].texts]
    assert [text[:36] for text in texts[::2]] == [name[:36] for name in names]
    assert texts[1::2] == ["+0.012"] * 2


def ends(figure):
    return figure.axes[0].get_xlim()


def test_a_row_far_away_does_not_squeeze_the_others():
    """Without it the axis runs over the intervals of the others; at its edge stands an arrow."""
    near = [spans.Span(str(at), at / 100, at / 100 - 0.02, at / 100 + 0.02) for at in (1, 2, 3, 4)]
    far = spans.Span("far", -0.9, -0.95, -0.85)
    whole = spans.spans([*near, far], "m", 0.0)
    assert ends(whole) == ends(spans.spans(near, "m", 0.0))
    arrows = [line.get_xdata() for line in whole.axes[0].lines if line.get_marker() == "<"]
    assert arrows == [[ends(whole)[0]]]
    assert "beyond the axis" in whole.axes[0].get_xlabel()
    assert "arrow" not in spans.spans(near, "m", 0.0).axes[0].get_xlabel()


def test_no_row_is_longer_than_the_figure_is_wide():
    long = spans.Span("W" * 200, 0.1, 0.0, 0.2, "word " * 40, "choice", "+0.100 better")
    figure = spans.spans([long], "m", 0.0)
    name, words = [text.get_text() for text in figure.axes[0].texts]
    assert words == "+0.100"
    assert name.endswith("…")
    assert canvas.inches(name) + canvas.inches(words) < canvas.WIDTH


def test_a_figure_is_as_wide_as_a_column_and_its_fonts_are_embedded_as_truetype(tmp_path):
    figure = plots.places({"a": [1.0, 0.5]}, "place", "value")
    assert figure.get_size_inches()[0] == canvas.WIDTH == 3.5
    with canvas.styled():
        figure.savefig(tmp_path / "a.pdf")
    assert b"/Type3" not in (tmp_path / "a.pdf").read_bytes()


@pytest.mark.parametrize("text", ["<b>&amp; $x$ ]]> --> \u202e", "url(#x) #0b4f8a"])
def test_a_picture_holds_no_markup_of_its_texts_and_the_same_bytes_each_time(text):
    one, other = (picture(spans.spans([spans.Span(text, 0.1, 0.0, 0.2)], text, 0.0), "t") for _ in range(2))
    assert one == other
    root = ElementTree.fromstring(str(one.svg))  # noqa: S314 -- what matplotlib wrote
    shown = "".join(root.itertext())
    assert text.replace("\u202e", r"\u202e").split(" ")[0] in shown
    assert "\u202e" not in shown
    assert not re.search(r"\bid=\"(?![pm][0-9a-f]+\")|xlink|xmlns:|http|<!--", str(one.svg))


def test_colours_of_the_style_can_be_told_apart_in_grey():
    text = (Path(plots.__file__).parent / "steelyard.mplstyle").read_text("utf-8")
    colours = json.loads(text.split("cycler('color', ")[1].split(")")[0].replace("'", '"'))
    # Luma of Rec. 601; neighbours in the cycle differ by a tenth.
    luma = [sum(w * int(c[i : i + 2], 16) for w, i in ((0.299, 0), (0.587, 2), (0.114, 4))) / 255 for c in colours]
    assert all(abs(a - b) > 0.1 for a, b in pairwise(luma)), luma


def shown_names(points):
    return {text.get_text() for text in cost(points, "nDCG@10", "p50 ms").axes[0].texts if text.get_text()}


def test_the_choice_has_its_name_in_a_crowd_above_which_is_room():
    """The points of a recommendation on starter: the choice, two clusters and two far below."""
    crowd = [(3.8, 0.75), (4.0, 0.75), (4.1, 0.72), (4.1, 0.7), (5.1, 0.7), (6.1, 0.69), (7.3, 0.76), (7.5, 0.62)]
    crowd += [(1.8, 0.72), (2.4, 0.72), (1.3, 0.7), (1.3, 0.65), (1.6, 0.65), (6.1, 0.46), (1.1, 0.38)]
    front = [CostPoint(f"front {at}", cost, value, True) for at, (cost, value) in enumerate(
        [(0.5, 0.61), (0.55, 0.62), (0.9, 0.71), (1.25, 0.73), (1.75, 0.74), (1.76, 0.75)]
    )]  # fmt: skip
    choice = CostPoint("weighted sum, tuned", 2.2, 0.758, True, chosen=True)
    assert choice.name in shown_names([choice, *front, *(CostPoint("grey", *at, False) for at in crowd)])


def test_few_points_are_all_named_and_of_two_names_that_are_cut_alike_each_has_its_place():
    few = [CostPoint("moltnet", 1.8, 0.74, True), CostPoint("soleri", 8.9, 0.62, False)]
    assert shown_names(few) == {"moltnet", "soleri"}
    sums = [f"weighted_sum({a}*bm25, {1 - a}*vector, normalize=minmax)" for a in (0.25, 0.75)]
    cut = [CostPoint(label, at, at / 10, True, place=at) for at, label in enumerate(sums, 1)]
    assert [point.name[:15] for point in cut] == ["1. weighted_sum", "2. weighted_sum"]
