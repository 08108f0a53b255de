"""What can be learned from feedback, on simulated logs over labelled collections: `make feedback`.

Half of the queries of a collection are logged, the other half is never shown: every gain below is nDCG@10 on that
half, against the weights that ranked the log. A row is one log; every row is a file under --folder, and a run that
was broken off, by --minutes or otherwise, goes on from there and prints what there is.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import itertools
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from evidence import Folder

from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.datasets import load
from steelyard_eval.decide.rule import PriorGains
from steelyard_eval.learn.first_ten import DISCOUNT, CandidateLists, lists_of
from steelyard_eval.learn.rivals import rivals
from steelyard_eval.learn.simulator import cells_of, simulate
from steelyard_eval.learn.verdict import (
    ACTS,
    LIFT,
    SURE,
    KnownGains,
    best_of,
    decide,
    judge,
    pool,
    sure,
)
from steelyard_eval.measures.metrics import Judgments
from steelyard_eval.recording.disk import load as load_recording
from steelyard_eval.recording.disk import save
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace, judged

DATA = Path(os.environ.get("STEELYARD_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
SETS = ("scifact", "cosqa", "locomo", "beam-128k", "cranfield")
LONG = ("scifact", "cosqa")
MODELS = ("pbm", "cascade", "dbn", "trust", "noisy", "hetero", "wild", "agent")
DRAWN = ("attract1", "attract")
"""Clicks that follow the first signal with strength .1 and .3."""
POLICIES = {"keywords": (1.0, 0.0), "usual": (0.3, 0.7), "tuned": None}
SESSIONS = (300, 1_000, 10_000)
SEEDS = 5
STRATEGY = "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)"
LABELS = 30
WORTH = 0.02
"""Labels gain at least so much: where there is something to recover."""
EXPLORED = ("interleave", "tail", "swap")
DISTINCT = (30, 60, 100)
HARM = 0.001
"""A loss on unseen queries that counts as harm."""


class World:
    """A collection under a grid of weights, with what every candidate is worth on every query."""

    def __init__(self, name, folder):
        dataset = load(DATA / name)
        queries = judged(dataset, dataset.queries)
        config = find_system("plain").config(10, "minilm").with_strategy(parse_strategy(STRATEGY))
        kept = folder / f"{name}.recording"
        if not kept.exists():
            save(record(Workspace.open(dataset), queries, [config]), kept)
        table = load_recording(kept)
        judgments = Judgments.of(dataset.qrels, table.queries, table.entries)
        self.lists = lists_of(table, config)
        self.grades = np.maximum(judgments.grades(self.lists.query, self.lists.entry), 0).astype(float)
        every = np.arange(len(self.lists.queries))
        self.gains = self.lists.grades(judgments)
        self.values = self.lists.values(self.gains, every)
        shares = self.lists.block.weights[:, 0]
        best = int(self.values.mean(axis=1).argmax())
        self.policies = {
            name: best if weights is None else int(np.abs(shares - weights[0]).argmin())
            for name, weights in POLICIES.items()
        }

    def ranked_by(self, policy: int) -> tuple[CandidateLists, np.ndarray]:
        """The lists and values with a candidate in the first place."""
        order = np.r_[policy, np.delete(np.arange(len(self.lists)), policy)]
        block = replace(self.lists.block, weights=self.lists.block.weights[order])
        return replace(self.lists, top=self.lists.top[order], block=block), self.values[order]


@cache
def world(name, folder):
    return World(name, folder)


def row(name, folder, policy, model, explore, sessions, seed, distinct=None):
    """One log: what every rule gains on the queries that were never logged.

    Logs that differ in sessions, exploration or distinct queries alone share their split of the queries.
    """
    own = world(name, folder)
    lists, values = own.ranked_by(own.policies[policy])
    rng = np.random.default_rng([seed, *map(ord, f"{name}{policy}{model}")])
    order = rng.permutation(len(lists.queries))
    inside, outside = np.split(order, [len(order) // 2])
    logged = inside[:distinct] if distinct else inside
    found = simulate(lists, own.grades, 0, model, sessions, rng, queries=logged, explore=explore)
    cells = cells_of(found, lists)
    if not cells.positive.any():
        return None
    unseen = values[:, outside].mean(axis=1)
    gain = lambda candidate: round(float(unseen[candidate] - unseen[0]), 5)  # noqa: E731 -- a table's shorthand
    labelled = rng.choice(inside, min(LABELS, len(inside)), replace=False)
    alone = judge(lists, cells)
    pooled = decide(alone.evidence, values[:, labelled])
    examination = alone.examination
    return {
        "set": name,
        "policy": policy,
        "model": model,
        "explore": explore,
        "sessions": sessions,
        "seed": seed,
        "distinct": distinct,
        "queries": len(cells.queries),
        "labels": gain(values[:, inside].mean(axis=1).argmax()),
        "labels30": gain(values[:, labelled].mean(axis=1).argmax()),
        "verdict": alone.verdict,
        "shipped": gain(alone.candidate) if alone.verdict == "ship" else 0.0,
        "tried": gain(alone.candidate) if alone.verdict == "try" else None,
        "pooled_verdict": pooled.verdict,
        "pooled": gain(pooled.candidate) if pooled.verdict == "ship" else 0.0,
        "refusal": None if alone.refusal is None else alone.refusal.reason.split(" (")[0],
        "best": gain(alone.best),
        **{rule: gain(candidate) for rule, candidate in rivals(lists, cells, examination).items()},
        "exponent": examination.exponent,
        "error": examination.error,
        "source": examination.source,
        "lift": alone.classes.lift,
        "cost": round(float((values[0, found.query] - np.append(own.gains, 0.0)[found.row] @ DISCOUNT).mean()), 5),
        **(_few(own, others(name, folder), policy, alone, gain) if distinct else {}),
        "promise": float(alone.views.gain[1, alone.candidate]),
    }


def others(name, folder):
    """The other collections."""
    return [world(one, folder) for one in SETS if one != name]


def _few(own, rest, policy, alone, gain):
    """What could be chosen from a log that the verdict refuses: by the log alone, and with other collections."""
    order = np.r_[own.policies[policy], np.delete(np.arange(len(own.lists)), own.policies[policy])]
    differences = [one.values[order] - one.values[order[:1]] for one in rest]
    prior = PriorGains.of(
        np.array([d.mean(axis=1) for d in differences]), np.array([d.var(axis=1) for d in differences])
    )
    error = np.sqrt(np.maximum(prior.variance, 1e-6) / prior.worth)
    pooled = pool(alone.views, [KnownGains(prior.mean, error, 0)])
    far = alone.classes.lift >= LIFT and not alone.examination.at_bound and alone.cells.positive.sum() >= ACTS
    found = {"bold": gain(best_of(alone.views.mean, far & (alone.views.bound(*SURE) > 0)))}
    for z in (1.0, 1.5, 2.0):
        found[f"prior{z:g}"] = gain(best_of(pooled.gain, far & sure(pooled, z)))
    found["both"] = gain(best_of(pooled.gain, far & sure(pooled, 1.0) & (alone.views.bound(2.0, 2.0) > 0)))
    found["table"] = gain(best_of(prior.mean, prior.mean > 0))
    return found


def cells_of_study(seeds):
    """Every row of the study, in the order in which it is made."""
    for seed in range(seeds):
        for name, policy, model, sessions in itertools.product(SETS, POLICIES, (*MODELS, *DRAWN), SESSIONS):
            yield name, policy, model, "none", sessions, seed
        for name, policy, model in itertools.product(LONG, POLICIES, MODELS):
            yield name, policy, model, "none", 100_000, seed
        for name, explore in itertools.product(LONG, EXPLORED):
            yield name, "usual", "pbm", explore, 10_000, seed


def few(seeds):
    """Logs of few distinct queries."""
    for seed in range(seeds):
        for name, policy, model, distinct in itertools.product(SETS, POLICIES, MODELS, DISTINCT):
            yield name, policy, model, "none", 3_000, seed, distinct


def shuffled(seeds):
    """All rows, seed by seed shuffled: a run that is broken off has seen some of everything."""
    for part, seed in itertools.product((cells_of_study, few), range(seeds)):
        every = [own for own in part(seeds) if own[5] == seed]
        for at in np.random.default_rng(seed).permutation(len(every)).tolist():
            yield every[at]


def share(rows, rule, pick=lambda row: True):
    """What is recovered of the labels' gain (pooled over rows, and the median), and how often it harms."""
    own = [one for one in rows if pick(one)]
    worth = [one for one in own if one["labels"] >= WORTH and one["queries"] >= 150]
    harmed = [one for one in own if one[rule] < -HARM]
    total = sum(one["labels"] for one in worth)
    parts = [one[rule] / one["labels"] for one in worth]
    return {
        "rows": len(own),
        "worth": len(worth),
        "pooled": sum(one[rule] for one in worth) / total if total else float("nan"),
        "median": float(np.median(parts)) if parts else float("nan"),
        "harm": len(harmed),
        "worst": min((one[rule] for one in own), default=0.0),
    }


RULES = {
    "shipped": "ours, verdict",
    "pooled": "ours, verdict, 30 labels",
    "best": "ours, no verdict",
    "dr": "doubly robust",
    "ips": "IPS, shown only",
    "naive": "naive clicks",
    "labels30": "30 labels alone",
    "bold": "ours, as if 150",
    "prior1": "with other collections, z = 1",
    "prior1.5": "with other collections, z = 1.5",
    "prior2": "with other collections, z = 2",
    "both": "z = 1, and the log alone at 2",
    "table": "other collections alone",
}


def line(head, own, rule):
    """One row of a table."""
    s = share(own, rule)
    recovered = f"{s['pooled']:>8.0%} {s['median']:>7.0%}" if s["worth"] else f"{'-':>8} {'-':>7}"
    return (
        f"{head:>9} {RULES[rule]:26} {s['rows']:>4} {s['worth']:>5} {recovered} {s['harm']:>4} {s['worst']:+.4f}"
    )


def tables(rows):
    """The tables of docs/feedback.md, as text."""
    plain = [one for one in rows if one["model"] in MODELS and one["explore"] == "none" and not one["distinct"]]
    lines = [f"{'sessions':>9} {'rule':26} logs worth recovered median harm worst"]
    for sessions in sorted({one["sessions"] for one in plain}):
        own = [one for one in plain if one["sessions"] == sessions]
        lines += [line(sessions, own, rule) for rule in RULES if rule in own[0]]
    lines += ["", "clicks that follow keywords, 10,000 sessions"]
    for model in DRAWN:
        own = [one for one in rows if one["model"] == model and one["sessions"] == 10_000]
        lines += [line(model, own, rule) for rule in ("shipped", "pooled", "best", "labels30")]
    lines += ["", "by model, 10,000 sessions"]
    long = [one for one in plain if one["sessions"] == 10_000]
    lines += [line(model, [one for one in long if one["model"] == model], "shipped") for model in MODELS]
    return "\n".join([*lines, *explored(rows), *shortage(rows)])


def explored(rows):
    """What mixing other lists into a tenth of the sessions does for the exponent, and what it costs."""
    yield from ("", "a tenth of the sessions explored, pbm, 10,000 sessions: exponent (true: 1) and cost, nDCG@10")
    own = [one for one in rows if one["set"] in LONG and one["model"] == "pbm" and one["policy"] == "usual"]
    for explore in ("none", *EXPLORED):
        some = [one for one in own if one["explore"] == explore and one["sessions"] == 10_000]
        if some:
            exponents = [one["exponent"] for one in some]
            cost = np.mean([one["cost"] for one in some])
            yield f"{explore:>10} {np.mean(exponents):.2f} sd {np.std(exponents):.2f} cost {cost:+.4f}"


def shortage(rows):
    """Few distinct queries: what could be gained, and what it would cost to ship it."""
    yield from ("", "few distinct queries, 3,000 sessions")
    for distinct in DISTINCT:
        own = [one for one in rows if one["distinct"] == distinct]
        for rule in ("best", "bold", "prior1", "prior1.5", "prior2", "both", "table", "labels30") if own else ():
            total = sum(one["labels"] for one in own)
            gain, harm = sum(one[rule] for one in own), sum(one[rule] < -HARM for one in own)
            yield f"{distinct:>10} {RULES[rule]:32} {gain / total:>6.0%} harm {harm} of {len(own)}"


def plot(rows, file):
    """Draw what is recovered, and how often it harms, by the number of sessions."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "steelyard"
    plain = [one for one in rows if one["model"] in MODELS and one["explore"] == "none" and not one["distinct"]]
    figure = Figure(figsize=(8, 3), layout="constrained")
    recovered, harm = figure.subplots(1, 2)
    for rule in ("shipped", "pooled", "best", "dr", "ips", "naive"):
        by = {
            n: share([one for one in plain if one["sessions"] == n], rule) for n in (300, 1_000, 10_000, 100_000)
        }
        known = {n: s for n, s in by.items() if s["worth"]}
        recovered.plot(list(known), [s["pooled"] for s in known.values()], "o-", label=RULES[rule])
        rated = {n: s["harm"] / s["rows"] for n, s in by.items() if s["rows"]}
        harm.plot(list(rated), list(rated.values()), "o-")
    for axes, title in ((recovered, "gain recovered, of that by labels"), (harm, "logs that do harm")):
        axes.set(xscale="log", xlabel="sessions", title=title, ylim=(-0.02, None))
        axes.yaxis.set_major_formatter("{x:.0%}")
        axes.grid(color="0.9")
    recovered.legend(fontsize=7)
    figure.savefig(file, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("reports/feedback"))
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--plot", type=Path, help="draw recovered gain and harm to this file")
    asked = parser.parse_args()
    folder = Folder(asked.folder, asked.minutes)
    rows = []
    for own in shuffled(asked.seeds):
        if own[0] not in asked.sets:
            continue
        found = folder.row(".".join(map(str, own)), lambda own=own: row(own[0], asked.folder, *own[1:]))
        if found:
            rows.append(found)
    print(tables(rows))
    if asked.plot:
        plot(rows, asked.plot)
    print(f"{len(rows)} rows", file=sys.stderr)


if __name__ == "__main__":
    main()
