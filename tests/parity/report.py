"""Compares every system with its recording and prints the counts: ``python tests/parity/report.py``.

Reads the recordings in STEELYARD_ORACLES, by default ../shared/oracles beside the repository. Exit
code 1 when anything differs without a reason, 0 otherwise, also when there is no such folder.

Another system is another line in systems.json and in least.json, and a module beside this one: see verdicts.py.
"""

import importlib
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from verdicts import LEAST

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[2] / "shared"

SYSTEMS = {tuple(key.split()): modules for key, modules in json.loads((HERE / "systems.json").read_text()).items()}
"""System and profile -> the modules that compare it."""


@dataclass
class Row:
    system: str
    profile: str
    group: str
    cases: int = 0
    equal: int = 0
    worst: float = 0.0
    left_out: Counter = field(default_factory=Counter)
    differing: list = field(default_factory=list)

    def add(self, case, verdict, error):
        self.cases += 1
        if verdict.startswith("left out: "):
            self.left_out[verdict.removeprefix("left out: ")] += 1
            return
        self.worst = max(self.worst, error)
        if verdict:
            self.differing.append(f"{case}: {verdict.removeprefix('differs: ')}")
        else:
            self.equal += 1


def groups_of(system, folder):
    """group -> the function that compares it, and what it is given."""
    groups, given = {}, None
    for module in map(importlib.import_module, SYSTEMS[system]):
        made = getattr(module, "fixtures", {}).get(system[1]) or getattr(
            module, "fixture", lambda _, own=given: own
        )
        given = made(folder)
        names = {group: group.replace(" ", "_") for group in LEAST[" ".join(system)]}
        own = {group: (getattr(module, name), given) for group, name in names.items() if hasattr(module, name)}
        groups = own | groups
    return groups


def rows_of(system, folder):
    groups, rows = groups_of(system, folder), []
    for group in LEAST[" ".join(system)]:
        compared, given = groups[group]
        rows.append(Row(*system, group))
        for case, (verdict, error) in compared(given):
            rows[-1].add(case, verdict, error)
    return rows


COLUMNS = "{:10} {:11} {:25} {:>5} {:>5} {:>11} {:>8}"


def printed(rows):
    lines = [COLUMNS.format("system", "profile", "case group", "cases", "equal", "worst error", "left out")]
    for row in rows:
        numbers = row.cases, row.equal, f"{row.worst:.1e}", sum(row.left_out.values())
        lines.append(COLUMNS.format(row.system, row.profile, row.group, *numbers))
    for row in rows:
        group = f"{row.system}:{row.profile} {row.group}"
        lines += [f"left out {count:3} of {group}: {reason}" for reason, count in row.left_out.most_common()]
    lines += [f"DIFFERS {row.system}:{row.profile} {row.group}, {case}" for row in rows for case in row.differing]
    cases, equal = sum(row.cases for row in rows), sum(row.equal for row in rows)
    differing = sum(len(row.differing) for row in rows)
    left_out = sum(sum(row.left_out.values()) for row in rows)
    lines.append(f"parity: {cases} cases, {equal} equal, {differing} differ, {left_out} left out with a reason")
    return lines


def main():
    folder = Path(os.environ.get("STEELYARD_ORACLES") or SHARED / "oracles")
    if not folder.is_dir():
        print(f"skipped: {folder} does not exist; set STEELYARD_ORACLES to the folder of the recordings")
        return 0
    rows = [row for system in SYSTEMS for row in rows_of(system, folder)]
    print("\n".join(printed(rows)))
    return 1 if any(row.differing for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
