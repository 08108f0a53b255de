"""Which labels decide: those of queries that were drawn, where dataset.json says which these are."""

from __future__ import annotations

from dataclasses import replace

from steelyard_eval.choose.without_labels import FEWEST
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import questions
from steelyard_eval.recording.workspace import judged
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Said


def by_drawn(dataset: Dataset, fewest: int = FEWEST) -> Dataset:
    """The data set with the labels of drawn queries alone, once they ask `fewest` different questions.

    A query that was picked by hand stands for no other, so its label cannot make a sample random. Below that
    number all labels stay, and nothing ships by them. Their number decides, and never what they say.
    """
    drawn = dataset.drawn if dataset.provenance else frozenset[str]()
    kept = replace(dataset, qrels={query: row for query, row in dataset.qrels.items() if query in drawn})
    if not drawn or questions(judged(kept, kept.queries)) < fewest:
        return dataset
    left = len(dataset.qrels) - len(drawn)
    told = say(Said("drawn_decide", {"drawn": len(drawn), "left": left}))
    how = {dataset.how_drawn[query] for query in drawn}
    return replace(
        kept,
        sampled="random" if "random" in how else min(how),
        pool=kept.pools[0],
        notices=(*dataset.notices, told) if left else dataset.notices,
    )
