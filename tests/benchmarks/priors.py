"""Make the tables of public collections that ship with the package, from what `make evidence` measured.

`public.json` is what ten collections showed of what people run (`public_table.py`); `priors.npz` is what nine
showed of every candidate.

It holds means and variances per configuration over the public collections, and nothing of their texts or queries:
only the common strategies' own settings, which every collection has. locomo is left out, because its licence
allows no commercial use.
"""

import argparse
import io
import json
import time
from pathlib import Path

import numpy as np
import public_table
from evidence import CURRENTS
from evidence_matrices import CASES, METRIC, Collection
from evidence_rows import GROUPS

from steelyard_eval.choose import public
from steelyard_eval.common.process import day

LEFT_OUT = ("locomo",)
OUT = Path(public.__file__).with_name(public.PRIORS_FILE)
SINGLE = ("bm25", "vector", "fts", "tiered")
"""Families of `recommend` whose candidates are named alike on every collection."""


def to_bytes(table):
    texts = {"about": json.dumps(dict(table.about), sort_keys=True), "keys": "\n".join(table.at)}
    texts["currents"] = "\n".join(table.currents)
    numbers = ("metric", "composite", "variances_metric", "variances_composite", "current_metric")
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        **{name: np.frombuffer(text.encode(), dtype=np.uint8) for name, text in texts.items()},
        **{name: getattr(table, name).astype(np.float16) for name in (*numbers, "current_composite")},
    )
    return buffer.getvalue()


def candidates(collection):
    found = {}
    for part in [collection.tuned(case) for case in CASES] + [collection.families()]:
        own = [row for row, label in enumerate(part.labels) if label in (*CASES, *SINGLE)]
        for row in np.flatnonzero(np.isin(part.owner, own)):
            found.setdefault(part.keys[row], (part.metric[row], part.composite[row]))
    return found


def table(folder):
    collections = [Collection(name, folder) for names in GROUPS.values() for name in names if name not in LEFT_OUT]
    means, variances, bases = [], [], []
    keys = None
    for collection in collections:
        own = candidates(collection)
        keys = sorted(own) if keys is None else [key for key in keys if key in own]
    for collection in collections:
        own, currents = candidates(collection), collection.families().currents
        sides = [np.array([own[key][side] for key in keys], dtype=np.float64) for side in (0, 1)]
        means.append([side.mean(axis=1) for side in sides])
        bases.append([[currents[one][1 + side].mean() for one in CURRENTS] for side in (0, 1)])
        variances.append(
            [[(sides[side] - currents[one][1 + side]).var(axis=1, ddof=1) for one in CURRENTS] for side in (0, 1)]
        )
        print(collection.name, len(own), flush=True)
    names = [collections[0].families().currents[one][0] for one in CURRENTS]
    about = {
        "metric": str(METRIC),
        "model": collections[0].space.model,
        "limit": 10,
        "collections": [collection.about for collection in collections],
        "made by": "tests/benchmarks/priors.py",
    }
    mean, variance, base = (np.mean(values, axis=0) for values in (means, variances, bases))
    return public.PriorTable(
        about,
        {key: row for row, key in enumerate(keys)},
        {key: row for row, key in enumerate(names)},
        *mean,
        *variance,
        *base,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("reports/evidence"))
    parser.add_argument("--part", choices=("public", "priors", "all"), default="all")
    parser.add_argument(
        "--only", nargs="+", choices=public_table.NAMES, help="collections of public.json (those that are stale)"
    )
    asked = parser.parse_args()
    if asked.part != "priors":
        path = OUT.with_name(public.FILE)
        made = public_table.write(path, asked.only, asked.folder, day(time.time))
        print(f"{path}: {', '.join(made) or 'nothing'} measured anew, {path.stat().st_size:,} bytes")
    if asked.part != "public":
        made = to_bytes(table(asked.folder))
        OUT.write_bytes(made)
        print(f"{OUT}: {len(made):,} bytes")
