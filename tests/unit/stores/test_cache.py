"""What a store keeps between calls belongs to one revision of it, and is bounded."""

from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.retrievers.keywords import Bm25Retriever
from steelyard.stores.cache import RevisionCache
from steelyard.stores.sqlite import Vault


class Store:
    def __init__(self):
        self.at, self.writing, self.cache = 1, False, RevisionCache(self)
        self.revision, self.uncommitted = (lambda: self.at), (lambda: self.writing)


def made(store, *values, **how):
    return [store.cache.get("kind", "a", lambda value=value: value, **how) for value in values]


def test_a_value_is_made_once_until_the_store_changes():
    store = Store()
    assert made(store, 1, 2) == [1, 1]
    store.at = 2
    assert made(store, [3], 4, renew=lambda since, old: [*old, since]) == [[3], [3]]
    store.at = 5  # from then on it can be brought up to date
    assert made(store, 9, renew=lambda since, old: [*old, since]) == [[3, 2]]


def test_many_are_read_once_each_and_the_oldest_go_first():
    store, asked = Store(), []
    for wanted in ("ab", "bc", "ca"):
        store.cache.many("kind", "key", list(wanted), lambda new: asked.append(new) or dict.fromkeys(new, 1), 2)
    assert asked == [["a", "b"], ["c"], ["a"]]


def test_nothing_is_kept_of_an_older_state_or_of_what_is_not_committed():
    store = Store()
    store.at = 2
    assert made(store, "new") == ["new"]
    store.at = 1
    assert made(store, "x", "y") == ["x", "y"]
    store.at, store.writing = 2, True
    assert made(store, "written") == ["written"]
    store.writing = False
    assert made(store, "again") == ["new"]


def test_an_entry_that_takes_the_row_of_a_removed_one_has_its_own_id(tmp_path):
    """SQLite gives the largest row number again once it is free."""
    with Vault(tmp_path / "vault", create=True) as vault:
        vault.upsert([Entry("a", text="token"), Entry("b", text="token token")])
        for _ in range(2):
            assert {hit.id for hit in Bm25Retriever(vault).retrieve(Query("token"), 9)} == {"a", "b"}
        vault.delete(["b"])
        vault.upsert([Entry("c", text="token token")])
        assert {hit.id for hit in Bm25Retriever(vault).retrieve(Query("token"), 9)} == {"a", "c"}
