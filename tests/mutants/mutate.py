"""Are the tests any good? Each mutant changes one place of one module; the tests that come to it have to notice.

    python tests/mutants/mutate.py [--minutes 30] [--goal 200] [--seed 0] [--fresh] [--only NUMBER...]

draws places at random (seeded) over both packages: a comparison, an operator, a number, a truth value, `and`
for `or`, a `not` that goes. All mutants of a sample are in one copy of the sources, each behind a switch. A fork
runs each test file with all switches off: what it comes to, how long that takes, what fails anyway. Then for each
mutant a fork runs the tests that come to it, file by file, with its switch on, until one fails. What is read at
import (constants, defaults) or compiled has no switch: such a mutant is written into the copy, and meets the files
nearest to its module in a process of its own.

The state is kept in reports/campaigns/mutants-SEED.json: sources that changed need --fresh, test files that
changed are met once more by what still lives. Survivors are printed with their line; those that change nothing
(equivalent.json, each with its line and its reason, ten of a sample at most) are not counted.
"""

import argparse
import ast
import builtins
import contextlib
import copy
import importlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {"steelyard": ROOT / "engine" / "steelyard", "steelyard_eval": ROOT / "eval" / "steelyard_eval"}
LEFT_OUT = ("testing", "plots.py", "__main__.py", "compiled_loops.py")
"""Contract tests, figures, the way in, and what numba compiles for minutes."""
MOST_FILES = 8  # files near to a module that a mutant without a switch meets, as a whole
SECONDS = 12.0
"""Of tests that come to a mutant, in one file; a third of it of others, which may look at what a test makes."""
PATIENCE = 10.0, 5.0
"""Seconds of CPU, and how many times what the tests take without a change, after which a mutant has hung."""
STATES = ROOT / "reports" / "campaigns"
SWITCH = "__mutants_switch__"
PRELOADED = "numpy scipy.stats scipy.sparse sklearn.decomposition pandas matplotlib.pyplot numba apsw click rich"
"""Libraries that every fork inherits, because importing them costs more than most tests."""
KINDS = "unit", "golden", "contracts", "parity", "faults"
"""Folders of the tests that mutants meet; the browser and the benchmarks run no code that these leave out."""
EQUIVALENT = json.loads(Path(__file__).with_name("equivalent.json").read_text())

PAIRS = ("Lt LtE", "Gt GtE", "Eq NotEq", "Is IsNot", "In NotIn", "Add Sub", "Mult Div", "And Or")
PAIRED = [[getattr(ast, name) for name in pair.split()] for pair in PAIRS]
SWAPS = {ast.FloorDiv: ast.Mult, **dict(PAIRED), **{other: one for one, other in PAIRED}}
LEFT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "campaigns", "site")


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


def switched(path, numbers):
    """The text of a module in which each place (by index, with its number) has its change behind a switch."""
    tree = ast.parse(path.read_text())
    wanted = {id(node): numbers[at] for at, node in enumerate(places(tree)) if at in numbers}

    class Switching(ast.NodeTransformer):
        def visit(self, node):
            number = wanted.get(id(node))
            node = self.generic_visit(node)
            if number is None:
                return node
            changed = copy.deepcopy(node)
            change(changed)
            # Processes that tests start have no switches: there all are off.
            call = f"getattr(__import__('builtins'), {SWITCH!r}, {{}}.get)({number})"
            return ast.IfExp(ast.parse(call, mode="eval").body, changed, node)

        def visit_MatchValue(self, node):  # a pattern holds no calls
            return node

    return ast.unparse(ast.fix_missing_locations(Switching().visit(tree)))


class Switches:
    """Which mutant is on (none: None), and which test came to which place; None for what imports come to."""

    def __init__(self):
        self.on, self.test, self.reached = None, None, {}
        setattr(builtins, SWITCH, self)

    def __call__(self, number):
        if self.on is None or number == self.on:
            self.reached.setdefault(number, set()).add(self.test)
        return number == self.on


class Watching:
    """The plugin that knows what failed, and how long each test took."""

    def __init__(self):
        self.seconds, self.failed = Counter(), []

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)


class Meeting(Watching):
    """The plugin that lets the living mutants of a sample meet the tests that pytest collected."""

    def __init__(self, state, mutants, until):
        super().__init__()
        self.state, self.mutants, self.until = state, mutants, until
        self.switches = Switches()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        imported = set(self.switches.reached)
        self.switches.reached.clear()
        for number in imported:
            self.mutants[number]["written"] = True
        by_file = {}
        for item in session.items:
            by_file.setdefault(item.nodeid.split("::")[0], []).append(item)
        for file, items in by_file.items():
            if self.state["files"].get(file, {}).get("mark") != digest(ROOT / file) and self.has_time():
                self.state["files"][file] = {"mark": digest(ROOT / file), **self.reach(items)}
                save(self.state)
        for one in self.living():
            if not one.get("compiled"):
                self.meet(one, by_file)
                save(self.state)
        return True

    def has_time(self):
        return time.monotonic() < self.until

    def living(self):
        only = self.state["only"]
        alive = (one for one in self.mutants.values() if not one["killed"] and not is_equivalent(one))
        return [one for one in alive if not only or one["number"] in only]

    def reach(self, items):
        """Of the tests of a file that pass without a change: their seconds, and the mutants they come to."""
        plain = forked(partial(self.run, items, None), 600.0) or {"seconds": {}, "failed": [], "reached": {}}
        fine = {test: round(spent, 3) for test, spent in plain["seconds"].items() if test not in plain["failed"]}
        coming = {at: [test for test in tests if test in fine] for at, tests in plain["reached"].items()}
        return {"seconds": fine, "coming": {at: tests for at, tests in coming.items() if tests}}

    def meet(self, one, by_file):
        """Let a mutant meet the files whose tests come to it, the quickest first, until one notices."""
        cost, at = {}, str(one["number"])
        for file, known in self.state["files"].items():
            if file in by_file and at in known["coming"] and one["files"].get(file) != known["mark"]:
                cost[file] = min(known["seconds"][test] for test in known["coming"][at])
        for file in sorted(cost, key=lambda file: (file not in one["own"], cost[file], file)):
            if not self.has_time():
                return
            known = self.state["files"][file]
            chosen = self.chosen(known["seconds"], set(known["coming"][at]))
            items = [item for item in by_file[file] if item.nodeid in chosen]
            allowed = PATIENCE[0] + PATIENCE[1] * sum(known["seconds"][test] for test in chosen)
            ended = forked(partial(self.run, items, one["number"]), allowed)
            one["files"][file] = known["mark"]
            one["met"] += len(known["coming"][at])
            if ended is None or ended["failed"]:
                plain = forked(partial(self.run, items, None), allowed)  # fewer tests than when it was measured
                if plain and not (ended and ended["failed"][0] in plain["failed"]):
                    one["killed"] = ended["failed"][0] if ended else f"no end in {file}"
                    return

    def chosen(self, seconds, coming):
        """The quickest tests that come to a place, and for a third of the time others of the file."""
        kept, spent = set(), Counter()
        for test in sorted(seconds, key=lambda test: (test not in coming, seconds[test])):
            comes = test in coming
            if not spent[comes] or spent[comes] + seconds[test] < SECONDS / (1 if comes else 3):
                kept.add(test)
                spent[comes] += seconds[test]
        return kept

    def run(self, items, number):
        """Run tests in this process, which is a fork; until one fails where a mutant is on."""
        self.switches.on, began = number, time.process_time()
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.switches.test = item.nodeid
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if (number is not None and self.failed) or time.process_time() - began > 5 * SECONDS:
                break
        reached = {str(at): sorted(filter(None, names)) for at, names in self.switches.reached.items()}
        return {"seconds": dict(self.seconds), "failed": self.failed, "reached": reached}


def forked(work, seconds):
    """What work returns in a fork of this process; None for one that hung or crashed."""
    with tempfile.NamedTemporaryFile(prefix="steelyard-mutant-") as told:
        child = os.fork()
        if not child:
            try:
                os.setpgid(0, 0)
                resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
                signal.alarm(int(30 * seconds))  # for one that waits without working
                Path(told.name).write_text(json.dumps(work()))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what a test that was broken off had started
        text = Path(told.name).read_text()
    return json.loads(text) if text else None


def pytested(folder, chosen, plugin, *options):
    """pytest in this process, which is a fork, over the copy; how it ended."""
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    os.chdir(folder)
    # The copy's packages, shared recordings and stores, few examples a property.
    here = f"{folder / 'engine'}:{folder / 'eval'}"
    shared = {f"STEELYARD_{name.upper()}": str(ROOT.parent / "shared" / name) for name in ("oracles", "stores")}
    data = {"STEELYARD_DATA": str(folder / "none"), "STEELYARD_EXAMPLES": "10", **shared, **os.environ}
    os.environ |= data | {"PYTHONPATH": here, "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path[:0] = os.environ["PYTHONPATH"].split(":")
    sys.dont_write_bytecode = True
    words = ["-q", "-p", "no:cacheprovider", "--no-header", "-m", "not nightly", *options, *chosen]
    return int(pytest.main(words, plugins=[plugin] if plugin else []))


def written(one, folder, state):
    """A mutant without a switch meets the files nearest to its module, each in a process of its own."""
    path = ROOT / one["path"]
    target, original = folder / one["path"], path.read_text()
    tree = ast.parse(original)
    change(places(tree)[one["at"]])
    for file in one["own"]:
        mark = digest(ROOT / file)
        if one["files"].get(file) == mark:
            continue
        if file not in state["plain"] or state["plain"][file]["mark"] != mark:
            ending = forked(partial(_watched, folder, file), 600.0)
            state["plain"][file] = {"mark": mark, **(ending or {"failed": [], "code": None})}
        plain = state["plain"][file]
        one["files"][file] = mark
        if plain["code"] is None:
            continue  # it does not end in time without a change
        known = [f"--deselect={name}" for name in plain["failed"]]
        target.write_text(ast.unparse(tree))
        ended = forked(partial(_watched, folder, file, "-x", *known), 300.0)
        target.write_text(original)
        one["met"] += 1
        if ended is None or ended["code"] not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            one["killed"] = next(iter((ended or {"failed": []})["failed"]), f"no end, or no start, of {file}")
            return


def _watched(folder, file, *options):
    plugin = Watching()
    return {"code": pytested(folder, [file], plugin, *options), "failed": plugin.failed}


def digest(path):
    return sha256(path.read_bytes()).hexdigest()[:16]


def save(state):
    path = STATES / f"mutants-{state['seed']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(state, indent=1))
    draft.replace(path)


def begun(seed, goal, fresh):
    """The state: that of the last run of the same sources, or a new one."""
    sources = sha256("".join(digest(path) for path in modules()).encode()).hexdigest()[:16]
    path = STATES / f"mutants-{seed}.json"
    if path.exists() and not fresh:
        state = json.loads(path.read_text())
        if (state["sources"], state["goal"]) != (sources, goal):
            sys.exit(f"{path.name} is of other sources or another goal: --fresh begins anew")
        return state
    mutants = []
    for number, (module, at) in enumerate(drawn(seed, goal)):
        node = places(ast.parse(module.read_text()))[at]
        line = module.read_text().splitlines()[node.lineno - 1].strip()
        before = ast.unparse(node)
        change(node)
        own = own_tests(module)[:MOST_FILES]
        told = {"place": f"{name_of(module)}: {before} -> {ast.unparse(node)}", "line": line, "own": own}
        where = {"number": number, "path": str(module.relative_to(ROOT)), "at": at, "lineno": node.lineno}
        mutants.append({**where, **told, "killed": None, "met": 0, "files": {}})
    return {"seed": seed, "goal": goal, "sources": sources, "mutants": mutants, "files": {}, "plain": {}}


def with_switches(folder, state, until):
    """Let what lives meet all tests, in a process of its own that has the switches."""
    by_module = {}
    for one in state["mutants"]:
        by_module.setdefault(one["path"], {})[one["at"]] = one["number"]
    for path, numbers in by_module.items():
        if "numba" in (ROOT / path).read_text():  # what is compiled cannot ask a switch
            for one in state["mutants"]:
                if one["path"] == path:
                    one["written"] = one["compiled"] = True
        else:
            (folder / path).write_text(switched(ROOT / path, numbers))
    save(state)
    mutants = {one["number"]: one for one in state["mutants"]}
    plugin = Meeting(state, mutants, until)
    every = [str(test.relative_to(ROOT)) for test in tests()]
    child = os.fork()
    if not child:
        try:
            pytested(folder, every, plugin)
            save(state)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    for path in by_module:
        shutil.copyfile(ROOT / path, folder / path)
    return json.loads((STATES / f"mutants-{state['seed']}.json").read_text())


def is_equivalent(one):
    """Whether it changes nothing, as equivalent.json says: no test need meet it."""
    return any(k["place"] == one["place"] and k.get("line", one["line"]) == one["line"] for k in EQUIVALENT)


def told(state):
    alive = [one for one in state["mutants"] if not one["killed"]]
    same = [one for one in alive if is_equivalent(one)]
    for one in alive:
        kind = "equivalent" if one in same else "survived" if one["met"] else "untested"
        print(f"{one['number']:>4} {kind:10} {one['place']} line {one['lineno']}: {one['line']}")
    counted, killed = len(state["mutants"]) - len(same), sum(bool(one["killed"]) for one in state["mutants"])
    files = f"{len(state['files'])} of {len(tests())} files"
    print(f"{killed} of {counted} killed ({killed / counted:.1%}), {len(same)} equivalent; {files} met")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="of work; it goes on where it stopped")
    parser.add_argument("--goal", type=int, default=200, help="mutants of the sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="forget what was done before")
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="these mutants alone")
    chosen = parser.parse_args()
    until = time.monotonic() + 60 * chosen.minutes
    state = begun(chosen.seed, chosen.goal, chosen.fresh)
    state |= {"only": chosen.only or []}
    for name in PRELOADED.split():
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="steelyard-mutants-") as made:
        folder = Path(made)
        shutil.copytree(ROOT, folder, ignore=LEFT, dirs_exist_ok=True)
        state = with_switches(folder, state, until)
        for one in state["mutants"]:
            wanted = one.get("written") and (not chosen.only or one["number"] in chosen.only)
            if wanted and not one["killed"] and not is_equivalent(one) and time.monotonic() < until:
                written(one, folder, state)
                save(state)
    told(state)
    return 0


if __name__ == "__main__":
    sys.exit(main())
