"""Branch and bound over three weights, against every cell of the arrangement of crossing lines."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_forms import MEASURES, directly, drawn_forms, form_of, measure, random_form

from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.datasets import load
from steelyard_eval.measures.metrics import Judgments
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.weights.exact.objective import Objective
from steelyard_eval.weights.exact.optimise import _ceiling
from steelyard_eval.weights.exact.simplex import ceiling, prove
from steelyard_eval.weights.kernel import Form

UNIFORM = np.full(3, 1 / 3)
CORNERS = np.eye(3)


def lines_of(form):
    """Where two rows of a query tie, as the coefficients of w1, w2, w3."""
    found = set()
    for a, b in itertools.pairwise(form.offsets):
        rows = [tuple(map(Fraction, row)) for row in form.columns[:, a:b].T.tolist()]
        for one, other in itertools.combinations(rows, 2):
            found.add(tuple(x - y for x, y in zip(one, other, strict=True)))
    return found - {(0, 0, 0)}


def split(polygon, line):
    """The parts of a convex polygon on both sides of a line, in exact arithmetic."""
    values = [sum(x * c for x, c in zip(point, line, strict=True)) for point in polygon]
    parts = []
    for sign in (1, -1):
        part = []
        for at, (point, value) in enumerate(zip(polygon, values, strict=True)):
            after, then = polygon[(at + 1) % len(polygon)], values[(at + 1) % len(polygon)]
            if sign * value >= 0:
                part.append(point)
            if value * then < 0:
                share = value / (value - then)
                part.append(tuple(x + (y - x) * share for x, y in zip(point, after, strict=True)))
        parts += [part] if any(sign * value > 0 for value in values) else []
    return parts


def every_cell(form):
    """A point in every cell of the triangle, in every piece of its sides, and the corners."""
    cells = [[(Fraction(1), Fraction(0), Fraction(0)), (0, Fraction(1), 0), (0, 0, Fraction(1))]]
    for line in lines_of(form):
        cells = [part for cell in cells for part in split(cell, line)]
    points = [tuple(sum(xs) / len(cell) for xs in zip(*cell, strict=True)) for cell in cells]
    for side in range(3):
        on_side = sorted({point for cell in cells for point in cell if point[side] == 0})
        points += [tuple((x + y) / 2 for x, y in zip(*pair, strict=True)) for pair in itertools.pairwise(on_side)]
    return np.vstack([np.array(points, dtype=np.float64), CORNERS])


def brute_force(form, name):
    return max(directly(form, name, weights).mean() for weights in every_cell(form))


def test_the_cells_of_two_crossing_lines_are_four():
    # Rows (1,0,0) and (0,1,0) tie on w1 = w2, rows (2,0,0) and (0,0,1) on 2 w1 = w3.
    form = form_of([[1, 0, 2, 0], [0, 1, 0, 0], [0, 0, 0, 1]], [1, 0, 1, 0], [2, 2])

    # They meet inside and each starts in a corner, so of the sides w1 = 0 stays whole and the others are cut once.
    assert len(every_cell(form)) == 4 + 5 + 3


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(MEASURES), st.sampled_from([None, 3, 8]))
def test_the_proven_best_is_that_of_the_best_cell(seed, name, levels):
    form = random_form(np.random.default_rng(seed), columns=3, queries=2, rows=6, levels=levels)
    objective = Objective.of(form, measure(name))

    proof = prove(objective, CORNERS, UNIFORM)

    assert proof.value == pytest.approx(brute_force(form, name), abs=1e-12)
    assert proof.bound == pytest.approx(proof.value, abs=2e-12)
    assert directly(form, name, proof.weights).mean() == pytest.approx(proof.value, abs=1e-12)


@settings(max_examples=12)
@given(st.integers(0, 2**32), st.sampled_from(MEASURES))
def test_no_drawn_weights_beat_the_proven_best_of_many_queries(seed, name):
    rng = np.random.default_rng(seed)
    form = random_form(rng, columns=3, queries=20, rows=20)
    objective = Objective.of(form, measure(name))

    proof = prove(objective, CORNERS, UNIFORM)

    assert proof.bound == pytest.approx(proof.value, abs=2e-12)
    assert max(objective.mean(weights) for weights in rng.dirichlet(np.ones(3), 1500)) <= proof.value + 1e-12


def test_queries_whose_crossings_coincide_are_proven_all_the_same():
    # Reciprocal ranks of two lists, a third is silent. In every other query the relevant row, the second, is first
    # where w1 > w2, in the others where w1 < w2; ties go to the first row. So half of them are first, whatever the
    # weights, but the bound of every polygon across w1 = w2 says all are: halving polygons would go on for ever.
    one, two = 1 / 61, 1 / 62
    lists = [[two, one, one, two] * 5, [one, two, two, one] * 5, [0.0] * 20]
    form = form_of(lists, [0, 1] * 10, [2] * 10)

    proof = prove(Objective.of(form, measure("RR")), CORNERS, np.array([0.2, 0.5, 0.3]))

    assert (proof.value, proof.bound) == (0.75, 0.75)
    assert proof.nodes < 10


@settings(max_examples=40)
@given(drawn_forms(columns=3), st.sampled_from(MEASURES), st.integers(0, 12))
def test_a_spent_budget_leaves_a_bound_that_holds(form, name, nodes):
    objective = Objective.of(form, measure(name))

    short, whole = prove(objective, CORNERS, UNIFORM, nodes), prove(objective, CORNERS, UNIFORM)

    assert short.nodes <= nodes
    assert short.value <= whole.value + 1e-12
    assert short.bound >= whole.value - 1e-12


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(MEASURES), st.integers(2, 5))
def test_no_weights_reach_above_the_ceiling_at_ties_either(seed, name, columns):
    rng = np.random.default_rng(seed)
    form = random_form(rng, columns=columns, queries=3, rows=8, levels=4)
    top = ceiling(Objective.of(form, measure(name)), np.eye(columns))

    tried = [*np.eye(columns), np.full(columns, 1 / columns), *rng.dirichlet(np.ones(columns), 30)]

    assert max(directly(form, name, weights).mean() for weights in tried) <= top + 1e-12


def test_a_row_that_others_dominate_lowers_the_ceiling():
    # The relevant row is behind the first one in both columns, so its reciprocal rank is 1/2 at best.
    form = form_of([[0.9, 0.5, 0.1], [0.8, 0.4, 0.7]], [0, 1, 0], [3])

    assert ceiling(Objective.of(form, measure("RR")), np.eye(2)) == 0.5


def test_a_poorer_row_that_always_leads_lowers_the_ceiling():
    # The row of grade 1 leads that of grade 2 in both columns: nDCG is (1 + 2 / log2 3) / (2 + 1 / log2 3).
    form = form_of([[0.9, 0.5, 0.1], [0.8, 0.4, 0.1]], [1, 2, 0], [3])

    expected = (1 + 2 / np.log2(3)) / (2 + 1 / np.log2(3))
    assert ceiling(Objective.of(form, measure("nDCG")), np.eye(2)) == pytest.approx(expected, abs=1e-15)


def test_as_many_corners_as_may_be_looked_at_still_bound_the_measure(monkeypatch):
    """The relevant row is second in both columns, whichever corner is taken: the bound is 1/2, not 1."""
    form = form_of([[0.9, 0.5], [0.8, 0.4], [0, 0], [0, 0]], [0, 1], [2], branch=[0, 0, 1, 1])
    objective, branches = Objective.of(form, measure("RR")), [np.array([0, 1]), np.array([2, 3])]
    for most, bound in ((4, 0.5), (3, 1.0)):
        monkeypatch.setattr("steelyard_eval.weights.exact.optimise._MOST_CORNERS", most)
        assert _ceiling(objective, np.full(4, 0.5), branches) == bound


@pytest.mark.parametrize(
    "strategy",
    ["weighted_sum(0.3*fts, 0.3*bm25, 0.4*vector, normalize=max)", "rrf(fts, bm25, vector, k=60)"],
)
def test_on_a_real_recording_no_drawn_weights_beat_the_proven_best(strategy, data_root):
    dataset = load(data_root / "cranfield")
    space = Workspace.open(dataset)
    config = find_system("plain").config(10, space.model).with_strategy(parse_strategy(strategy))
    table = record(space, dataset.queries[:60], [config])
    form = Form.of(table, config, config.strategy, Judgments.of(dataset.qrels, table.queries, table.entries))
    objective = Objective.of(form, measure("nDCG@10"))

    proof = prove(objective, CORNERS, UNIFORM)

    assert proof.bound == pytest.approx(proof.value, abs=2e-12)
    drawn = np.random.default_rng(0).dirichlet(np.ones(3), 3000)
    # Closer and closer around the best, where rivals are likeliest.
    near = [proof.weights + (drawn - proof.weights) * share for share in (1, 0.1, 0.01)]
    assert max(objective.mean(weights) for weights in np.vstack(near)) <= proof.value + 1e-12
