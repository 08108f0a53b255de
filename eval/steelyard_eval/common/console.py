"""Lays out tables and lines to fit the terminal, and shows progress; control characters are escaped."""

import logging
import os
import re
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TextIO, TypeVar

import click

from steelyard.base.errors import visible
from steelyard_eval.common.formatting import columns_of, start_of

WIDTH = 100  # the width of text that goes to a file or a pipe; tables are not folded there
NARROWEST = 40
FOLDED = 26  # the width of a signed value with its interval, to which columns of text may be folded
MAX_NAMES_PERCENT = 40
GAP = 2
STEP_INDENT = 4
COMMAND_TEXT = re.compile(r"""(\bsteelyard(?: (?:\.(?!\S)|(?:[^\s'"(),;:.]|[,;:.](?=\S)|'[^']*'|"[^"]*")+))+)""")
COLOUR_OF = {
    **dict.fromkeys(("better", "ok", "ship"), "green"),
    **dict.fromkeys(("worse", "fault", "error"), "red"),
    **dict.fromkeys(("missing", "warning", "open"), "yellow"),
}


def width() -> int:
    """Return the width of the terminal, or COLUMNS; 100 when stdout is not a terminal."""
    if _unbounded():
        return WIDTH
    return max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns)


def _unbounded(stream: TextIO | None = None) -> bool:
    """Whether no width is known: the stream, by default stdout, is no terminal, and COLUMNS is not set."""
    return not (_is_terminal(stream or sys.stdout) or os.environ.get("COLUMNS"))


def with_colours(text: str, word: str = "", stream: TextIO | None = None) -> str:
    """Colour a text by the word, or make it bold without one; unchanged where no colour is wanted.

    A terminal gets colours, unless NO_COLOR is set (no-color.org) or TERM is dumb. Default `stream`: stdout.
    """
    wanted = _is_terminal(stream or sys.stdout) and not os.environ.get("NO_COLOR")
    if not wanted or os.environ.get("TERM") == "dumb":
        return text
    return click.style(text, fg=COLOUR_OF[word]) if word in COLOUR_OF else click.style(text, bold=True)


def table(rows: Sequence[Mapping[str, object]], columns: Mapping[str, str] | None = None, most: int = 0) -> str:
    """Print rows, values by key, as aligned columns, with numbers on the right; see `grid`.

    `columns` has the heading of each key, in the order of the columns; by default every key is its own heading.
    """
    columns = columns or {key: key for row in rows[:1] for key in row}
    heads = [visible(head) for head in columns.values()]
    cells = [[_cell(row.get(key)) for key in columns] for row in rows]
    right = [all(isinstance(row.get(key), int | float | None) for row in rows) and bool(rows) for key in columns]
    return grid(heads, cells, right, most) if columns else ""


def grid(
    heads: Sequence[str],
    cells: Sequence[Sequence[str]],
    right: Sequence[bool],
    most: int = 0,
    keys: int = 1,
    folded: int = FOLDED,
    words: Mapping[str, str] | None = None,
) -> str:
    """Print texts as aligned columns, those that are `right` on the right.

    Columns of text are folded, to no less than `folded`, when the table is too wide. If that is not enough, it is
    split into several tables, each beginning with the first `keys` columns, which name a row; of those only the
    first is folded. In a file or a pipe every row is one line, unless it may be `most` columns wide.
    `words` has the word of `COLOURS` for cells that are no such word themselves.
    """
    longest = [max((columns_of(line[i]) for line in cells), default=0) for i in range(len(heads))]
    widths = [max(columns_of(head), size) for head, size in zip(heads, longest, strict=True)]
    pages = [(list(range(len(heads))), widths)]
    if most or not _unbounded():
        room = most or width()
        floor = [max(folded, MAX_NAMES_PERCENT * room // 100), *longest[1:keys], *[folded] * (len(heads) - keys)]
        least = [
            max(size if numbers else min(size, fold), *map(columns_of, head.split()), 0)
            for head, size, numbers, fold in zip(heads, longest, right, floor, strict=True)
        ]
        pages = _pages(widths, least, room, keys)
    coloured = {word: word for word in COLOUR_OF} | dict(words or {})
    printed = []
    for page, sizes in pages:
        aligned = [right[column] for column in page]
        lines = [with_colours(line) for line in _row_lines([heads[column] for column in page], sizes, aligned)]
        lines.append("  ".join("-" * size for size in sizes))
        for row in cells:
            lines += _row_lines([row[column] for column in page], sizes, aligned, coloured)
        printed.append("\n".join(lines))
    return "\n\n".join(printed)


def wrapped(text: str, indent: int = 0) -> str:
    """Fold a text at the width of the terminal; lines after the first are indented by `indent`."""
    return "\n".join(fold(visible(text), width(), " " * indent))


def step_text(what: str, command: str = "") -> str:
    """One thing to do; its command stands on one line, because a folded one cannot be pasted."""
    said = f"{what}: {command}" if what and command else what or command
    if columns_of(visible(said)) <= width() or not command:
        return wrapped(said, STEP_INDENT)
    lead = f"{wrapped(what, STEP_INDENT)}:\n" if what else ""
    return f"{lead}{' ' * STEP_INDENT}{visible(command)}"


def folded(message: str, stream: TextIO | None = None) -> str:
    """Fold a message where tables are; a command stands whole on a line of its own, and a long path, to be copied.

    Nothing is folded in a file or a pipe; `stream` is stdout by default.
    """
    if _unbounded(stream):
        return message
    return "\n".join(chain.from_iterable(map(_message, message.splitlines())))


def _message(line: str) -> Iterator[str]:
    """A line of a message as the lines it takes: words, commands, and what follows on them."""
    if columns_of(line) <= width():
        yield line
        return
    said, *others = COMMAND_TEXT.split(line)
    yield from fold(said.rstrip(" ("), width(), "  ", whole=True)
    for command, rest in zip(others[::2], others[1::2], strict=True):
        yield f"    {command}"
        if words := rest.lstrip(",;:.) "):
            yield from fold(f"  {words}".rstrip(), width(), "  ", whole=True)


def isolated(text: str) -> str:
    """The text with each run of right-to-left words isolated, so that what stands beside it keeps its place."""

    def isolate(cell: re.Match[str]) -> str:
        turned = any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in cell[0])
        return f"\u2068{cell[0]}\u2069" if turned else cell[0]

    return text if text.isascii() else re.sub(r"\S+(?: \S+)*", isolate, text)


def cut(text: str, most: int) -> str:
    """The whole words at the start of a text that is wider than `most` columns, marked as a start.

    >>> cut("sixteen letters!", 16), cut("seventeen letters", 16), cut("supercalifragilistic", 16)
    ('sixteen letters!', 'seventeen ...', 'supercalifra ...')
    """
    if columns_of(text) <= most:
        return text
    words, _, _ = start_of(text, most - 3).rpartition(" ")
    return f"{words if 2 * columns_of(words) > most else start_of(text, most - 4)} ..."


def brief(strategy: str) -> str:
    """Shorten the half-lives in a strategy to four digits, for display; files have them in full.

    >>> brief("recency(half_life=68.96756393652842h)")
    'recency(half_life=68.97h)'
    """
    return re.sub(r"\d+\.\d{3,}(?=[dh]\b)", lambda match: f"{float(match[0]):.4g}", strategy)


def _pages(widths: Sequence[int], least: Sequence[int], room: int, keys: int) -> list[tuple[list[int], list[int]]]:
    """The columns of each page with their widths; the first `keys` columns are on every page.

    The widest column that can be folded is narrowed, one character at a time, until the page fits.
    """
    pages = [[*range(keys)]]
    for i in range(keys, len(widths)):
        if len(pages[-1]) > keys and _total([least[j] for j in (*pages[-1], i)]) > room:
            pages.append([*range(keys)])
        pages[-1].append(i)
    laid = []
    for page in pages:
        sizes = {i: widths[i] for i in page}
        while _total([*sizes.values()]) > room and (folds := [i for i in page if sizes[i] > least[i]]):
            sizes[max(folds, key=sizes.__getitem__)] -= 1
        laid.append((page, [*sizes.values()]))
    return laid


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _row_lines(
    cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], words: Mapping[str, str] | None = None
) -> Iterator[str]:
    folded = [fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for line in range(max(map(len, folded))):
        parts = []
        for cell, lines, width, numbers in zip(cells, folded, widths, right, strict=True):
            part = lines[line] if line < len(lines) else ""
            space = " " * (width - columns_of(part))
            padded = f"{space}{part}" if numbers else f"{part}{space}"
            parts.append(with_colours(padded, words[cell]) if words and words.get(cell) in COLOUR_OF else padded)
        yield "  ".join(parts).rstrip()


def fold(text: str, width: int, indent: str = "", *, whole: bool = False) -> list[str]:
    """Fold a text at so many columns; text that is not ASCII wherever Unicode lets a line end, unless `whole`."""
    if columns_of(text) <= width:
        return [text]
    if whole or text.isascii():
        lines = textwrap.wrap(
            text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=not whole
        )
        return lines or [""]
    from apsw.unicode import text_wrap

    body = text.lstrip(" ")
    first, *others = map(str.rstrip, text_wrap(indent + body, width, hyphen="", combine_space=False))
    return [text[: len(text) - len(body)] + first.removeprefix(indent), *others]


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else visible(str(value))


LOGGER = logging.getLogger("steelyard")
BAR_DELAY_SECONDS = 2.0
PROGRESS_SECONDS = 10.0
T = TypeVar("T")


def bar(label: str, items: Sequence[T]) -> Iterable[T]:
    """The items; shows how far they are once two seconds have passed, and nothing under --quiet."""
    if not LOGGER.isEnabledFor(logging.WARNING):
        return items
    watched = sys.stderr.isatty() or "ipykernel" in sys.modules  # by somebody who sees a bar move
    return _progress_bar(items, label) if watched else _progress_lines(items, label)


def _progress_bar(items: Sequence[T], label: str) -> Iterable[T]:
    if "ipykernel" in sys.modules:
        from tqdm.auto import tqdm
    else:
        from tqdm import tqdm

    shown: Iterable[T] = tqdm(items, desc=label, delay=BAR_DELAY_SECONDS, leave=False, dynamic_ncols=True)
    return shown


def _progress_lines(items: Sequence[T], label: str, clock: Callable[[], float] = time.monotonic) -> Iterator[T]:
    """A line on stderr every ten seconds, each between two items."""
    begin = clock()
    due = begin + PROGRESS_SECONDS
    for done, item in enumerate(items):
        now = clock()
        if now >= due:
            due = now + PROGRESS_SECONDS
            left = f", about {(now - begin) / done * (len(items) - done):.0f} s left" if done else ""
            print(f"{label}: {done} of {len(items)}{left}", file=sys.stderr, flush=True)  # noqa: T201 -- progress
        yield item
