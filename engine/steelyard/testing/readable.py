"""What everything that can be searched promises, in the sentences of `steelyard.stores.base.ReadableStore`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import SteelyardError
from steelyard.memory.entry import Entry, Relation
from steelyard.memory.query import EVERYTHING, Filters
from steelyard.stores.base import KeywordIndex, ReadableStore, Space

INDEX = KeywordIndex("sample", ("title", "text"))
SPACE = Space("model", "text", "{text}")
P1 = Filters.of({"project": "p1"})
FULL = Entry(
    id="full",
    title="Quotes \" and ' and \U0001f600",
    text="line\nbreak\0nul",
    tags=("b", "a", "é"),
    participants=("Ann",),
    relations=(Relation("next", "other", 0.5, "proposed"), Relation("old", "gone")),
    importance=7.25,
    created_at=-1.5,
    extra={"turn": 4, "deep": {"list": [1, None, "ü"]}},
)
HOSTILE_IDS = [
    'a"b',
    "a'b",
    "x;DROP/**/TABLE/**/entries",
    "a\0b",
    "\U0001f600",
    "é",
    "Z",
    "NEAR",
    "%",
    "a_b",
    "-1",
    "\\",
]


class Fillable(ReadableStore, Protocol):
    """What is read, and the two ways in which the contract fills it."""

    def upsert(self, entries: Iterable[Entry]) -> int:
        """Insert or replace entries by id."""

    def put_vectors(self, space: Space, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Store float32[len(ids), dim]."""


def raised(error: type[SteelyardError], call: Callable[[], object]) -> str:
    """The message of the error that the call must raise."""
    try:
        call()
    except error as caught:
        return str(caught)
    raise AssertionError(f"{error.__name__} was not raised")


def rows(*vectors: Sequence[float]) -> NDArray[np.float32]:
    """Vectors as a store takes them."""
    return np.array(vectors, dtype=np.float32)


class ReadableContract:
    """Inherit, and give a fixture `store`: something to search, without entries, that can be filled."""

    # Entries

    def test_an_entry_comes_back_field_by_field(self, store: Fillable) -> None:
        """Nothing is lost, reordered or rounded."""
        store.upsert([FULL])

        assert store.get(["full"]) == [FULL]
        assert list(store.entries()) == [FULL]

    def test_entries_come_in_the_given_order_without_unknown_ones(self, store: Fillable) -> None:
        """`get` keeps the order of the ids."""
        store.upsert(Entry(id_) for id_ in "abc")

        assert [e.id for e in store.get(["c", "none", "a"])] == ["c", "a"]
        assert store.get([]) == []

    def test_only_the_named_fields_are_read(self, store: Fillable) -> None:
        """The others are empty, the id never is."""
        store.upsert([FULL])

        assert store.get(["full"], ("tags", "created_at")) == [Entry("full", tags=FULL.tags, created_at=-1.5)]
        assert store.get(["full"], ()) == [Entry("full")]

    def test_entries_ascend_by_the_bytes_of_their_ids(self, store: Fillable) -> None:
        """Upper case before lower, letters with accents after those without."""
        store.upsert(Entry(id_) for id_ in HOSTILE_IDS)

        assert [e.id for e in store.entries()] == sorted(HOSTILE_IDS, key=str.encode)
        assert [e.id for e in store.get(HOSTILE_IDS)] == HOSTILE_IDS

    def test_a_scope_holds_what_equals_every_value(self, store: Fillable) -> None:
        """Case-sensitive; texts and numbers."""
        store.upsert(
            [Entry("a", project="p1", importance=3.0), Entry("b", project="P1"), Entry("c", project="p1")]
        )

        assert [e.id for e in store.entries(P1)] == ["a", "c"]
        assert store.count(P1) == 2
        assert store.count() == 3
        assert [e.id for e in store.entries(Filters.of({"project": "p1", "importance": 3}))] == ["a"]
        assert store.count(Filters.of({"project": "p1' OR 1=1 --"})) == 0

    def test_a_scope_covers_a_store_when_nothing_stands_outside(self, store: Fillable) -> None:
        """An empty store is covered by every scope."""
        assert store.covers(P1)
        store.upsert([Entry("a", project="p1"), Entry("b", project="p1")])
        assert store.covers(P1) and store.covers(EVERYTHING)

        store.upsert([Entry("c")])
        assert not store.covers(P1) and store.covers(EVERYTHING)

    def test_recent_entries_are_newest_first_then_by_id(self, store: Fillable) -> None:
        """Undated entries come last."""
        dates = {"a": None, "b": 1.0, "c": 2.0, "d": 2.0, "e": None}
        store.upsert(Entry(id_, created_at=date, project="p1") for id_, date in dates.items())

        assert [e.id for e in store.recent(EVERYTHING, 4)] == ["c", "d", "b", "a"]
        assert [e.id for e in store.recent(P1, 9)] == ["c", "d", "b", "a", "e"]

    # Keyword indexes

    def test_the_scope_acts_before_the_keyword_cut(self, store: Fillable) -> None:
        """A cut of two finds two in scope, although better ones stand outside; ties are by id."""
        store.upsert([Entry(f"x{i}", text="apple", project="p0") for i in range(5)])
        store.upsert([Entry(id_, text="apple and much more beside it", project="p1") for id_ in "cab"])
        hits = store.keyword(INDEX, '"apple"', [1.0, 1.0], P1, 2)

        assert [(f.id, f.position) for f in hits] == [("a", 1), ("b", 2)]

    def test_a_field_counts_by_its_weight(self, store: Fillable) -> None:
        """Larger is better, and a field of weight 0 still finds."""
        store.upsert([Entry("a", title="apple", text="pear"), Entry("b", title="pear", text="apple")])
        store.upsert([Entry(f"other{i}", title="plum", text="plum") for i in range(5)])

        assert [f.id for f in store.keyword(INDEX, '"apple"', [1.0, 5.0], EVERYTHING, 9)] == ["b", "a"]
        assert [f.id for f in store.keyword(INDEX, '"apple"', [5.0, 1.0], EVERYTHING, 9)] == ["a", "b"]
        assert len(store.keyword(INDEX, '"apple"', [0.0, 1.0], EVERYTHING, 9)) == 2

    def test_an_expression_that_cannot_be_read_finds_nothing(self, store: Fillable) -> None:
        """Nor does an empty one."""
        store.upsert([Entry("a", text="apple")])

        for match in ("", '"apple', "AND", "apple AND", "*"):
            assert store.keyword(INDEX, match, [1.0, 1.0], EVERYTHING, 9) == []

    # Vectors

    def test_nearest_entries_by_cosine(self, store: Fillable) -> None:
        """cos((1,0), (1,0)) = 1, cos((1,0), (3,4)) = 3/5, cos((1,0), (-1,0)) = -1."""
        store.upsert(Entry(id_) for id_ in "abc")
        store.put_vectors(SPACE, ["c", "b", "a"], rows((2, 0), (3, 4), (-1, 0)))
        hits = store.nearest(SPACE, rows((1, 0))[0], EVERYTHING, 9, True)

        assert [(f.id, f.position) for f in hits] == [("c", 1), ("b", 2), ("a", 3)]
        assert np.allclose([f.score for f in hits], [1.0, 0.6, -1.0], atol=1e-6)
        assert store.nearest(SPACE, rows((0, 0))[0], EVERYTHING, 9, True) == []

    def test_nearest_entries_by_distance(self, store: Fillable) -> None:
        """1 - |(1,0) - (2,0)| = 0, 1 - |(1,0) - (-1,0)| = -1, 1 - |(1,0) - (3,4)| = 1 - sqrt(20)."""
        store.upsert(Entry(id_) for id_ in "abc")
        store.put_vectors(SPACE, ["c", "b", "a"], rows((2, 0), (3, 4), (-1, 0)))
        hits = store.nearest(SPACE, rows((1, 0))[0], EVERYTHING, 9, True, "l2")

        assert [(f.id, f.position) for f in hits] == [("c", 1), ("a", 2), ("b", 3)]
        assert np.allclose([f.score for f in hits], [0.0, -1.0, 1 - 20**0.5], atol=1e-6)
        assert store.nearest(SPACE, rows((0, 0))[0], EVERYTHING, 9, True, "l2") == []

    def test_equal_neighbours_are_cut_by_id(self, store: Fillable) -> None:
        """Also where the cut falls between them, by either metric."""
        ids = [f"e{i:02}" for i in range(20)]
        store.upsert(Entry(id_) for id_ in reversed(ids))
        store.put_vectors(SPACE, ids[::-1], rows(*[(1, 1)] * 20))

        for depth, metric in product((1, 7, 20), ("cosine", "l2")):
            hits = store.nearest(SPACE, rows((1, 0))[0], EVERYTHING, depth, True, metric)
            assert [f.id for f in hits] == ids[:depth]

    def test_a_scope_acts_before_or_after_the_cut(self, store: Fillable) -> None:
        """Before: the list is full. After: it is short and keeps the positions it had."""
        store.upsert(Entry(id_, project=f"p{i % 2}") for i, id_ in enumerate("abcd"))
        store.put_vectors(SPACE, list("abcd"), rows((4, 0), (4, 1), (4, 2), (4, 3)))
        for metric in ("cosine", "l2"):
            first = store.nearest(SPACE, rows((1, 0))[0], P1, 2, True, metric)
            after = store.nearest(SPACE, rows((1, 0))[0], P1, 2, False, metric)

            assert [(f.id, f.position) for f in first] == [("b", 1), ("d", 2)]
            assert [(f.id, f.position) for f in after] == [("b", 2)]

    def test_vectors_come_back_as_they_were_given(self, store: Fillable) -> None:
        """By ascending id and by scope; the last one written counts."""
        store.upsert([Entry("a", project="p1"), Entry("b")])
        store.put_vectors(SPACE, ["b", "a"], rows((9, 9), (0.25, 3)))
        store.put_vectors(SPACE, ["b"], rows((1, 2)))
        ids, matrix = store.vectors(SPACE, EVERYTHING)

        assert (ids, matrix.tolist(), matrix.dtype) == (["a", "b"], [[0.25, 3], [1, 2]], np.dtype(np.float32))
        assert store.vectors(SPACE, P1)[0] == ["a"]
        assert {k: v.tolist() for k, v in store.vectors_of(SPACE, ["b", "none"]).items()} == {"b": [1, 2]}
        assert store.spaces() == [(SPACE, 2)]

    def test_entries_without_a_vector_are_those_with_something_to_embed(self, store: Fillable) -> None:
        """In scope, ascending, and in none of the spaces."""
        store.upsert(Entry(id_, text=f"text {id_}", project="p1") for id_ in "dabc")
        store.upsert([Entry("e", details="more", project="p1"), Entry("f", title="t"), Entry("g", text="t")])
        other = Space("model", "l2", "{text}")
        store.put_vectors(SPACE, ["a"], rows([1, 0]))
        store.put_vectors(other, ["c"], rows([0, 1]))

        assert store.unembedded([SPACE, other], P1) == ["b", "d", "e"]
        assert store.unembedded([SPACE], EVERYTHING) == ["b", "c", "d", "e", "g"]
        assert store.unembedded([Space("model", "l9", "")], P1) == ["a", "b", "c", "d", "e"]

    def test_places_are_of_entries_with_a_uri_or_a_layer(self, store: Fillable) -> None:
        """By id, whether they have a layer."""
        store.upsert(
            [Entry("c", uri="x://1"), Entry("a", uri="x://2", l1="all"), Entry("b", l0="few"), Entry("d")]
        )

        assert list(store.places()) == [("a", "x://2", True), ("b", "", True), ("c", "x://1", False)]

    def test_an_unknown_space_is_empty(self, store: Fillable) -> None:
        """Another recipe is another space."""
        store.upsert([Entry("a")])
        store.put_vectors(SPACE, ["a"], rows((1, 0)))
        other = Space("model", "text", "{title}")

        assert store.nearest(other, rows((1, 0))[0], EVERYTHING, 5, True) == []
        assert store.vectors(other, EVERYTHING)[0] == []
        assert store.vectors_of(other, ["a"]) == {}
