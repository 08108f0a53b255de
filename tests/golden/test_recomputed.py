"""Scores of three systems equal those that scripts without the engine compute from the files of a data set."""

import os
from dataclasses import replace
from pathlib import Path

import cortex_mem_by_hand as by_hand
import pytest
import recomputed
from recomputed import Data, Soleri, SpecKit

import steelyard_eval as sy
from steelyard.systems import find_system
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace

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


MANY = 50


def test_it_imports_nothing_of_the_engine():
    text = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (by_hand, recomputed))
    assert [line for line in text.splitlines() if "import" in line and "steelyard" in line] == []


@pytest.mark.parametrize("profile", ["documented", "shipped"])
@pytest.mark.parametrize("collection", ["starter", "locomo-sessions"])
def test_fifty_searches_are_what_the_files_alone_give(collection, profile, request):
    folder = starter() if collection == "starter" else request.getfixturevalue("data_root") / collection
    files, dataset = by_hand.Files(Path(folder)), load(folder)
    space = Workspace.open(dataset)
    config = find_system(f"cortex_mem:{profile}").config(by_hand.LIMIT, space.model)
    record(space, dataset.queries[:1], [config])  # indexes what the system needs
    searcher = space.searcher(config)
    count = len(files.queries)
    for at in range(0, count, max(1, count // MANY)):
        hits = searcher.search(replace(dataset.queries[at], intent="")).hits
        expected = getattr(by_hand, profile)(files, at)
        assert [hit.entry.id for hit in hits] == [id_ for _, id_ in expected]
        assert [hit.score for hit in hits] == pytest.approx([score for score, _ in expected], abs=1e-7)
