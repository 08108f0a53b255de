"""What a command loads: importing takes most of the time of a short one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard
from steelyard.base.arrays import compiled
from steelyard_eval import precompile
from steelyard_eval.candidates import compiled_loops
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.learn import first_ten

HEAVY = {"apsw", "matplotlib", "numba", "numpy", "pandas", "rapidfuzz", "scipy", "sklearn", "sqlite_vec"}
LOADED = """
import sys
from steelyard_eval.cli.main import main
main(sys.argv[1:], standalone_mode=False)
sys.stderr.write("loaded: " + " ".join(sys.modules))
"""


def loaded(*words: object) -> set[str]:
    command = [sys.executable, "-c", LOADED, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return HEAVY & {name.partition(".")[0] for name in done.stderr.partition("loaded: ")[2].split()}


@pytest.mark.parametrize("words", [["--version"], ["--help"]])
def test_what_searches_nothing_loads_nothing(words: list[str]) -> None:
    assert loaded(*words) == set()


def test_a_search_loads_what_it_searches_with(tmp_path: Path) -> None:
    vault = tmp_path / "memory.db"
    index = [sys.executable, "-m", "steelyard_eval", "index", str(starter()), str(vault), "--embedder", "none"]
    subprocess.run(index, capture_output=True, check=True)
    found = loaded("search", vault, "rotate the token", "--system", "fts")
    assert found == {"apsw", "numpy", "sqlite_vec"}


THREADS = """
import sys
from importlib import import_module
from threadpoolctl import threadpool_info
sys.argv = ["steelyard", "doctor", "--json"]
try:
    import_module("steelyard_eval.__main__").main()
finally:
    found = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    sys.stderr.write(f"threads: {found[0]}")
"""


@pytest.mark.parametrize(("given", "expected"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_products_of_a_command_have_one_thread_unless_somebody_says_otherwise(
    given: dict[str, str], expected: str
) -> None:
    """As OpenBLAS itself says (threadpoolctl asks the library)."""
    names = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}
    environ = {name: value for name, value in os.environ.items() if name not in names} | given
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, check=False, env=environ
    )
    assert done.stderr.rpartition("threads: ")[2] == expected


def test_precompiling_runs_the_loops_of_every_search_for_weights() -> None:
    precompile.main()
    before = compiled.cache_info().misses
    compiled_loops.compiled()
    first_ten.loop()
    assert compiled.cache_info().misses == before  # it was compiled then


def test_every_name_of_the_engine_can_be_asked_for() -> None:
    for name in steelyard._MODULES:
        assert getattr(steelyard, name) is not None
        assert name in dir(steelyard)
    with pytest.raises(AttributeError, match="no attribute 'Absent'"):
        steelyard.Absent  # noqa: B018 -- asking is the test
