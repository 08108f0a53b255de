"""The base class of what has a table: it converts to JSON, frames, figures, pages and files."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from steelyard.base.extras import require
from steelyard.base.files import canonical, write_text
from steelyard_eval.common.markup import tex

if TYPE_CHECKING:
    import pandas as pd


class Tabular(ABC):
    """What has a table: a check, what a search found, an explanation, the kept runs."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the whole result as plain JSON values."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return the result as a table."""

    @abstractmethod
    def _repr_html_(self) -> str: ...

    def save(self, path: str | Path) -> None:
        """Write the result to this file: `to_frame` as .parquet, its table as .tex, else the JSON document.

        Raises MachineError for a Parquet file without the extra `parquet`.
        """
        save_as(self, path, lambda: canonical(self.to_json()))

    def to_latex(self) -> str:
        """Return the result as a LaTeX table of the package booktabs, with a caption and a label."""
        text: str = self.to_frame().to_latex(
            index=False, escape=True, float_format="%.3f", na_rep="--", caption=tex(self._caption),
            label=f"tab:{type(self).__name__.lower()}",
        )  # fmt: skip
        return re.sub(r"^(?=[*[])", "{}", text, flags=re.MULTILINE)  # both would belong to the line before

    @property
    def _caption(self) -> str:
        return repr(self)


class Savable(Protocol):
    """What `save_as` writes."""

    def to_frame(self) -> pd.DataFrame:
        """The table."""

    def to_latex(self) -> str:
        """The table in LaTeX."""


def save_as(what: Savable, path: str | Path, document: Callable[[], str]) -> None:
    """Write the frame as .parquet, the table as .tex, else the document; see `Tabular.save`."""
    match Path(path).suffix:
        case ".tex":
            write_text(path, what.to_latex())
        case ".parquet":
            require("parquet", "a Parquet file")
            write_text(path, what.to_frame().to_parquet(None, index=False))
        case _:
            write_text(path, document())


def frame_html(frame: pd.DataFrame) -> str:
    """A frame as an HTML table, every text in it escaped."""
    table: str = frame.to_html(index=False, escape=True, float_format=lambda value: f"{value:.4f}")
    return table
