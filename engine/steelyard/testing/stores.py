"""What every store promises beyond reading; the sentences are those of `steelyard.stores.sqlite.Vault`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from steelyard.base.errors import DimensionMismatchError, VaultError
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters, Rule
from steelyard.stores.base import KeywordIndex
from steelyard.stores.sqlite import Vault
from steelyard.testing.readable import INDEX, SPACE, ReadableContract, raised, rows


class StoreContract(ReadableContract):
    """Inherit, and give a fixture `store`: a store without entries."""

    # Entries

    def test_only_changes_are_counted(self, store: Vault) -> None:
        """Writing the same again changes nothing, the revision included."""
        assert store.upsert([Entry("a"), Entry("b")]) == 2
        before = store.revision()

        assert store.upsert([Entry("a"), Entry("b")]) == 0
        assert store.revision() == before
        assert store.upsert([Entry("a", title="new"), Entry("b")]) == 1
        assert store.revision() != before
        assert store.get(["a"])[0].title == "new"

    def test_a_scope_covers_a_store_when_each_rule_admits_each_entry(self, store: Vault) -> None:
        """Every kind of rule, alone and beside another, as `Rule.admits` has it."""
        entries = [
            Entry("a", kind="memory", tags=("x", "y"), importance=3.0, valid_from=1.0),
            Entry("b", kind="", tags=("x",), importance=4.0),
        ]
        rules = [
            *(Rule("kind", test, (value,)) for test in ("any", "none", "prefix") for value in ("memory", "m", "")),
            *(Rule("tags", test, (value,)) for test in ("any", "all", "none") for value in ("x", "y", "z")),
            *(Rule("importance", test, (3.0,)) for test in ("any", "none", "from", "after", "before", "until")),
            *(Rule(field, "absent") for field in ("kind", "tags", "importance", "valid_from", "valid_until")),
        ]
        clauses = [*((rule,) for rule in rules), *((rules[0], rule) for rule in rules)]
        for end in (1, 2):
            store.upsert(entries[:end])
            for clause in clauses:
                told = all(any(rule.admits(entry) for rule in clause) for entry in entries[:end])
                assert store.covers(Filters.all_of(clause)) == told, clause

    def test_a_write_that_breaks_off_leaves_nothing(self, store: Vault) -> None:
        """One transaction: entries, keyword index and revision stay as they were."""
        store.ensure_index(INDEX)
        store.upsert([Entry("a", text="old")])
        before = (store.revision(), list(store.entries()))

        def broken() -> Iterator[Entry]:
            yield Entry("a", text="new")
            yield Entry("b", text="new")
            raise VaultError("the source broke off")

        raised(VaultError, lambda: store.upsert(broken()))
        assert (store.revision(), list(store.entries())) == before
        assert self._keyword(store, '"new"') == []
        assert self._keyword(store, '"old"') == ["a"]

    def test_a_deleted_entry_leaves_nothing(self, store: Vault) -> None:
        """Neither keywords nor vectors, not even for an entry that is written after it."""
        store.ensure_index(INDEX)
        store.upsert([Entry("a", text="apple"), Entry("b", text="apple")])
        store.put_vectors(SPACE, ["a", "b"], rows((1, 0), (0, 1)))
        before = store.revision()

        assert store.delete(["b", "none"]) == 1
        assert store.revision() != before
        assert (list(store.entries()), self._keyword(store, "apple")) == ([Entry("a", text="apple")], ["a"])
        store.upsert([Entry("c", text="pear")])
        assert store.vectors(SPACE, EVERYTHING)[0] == ["a"]
        assert self._keyword(store, "apple") == ["a"]

    def test_deleting_what_is_not_there_changes_nothing(self, store: Vault) -> None:
        """The revision neither."""
        store.upsert([Entry("a")])
        before = store.revision()

        assert store.delete(["b"]) == store.delete([]) == 0
        assert (store.revision(), store.count()) == (before, 1)

    def test_a_delete_that_breaks_off_leaves_all(self, store: Vault) -> None:
        """One transaction, vectors and keywords included."""
        store.ensure_index(INDEX)
        store.upsert([Entry("a", text="apple"), Entry("b", text="apple")])
        store.put_vectors(SPACE, ["a"], rows((1, 0)))

        def broken() -> Iterator[str]:
            yield "a"
            raise VaultError("the list broke off")

        raised(VaultError, lambda: store.delete(broken()))
        assert (store.count(), self._keyword(store, "apple")) == (2, ["a", "b"])
        assert store.missing(SPACE) == ["b"]

    # Keyword indexes

    def test_an_index_covers_entries_from_before_and_after_it(self, store: Vault) -> None:
        """And follows changes."""
        store.upsert([Entry("a", title="apple")])
        store.ensure_index(INDEX)
        store.upsert([Entry("b", text="apple pie")])
        assert self._keyword(store, '"apple"') == ["a", "b"]

        store.upsert([Entry("a", title="pear")])
        assert self._keyword(store, '"apple"') == ["b"]
        assert self._keyword(store, "") == []

    def test_an_index_of_other_settings_is_refused(self, store: Vault) -> None:
        """The message names both settings and the remedy."""
        store.ensure_index(INDEX)
        other = KeywordIndex("sample", ("title",), "unicode61")

        message = raised(VaultError, lambda: store.ensure_index(other))
        assert "'porter unicode61'" in message and "'unicode61'" in message and "--rebuild" in message

    # Vectors

    def test_a_changed_entry_loses_its_vectors(self, store: Vault) -> None:
        """An unchanged one keeps them."""
        store.upsert([Entry("a"), Entry("b")])
        assert store.missing(SPACE) == ["a", "b"]
        store.put_vectors(SPACE, ["a", "b"], rows((1, 0), (0, 1)))
        assert store.missing(SPACE) == []

        store.upsert([Entry("a"), Entry("b", title="new")])
        assert store.missing(SPACE) == ["b"]
        assert list(store.vectors_of(SPACE, ["a", "b"])) == ["a"]

    def test_a_changed_entry_may_keep_its_vectors(self, store: Vault) -> None:
        """It is found by what it said before; the revision changes all the same."""
        store.upsert([Entry("a", title="old")])
        store.put_vectors(SPACE, ["a"], rows((1, 0)))
        before = store.revision()

        assert store.upsert([Entry("a", title="new")], keep_vectors=True) == 1
        assert (store.missing(SPACE), store.get(["a"])) == ([], [Entry("a", title="new")])
        assert store.revision() != before

    def test_new_vectors_change_the_revision(self, store: Vault) -> None:
        """So that nobody goes on with a copy of the old ones."""
        store.upsert([Entry("a")])
        before = store.revision()
        store.put_vectors(SPACE, ["a"], rows((1, 0)))
        between = store.revision()
        store.drop_space(SPACE)

        assert len({before, between, store.revision()}) == 3

    def test_another_dimension_is_refused(self, store: Vault) -> None:
        """The message names both dimensions and the remedy; a dropped space forgets its dimension."""
        store.upsert([Entry("a")])
        store.put_vectors(SPACE, ["a"], rows((1, 0)))
        message = raised(DimensionMismatchError, lambda: store.put_vectors(SPACE, ["a"], rows((1, 0, 0))))
        asked = raised(
            DimensionMismatchError, lambda: store.nearest(SPACE, rows((1, 0, 0))[0], EVERYTHING, 5, True)
        )

        assert all("2" in m and "3" in m and "--rebuild" in m for m in (message, asked))
        store.drop_space(SPACE)
        store.put_vectors(SPACE, ["a"], rows((1, 0, 0)))
        assert store.spaces() == [(SPACE, 3)]

    def test_a_vector_without_direction_is_refused(self, store: Vault) -> None:
        """Zeros and NaN have no cosine; nothing of the batch is written."""
        store.upsert([Entry("a"), Entry("b")])

        for bad in ((0, 0), (float("nan"), 1)):
            batch = rows((1, 0), bad)
            assert "'b'" in raised(VaultError, partial(store.put_vectors, SPACE, ["a", "b"], batch))
        assert store.missing(SPACE) == ["a", "b"]

    def _keyword(self, store: Vault, match: str) -> list[str]:
        return sorted(f.id for f in store.keyword(INDEX, match, [1.0, 1.0], EVERYTHING, 100))
