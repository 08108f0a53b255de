"""Scores of two systems equal those that a script without the engine computes from the files."""

import os
from pathlib import Path

import pytest
from recomputed import Data, Soleri, SpecKit

import steelyard_eval as sy
from steelyard.systems import find_system

HERE = Path(__file__).resolve()
DATA = Path(os.environ.get("STEELYARD_DATA") or HERE.parents[3] / "shared" / "data")
SETS = {"starter": HERE.parents[2] / "qrels" / "starter", "cacm": DATA / "cacm"}
QUERIES = {"starter": 50, "cacm": 15}


@pytest.fixture(scope="module", params=SETS)
def opened(request):
    folder = SETS[request.param]
    if not folder.is_dir():
        pytest.skip(f"{folder} does not exist; set STEELYARD_DATA to the folder of the collections")
    data = Data(folder)
    return QUERIES[request.param], data, SpecKit(data), Soleri(data), sy.load(folder, intents="given")


@pytest.mark.parametrize("name", ["spec_kit", "spec_kit:shipped", "spec_kit:js", "soleri", "soleri:shipped"])
def test_queries_are_recomputed(opened, name):
    count, data, spec_kit, soleri, bench = opened
    own = getattr(soleri if name.startswith("soleri") else spec_kit, (name + ":documented").split(":")[1])
    config = find_system(name).config(10, bench.workspace.model, {"ENABLE_FUZZY_MATCH": "false"})
    asked = [query for query in data.queries if query.get("split") != "log"][:count]
    assert len(asked) == count
    search = bench.searcher(config)
    for query in asked:
        found = search(query["id"]).result
        here = [(hit.entry.id, hit.score) for hit in found.hits]
        compared(query["id"], own(query | {"intent": found.query.intent}), here)


def compared(asked, expected, here):
    """The same scores in each place, and the same ids where no other has the score."""
    assert len(expected) == len(here), asked
    for (id_, score), (other, value) in zip(expected, here, strict=True):
        assert value == pytest.approx(score, abs=1e-7), (asked, id_, other)
        tied = sum(abs(score - one) < 1e-7 for _, one in expected) > 1 or abs(score - expected[-1][1]) < 1e-7
        assert id_ == other or tied, asked
