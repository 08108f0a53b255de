"""What a page is made of: sections of paragraphs, terms, tables, charts and lists, without any markup.

The HTML and the Markdown template draw the same blocks, so that every kind of result needs only a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from steelyard_eval.common.documents.parts import AnsweredDocument, Ends
from steelyard_eval.common.markup import interval, number
from steelyard_eval.views.drawing.picture import Chart


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; `tone` is lead, soft, warning or empty."""

    kind: ClassVar[str] = "paragraph"
    text: str
    tone: str = ""


@dataclass(frozen=True)
class Notices:
    """What has to be known of the data and of the run; on a page those after the first few are folded."""

    kind: ClassVar[str] = "notices"
    texts: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> tuple[Notices, ...]:
        """The notices as the blocks of a section; nothing without any."""
        notices = tuple(texts)
        return (cls(notices),) if notices else ()


@dataclass(frozen=True)
class TermList:
    """Terms with their values; as code where `code`."""

    kind: ClassVar[str] = "terms"
    pairs: tuple[tuple[str, str], ...]
    code: bool = False


@dataclass(frozen=True)
class TableColumn:
    """The head of a column, which the glossary explains; numbers stand at the right."""

    name: str
    number: bool = True


@dataclass(frozen=True)
class Cell:
    """The text of a cell, with a smaller text under it.

    `order` is what the column is sorted by, where that is not the text; `colour` is good, bad or empty. Those of a
    column are all numbers or all texts.
    """

    text: str
    under: str = ""
    order: float | None = None
    colour: str = ""
    number: bool = False


def amount(
    value: float | None,
    digits: int = 3,
    *,
    signed: bool = False,
    ends: Ends | None = None,
    text: str | None = None,
    under: str = "",
    colour: str = "",
) -> Cell:
    """A number, with the interval of `ends` under it, if there is one; `text` where it is written otherwise."""
    around = under if ends is None else interval(ends.get("low"), ends.get("high"), signed=signed)
    return Cell(number(value, digits, signed=signed) if text is None else text, around, value, colour, number=True)


@dataclass(frozen=True)
class TableRow:
    """The cells of a row, the first of which names it; `marked` is the baseline."""

    cells: tuple[Cell, ...]
    marked: bool = False


@dataclass(frozen=True)
class TableBlock:
    """A table; readers with scripts sort it by any column, and filter it where it is long."""

    kind: ClassVar[str] = "table"
    name: str
    caption: str
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]


Row = Mapping[str, Cell | str] | Sequence[tuple[str, Cell | str]]
"""A cell, or its text, for every column by its name; pairs where a name may occur twice."""


def table(name: str, caption: str, rows: Iterable[Row], marked: int | None = None) -> tuple[TableBlock, ...]:
    """A table whose rows have the same columns; nothing without rows. `marked` is the place of the baseline."""
    pairs = [list(row.items() if isinstance(row, Mapping) else row) for row in rows]
    cells = [[Cell(value) if isinstance(value, str) else value for _, value in row] for row in pairs]
    if not pairs:
        return ()
    heads = tuple(TableColumn(head, cell.number) for (head, _), cell in zip(pairs[0], cells[0], strict=True))
    made = tuple(TableRow(tuple(row), i == marked) for i, row in enumerate(cells))
    return (TableBlock(name, caption, heads, made),)


@dataclass(frozen=True)
class Figure:
    """A chart, with what a reader has to know to read it."""

    kind: ClassVar[str] = "figure"
    chart: Chart
    note: str = ""


@dataclass(frozen=True)
class ListPlace:
    """A place of a list: what was found, its grade, and where it was.

    `grade` is an empty text for an entry that is not judged, None where grades are not known.
    """

    text: str
    grade: str | None
    move: str
    parts: str


@dataclass(frozen=True)
class Pair:
    """A query with its lists under two configurations, side by side."""

    text: str
    about: str
    change: str
    left: tuple[ListPlace, ...]
    right: tuple[ListPlace, ...]


@dataclass(frozen=True)
class Pairs:
    """Queries with both their lists; `names` are the two configurations."""

    kind: ClassVar[str] = "pairs"
    names: tuple[str, str]
    pairs: tuple[Pair, ...]


Block = Paragraph | Notices | TermList | TableBlock | Figure | Pairs


@dataclass(frozen=True)
class Section:
    """A heading, the fragment that links lead to, and blocks. A section without blocks is left out.

    One that is folded shows its heading until it is opened.
    """

    id: str
    title: str
    blocks: tuple[Block, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class Page:
    """A whole report; `badge` is the verdict in one word, `record` has the steps and the formula of the answer."""

    title: str
    badge: str
    answer: str
    record: AnsweredDocument
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...] = ()
    caveat: str = ""
    description: str = ""

    @property
    def told(self) -> str:
        """The answer without the word that is on the badge."""
        word = self.badge.capitalize()
        return self.answer.removeprefix(f"{word}: ").removeprefix(f"{word} ")
