"""The base class of what has a table without being a result: it converts to JSON, frames, pages and files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.base.errors import ConfigError
from steelyard.base.extensions import require
from steelyard.base.files import canonical, write_text

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

    def _repr_html_(self) -> str:
        """Return the table for a notebook; pandas escapes every text in it."""
        page = str(self.to_frame().to_html(index=False, max_rows=60, float_format="{:.4f}".format))
        return page.replace("<td>", '<td dir="auto">')

    def save(self, path: str | Path) -> None:
        """Write the result to this file: `to_frame` as .parquet, else the JSON document.

        Raises MachineError for a Parquet file without the extra `parquet`, ConfigError for a .tex.
        """
        if Path(path).suffix == ".tex":
            raise ConfigError("only comparisons and decisions have a LaTeX table; name a .json or .parquet file")
        tabled = Path(path).suffix == ".parquet"
        write_text(path, parquet(self.to_frame()) if tabled else canonical(self.to_json()))


def parquet(frame: pd.DataFrame) -> bytes:
    """A frame as a Parquet file; MachineError without the extra `parquet`."""
    require("parquet", "a Parquet file")
    return frame.to_parquet(None, index=False)
