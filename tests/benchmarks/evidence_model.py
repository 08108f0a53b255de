"""Labels of a language model, simulated: whether corrected intervals cover, what ships falsely, what is saved.

A user asks 150 queries, drawn with replacement from a collection, and judges some of them completely; a model
judges all. Its labels are the real ones with errors that bring kappa to what is wanted, and with a preference: it
takes entries that vectors find among the first three for relevant more often. Truth is the collection's mean.
"""

import numpy as np
from duels import Pairs
from scipy.stats import t as student

from steelyard_eval.choose.scored import Scored, SecondMeasurement

ASKED = 150
JUDGED = (20, 40, 80)
CURRENTS = ("bm25", "vector", "rrf(bm25, vector, k=60)")
MODELS = {"kappa .4, prefers vectors": (0.4, True), "kappa .6, no preference": (0.6, False)}


def modelled(truth, liked, kappa, rng):
    """Relevance by a model: of true ones a share is missed, of others as many are added, the liked ones first."""
    wrong = (1 - kappa) * truth.mean() * (1 - truth.mean())  # of each kind: kappa = 1 - wrong / chance
    missed = (truth > 0) & (rng.random(len(truth)) < wrong / max(truth.mean(), 1e-9))
    weight = np.where(liked, 4.0, 1.0) * (truth == 0)
    added = rng.random(len(truth)) < wrong * len(truth) * weight / max(weight.sum(), 1e-9)
    return np.where(missed, 0.0, np.where(added, 1.0, truth))


def kappa_of(one, other):
    """Cohen's kappa of two binary judges."""
    seen, chance = (one == other).mean(), one.mean() * other.mean() + (1 - one.mean()) * (1 - other.mean())
    return (seen - chance) / (1 - chance)


def ndcg(pairs, gains):
    """float64[C, Q]: nDCG@10 over what is pooled."""
    contest, _ = pairs.log(range(len(pairs.lists.ideal)), np.zeros(10), np.zeros(len(pairs.lists.labels)))
    return contest.per_query(gains)


def model_row(pairs, kind, draws):
    """By number of judged queries: coverage, false ships, and the variance left, with and without a model."""
    kappa, likes = MODELS[kind]
    rng = np.random.default_rng(5)
    truth = (pairs.gains > 0) * 1.0
    vector = pairs.worth[pairs.lists.labels.index("vector")]
    given = modelled(truth, (vector >= 0.5) & likes, kappa, rng)
    own, other = ndcg(pairs, truth), ndcg(pairs, given)
    found = {"kappa": float(kappa_of(truth, given)), "cells": {}}
    for n in JUDGED:
        rows, each = [], []
        for current in CURRENTS:
            at = pairs.lists.labels.index(current)
            gains, said = own - own[at], other - other[at]
            kept = np.arange(len(gains)) != at
            mean = gains.mean(axis=1)
            for _ in range(draws):
                asked = rng.integers(0, gains.shape[1], ASKED)
                judged = np.arange(n)
                second = SecondMeasurement.of(said[:, asked], judged, judged, np.arange(ASKED))
                person = gains[:, asked[:n]]
                begin = len(rows)
                both = [Scored.of(person, person, second=one).of_metric for one in (None, second)]
                for c in np.flatnonzero(kept):
                    cells = []
                    for one in both:
                        reach = student.ppf(0.975, one.degrees[c]) * one.deviation[c]
                        low, high = one.mean[c] - reach, one.mean[c] + reach
                        cells += [low <= mean[c] <= high, low > 0 and mean[c] < -0.001, one.deviation[c] ** 2]
                    rows.append([*cells, low > 0, mean[c] < -0.001])
                each.append([int(sum(row[at] for row in rows[begin:])) for at in (1, 4, 7)])
        cell = np.array(rows, dtype=float).mean(axis=0)
        names = (
            "covered alone",
            "false alone",
            "variance alone",
            "covered",
            "false",
            "variance",
            "ships",
            "worse",
        )
        found["cells"][n] = dict(zip(names, map(float, cell), strict=True)) | {"each": each}
    return found


def model_rows(folder, every, draws):
    """kind, collection -> a row."""
    made = {name: Pairs(one) for name, one in every.items()}
    keys = [(kind, name) for kind in MODELS for name in made]
    rows = {
        key: folder.row(f"model.{key[0]}.{key[1]}.{draws}", lambda key=key: model_row(made[key[1]], key[0], draws))
        for key in keys
    }
    return {key: row for key, row in rows.items() if row}


def model_table(rows):
    """Coverage in % (the lowest collection), false ships in % of those that are worse, labels that are saved.

    In square brackets: the standard error over the draws of labels, given the collections.
    """
    lines = ["labels of a model, corrected by a person's (alone: the person's labels without the model)"]
    lines.append(f"{'model':27} judged  covers alone  covers (lowest)    false alone  false  difference  saved")
    for kind in MODELS:
        for n in JUDGED:
            own = {name: row["cells"][str(n)] for (what, name), row in rows.items() if what == kind}
            if not own:
                continue
            mean = {
                key: np.mean([cell[key] for cell in own.values()])
                for key in next(iter(own.values()))
                if key != "each"
            }
            low = min(own, key=lambda name: own[name]["covered"])
            saved = 1 - np.mean([cell["variance"] / cell["variance alone"] for cell in own.values()])
            alone, model, worse = np.concatenate([cell["each"] for cell in own.values()]).T
            false = [100 * side.sum() / worse.sum() for side in (alone, model)]
            more = [100 * _error(side, worse) for side in (alone, model, model - alone)]
            lines.append(
                f"{kind:27} {n:6} {100 * mean['covered alone']:12.1f}  {100 * mean['covered']:6.1f} "
                f"({100 * own[low]['covered']:.1f} {low}) {false[0]:8.2f} [{more[0]:.2f}] {false[1]:6.2f} "
                f"[{more[1]:.2f}] {false[1] - false[0]:+8.2f} [{more[2]:.2f}] {100 * saved:6.0f}%"
            )
        kappas = [row["kappa"] for (what, _), row in rows.items() if what == kind]
        lines.append(
            f"{kind:27} kappa {np.mean(kappas):.2f} ({min(kappas):.2f} to {max(kappas):.2f})" if kappas else ""
        )
    return "\n".join(lines)


def _error(count, among):
    """The standard error of a share over draws: those of one draw vary together."""
    return float(np.sqrt(np.sum((count - count.sum() / among.sum() * among) ** 2)) / among.sum())
