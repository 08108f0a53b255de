"""What a judge said of pairs, read from the file that is kept: a line a judgment."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, shown
from steelyard.base.files import STRICT_JSON
from steelyard.base.inputs import read_text
from steelyard.memory.entry import Entry
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.folder import FOLDER
from steelyard_eval.datasets.groups import wording

GRADES = (0, 1, 2, 3)
MEANING = ("not relevant", "related", "relevant", "answers it")
"""What the grades mean."""
NOTHING = ""
"""In place of the entry: nothing answers the query."""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Judgment:
    """A grade that a judge gave a pair, None for who cannot say, with a note and the time (ISO, UTC).

    `dataset` (the name of its folder), `asked` (the query's text) and `digest` (of the entry's text) tell sets
    apart whose ids are the same; they are empty in files of earlier versions. `drawn` is whether the query was
    drawn at random: its grades are labels once it is judged in full.
    """

    query: str
    entry: str
    grade: int | None
    note: str
    at: str
    dataset: str = ""
    asked: str = ""
    digest: str = ""
    drawn: bool = False


def text_digest(entry: Entry) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of an entry's title and text."""
    return sha256(f"{entry.title}\n{entry.text}".encode()).hexdigest()[:16]


def folder_of(dataset: Dataset, judge: str) -> Path:
    """Where a judge's answers are kept unless a folder is named: in the data set's, so that no two sets meet.

    In ./judgments where the set is in memory or cannot be written to, and where answers of this judge on this set
    lie there already: earlier versions kept those of all sets there.
    """
    inside, shared = dataset.path / FOLDER, Path(FOLDER)
    if dataset.in_memory or inside.is_symlink() or not os.access(dataset.path, os.W_OK):
        return shared
    before = shared / f"{judge}.jsonl"
    if (inside / before.name).exists() or not before.exists():
        return inside
    try:
        return shared if judgments_of(dataset, before) else inside
    except ConfigError:
        return inside


def judgments_of(dataset: Dataset, path: Path) -> dict[Pair, Judgment]:
    """`read_judgments`; ConfigError where the file is of another data set."""
    given = read_judgments(path)
    if why := _another(dataset, given.values()):
        raise ConfigError(
            f"{shown(str(path), PATH_WIDTH)} has judgments of another data set than {shown(str(dataset.path))}: "
            f"{why}. Give each data set a folder of its own (steelyard judge --out FOLDER), or, where it is your "
            "query that changed, remove its lines there"
        )
    return given


def _another(dataset: Dataset, given: Collection[Judgment]) -> str:
    """Why judgments are of another data set, in words; empty where they are of this one, as far as they say.

    The texts of queries have to be equal. In a folder of the same name entries may have changed since; in another
    one, such as a copy, more than half of those that were judged must be the same.
    """
    asked = {query.id: query.text for query in dataset.queries}
    stamped = [answer for answer in given if answer.asked]
    for answer in stamped:
        if answer.query in asked and wording(asked[answer.query]) != wording(answer.asked):
            return f"{answer.query} asked {shown(answer.asked)} there, and asks {shown(asked[answer.query])} here"
    if given and not any(answer.query in asked for answer in given):
        return f"{next(iter(given)).query} is no query here"
    moved = [answer for answer in stamped if answer.dataset != dataset.path.name]
    read = [answer for answer in moved if answer.entry != NOTHING]
    texts = {entry.id: text_digest(entry) for entry in dataset.entries} if read else {}
    if moved and 2 * sum(texts.get(answer.entry) == answer.digest for answer in read) <= len(read):
        return f"they were given in {shown(moved[0].dataset)}, and most of the entries have another text here"
    return ""


def read_judgments(path: Path) -> dict[Pair, Judgment]:
    """Read a judge's file, in the order given; empty where there is none."""
    if not path.exists():
        return {}
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read the judgments {shown(str(path), PATH_WIDTH)}: {reason}") from None
    judgments = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line:
            continue
        try:
            judgment = Judgment(**STRICT_JSON.decode(line))
            if not _sound(judgment):
                raise ValueError
        except (TypeError, ValueError, RecursionError):
            raise DataError(
                f"{shown(str(path), PATH_WIDTH)}, line {number}: {shown(line)} is not a judgment; it needs query, "
                "entry, grade 0-3 or null, note and at. Mend the line or remove it"
            ) from None
        judgments[judgment.query, judgment.entry] = judgment
    return judgments


def _sound(one: Judgment) -> bool:
    """Whether a judgment has the types that it says, and can be written as a line of qrels."""
    texts = (one.query, one.entry, one.note, one.at, one.dataset, one.asked, one.digest)
    if not all(isinstance(text, str) for text in texts) or type(one.drawn) is not bool:
        return False
    "".join(texts).encode()  # ValueError for what is no Unicode
    graded = one.grade is None or (type(one.grade) is int and one.grade in GRADES)
    names = [one.query] if one.entry == NOTHING and one.grade is None else [one.query, one.entry]
    return graded and all(name.split() == [name] for name in names)


def agreement(first: Mapping[Pair, Judgment], second: Mapping[Pair, Judgment]) -> dict[str, Any]:
    """The pairs that both judged, the share of equal grades, and kappa (Cohen, 1960; weighted: 1968).

    Kappa is 1 for equal judgments and 0 for what chance gives; None where it is not defined: without common pairs,
    or when both gave one grade only.
    """
    from sklearn.metrics import cohen_kappa_score  # half a second to import

    common = [pair for pair in first if pair in second and None not in (first[pair].grade, second[pair].grade)]
    a, b = ([given[pair].grade for pair in common] for given in (first, second))
    equal = sum(x == y for x, y in zip(a, b, strict=True)) / len(common) if common else None
    record: dict[str, Any] = {"pairs": len(common), "equal": equal, "kappa": None, "weighted": None}
    if len({*a, *b}) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain, weighted = (
                float(cohen_kappa_score(a, b, labels=list(GRADES), weights=kind)) for kind in (None, "quadratic")
            )
        record["kappa"] = plain if math.isfinite(plain) else None
        record["weighted"] = weighted if math.isfinite(weighted) else None
    return record
