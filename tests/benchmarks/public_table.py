"""Make the table of what public collections showed of what people run, from the lists of `pools.py`.

Means and variances per contender are results of measurements and name their collections. The model of relevance
is learned from labels, and so from collections alone whose licence allows commercial use.
"""

import numpy as np
from duels import Pairs, learned
from pools import CHOSEN, CONFIRMED, DEFAULT, EMBEDDERS, Lists

from steelyard.base.files import canonical
from steelyard_eval.decide import public
from steelyard_eval.decide.public import CONTENDERS

NOT_LEARNED = ("locomo", "locomo-sessions")
"""CC BY-NC."""
CLASSES = {"recorded": "minilm", "lsa": "lsa", "wordllama": "wordllama"}


def document(folder, day):
    """The document of `public.json`."""
    names = (*CHOSEN, *CONFIRMED)
    lists = {kind: [Lists.of(name, folder, kind) for name in names] for kind in EMBEDDERS}
    first = lists["recorded"]
    collections = [
        {"name": one.name, "sha256": one.sha256, "licence": one.licence, "queries": len(one.ideal)}
        for one in first
    ]
    means, variances, relevance, rows = {}, {}, {}, {}
    for kind, every in lists.items():
        labels, model = every[0].labels, CLASSES[kind]
        means[model] = {
            label: [round(float(one.truth[at]), 4) for one in every] for at, label in enumerate(labels)
        }
        variances[model] = {label: round(_variance(every, at), 5) for at, label in enumerate(labels)}
        known = [one.only(CONTENDERS) for one in every if one.name not in NOT_LEARNED]
        relevance[model] = [round(float(value), 4) for value in learned([Pairs(one) for one in known])]
        for one in every:
            rows |= dict(zip(one.keys, one.labels, strict=True))
    about = {"collections": collections, "date": day, "made by": "make priors", "metric": public.METRIC}
    return {
        "schema_version": 1,
        "about": about,
        "rows": dict(sorted(rows.items())),
        "means": means,
        "variances": variances,
        "relevance": relevance,
    }


def _variance(every, at):
    base = every[0].labels.index(DEFAULT)
    return float(np.mean([(one.values[at] - one.values[base]).var(ddof=1) for one in every]))


def write(folder, day, path):
    """Write the file, and return its size."""
    text = canonical(document(folder, day))
    path.write_text(text, encoding="utf-8")
    return len(text)
