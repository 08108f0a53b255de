"""Scores of three systems equal those that scripts without the engine computed from the files of data sets.

`lists.json` is what they found: data set -> system -> query -> [id, score], best first. The scripts are
tests/golden/recomputed.py and tests/golden/cortex_mem_by_hand.py of commit 45c61c7e. They follow the pages
(seeds), the fact sheets of the programs and docs/, by dictionaries, NumPy, SQLite's FTS5 and PyStemmer; what
changes an entry of a set, or what a system decides, needs them again.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.shared import ROOT, STARTER, beside

import steelyard_eval as sy
from steelyard.systems import find_system
from steelyard_eval.recording.record import record

DATA = Path(os.environ.get("STEELYARD_DATA") or ROOT.parent / "shared" / "data")
LISTS = beside(__file__, "lists.json")


@pytest.fixture(scope="module")
def opened():
    """A data set by its name, opened once."""
    known = {}

    def load(name):
        folder = STARTER if name == "starter" else DATA / name
        if not folder.is_dir():
            pytest.skip(f"{folder} does not exist; set STEELYARD_DATA to the folder of the collections")
        return known.setdefault(name, sy.load(folder, intents="given"))

    return load


@pytest.mark.parametrize(("name", "system"), [(name, system) for name, own in LISTS.items() for system in own])
def test_queries_are_recomputed(opened, name, system):
    bench = opened(name)
    config = find_system(system).config(10, bench.workspace.model, {"ENABLE_FUZZY_MATCH": "false"})
    record(bench.workspace, bench.dataset.queries[:1], [config])  # indexes what the system needs
    search, given = bench.workspace.searcher(config), bench.searcher(config)
    queries = {query.id: replace(query, intent="") for query in bench.dataset.queries}
    for asked, expected in LISTS[name][system].items():
        # Cortex-Mem classifies; what is given to the others is what they know.
        found = search.search(queries[asked]) if system.startswith("cortex_mem") else given(asked).result
        compared(asked, expected, [(hit.entry.id, hit.score) for hit in found.hits])


def compared(asked, expected, here):
    """The same scores in each place, and the same ids where no other has the score."""
    assert len(expected) == len(here), asked
    for (id_, score), (other, value) in zip(expected, here, strict=True):
        assert value == pytest.approx(score, abs=1e-7), (asked, id_, other)
        tied = sum(abs(score - one) < 1e-7 for _, one in expected) > 1 or abs(score - expected[-1][1]) < 1e-7
        assert id_ == other or tied, asked
