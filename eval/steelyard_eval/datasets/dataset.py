"""Data sets in memory, which every loader returns, and the report of a check."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import ConfigError, DataError, Fault, nearest, quote, visible
from steelyard.base.files import compact
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.systems.base import token_estimate
from steelyard_eval.common.formatting import counted
from steelyard_eval.datasets.labels import RANDOM_SAMPLES, Batch, JudgedPool
from steelyard_eval.datasets.manifest import Manifest

Matrix = NDArray[np.float16]  # float16[rows, dimension], memory-mapped
INTENTS = CLASSIFIED, GIVEN = "classified", "given"
"""Where the intents of queries are from: each system classifies them, as in live search, or the set gives them."""
UNNAMED = "bm25"  # what is taken to rank a data set today, where nothing names it
MIN_PAIRS = 80  # judged pairs of a query and an entry from which on they count (docs/evidence/few-labels.md)
LOGGED = "log"
"""The split of labelled queries that feedback is simulated for; they take no part in comparing or choosing."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset(Manifest):
    """A corpus, queries and judgments, with their description.

    Attributes
    ----------
    name, description, licence: From dataset.json; for BEIR the name of the folder, and an empty licence.
    path: Folder it was read from; see `in_memory`.
    as_of: Clock of queries without `asked_at`, seconds UTC. When it is not given, it is the latest creation,
        update or question in the set, else 0.0, with a notice.
    recipe: Template of the text that was embedded, for `steelyard.memory.text.render`; empty when not given.
    report_split: Split that results are reported on; empty for all queries.
    entries, queries: In file order, which is the row order of the vectors.
    qrels: query -> entry -> grade 0..4. Queries without judgments are absent.
    vectors: (model, layer) -> float16[entries, dimension], memory-mapped; layer is text, l0, l1 or l2. An all-zero
        row means that the entry has no such layer, or no vector of its text.
    query_vectors: model -> float16[queries, dimension], memory-mapped.
    feedback: Feedback log of the set, if it has one.
    notices: Things that are odd without being faults, one line with a count for each kind.
    sha256: Hash of the contents of corpus, queries and judgments, the same whether compressed or not.
    vectors_sha256: Hash of the vector files; empty when there are none.
    language: The languages of its entries, by Snowball's names; none: their words tell.
    system: What its owner runs today, as dataset.json names it; empty: not given.
    embedder, chosen: What makes its vectors, as `Workspace.open` takes it, empty: not given; whether that was
        chosen now, and is not what dataset.json says.
    sampled, pool: How the labelled queries were drawn, and what was judged (`datasets.labels`); empty and None:
        not given.
    provenance: The same of some of the labels; `sampled` and `pool` are of all others.
    in_memory: Whether it was made of tables or dictionaries, so that no command can read it again.
    intents: One of `INTENTS`; None where it was not asked for: what a recording holds, else classified.
    """

    path: Path
    as_of: float
    entries: tuple[Entry, ...]
    queries: tuple[Query, ...]
    qrels: dict[str, dict[str, int]]
    vectors: dict[tuple[str, str], Matrix]
    query_vectors: dict[str, Matrix]
    feedback: Path | None
    notices: tuple[str, ...]
    sha256: str
    vectors_sha256: str
    chosen: bool = False
    second: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    in_memory: bool = False
    intents: str | None = None

    def __post_init__(self) -> None:
        if self.intents not in (None, *INTENTS):
            raise ConfigError(f"intents {quote(self.intents)} are unknown; valid: {', '.join(INTENTS)}")

    def __repr__(self) -> str:
        return f"Dataset({quote(self.name)}: {self.sizes})"

    @property
    def called(self) -> str:
        """What messages call it: its folder, as that was typed, else its name."""
        return self.name if self.in_memory else self.path.name or self.name

    @property
    def today(self) -> str:
        """What ranks it today: `system`, else `UNNAMED`."""
        return self.system or UNNAMED

    @property
    def sizes(self) -> str:
        """How many entries and queries there are, and how many are judged, in words."""
        usual = [query for query in self.queries if query.split != LOGGED]
        labelled = sum(query.id in self.qrels for query in usual)
        entries, queries = counted(len(self.entries), "entry", "entries"), counted(len(usual), "query", "queries")
        apart = f", and {counted(self.set_apart, 'query', 'queries')} of a log" if self.set_apart else ""
        return f"{entries}, {queries}, {labelled or 'none'} labelled{apart}"

    @property
    def check_summary(self) -> str:
        """The last line of a check without faults: the sizes and, where nothing is judged, what that means."""
        if self.qrels:
            none = sum(not query.answerable for query in self.queries if query.split != LOGGED)
            answered = len(self.queries) - self.set_apart - none
            kinds = f"; {answered} with an answer, {none} without" if none else ""
            return f"{visible(self.called)}: {self.sizes}{kinds}; no faults"
        judge = "data.judge()" if self.in_memory else self._judge
        todo = f"label {counted(self.pairs, 'pair')} of query and entry; fewer do not change the answer: {judge}"
        todo = todo if self.queries else self._without_queries
        lack = "no faults, but without labels nothing can be measured"
        return f"{visible(self.called)}: {self.sizes}; {lack}; {todo}"

    @property
    def pairs(self) -> int:
        """How many pairs to judge first, never more than there are."""
        return min(MIN_PAIRS, (len(self.queries) - self.set_apart) * len(self.entries) or MIN_PAIRS)

    @property
    def complete(self) -> bool:
        """Whether dataset.json says that all is judged, so that what has no label is not relevant."""
        return self.pool is not None and self.pool.complete

    def embedded_by(self, embedder: str) -> "Dataset":
        """The same with an embedder that was asked for; auto is that which dataset.json names."""
        if embedder in ("auto", self.embedder):
            return self
        return replace(self, embedder=embedder, chosen=True)

    @property
    def sampling_by_query(self) -> dict[str, str]:
        """How each labelled query was drawn, as `sampled` says it; empty where it is not given.

        Beside labels whose provenance is known, those of which nothing is said were chosen by hand.
        """
        rest = self.sampled or ("by hand" if self.provenance else "")
        return {query: self._batches[query].sampled if query in self._batches else rest for query in self.qrels}

    @property
    def random_queries(self) -> frozenset[str]:
        """The labelled queries that stand for the others, as far as dataset.json says it."""
        return frozenset(query for query, how in self.sampling_by_query.items() if how in RANDOM_SAMPLES)

    def pool_of(self, query: str) -> JudgedPool | None:
        """What was judged for a labelled query; None where nothing says it."""
        return self._batches[query].pool if query in self._batches else self.pool

    @cached_property
    def _batches(self) -> dict[str, Batch]:  # the last that a query is of
        ids = {entry.id for entry in self.entries}
        return {q: one for one in self.provenance for q, row in self.qrels.items() if one.holds(q, row, ids)}

    @property
    def pools(self) -> tuple[JudgedPool | None, ...]:
        """What was judged, each once; None first, then what is least complete."""
        pools = set(map(self.pool_of, self.qrels))
        return tuple(sorted(pools, key=lambda pool: (pool is not None and 1 + pool.complete, str(pool))))

    @property
    def by_pairs(self) -> bool:
        """Whether single pairs are labelled next, by duel, rather than queries drawn at random."""
        return not self.qrels or self.sampled == "duel"

    @property
    def unlabelled(self) -> int:
        """How many queries could still be given labels."""
        return sum(query.id not in self.qrels and query.split != LOGGED for query in self.queries)

    @property
    def _judge(self) -> str:
        return f"steelyard judge {shlex.quote(visible(str(self.path)))}"

    @property
    def _without_queries(self) -> str:
        if self.in_memory:
            return "give it some"
        return f'{self._judge} helps to write the first (lines of queries.jsonl: {{"id": "q1", "text": "..."}})'

    @property
    def set_apart(self) -> int:
        """How many queries are of the split `log`, which takes part in nothing but simulated feedback."""
        return sum(query.split == LOGGED for query in self.queries)

    def with_known_intents(self, queries: Sequence[Query], knows: Callable[[str], bool] = bool) -> list[Query]:
        """The queries as callers ask them: with their intents where these are given, and known to the system."""
        named = {query.intent for query in queries} if self.intents == GIVEN else set()
        kept = {"", *filter(knows, named)}
        return [query if query.intent in kept else replace(query, intent="") for query in queries]

    def clock(self, query: Query) -> float:
        """The time at which a query is asked, in seconds UTC: its own, else that of the data set."""
        return self.as_of if query.asked_at is None else query.asked_at

    @cached_property
    def tokens(self) -> dict[str, int]:
        """What each entry takes of a context, by id, as Soleri estimates it."""
        return {entry.id: token_estimate(entry) for entry in self.entries}

    def split(self, name: str | None = None) -> tuple[Query, ...]:
        """Return the queries of a split in file order; None means `report_split`, or "all" without one.

        "all" leaves out the split `log`, whose judgments are for simulating feedback.

        Raises DataError, with the valid splits, when no query has that split.
        """
        wanted = name or self.report_split or "all"
        queries = tuple(q for q in self.queries if (q.split == wanted or (wanted == "all" and q.split != LOGGED)))
        if not self.queries:
            raise DataError(f"{self.name} has no queries; {self._without_queries}")
        if not queries:
            known = {q.split for q in self.queries if q.split} | {"all"}
            raise DataError(f"{self.name}: no query is in split {quote(wanted)}{nearest(wanted, known)}")
        return queries


@dataclass(frozen=True, eq=False)
class Report:
    """The result of a check; `dataset` is None when there are faults, which are sorted by place."""

    faults: tuple[Fault, ...]
    notices: tuple[str, ...]
    dataset: Dataset | None


State = Mapping[str, object]
MAX_NAMED_IDS = 3
DIGITS = 8
"""Hexadecimal digits of the hash of one entry or query: enough against accidents, and nothing is decided by it."""


def hashed(value: object) -> str:
    """The SHA-256 of a JSON value."""
    return sha256(compact(value).encode("utf-8", "surrogatepass")).hexdigest()


def states(dataset: Dataset, most: int) -> dict[str, State]:
    """The state of entries, queries and labels; a part with more than `most` items is empty.

    Entries and queries are id -> hash, labels are query -> entry -> grade.
    """
    entries = dataset.entries if len(dataset.entries) <= most else ()
    queries = dataset.queries if len(dataset.queries) <= most else ()
    labels = dataset.qrels if sum(map(len, dataset.qrels.values())) <= most else {}
    return {
        "entries": {entry.id: hashed(entry.to_json())[:DIGITS] for entry in entries},
        "queries": {query.id: hashed([query.text, repr(query.filters)])[:DIGITS] for query in queries},
        "labels": {query: dict(grades) for query, grades in labels.items()},
    }


def changed_ids(before: State, now: State, *, named: int = 0) -> str:
    """How many items were added, removed and changed, with the first ids of each; empty where none was.

    >>> changed_ids({"q1": {"a": 1, "b": 0}}, {"q1": {"a": 2, "b": 0, "c": 1}}, named=1)
    "1 added ('q1 c'), 1 changed ('q1 a')"
    """
    old, new = dict(_flat(before)), dict(_flat(now))
    parts = {
        "added": sorted(new.keys() - old.keys()),
        "removed": sorted(old.keys() - new.keys()),
        "changed": sorted(key for key in old.keys() & new.keys() if old[key] != new[key]),
    }
    return ", ".join(f"{len(ids)} {how}{_ids(ids, named)}" for how, ids in parts.items() if ids)


def _flat(state: State) -> Iterator[tuple[str, object]]:
    for key, value in state.items():
        if isinstance(value, Mapping):
            yield from ((f"{key} {entry}", grade) for entry, grade in value.items())
        else:
            yield key, value


def _ids(found: list[str], named: int) -> str:
    more = ", ..." if len(found) > named else ""
    return f" ({', '.join(repr(visible(id_)[:60]) for id_ in found[:named])}{more})" if named else ""
