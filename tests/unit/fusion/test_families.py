"""Outside `steelyard/fusion/` nothing asks which family an expression is; whether it is a signal, it may ask."""

import ast
from pathlib import Path

import pytest

from steelyard.fusion import FAMILIES

ROOT = Path(__file__).parents[3]
CLASSES = {family.__name__ for family in FAMILIES.values()}
NAMES = {"keyword", "shown_as"}
"""What an expression calls its family."""
FILES = [
    path
    for folder in ("engine", "eval")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "fusion" not in path.relative_to(ROOT).parts and path.name != "fusions.py"  # the contract of families
]


def questions(source):
    """The lines that ask for a family: by its class anywhere but to build one or in a type, or by its name.

    A class may be called, imported, and written in annotations. A name may be shown, not compared.
    """
    tree = ast.parse(source)
    allowed = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            allowed.add(node.func)
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(annotation, ast.AST):
                allowed.update(ast.walk(annotation))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and node not in allowed:
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in CLASSES:
                yield node.lineno
        subjects = []
        if isinstance(node, ast.Compare):
            subjects = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            subjects = [node.subject]
        elif isinstance(node, ast.Subscript):
            subjects = [node.slice]
        if any(isinstance(inner, ast.Attribute) and inner.attr in NAMES for one in subjects for inner in [one]):
            yield node.lineno


def test_no_file_asks_for_a_family():
    assert [str(path) for path in FILES if list(questions(path.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(expr, Rrf)",
        "type(expr) is ByIntent",
        "match expr:\n    case Layered(): pass",
        "expr.keyword == 'rrf'",
        "match expr.shown_as:\n    case 'RRF': pass",
        "LABELS[expr.keyword]",
    ],
)
def test_a_question_is_seen(source):
    assert list(questions(source))
