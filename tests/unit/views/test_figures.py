"""Figures of results: every name draws, the numbers are where they should be, and unknown names are refused."""

import json
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import steelyard_eval as sy
from steelyard.base.errors import ConfigError
from steelyard_eval.candidates.curve import COLUMNS, Curve, steps_of
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.result.structs import Estimate
from steelyard_eval.views.drawing import canvas, plots
from steelyard_eval.views.drawing.canvas import picture
from steelyard_eval.views.figures import difference


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
    points = [{"weight": at / 10, "low": at / 10, "high": at / 10, "value": at % 3} for at in range(11)]
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


def test_a_metric_that_was_not_compared_is_named():
    data = sy.load({"corpus": {"a": "red"}, "queries": {"q": "red"}, "qrels": [("q", "a", 1)]})
    with pytest.raises(ConfigError, match="'R@3' was not"):
        data.compare("bm25", timed=False).plot("R@3")


def test_a_verdict_is_never_cut():
    """Number, interval and verdict together are 46 characters, wider than two thirds of a column of print."""
    gain = Estimate(0.055, -0.024, 0.134)
    figure = plots.spans([difference(gain, "vector", "hollow", "too few queries to tell")], "m", 0.0)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["vector", "+0.055 too few queries to tell"]


def test_names_that_differ_in_their_weights_are_told_apart():
    """The weights are read where the verdict would hide them; a hollow mark says that nothing is decided."""
    names = [f"weighted_sum(0.{at}*bm25, 0.{9 - at}*vector, normalize=minmax)" for at in (1, 2)]
    gain = Estimate(0.012, -0.1, 0.1)
    rows = [difference(gain, name, "hollow", "too few queries to tell") for name in names]
    texts = [text.get_text() for text in plots.spans(rows, "m", 0.0).axes[0].texts]
    assert [text[:36] for text in texts[::2]] == [name[:36] for name in names]
    assert texts[1::2] == ["+0.012"] * 2


def ends(figure):
    return figure.axes[0].get_xlim()


def test_a_row_far_away_does_not_squeeze_the_others():
    """Without it the axis runs over the intervals of the others; at its edge stands an arrow."""
    near = [plots.Span(str(at), at / 100, at / 100 - 0.02, at / 100 + 0.02) for at in (1, 2, 3, 4)]
    far = plots.Span("far", -0.9, -0.95, -0.85)
    whole = plots.spans([*near, far], "m", 0.0)
    assert ends(whole) == ends(plots.spans(near, "m", 0.0))
    arrows = [line.get_xdata() for line in whole.axes[0].lines if line.get_marker() == "<"]
    assert arrows == [[ends(whole)[0]]]
    assert "beyond the axis" in whole.axes[0].get_xlabel()
    assert "arrow" not in plots.spans(near, "m", 0.0).axes[0].get_xlabel()


def test_no_row_is_longer_than_the_figure_is_wide():
    long = plots.Span("W" * 200, 0.1, 0.0, 0.2, "word " * 40, "choice", "+0.100 better")
    figure = plots.spans([long], "m", 0.0)
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
    one, other = (picture(plots.spans([plots.Span(text, 0.1, 0.0, 0.2)], text, 0.0), "t") for _ in range(2))
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
