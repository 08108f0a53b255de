"""Hashes that say whether a baseline is of the same data, labels, configuration, installed code and platform.

Another processor may exchange entries whose scores are equal to 1e-6; a change of code may not. So a list is kept
with the runs of places whose scores are that close. Its settled form has the ids of a run in ascending order, and
none for the last run, whose entries change places with some that the list no longer shows.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from importlib import metadata, resources
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.memory.query import Query
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.states import hashed
from steelyard_eval.measures.runs import Scored

LENGTH = 32
"""Hexadecimal digits of the hash of a list: 128 bits, against accidents."""
SOURCES = ("steelyard", "steelyard_eval")
STARTER = "starter"
"""The data set inside the wheel, which is hashed as a data set."""
NUMERIC = ("apsw", "numpy", "scipy", "scikit-learn", "sqlite-vec", "PyStemmer")
"""Packages that compute scores: another version of them is other code. SQLite comes with apsw."""

TOLERANCE = 1e-6
"""How far a score may differ on another platform than the baseline's, relative to those above 1."""
Run = tuple[int, int]


def data_hashes(dataset: Dataset, queries: Sequence[Query], unanswerable: Sequence[Query] = ()) -> dict[str, str]:
    """The hashes of what must not change between two measurements: corpus, queries, labels of the first."""
    ids = [query.id for query in queries]
    queries = dataset.asked([*queries, *unanswerable])
    entries = sorted((entry.to_json() for entry in dataset.entries), key=itemgetter("id"))
    return {
        "corpus": hashed([dataset.as_of, entries]),
        "queries": hashed(sorted(map(_asked, queries))),
        "labels": hashed({id_: dataset.qrels[id_] for id_ in ids}),
    }


def _asked(query: Query) -> list[Any]:
    facts = (query.id, query.text, repr(query.filters), query.asked_at, query.intent, query.category, query.group)
    return [*facts, list(query.tags), query.domain]


@cache
def sources_hash() -> str:
    """The hash of every file of both packages as they are installed here, compiled files apart, and `NUMERIC`."""
    files = (file_hash for package in SOURCES for file_hash in _files(Path(str(resources.files(package)))))
    return hashed([*files, *((name, metadata.version(name)) for name in NUMERIC)])


def _files(folder: Path) -> Iterable[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and name.parts[0] != STARTER and "__pycache__" not in name.parts:
            yield f"{folder.name}/{name.as_posix()}", sha256(path.read_bytes()).hexdigest()


@cache
def platform_name() -> str:
    """The machine, and a hash of what numpy's kernels round on it, which decide the last bits of scores."""
    some = np.linspace(0.1, 9, 2500).reshape(50, 50)
    bits = [
        array.tobytes() for a in (some, some.astype(np.float32)) for array in (np.exp(a), np.log(a), a**0.3, a @ a)
    ]
    python = ".".join(platform.python_version_tuple()[:2])
    rounding = sha256(b"".join(bits)).hexdigest()[:8]
    return f"{platform.system()} {platform.machine()}, python {python}, rounding {rounding}"


def list_hash(*lists: Sequence[Scored]) -> str:
    """The hash of the ids of lists, in order."""
    return hashed([[id_ for id_, _ in ranking] for ranking in lists])[:LENGTH]


def scores_hash(*lists: Sequence[Scored]) -> str:
    """The hash of the scores of lists, by their bits."""
    values = [score for ranking in lists for _, score in ranking]
    return sha256(struct.pack(f"<{len(values)}d", *values)).hexdigest()[:LENGTH]


def near(a: float, b: float, times: int = 1) -> bool:
    """Whether scores are equal within the tolerance."""
    return abs(a - b) <= times * TOLERANCE * max(1.0, abs(b))


def runs(ranking: Sequence[Scored]) -> tuple[Run, ...]:
    """Places [begin, end) whose scores follow each other within twice the tolerance; and the last such run."""
    scores = [score for _, score in ranking]
    breaks = [i for i, (a, b) in enumerate(pairwise(scores), 1) if not near(a, b, 2)]
    places = pairwise([0, *breaks, len(ranking)])
    return tuple((begin, end) for begin, end in places if end - begin > 1 or end == len(ranking))


def settled_hash(lists: Sequence[Sequence[Scored]], ties: Sequence[Sequence[Run]]) -> str:
    """The hash of the ids of lists, whatever their order within the runs of each."""
    return hashed([_settled([id_ for id_, _ in row], tie) for row, tie in zip(lists, ties, strict=False)])[:LENGTH]


def _settled(ids: list[str], ties: Sequence[Run]) -> list[str]:
    for begin, end in ties:
        ids[begin:end] = sorted(ids[begin:end]) if end < len(ids) else [""] * (len(ids) - begin)
    return ids
