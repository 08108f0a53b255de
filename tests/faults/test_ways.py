"""The table of every way in, in SECURITY.md, is complete: it is compared with the syntax trees of the packages."""

import ast
import json
import re

import pytest
import ways

SECTION = (ways.ROOT / "SECURITY.md").read_text().partition("## Every way in")[2].partition("\n## ")[0]
LINES = [line.strip("| ") for line in SECTION.splitlines() if line.startswith("| ")]
ROWS = [[cell.strip() for cell in line.split(" | ")] for line in LINES]
WAYS = [row for row in ROWS if len(row) == 5 and row[0] != "What"]
VARIABLES = {name for row in ROWS if len(row) == 2 for name in re.findall(r"`([A-Z_0-9]+)`", row[0])}
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+|COLUMNS")
OTHER = set(ways.KNOWN["other names"])
"""Constants of Python and of modules, an argument, and opcodes of pickles: no variables."""


def quoted(cell):
    return re.findall(r"`([\w/.]+)`", cell)


def allowed():
    for _, _, read_by, _, _ in WAYS:
        modules, _, kinds = read_by.rpartition(":")
        yield from ((module, kind.strip()) for module in quoted(modules) for kind in kinds.split(","))


@pytest.fixture(scope="module")
def found():
    return {(module, kind) for module, kinds in ways.ways().items() for kind in kinds}


def covers(entry, module):
    return module == entry or (entry.endswith("/") and module.startswith(entry))


def test_every_way_in_is_in_the_table(found):
    table = set(allowed())
    lacking = {pair for pair in found if not any(covers(at, pair[0]) and kind == pair[1] for at, kind in table)}
    assert lacking == set()


def test_what_the_table_names_is_there(found):
    named = {entry for entry, _ in allowed()}
    assert {entry for entry in named if not any(covers(entry, module) for module, _ in found)} == set()
    kinds = {kind for _, kind in allowed()}
    assert kinds == set(ways.KNOWN["names"])


def test_every_row_has_tests_that_are_there():
    assert len(WAYS) > 15
    for what, _, _, _, tests in WAYS:
        assert quoted(tests), what
        assert [name for name in quoted(tests) if not (ways.ROOT / name).is_file()] == []


def test_every_variable_is_in_the_table():
    settings = ways.ROOT / "engine/steelyard/systems/spec_kit/settings.json"
    used = {*json.loads(settings.read_text())["variables"]}
    for package in ways.PACKAGES:
        for path in package.rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            words = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
            used |= {word for word in words if isinstance(word, str) and VARIABLE.fullmatch(word)}
    assert used - OTHER == VARIABLES


@pytest.mark.parametrize(("code", "kind"), ways.KNOWN["seen"])
def test_the_walk_sees(code, kind):
    assert set(ways.kinds_of(ast.parse(code))) == ({kind} if kind else set())
