"""Every target of the Makefile runs with the smallest budget, on a copy of the checkout and tiny collections."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).resolve().parents[2]
DATA = json.loads(Path(__file__).with_name("targets.json").read_text("utf-8"))
RUN, SKIPPED = DATA["run"], DATA["skipped"]
"""Target -> the variables that make it small; target -> why it is not run."""


def targets():
    return re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy, so that no page changes here; without what campaigns found before, on which they would go on."""
    place = tmp_path_factory.mktemp("checkout")
    left = shutil.ignore_patterns(
        ".venv", ".git", "__pycache__", ".*_cache", "demo", "site", "large", "evidence", "campaigns"
    )
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
    marks = ("bin/python", "installed", "tested", "benched", "postgres")
    made = [word for mark in marks for word in ("-o", f".venv/{mark}")]  # nothing is installed by a test
    done = subprocess.run(
        ["make", *made, f"BIN={Path(sys.executable).parent}", target, *RUN[target]],
        cwd=own,
        env=os.environ | {"PYTHONPATH": paths, "STEELYARD_DATA": str(copy / "data")},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
