"""Figures of results: every name draws, the numbers are where they should be, and unknown names are refused."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from msgspec.structs import replace

import steelyard_eval as sy
from steelyard_eval.candidates.curve import COLUMNS, Curve, steps_of
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.views.drawing import canvas, plots
from steelyard_eval.views.drawing.canvas import picture
from steelyard_eval.views.figures import figures


@pytest.fixture(scope="module")
def comparison():
    return sy.load(starter()).compare("fts, bm25, echovault", current="fts", timed=False)


@pytest.mark.parametrize("what", ["means", "differences", "queries", "categories"])
def test_a_comparison_draws_every_figure(comparison, what):
    (axes,) = comparison.plot(what=what).axes
    assert axes.get_xlabel()


def test_differences_are_drawn_where_the_document_has_them(comparison):
    (axes,) = comparison.plot(what="differences").axes
    drawn = {line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"}
    assert drawn == {row.against.gain.mean for row in comparison.result.rows if row.against}


def test_categories_that_are_all_too_small_to_test_have_no_figure(comparison):
    """The report of such a comparison failed."""
    result = comparison.result
    small = [
        replace(table, rows=[[*row[:-2], None, None] for row in table.rows])
        if table.key == "categories"
        else table
        for table in result.tables
    ]
    assert "categories" in figures(result)
    assert "categories" not in figures(replace(result, tables=small))


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
