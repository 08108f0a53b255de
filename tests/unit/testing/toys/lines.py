"""An importer in one file: a diary in a text file, where every line is a day and what happened on it."""

from __future__ import annotations

from steelyard_eval.extensions.importers.base import Imported, Importer
from steelyard_eval.extensions.importers.source import ForeignStore


def matches(source: ForeignStore) -> bool:
    """A file that ends in ``.diary``."""
    return source.path.name.endswith(".diary")


def read(source: ForeignStore) -> Imported:
    """Every line as an entry; its number is the id, because lines of a diary are never moved."""
    entries = []
    for number, line in source.lines(source.path.name):
        day, _, text = line.partition(" ")
        entries.append({"id": f"line-{number}", "text": text, "created_at": day})
    return Imported(entries=entries, recipe="{text}")


IMPORTERS = (Importer("lines", "a diary in a text file: lines of a day and a text", matches, read),)
