"""Tables of cases in JSON files beside their tests."""

import json
from pathlib import Path

import pytest


def tabled(test):
    """A test for each row of the table of its name in the JSON file beside it.

    The first row names the columns; a text in the place of a row says why the row below it is there.
    """
    tables = json.loads(Path(test.__code__.co_filename).with_suffix(".json").read_text("utf-8"))
    names, *rows = (row for row in tables[test.__name__] if isinstance(row, list))
    return pytest.mark.parametrize(names, rows)(test)
