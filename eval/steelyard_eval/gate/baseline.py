"""The committed baseline: what every contender answered when it was accepted, sealed against edits by hand.

A line a query, so that a change of a baseline can be read in a review. `anchor` holds the values of an older
baseline, which moves only upwards, because many small declines pass one by one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from steelyard import __version__
from steelyard.base.arrays import Floats
from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.base.files import STRICT_JSON, canonical
from steelyard.base.inputs import read_text
from steelyard.base.schemas import Schema
from steelyard_eval.datasets.states import State, hashed
from steelyard_eval.decide.wording import settings
from steelyard_eval.gate.answers import GateAnswers
from steelyard_eval.gate.hashes import list_hash, scores_hash
from steelyard_eval.gate.ties import Run, runs, settled_hash
from steelyard_eval.gate.values import SHALLOW, Values
from steelyard_eval.measures.runs import Scored

SCHEMA_VERSION = 1
SCHEMA_FILE = "baseline.schema.json"
DIGITS = 9
"""Of the scores that are kept, to compare them on another platform; their bits are in the hash."""
SEAL = "seal"
"""The key whose value is the hash of everything else in the file."""


@dataclass(frozen=True)
class KeptList:
    """What is kept of one list: values, the anchor's where they differ, hashes, the first ten ids with scores.

    `ties` are the runs of its list and of the one down to place 100, and `settled_hash` is made with them (see
    `ties.py`); older baselines have neither.
    """

    id: str
    values: tuple[float, ...]
    anchor: tuple[float, ...] | None
    list_hash: str
    scores_hash: str
    first: tuple[Scored, ...]
    broken: Mapping[str, int]
    ties: tuple[tuple[Run, ...], ...] = ()
    settled_hash: str = ""

    @property
    def ids(self) -> list[str]:
        """The first ten ids."""
        return [id_ for id_, _ in self.first]


@dataclass(frozen=True)
class KeptContender:
    """What is kept of one contender; `written` names it again, by its kind, and `configuration` is a hash.

    `answered` are the queries that nothing answers and that showed something all the same, `settings` what else
    than its strategy the search had; older baselines have none.
    """

    label: str
    kind: str
    written: str
    strategy: str
    limit: int | None
    configuration: str
    deep: bool
    anchor_date: str
    anchor_deep: bool
    lists: tuple[KeptList, ...]
    answered: tuple[str, ...] = ()
    settings: str | None = None

    @property
    def named(self) -> tuple[str, str, str]:
        """Its label, its kind, and the text that may name it again."""
        return self.label, self.kind, self.written

    @property
    def values(self) -> Values:
        """The values when it was accepted."""
        return Values(_matrix([kept.values for kept in self.lists]), self.deep)

    @property
    def anchor(self) -> Values:
        """The values of the anchor."""
        return Values(_matrix([kept.anchor or kept.values for kept in self.lists]), self.anchor_deep)

    @classmethod
    def of(cls, answers: GateAnswers, configuration: str, queries: Sequence[str], date: str) -> KeptContender:
        """Keep what a contender answered, as its own anchor."""
        config, deep = answers.config, answers.values.deep
        columns = answers.values.matrix.T.tolist()
        rows = zip(queries, columns, answers.lists, answers.deep, answers.broken, strict=True)
        lists = tuple(
            KeptList(
                id=query,
                values=tuple(values),
                anchor=None,
                list_hash=list_hash(listed, far),
                scores_hash=scores_hash(listed, far),
                first=tuple((id_, float(f"{score:.{DIGITS}g}")) for id_, score in listed[:SHALLOW]),
                broken=dict(broken),
                ties=(ties := (runs(listed), runs(far))),
                settled_hash=settled_hash((listed, far), ties),
            )
            for query, values, listed, far, broken in rows
        )
        return cls(
            label=answers.label,
            kind=answers.asked.kind,
            written=answers.asked.written,
            strategy=answers.strategy,
            limit=config.limit if config else None,
            configuration=configuration,
            deep=deep,
            anchor_date=date,
            anchor_deep=deep,
            lists=lists,
            answered=answers.answered,
            settings=settings(config).get("settings", "") if config else "",
        )

    def anchored(self, older: KeptContender) -> KeptContender:
        """The same with the anchor of an older baseline."""
        pairs = zip(self.lists, older.lists, strict=True)
        anchors = [(kept, other.anchor or other.values) for kept, other in pairs]
        lists = tuple(replace(kept, anchor=None if anchor == kept.values else anchor) for kept, anchor in anchors)
        return replace(self, lists=lists, anchor_date=older.anchor_date, anchor_deep=older.anchor_deep)


@dataclass(frozen=True)
class Baseline:
    """Everything in the file.

    `hashes` are those of corpus, queries, labels and sources; `because` says why it was written; `states` say what
    of the data changed (see `states.py`).
    """

    tool: str
    date: str
    dataset: str
    split: str
    limit: int | None
    embedder: str
    dialect: str
    hashes: Mapping[str, str]
    platform: str
    because: str
    contenders: tuple[KeptContender, ...]
    states: Mapping[str, State] = field(default_factory=dict)

    def find(self, label: str) -> KeptContender | None:
        """The contender of a label; None when it is not kept."""
        return next((kept for kept in self.contenders if kept.label == label), None)

    def text(self) -> str:
        """The file: canonical JSON with a line a query, and its seal."""
        record = asdict(self) | {"schema_version": SCHEMA_VERSION}
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


def _matrix(rows: Sequence[Sequence[float]]) -> Floats:
    return np.array(rows, dtype=np.float64).reshape(-1, 3).T


def load_baseline(path: Path, rebaseline: str) -> Baseline:
    """Read a baseline; DataError, with the remedy, when it is missing, cut short, or edited by hand."""
    place = shown(str(path), PATH_WIDTH)
    try:
        text = read_text(path)
    except FileNotFoundError:
        begin = rebaseline.replace("steelyard gate", "steelyard init", 1).partition(" --update")[0]
        raise DataError(
            f"there is no baseline at {place}; write a first one of what you use today: {begin}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the baseline {place}: {getattr(error, 'strerror', None) or error}") from None
    try:
        record = STRICT_JSON.decode(text)
        canonical(record).encode()  # fails for half a surrogate pair
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"the baseline {place} is cut short or is not JSON ({error}); restore it from version control, "
            f"or write it again: {rebaseline}"
        ) from None
    return _checked(record, place, rebaseline)


def _checked(record: Any, place: str, rebaseline: str) -> Baseline:  # noqa: ANN401 -- any JSON value
    again = f"restore it from version control, or write it again: {rebaseline}"
    if isinstance(record, dict) and SEAL not in record:
        raise DataError(
            f"{place} is no baseline of steelyard gate, which is sealed; name the file that init wrote"
        )
    if not isinstance(record, dict) or record.get("schema_version") != SCHEMA_VERSION:
        version = shown(record.get("schema_version")) if isinstance(record, dict) else "none"
        raise DataError(f"{place} is no baseline of schema {SCHEMA_VERSION} (schema_version: {version}); {again}")
    sealed = record.pop(SEAL)
    if sealed != hashed(record):
        raise DataError(
            f"the baseline {place} was edited by hand or is incomplete: its seal does not fit; {again}"
        )
    for violation in _schema().violations(record):
        raise DataError(f"the baseline {place} does not follow its schema: {violation}; {again}")
    return _read(record)


def _read(record: dict[str, Any]) -> Baseline:
    del record["schema_version"]
    kept = []
    for row in record.pop("contenders"):
        lists = tuple(KeptList(**_tuples(ranking)) for ranking in row["lists"])
        kept.append(KeptContender(**{**row, "lists": lists, "answered": tuple(row.get("answered", ()))}))
    return Baseline(**record, contenders=tuple(kept))


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    first = tuple((id_, float(score)) for id_, score in row["first"])
    anchor = tuple(row["anchor"]) if row["anchor"] else None
    ties = tuple(tuple((begin, end) for begin, end in pairs) for pairs in row.get("ties", ()))
    return {**row, "values": tuple(row["values"]), "anchor": anchor, "first": first, "ties": ties}


@cache
def _schema() -> Schema:
    text = resources.files("steelyard_eval.gate").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    return Schema(STRICT_JSON.decode(text))


def tool() -> str:
    """The program and its version, as documents name it."""
    return f"steelyard {__version__}"
