"""Whatever searches faster gives the bits of SQLite: `make identity` compares them over the collections of data/.

    python tests/benchmarks/identity.py [--minutes 30] [SET...]

For each set and system all queries are recorded twice, with words and vectors in memory and with SQLite alone
(STEELYARD_MEMORY=0), and every array of the two tables is compared byte by byte. It goes on where it stopped: what
was equal at this revision of the sources is in reports/identity.json. Exit code 1 when anything differs.
"""

import argparse
import json
import os
import sys
import time
from hashlib import sha256
from pathlib import Path

import numpy as np

from steelyard.base.files import canonical, write_text
from steelyard.systems import find_system
from steelyard_eval import SYSTEMS
from steelyard_eval.datasets import load
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("STEELYARD_DATA") or ROOT.parent / "shared" / "data")
DONE = ROOT / "reports" / "identity.json"


def sources() -> str:
    """A hash of the engine."""
    files = sorted((ROOT / "engine").rglob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def table_of(dataset, system, memory):
    """All signals of a system over all queries, in a new vault."""
    if memory:
        os.environ.pop("STEELYARD_MEMORY", None)
    else:
        os.environ["STEELYARD_MEMORY"] = "0"
    space = Workspace.open(dataset)
    return record(space, dataset.queries, [find_system(system).config(10, space.model)])


def arrays(table):
    """Every array that a ranking is made of, with its bytes."""
    yield "entries", "\n".join(table.entries).encode()
    for name in ("offsets", "entry"):
        yield name, np.ascontiguousarray(getattr(table, name)).tobytes()
    for kind in ("columns", "positions"):
        for name, column in sorted(getattr(table, kind).items()):
            yield f"{kind} {name}", np.ascontiguousarray(column).tobytes()


def compared(dataset, system):
    """What differs between both ways, and how many rows there are."""
    fast, plain = (table_of(dataset, system, memory) for memory in (True, False))
    here, there = dict(arrays(fast)), dict(arrays(plain))
    return [name for name in sorted({*here, *there}) if here.get(name) != there.get(name)], len(fast)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("sets", nargs="*", help="names of data sets; all by default")
    asked = parser.parse_args()
    names = asked.sets or sorted(path.name for path in DATA.iterdir() if (path / "dataset.json").is_file())
    done = json.loads(DONE.read_text(encoding="utf-8")) if DONE.is_file() else {}
    state, end, wrong = sources(), time.monotonic() + 60 * asked.minutes, 0
    for name in names:
        left = [system for system in SYSTEMS if done.get(f"{name} {system}") != state]
        dataset = load(DATA / name) if left and time.monotonic() < end else None
        for system in left if dataset else ():
            if time.monotonic() > end:
                break
            differs, rows = compared(dataset, system)
            told = f"differs: {', '.join(differs)}" if differs else "equal"
            print(f"{name} {system}: {rows:,} rows, {told}", flush=True)
            wrong += bool(differs)
            if not differs:
                done[f"{name} {system}"] = state
                write_text(DONE, canonical(done))
    equal = sum(done.get(f"{name} {system}") == state for name in names for system in SYSTEMS)
    print(f"{equal} of {len(names) * len(SYSTEMS)} equal, {wrong} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
