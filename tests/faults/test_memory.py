"""What a command may take: it refuses in one line instead of growing, and a loop of searches does not grow."""

import json
import os
import resource
import subprocess
import sys

import everything
import loop
import pytest
import small

from steelyard.base.machine import MEMORY
from steelyard_eval.common.process import MIN_MEMORY_BYTES, bounded, read_size

MIB = 2**20
pytestmark = pytest.mark.usefixtures("keep_words")  # as test_survival, which has the same `everything.yards`


@pytest.fixture
def large(tmp_path):
    """A data set that takes about a gigabyte of memory: half a million entries of a hundred bytes."""
    folder = tmp_path / "large"
    folder.mkdir()
    with (folder / "corpus.jsonl").open("w") as stream:
        stream.writelines(json.dumps({"id": f"e{at}", "text": f"token {at} " * 5}) + "\n" for at in range(500_000))
    return folder


def test_a_command_refuses_what_it_has_no_memory_for_and_leaves_nothing(large, tmp_path):
    words = ["index", str(large), str(tmp_path / "vault"), "--memory", "512M"]
    done = subprocess.run([sys.executable, "-m", "steelyard_eval", *words], capture_output=True, text=True)
    assert done.returncode == 4, done.stderr[-2000:]
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "more with --memory" in line
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["large"]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux bounds what a process allocates")
@pytest.mark.parametrize(
    "name",
    ["index", "record", "import", *(pytest.param(own, marks=pytest.mark.nightly) for own in ("compare", "learn"))],
)
def test_a_command_with_little_memory_writes_all_or_nothing(name):
    """It has what it has when it begins and no more, or a few megabytes; the state before, or the one after."""
    yard = everything.yards(name)[-1]
    for extra in (0, 3):
        everything.little_memory(None, yard, extra)


@pytest.mark.parametrize(
    ("error", "closing"),
    [
        (MemoryError(), False),
        (MemoryError(), True),  # seen in CI: what handled the first error found no memory either
        (SystemError("error return without exception set"), False),
        (RuntimeError("can't start new thread"), False),
        (ImportError("libx.so: failed to map segment from shared object"), False),
    ],
)
def test_whatever_tells_that_there_is_no_memory_is_one_message(error, closing, monkeypatch):
    """The texts are glibc's and Python's own."""

    def fails(*_):
        raise error

    monkeypatch.setattr("steelyard_eval.cli.diagnosis.diagnose", fails)
    if closing:
        monkeypatch.setattr("steelyard_eval.cli.main.LOGGER.removeHandler", fails)
    outcome = small.steelyard("doctor")
    assert outcome.exit_code == 4
    assert closing or outcome.stderr.count("\n") == 1
    assert "command may" in outcome.stderr


@pytest.mark.parametrize(
    ("text", "size"), [("512M", MIN_MEMORY_BYTES), ("2G", 2**31), ("800m", 800 * MIB), ("1GiB", 2**30)]
)
def test_sizes(text, size):
    assert read_size(text) == size


@pytest.mark.parametrize("text", small.ATTACKS["sizes"])
def test_other_sizes_are_refused(text):
    assert "800M or 4G" in small.one_message(small.steelyard("doctor", "--memory", text), 2)


def test_the_bound_ends_with_the_command(monkeypatch):
    monkeypatch.delenv(MEMORY, raising=False)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded(2**31):
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] == 2**31
        assert os.environ[MEMORY] == "512"
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert MEMORY not in os.environ


def test_a_loop_of_searches_holds_its_memory_and_its_files():
    """2,000 searches with vectors, alone and in scopes; `make campaign` has 100,000."""
    found = loop.work(0, searches=1_000)
    first = loop.work(1, searches=500)
    later = loop.work(2, searches=500)
    assert found["searches"] + first["searches"] + later["searches"] == 2_000
