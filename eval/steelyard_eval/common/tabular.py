"""The base class of what has a table, a result or not: it converts to JSON, frames, pages and files."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ForwardRef

from steelyard.base.errors import ConfigError
from steelyard.base.extensions import require
from steelyard.base.files import canonical, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from pandas import DataFrame

    Frame = DataFrame
else:  # names for annotations, of libraries that load slowly
    Axes, Figure, Frame = map(ForwardRef, ("Axes", "Figure", "DataFrame"))


class Tabular(ABC):
    """What has a table: an answer, a check, what a search found, an explanation, the kept runs."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the whole result as plain JSON values."""

    @abstractmethod
    def to_frame(self) -> Frame:
        """Return the result as a table."""

    def _repr_html_(self) -> str:
        """Return the table for a notebook; pandas escapes every text in it."""
        page = str(self.to_frame().to_html(index=False, max_rows=60, float_format="{:.4f}".format))
        return page.replace("<td>", '<td dir="auto">')

    def save(self, path: str | Path) -> None:
        """Write the result to this file: `to_frame` as .parquet, its table as .tex, else the JSON document.

        Raises MachineError for a Parquet file without the extra `parquet`, ConfigError for a .tex of what is no
        comparison and no decision.
        """
        match Path(path).suffix:
            case ".tex":
                write_text(path, self.to_latex())
            case ".parquet":
                write_text(path, parquet(self.to_frame()))
            case _:
                write_text(path, self._document())

    def to_latex(self) -> str:
        """Refuse, for all but comparisons and decisions."""
        raise ConfigError("only comparisons and decisions have a LaTeX table; name a .json or .parquet file")

    def _document(self) -> str:
        return canonical(self.to_json())


def as_frame(rows: Iterable[dict[str, Any]], columns: list[str] | None = None) -> Frame:
    """A frame of rows, values by column; of all columns, in their order, where they are named."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def parquet(frame: Frame) -> bytes:
    """A frame as a Parquet file; MachineError without the extra `parquet`."""
    require("parquet", "a Parquet file")
    return frame.to_parquet(None, index=False)
