"""What a gate compares does not follow the number of threads that BLAS takes."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

ROUND = """
import sys
import numpy
from threadpoolctl import threadpool_info, threadpool_limits
from steelyard_eval.cli.main import main
threads, commands = int(sys.argv[1]), sys.argv[2:]
codes = []
with threadpool_limits(threads):
    taken = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
    for command in commands:
        try:
            main(command.split("|"), standalone_mode=False)
            codes.append(0)
        except SystemExit as end:
            codes.append(end.code or 0)
sys.stderr.write(f"took {max(taken)} threads, ended with {codes}")
"""
"""Commands in a process whose BLAS takes so many threads from the moment it is loaded."""


def run(folder, threads, *commands):
    number = str(threads)
    given = {"OPENBLAS_NUM_THREADS": number, "OMP_NUM_THREADS": number, "SOURCE_DATE_EPOCH": "1780000000"}
    done = subprocess.run(
        [sys.executable, "-c", ROUND, number, *("|".join(command) for command in commands)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **given},
    )
    assert f"took {threads} threads, ended with {[0] * len(commands)}" in done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data set without vectors, of 240 entries: enough for products of the LSA fit to be shared by threads."""
    root = tmp_path_factory.mktemp("threads")
    (root / "set").mkdir()
    draw = np.random.default_rng(0)
    words = [a + b + c for a in "bdfgklmnprstvz" for b in "aeiou" for c in "bdglmnrst"]
    often = 1 / np.arange(1, len(words) + 1)
    texts = [" ".join(draw.choice(words, 30, p=often / often.sum())) for _ in range(240)]
    entries = [{"id": f"m{at:03d}", "text": text} for at, text in enumerate(texts)]
    queries = [{"id": f"q{at}", "text": " ".join(draw.choice(texts[at].split(), 4))} for at in range(12)]
    for name, rows in (("corpus", entries), ("queries", queries)):
        (root / "set" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "set" / "qrels.txt").write_text("".join(f"q{at} 0 m{at:03d} 1\n" for at in range(12)))
    (root / "set" / "dataset.json").write_text('{"name": "set", "as_of": "2026-01-01T00:00:00Z"}')
    return root


def hashes(root):
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest() for path in files}


GATED = ["vector", "weighted_sum(0.4*bm25, 0.6*vector)", "echovault"]


def test_recordings_and_baselines_have_the_same_bytes_and_the_gate_passes(folder):
    found = []
    for threads in (1, 2, 4):
        out = f"made{threads}"
        record = [
            "record",
            "set",
            f"{out}/recording",
            "--systems",
            "vector,echovault,moltnet",
            "--embedder",
            "lsa",
        ]
        update = ["gate", "set", *GATED, "--embedder", "lsa", "--update", "--because", "first"]
        first = ["gate", "set", "--baseline", "made1/baseline.json", "--out", f"verdict{threads}.json", "-q"]
        run(folder, threads, record, [*update, "--baseline", f"{out}/baseline.json", "-q"], first)
        found.append(hashes(folder / out))
        verdict = json.loads(Path(folder / f"verdict{threads}.json").read_text())

        assert verdict["answer"]["key"] == "pass"
        assert [finding["key"] for finding in verdict["findings"]] == ["gate_identity"] * 3

    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 6
