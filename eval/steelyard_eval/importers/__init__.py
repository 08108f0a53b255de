"""Data sets from the stores that other programs write: ``import_store("~/.memory", "mine")``."""

from steelyard_eval.importers.base import Imported, Importer
from steelyard_eval.importers.kinds import importers
from steelyard_eval.importers.run import Import, import_store, load_store, open_dataset, refresh
from steelyard_eval.importers.source import ForeignStore, Options

__all__ = [
    "ForeignStore",
    "Import",
    "Imported",
    "Importer",
    "Options",
    "import_store",
    "importers",
    "load_store",
    "open_dataset",
    "refresh",
]
