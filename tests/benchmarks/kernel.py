"""Weights tried a second: the kernel of search beside tools that evaluate one setting after another.

A contender's time is given for 100,000 configurations x queries, because contenders try different numbers.
All of them measure nDCG@10 of a weighted sum after min-max.
"""

import sys
from contextlib import redirect_stdout

import numpy as np
import pytrec_eval
from ir_measures import calc_aggregate, nDCG
from timing import Race, once, peer, race

from steelyard_eval.candidates.kernel import Kernel
from steelyard_eval.candidates.linear_form import Form
from steelyard_eval.measures.metrics import Judgments, parse_measures

ranx = peer("ranx")

ONE = parse_measures(["nDCG@10"])
THREE = parse_measures(["nDCG@10", "R@10", "RR@10"])
OURS, THREADED = "steelyard kernel: fuses, evaluates", "steelyard kernel, two threads"
OPTIMIZE, PYTREC = "ranx: optimize_fusion", "pytrec_eval: evaluates dictionaries, fuses nothing"
BARS = {OPTIMIZE: 3000, PYTREC: 500}
"""How many times as many configurations x queries a second the kernel is asked for."""


def searching(case, table, qrels, config, lists, finished, rounds):
    """One race: `lists` are the dictionaries of every signal, `finished` the fused ones."""
    queries, terms = len(table.queries), config.strategy.terms
    judgments = Judgments.of(qrels, table.queries, table.entries)
    form, prepared = once(lambda: Form.of(table, config, config.strategy, judgments))
    one, three = Kernel.of(form, ONE), Kernel.of(form, THREE)
    tried = np.random.default_rng(0).dirichlet(np.ones(len(terms)), size=max(64, 5_000_000 // queries))
    asked = {query: qrels.get(query, {}) for query in table.queries}
    oracle = pytrec_eval.RelevanceEvaluator(asked, {"ndcg_cut_10"})
    works = {
        OURS: (lambda _: one.values(tried, threads=1), len(tried)),
        THREADED: (lambda _: one.values(tried, threads=2), len(tried)),
        "steelyard kernel: nDCG@10, R@10, RR@10": (lambda _: three.values(tried, threads=1), len(tried)),
        PYTREC: (lambda _: oracle.evaluate(finished), 1),
        "ir_measures: evaluates dictionaries, fuses nothing": (
            lambda _: calc_aggregate([nDCG @ 10], asked, finished),
            1,
        ),
    }
    if ranx is not None:
        theirs, runs = ranx.Qrels(asked), [ranx.Run(own) for own in lists.values()]
        weights = {"weights": [term.weight for term in terms]}

        def fuse_and_evaluate(_):
            return ranx.evaluate(
                theirs, ranx.fuse(runs=runs, norm="min-max", method="wsum", params=weights), "ndcg@10"
            )

        def optimize(_):
            options = {"return_optimization_report": True, "step": 0.25 if len(runs) > 2 else 0.1}
            with redirect_stdout(sys.stderr):  # its progress bar
                return ranx.optimize_fusion(theirs, runs, metric="ndcg@10", **options)

        works["ranx: fuse, evaluate"] = (fuse_and_evaluate, 1)
        works[OPTIMIZE] = (optimize, len(optimize(None)[1].configs))
    taken = race({name: work for name, (work, _) in works.items()}, [None], min(rounds, 3))
    samples = {
        name: [(wall * scale, cpu * scale) for wall, cpu in taken[name]]
        for name, (_, count) in works.items()
        for scale in [1e5 / (count * queries)]
    }
    case = f"{case}, ms for 100,000 configurations x queries"
    prepared = f"the form took {prepared * 1e3:.0f} ms, once"
    return Race("search", case, samples, notes=(*verdicts(Race("search", case, samples)), prepared))


def verdicts(made):
    """Configurations x queries a second, and each bar met or not, by medians of processor time."""
    rows = {row["contender"]: row for row in made.rows()}
    alone, shared = 1e2 / rows[OURS]["cpu_ms"], 1e2 / rows[THREADED]["median_ms"]
    notes = [f"{alone:.1f} million configurations x queries a second; {shared:.1f} with two threads, by the clock"]
    for name, bar in BARS.items():
        if name in rows:
            ratio = rows[name]["ratio"]
            notes.append(f"{ratio:,.0f} x {name}; asked for: {bar:,}; {'met' if ratio >= bar else 'not met'}")
    return notes
