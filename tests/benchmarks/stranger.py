"""Does the rule for few labels harm on a collection that it does not know? `stranger.py [DATASET]`, else workshop.

Labels are drawn from the split train, what is followed is measured on all other queries. The contenders, the
table and the rule are the product's; of `recommend` the families that are tuned are missing.
"""

import sys
from pathlib import Path

import numpy as np
from pools import PLACES, POOL, ran

from steelyard_eval.choose.few_labels import FewLabelCandidates, advise, lacked
from steelyard_eval.choose.public import DEFAULT, public_table
from steelyard_eval.choose.scored import Scored
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import read_config
from steelyard_eval.datasets import load
from steelyard_eval.recording.workspace import judged

ROOT = Path(__file__).resolve().parents[2]
CURRENTS = ("bm25", "fts", "vector", "rrf(bm25, vector, k=60)", "echovault", "soleri", "moltnet", "cortex_mem")
CURRENTS += ("spec_kit", DEFAULT)
LABELS = (0, 5, 10, 20, 40)
DRAWS = 200


def followed(lists, current, train, unseen, n, dataset):
    """float64[draws]: the gain on unseen queries of what is taken by n labels."""
    values, at = lists.values, lists.labels.index(current)
    config = read_config(current).config(Setting(PLACES, lists.model))
    advice = advise(current, config, PLACES, lists.model, dataset.sha256, facts=lacked(config, dataset))
    few = FewLabelCandidates.of(lists.keys, public_table(), lists.model, dataset.sha256, advice.shown)
    stands = at if advice.attempt is None else lists.labels.index(DEFAULT)
    gains = []
    for draw in range(DRAWS if n else 1):
        own = np.random.default_rng([n, draw]).permutation(train)[:n]
        differences = (values[:, own] - values[at, own]).astype(np.float32)
        top = few.leader(Scored.of(differences, differences)) if n and few else stands
        gains.append((values[at if top is None else top] - values[at])[unseen].mean())
    return np.array(gains)


def main():
    dataset = load(sys.argv[1] if len(sys.argv) > 1 else ROOT / "qrels" / "workshop")
    queries = [one for one in judged(dataset, dataset.split("all")) if max(dataset.qrels[one.id].values()) > 0]
    train = np.array([at for at, one in enumerate(queries) if one.split == "train"])
    unseen = np.setdiff1d(np.arange(len(queries)), train)
    for embedder in ("recorded:minilm-int8", "recorded:wordllama", "lsa"):
        lists = ran(dataset, queries, embedder).only(POOL)
        truth = lists.values[:, unseen].mean(axis=1)
        print(f"{embedder}: best {lists.labels[int(truth.argmax())]}, {len(train)} train, {len(unseen)} unseen")
        print(f"{'mean gain, share worse by .005':32}{''.join(f'{n:>13}' for n in LABELS)}")
        for current in CURRENTS:
            cells = [followed(lists, current, train, unseen, n, dataset) for n in LABELS]
            row = "".join(f"{one.mean():+8.3f} {np.mean(one < -0.005):4.2f}" for one in cells)
            print(f"{current[:32]:32}{row}", flush=True)


if __name__ == "__main__":
    main()
