"""How results are drawn and reported: `show` registers it, because results stand below what shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RENDERERS: dict[str, Callable[..., Any]] = {}


def register(**renderers: Callable[..., Any]) -> None:
    """Make renderers known by name; `report` writes the files of a report, the others draw."""
    _RENDERERS.update(renderers)


def drawn(name: str, *content: object) -> Figure:
    """The figure that the renderer of this name draws of `content`."""
    figure: Figure = _RENDERERS[name](*content)
    return figure


def written(record: Mapping[str, Any], folder: str | Path) -> list[Path]:
    """Write the report of a document (HTML, Markdown, JSON) into a folder; returns the paths."""
    files: list[Path] = _RENDERERS["report"](record, folder)
    return files
