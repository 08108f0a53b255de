"""What imports what between rooms, drawn from the syntax trees, against the floors of ARCHITECTURE.md."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine/steelyard", "eval/steelyard_eval")
MOST_ROOMS, MOST_INSIDE = 20, 26


def floors(page, package):
    """The rooms of a package by floor, the highest first, as the picture in a page has them."""
    picture = re.search(rf"^```\n{package}/\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [line.split() for line in picture[1].splitlines()]


FLOORS = {package: floors((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), package) for package in PACKAGES}


def room(module):
    """The first part below the package; modules are named from it, so the package's own page is ''."""
    return module.partition(".")[0]


@cache
def modules(folder):
    """Every module below a folder by its dotted name from there, with the nodes of its tree."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return found


def imported(nodes, package, known):
    """Every module of the package that is imported somewhere in a module."""
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name.partition(".")[2] in known else node.module for name in whole]
        else:
            continue
        yield from (name.partition(".")[2] for name in names if name.partition(".")[0] == package)


def arrows(folder):
    """From each room to those that it imports, with the modules where it does."""
    drawn = defaultdict(set)
    for module, nodes in modules(folder).items():
        for target in imported(nodes, folder.name, modules(folder)):
            if room(module) != room(target):
                drawn[room(module), room(target)].add(f"{module or folder.name} imports {target or folder.name}")
    return drawn


def upwards(folder, floors):
    """What is imported from the same floor or a higher one; the package's own page stands above all of them."""
    height = {name: -at for at, floor in enumerate([[""], *floors]) for name in floor}
    return sorted(
        one for (own, other), places in arrows(folder).items() if height[own] <= height[other] for one in places
    )


def circles(folder):
    """Modules that import one another, directly or through others."""
    known = modules(folder)
    reached = {module: set(imported(nodes, folder.name, known)) & known.keys() for module, nodes in known.items()}
    for through in known:  # Warshall: what is reached through one module more
        for module in known:
            if through in reached[module]:
                reached[module] |= reached[through]
    return sorted(module for module in known if module in reached[module])


def inside(folder):
    """Names of both packages that are imported inside functions."""
    ours = {Path(package).name for package in PACKAGES}
    return [
        f"{module}: {alias.name}"
        for module, nodes in modules(folder).items()
        for function in nodes
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ours
        for alias in node.names
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_room_imports_what_stands_beside_or_above_it(package):
    """So there is no circle either, whatever is imported only for types."""
    assert upwards(ROOT / package, FLOORS[package]) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_modules_import_one_another(package):
    """Inside a room neither, whatever is imported only for types."""
    assert circles(ROOT / package) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_picture_has_every_room_once(package):
    """A new room needs a place in ARCHITECTURE.md, and a reason when it is the twenty-first."""
    rooms = {room(module) for module in modules(ROOT / package)} - {"", "__main__"}
    pictured = sorted(name for floor in FLOORS[package] for name in floor if name != "__main__")
    assert pictured == sorted(rooms)
    assert len(rooms) <= MOST_ROOMS


def test_imports_stand_at_the_top():
    """A few stay inside functions, each for a reason: an extra, a compiled loop, what is seldom needed.

    Commands, and the methods that they call, import their job when it is asked for, so that help loads none.
    """
    every = [one for package in PACKAGES for one in inside(ROOT / package)]
    found = [one for one in every if room(one.partition(":")[0]) not in ("cli", "workbench")]
    assert len(found) <= MOST_INSIDE, found


def test_every_public_class_has_a_name_of_its_own():
    names = Counter(
        node.name
        for package in PACKAGES
        for module in modules(ROOT / package).values()
        for node in module[0].body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []
