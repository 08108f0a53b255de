"""Cortex-Mem's searches beside what `cortex_mem_by_hand` computes from the files, without the engine."""

from dataclasses import replace
from pathlib import Path

import cortex_mem_by_hand as by_hand
import pytest
import recomputed

from steelyard.systems import find_system
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace

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
