"""What can be wrong with a vault, and hostile words in it and asked of it."""

import apsw
import numpy as np
import pytest
from small import ATTACKS

from steelyard.base.errors import VaultError
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.stores.base import Space
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system

RECIPE = "{title}\n{text}"
SPACE = Space("tiny", "text", RECIPE)
HOSTILE = [*ATTACKS["hostile words"], "token " * 200, "x" * 100_000]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.vault"


@pytest.fixture
def vault():
    with Vault(":memory:") as store:
        yield store


def foreign(path, version):
    """Another program's SQLite file, which keeps a schema version of its own."""
    with apsw.Connection(str(path)) as db:
        db.execute(f"CREATE TABLE albums(title); INSERT INTO albums VALUES('x'); PRAGMA user_version = {version}")
    db.close()


def direction(*numbers):
    return np.array(numbers, dtype=np.float32)


def older(version):
    def make(path):
        with Vault(path, create=True) as store:
            store.upsert([Entry("a")])
        with apsw.Connection(str(path)) as db:
            db.execute(f"PRAGMA user_version = {version}")
        db.close()

    return make


NO_VAULTS = {
    "a folder": (lambda path: path.mkdir(), "is a folder,"),
    "a short text": (lambda path: path.write_text("hello"), "memory.vault' is not"),
    "a long text": (lambda path: path.write_text("hello " * 10_000), "memory.vault' is not"),
    **{f"another program's, {n}": (lambda path, n=n: foreign(path, n), "SQLite file") for n in (0, 1, 57)},
    "a newer one": (older(99), r"by a newer Steelyard \(schema 99, this one knows 5\); upgrade Steelyard"),
    "an older one": (older(4), r"by an older Steelyard \(schema 4, this one knows 5\); index .* into a new vault"),
    "one of no version": (older(0), r"by an older Steelyard \(schema 0, .*index the data set into a new vault"),
}


class TestOpening:
    def test_a_missing_file_is_not_made(self, path):
        with pytest.raises(VaultError, match=r"vault at .*memory.vault.*steelyard"):
            Vault(path)
        assert not path.exists()

    @pytest.mark.parametrize("what", NO_VAULTS)
    def test_what_is_no_vault_of_this_version_stays_as_it_is(self, path, what):
        make, reason = NO_VAULTS[what]
        make(path)
        before = path.read_bytes() if path.is_file() else b""
        for create in (False, True):
            with pytest.raises(VaultError, match=reason):
                Vault(path, create=create)
        assert before == (path.read_bytes() if path.is_file() else b"")
        assert [p.name for p in path.parent.iterdir()] == [path.name]

    def test_an_empty_file_is_filled_only_where_a_vault_is_made(self, path):
        path.touch()
        with pytest.raises(VaultError, match="steelyard index DATASET"):
            Vault(path)
        assert path.read_bytes() == b""
        for at in range(3):  # and opens again and again
            with Vault(path, create=True) as store:
                store.upsert([Entry(f"e{at}")])
                assert store.count() == at + 1


def test_vectors_of_unequal_count_write_nothing(vault):
    vault.upsert([Entry("a"), Entry("b")])
    with pytest.raises(ValueError, match="zip"):
        vault.put_vectors(SPACE, ["a", "b"], direction(1, 0)[None])
    assert vault.spaces() == []


class TestHostileWords:
    @pytest.fixture
    def store(self, vault):
        pairs = enumerate(HOSTILE)
        vault.upsert([Entry(f"e{at}", title=text[:50], text=text, tags=(text[:9],)) for at, text in pairs])
        return vault

    @pytest.mark.parametrize("system", ["fts", "bm25", "echovault", "plain"])
    def test_every_hostile_query_is_answered_and_what_says_nothing_never_fails(self, store, system):
        searcher = Searcher(store, find_system(system).config())
        for text in [*HOSTILE, *ATTACKS["silent words"]]:
            hits = searcher.search(text).hits
            assert len(hits) <= searcher.config.limit
            assert all(np.isfinite(hit.score) for hit in hits)
        assert store.count() == len(HOSTILE)

    def test_hostile_words_are_found_as_words(self, store):
        """The token beside every operator is found by its prefix."""
        hits = Searcher(store, find_system("fts").config(100)).search("token").hits
        assert {h.entry.text for h in hits} == {text for text in HOSTILE if "token" in text}
