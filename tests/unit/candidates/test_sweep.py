"""The exact sweep: its values against replay's own evaluation, its best against grids, its plateaus, its folds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_forms import MEASURES, directly, drawn_forms, form_of, measure, random_form

from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.candidates.curve import NARROWEST, Curve, Objective, sweep
from steelyard_eval.candidates.linear_form import Form
from steelyard_eval.datasets import load
from steelyard_eval.measures.metrics import Judgments
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace

FIRST, SECOND = np.array([1.0, 0.0]), np.array([0.0, 1.0])
GRIDS = (11, 101, 1001, 10001)


def swept(form, name):
    """The line on which the first of two weights goes from 0 to 1, the second from 1 to 0."""
    return sweep(Objective.of(form, measure(name)), SECOND, FIRST - SECOND)


def weights(t):
    return np.array([t, 1 - t])


def wide_intervals(curve):
    """(index, middle) of every interval that counts."""
    return [(at, (curve.edges[at] + curve.edges[at + 1]) / 2) for at in np.flatnonzero(curve.wide)]


@given(drawn_forms(), st.sampled_from(MEASURES))
def test_every_interval_and_both_ends_have_the_value_that_replay_finds_there(form, name):
    curve = swept(form, name)
    for at, middle in wide_intervals(curve):
        expected = directly(form, name, weights(middle))
        assert curve.values[at] == pytest.approx(expected.mean(), abs=1e-12)
    for t, value in zip((0.0, 1.0), curve.ends, strict=True):
        assert value == pytest.approx(directly(form, name, weights(t)).mean(), abs=1e-12)


@given(st.integers(0, 2**32), st.sampled_from(MEASURES))
def test_a_line_may_run_anywhere_between_any_two_values_of_t(seed, name):
    rng = np.random.default_rng(seed)
    form = random_form(rng, columns=4)
    start, direction = rng.normal(size=4), rng.normal(size=4)
    curve = sweep(Objective.of(form, measure(name)), start, direction, -2.0, 3.0)
    assert (curve.edges[0], curve.edges[-1]) == (-2.0, 3.0)
    for at, t in wide_intervals(curve):
        assert curve.values[at] == pytest.approx(directly(form, name, start + t * direction).mean(), abs=1e-12)


def never_below(objective, curve, grids):
    """Compare with grids; how many points were left out because they lie at a crossing."""
    best = curve.choose()
    assert objective.mean(weights(best.t)) == pytest.approx(best.value, abs=1e-12)
    left_out = 0
    for size in grids:
        for t in np.linspace(0, 1, size):
            inner = 0 < t < 1
            if inner and np.abs(curve.edges - t).min() <= NARROWEST:
                left_out += 1
                continue
            value = objective.mean(weights(t))
            at = int(np.searchsorted(curve.edges, t)) - 1
            assert value == pytest.approx(curve.values[at] if inner else curve.ends[int(t)], abs=1e-12)
            assert value <= best.value + 1e-12
    return left_out


@given(drawn_forms(), st.sampled_from(MEASURES))
def test_a_plateau_is_level_inside_and_ends_where_it_says(form, name):
    curve = swept(form, name)
    for plateau in curve.plateaus():
        assert plateau.low <= plateau.t <= plateau.high
        assert directly(form, name, weights(plateau.t)).mean() == pytest.approx(plateau.value, abs=1e-12)
        if plateau.high == plateau.low:
            continue
        for end, inward in ((plateau.low, 1), (plateau.high, -1)):
            inside, outside = end + 2e-9 * inward, end - 2e-9 * inward
            near = np.abs(curve.edges[1:-1, None] - [inside, outside]).min(axis=0, initial=1.0)
            if near[0] > NARROWEST and plateau.high - plateau.low > 4e-9:
                assert directly(form, name, weights(inside)).mean() == pytest.approx(plateau.value, abs=1e-12)
            if near[1] > NARROWEST and 0 < outside < 1:
                assert directly(form, name, weights(outside)).mean() < plateau.value - 1e-12


def test_a_crossing_lies_where_a_hand_finds_it():
    # The relevant row has (1, 0), the other one (0.25, 0.5): t = 0.5 (1 - t) + 0.25 t at t = 0.4.
    form = form_of([[0.25, 1.0], [0.5, 0.0]], [0, 1], [2])
    curve = swept(form, "RR")
    np.testing.assert_allclose(curve.edges, [0, 0.4, 1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(curve.values, [0.5, 1.0])
    plateau = curve.choose()
    assert (plateau.low, plateau.high, plateau.t) == pytest.approx((0.4, 1.0, 0.7))


def test_ties_at_an_end_go_to_the_smaller_index_there_and_to_the_line_inside():
    # All tie at t = 0. Inside, the relevant row with the larger score is ahead; at 0 itself the other is.
    form = form_of([[0.0, 1.0], [1.0, 1.0]], [0, 1], [2])
    curve = swept(form, "RR")
    assert curve.values.tolist() == [1.0]
    assert curve.ends == (0.5, 1.0)
    assert curve.choose() == curve.plateaus()[0]
    assert (curve.choose().low, curve.choose().high) == (0.0, 1.0)


def test_an_end_point_alone_can_be_best():
    # At t = 1 the first two rows tie and the smaller index, the relevant one, wins; inside it is behind.
    form = form_of([[1.0, 1.0], [0.0, 1.0]], [1, 0], [2])
    plateau = swept(form, "RR").choose()
    assert (plateau.low, plateau.high, plateau.t, plateau.value) == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("columns", "grades"),
    [
        ([[0.5] * 6, [0.5] * 6], [0, 1, 0, 2, 0, 1]),  # all tied
        ([[0.1, 0.5, 0.3, 0.9], [0.1, 0.5, 0.3, 0.9]], [1, 0, 2, 0]),  # identical columns
        ([[0.25, 0.5, 0.75, 1.0], [1.0, 1.25, 1.5, 1.75]], [0, 1, 0, 2]),  # parallel lines
        ([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]], [1, 0, 1]),  # all crossings at the ends
        ([[1.0, 0.0, 0.5, 0.5], [0.0, 1.0, 0.5, 0.5]], [0, 1, 2, 0]),  # all crossings at 1/2
        ([[0.7], [0.2]], [1]),  # one row
        ([[0.7, 0.1], [0.2, 0.9]], [0, 0]),  # nothing relevant
        ([[], []], []),  # nothing returned
        ([[5e-324, 0.0, 1e-310, 2e-310], [0.0, 5e-324, 3e-310, 1e-310]], [0, 1, 0, 1]),  # denormal numbers
        ([[1e300, -1e300, 0.0], [-1e300, 1e300, 1.0]], [1, 0, 1]),  # huge ones
    ],
)
@pytest.mark.parametrize("name", MEASURES)
def test_hard_forms_have_their_ends_and_best_right(columns, grades, name):
    form = form_of(columns, grades, [len(grades)])
    curve = swept(form, name)
    assert np.isfinite(curve.edges).all()
    assert curve.ends == pytest.approx([directly(form, name, weights(t)).mean() for t in (0, 1)], abs=1e-12)
    for at, middle in wide_intervals(curve):
        assert curve.values[at] == pytest.approx(directly(form, name, weights(middle)).mean(), abs=1e-12)


@pytest.mark.parametrize(
    ("edges", "values", "ends", "near", "low", "high", "t"),
    [
        # among equal plateaus the widest, else the nearest, in its middle
        ([0.0, 0.2, 0.4, 0.7, 1.0], [0.5, 0.9, 0.6, 0.9], (0.5, 0.9), {}, 0.7, 1.0, 0.85),
        ([0.0, 0.2, 0.4, 0.7, 1.0], [0.5, 0.9, 0.6, 0.9], (0.5, 0.9), {"near": 0.45}, 0.2, 0.4, 0.3),
        ([0.0, 0.2, 0.4, 0.7, 1.0], [0.5, 0.9, 0.6, 0.9], (0.5, 0.9), {"near": 0.95}, 0.7, 1.0, 0.85),
        # the middle avoids a crossing inside
        ([0.0, 0.25, 0.5, 0.75, 1.0], [0.1, 0.9, 0.9, 0.1], (0.1, 0.1), {}, 0.25, 0.75, 0.375),
        # slivers belong to the crossing they lie at
        ([0.0, 0.3, 0.3 + 5e-10, 0.6, 1.0], [0.5, 0.99, 0.5, 0.2], (0.5, 0.2), {}, 0.0, 0.6, None),
    ],
)
def test_a_plateau_is_chosen_in_its_middle(edges, values, ends, near, low, high, t):
    curve = Curve(np.array(edges), np.array(values), ends)
    plateau = curve.choose(**near)
    assert (plateau.low, plateau.high) == (low, high)
    assert t is None or plateau.t == pytest.approx(t)
    assert curve.best == plateau.value


PAIRS = (
    "weighted_sum(0.5*fts, 0.5*vector, normalize=max)",
    "weighted_sum(0.5*bm25, 0.5*vector, normalize=minmax)",
    "weighted_sum(0.5*tfidf, 0.5*cosine, normalize=none)",
    "rrf(fts, vector, k=60)",
)


@pytest.mark.parametrize("name", ["locomo", "cranfield"])
def test_on_real_recordings_no_grid_beats_the_sweep_of_any_pair_of_signals(name, data_root):
    dataset = load(data_root / name)
    queries = [query for query in dataset.queries if query.id in dataset.qrels][::9][:60]
    space = Workspace.open(dataset)
    plain = find_system("plain").config(10, space.model)
    configs = [plain.with_strategy(parse_strategy(strategy)) for strategy in PAIRS]
    table = record(space, queries, configs)
    judgments = Judgments.of(dataset.qrels, table.queries, table.entries)
    compared, left_out = 0, 0
    for config in configs:
        form = Form.of(table, config, config.strategy, judgments)
        for metric in ("nDCG@10", "RR@10", "R@5"):
            objective = Objective.of(form, measure(metric))
            curve = sweep(objective, SECOND, FIRST - SECOND)
            grids = GRIDS if metric == "nDCG@10" else GRIDS[:2]
            left_out += never_below(objective, curve, grids)
            compared += sum(grids)
            for at, middle in wide_intervals(curve)[:: max(1, len(curve.values) // 20)]:
                tuned = config.with_strategy(config.strategy.with_weights(weights(middle)))
                expected = replay(table, tuned).metrics(judgments, [measure(metric)])[measure(metric)].mean()
                assert curve.values[at] == pytest.approx(expected, abs=1e-12)
    assert left_out < compared / 1000  # RRF crosses at round weights, such as 1/2
