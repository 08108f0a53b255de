"""Does a recommendation keep what it promises? `make evidence`: real collections, many splits, resumable.

Three tables. The first is the choice rule inside one strategy, at 15 to 400 labelled queries, beside a grid of 30
settings and the optimum in sample. The second is `recommend` as a whole procedure, over all families, against
each system and preset as the current configuration. The third is its verdicts where a few questions were asked
five times each, counted apart and counted as one. Every recording, matrix and row is a file under --folder; a
run that was broken off, by --minutes or otherwise, goes on from there and prints what there is.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from evidence_chosen import CASES as CHOSEN
from evidence_chosen import Relabelled, chosen_row
from evidence_few import (
    CURVE,
    current_table,
    curve_drawn,
    curve_row,
    curve_table,
    duel_rows,
    duel_table,
    few_rows,
    few_table,
    pools,
    zero_table,
)
from evidence_floors import floor_rows, floor_table
from evidence_matrices import CASES, FUSIONS, Collection
from evidence_model import model_rows, model_table
from evidence_odds import SIZES as FEW
from evidence_odds import odds_row, odds_table
from evidence_rows import GROUPS, USUAL, Differences, recommend_row, repeats_row, rule_row
from evidence_tables import chosen_table, recommend_table, repeats_table, rule_table

from steelyard_eval.candidates.families import PRESETS

SIZES = (15, 25, 40, 60, 100, 200, 400)
FEWER = (15, 25, 40, 100, 400)
"""Labelled queries: for the rule, and for the whole procedure."""
ASKED = (8, 20)
"""Questions, where each is asked several times."""
GRIDS = {
    "ws": ("normalize=max", "normalize=minmax", "normalize=zscore"),
    "ws50": ("normalize=max", "normalize=minmax", "normalize=zscore"),
    "rrf": ("k=10)", "k=60)", "k=100)"),
    "echo": ("min_results=3,", "min_results=10,", "min_results=50,"),
}
"""What somebody would try by hand: these three by ten weights, at the depth there is."""


PARTS = ("rule", "recommend", "chosen", "repeats", "few", "duel", "curve", "model", "floors", "odds", "all")


class Folder:
    """Rows that are made, by name; what is missing is made until the time is over."""

    def __init__(self, path, minutes):
        self.path = path
        self.until = time.monotonic() + 60 * minutes
        (path / "rows").mkdir(parents=True, exist_ok=True)

    def row(self, name, make):
        """The row of a name, None when there is no time left to make it."""
        file = self.path / "rows" / f"{name}.json"
        if not file.exists():
            if time.monotonic() > self.until:
                return None
            draft = file.with_suffix(".draft")
            draft.write_text(json.dumps(make()))
            draft.rename(file)
            print(name, file=sys.stderr, flush=True)
        return json.loads(file.read_text())


def by_hand(case, keys, depth):
    """Rows of the 30 settings of a coarse grid."""
    steps = [round(0.05 + 0.1 * at, 2) for at in range(10)]
    rows = []
    for kind in GRIDS[case]:
        own = [row for row, key in enumerate(keys) if kind in key and depth in key]
        own = [row for row in own if "normalize=max)" in keys[row] or case != "echo"] or own
        shares = np.array([first_share(keys[row]) for row in own])
        rows += [own[int(np.abs(shares - step).argmin())] for step in steps]
    return np.unique(rows)


def first_share(key):
    """The first weight in a name of a configuration."""
    written = key.split("(")[-1].split(",")[0]
    return float(written.split("*")[0]) if "*" in written else 1.0


def rule_rows(folder, groups, count):
    """group, case, collection, n -> a row."""
    found = {}
    for group, names in groups.items():
        for case in CASES:
            data = None
            for name in names:
                for n in SIZES:

                    def make(name=name, case=case, n=n, names=names):
                        nonlocal data
                        if data is None:
                            data = {one: loaded(folder, one, case) for one in names}
                        own = data[name]
                        others = [data[one] for one in names if one != name]
                        return rule_row(
                            own, others, by_hand(case, own.keys, depth_of(case)), n, count, *_usual(case)
                        )

                    row = folder.row(f"rule.{case}.{name}.{n}.{count}", make)
                    if row:
                        found[group, case, name, n] = row
    return found


def loaded(folder, name, case):
    """The differences of one strategy's settings on one collection."""
    return Differences.of(Collection(name, folder.path).tuned(case), case)


def depth_of(case):
    """The depth that a case's configuration has, as it stands in names."""
    return "=20" if case == "echo" else "=100"


def recommend_rows(folder, groups, count):
    """group, current, collection, n -> a row."""
    found = {}
    for group, names in groups.items():
        every = None
        for current in CURRENTS:
            data = None
            for name in names:
                for n in FEWER:

                    def make(name=name, current=current, n=n, names=names):
                        nonlocal data, every
                        if every is None:
                            every = {one: Collection(one, folder.path).families() for one in names}
                        if data is None:
                            data = {one: Differences.of(every[one], current) for one in names}
                        others = [data[one] for one in names if one != name]
                        return recommend_row(data[name], others, n, count, *_usual(current))

                    row = folder.row(f"recommend.{current}.{name}.{n}.{count}", make)
                    if row:
                        found[group, current, name, n] = row
    return found


CURRENTS = (*PRESETS, *FUSIONS)


def _usual(current):
    """What is usually gained over it, where that is not a fusion."""
    return [USUAL[current]] if current in USUAL else []


def chosen_rows(folder, names, count):
    """collection, case -> a row, on the collections that the rule was chosen on."""
    found = {}
    for name in names:
        made = None
        for case in CHOSEN:

            def make(name=name, case=case):
                nonlocal made
                if made is None:
                    others = [Collection(one, folder.path).families() for one in names if one != name]
                    made = Relabelled(Collection(name, folder.path)), others
                return chosen_row(*made, case, count)

            row = folder.row(f"chosen.{case}.{name}.{count}", make)
            if row:
                found[name, case] = row
    return found


def repeats_rows(folder, groups, count):
    """current, collection, number of questions -> a row."""
    found = {}
    for names in groups.values():
        every = None
        for current in FUSIONS:
            data = None
            for name in names:
                for n in ASKED:

                    def make(name=name, current=current, n=n, names=names):
                        nonlocal data, every
                        every = every or {one: Collection(one, folder.path).families() for one in names}
                        data = data or {one: Differences.of(every[one], current) for one in names}
                        others = [data[one] for one in names if one != name]
                        return repeats_row(data[name], others, n, count)

                    row = folder.row(f"repeats.{current}.{name}.{n}.{count}", make)
                    if row:
                        found[current, name, n] = row
    return found


def curve_rows(folder, groups, count):
    """current, collection, n -> a row."""
    found = {}
    for names in groups.values():
        every = None
        for current in CURRENTS:
            data = None
            for name in names:
                for n in CURVE:

                    def make(name=name, current=current, n=n, names=names):
                        nonlocal data, every
                        every = every or {one: Collection(one, folder.path).families() for one in names}
                        data = data or {one: Differences.of(every[one], current) for one in names}
                        others = [data[one] for one in names if one != name]
                        return curve_drawn(data[name], others, current, n, count)

                    drawn = folder.row(f"drawn.{current}.{name}.{n}.{count}", make)
                    if drawn:
                        found[current, name, n] = curve_row(drawn, current, n)
    return found


def odds_rows(folder, groups, count):
    """group, current, collection, n -> a row."""
    found = {}
    for group, names in groups.items():
        every = None
        for current in CURRENTS:
            data = None
            for name in names:
                for n in FEW:

                    def make(name=name, current=current, n=n, names=names):
                        nonlocal data, every
                        every = every or {one: Collection(one, folder.path).families() for one in names}
                        data = data or {one: Differences.of(every[one], current) for one in names}
                        others = [data[one] for one in names if one != name]
                        return odds_row(data[name], others, current, n, count)

                    row = folder.row(f"odds.{current}.{name}.{n}.{count}", make)
                    if row:
                        found[group, current, name, n] = row
    return found


def best_presets(folder, groups):
    """collection -> its best preset on all queries."""
    found = {}
    for names in groups.values():
        for name in names:
            currents = Collection(name, folder.path).families().currents
            found[name] = max(CURRENTS, key=lambda one: currents[one][1].mean())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("reports/evidence"), help="recordings, matrices, rows")
    parser.add_argument("--minutes", type=float, default=1e9, help="after which no new row is begun")
    parser.add_argument("--splits", type=int, default=150, help="of every row of the rule")
    parser.add_argument("--draws", type=int, default=60, help="splits of every row of the whole procedure")
    parser.add_argument("--chosen", type=int, default=200, help="draws of every row of labels that were chosen")
    parser.add_argument("--sessions", type=int, default=40, help="of judging by duel, each collection")
    parser.add_argument("--part", choices=PARTS, default="all")
    parser.add_argument("--only", default="", metavar="NAME,NAME", help="of odds: these collections of each group")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args()
    folder = Folder(asked.folder, asked.minutes)
    document, text = {}, []
    if asked.part in ("rule", "all"):
        rows = rule_rows(folder, GROUPS, asked.splits)
        document["rule"] = [{"key": key, **row} for key, row in rows.items()]
        text.append(rule_table(rows))
    if asked.part in ("recommend", "all"):
        rows = recommend_rows(folder, GROUPS, asked.draws)
        document["recommend"] = [{"key": key, **row} for key, row in rows.items()]
        text.append(recommend_table(rows, best_presets(folder, GROUPS)))
    if asked.part in ("chosen", "all"):
        rows = chosen_rows(folder, GROUPS["chosen on"], asked.chosen)
        document["chosen"] = [{"key": key, **row} for key, row in rows.items()]
        text.append(chosen_table(rows))
    if asked.part in ("repeats", "all"):
        rows = repeats_rows(folder, GROUPS, asked.draws)
        document["repeats"] = [{"key": key, **row} for key, row in rows.items()]
        text.append(repeats_table(rows))
    if asked.part in ("few", "all"):
        every = pools(folder.path)
        rows = few_rows(folder, every, asked.chosen)
        document["few"] = [{"key": key, **row} for key, row in rows.items()]
        text += [zero_table(every), current_table(every), few_table(rows)]
    if asked.part in ("duel", "all"):
        rows = duel_rows(folder, pools(folder.path), asked.sessions)
        document["duel"] = [{"key": key, **row} for key, row in rows.items()]
        text.append(duel_table(rows))
    if asked.part in ("model", "all"):
        rows = model_rows(folder, pools(folder.path), asked.sessions)
        document["model"] = [{"key": key, **row} for key, row in rows.items()]
        text.append(model_table(rows))
    if asked.part in ("curve", "all"):
        rows = curve_rows(folder, GROUPS, asked.draws)
        document["curve"] = [{"key": key, **row} for key, row in rows.items()]
        text.append(curve_table(rows))
    if asked.part in ("odds", "all"):
        only = asked.only.split(",") if asked.only else sum(GROUPS.values(), ())
        groups = {group: tuple(name for name in names if name in only) for group, names in GROUPS.items()}
        rows = odds_rows(folder, groups, asked.draws)
        document["odds"] = [{"key": key, **row} for key, row in rows.items()]
        text.append(odds_table(rows))
    if asked.part in ("floors", "all"):
        for embedder in ("recorded", "lsa"):
            rows = floor_rows(folder, embedder, asked.chosen)
            document[f"floors.{embedder}"] = [{"key": key, **row} for key, row in rows.items()]
            text.append(f"vectors {embedder}\n{floor_table(rows)}")
    print(json.dumps(document, indent=1) if asked.json else "\n\n".join(text))


if __name__ == "__main__":
    main()
