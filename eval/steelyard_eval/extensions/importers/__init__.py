"""Data sets from the stores that other programs write: ``import_store("~/.memory", "mine")``."""

from steelyard_eval.extensions.importers.base import Imported, Importer
from steelyard_eval.extensions.importers.benchmark import of_ir_dataset
from steelyard_eval.extensions.importers.run import import_store, importers, load_store, open_store, refresh
from steelyard_eval.extensions.importers.source import ForeignStore, Options

__all__ = ["ForeignStore", "Imported", "Importer", "Options"]
__all__ += ["import_store", "importers", "load_store", "of_ir_dataset", "open_store", "refresh"]
