"""Are the tests of a module any good? Each mutant changes one place of one module; its own tests have to notice.

    python tests/mutants/mutate.py [--minutes 30] [--goal 200] [--seed 0] [--fresh] [--only NUMBER]

draws places at random (seeded) over both packages: a comparison, an operator, a number, a truth value, `and` for
`or`, a `not` that goes. The tests of a module are the files under tests/unit, golden and contracts that are named
after it or import it. Survivors are printed with their line; those that change nothing (equivalent.json, each
with its reason, ten at most) are not counted.
"""

import ast
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {"steelyard": ROOT / "engine" / "steelyard", "steelyard_eval": ROOT / "eval" / "steelyard_eval"}
LEFT_OUT = ("testing", "plots.py", "__main__.py", "lanes.py")
"""Contract tests, figures, the way in, and what numba compiles for minutes."""
MOST_FILES = 3
PATIENCE = 240
"""Seconds for the tests of one mutant; one that hangs is killed, which counts."""
EQUIVALENT = Path(__file__).with_name("equivalent.json")

SWAPS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def beside(path):
    spec = importlib.util.spec_from_file_location(f"mutants_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


campaign = beside(ROOT / "tests" / "faults" / "campaign.py")


def modules():
    found = (path for folder in SOURCES.values() for path in sorted(folder.rglob("*.py")))
    return [
        path for path in found if not any(part in LEFT_OUT for part in path.parts) and path.name != "__init__.py"
    ]


def places(tree):
    """The nodes that can be changed; annotations and docstrings cannot."""
    skipped = set()
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if (part := getattr(node, name, None)) is not None:
                skipped |= {id(inner) for inner in ast.walk(part)}
    return [node for node in ast.walk(tree) if id(node) not in skipped and changeable(node)]


def changeable(node):
    if isinstance(node, ast.Compare | ast.BinOp | ast.BoolOp):
        operator = node.ops[0] if isinstance(node, ast.Compare) else node.op
        return type(operator) in SWAPS and not _of_text(node)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool | int | float)
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _of_text(node):
    """Whether it adds texts, which would only raise."""
    parts = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    texts = (p.value if isinstance(p, ast.Constant) else "" if isinstance(p, ast.JoinedStr) else 0 for p in parts)
    return any(isinstance(text, str) for text in texts)


def change(node):
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Constant):
        node.value = (not node.value) if isinstance(node.value, bool) else node.value + 1
    else:
        node.operand = ast.UnaryOp(ast.Not(), node.operand)


@cache
def drawn(seed, count):
    """(module, index of the place) of each mutant, without repetition."""
    every = [(path, at) for path in modules() for at in range(len(places(ast.parse(path.read_text()))))]
    return random.Random(f"mutants {seed}").sample(every, count)  # noqa: S311 -- a sample, not a secret


def name_of(path):
    package = next(name for name, folder in SOURCES.items() if path.is_relative_to(folder))
    parts = path.relative_to(SOURCES[package]).with_suffix("").parts
    return ".".join((package, *parts))


@cache
def tests():
    folders = (ROOT / "tests" / kind for kind in ("unit", "golden", "contracts"))
    return {path: path.read_text() for folder in folders for path in folder.rglob("test_*.py")}


def own_tests(path):
    """The test files of a module: those named after it, then those that import it, then those of its package."""
    name, package = name_of(path), name_of(path).rpartition(".")[0]
    ranked = []
    for test, text in tests().items():
        named = path.stem in test.stem
        imports = f"from {name} import" in text or f"import {name}" in text
        around = f"from {package} import" in text and package not in SOURCES
        if named or imports or around:
            ranked.append((not (named and (imports or around)), not imports, not named, test.stat().st_size, test))
    return [test for *_, test in sorted(ranked)[:MOST_FILES]]


def work_of(seed, goal, folder):
    known = {line["place"] for line in json.loads(EQUIVALENT.read_text())}

    def work(number):
        path, at = drawn(seed, goal)[number]
        tree = ast.parse(path.read_text())
        node = places(tree)[at]
        before = ast.unparse(node)
        change(node)
        place = f"{name_of(path)}: {before} -> {ast.unparse(node)}"
        own = own_tests(path)
        if not own:
            return {"mutants": 1, f"untested {place} line {node.lineno}": 1}
        target = folder / path.relative_to(ROOT)
        original = target.read_text()
        target.write_text(ast.unparse(tree))
        try:
            killed = not passes(own, folder)
        finally:
            target.write_text(original)
        if killed:
            return {"mutants": 1, "killed": 1}
        kind = "equivalent" if place in known else "survived"
        return {"mutants": 1, kind: 1, f"{kind} {place} line {node.lineno}": 1}

    return work


def passes(files, folder):
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header"]
    command += [str(path.relative_to(ROOT)) for path in files]
    environment = {"PYTHONPATH": f"{folder / 'engine'}:{folder / 'eval'}", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {
        "STEELYARD_DATA": str(folder / "none"),
        "STEELYARD_EXAMPLES": "10",
    }  # a module's own tests alone
    try:
        ran = subprocess.run(
            command, cwd=folder, env={**os.environ, **environment}, capture_output=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return False
    return ran.returncode == 0


def main():
    parser = campaign.options(__doc__, 200)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="steelyard-mutants-") as made:
        folder = Path(made)
        for name in ("engine", "eval", "tests", "qrels", "notebooks", "docs"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in (
            "pyproject.toml",
            "README.md",
            "Makefile",
            "constraints.txt",
            "CHANGELOG.md",
            "ARCHITECTURE.md",
        ):
            shutil.copy(ROOT / name, folder / name)
        shutil.copytree(ROOT / "requirements", folder / "requirements")
        return campaign.campaign(f"mutants-{chosen.seed}", work_of(chosen.seed, chosen.goal, folder), chosen)


if __name__ == "__main__":
    sys.exit(main())
