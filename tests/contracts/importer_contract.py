"""What every importer has to keep: inherit the class in your tests, and return your importer and a store of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from steelyard_eval.datasets.folder import check
from steelyard_eval.extensions.importers.base import Importer
from steelyard_eval.extensions.importers.run import import_store
from steelyard_eval.extensions.importers.source import ForeignStore


class ImporterContract:
    """Tests of one importer on one of its stores."""

    @pytest.fixture
    def importer(self) -> Importer:
        """The importer; it has to be listed, or named by an entry point."""
        raise NotImplementedError

    @pytest.fixture
    def store(self) -> Path:
        """A store of its kind, with at least two entries."""
        raise NotImplementedError

    def test_it_recognises_its_store_and_no_empty_folder(self, importer, store, tmp_path):
        """By what is in it: an empty folder is nobody's store."""
        (tmp_path / "empty").mkdir()
        assert importer.matches(ForeignStore(store))
        assert not importer.matches(ForeignStore(tmp_path / "empty"))

    def test_it_brings_a_data_set_without_faults_twice_the_same_and_leaves_its_source(
        self, importer, store, tmp_path, monkeypatch
    ):
        """Ids, dates, numbers and labels follow the rules of the format; nothing is written beside the store."""
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        copy, mine = tmp_path / "copy" / store.name, tmp_path / "mine"
        copy.parent.mkdir()
        (shutil.copytree if store.is_dir() else shutil.copy2)(store, copy)
        before = _files(copy.parent)
        done = import_store(copy, mine, importer.name)
        assert check(mine).faults == ()
        assert done.counts["entries"] >= 2
        assert not [note for note in done.notes if "left out" in note and "id is there twice" in note]
        assert _files(copy.parent) == before
        assert not import_store(copy, mine, importer.name).changed


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
