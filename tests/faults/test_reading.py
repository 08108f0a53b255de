"""Reading a vault changes no byte of it, whatever is asked, and also beside what a killed writer left."""

import os
import shutil
import signal

import pytest
import small
from tests.unit.shared import ROOT, beside, vault_with

from steelyard import Entry, SearchConfig, Searcher, Vault, find_system
from steelyard.base.errors import VaultError
from steelyard.stores.sqlite import words
from steelyard.systems import SYSTEMS
from steelyard_eval.datasets import load
from steelyard_eval.vaults import index_dataset

READS = {
    **{f"search by {name}": ("search", "VAULT", "token cache", "--system", name) for name in SYSTEMS},
    **beside(__file__),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory, starter):
    """A vault as `index` leaves it; words of however few entries are stored, so that some could be missing."""
    path = tmp_path_factory.mktemp("made") / "memory.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "MIN_TEXTS_TO_STORE", 0)
        index_dataset(starter, str(path))
        with Vault(path) as vault:
            vault.drop_words()
    return path


@pytest.fixture(scope="module")
def starter():
    return load(ROOT / "qrels" / "starter")


@pytest.fixture
def path(made, tmp_path, monkeypatch):
    monkeypatch.setattr(words, "MIN_TEXTS_TO_STORE", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return shutil.copy(made, tmp_path / "memory.db")


def files(path):
    return {each.name: each.read_bytes() for each in path.parent.glob("memory.db*") if each.suffix != ".db-shm"}


@pytest.mark.parametrize("name", READS)
def test_a_command_that_reads_changes_no_byte(path, starter, tmp_path, name):
    before = files(path)
    names = {"VAULT": path, "other=VAULT": f"other={path}", "LOG": tmp_path / "log", "ID": starter.entries[0].id}
    outcome = small.steelyard(*(names.get(word, word) for word in READS[name]))
    assert outcome.exit_code == 0, outcome.output
    assert files(path) == before


def test_what_a_killed_writer_left_is_read_and_stays_where_it_is(path):
    """It was committed, and there was no time to move it from the log to the file."""
    child = os.fork()
    if not child:
        vault = Vault(path)
        vault.upsert([Entry("late", text="a token that was written last")])
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    before = files(path)
    assert before["memory.db-wal"]
    assert "late" in small.steelyard("search", path, "token written last").output
    assert files(path) == before
    vault_with(Entry("later"), path=path).close()  # a writer clears it away
    assert [*files(path)] == ["memory.db"]


def test_a_file_of_another_journal_mode_keeps_it(path):
    with Vault(path) as vault:
        vault._db.execute("PRAGMA journal_mode = delete")
    before = files(path)
    assert small.steelyard("search", path, "token").exit_code == 0
    assert files(path) == before


def test_an_index_that_is_missing_is_asked_for_and_not_made(path):
    with Vault(path) as vault:
        vault.rebuild_indexes([])
    before = files(path)
    with Vault(path) as vault, pytest.raises(VaultError, match=r"keyword index.*--rebuild"):
        Searcher(vault, find_system("fts").config()).search("token")
    assert files(path) == before
    with Vault(path, create=True) as vault:  # told to write
        assert Searcher(vault, SearchConfig.from_json(find_system("fts").config().to_json())).search("token").hits
