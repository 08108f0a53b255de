"""An importer in one file: a diary in a text file, where every line is a day and what happened on it."""

from __future__ import annotations

from steelyard_eval.extensions.importers.base import Imported, importer
from steelyard_eval.extensions.importers.source import ForeignStore


@importer(lambda source: source.path.name.endswith(".diary"))
def lines(source: ForeignStore) -> Imported:
    """A diary in a text file: lines of a day and a text. Their numbers are the ids: lines are never moved."""
    entries = []
    for number, line in source.lines(source.path.name):
        day, _, text = line.partition(" ")
        entries.append({"id": f"line-{number}", "text": text, "created_at": day})
    return Imported(entries=entries, recipe="{text}")
