"""How results are drawn and reported: `show` registers it, because results stand below what shows them.

A renderer is named as an entry point is, ``module:function``, and imported when it is used: a result that is not
drawn loads no matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RENDERERS: dict[str, str] = {}


def register(**renderers: str) -> None:
    """Make renderers known by name; `report` writes the files of a report, the others draw."""
    _RENDERERS.update(renderers)


def drawn(name: str, *content: object) -> Figure:
    """The figure that the renderer of this name draws of `content`."""
    figure: Figure = _renderer(name)(*content)
    return figure


def in_text(name: str, record: Mapping[str, object]) -> str:
    """A document as text for a terminal, or in LaTeX, by the renderer of this name."""
    text: str = _renderer(name)(record)
    return text


def written(record: Mapping[str, object], folder: str | Path, runs: Sequence[object] = ()) -> list[Path]:
    """Write the report of a document into a folder, with the trend of kept runs; returns the paths."""
    files: list[Path] = _renderer("report")(record, folder, runs)
    return files


def _renderer(name: str) -> Callable[..., Any]:
    module, _, function = _RENDERERS[name].partition(":")
    renderer: Callable[..., Any] = getattr(import_module(module), function)
    return renderer
