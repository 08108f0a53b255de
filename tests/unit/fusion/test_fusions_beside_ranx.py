"""The fusions that ranx has too score as ranx does, on random lists, under every normalisation that both have.

ranx runs in a process of its own with its compiler switched off. All cases take minutes, so `make test` has one of
each kind.
"""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from steelyard.fusion import fuse, parse_strategy
from steelyard.testing import random_table, select_queries

pytest.importorskip("ranx")

LISTS = ("bm25", "fts", "vector")
COMBINED = ("sum", "mnz", "anz", "med", "max", "min")
RANKED = {"isr": "isr", "log_isr": "log_isr", "borda": "bordafuse"}
SCALES = {"none": None, "max": "max", "minmax": "min-max", "zscore": "zmuv", "rank": "rank"}
"""Our normalisation -> ranx's."""
CASES = {
    **{
        f"comb_{own}({{}}, normalize={ours})": (own, norm, {}) for own in COMBINED for ours, norm in SCALES.items()
    },
    **{f"{ours}({{}})": (own, None, {}) for ours, own in RANKED.items()},
    **{f"rbc({{}}, phi={phi})": ("rbc", None, {"phi": phi}) for phi in (0.5, 0.8, 0.95)},
    "rrf({}, k=60)": ("rrf", None, {"k": 60}),
    "weighted_sum({}, normalize=minmax)": ("sum", "min-max", {}),
}
"""Our strategy -> ranx's method, normalisation and parameters."""
QUICK = (
    "comb_mnz({}, normalize=minmax)",
    "comb_med({}, normalize=zscore)",
    "isr({})",
    "borda({})",
    "rrf({}, k=60)",
)
"""What is compared in `make test`; the formulas are held by hand in test_fusion.py and docs/strategies.md, too."""
SERVER = """
import json, os, sys
os.environ["NUMBA_DISABLE_JIT"] = "1"
from ranx import Run, fuse

given = json.load(sys.stdin)
fused = []
for job in given["jobs"]:
    runs = [Run(run) for run in given["worlds"][job["world"]]]
    done = fuse(runs, norm=job["norm"], method=job["method"], params=job["params"])
    fused.append({query: {id_: float(score) for id_, score in found.items()} for query, found in done.run.items()})
json.dump(fused, sys.stdout)
"""


def comparable(table):
    """The queries whose lists hold two entries or more with a positive maximum.

    ranx scores a list of one 0 under min-max, and divides a list without a positive score by 1e-9: decided
    otherwise here, see `steelyard.fusion.sums`.
    """
    kept = []
    for q in range(len(table.queries)):
        rows = slice(table.offsets[q], table.offsets[q + 1])
        lists = [table.columns[name][rows] for name in LISTS]
        if all((~np.isnan(one)).sum() > 1 and np.nanmax(one) > 0 for one in lists):
            kept.append(q)
    return select_queries(table, kept)


WORLDS = [comparable(random_table(np.random.default_rng(seed), 8, 20, LISTS, ties=False)) for seed in range(4)]


def runs_of(table):
    """A run a list: query -> entry -> score."""
    runs = []
    for name in LISTS:
        run = {query: {} for query in table.queries}
        for row, score in enumerate(table.columns[name].tolist()):
            if not math.isnan(score):
                run[table.queries[table.query[row]]][table.entries[table.entry[row]]] = score
        runs.append(run)
    return runs


@pytest.fixture(scope="module")
def theirs(request):
    """(strategy, world) -> query -> entry -> ranx's score, of the strategies that are tested in this run."""
    items = (item for item in request.session.items if item.path == request.path and hasattr(item, "callspec"))
    own = {item.callspec.params["text"] for item in items}
    places = [(text, world) for text in CASES if text in own for world in range(len(WORLDS))]
    jobs = []
    for text, world in places:
        method, norm, params = CASES[text]
        jobs.append({"world": world, "norm": norm, "method": method, "params": params or None})
    given = json.dumps({"worlds": [runs_of(table) for table in WORLDS], "jobs": jobs})
    command, quiet = [sys.executable, "-c", SERVER], {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, env=quiet)
    return dict(zip(places, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=[] if text in QUICK else [pytest.mark.nightly]) for text in CASES]
)
def test_scores_are_those_of_ranx(theirs, text):
    weight = "1*" if text.startswith("weighted_sum") else ""
    strategy = parse_strategy(text.format(", ".join(weight + name for name in LISTS)))
    seen = 0
    for world, table in enumerate(WORLDS):
        ours = {query: {} for query in table.queries}
        for row, score in enumerate(fuse(table, strategy).tolist()):
            if not math.isnan(score):
                ours[table.queries[table.query[row]]][table.entries[table.entry[row]]] = score

        assert ours.keys() == theirs[text, world].keys()
        for query, found in theirs[text, world].items():
            assert ours[query] == pytest.approx(found, rel=1e-12, abs=1e-12), (world, query)
            seen += len(found)
    assert seen > 50
