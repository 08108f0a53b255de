"""Are the tests any good? Each mutant changes one place of one module; the tests that run it have to notice.

    python tests/mutants/mutate.py [--minutes 30] [--goal 200] [--seed 0] [--fresh] [--only NUMBER]

draws places at random (seeded) over both packages: a comparison, an operator, a number, a truth value, `and` for
`or`, a `not` that goes. `--map`, or the first run, measures which tests run which line: those of units, golden
examples and contracts, of gates, hostile vaults and damage. A mutant's tests are those that run its line, and for
a line that runs at import (or in compiled code) the files that are named after its module or import it. Survivors
are printed with their line; those that change nothing (equivalent.json, each with its line and its reason, ten of
a sample at most) are not counted.
"""

import ast
import contextlib
import importlib
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from hashlib import sha256
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {"steelyard": ROOT / "engine" / "steelyard", "steelyard_eval": ROOT / "eval" / "steelyard_eval"}
LEFT_OUT = ("testing", "plots.py", "__main__.py", "lanes.py")
"""Contract tests, figures, the way in, and what numba compiles for minutes."""
MOST_FILES, MOST_TESTS, MOST_BATCHES = 3, 60, 8
"""Tests of a mutant run in batches, the nearest first, until one of them notices."""
MAP = ROOT / "reports" / "campaigns" / "tests-of-lines.coverage"
FAILING = MAP.with_suffix(".failing")
"""Tests that kill nothing, because they fail on the code as it is (where the project is not installed)."""
PATIENCE = 120
"""Seconds of CPU for a batch; one that hangs is killed, which counts where it does not without the change."""
PRELOADED = "numpy scipy.stats scipy.sparse sklearn.decomposition pandas matplotlib.pyplot numba apsw click rich"
"""Libraries that every fork inherits, because importing them costs more than most tests."""
PASSED, FAILED, NOTHING = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED
CRASHED = 100
KINDS = (
    "unit",
    "golden",
    "contracts",
    *(f"faults/test_{name}.py" for name in ("gates", "hostile_vaults", "vault_faults")),
)
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


LEFT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "campaigns", "site")


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
    """The nodes that can be changed; annotations and the flags of dataclasses (slots, frozen) cannot."""
    skipped = set()
    for node in ast.walk(tree):
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        for part in [*parts, *getattr(node, "decorator_list", ())]:
            skipped |= {id(inner) for inner in ast.walk(part)} if part is not None else set()
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
    """(module, index of the place) of each mutant: those of the least hashes, so that a change of the sources
    leaves in the sample whatever it does not touch.
    """
    every = []
    for path in modules():
        seen = Counter()
        for at, node in enumerate(places(ast.parse(path.read_text()))):
            text = ast.unparse(node)
            seen[text] += 1
            every.append((sha256(f"{seed} {name_of(path)} {text} {seen[text]}".encode()).digest(), path, at))
    return [(path, at) for _, path, at in sorted(every)[:count]]


def name_of(path):
    package = next(name for name, folder in SOURCES.items() if path.is_relative_to(folder))
    parts = path.relative_to(SOURCES[package]).with_suffix("").parts
    return ".".join((package, *parts))


@cache
def tests():
    named = (ROOT / "tests" / kind for kind in KINDS)
    found = (path for one in named for path in ([one] if one.is_file() else one.rglob("test_*.py")))
    return {path: path.read_text() for path in found}


def own_tests(path):
    """The test files of a module: named after it, importing it, around its package, naming it."""
    name, package = name_of(path), name_of(path).rpartition(".")[0]
    ranked = []
    for test, text in tests().items():
        named = path.stem in test.stem
        imports = f"from {name} import" in text or re.search(rf"from {package} import .*\b{path.stem}\b", text)
        around = package not in SOURCES and (
            f"from {package} import" in text or test.parent.name == path.parent.name
        )
        near = (named and (imports or around), imports, named, around, re.search(rf"\b{path.stem}\b", text))
        if any(near):
            ranked.append(([not one for one in near], test.stat().st_size, test))
    return [str(test.relative_to(ROOT)) for *_, test in sorted(ranked)]


def tests_of(path, node):
    """Batches of the tests that run the lines of a node, its own files' first, then the module's own files.

    What is cached runs in one test, and what it returns is used in many.
    """
    own = own_tests(path)
    lines = running(path)
    names = {name for line in range(node.lineno, node.end_lineno + 1) for name in lines.get(line, ()) if name}
    nodes = set(filter(None, map(node_of, names))) - failing()
    found = sorted(nodes, key=lambda name: (name.split("::")[0] not in own[:MOST_FILES], name))
    running_it = [found[at : at + MOST_TESTS] for at in range(0, len(found), MOST_TESTS)]
    known = [f"--deselect={name}" for name in sorted(failing())]
    files = [[*own[at : at + MOST_FILES], *known] for at in range(0, len(own), MOST_FILES)]
    return (running_it[: MOST_BATCHES - 2] + files)[:MOST_BATCHES]


@cache
def running(path):
    """The test functions that run each line of a module, by line; empty where nothing was measured."""
    data = coverage.CoverageData(str(MAP))
    data.read()
    part = str(path.relative_to(ROOT))
    return next((data.contexts_by_lineno(file) for file in data.measured_files() if file.endswith(part)), {})


@cache
def failing():
    return set(FAILING.read_text().split())


@cache
def node_of(name):
    """pytest's name of a test function that coverage names module.Class.function; None for what is no test."""
    parts = name.split(".")
    at = next((at for at, part in enumerate(parts) if part.startswith("test_")), None)
    if at is None or at + 1 == len(parts):
        return None
    file = Path(*parts[:at], f"{parts[at]}.py")
    return "::".join((str(file), *parts[at + 1 :])) if ROOT / file in tests() else None


def measure(folder):
    """Run every test once, and keep which of them runs which line, and which fail on the code as it is."""
    MAP.parent.mkdir(parents=True, exist_ok=True)
    settings = folder / "coverage.ini"
    settings.write_text(
        f"[run]\ndynamic_context = test_function\nsource_pkgs = {','.join(SOURCES)}\ndata_file = {MAP}\n"
    )
    chosen = [f"tests/{kind}" for kind in KINDS]
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q", *chosen]
    environment = {**os.environ, **surroundings(folder)}
    said = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True).stdout
    failed = [line.split()[1].split("[")[0] for line in said.splitlines() if line.startswith("FAILED ")]
    FAILING.write_text("\n".join(failed))
    print(said)


def work_of(seed, goal, folder):
    known = json.loads(EQUIVALENT.read_text())

    def work(number):
        path, at = drawn(seed, goal)[number]
        tree = ast.parse(path.read_text())
        node = places(tree)[at]
        before = ast.unparse(node)
        change(node)
        place = f"{name_of(path)}: {before} -> {ast.unparse(node)}"
        batches = tests_of(path, node)
        if not batches:
            return {"mutants": 1, f"untested {place} line {node.lineno}": 1}
        target = folder / path.relative_to(ROOT)
        original = target.read_text()

        def ending(batch, text):
            target.write_text(text)
            try:
                return ending_of(batch, folder)
            finally:
                target.write_text(original)

        changed = ast.unparse(tree)
        for batch in batches:
            ended = ending(batch, changed)
            if ended == FAILED or (ended not in (PASSED, NOTHING) and ending(batch, original) == PASSED):
                return {"mutants": 1, "killed": 1}
        line = original.splitlines()[node.lineno - 1].strip()
        same = any(one["place"] == place and one.get("line", line) == line for one in known)
        kind = "equivalent" if same else "survived"
        return {"mutants": 1, kind: 1, f"{kind} {place} line {node.lineno}": 1}

    return work


def ending_of(chosen, folder):
    """How the tests end, in a fork of this process, in which the libraries are imported already."""
    child = os.fork()
    if not child:
        try:
            os.setpgid(0, 0)
            os._exit(_tests(chosen, folder))
        finally:
            os._exit(CRASHED)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what a test that was broken off had started
    return os.waitstatus_to_exitcode(status)


def _tests(chosen, folder):
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
    signal.alarm(10 * PATIENCE)  # for one that waits without working
    os.chdir(folder)
    os.environ |= surroundings(folder)
    sys.path[:0] = os.environ["PYTHONPATH"].split(":")
    sys.dont_write_bytecode = True
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--no-header", *chosen]))


def surroundings(folder):
    """The environment of the tests: the copy's packages, no shared data, few examples of each property."""
    here = f"{folder / 'engine'}:{folder / 'eval'}"
    data = {"STEELYARD_DATA": str(folder / "none"), "STEELYARD_EXAMPLES": "10"}
    return {"PYTHONPATH": here, "PYTHONDONTWRITEBYTECODE": "1", **data}


def main():
    parser = campaign.options(__doc__, 200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--map", action="store_true", help="measure which tests run which line, and stop")
    chosen = parser.parse_args()
    for name in PRELOADED.split():
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="steelyard-mutants-") as made:
        folder = Path(made)
        shutil.copytree(ROOT, folder, ignore=LEFT, dirs_exist_ok=True)
        if chosen.map or not MAP.exists():
            measure(folder)
        if chosen.map:
            return 0
        return campaign.campaign(f"mutants-{chosen.seed}", work_of(chosen.seed, chosen.goal, folder), chosen)


if __name__ == "__main__":
    sys.exit(main())
