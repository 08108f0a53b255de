"""The committed baseline: what every contender answered when it was accepted, sealed against edits by hand.

A line a query, so that a change of a baseline can be read in a review. `anchor` holds the values of an older
baseline, which moves only upwards, because many small declines pass one by one.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from steelyard.base.arrays import Floats
from steelyard.base.errors import PATH_WIDTH, DataError, quote, visible
from steelyard.base.files import STRICT_JSON, canonical, read_text
from steelyard_eval.datasets.dataset import hashed
from steelyard_eval.gate.rule import Values

SCHEMA_VERSION = 1
SEAL = "seal"  # the key whose value is the hash of everything else in the file
MAX_FAULT_CHARS = 200
Value = Annotated[float, Meta(ge=0, le=1.000001)]
Three = tuple[Value, Value, Value]
Count = Annotated[int, Meta(ge=0)]
Runs = tuple[tuple[Count, Count], ...]
Limit = Annotated[int, Meta(ge=1, le=100_000)] | None


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the file."""


class BaselineList(_Part, frozen=True):
    """What is kept of one list: values, the anchor's where they differ, hashes, the first ten ids with scores.

    `ties` are the runs of its list and of the one down to place 100, and `settled_hash` is made with them (see
    `setup.py`); older baselines have neither.
    """

    id: str
    values: Three
    anchor: Three | None
    list_hash: str
    scores_hash: str
    first: Annotated[tuple[tuple[str, float], ...], Meta(max_length=10)]
    broken: dict[str, Count]
    ties: Annotated[tuple[Runs, ...], Meta(max_length=2)] = ()
    settled_hash: str = ""

    @property
    def ids(self) -> list[str]:
        """The first ten ids."""
        return [id_ for id_, _ in self.first]


class BaselineContender(_Part, frozen=True):
    """What is kept of one contender; `written` names it again, by its kind, and `configuration` is a hash.

    `answered` are the queries that nothing answers and that showed something all the same, `settings` what else
    than its strategy the search had; older baselines have none.
    """

    label: str
    kind: str
    written: str
    strategy: str
    limit: Limit
    configuration: str
    deep: bool
    anchor_date: str
    anchor_deep: bool
    lists: tuple[BaselineList, ...]
    answered: tuple[str, ...] = ()
    settings: str | None = None

    @property
    def values(self) -> Values:
        """The values when it was accepted."""
        return Values(_matrix([kept.values for kept in self.lists]), self.deep)

    @property
    def anchor(self) -> Values:
        """The values of the anchor."""
        return Values(_matrix([kept.anchor or kept.values for kept in self.lists]), self.anchor_deep)

    def anchored(self, older: "BaselineContender") -> "BaselineContender":
        """The same with the anchor of an older baseline."""
        pairs = zip(self.lists, older.lists, strict=True)
        anchors = [(kept, other.anchor or other.values) for kept, other in pairs]
        lists = tuple(replace(kept, anchor=None if anchor == kept.values else anchor) for kept, anchor in anchors)
        return replace(self, lists=lists, anchor_date=older.anchor_date, anchor_deep=older.anchor_deep)


class Hashes(msgspec.Struct, frozen=True):
    """Of what both measurements share, and of the code that measured."""

    corpus: str
    queries: str
    labels: str
    sources: str


class Baseline(_Part, frozen=True):
    """Everything in the file.

    `reason` says why it was written; `states` say what of the data changed (see `datasets/dataset.py`).
    """

    tool: str
    date: str
    dataset: str
    split: str
    limit: Limit
    embedder: str
    dialect: str
    hashes: Hashes
    platform: str
    reason: str
    contenders: Annotated[tuple[BaselineContender, ...], Meta(min_length=1)]
    states: dict[str, dict[str, Any]] = {}
    tokens: Annotated[int, Meta(ge=1)] | None = None

    def find(self, label: str) -> BaselineContender | None:
        """The contender of a label; None when it is not kept."""
        return next((kept for kept in self.contenders if kept.label == label), None)

    def text(self) -> str:
        """The file: canonical JSON with a line a query, and its seal."""
        record = msgspec.to_builtins(self) | {"schema_version": SCHEMA_VERSION}
        contenders = record.pop("contenders")
        sealed = hashed({**record, "contenders": contenders})
        head = json.dumps({**record, SEAL: sealed}, indent=1, sort_keys=True, ensure_ascii=False)
        blocks = ",\n".join(map(_block, contenders))
        return f'{head[:-2]},\n "contenders": [\n{blocks}\n ]\n}}\n'


def _block(contender: dict[str, Any]) -> str:
    lists = ",\n".join(f"   {_line(row)}" for row in contender.pop("lists"))
    return f'  {_line(contender)[:-1]}, "lists": [\n{lists}\n  ]}}'


def _line(record: Mapping[str, object]) -> str:
    return json.dumps(record, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _matrix(rows: Sequence[Three]) -> Floats:
    return np.array(rows, dtype=np.float64).reshape(-1, 3).T


def load_baseline(path: Path, again: str) -> Baseline | None:
    """Read a baseline, None where there is no file; DataError when it is cut short, or edited by hand.

    `again` is the command that writes it again.
    """
    place = quote(str(path), PATH_WIDTH)

    def refused(why: str) -> DataError:
        remedy = f"restore it from version control, or write it again: {again}"
        return DataError(f"the baseline {place} {why}; {remedy}")

    try:
        text = read_text(path)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the baseline {place}: {getattr(error, 'strerror', None) or error}") from None
    try:
        record = STRICT_JSON.decode(text)
        canonical(record).encode()  # fails for half a surrogate pair
    except (ValueError, RecursionError) as error:
        raise refused(f"is cut short or is not JSON ({error})") from None
    if not isinstance(record, dict):
        raise refused("is not a JSON object")
    if SEAL not in record:
        raise DataError(f"{place} is not a baseline, which has a seal; name the file that steelyard init wrote")
    sealed, version = record.pop(SEAL), record.get("schema_version")
    if version != SCHEMA_VERSION:
        raise refused(f"does not have schema {SCHEMA_VERSION} (schema_version: {quote(version)})")
    if sealed != hashed(record):
        raise refused("was edited by hand or is incomplete: its seal does not fit")
    del record["schema_version"]
    try:
        return msgspec.convert(record, Baseline)
    except msgspec.ValidationError as error:
        raise refused(f"does not follow its schema: {visible(str(error))[:MAX_FAULT_CHARS]}") from None
