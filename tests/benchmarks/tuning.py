"""The curve of a weight: an exact sweep beside grids."""

from dataclasses import replace

import numpy as np
import synthetic
from replay import dictionaries, whole_lists
from timing import DisagreementError, Race, peer, race

from steelyard.systems import find_system
from steelyard_eval.candidates.curve import Objective, sweep
from steelyard_eval.candidates.kernel import Kernel
from steelyard_eval.candidates.linear_form import Form
from steelyard_eval.measures.metrics import Judgments, parse_measures

ranx = peer("ranx")

(MEASURE,) = parse_measures(["nDCG@10"])
PAIR = ("bm25", "vector")
FASTER = 4.0  # how many times faster than our own grid the sweep is to be


def races(quick, rounds):
    """The best value on the whole line, and the best of a grid on it."""
    queries, candidates = (40, 30) if quick else (500, 150)
    table, qrels = synthetic.recording(queries, candidates, list(PAIR))
    config = replace(whole_lists(find_system("plain").config(10), dict.fromkeys(PAIR, 0.5)), finish=())
    form = Form.of(table, config, config.strategy, Judgments.of(qrels, table.queries, table.entries))
    objective, kernel = Objective.of(form, MEASURE), Kernel.of(form, [MEASURE])
    first, second = np.eye(2)
    grid = np.linspace(0, 1, 1001)
    points = np.stack([grid, 1 - grid], axis=1)

    def exactly(_):
        return sweep(objective, second, first - second).choose()

    def by_grid(_):
        return kernel.values(points, threads=1)[MEASURE].mean(axis=1)

    contenders = {"steelyard: exact sweep, the whole line": exactly, "1001-point grid on our kernel": by_grid}
    best = exactly(None)
    reached = [float(by_grid(None).max())]
    if ranx is not None:
        contenders["ranx: optimize_fusion, 11 points"] = optimise_by_ranx(table, qrels)
        share = contenders["ranx: optimize_fusion, 11 points"](None)
        reached.append(objective.mean(np.array(share)))
    if max(reached) > best.value + 1e-6:  # the kernel's float32
        raise DisagreementError(f"the exact best is {best.value}, grids reach {reached}")
    found = race(contenders, [None], rounds)
    ours, grids = (float(np.median([cpu for _, cpu in found[name]])) for name in list(contenders)[:2])
    others = ", ".join(
        f"{best.value - value:.4f} above {name}"
        for name, value in zip(("the grid", "ranx"), reached, strict=False)
    )
    notes = (
        f"nDCG@10 {best.value:.4f} on {best.low:.5f}..{best.high:.5f}: {others}",
        f"{grids / ours:.1f} times faster than the grid; {FASTER:g} are asked for: "
        f"{'met' if grids >= FASTER * ours else 'not met'}",
    )
    return [Race("tuning", f"a pair of weights, {queries} queries x {candidates}", found, notes=notes)]


def optimise_by_ranx(table, qrels):
    runs = [ranx.Run(own) for own in dictionaries(table, PAIR).values()]
    judged = ranx.Qrels({query: qrels[query] for query in table.queries})

    def work(_):
        found = ranx.optimize_fusion(
            qrels=judged, runs=runs, norm="min-max", method="wsum", metric="ndcg@10", step=0.1, show_progress=False
        )
        return tuple(found["weights"])

    return work
