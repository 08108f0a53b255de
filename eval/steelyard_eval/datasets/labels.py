"""How a data set came by its labels: how their queries were drawn, and whose lists were judged."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from steelyard.base.errors import shown, visible
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets.file_reader import FolderReader

SAMPLED = {
    "all": "all there were",
    "random": "drawn at random",
    "log": "drawn from a log",
    "failing": "chosen for failing",
    "duel": "chosen because contenders disagree",
    "by hand": "chosen by hand",
}
"""What `sampled` may say of the labelled queries, in words."""
FAIR = frozenset({"all", "random", "log"})
"""Under these the labelled queries stand for the others."""
COMPLETE = "complete"
_LACKING = {
    "sampled": f"how the labelled queries were drawn (sampled: {', '.join(SAMPLED)})",
    "pool": "what was judged (pool: complete, or whose lists)",
}
NAMED = 3
"""Contenders of a pool that are named."""


@dataclass(frozen=True, slots=True)
class JudgedPool:
    """What was judged: the first `depth` of every contender's list; of no contender: every entry that matters."""

    contenders: tuple[str, ...] = ()
    depth: int = 0

    @property
    def complete(self) -> bool:
        """Whether what has no grade is known not to be relevant."""
        return not self.contenders

    def to_json(self) -> str | dict[str, object]:
        """As dataset.json writes it."""
        return COMPLETE if self.complete else {"contenders": list(self.contenders), "depth": self.depth}

    def __str__(self) -> str:
        return "every entry that matters" if self.complete else f"the first {self.depth} of {self.named}"

    @property
    def named(self) -> str:
        """The contenders, escaped; of many the first, and how many more."""
        more = len(self.contenders) - NAMED
        names = ", ".join(visible(name)[:60] for name in self.contenders[:NAMED])
        return f"{names} and {more} more" if more > 0 else names


@dataclass(frozen=True, slots=True)
class Batch:
    """Labels that came about in one way: how their queries were drawn, what was judged, and who judged.

    `labels` maps queries to the entries that were judged: a query counts as drawn so while all have labels.
    """

    sampled: str
    labels: Mapping[str, tuple[str, ...]]
    pool: JudgedPool | None = None
    judge: str = ""

    def holds(self, query: str, labelled: Collection[str]) -> bool:
        """Whether the labels of a query are those of this batch, and all of them are still there."""
        return query in self.labels and set(self.labels[query]) <= set(labelled)

    def to_json(self) -> dict[str, object]:
        """As dataset.json writes it."""
        about = {key: value for key, value in stated(self.sampled, self.pool).items() if value is not None}
        rows = {query: list(entries) for query, entries in sorted(self.labels.items())}
        return {**about, **({"judge": self.judge} if self.judge else {}), "labels": rows}


def with_batch(batches: Sequence[Batch], new: Batch) -> list[dict[str, object]]:
    """`provenance` as dataset.json writes it, with a new batch; queries that it names leave the others."""
    kept = [
        replace(one, labels={q: ids for q, ids in one.labels.items() if q not in new.labels}) for one in batches
    ]
    alike = [one for one in kept if (one.sampled, one.pool, one.judge) == (new.sampled, new.pool, new.judge)]
    joined = replace(new, labels={q: ids for one in (*alike, new) for q, ids in one.labels.items()})
    return [one.to_json() for one in (*(one for one in kept if one.labels and one not in alike), joined)]


def read_provenance(reader: FolderReader, file: str, value: object) -> tuple[Batch, ...]:
    """Read `provenance`; empty where it is absent and, with a fault, for what is none."""
    batches = value if isinstance(value, list) else [value]
    read = [] if value is None else [_batch(one) for one in batches]
    if all(read):
        return tuple(one for one in read if one)
    rule = "must be a list of objects of sampled, labels (queries and their entries), and pool and judge, if known"
    remedy = 'Write it as [{"sampled": "random", "labels": {"q1": ["m1", "m2"]}}]'
    reader.fault(file, 0, "provenance", shown(value), rule, remedy)
    return ()


def _batch(value: object) -> Batch | None:
    match value:
        case {"sampled": str() as sampled, "labels": dict() as labels, **others} if sampled in SAMPLED:
            pool, judge = _pool(others.pop("pool", None)), others.pop("judge", "")
            rows = [ids for ids in labels.values() if isinstance(ids, list) and ids]
            named = all(isinstance(id_, str) for ids in rows for id_ in ids)
            if len(rows) == len(labels) and named and isinstance(judge, str) and not others and pool is not _NONE:
                return Batch(sampled, {query: tuple(ids) for query, ids in labels.items()}, pool, judge)
    return None


_NONE = JudgedPool(("",), -1)
"""Stands for what is no pool."""


def read_sampled(reader: FolderReader, file: str, value: object) -> str:
    """Read `sampled`; empty, with a fault, for what is none."""
    if value is None or (isinstance(value, str) and value in SAMPLED):
        return value or ""
    rule = f"is none of {', '.join(SAMPLED)}"
    reader.fault(file, 0, "sampled", shown(value), rule, "Name one of them, or leave it out")
    return ""


def read_pool(reader: FolderReader, file: str, value: object) -> JudgedPool | None:
    """Read `pool`; None where it is absent and, with a fault, for what is none."""
    if (pool := _pool(value)) is not _NONE:
        return pool
    rule = 'must be "complete", or an object of contenders (their names) and depth (from 1 on)'
    remedy = 'Write it as {"contenders": ["bm25", "vector"], "depth": 10}'
    reader.fault(file, 0, "pool", shown(value), rule, remedy)
    return None


def _pool(value: object) -> JudgedPool | None:
    """A pool; None for an absent one, `_NONE` for what is no pool."""
    if value is None:
        return None
    if value == COMPLETE:
        return JudgedPool()
    match value:
        case {"contenders": [_, *_] as names, "depth": int() as depth, **others} if not others:
            if all(isinstance(name, str) and name for name in names) and type(depth) is int and depth > 0:
                return JudgedPool(tuple(names), depth)
    return _NONE


def stated(sampled: str, pool: JudgedPool | None) -> dict[str, object]:
    """What a data set says of its labels, as dataset.json writes it; null for what it leaves open."""
    return {"sampled": sampled or None, "pool": None if pool is None else pool.to_json()}


def in_words(sampled: str, pool: JudgedPool | None, provenance: Sequence[Batch] = ()) -> Iterator[str]:
    """The same as lines to read."""
    for batch in provenance:
        by = f" by {visible(batch.judge)}" if batch.judge else ""
        what = f", from {batch.pool}" if batch.pool else ""
        count = counted(len(batch.labels), "query", "queries")
        yield f"dataset.json says of {count}: {SAMPLED[batch.sampled]}, judged{by}{what} (provenance)"
    if sampled:
        yield f"dataset.json says how the labelled queries were drawn: {SAMPLED[sampled]} (sampled: {sampled})"
    if pool is not None:
        what = f"what was judged: {'pairs among ' if sampled == 'duel' else ''}{pool} (pool)"
        if pool.complete:
            what = "that an entry without a label is not relevant (pool: complete)"
        yield f"dataset.json says {what}"


def unstated(sampled: str, pool: JudgedPool | None, provenance: Sequence[Batch] = ()) -> Iterator[str]:
    """A notice where the data set leaves either open; beside known provenance all other labels are chosen."""
    if provenance:
        return
    given = {"sampled": sampled, "pool": pool}
    lacking = [name for name in _LACKING if not given[name]]
    if lacking:
        said = " or ".join(_LACKING[name] for name in lacking)
        yield (
            f"dataset.json does not say {said}: taken as random, and as judged for all alike; "
            f"steelyard init FOLDER {' '.join(f'--{name} ...' for name in lacking)} writes it"
        )
