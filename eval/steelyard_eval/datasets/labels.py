"""How a data set came by its labels: how their queries were drawn, and whose lists were judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steelyard.base.errors import shown, visible
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


def read_sampled(reader: FolderReader, file: str, value: object) -> str:
    """Read `sampled`; empty, with a fault, for what is none."""
    if value is None or (isinstance(value, str) and value in SAMPLED):
        return value or ""
    rule = f"is none of {', '.join(SAMPLED)}"
    reader.fault(file, 0, "sampled", shown(value), rule, "Name one of them, or leave it out")
    return ""


def read_pool(reader: FolderReader, file: str, value: object) -> JudgedPool | None:
    """Read `pool`; None where it is absent and, with a fault, for what is none."""
    if value is None:
        return None
    if value == COMPLETE:
        return JudgedPool()
    match value:
        case {"contenders": [_, *_] as names, "depth": int() as depth, **others} if not others:
            if all(isinstance(name, str) and name for name in names) and type(depth) is int and depth > 0:
                return JudgedPool(tuple(names), depth)
    rule = 'must be "complete", or an object of contenders (their names) and depth (from 1 on)'
    remedy = 'Write it as {"contenders": ["bm25", "vector"], "depth": 10}'
    reader.fault(file, 0, "pool", shown(value), rule, remedy)
    return None


DIRECTIONS = ("higher", "lower")
"""Which values of a score of a trace are the better ones."""


def read_scores(reader: FolderReader, file: str, value: object) -> dict[str, str]:
    """Read `scores`, from names to `DIRECTIONS`; empty where it is absent and, with a fault, for what is none."""
    named = {} if value is None else value
    if isinstance(named, dict) and all(better in DIRECTIONS for better in named.values()):
        return dict(named)
    rule = f"must be an object of names of scores and which values are better ({' or '.join(DIRECTIONS)})"
    reader.fault(file, 0, "scores", shown(value), rule, 'Write it as {"helpful": "higher", "toxicity": "lower"}')
    return {}


def stated(sampled: str, pool: JudgedPool | None) -> dict[str, object]:
    """What a data set says of its labels, as dataset.json writes it; null for what it leaves open."""
    return {"sampled": sampled or None, "pool": None if pool is None else pool.to_json()}


def in_words(sampled: str, pool: JudgedPool | None) -> Iterator[str]:
    """The same as lines to read."""
    if sampled:
        yield f"dataset.json says how the labelled queries were drawn: {SAMPLED[sampled]} (sampled: {sampled})"
    if pool is not None:
        what = f"what was judged: {'pairs among ' if sampled == 'duel' else ''}{pool} (pool)"
        if pool.complete:
            what = "that an entry without a label is not relevant (pool: complete)"
        yield f"dataset.json says {what}"


def unstated(sampled: str, pool: JudgedPool | None) -> Iterator[str]:
    """A notice where the data set leaves either open."""
    given = {"sampled": sampled, "pool": pool}
    lacking = [name for name in _LACKING if not given[name]]
    if lacking:
        said = " or ".join(_LACKING[name] for name in lacking)
        yield (
            f"dataset.json does not say {said}: taken as random, and as judged for all alike; "
            f"steelyard init FOLDER {' '.join(f'--{name} ...' for name in lacking)} writes it"
        )
