"""What a page is made of: sections of sheets, figures, terms and texts, without any markup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard_eval.views.drawing.picture import Chart
from steelyard_eval.views.sheets import Sheet


@dataclass(frozen=True)
class Texts:
    """Paragraphs; those that are `warnings` are folded after the first few."""

    kind: ClassVar[str] = "texts"
    texts: tuple[str, ...]
    warnings: bool = False


@dataclass(frozen=True)
class TermList:
    """Terms with their values; as code where `code`."""

    kind: ClassVar[str] = "terms"
    pairs: tuple[tuple[str, str], ...]
    code: bool = False


@dataclass(frozen=True)
class TableBlock:
    """A sheet; readers with scripts sort it by any column, and filter it where it is long."""

    kind: ClassVar[str] = "table"
    sheet: Sheet


@dataclass(frozen=True)
class FigureBlock:
    """A chart, with what a reader has to know to read it."""

    kind: ClassVar[str] = "figure"
    chart: Chart
    note: str = ""


Block = Texts | TermList | TableBlock | FigureBlock


@dataclass(frozen=True)
class Section:
    """A heading, the fragment that links lead to, and blocks; one that is folded shows its heading alone."""

    id: str
    title: str
    blocks: tuple[Block, ...] = ()
    folded: bool = False
