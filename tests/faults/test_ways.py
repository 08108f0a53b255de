"""The table of every way in, in SECURITY.md, is complete: it is compared with the syntax trees of the packages.

What is called is looked at, and what is imported, also inside functions; a name that is imported counts as used.
"""

import ast
import json
import re

import pytest
from tests.unit.shared import ROOT, beside

PACKAGES = (ROOT / "engine" / "steelyard", ROOT / "eval" / "steelyard_eval")
KNOWN = beside(__file__)  # what leads in, kind by kind: dotted names, and methods of anything
KINDS = dict.fromkeys(KNOWN["no readers"])
"""What base.files has beside readers: every other name of it counts, and so does the module as a whole."""
KINDS |= {name: kind for kind, names in KNOWN["names"].items() for name in names}
METHODS = {name: kind for kind, names in KNOWN["methods"].items() for name in names}
"""Calls of anything by these names, but of a class of ours (`Workspace.open`) or of a package's own data."""

SECTION = (ROOT / "SECURITY.md").read_text().partition("## Every way in")[2].partition("\n## ")[0]
LINES = [line.strip("| ") for line in SECTION.splitlines() if line.startswith("| ")]
ROWS = [[cell.strip() for cell in line.split(" | ")] for line in LINES]
WAYS = [row for row in ROWS if len(row) == 5 and row[0] != "What"]
VARIABLES = {name for row in ROWS if len(row) == 2 for name in re.findall(r"`([A-Z_0-9]+)`", row[0])}
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+|COLUMNS")
OTHER = set(KNOWN["other names"])
"""Constants of Python and of modules, an argument, and opcodes of pickles: no variables."""


def ways():
    """The kinds of ways in of each module that has some, by its path below `engine` or `eval`."""
    found = {}
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            if kinds := set(kinds_of(ast.parse(path.read_text(encoding="utf-8")))):
                found[str(path.relative_to(package.parent))] = kinds
    return found


def kinds_of(tree):
    local = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from filter(None, (kind_of(alias.name) for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            yield from filter(None, (kind_of(f"{node.module}.{alias.name}") for alias in node.names))
        elif isinstance(node, ast.Attribute) and (kind := kind_of(ast.unparse(node))):
            yield kind
        elif isinstance(node, ast.Call):
            yield from _called(node.func, local)


def kind_of(name):
    parts = name.replace("numpy.", "np.", 1).split(".")
    return next((KINDS[own] for end in range(len(parts), 0, -1) if (own := ".".join(parts[:end])) in KINDS), None)


def _called(called, local):
    if isinstance(called, ast.Name) and called.id in KINDS and called.id not in local:
        yield KINDS[called.id]
    elif isinstance(called, ast.Attribute):
        of = ast.unparse(called.value)
        if called.attr in METHODS and not of.split(".")[-1][:1].isupper() and "resources.files(" not in of:
            yield METHODS[called.attr]


def quoted(cell):
    return re.findall(r"`([\w/.]+)`", cell)


def allowed():
    for _, _, read_by, _, _ in WAYS:
        modules, _, kinds = read_by.rpartition(":")
        yield from ((module, kind.strip()) for module in quoted(modules) for kind in kinds.split(","))


@pytest.fixture(scope="module")
def found():
    return {(module, kind) for module, kinds in ways().items() for kind in kinds}


def covers(entry, module):
    return module == entry or (entry.endswith("/") and module.startswith(entry))


def test_every_way_in_is_in_the_table(found):
    table = set(allowed())
    lacking = {pair for pair in found if not any(covers(at, pair[0]) and kind == pair[1] for at, kind in table)}
    assert lacking == set()


def test_what_the_table_names_is_there(found):
    named = {entry for entry, _ in allowed()}
    assert {entry for entry in named if not any(covers(entry, module) for module, _ in found)} == set()
    assert {kind for _, kind in allowed()} == set(KNOWN["names"])


def test_every_row_has_tests_that_are_there():
    assert len(WAYS) > 15
    for what, _, _, _, tests in WAYS:
        assert quoted(tests), what
        assert [name for name in quoted(tests) if not (ROOT / name).is_file()] == []


def test_every_variable_is_in_the_table():
    settings = ROOT / "engine/steelyard/systems/spec_kit/settings.json"
    used = {*json.loads(settings.read_text())["variables"]}
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            words = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
            used |= {word for word in words if isinstance(word, str) and VARIABLE.fullmatch(word)}
    assert used - OTHER == VARIABLES


@pytest.mark.parametrize(("code", "kind"), KNOWN["seen"])
def test_the_walk_sees(code, kind):
    assert set(kinds_of(ast.parse(code))) == ({kind} if kind else set())
