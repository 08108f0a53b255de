"""Every way into the program, found in the syntax trees of both packages: module -> kinds of ways.

What is called is looked at, and what is imported, also inside functions; a name that is imported counts as used.
"""

import ast
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (ROOT / "engine" / "steelyard", ROOT / "eval" / "steelyard_eval")
KNOWN = json.loads(Path(__file__).with_name("ways.json").read_text("utf-8"))
"""What leads in, kind by kind: dotted names, and methods of anything."""
KINDS = dict.fromkeys(KNOWN["no readers"])
"""What base.files has beside readers: every other name of it counts, and so does the module as a whole."""
KINDS |= {name: kind for kind, names in KNOWN["names"].items() for name in names}
METHODS = {name: kind for kind, names in KNOWN["methods"].items() for name in names}
"""Calls of anything by these names, but of a class of ours (`Workspace.open`) or of a package's own data."""


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
