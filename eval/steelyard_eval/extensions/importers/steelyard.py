"""Our own store in a PostgreSQL database, as a data set: its entries, and the vectors of one model."""

from __future__ import annotations

from steelyard.embedders.lsa import MODEL
from steelyard.memory.filters import EVERYTHING
from steelyard.stores.opened import open_vault
from steelyard_eval.extensions.importers.base import Imported, Importer
from steelyard_eval.extensions.importers.source import ForeignStore


def read(place: ForeignStore) -> Imported:
    """Every entry that this role may see; vectors of LSA are made again from them, and so left behind."""
    with open_vault(place.address) as vault, vault.snapshot():
        records = (entry.to_json() for entry in vault.entries())
        imported = Imported(entries=[{**record.pop("extra", {}), **record} for record in records], recipe="")
        kept = [s for s, _ in vault.spaces() if s.layer == "text" and s.model.partition(":")[0] != MODEL]
        for space in kept[:1]:
            imported.recipe = space.recipe
            imported.vectors[space.model] = dict(zip(*vault.vectors(space, EVERYTHING), strict=True))
        return imported


IMPORTER = Importer(
    "steelyard", "Steelyard's own store in PostgreSQL: postgresql://...", lambda place: False, read
)
