"""Where work begins: a data set, from wherever it comes, with all jobs that can be run on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from steelyard_eval.common.extensions import extension
from steelyard_eval.datasets import open_dataset
from steelyard_eval.datasets.in_memory import Judged, Rows, load_dict
from steelyard_eval.datasets.starter import workshop
from steelyard_eval.workbench.workbench import Workbench


def load(
    source: str | Path | Mapping[str, object] | Rows,
    queries: Rows | None = None,
    qrels: Judged | None = None,
    *,
    vectors: Mapping[str, Sequence[ArrayLike]] | None = None,
    text_for_embedding: str = "{title}\n{text}",
    embedder: str = "auto",
    jobs: int | Executor = 1,
    intents: str | None = None,
) -> Workbench:
    """A data set, checked and ready to be worked on.

    Parameters
    ----------
    source : str, Path, mapping or table
        A folder of Steelyard's own format or of BEIR's; a store that `steelyard import` reads, or the name of its
        kind; or a mapping with the keys corpus, queries, qrels, vectors
        and those of dataset.json; or the corpus alone, as a DataFrame or a list of objects with the fields of
        corpus.jsonl, beside `queries` and `qrels`; or a data set that ir_datasets or PyTerrier has loaded
        (``irds:NAME`` loads one by its id).
    queries : DataFrame, list of objects, or mapping of ids to texts
        With the fields of queries.jsonl. Here and in a corpus `qid`, `query_id`, `docno`, `doc_id` are ids,
        too.
    qrels : DataFrame, mapping or triples
        Columns query, entry, grade (or ir_measures' query_id, doc_id, relevance, or PyTerrier's qid, docno,
        label); or query -> entry -> grade; or
        query -> relevant entries.
    vectors : mapping
        Model -> (array of the entries' vectors, array of the queries'), a row each, in their order.
    text_for_embedding : str
        The template of the text that these vectors stand for.
    embedder : str
        auto (recorded vectors, else LSA fitted on the texts), recorded, recorded:MODEL, lsa, none,
        minilm, minilm-int8, wordllama, api.
    jobs : int or Executor
        Processes that search, which pays off for thousands of queries, or where to submit it; results are the
        same.
    intents : str, optional
        Where the intents of queries are from: classified, as live search does (the default), or given, the field
        `intent` of the queries where the system knows the word.

    Returns
    -------
    Workbench
        With all jobs on the data set, which is indexed when a job first needs it.

    Raises
    ------
    DataError
        With all faults of the data set at once.
    ConfigError
        When a part is missing.
    """
    if isinstance(source, str | Path):
        return Workbench(open_dataset(source, intents), embedder, jobs)
    loaded: Any = source  # what another library has loaded, by the methods that it has
    if hasattr(loaded, "docs_iter"):
        imported = extension("importers").of_ir_dataset(loaded)
        source, queries, qrels = imported.entries, imported.queries, imported.qrels
        text_for_embedding = imported.recipe
    elif hasattr(loaded, "get_corpus_iter"):
        source, queries, qrels = list(loaded.get_corpus_iter()), loaded.get_topics(), loaded.get_qrels()
    given = {"corpus": source, "queries": queries, "qrels": qrels, "vectors": vectors}
    parts = {name: part for name, part in given.items() if part is not None}
    whole = source if isinstance(source, Mapping) and "corpus" in source else None
    made = load_dict(whole or {**parts, "text_for_embedding": text_for_embedding})
    return Workbench(replace(made, intents=intents), embedder, jobs)


def demo() -> Workbench:
    """The data set workshop, which comes with the package: 512 memories of a team and its agents, 200 queries."""
    return load(workshop())
