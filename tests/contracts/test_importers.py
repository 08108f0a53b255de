"""The contract of importers, on a store of each kind that its program wrote."""

import json
from pathlib import Path

import pytest
from tests.contracts.importer_contract import ImporterContract

from steelyard_eval.extensions.importers import importers

STORES = json.loads((Path(__file__).parents[1] / "data" / "stores.json").read_text("utf-8"))


@pytest.mark.parametrize("kind", STORES)
class TestImporters(ImporterContract):
    @pytest.fixture
    def importer(self, kind):
        return importers()[kind]

    @pytest.fixture
    def store(self, kind, store_root):
        return store_root / STORES[kind]


BENCHMARKS = {"locomo", "longmemeval", "beir", "trec"}
"""Held to it on samples in test_benchmarks.py beside the importers' tests."""


def test_every_kind_is_held_to_the_contract():
    ours = {"steelyard", "ir_datasets"}  # have no files: tests/unit/stores/test_postgres.py, test_benchmarks.py
    assert set(STORES) | BENCHMARKS | ours == set(importers())
