"""Make the tables of public collections that ship with the package, from what `make evidence` measured.

`public.json` is what ten collections showed of what people run, from the lists of `pools.py`. Means and variances
per contender are results of measurements and name their collections, each a column with its day and the hash of
what decides it, so that a stale one is measured again alone. The model of relevance is learned from labels, and so
from collections alone whose licence allows commercial use.

`priors.npz` is what nine showed of every candidate: means and variances per configuration, and nothing of their
texts or queries, of the common strategies' own settings, which every collection has. locomo is left out for its
licence.
"""

import argparse
import io
import json
import time
from pathlib import Path

import numpy as np
from evidence import CURRENTS
from evidence_matrices import CASES, METRIC, Collection
from evidence_odds import GROUPS
from pools import CHOSEN, CONFIRMED, DATA, EMBEDDERS, Lists, digest

from steelyard.base.files import STRICT_JSON, canonical
from steelyard_eval.choose import public
from steelyard_eval.choose.duel import fitted
from steelyard_eval.choose.public import CONTENDERS, DEFAULT, features, reciprocal
from steelyard_eval.common.process import day
from steelyard_eval.datasets import load

NAMES = (*CHOSEN, *CONFIRMED)
LEARNED = tuple(name for name in NAMES if not name.startswith("locomo"))  # the others are CC BY-NC
CLASSES = {"recorded": "minilm", "lsa": "lsa", "wordllama": "wordllama"}


def stale(table):
    """The collections whose column does not rest on what decides it today."""
    known = {one["name"]: one.get("digest") for one in table["about"]["collections"]}
    return [name for name in NAMES if known.get(name) != digest(load(DATA / name))]


def document(table, names, folder, day):
    """The document of `public.json`: some collections measured anew, the others as they are."""
    found = {kind: {name: Lists.of(name, folder, kind) for name in names} for kind in EMBEDDERS}
    abouts = {one["name"]: one for one in table["about"]["collections"]}
    for name, one in found["recorded"].items():
        known = {"name": one.name, "sha256": one.sha256, "licence": one.licence, "queries": len(one.ideal)}
        abouts[name] = {**known, "date": day, "digest": one.digest}
    old = {one["name"]: at for at, one in enumerate(table["about"]["collections"])}
    made = {"means": {}, "variances": {}, "relevance": table["relevance"]}
    for kind, every in found.items():
        for side, of in (("means", lambda one: rounded(one, one.truth, 4)), ("variances", _variances)):
            measured, before = {name: of(one) for name, one in every.items()}, table[side][CLASSES[kind]]
            labels = next(iter(measured.values()), before)
            made[side][CLASSES[kind]] = {
                label: [measured[name][label] if name in measured else before[label][old[name]] for name in NAMES]
                for label in labels
            }
    if set(names) & set(LEARNED):
        made["relevance"] = {CLASSES[kind]: _relevance(folder, kind) for kind in EMBEDDERS}
    rows = {} if set(names) == set(NAMES) else dict(table["rows"])
    for every in found.values():
        for one in every.values():
            rows |= dict(zip(one.keys, one.labels, strict=True))
    about = {"collections": [abouts[name] for name in NAMES], "made by": "make priors", "metric": public.METRIC}
    return {"schema_version": 2, "about": about, "rows": dict(sorted(rows.items())), **made}


def rounded(one, values, digits):
    return {label: round(float(value), digits) for label, value in zip(one.labels, values, strict=True)}


def _variances(one):
    differences = one.values - one.values[one.labels.index(DEFAULT)]
    return rounded(one, differences.var(axis=1, ddof=1), 5)


def _relevance(folder, kind):
    """Coefficients of P(relevant), learned from all pairs of the pools, each collection worth 2,000 of them."""
    found = [_pairs(Lists.of(name, folder, kind).only(CONTENDERS)) for name in LEARNED]
    x, y = np.concatenate([of for of, _ in found]), np.concatenate([(gains > 0) * 1.0 for _, gains in found])
    weights = np.concatenate([np.full(len(gains), 2000 / len(gains)) for _, gains in found])
    return [round(float(value), 4) for value in fitted(x, y, np.zeros(x.shape[1]), 3.0, weights)]


def _pairs(own):
    """The features and the gains, float64[P], of all pairs of query and entry in a collection's pool."""
    discount = 1 / np.log2(np.arange(2, 12))
    worth, gains = [], []
    for q in range(len(own.ideal)):
        ids = np.unique(own.lists[q])
        ids = ids[ids >= 0]
        table, gain = np.zeros((len(own.labels), len(ids))), np.zeros(len(ids))
        for s, found in enumerate(own.lists[q]):
            there = found >= 0
            at = np.searchsorted(ids, found[there])
            table[s, at] = discount[there]
            gain[at] = own.gains[q, s][there]
        worth.append(table)
        gains.append(gain)
    whole = np.concatenate(worth, axis=1)
    inverse = {name: reciprocal(whole[own.labels.index(name)]) for name in ("bm25", "fts", "vector")}
    return features(inverse, whole), np.concatenate(gains)


def write(path, names, folder, day):
    """Write the file with some columns measured anew (None: those that are stale); return what was measured."""
    table = STRICT_JSON.decode(path.read_text(encoding="utf-8"))
    names = stale(table) if names is None else names
    path.write_text(canonical(document(table, names, folder, day)), encoding="utf-8")
    return names


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
    every = [candidates(collection) for collection in collections]
    keys = sorted(set.intersection(*map(set, every)))
    for collection, own in zip(collections, every, strict=True):
        currents = collection.families().currents
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
        "--only", nargs="+", choices=NAMES, help="collections of public.json (those that are stale)"
    )
    asked = parser.parse_args()
    if asked.part != "priors":
        path = OUT.with_name(public.FILE)
        made = write(path, asked.only, asked.folder, day(time.time))
        print(f"{path}: {', '.join(made) or 'nothing'} measured anew, {path.stat().st_size:,} bytes")
    if asked.part != "public":
        made = to_bytes(table(asked.folder))
        OUT.write_bytes(made)
        print(f"{OUT}: {len(made):,} bytes")
