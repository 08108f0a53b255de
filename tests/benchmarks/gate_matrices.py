"""Per-query values of a few hundred real configurations of each collection: what the gate's curves are drawn from.

Configurations are those that people change in practice: weights, normalisation, k, depth, a fallback's threshold,
a signal left out, a system's own weights. Each collection is a file of its own, so that a broken off run goes on.
"""

import numpy as np
from evidence_matrices import DATA, Collection

from steelyard.base.errors import ConfigError
from steelyard.fusion import parse_strategy
from steelyard_eval.datasets import load
from steelyard_eval.gate.lists import with_depth_100
from steelyard_eval.gate.values import measure
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import judged

SETS = ("scifact", "cosqa", "locomo", "cranfield", "beam-128k", "madial", "cisi", "cacm", "vaswani")
"""The five collections that the rule was chosen on, then four more."""
STEPS = [round(0.05 * at, 2) for at in range(1, 20)]


def expressions():
    """Strategies over bm25, fts and vector."""
    yield from ("bm25", "vector", "fts")
    for scale in ("max", "minmax", "zscore"):
        for first in ("bm25", "fts"):
            for share in STEPS:
                yield f"weighted_sum({share:g}*{first}, {1 - share:.2f}*vector, normalize={scale})"
    for k in (5, 10, 20, 60, 100):
        for first in ("bm25", "fts"):
            for weight in (0.25, 0.5, 1, 2, 3):
                yield f"rrf({weight:g}*{first}, vector, k={k})"
    rng = np.random.default_rng(7)
    for a, b, c in rng.dirichlet([1, 1, 2], 30):
        yield f"weighted_sum({a:.3f}*bm25, {b:.3f}*fts, {c:.3f}*vector, normalize=minmax)"
    for least in (1, 3, 5, 10, 20, 50):
        yield f"tiered(fts, min_results={least}, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))"
        yield f"tiered(fts, min_results={least}, then=rrf(bm25, vector))"


def configurations(collection):
    """Every configuration by its recording."""
    plain = collection.config("plain")
    yield "plain", plain, [plain.with_strategy(parse_strategy(text)) for text in expressions()]
    for system in ("echovault", "moltnet", "soleri"):
        own = collection.config(system)
        yield system, own, list(varied(own))


def varied(config):
    """A system as it is, and with each weight halved, doubled and left out."""
    yield config
    text = str(config.strategy)
    for name in sorted(config.strategy.signals()):
        left = config.strategy.without({name})
        if left is not None:
            yield config.with_strategy(left)
    for old, new in (("0.3*", "0.5*"), ("0.7*", "0.5*"), ("0.25*", "0.5*"), ("0.15*", "0.05*"), ("k=60", "k=6")):
        if old in text:
            yield config.with_strategy(parse_strategy(text.replace(old, new)))


def conversations(name):
    """The conversation that each judged query searches, int64[Q] from 0; None without conversations."""
    dataset = load(DATA / name)
    scopes = [repr(query.filters) for query in judged(dataset, dataset.queries)]
    numbers = np.unique(scopes, return_inverse=True)[1]
    return numbers if 1 < numbers.max() + 1 < len(scopes) / 4 else None


def matrix(name, folder):
    """(float32[G, 3, Q], names) of a collection, made where the file is missing."""
    path = folder / f"{name}.gate.npz"
    if not path.exists():
        rows, names = _measured(name, folder)
        draft = path.with_suffix(".draft.npz")
        np.savez(draft, values=rows, names=np.array(names))
        draft.rename(path)
    with np.load(path) as found:
        return found["values"], found["names"].tolist()


def _measured(name, folder):
    collection = Collection(name, folder)
    dataset = load(DATA / name)
    rows, names = [], []
    for system, own, configs in configurations(collection):
        table, _ = collection.table(own, configs)
        for config in configs:
            try:
                shown, deep = replay(table, config), replay(table, with_depth_100(config))
            except ConfigError:
                continue  # a signal that this collection does not have
            rows.append(measure(shown.ranked, deep.ranked, dataset.qrels).matrix.astype(np.float32))
            names.append(f"{system}: {config.effective}")
    return np.array(rows), names
