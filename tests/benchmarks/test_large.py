"""The steps of `make bench-large`, on a memory that is made in a second; no time is asserted."""

import argparse
import json

import large
import numpy as np
import pytest
import synthetic

from steelyard.memory.filters import EVERYTHING
from steelyard.stores.sqlite import Vault


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Parts of a hundred entries, of few words."""
    monkeypatch.setattr(synthetic, "PART", 100)
    monkeypatch.setattr(synthetic, "VOCABULARY", 2000)


@pytest.fixture
def args(tmp_path):
    return argparse.Namespace(
        folder=str(tmp_path), entries=300, dim=16, queries=40, systems=["hybrid", "fts"], again=[], system="hybrid"
    )


def test_a_build_goes_on_where_it_stopped_and_is_searched(args, monkeypatch):
    monkeypatch.setattr(large, "child", lambda args, kind, system: run(args, kind, system))
    args.entries = 120
    run(args, "entries", "")
    large.beside(args, ".db").rename(large.beside(args, ".db").with_name("300x16.db"))
    args.entries = 300
    known = large.steps(args)
    with Vault(large.beside(args, ".db")) as vault:
        assert vault.count() == 300
        assert len(vault.vectors(large.SPACE, EVERYTHING)[0]) == 300
    assert known["record"]["queries"] == 40
    assert {"p50", "p95", "first", "second", "after_write", "memory"} <= known["live hybrid"].keys()
    monkeypatch.setattr(large, "child", lambda *_: pytest.fail("measured again"))
    assert large.steps(args) == known
    assert json.loads(large.beside(args, ".json").read_text()) == known


def run(args, kind, system):
    args.step, args.system = kind, system
    return large.step(args)


def test_parts_are_the_same_however_many_entries_there_are():
    few, many = synthetic.Parts(), synthetic.Parts()
    assert few.memory(1, 5).entries == many.memory(1, 9).entries[:5]
    assert np.array_equal(few.vectors(1, 8, 5), many.vectors(1, 8, 9)[:5])
    assert [entry.id for entry in few.memory(1, 2).entries] == ["m000100", "m000101"]


def test_the_exponent_of_what_grows_with_the_square_is_two():
    assert large.line("live bm25", "p50 ms", [10, 100, 1000], [1, 100, 10_000]).endswith("2.00")
    assert large.line("live bm25", "p50 ms", [10, 100], [1, None]).split()[-1] == "1.0"
