"""What a store promises to the retrievers; the contract tests stand in `steelyard.testing`."""

import re
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Vectors
from steelyard.base.errors import ConfigError, quote
from steelyard.memory.entry import EVERY_FIELD, Entry
from steelyard.memory.query import EVERYTHING, Filters
from steelyard.stores.postings import ScopedPostings, WordAnalyzer

COSINE = "cosine"
"""The metric of vectors where nothing else is said."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}", re.ASCII)
_TOKENIZER = re.compile(r"[a-z][a-z0-9_ ]{0,80}", re.ASCII)


def is_address(source: object) -> bool:
    """Whether a source is the address of a database, and no file.

    >>> is_address("postgresql://me@localhost/moltnet"), is_address("moltnet.sql")
    (True, False)
    """
    return isinstance(source, str) and source.startswith(("postgresql://", "postgres://"))


@dataclass(frozen=True, slots=True)
class KeywordIndex:
    """A full-text index: its name, the entry fields it covers (in this order), and its tokenizer.

    ConfigError unless both are of small letters, digits and underscores, because they become part of SQL.
    """

    name: str
    fields: tuple[str, ...]
    tokenizer: str = "porter unicode61"

    def __post_init__(self) -> None:
        if not (_NAME.fullmatch(str(self.name)) and _TOKENIZER.fullmatch(str(self.tokenizer))):
            raise ConfigError(
                f"keyword index {quote(self.name)} with tokenizer {quote(self.tokenizer)} cannot be made; use "
                "small letters, digits and underscores, beginning with a letter"
            )


@dataclass(frozen=True)
class TextSearch:
    """Full text searched as PostgreSQL does, in memory: what is read of these fields of an entry, in English."""

    text: Callable[[Entry], str]
    fields: tuple[str, ...] = EVERY_FIELD


@dataclass(frozen=True, slots=True)
class Space:
    """Where comparable vectors live: one model, one layer (text, l0, l1), one text recipe."""

    model: str
    layer: str
    recipe: str


@dataclass(frozen=True, slots=True)
class ScoredId:
    """An entry a retriever returned: `score` (larger is better), and its place from 1 in the list that is cut."""

    id: str
    score: float
    position: int


@dataclass(frozen=True)
class ScoredIds(Sequence[ScoredId]):
    """What a retriever found, best first, as arrays: for lists as long as the store.

    The ids ascend, and lists of one scope share the very tuple; `scores`, float64[n], are theirs. `order`,
    int64[n], has the places of the ids from the best score to the worst.
    """

    ids: tuple[str, ...]
    scores: NDArray[np.float64]
    order: NDArray[np.int64]

    @property
    def positions(self) -> NDArray[np.int32]:
        """int32[n]: the place from 1 of each of the ids."""
        places = np.empty(len(self.order), dtype=np.int32)
        places[self.order] = np.arange(1, len(self.order) + 1)
        return places

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int | slice) -> Any:  # noqa: ANN401 -- one, or a list of them
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        row = int(self.order[place])
        return ScoredId(self.ids[row], float(self.scores[row]), place + 1)


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation between two entries, as its source states it; `strength` is None where it states none."""

    source: str
    target: str
    type: str
    strength: float | None


TIER_MARK = "\x1f"
"""Between id and tier; a white-space character, so no id of a data set holds it."""


def copy_key(id_: str, tier: str) -> str:
    """The name of one copy; copies sort by id first, so that ties are by id."""
    return f"{id_}{TIER_MARK}{tier}"


def plain_id(key: str) -> str:
    """The id of a copy; any other id is itself."""
    return key.partition(TIER_MARK)[0]


def plain(entry: Entry) -> Entry:
    """The entry under its own id, with its tier as `vault`; unchanged when it is not a copy."""
    id_, mark, tier = entry.id.partition(TIER_MARK)
    return replace(entry, id=id_, vault=tier) if mark else entry


def same_copies(hits: Sequence[ScoredId], lists: Mapping[str, Sequence[ScoredId]]) -> Sequence[ScoredId]:
    """The list with the copies of a federation's entries that the lists before it chose.

    Unchanged where the entries of the list are not copies.
    """
    if not hits or TIER_MARK not in hits[0].id:
        return hits
    chosen = {plain_id(hit.id): hit.id for earlier in lists.values() for hit in earlier}
    return [replace(hit, id=chosen.get(plain_id(hit.id), hit.id)) for hit in hits]


Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")
Renew = Callable[[int, T], T]
ReadMany = Callable[[list[Key]], Mapping[Key, T]]
SCOPES = 64
"""Values of a kind that are kept where nothing else is said; queries with a clock have a scope each."""


class _Held(NamedTuple):
    at: tuple[int, int]
    value: Any
    lasting: bool
    """Whether it can be brought up to date."""


class RevisionCache:
    """Values by kind and key, each with the state of the store that it is of. Threads may share it.

    Once the store has changed, a value is brought up to date where its kind can be, and else forgotten; all are
    where the store went back to an older state, because its revisions come again. Of each kind as many are kept
    as whoever asks says, and the first kept is the first to go. Nothing is kept for a thread that has written what
    is not committed, or reads an older state than others do. At worst two make one value.
    """

    def __init__(self, store: Any) -> None:  # noqa: ANN401 -- a Readable, which names this class
        self._store = weakref.ref(store)  # which holds this: in a circle it would outlive whoever opened it
        self._newest = 0, -1
        self._held: defaultdict[str, dict[Hashable, _Held]] = defaultdict(dict)
        self._changing = threading.Lock()

    def get(
        self, kind: str, key: Hashable, make: Callable[[], T], most: int = SCOPES, renew: Renew[T] | None = None
    ) -> T:
        """The value under a key, made now where none is kept; `renew` makes it of the one of an older revision."""
        store = self._store()
        if store is None or store.uncommitted():
            return make()
        now = store.at()
        if now > self._newest:
            self._forget(now)
        held = self._held[kind].get(key)
        if held is not None and held.at == now:
            return cast("T", held.value)
        older = held is not None and held.at < now
        value = renew(held.at[1], held.value) if renew and held and older else make()
        with self._changing:
            if now == self._newest:
                self._held[kind][key] = _Held(now, value, renew is not None)
                _drop_first(self._held[kind], most)
        return value

    def many(
        self, kind: str, key: Hashable, wanted: Sequence[Key], read: ReadMany[Key, T], most: int
    ) -> dict[Key, T]:
        """Those of the wanted things that there are, of one value; `read` gives those that are not kept."""
        known: dict[Key, T] = self.get(kind, key, dict)
        found = {one: value for one in wanted if (value := known.get(one)) is not None}
        if len(found) < len(wanted) and (unknown := [one for one in wanted if one not in found]):
            new = read(unknown)
            found.update(new)
            with self._changing:
                known.update(new)
                _drop_first(known, most)
        return found

    def holds(self, kind: str, key: Hashable) -> bool:
        """Whether something is kept under a key, perhaps of an older revision."""
        return key in self._held[kind]

    def _forget(self, now: tuple[int, int]) -> None:
        with self._changing:
            if now > self._newest:
                fell, self._newest = now[0] > self._newest[0], now
                for values in list(self._held.values()):  # threads add kinds
                    for key in [key for key, held in values.items() if fell or not held.lasting]:
                        del values[key]


def _drop_first(values: dict[Any, Any], most: int) -> None:
    for key in list(islice(values, max(0, len(values) - most))):
        del values[key]


class ReadableStore(Protocol):
    """What a search reads: entries, keyword indexes and vector spaces behind one interface."""

    cache: RevisionCache
    """What is kept of it until it changes."""

    def seen_by(self, visible: Filters) -> "ReadableStore":
        """The store restricted to the visible entries; hidden ones change no score, count, order or message.

        What stands outside moves no score, count, order or message. Latency is not promised.
        """

    def get(self, ids: Sequence[str], fields: Sequence[str] = ...) -> list[Entry]:
        """The entries of these ids, in this order; unknown ids are left out.

        With `fields` only those are read and the others are empty; by default all are.
        """

    def entries(self, filters: Filters = EVERYTHING) -> Iterator[Entry]:
        """All entries in scope, by ascending id."""

    def places(self) -> Iterator[tuple[str, str, bool]]:
        """Id, URI, and whether it has an abstract or an overview, of every entry that has one of them, by id."""

    def within(self, ids: Sequence[str], filters: Filters) -> set[str]:
        """Which of these ids belong to entries in scope."""

    def languages(self) -> tuple[str, ...]:
        """The languages that whoever made it says its entries are in; empty where their words tell."""
        return ()

    def recent(self, filters: Filters, limit: int) -> list[Entry]:
        """The newest entries in scope by creation date, ties and undated ones by ascending id; all below 0."""

    def count(self, filters: Filters = EVERYTHING) -> int:
        """How many entries are in scope."""

    def covers(self, filters: Filters) -> bool:
        """Whether everything is in scope: every copy, where there are several of one entry."""

    def revision(self) -> int:
        """A number that grows with every change of the entries or of their vectors."""
        return self.at()[1]

    def at(self) -> tuple[int, int]:
        """How often it was seen to go back to an older state, as when its file is restored, and its revision."""

    def uncommitted(self) -> bool:
        """Whether this thread has written what is not committed: nothing that it reads may be kept."""
        return False

    def keyword(
        self, index: KeywordIndex, match: str, weights: Sequence[float], filters: Filters, depth: int
    ) -> list[ScoredId]:
        """The best `depth` matches in scope by BM25 with a weight a field; the scope is applied first.

        Makes the index if it is absent. An expression that cannot be read finds nothing.
        """

    def counted(self, analysis: WordAnalyzer, filters: Filters) -> ScopedPostings:
        """The words of the entries in scope, as an analysis reads them."""

    def edges(self, ids: Sequence[str]) -> list[Edge]:
        """The relations from or to these entries, by source, target and type; a target need not exist."""

    def spaces(self) -> list[tuple[Space, int]]:
        """The vector spaces there are, with their dimensions."""

    def without_vectors(self, spaces: Sequence[Space]) -> list[str]:
        """What has a text and no vector in these spaces, in words: so many entries, or a tier of a federation."""
        lacking = self.cache.get("unembedded", tuple(spaces), lambda: self.unembedded(spaces, EVERYTHING))
        return [f"{len(lacking)} of {self.count()} entries have"] if lacking else []

    def approximate(self, spaces: Sequence[Space]) -> str:
        """How `nearest` searches these spaces where it may miss some of the nearest; empty where it cannot."""
        return ""

    def nearest(
        self, space: Space, vector: Vectors, filters: Filters, depth: int, filter_first: bool, metric: str = COSINE
    ) -> list[ScoredId]:
        """The `depth` nearest entries; none for a vector of zeros.

        The score is the cosine similarity, in -1..1, or with the metric l2 what the Euclidean distance
        leaves of 1, which is 1 at most and has no lower end. With `filter_first` the scope is applied
        before the cut to `depth`; without, after it, so that the list may be short and its positions
        have gaps.
        """

    def expect(self, space: Space, vectors: Sequence[Vectors]) -> None:
        """Hint: these vectors come next, so their products can be computed at once. Changes no result."""

    def unembedded(self, spaces: Sequence[Space], filters: Filters) -> list[str]:
        """Ids of the entries in scope with a text or details and without a vector in these spaces, ascending."""

    def vectors(self, space: Space, filters: Filters) -> tuple[list[str], Vectors]:
        """Ids (ascending) and float32[n, dim] of all vectors in scope."""

    def vectors_of(self, space: Space, ids: Sequence[str]) -> dict[str, Vectors]:
        """The vectors of these entries; entries without one are left out."""
