"""Finds the data set that comes with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def starter() -> Path:
    """The folder of the starter data set: in the package, or beside it in a checkout."""
    inside = Path(str(resources.files("steelyard_eval").joinpath("starter")))
    return inside if inside.is_dir() else Path(__file__).parents[3] / "qrels" / "starter"
