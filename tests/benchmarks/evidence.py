"""Does a recommendation keep what it promises? `make evidence`: real collections, many splits, resumable.

Parts: the `odds` and the range that `recommend` prints over all families, against each system, preset and fusion
as the current configuration, beside what the choice gains on all queries; what a `few` labels choose among the
usual contenders; and the `ceiling`, what a learned ranker reaches on each collection beside weights that were
chosen out of fold, too. Every recording, matrix and row is a file under --folder; a run that was broken off, by
--minutes or otherwise, goes on from there and prints what there is.
"""

import os

for library in ("OPENBLAS", "OMP", "MKL", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path

from evidence_few import current_table, few_rows, few_table, pools, zero_table
from evidence_matrices import DATA, FUSIONS, Collection
from evidence_odds import GROUPS, Differences, odds_row, odds_table

from steelyard.base.files import write_text
from steelyard_eval.candidates.families import PRESETS
from steelyard_eval.workbench import load

CURRENTS = (*PRESETS, *FUSIONS)
SIZES = (15, 25, 40, 100, 200)  # labelled queries
PARTS = ("odds", "few", "ceiling", "all")
MEANING = {
    "ceiling_more": "a model may be worth a project",
    "ceiling_same": "a model gains less than 0.02",
    "ceiling_open": "open: too few queries",
}
HEADS = ("collection", "queries", "bm25", "tuned", "ceiling", "against tuned [95%]", "meaning")


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
            write_text(file, json.dumps(make()))
            print(name, file=sys.stderr, flush=True)
        return json.loads(file.read_text())


def odds_rows(folder, groups, count):
    """group, current, collection, n -> a row, made from the differences to a current configuration."""
    found = {}
    for group, names in groups.items():
        every = None
        for current in CURRENTS:
            data = None
            for name in names:
                for n in SIZES:

                    def made(name=name, current=current, n=n, names=names):
                        nonlocal data, every
                        every = every or {one: Collection(one, folder.path).families() for one in names}
                        data = data or {one: Differences.of(every[one], current) for one in names}
                        return odds_row(data[name], [data[one] for one in names if one != name], current, n, count)

                    if row := folder.row(f"odds.{current}.{name}.{n}.{count}", made):
                        found[group, current, name, n] = row
    return found


def ceiling_row(name):
    """The numbers of the ceiling's sentence of `recommend`, with bm25 as what is used today."""
    begun = time.monotonic()
    result = load(DATA / name).recommend("bm25", ceiling=True).result
    said = next(one for one in result.answer.because if one.key.startswith("ceiling"))
    gain, row = said.facts["gain"], result.row("bm25")
    return {
        "queries": result.provenance.data.judged,
        "bm25": row.means["nDCG@10"].mean,
        "tuned": said.facts["reached"],
        "ceiling": said.facts["learned"],
        "gain": [gain.mean, gain.low, gain.high],
        "meaning": MEANING[said.key],
        "seconds": round(time.monotonic() - begun),
    }


def ceiling_table(rows):
    lines = [HEADS, ("---", *["---:"] * 5, "---")]
    for name, row in rows.items():
        mean, low, high = row["gain"]
        values = (f"{row[key]:.3f}" for key in HEADS[2:5])
        lines.append(
            (name, str(row["queries"]), *values, f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]", row["meaning"])
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def made(folder, asked, part):
    only = asked.only.split(",") if asked.only else sum(GROUPS.values(), ())
    groups = {group: tuple(name for name in names if name in only) for group, names in GROUPS.items()}
    if part == "odds":
        rows = odds_rows(folder, groups, asked.draws)
        yield part, rows, odds_table(rows)
    elif part == "ceiling":
        names = [name for name in (*sum(GROUPS.values(), ()), "locomo-sessions") if not asked.only or name in only]
        found = {name: folder.row(f"ceiling.{name}", partial(ceiling_row, name)) for name in names}
        rows = {name: row for name, row in found.items() if row}
        yield part, rows, ceiling_table(rows)
    else:
        every = pools(folder.path)
        rows = few_rows(folder, every, asked.chosen)
        yield part, rows, "\n\n".join((zero_table(every), current_table(every), few_table(rows)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("reports/evidence"), help="recordings, matrices, rows")
    parser.add_argument("--minutes", type=float, default=1e9, help="after which no new row is begun")
    parser.add_argument("--draws", type=int, default=60, help="splits of every row of the whole procedure")
    parser.add_argument("--chosen", type=int, default=200, help="draws of labels, of few")
    parser.add_argument("--part", choices=PARTS, default="all")
    parser.add_argument("--only", default="", metavar="NAME,NAME", help="these collections of each group")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args()
    folder, document = Folder(asked.folder, asked.minutes), {}
    for part in PARTS[:-1] if asked.part == "all" else [asked.part]:
        for name, rows, text in made(folder, asked, part):
            document[name] = [{"key": key, **row} for key, row in rows.items()]
            print("" if asked.json else f"{text}\n", end="" if asked.json else "\n")
    if asked.json:
        print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
