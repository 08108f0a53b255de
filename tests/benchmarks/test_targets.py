"""Every target of the Makefile runs with the smallest budget, on a copy of the checkout and tiny collections.

The bench runs, too: its contenders agree, and its document has the shape that is promised; no time is asserted.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard_eval.datasets import load

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).resolve().parents[2]
DATA = json.loads(Path(__file__).with_name("targets.json").read_text("utf-8"))
RUN, SKIPPED = DATA["run"], DATA["skipped"]
"""Target -> the variables that make it small; target -> why it is not run."""


def ran(words, timeout, **how):
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False, **how)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def targets():
    return re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy, so that no page changes here; without what campaigns found before, on which they would go on."""
    place = tmp_path_factory.mktemp("checkout")
    usual = shutil.ignore_patterns(
        ".venv", ".git", "__pycache__", ".*_cache", "demo", "site", "large", "campaigns"
    )

    def left(folder, names):
        return usual(folder, names) | ({"evidence"} if Path(folder) == ROOT / "reports" else set())

    shutil.copytree(ROOT, place / "own", ignore=left)
    for name in DATA["collections"]:
        shutil.copytree(ROOT / "qrels" / "starter", place / "data" / name)
    return place


def test_every_target_is_run_or_skipped_for_a_reason():
    assert sorted(targets()) == sorted([*RUN, *SKIPPED])


@pytest.mark.parametrize("target", RUN)
def test_a_target_runs(copy, target):
    own = copy / "own"
    paths = os.pathsep.join([str(own / "engine"), str(own / "eval")])
    marks = ("bin/python", "installed", "compiled", "tested", "benched", "postgres")
    made = [word for mark in marks for word in ("-o", f".venv/{mark}")]  # nothing is installed by a test
    environ = os.environ | {"PYTHONPATH": paths, "STEELYARD_DATA": str(copy / "data")}
    ran(["make", *made, f"BIN={Path(sys.executable).parent}", target, *RUN[target]], 1200, cwd=own, env=environ)


BENCH = Path(__file__).with_name("bench.py")
START = """
import runpy, sys
sys.modules["ranx"] = None  # compiling it takes a minute, and the bench runs without it as well
sys.path.insert(0, sys.argv[1].rpartition("/")[0])
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def report():
    return json.loads(ran([sys.executable, "-c", START, str(BENCH), "--quick", "--json"], 300))


def test_the_machine_and_its_versions_are_told(report):
    assert {"cpu", "cores", "python", "sqlite", "packages", "date", "load_before", "load_after"} <= set(
        report["machine"]
    )
    assert {"steelyard", "numpy", "apsw", "sqlite-vec"} <= set(report["machine"]["packages"])


def test_every_case_has_us_and_a_peer_with_times_and_ratios(report):
    groups = {"replay", "evaluation", "search", "keywords", "vectors", "layers", "tuning"}
    assert {case["group"] for case in report["cases"]} == groups
    for case in report["cases"]:
        rows = [r for r in report["rows"] if (r["group"], r["case"]) == (case["group"], case["case"])]
        assert rows[0]["ours"]
        assert rows[0]["ratio"] == 1.0
        assert all(row["median_ms"] > 0 and row["cpu_ms"] > 0 and row["ratio"] > 0 for row in rows)
        assert all(
            (row["p95_ms"] is None) == (case["group"] in ("replay", "evaluation", "search", "tuning"))
            for row in rows
        )
        missing = set(report["machine"]["missing_peers"])  # of the extra bench
        peers = {"optuna", "cmaes", "fastrank"} if case["group"] == "tuning" else {"bm25s"}
        no_peer = (case["group"] == "tuning" or case["case"].startswith("bm25")) and bool(missing & peers)
        assert no_peer or not all(row["ours"] for row in rows)


def test_its_other_scripts_run_on_little(tmp_path):
    """`make bench` runs them, too: a log is read and learned from, and commands have notes to work on."""
    import commands
    import logs

    found = logs.run(300)
    assert (found["impressions"], found["used"]) == (300, 300)
    commands.notes(tmp_path / "mine", 120)
    assert (len(load(tmp_path / "mine").entries), len(load(tmp_path / "mine").qrels)) == (120, 60)
