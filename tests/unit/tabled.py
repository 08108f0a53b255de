"""What tests begin with: tables of cases in files beside them, the checkout itself, and a vault of entries."""

import json
from pathlib import Path

import pytest

from steelyard import Vault
from steelyard_eval.datasets.manifest import starter

ROOT = Path(__file__).parents[2]
"""The checkout."""
STARTER = starter()
"""The starter data set, as the package holds it."""


def beside(test, name=""):
    """What the JSON file beside a test (its `__file__`) holds: that of its own name, or of another."""
    path = Path(test)
    return json.loads((path.with_name(name) if name else path.with_suffix(".json")).read_text("utf-8"))


def tabled(test):
    """A test for each row of the table of its name in the JSON file beside it.

    The first row names the columns; a text in the place of a row says why the row below it is there.
    """
    tables = beside(test.__code__.co_filename)
    names, *rows = (row for row in tables[test.__name__] if isinstance(row, list))
    return pytest.mark.parametrize(names, rows)(test)


def vault_with(*entries, path=":memory:"):
    """A vault of these entries, in memory or made at a path."""
    vault = Vault(path, create=path != ":memory:")
    vault.upsert(entries)
    return vault
