"""The base class of results, which convert to JSON, frames, figures, HTML pages and files."""

from __future__ import annotations

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from steelyard.base.errors import visible
from steelyard.base.extras import require
from steelyard.base.files import canonical, write_text, write_texts
from steelyard_eval.common.answer import in_html
from steelyard_eval.common.documents.parts import AnsweredDocument
from steelyard_eval.common.markup import tex
from steelyard_eval.common.renderers import in_text, written

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


DocumentT = TypeVar("DocumentT", bound=AnsweredDocument)


class RunsOf(Protocol):
    """The runs that are kept of a data set, as `data.runs()` gives them."""

    @property
    def runs(self) -> Sequence[object]:
        """Oldest first."""


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body {{font-family: sans-serif; margin: 2em; max-width: 70em}} table {{border-collapse: collapse}}
td, th {{padding: .2em .6em; border-bottom: 1px solid #ddd; text-align: left}}</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""


class Result(ABC):
    """The result of a job of the workbench."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the whole result as plain JSON values."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return the result as a table."""

    @abstractmethod
    def _repr_html_(self) -> str: ...

    @abstractmethod
    def plot(self) -> Figure:
        """Plot the result."""

    def save(self, path: str | Path) -> None:
        """Write the result to this file: `to_frame` as .parquet, its table as .tex, else the JSON document.

        Raises
        ------
        MachineError
            For a Parquet file without the extra `parquet`.
        """
        match Path(path).suffix:
            case ".tex":
                write_text(path, self.to_latex())
            case ".parquet":
                require("parquet", "a Parquet file")
                write_text(path, self.to_frame().to_parquet(None, index=False))
            case _:
                write_text(path, canonical(self.to_json()))

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

    def report(self, path: str | Path) -> list[Path]:
        """Write report.html and report.json into this folder; returns their paths."""
        page = _PAGE.format(title=html.escape(repr(self)), body=self._repr_html_())
        files = {Path(path) / "report.html": page, Path(path) / "report.json": canonical(self.to_json())}
        write_texts(files)
        return list(files)


@dataclass(frozen=True, repr=False)
class Reported(Result, Generic[DocumentT]):
    """A result whose `record` is its document: as JSON, in words, and in the reports that `show` makes of it."""

    TEXT: ClassVar[str] = ""
    """The renderer of what the command line prints; without one `str` is the repr."""

    record: DocumentT

    @property
    def sentence(self) -> str:
        """What was found, in one line."""
        return self.record["sentence"]

    def to_json(self) -> dict[str, Any]:
        """Return the document, as plain JSON values."""
        return dict(self.record)

    def to_latex(self) -> str:
        """Return the means as papers on retrieval print them: the best bold, marks where the test decided.

        A result without means is its frame, and its sentence the caption. ConfigError where there is no frame, as
        of a recommendation without labels.
        """
        means = self.record.get("results") or self.to_frame().columns.empty
        return in_text("latex", self.record) if means else super().to_latex()

    @property
    def _caption(self) -> str:
        return self.sentence

    def report(self, path: str | Path, runs: RunsOf | None = None) -> list[Path]:
        """Write the report (HTML, Markdown, JSON) here, with the trend of `runs`; returns the paths."""
        return written(self.record, path, runs.runs if runs else ())

    def __repr__(self) -> str:
        return visible(f"{type(self).__name__}({self.sentence})")

    def __str__(self) -> str:
        return in_text(self.TEXT, self.record) if self.TEXT else repr(self)

    def _repr_html_(self) -> str:
        return f"{in_html(self.record)}{frame_html(self.to_frame())}"


def frame_html(frame: pd.DataFrame) -> str:
    """A frame as an HTML table, every text in it escaped."""
    table: str = frame.to_html(index=False, escape=True, float_format=lambda value: f"{value:.4f}")
    return table
