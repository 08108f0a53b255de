"""The modules of this folder import one another by name, as they do when one of them is run as a script."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.append(str(HERE))
# They have no doctests, and what they need (Dask, a server) is not imported to see that.
collect_ignore = [path.name for path in HERE.glob("*.py") if not path.name.startswith("test_")]


@pytest.fixture
def keep_words(monkeypatch):
    """Words are stored of however few entries, see `states.keep_words`: forked commands inherit it."""
    import states

    for name in ("WORTH_STORING", "CHANGES", "CHANGES_SHARE"):
        monkeypatch.setattr(states.words, name, getattr(states.words, name))  # restored afterwards
    states.keep_words()


@pytest.fixture
def folder(tmp_path):
    import small

    return small.written(tmp_path / "set")
