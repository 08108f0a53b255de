"""Reads BEIR folders: corpus.jsonl and queries.jsonl with ``_id``, and qrels/{train,dev,test}.tsv."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from steelyard_eval.datasets.corpus_and_queries import read_entries, read_queries
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.manifest import Manifest
from steelyard_eval.datasets.parts import DatasetParts
from steelyard_eval.datasets.qrels import Qrels

SPLITS = ("test", "dev", "train")
"""A query judged in several files belongs to the first of these, so that test queries are never tuned on."""

_RENAMED = {"_id": "id"}


def is_beir(folder: Path) -> bool:
    """Whether the folder has BEIR's layout: a folder of judgments and no dataset.json."""
    return (folder / "qrels").is_dir() and not (folder / "dataset.json").exists()


def read_beir(reader: FolderReader) -> DatasetParts:
    """Read a BEIR folder; each query gets the split of the file that judges it."""
    entries = read_entries(reader, _RENAMED)
    queries = read_queries(reader, _RENAMED)
    qrels = Qrels(reader, queries, entries)
    named = {s: qrels.read(f"qrels/{s}.tsv") for s in SPLITS if (reader.folder / "qrels" / f"{s}.tsv").exists()}
    if not named:
        reader.fault("qrels", 0, "", "", "contains none of test.tsv, dev.tsv, train.tsv", "Add one of them")
    split = {query: s for s in reversed(SPLITS) for query in named.get(s, ())}
    if queries is not None:
        items = tuple(replace(q, split=split.get(q.id, "")) for q in queries.items)
        queries = replace(queries, items=items)
    manifest = Manifest(
        name=reader.folder.resolve().name,
        description="BEIR folder",
        recipe="{title} {text}",  # what BEIR's own retrievers embed
        report_split="test" if named.get("test") else "",
    )
    shared = sum(map(len, named.values())) - len(split)
    notices = [f"{shared} queries are judged in more than one split; test goes before dev, dev before train"]
    return DatasetParts(manifest, entries, queries, qrels.grades, notices if shared else [])
