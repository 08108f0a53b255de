"""How often does the gate block what is as good, and catch what is worse? `make curves`; resumable.

Pairs of real configurations of real collections: neutral ones (mean nDCG@10 within .001 over all queries of the
collection) and drops of .01, .02 and .05, as many that touch few queries as some and most; beside them one
category that collapses, a signal left out, and weights swapped. n queries are drawn with replacement, and a rule
sees only them. The share of blocked draws is the false alarm rate of the neutral pairs, and the power for the
others.

By the spread of their differences: real neutral pairs, any pairs whose queries have the sign of their differences
drawn at random, and any pairs less their mean. Conversations: of `conversations` as many queries each.
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
from gate_matrices import SETS, conversations, matrix
from scipy import stats

from steelyard_eval.gate.rule import judge, power_of

SIZES = (40, 100, 300)
DRAWS = 200
PAIRS = 90
"""Of each kind and collection, over the three classes."""
KINDS = {"neutral": (-0.001, 0.001), "-.01": (-0.012, -0.008), "-.02": (-0.022, -0.018), "-.05": (-0.053, -0.047)}
TOUCHED = {"few": (0.02, 0.25), "some": (0.25, 0.5), "most": (0.5, 1.01)}
"""Classes of pairs, by the share of queries whose nDCG@10 differs."""
SPREADS = [(round(low, 2), round(low + 0.05, 2)) for low in np.arange(0, 0.4, 0.05)]
"""Classes of pairs, by the standard deviation of the differences of nDCG@10."""
OF_A_SPREAD = 25
"""Pairs of each kind and class of spread."""
NEUTRAL = ("neutral", "signs drawn", "less their mean")
RULES = ("gate", "fixed limit", "t .05", "mean -.04", "BCa .05")
FIXED = 0.216
"""Over the square root of the queries: the drop of A that an earlier rule blocked whatever its spread."""
RESAMPLES = 1000


def pairs_of(ndcg, rng):
    """(before, now) int64[2, P] of good configurations and any other, in random order, and their mean
    differences."""
    mean = ndcg.mean(axis=1)
    good = np.flatnonzero(mean > np.quantile(mean, 0.3))
    before, now = rng.choice(good, 40_000), rng.integers(0, len(mean), 40_000)
    pairs = np.unique(np.stack([before, now])[:, before != now], axis=1)
    pairs = pairs[:, rng.permutation(pairs.shape[1])]
    return pairs, mean[pairs[1]] - mean[pairs[0]]


def share_touched(ndcg, pairs):
    """float64[P]: the share of queries whose nDCG@10 differs."""
    return (np.abs(ndcg[pairs[1]] - ndcg[pairs[0]]) > 1e-12).mean(axis=1)


def classes(ndcg, low, high, rng):
    """Pairs (before, now) whose mean difference lies between low and high, by class, `PAIRS` / 3 of each at
    most."""
    pairs, delta = pairs_of(ndcg, rng)
    pairs = pairs[:, (delta >= low) & (delta <= high)][:, :4000]
    share = share_touched(ndcg, pairs)
    for name, (least, most) in TOUCHED.items():
        own = np.flatnonzero((share >= least) & (share < most))
        for at in own[: PAIRS // len(TOUCHED)]:
            yield name, int(pairs[0, at]), int(pairs[1, at])


def bca_blocks(rows, rng):
    """bool[R]: whether the one-sided 95% bound of the mean by BCa lies below zero (Efron 1987)."""
    n = rows.shape[1]
    counts = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES).T.astype(np.float64)
    means = np.sort(rows @ counts / n, axis=1)
    mean = rows.mean(axis=1, keepdims=True)
    share = ((means < mean - 1e-12).sum(1) + (means <= mean + 1e-12).sum(1)) / 2 / RESAMPLES
    shift = stats.norm.ppf(np.clip(share, 0.5 / RESAMPLES, 1 - 0.5 / RESAMPLES))
    pulls = rows - mean
    squares = np.maximum((pulls**2).sum(1), 1e-12)
    bend = (pulls**3).sum(1) / 6 / squares**1.5
    z = shift + stats.norm.ppf(0.95)
    at = stats.norm.cdf(shift + z / np.maximum(1e-9, 1 - bend * z))
    bound = means[np.arange(len(rows)), np.minimum((at * RESAMPLES).astype(int), RESAMPLES - 1)]
    return (bound < 0) & (np.ptp(rows, axis=1) > 1e-12)


def by_gate(difference, unit=None):
    """name -> share of rows: what the gate and the fixed limit say of drawn differences, float64[3, R, n]."""
    ndcg, whole = difference[0], difference.mean(axis=0)
    found = [judge(*row, unit) for row in zip(ndcg, whole, strict=True)]
    shallow = [judge(row, row, unit) for row in ndcg]
    beyond = whole.mean(axis=1) < -FIXED / np.sqrt(ndcg.shape[1])
    alone = [min(one.p_worse / 0.05, one.p_ndcg / 0.02) < 1 and one.ndcg < -0.01 for one in found]
    shares = {"gate": [one.fails for one in found], "fixed limit": alone | beyond}
    shares |= {"passes": [one.passes for one in found], "shallow": [one.fails for one in shallow]}
    return {name: round(float(np.mean(own)), 4) for name, own in shares.items()}


def blocked(difference, n, rng):
    """rule -> share of draws of n queries that it blocks; `difference` is float64[3, Q]. Also our other
    verdicts."""
    drawn = rng.integers(0, difference.shape[1], (DRAWS if n < 300 else DRAWS // 2, n))
    ndcg = difference[0][drawn]
    moved = (np.abs(ndcg) > 1e-12).any(axis=1)
    error = np.maximum(ndcg.std(axis=1, ddof=1), 1e-12) / np.sqrt(n)
    p = stats.t.cdf(ndcg.mean(axis=1) / error, n - 1)
    others = {
        "t .05": (p < 0.05) & moved,
        "mean -.04": ndcg.mean(axis=1) < -0.04,
        "BCa .05": bca_blocks(ndcg, rng),
    }
    shares = {name: round(float(own.mean()), 4) for name, own in others.items()}
    return by_gate(difference[:, drawn]) | shares


def rows_of(name, folder):
    """Every pair of a collection: kind, class, n, mean, share blocked by each rule."""
    values, names = matrix(name, folder)
    values = values.astype(np.float64)
    rng = np.random.default_rng([16, *name.encode()])
    found = []
    for kind, (low, high) in KINDS.items():
        pairs = classes(values[:, 0], low, high, rng)
        found += [row_of(values[now] - values[before], kind, part, rng) for part, before, now in pairs]
    for kind, difference in damages(values, names, rng):
        found.append(row_of(difference, kind, "", rng))
    return found + partial_rows(values, name) + spread_rows(values, name) + conversation_rows(values, name)


def spread_rows(values, name):
    """Changes that are neither better nor worse, and drops of .05, by the spread of their differences."""
    rng = np.random.default_rng([19, *name.encode()])
    pairs, delta = pairs_of(values[:, 0], rng)
    found = []
    for low, high in SPREADS:
        taken = dict.fromkeys((*NEUTRAL, "-.05"), 0)
        for (before, now), mean in zip(pairs.T, delta, strict=True):
            difference = values[now] - values[before]
            spread = difference[0].std()
            if not low <= spread < high or (np.abs(difference[0]) > 1e-12).mean() < TOUCHED["few"][0]:
                continue
            level = difference.mean(axis=1, keepdims=True)
            kinds = {"signs drawn": difference, "less their mean": difference - level}
            kinds |= {kind: difference for kind in ("neutral", "-.05") if KINDS[kind][0] <= mean <= KINDS[kind][1]}
            for kind in kinds.keys() & {kind for kind, count in taken.items() if count < OF_A_SPREAD}:
                taken[kind] += 1
                sizes = {str(n): permuted(kinds[kind], n, kind == "signs drawn", rng) for n in SIZES}
                found.append({"kind": kind, "part": "", "spread": low, "mean": float(mean), "sizes": sizes})
    return found


def permuted(difference, n, signs, rng):
    """What the gate says of draws of n queries, with signs drawn at random where asked."""
    drawn = difference[:, rng.integers(0, difference.shape[1], (DRAWS if n < 300 else DRAWS // 2, n))]
    return by_gate(drawn * rng.choice([-1.0, 1.0], drawn.shape[1:]) if signs else drawn)


def conversation_rows(values, name):
    """Neutral pairs and drops of .05 on conversations, which are drawn as a whole: n queries of as many of them
    as the collection has, gated by group."""
    unit = conversations(name)
    if unit is None:
        return []
    rng = np.random.default_rng([20, *name.encode()])
    members = [np.flatnonzero(unit == at) for at in range(unit.max() + 1)]
    pairs, delta = pairs_of(values[:, 0], rng)
    found = []
    for kind in ("neutral", "-.05"):
        low, high = KINDS[kind]
        for before, now in pairs[:, (delta >= low) & (delta <= high)].T[:PAIRS]:
            difference = values[now] - values[before]
            sizes = {str(n): of_conversations(difference, members, n // len(members), rng) for n in SIZES}
            found.append({"kind": f"{kind}, conversations", "part": "", "spread": None, "sizes": sizes})
    return found


def of_conversations(difference, members, each, rng):
    """What the gate says of draws of `each` queries from as many conversations as there are."""
    drawn = rng.integers(0, len(members), (DRAWS // 2, len(members)))
    at = np.array([[rng.choice(members[one], each) for one in row] for row in drawn])
    unit = np.repeat(np.arange(len(members)), each)
    return by_gate(difference[:, at.reshape(len(at), -1)], unit)


def partial_rows(values, name):
    """Drops of .05 on few queries: a larger loss that acts on part of them, as a change of one intent does.

    Configurations as a whole hardly ever lose .05 on fewer than a quarter of the queries.
    """
    rng = np.random.default_rng([18, *name.encode()])
    mean = values[:, 0].mean(axis=1)
    good = np.flatnonzero(mean > np.quantile(mean, 0.3))
    found = []
    for _ in range(3000):
        before, now = rng.choice(good), rng.integers(0, len(mean))
        loss = mean[before] - mean[now]
        if loss < 0.15 or len(found) == PAIRS // len(TOUCHED):
            continue
        inside = rng.random(values.shape[2]) < 0.05 / loss
        row_ = np.where(inside, values[now] - values[before], 0.0)
        low, high = KINDS["-.05"]
        touched = (np.abs(row_[0]) > 1e-12).mean()
        if low <= row_[0].mean() <= high and TOUCHED["few"][0] <= touched < TOUCHED["few"][1]:
            found.append(row_of(row_, "-.05", "few", rng))
    return found


def row_of(difference, kind, part, rng):
    """One pair at each size."""
    facts = {"kind": kind, "part": part, "mean": float(difference[0].mean())}
    facts["touched"] = float((np.abs(difference[0]) > 1e-12).mean())
    return facts | {"sizes": {str(n): blocked(difference, n, rng) for n in SIZES}}


def damages(values, names, rng):
    """What people break: a tenth of the queries that gets what the worst signal finds; a signal; weights."""
    mean = values[:, 0].mean(axis=1)
    at = {name: row for row, name in enumerate(names)}
    best = int(mean.argmax())
    for _ in range(10):
        worst = int(rng.choice(np.argsort(mean)[: len(mean) // 10]))
        inside = rng.random(values.shape[2]) < 0.1
        yield "slice", np.where(inside, values[worst] - values[best], 0.0)
    for scale in ("max", "minmax", "zscore"):
        for first in ("bm25", "fts"):
            whole = at[f"plain: weighted_sum(0.3*{first}, 0.7*vector, normalize={scale})"]
            swapped = at[f"plain: weighted_sum(0.7*{first}, 0.3*vector, normalize={scale})"]
            yield "swapped", values[swapped] - values[whole]
            yield "signal left out", values[at["plain: vector"]] - values[whole]
            yield "signal left out", values[at[f"plain: {first}"]] - values[whole]


def truth(name, folder):
    """What the power statement says of n labels, and the share of real drops of .05 that is blocked then."""
    values = matrix(name, folder)[0].astype(np.float64)
    rng = np.random.default_rng([17, *name.encode()])
    real, equal = (
        [values[now] - values[before] for _, before, now in classes(values[:, 0], *KINDS[kind], rng)]
        for kind in ("-.05", "neutral")
    )
    found = []
    for n in (40, 300):
        said = power_of(judge(np.zeros(n), np.zeros(n)), 0.05, deep=True)
        row = {"n": n, "said": said.detection_rate, "false_said": said.false_alarms, "pairs": len(real)}
        row["real"] = np.mean([permuted(one, n, False, rng)["gate"] for one in real])
        row["false_real"] = np.mean([permuted(one, n, False, rng)["gate"] for one in equal])
        found.append(row)
    return [{key: round(float(value), 4) for key, value in row.items()} for row in found]


def table(rows, key, kinds, rule="gate"):
    """Lines: a row each value of a key, with what is blocked of each kind at each size."""
    for value in dict.fromkeys(key(row) for row in rows):
        own = [row for row in rows if key(row) == value]
        yield f"{value:24}" + "  ".join(cells(own, n, kinds, rule) for n in SIZES)


def cells(rows, n, kinds, rule):
    """Percent blocked of each kind at a size; pairs that touch few, some and most queries have equal shares."""
    shares = []
    for kind in kinds:
        parts = {}
        for row in rows:
            if row["kind"] == kind:
                parts.setdefault(row["part"], []).append(row["sizes"][str(n)][rule])
        shares.append(f"{100 * np.mean([np.mean(own) for own in parts.values()]):5.1f}" if parts else "    -")
    return "/".join(shares)


def report(rows, truths):
    """All tables as text."""
    kinds = ("neutral", "-.01", "-.02", "-.05")
    special = [row for row in rows if "spread" in row]
    rows = [row for row in rows if "spread" not in row]
    lines = [f"percent blocked: {' / '.join(kinds)}, at n = {', '.join(map(str, SIZES))}", "", "rule"]
    lines += [f"{rule:24}" + "  ".join(cells(rows, n, kinds, rule) for n in SIZES) for rule in RULES]
    lines += [f"{'gate passes':24}" + "  ".join(cells(rows, n, kinds, "passes") for n in SIZES)]
    lines += [f"{'gate, lists to 10':24}" + "  ".join(cells(rows, n, kinds, "shallow") for n in SIZES)]
    lines += by_spread(special)
    lines += [
        "",
        "the gate, by queries touched",
        *table([row for row in rows if row["part"]], lambda row: row["part"], kinds),
    ]
    lines += ["", "the gate, by collection", *table(rows, lambda row: row["set"], kinds)]
    lines += ["", "what people break, percent blocked by each rule (mean change)"]
    for kind in ("slice", "signal left out", "swapped"):
        own = [row for row in rows if row["kind"] == kind and row["mean"] < -0.01]
        mean = np.mean([row["mean"] for row in own]) if own else np.nan
        for rule in RULES:
            shares = "  ".join(f"{cells(own, n, (kind,), rule)}" for n in SIZES)
            lines.append(f"{kind} ({mean:+.3f}), {rule:12}{shares}")
    lines += ["", "power and false alarms, said and real"]
    for name, found in truths.items():
        for row in found:
            power = f"power said {row['said']:.2f}, real {row['real']:.2f}"
            alarms = f"false alarms said {row['false_said']:.3f}, real {row['false_real']:.3f}"
            lines.append(f"{name:12} n={row['n']:3.0f}  {power}; {alarms}")
    return "\n".join(lines)


def by_spread(rows):
    """The tables of neutral pairs and of drops of .05 by their spread, the worst cells, and conversations."""
    wide = [row for row in rows if row["spread"] is not None]
    worst = []
    for rule in ("gate", "shallow", "fixed limit"):
        yield f"\n{rule}, by the standard deviation of the differences: {', '.join(NEUTRAL)}, -.05; pairs of each"
        for low, high in SPREADS:
            own = [row for row in wide if row["spread"] == low]
            counts = "/".join(str(sum(row["kind"] == kind for row in own)) for kind in (*NEUTRAL, "-.05"))
            shares = "  ".join(cells(own, n, (*NEUTRAL, "-.05"), rule) for n in SIZES)
            yield f"{low:.2f} to {high:.2f}            {shares}  {counts}"
    for low, high in SPREADS:
        for n in SIZES:
            for kind in NEUTRAL:
                own = [row for row in wide if (row["spread"], row["kind"]) == (low, kind)]
                if own:
                    worst.append((float(cells(own, n, (kind,), "gate")), kind, f"{low:.2f} to {high:.2f}", n))
    yield "\nthe worst cells of the gate"
    yield from (f"{share:5.1f}  {kind}, {spread}, n = {n}" for share, kind, spread, n in sorted(worst)[:-9:-1])
    kinds = ("neutral, conversations", "-.05, conversations")
    for rule in ("gate", "fixed limit"):
        yield f"\n{rule}, on conversations: neutral, -.05"
        yield from table([row for row in rows if row["spread"] is None], lambda row: row["set"], kinds, rule)


def kept(folder, name, make, until):
    """What was made before, else made now while there is time; None otherwise."""
    path = folder / "rows" / f"gate.{name}.json"
    if not path.exists():
        if time.monotonic() > until:
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(make()))
        draft.rename(path)
        print(name, file=sys.stderr, flush=True)
    return json.loads(path.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("reports/evidence"), help="recordings, matrices, rows")
    parser.add_argument("--minutes", type=float, default=1e9, help="after which no new collection is begun")
    parser.add_argument("--sets", default=",".join(SETS), help="collections, separated by commas")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args()
    until = time.monotonic() + 60 * asked.minutes
    rows, truths = [], {}
    for name in asked.sets.split(","):
        own = kept(asked.folder, name, lambda name=name: rows_of(name, asked.folder), until)
        rows += [{"set": name, **row} for row in own or []]
        said = kept(asked.folder, f"{name}.truth", lambda name=name: truth(name, asked.folder), until)
        truths |= {name: said} if said else {}
    print(json.dumps({"rows": rows, "truth": truths}, indent=1) if asked.json else report(rows, truths))


if __name__ == "__main__":
    main()
