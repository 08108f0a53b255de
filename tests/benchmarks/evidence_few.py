"""Zero labels and few labels: what the first judgments are worth, on ten public collections.

A part of `make evidence`: a choice among the contenders of `choose.public` on ten collections (`pools.py`).
"""

import numpy as np
from pools import CHOSEN, CONFIRMED, POOL, TWINS, Lists

from steelyard_eval.choose.few_labels import LEAD_SD_CONTENDERS, ahead_by
from steelyard_eval.choose.public import DEFAULT, PRIOR_QUERIES, PriorGains, public_table

AT = POOL.index(DEFAULT)
SETS = {"chosen on": CHOSEN, "confirmed on": CONFIRMED}
SIZES = (5, 10, 20, 40, 80, 160, 320)


def pools(folder, embedder="recorded"):
    return {name: Lists.of(name, folder, embedder).only(POOL) for own in SETS.values() for name in own}


def _others(name, every):
    return [every[one] for one in CHOSEN if one != name and one != TWINS.get(name)]


def zero_table(every):
    methods = {
        label: lambda own, rest, label=label: np.array([one == label for one in own.labels], dtype=float)
        for label in (DEFAULT, "rrf(bm25, vector, k=60)", "bm25", "vector")
    }
    methods |= {"best on the other sets": lambda own, rest: np.mean([one.truth for one in rest], axis=0)}
    methods["one at random"] = lambda own, rest: np.zeros(len(own.labels))
    lines = ["zero labels: loss to the best of 26, nDCG@10"]
    for label, score in methods.items():
        cells = []
        for title, names in SETS.items():
            losses = {name: every[name].loss(score(every[name], _others(name, every))) for name in names}
            worst = max(losses, key=losses.get)
            cells.append(f"{title} {np.mean(list(losses.values())):.3f} (worst {losses[worst]:.3f} {worst})")
        lines.append(f"{label:58} {'   '.join(cells)}")
    return "\n".join(lines)


def current_table(every):
    lines = ["the default against what may be in use (better on, mean, worst)"]
    for at, label in enumerate(POOL):
        cells = []
        for names in SETS.values():
            gains = np.array([every[name].truth[AT] - every[name].truth[at] for name in names])
            cells.append(f"{(gains > 0).sum()} of {len(gains)} {gains.mean():+.3f} {gains.min():+.3f}")
        lines.append(f"{label:58} {'   '.join(cells)}")
    return "\n".join(line for line in lines if not line.startswith(DEFAULT))


def few_row(own, rest, n, draws):
    """Draws with replacement: (loss, gain to the default) of the leader."""
    others = [one.values - one.values[AT] for one in rest]
    variance = np.mean([one.var(axis=1, ddof=1) for one in others], axis=0)
    known = np.mean([one.mean(axis=1) for one in others], axis=0)
    elsewhere = PriorGains(known, variance, np.full(len(known), PRIOR_QUERIES))
    differences = own.values - own.values[AT]
    rows = []
    for draw in range(draws):
        asked = np.random.default_rng([n, draw]).integers(0, differences.shape[1], n)
        ahead = ahead_by(differences[:, asked], np.arange(n), elsewhere, LEAD_SD_CONTENDERS)
        top = int(np.argmax(ahead)) if ahead.max() > 0 else AT
        rows.append((own.truth.max() - own.truth[top], own.truth[top] - own.truth[AT]))
    return {"loss": [row[0] for row in rows], "gain": [row[1] for row in rows]}


def few_rows(folder, every, draws):
    made = {
        (name, n): folder.row(
            f"few.{name}.{n}.{draws}", lambda name=name, n=n: few_row(every[name], _others(name, every), n, draws)
        )
        for names in SETS.values()
        for name in names
        for n in SIZES
    }
    return {key: row for key, row in made.items() if row}


def few_table(rows):
    """Mean loss, gain to the default, and how often the choice is worse than it by .005."""
    lines = ["few labelled queries: loss, gain to the default, share worse by .005, share with a loss below .01"]
    for title, names in SETS.items():
        for n in SIZES:
            own = [rows[name, n] for name in names if (name, n) in rows]
            if own:
                loss, gain = (np.array([row[side] for row in own]) for side in ("loss", "gain"))
                worst = names[int(np.argmax(loss.mean(axis=1)))]
                lines.append(
                    f"{title:13} {n:4} {loss.mean():.3f} {gain.mean():+.3f} {(gain < -0.005).mean():.2f} "
                    f"{(loss < 0.01).mean():.2f}   worst {loss.mean(axis=1).max():.3f} {worst}"
                )
    return "\n".join(lines)


def default_of(differences):
    return next(key for key in differences.keys if key.endswith(" " + DEFAULT))


def contenders_of(own, rest):
    """The contenders' rows, the variances of their differences to the default elsewhere, and the default's row."""
    at = {key: row for row, key in enumerate(own.keys)}
    keys = [key for key, label in public_table().rows.items() if label in POOL and key in at]
    variances = []
    for one in rest:
        index = {key: row for row, key in enumerate(one.keys)}
        base = one.metric.values[index[default_of(one)]]
        variances.append([(one.metric.values[index[key]] - base).var(ddof=1) for key in keys])
    rows = np.array([at[key] for key in keys])
    return rows, np.mean(variances, axis=0), at[default_of(own)]
