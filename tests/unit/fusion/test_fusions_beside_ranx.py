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
METHODS = {
    "comb_sum": "sum",
    "comb_mnz": "mnz",
    "comb_anz": "anz",
    "comb_med": "med",
    "comb_max": "max",
    "comb_min": "min",
    "isr": "isr",
    "log_isr": "log_isr",
    "borda": "bordafuse",
    "rbc": "rbc",
    "rrf": "rrf",
}
"""Our keyword -> ranx's method."""
SCALES = {"none": None, "max": "max", "minmax": "min-max", "zscore": "zmuv", "rank": "rank"}
"""Our normalisation -> ranx's."""
CASES = {
    **{f"{name}({{}}, normalize={scale})": name for name in METHODS if name[:4] == "comb" for scale in SCALES},
    **{f"{name}({{}})": name for name in ("isr", "log_isr", "borda")},
    **{f"rbc({{}}, phi={phi})": "rbc" for phi in ("0.5", "0.8", "0.95")},
    "rrf({}, k=60)": "rrf",
    "weighted_sum({}, normalize=minmax)": "comb_sum",
}
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


def every(seed):
    """Lists of any length, empty ones too."""
    return random_table(np.random.default_rng(seed), 8, 20, LISTS, ties=False)


FREE = 2
"""Worlds with lists of any length."""
WORLDS = [*(every(seed) for seed in range(FREE)), *(comparable(every(seed)) for seed in range(FREE, 5))]


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


def scale_of(text):
    return SCALES[text.partition("normalize=")[2].rstrip(")") or "none"]


def params_of(text):
    """The parameters of ranx's method that stand in our text."""
    for option, kind in (("phi", float), ("k", int)):
        if f" {option}=" in text:
            return {option: kind(text.partition(f" {option}=")[2].rstrip(")"))}
    return None


def applies(text, world):
    """Normalisation of very short lists is decided otherwise."""
    return scale_of(text) in (None, "rank") or world >= FREE


@pytest.fixture(scope="module")
def theirs(request):
    """(strategy, world) -> query -> entry -> ranx's score, of the strategies that are tested in this run."""
    items = (item for item in request.session.items if item.path == request.path and hasattr(item, "callspec"))
    own = {item.callspec.params["text"] for item in items}
    texts = [text for text in CASES if text in own]
    places = [(text, world) for text in texts for world in range(len(WORLDS)) if applies(text, world)]
    jobs = [
        {
            "world": world,
            "norm": scale_of(text),
            "method": METHODS[CASES[text]],
            "params": params_of(text),
        }
        for text, world in places
    ]
    given = json.dumps({"worlds": [runs_of(table) for table in WORLDS], "jobs": jobs})
    quiet = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-c", SERVER], input=given, capture_output=True, text=True, check=True, env=quiet
    )
    return dict(zip(places, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=[] if text in QUICK else [pytest.mark.nightly]) for text in CASES]
)
def test_scores_are_those_of_ranx(theirs, text):
    weight = "1*" if text.startswith("weighted_sum") else ""
    strategy = parse_strategy(text.format(", ".join(weight + name for name in LISTS)))
    seen = 0
    for world, table in enumerate(WORLDS):
        if not applies(text, world):
            continue
        ours = {query: {} for query in table.queries}
        for row, score in enumerate(fuse(table, strategy).tolist()):
            if not math.isnan(score):
                ours[table.queries[table.query[row]]][table.entries[table.entry[row]]] = score

        assert ours.keys() == theirs[text, world].keys()
        for query, found in theirs[text, world].items():
            assert ours[query] == pytest.approx(found, rel=1e-12, abs=1e-12), (world, query)
            seen += len(found)
    assert seen > 50
