"""What every importer has to keep: inherit the class in your tests, and return your importer and a store of it."""

from __future__ import annotations

import hashlib
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

    @pytest.fixture(autouse=True)
    def _state(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def test_it_recognises_its_store(self, importer: Importer, store: Path) -> None:
        """By what is in it."""
        assert importer.matches(ForeignStore(store))

    def test_it_is_no_other_folder(self, importer: Importer, tmp_path: Path) -> None:
        """An empty folder is nobody's store."""
        assert not importer.matches(ForeignStore(tmp_path))

    def test_what_it_brings_is_a_data_set_without_faults(
        self, importer: Importer, store: Path, tmp_path: Path
    ) -> None:
        """Ids, dates, numbers and labels follow the rules of the format."""
        done = import_store(store, tmp_path / "mine", importer.name)
        assert check(tmp_path / "mine").faults == ()
        assert done.counts["entries"] >= 2
        assert not [note for note in done.notes if "left out" in note and "id is there twice" in note]

    def test_the_source_stays_as_it_is(self, importer: Importer, store: Path, tmp_path: Path) -> None:
        """Nothing is written beside it, either."""
        copy = tmp_path / "copy" / store.name
        if store.is_dir():
            shutil.copytree(store, copy)
        else:
            copy.parent.mkdir()
            shutil.copy2(store, copy)
        before = _digests(copy.parent)
        import_store(copy, tmp_path / "mine", importer.name)
        assert _digests(copy.parent) == before

    def test_importing_again_changes_nothing(self, importer: Importer, store: Path, tmp_path: Path) -> None:
        """Ids are stable, and so is the order."""
        import_store(store, tmp_path / "mine", importer.name)
        assert not import_store(store, tmp_path / "mine", importer.name).changed


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
