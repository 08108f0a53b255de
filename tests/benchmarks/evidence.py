"""Does tuning keep what it promises? `make evidence`: real sets, the proof of each tuning, and random halves.

For every set and configuration: what tuning claims (in sample, out of fold, holdout, verdict). Then the judged
queries are split into random halves, by group: a setting is chosen on one and its gain over the current one is
measured on the other. Three ways to choose see the same recording and the same halves: ours, the optimum itself
(ours without the tie rule), and the best of 30 settings of a grid, as is common practice.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import itertools
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steelyard.fusion import parse_strategy
from steelyard_eval.datasets import load
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.progress import bar
from steelyard_eval.recording import files as recordings
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.tune import choice as choices
from steelyard_eval.tune.task import prepare
from steelyard_eval.tune.tuner import proven

DATA = Path(os.environ.get("STEELYARD_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
SETS = ("cacm", "cisi", "vaswani", "cranfield", "beam-128k", "cosqa", "scifact", "locomo")
WAYS = ("ours", "optimum", "best of 30")
SAME = 1e-12
STEPS = [round(0.05 + 0.1 * at, 2) for at in range(10)]
CASES = {
    "echovault": ("echovault", None),
    "soleri": ("soleri", None),
    "moltnet": ("moltnet", None),
    "weighted sum": ("plain", "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)"),
    "rrf": ("plain", "rrf(bm25, vector, k=60)"),
}
"""What is tuned: a system's own strategy, or one over the baselines' retrievers."""
FEWER = {"soleri": 10, "moltnet": 10}
"""Where more than two weights are searched a choice takes seconds: so many times fewer halves."""


def grid(name, strategy):
    """30 settings that somebody might try: 3 values of a parameter by 10 weights; 30 mixtures of many signals."""
    if name in FEWER:
        draws = np.random.default_rng(0).dirichlet(np.ones(len(strategy.weights)), 30)
        return [strategy.with_weights(draw) for draw in draws]
    templates = {
        "echovault": (
            "tiered(fts, min_results={}, then=weighted_sum({}*fts, {}*vector, normalize=max))",
            (3, 10, 50),
        ),
        "weighted sum": ("weighted_sum({1}*bm25, {2}*vector, normalize={0})", ("max", "minmax", "zscore")),
        "rrf": ("rrf({1}*bm25, {2}*vector, k={0})", (10, 60, 100)),
    }
    text, values = templates[name]
    pairs = itertools.product(values, STEPS)
    return [parse_strategy(text.format(value, step, round(1 - step, 2))) for value, step in pairs]


@dataclass(frozen=True)
class Split:
    """The gains over the current setting of what one way chose: on the half it saw, and on the other."""

    seen: float
    unseen: float


def halves(task, candidates, count):
    """way -> a Split a random half."""
    units = unit_numbers(task.queries)
    current = task.values(task.config)
    others = [task.values(task.config.with_strategy(one)) for one in candidates]
    tried = np.array([current, *others]) - current
    found = {way: [] for way in WAYS}
    for seed in bar("halves")(range(count)):
        order = np.random.default_rng([task.seed, seed]).permutation(units.max() + 1)
        seen = (order < (units.max() + 1) / 2)[units]
        choice = task.chooser.choose(seen, proof=False)
        if seed % 20 == 0 and not np.allclose(choice.values, task.values(choice.config), atol=1e-9):
            sys.exit(f"{choice.config.strategy}: replay gives other values than the search")
        best = tried[int(np.argmax(tried[:, seen].mean(axis=1)))]
        for way, gain in zip(WAYS, (choice.values - current, choice.best_values - current, best), strict=True):
            moved = np.where(np.abs(gain) > SAME, gain, 0.0)
            found[way].append(Split(float(moved[seen].mean()), float(moved[~seen].mean())))
    return found


def summary(splits):
    """Mean gains, the share that holds out, and how often the other half got worse or nothing moved."""
    seen, unseen = (np.array([getattr(one, side) for one in splits]) for side in ("seen", "unseen"))
    return {
        "seen": float(seen.mean()),
        "unseen": float(unseen.mean()),
        "kept": float(unseen.mean() / seen.mean()) if seen.mean() > SAME else None,
        "worse": float((unseen < -SAME).mean()),
        "unmoved": float((np.abs(seen) + np.abs(unseen) < SAME).mean()),
    }


def prepared(space, name, asked, tables):
    """The task of a case. Cases of one system share a recording; it is kept in a folder where one is named."""
    system, strategy = CASES[name]
    kept = asked.keep / f"{space.dataset.name}.{system}" if asked.keep else None
    if kept and kept.exists():
        tables.setdefault(system, recordings.load(kept))
    known = tables.get(system)
    task = prepare(space.dataset, system, strategy, asked.metric, None, "auto", 0, space, known)
    if kept and known is None:
        recordings.save(task.table, kept)
    tables[system] = task.table
    return task


def measured(space, name, asked, tables):
    """One record: the tuning's own claims, and what the halves say."""
    begin = time.perf_counter()
    task = prepared(space, name, asked, tables)
    ready = time.perf_counter()
    tuning = proven(task).to_json()
    proved = time.perf_counter()
    count = -(-asked.halves // FEWER.get(name, 1))
    found = halves(task, grid(name, task.config.strategy), count)
    return {
        "set": space.dataset.name,
        "case": name,
        "before": float(task.values(task.config)[task.inside].mean()),
        "tuning": {name: value for name, value in tuning.items() if name != "curve"},
        "count": count,
        "halves": {way: summary(splits) for way, splits in found.items()},
        "seconds": [round(ready - begin, 1), round(proved - ready, 1), round(time.perf_counter() - proved, 1)],
    }


def show(records):
    """Both tables."""
    lines = [
        "what tuning claims",
        f"{'set':10} {'configuration':13}{'tuned on':>9}{'default':>9}{'in sample':>10}{'out of fold':>12}"
        f"{'optimism':>9}{'held out':>9}{'default':>9}{'gain':>8}{'p':>8}  verdict, certificate",
    ]
    for one in records:
        t = one["tuning"]
        lines.append(
            f"{one['set']:10} {one['case']:13}{t['in_sample']['queries']:>9}{one['before']:>9.4f}"
            f"{t['in_sample']['value']:>10.4f}{t['out_of_fold']['value']:>12.4f}{t['optimism']:>9.4f}"
            f"{t['holdout']['value']:>9.4f}{t['baseline']['value']:>9.4f}{t['gain']['value']:>+8.4f}"
            f"{t['gain']['p']:>8.4f}  {t['verdict']}, {t['certificate']}"
        )
    lines += [
        "",
        "random halves: chosen on one, measured on the other (gains over the default)",
        f"{'set':10} {'configuration':13} {'halves':>6} {'chosen by':12}{'seen':>9}{'unseen':>9}{'kept':>7}"
        f"{'worse':>7}{'unmoved':>9}",
    ]
    for one in records:
        for way, found in one["halves"].items():
            kept = "-" if found["kept"] is None else f"{found['kept']:.0%}"
            lines.append(
                f"{one['set']:10} {one['case']:13} {one['count']:>6} {way:12}{found['seen']:>+9.4f}"
                f"{found['unseen']:>+9.4f}{kept:>7}{found['worse']:>7.1%}{found['unmoved']:>9.1%}"
            )
    return "\n".join([*lines, "", *totals(records)])


def totals(records):
    """One line a way over all sets and configurations."""
    for way in WAYS:
        own = [one["halves"][way] for one in records]
        seen, unseen = (float(np.mean([found[side] for found in own])) for side in ("seen", "unseen"))
        worse = [found["worse"] for found in own]
        kept = f"{unseen / seen:.0%}" if seen else "-"
        yield (
            f"{way:12} in all: {seen:+.4f} seen, {unseen:+.4f} unseen, {kept} kept; worse in "
            f"{np.mean(worse):.1%} of the halves, at most {max(worse):.1%} in one row"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, help="folders of STEELYARD_DATA")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--halves", type=int, default=200)
    parser.add_argument("--metric", default="nDCG@10")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep recordings here")
    parser.add_argument("--switch", type=float, default=choices.SWITCH, help="standard errors that a gain takes")
    parser.add_argument(
        "--tied", type=float, default=choices.TIED, help="standard errors within which settings tie"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args()
    choices.SWITCH, choices.TIED = asked.switch, asked.tied
    records = []
    for name in asked.sets:
        space, tables = Workspace.open(load(DATA / name)), {}
        for case in asked.cases:
            records.append(measured(space, case, asked, tables))
            took = ", ".join(map(str, records[-1]["seconds"]))
            print(f"{name}, {case}: recorded, tuned, halved in {took} s", file=sys.stderr, flush=True)
    if asked.json:
        print(json.dumps({"metric": asked.metric, "records": records}, indent=2))
    else:
        print(show(records))


if __name__ == "__main__":
    main()
