"""Which folders are data sets."""

from __future__ import annotations

from pathlib import Path

CORPORA = ("corpus.jsonl", "corpus.jsonl.gz")
OWN = ("dataset.json", *CORPORA, "qrels")
"""What a folder of our format or of BEIR's has one of, even if something is missing."""


def is_data_set(folder: Path) -> bool:
    """Whether a folder is a data set, perhaps a faulty one."""
    return any((folder / name).exists() for name in OWN)


def has_corpus(folder: Path) -> bool:
    """Whether a folder has a corpus."""
    return any((folder / name).is_file() for name in CORPORA)


def data_sets(root: Path) -> list[Path]:
    """The folders with a corpus: this one, then those at most two levels below by their names."""
    folders = {path.parent for name in CORPORA for depth in ("*/", "*/*/") for path in root.glob(depth + name)}
    return [*([root] if has_corpus(root) else []), *sorted(folders)]
