"""The evidence runs, and its document and tables have the shape that is promised; no gain is asserted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("evidence.py")
ASKED = ("--sets", "starter", "--cases", "rrf", "--halves", "3")


def run(*more):
    environment = os.environ | {"STEELYARD_DATA": str(Path(__file__).parents[2] / "qrels")}
    command = [sys.executable, str(SCRIPT), *ASKED, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def record():
    (only,) = json.loads(run("--json"))["records"]
    return only


def test_a_record_holds_the_claims_and_what_each_way_keeps(record):
    assert (record["set"], record["case"], record["count"]) == ("starter", "rrf", 3)
    assert {"in_sample", "out_of_fold", "holdout", "optimism", "verdict"} <= set(record["tuning"])
    assert set(record["halves"]) == {"ours", "optimum", "best of 30"}


def test_no_way_to_choose_sees_more_than_the_optimum_and_none_loses_what_it_saw(record):
    seen = {way: found["seen"] for way, found in record["halves"].items()}

    assert 0 <= seen["ours"] <= seen["optimum"] + 1e-12
    assert 0 <= seen["best of 30"] <= seen["optimum"] + 1e-12


def test_the_tables_say_the_same(tmp_path, record):
    text = run("--keep", str(tmp_path))

    assert (tmp_path / "starter.plain" / "manifest.json").is_file()
    assert f"{record['tuning']['in_sample']['value']:.4f}" in text
    assert f"{record['halves']['optimum']['unseen']:+.4f}" in text
