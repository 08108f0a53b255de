"""Tables that stand as data beside their test: test_name.json has the rows of test_name.py by a test's name."""

import inspect
import json
from pathlib import Path

import pytest


def table(columns):
    """Run a test with every row of its table; what stands in a row behind its columns says why, and is its id."""
    names = columns.split()

    def tabled(test):
        path = Path(inspect.getfile(inspect.unwrap(test))).with_suffix(".json")
        rows = json.loads(path.read_text("utf-8"))[test.__name__.removeprefix("test_")]
        named = [pytest.param(*row[: len(names)], id="".join(row[len(names) :]) or None) for row in rows]
        return pytest.mark.parametrize(names, named)(test)

    return tabled
