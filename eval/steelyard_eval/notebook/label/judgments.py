"""What a judge said of pairs, read from the file that is kept: a line a judgment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.base.files import STRICT_JSON
from steelyard.base.inputs import read_text

GRADES = (0, 1, 2, 3)
MEANING = ("not relevant", "related", "relevant", "answers it")
"""What the grades mean."""
NOTHING = ""
"""In place of the entry: nothing answers the query."""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Judgment:
    """A grade that a judge gave a pair, None for who cannot say, with a note and the time (ISO, UTC)."""

    query: str
    entry: str
    grade: int | None
    note: str
    at: str


def read_judgments(path: Path) -> dict[Pair, Judgment]:
    """Read a judge's file, in the order given; empty where there is none."""
    if not path.exists():
        return {}
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read the judgments {shown(str(path), PATH_WIDTH)}: {reason}") from None
    found = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line:
            continue
        try:
            one = Judgment(**STRICT_JSON.decode(line))
            if not _sound(one):
                raise ValueError
        except (TypeError, ValueError, RecursionError):
            raise DataError(
                f"{shown(str(path), PATH_WIDTH)}, line {number}: {shown(line)} is not a judgment; it needs query, "
                "entry, grade 0-3 or null, note and at. Mend the line or remove it"
            ) from None
        found[one.query, one.entry] = one
    return found


def _sound(one: Judgment) -> bool:
    """Whether a judgment has the types that it says, and can be written as a line of qrels."""
    texts = (one.query, one.entry, one.note, one.at)
    if not all(isinstance(text, str) for text in texts):
        return False
    "".join(texts).encode()  # ValueError for what is no Unicode
    graded = one.grade is None or (type(one.grade) is int and one.grade in GRADES)
    names = [one.query] if one.entry == NOTHING and one.grade is None else [one.query, one.entry]
    return graded and all(name.split() == [name] for name in names)
