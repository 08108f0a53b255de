"""What `tests/mutants/equivalent.json` quotes stands in the sources, or nothing would be left out by it."""

import json

import pytest
from shared import ROOT

SOURCES = {"steelyard": ROOT / "engine", "steelyard_eval": ROOT / "eval"}
EQUIVALENT = json.loads((ROOT / "tests" / "mutants" / "equivalent.json").read_text())


@pytest.mark.parametrize("known", EQUIVALENT, ids=lambda known: known["place"])
def test_a_quoted_line_is_one_of_its_module(known):
    name = known["place"].partition(":")[0]
    module = SOURCES[name.partition(".")[0]] / f"{name.replace('.', '/')}.py"
    lines = [line.strip() for line in module.read_text().splitlines()]
    assert known.get("line", lines[0]) in lines
