"""What a judge said of pairs, read from the file that is kept: a line a judgment."""

import os
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, quote
from steelyard.base.files import STRICT_JSON, read_text
from steelyard.memory.entry import Entry
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.folder import FOLDER
from steelyard_eval.datasets.groups import normalised_text
from steelyard_eval.datasets.second_labels import weighted_kappa

GRADES = (0, 1, 2, 3)
GRADE_MEANINGS = ("not relevant", "related", "relevant", "answers it")
NOTHING = ""  # in place of the entry: nothing answers the query
Pair = tuple[str, str]


class Judgment(msgspec.Struct, frozen=True):
    """A grade that a judge gave a pair, None for who cannot say, with a note and the time (ISO, UTC).

    `dataset` (the name of its folder), `query_text` and `digest` (of the entry's text) tell sets
    apart whose ids are the same. `drawn` is whether the query was drawn at random: its grades are labels once it
    is judged in full. Ids have no white space, so that a judgment is a line of qrels.
    """

    query: Annotated[str, Meta(pattern=r"^\S+\Z")]
    entry: Annotated[str, Meta(pattern=r"^\S*\Z")]
    grade: Annotated[int, Meta(ge=0, le=GRADES[-1])] | None
    note: str
    at: str
    dataset: str = ""
    query_text: str = ""
    digest: str = ""
    drawn: bool = False


def text_digest(entry: Entry) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of an entry's title and text."""
    return sha256(f"{entry.title}\n{entry.text}".encode()).hexdigest()[:16]


def folder_of(dataset: Dataset) -> Path:
    """Where answers are kept unless a folder is named: in the data set's, so that no two sets meet.

    In ./judgments where the set is in memory or cannot be written to.
    """
    inside = dataset.path / FOLDER
    outside = dataset.in_memory or inside.is_symlink() or not os.access(dataset.path, os.W_OK)
    return Path(FOLDER) if outside else inside


def judgments_of(dataset: Dataset, path: Path) -> dict[Pair, Judgment]:
    """`read_judgments`; ConfigError where the file is of another data set."""
    given = read_judgments(path)
    if why := _another(dataset, given.values()):
        raise ConfigError(
            f"{quote(str(path), PATH_WIDTH)} has judgments of another data set than {quote(str(dataset.path))}: "
            f"{why}. Choose a folder (steelyard judge --out FOLDER), or, if your query changed, remove its lines"
        )
    return given


def _another(dataset: Dataset, given: Collection[Judgment]) -> str:
    """Why judgments are of another data set, in words; empty where they are of this one, as far as they say.

    The texts of queries have to be equal. In a folder of the same name entries may have changed since; in another
    one, such as a copy, more than half of those that were judged must be the same.
    """
    asked = {query.id: query.text for query in dataset.queries}
    stamped = [answer for answer in given if answer.query_text]
    for answer in stamped:
        if answer.query in asked and normalised_text(asked[answer.query]) != normalised_text(answer.query_text):
            return f"{answer.query} is {quote(answer.query_text)} there, and {quote(asked[answer.query])} here"
    if given and not any(answer.query in asked for answer in given):
        return f"{next(iter(given)).query} is no query here"
    moved = [answer for answer in stamped if answer.dataset != dataset.path.name]
    read = [answer for answer in moved if answer.entry != NOTHING]
    texts = {entry.id: text_digest(entry) for entry in dataset.entries} if read else {}
    if moved and 2 * sum(texts.get(answer.entry) == answer.digest for answer in read) <= len(read):
        return f"they were given in {quote(moved[0].dataset)}, and most of the entries have another text here"
    return ""


def read_judgments(path: Path) -> dict[Pair, Judgment]:
    """Read a judge's file, in the order given; empty where there is none."""
    if not path.exists():
        return {}
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read the judgments {quote(str(path), PATH_WIDTH)}: {reason}") from None
    judgments = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line:
            continue
        try:
            STRICT_JSON.decode(line)  # refuses a key that stands twice; the other refuses halves of characters
            one = msgspec.json.decode(line, type=Judgment)
            if one.entry == NOTHING and one.grade is not None:
                raise msgspec.ValidationError
        except (ValueError, msgspec.MsgspecError, RecursionError):
            raise DataError(
                f"{quote(str(path), PATH_WIDTH)}, line {number}: {quote(line)} is not a judgment; it needs "
                "query, entry, grade 0-3 or null, note and at. Correct or remove the line"
            ) from None
        judgments[one.query, one.entry] = one
    return judgments


def agreement(first: Mapping[Pair, Judgment], second: Mapping[Pair, Judgment]) -> dict[str, Any]:
    """The pairs that both judged, the share of equal grades, and kappa (Cohen, 1960; weighted: 1968).

    Kappa is 1 for equal judgments and 0 for what chance gives; None where it is not defined: without common pairs,
    or when both gave one grade only.
    """
    common = [pair for pair in first if pair in second and None not in (first[pair].grade, second[pair].grade)]
    if not common:
        return {"pairs": 0, "equal": None, "kappa": None, "weighted": None}
    a, b = (np.array([given[pair].grade for pair in common], dtype=np.float64) for given in (first, second))
    equal, kappa, weighted = float((a == b).mean()), None, weighted_kappa(a, b)
    if weighted is not None:
        chance = sum(float((a == grade).mean() * (b == grade).mean()) for grade in GRADES)
        kappa = (equal - chance) / (1 - chance)
    return {"pairs": len(common), "equal": equal, "kappa": kappa, "weighted": weighted}
