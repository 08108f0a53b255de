"""Finds sentences in code: text of at least `LEAST` words that is no docstring, error or help."""

import ast
import re

LEAST = 3
WORD = re.compile(r"(?<![\w.@/-])[A-Za-z][a-z']+(?![\w(=/-])")
CODE = re.compile(r"<[^>]*>|\{[{%#].*?[%}#]\}|\\[A-Za-z]+(\{[^}]*\})?", re.DOTALL)
"""Tags of HTML, of Jinja, commands of LaTeX: scaffolding, no words."""
EXEMPT = frozenset({"option", "argument", "command", "group", "Choice", "help", "compile", "getLogger"})
"""Calls whose texts are help, or patterns."""


def sentences(source):
    """Line and text of every sentence; neighbouring parts of a sum or an f-string count together."""
    tree = ast.parse(source)
    skipped = {id(node) for part in ast.walk(tree) if _is_exempt(part) for node in ast.walk(part)}
    skipped |= {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    inside = set()
    for node in ast.walk(tree):
        if id(node) in skipped or id(node) in inside:
            continue
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp) and (text := _text(node)) is not None:
            inside |= {id(part) for part in ast.walk(node)}
            if len(WORD.findall(CODE.sub(" ", text))) >= LEAST:
                yield node.lineno, text


def _text(node):
    """The text of a constant, an f-string or a sum of texts; what is put in is a gap."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or " ... " for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return None if left is None and right is None else f"{left or ' ... '}{right or ' ... '}"
    return None


def _is_exempt(node):
    """Errors about what was given, and help."""
    if isinstance(node, ast.Raise):
        return True
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name in EXEMPT or name.endswith("Error")
    return False
