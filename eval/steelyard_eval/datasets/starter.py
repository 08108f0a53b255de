"""Finds the data sets that come with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def starter() -> Path:
    """The folder of the starter data set, which is small."""
    return _shipped("starter")


def workshop() -> Path:
    """The folder of the workshop data set, whose labels were pooled."""
    return _shipped("workshop")


def _shipped(name: str) -> Path:
    """In the package, or beside it in a checkout."""
    inside = Path(str(resources.files("steelyard_eval").joinpath(name)))
    return inside if inside.is_dir() else Path(__file__).parents[3] / "qrels" / name
