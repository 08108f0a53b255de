"""Lines of Python by part, and wording in tests, held at what was reached: `make lint` fails beyond a limit.

A limit goes down with the part, and up only for what somebody asked for: say so in the commit that raises it.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = {
    "engine": 14_000,
    "engine/extensions": 4_000,
    "engine/testing": 1_100,
    "eval": 30_000,
    "eval/extensions": 6_500,
    "tests": 40_000,
}
"""Part -> lines at most."""
ROOTS = {"engine/steelyard/": "engine", "eval/steelyard_eval/": "eval", "tests/": "tests"}
APART = ("extensions", "testing")
LONGEST = {"engine": 425, "eval": 300}  # lines of a module but the facade
FOLDER = 3_013  # lines of a folder of the workbench but its extensions
PINNED, WORDS = 200, 4  # Texts of so many words in what tests assert or match, at most: wording has one snapshot
FACADE = "eval/steelyard_eval/workbench/workbench.py"


def part(path: str) -> str | None:
    """The part that a file belongs to."""
    for root, name in ROOTS.items():
        if path.startswith(root):
            folder = path.removeprefix(root).partition("/")[0]
            return f"{name}/{folder}" if f"{name}/{folder}" in LIMITS else name
    return None


def pinned(source: str) -> int:
    """The texts of `WORDS` words and more in the assertions and patterns of a test file."""
    asserted = (
        node.test if isinstance(node, ast.Assert) else node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assert) or (isinstance(node, ast.keyword) and node.arg == "match")
    )
    texts = (each.value for node in asserted for each in ast.walk(node) if isinstance(each, ast.Constant))
    return sum(isinstance(text, str) and len(text.split()) >= WORDS and "\n" not in text for text in texts)


def main() -> int:
    """Print the parts that are too large, and the modules; 1 where there are any."""
    files = sorted(path for root in ROOTS for path in (ROOT / root).rglob("*.py"))
    sizes = {path.relative_to(ROOT).as_posix(): path.read_bytes().count(b"\n") for path in files}
    totals: Counter[str] = Counter()
    for name, size in sizes.items():
        totals[str(part(name))] += size
    told = [
        f"{name}: {totals[name]:,} lines, at most {most:,}" for name, most in LIMITS.items() if totals[name] > most
    ]
    folders: Counter[str] = Counter()
    for name, size in sizes.items():
        top, *below = name.split("/")
        most = LONGEST.get(top, size)
        told += [f"{name}: {size} lines, at most {most}"] if size > most and name != FACADE else []
        if part(name) == "eval":
            folders[below[1]] += size
    told += [f"{room}: {size:,} lines, at most {FOLDER:,}" for room, size in folders.items() if size > FOLDER]
    pins = sum(pinned((ROOT / name).read_text("utf-8")) for name in sizes if name.startswith("tests/"))
    told += [f"tests: {pins} texts of {WORDS} words and more, at most {PINNED}"] if pins > PINNED else []
    print("\n".join(told), end="\n" if told else "")
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
