"""What commit 489b4f2 wrote loads and gives the same bits: recordings, weights files, a vault.

The sample was made with that commit from twelve entries and three queries of qrels/starter, for every profile of
that time, together with the lists that it replayed and found itself (scores in hexadecimal, so that they are
exact). A name of a function that changed would show here: recordings compare functions by their names.
"""

import json
import tarfile
from pathlib import Path

import pytest

from steelyard.config.search_config import SearchConfig
from steelyard.live.search import Searcher
from steelyard.stores.sqlite import Vault
from steelyard_eval.recording.disk import load
from steelyard_eval.recording.replay import replay
from steelyard_eval.vaults.read import vault_embedder

SAMPLE = Path(__file__).parents[2] / "data" / "made-by-489b4f2.tar.xz"
SYSTEMS = ("fts", "bm25", "vector", "plain", "echovault", "echovault:shipped", "moltnet", "moltnet:shipped")
SYSTEMS += ("soleri", "soleri:shipped")


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    home = tmp_path_factory.mktemp("old")
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(home, filter="data")
    return home / "sample"


def named(system):
    return system if ":" in system else f"{system}:documented"


def exact(pairs):
    return [[id_, float(score).hex()] for id_, score in pairs]


@pytest.mark.parametrize("system", SYSTEMS)
def test_recordings_and_weights_give_the_lists_of_old(old, system):
    expected = json.loads((old / "expected.json").read_text())[named(system)]
    name = named(system).replace(":", ".")
    run = replay(load(old / name), SearchConfig.load(old / f"{name}.json"))

    ends = run.ranking.offsets.tolist()
    ids = [run.table.entries[at] for at in run.entry]
    ranked = list(zip(ids, run.ranking.score, strict=True))
    lists = {query: exact(ranked[ends[at] : ends[at + 1]]) for at, query in enumerate(run.table.queries)}
    assert lists == expected["lists"]
    assert run.embedded.tolist() == expected["embedded"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_vault_gives_the_hits_of_old(old, system):
    expected = json.loads((old / "expected.json").read_text())[named(system)]["live"]
    config = SearchConfig.load(old / f"{named(system).replace(':', '.')}.json")
    with Vault(old / "vault.db") as vault:
        searcher = Searcher(vault, config, vault_embedder(vault), clock=lambda: 1.77e9)
        for query, hits in expected.items():
            found = searcher.search(query).hits
            assert exact((hit.entry.id, hit.score) for hit in found) == hits


def test_weights_are_written_as_they_were_read(old):
    for path in old.glob("*.*.json"):
        assert SearchConfig.load(path).to_json() == json.loads(path.read_text())
