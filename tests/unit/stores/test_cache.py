"""What a store keeps between calls belongs to one revision of it, and is bounded."""

from steelyard.stores.cache import RevisionCache


class Store:
    at, writing = 1, False

    def revision(self):
        return self.at

    def uncommitted(self):
        return self.writing


def opened():
    store = Store()
    return store, RevisionCache(store)


def test_a_value_is_made_once_until_the_store_changes():
    store, cache = opened()
    assert [cache.get("kind", "a", lambda made=made: made) for made in (1, 2)] == [1, 1]
    store.at = 2
    assert cache.get("kind", "a", lambda: 3) == 3


def test_a_value_that_can_be_is_brought_up_to_date():
    store, cache = opened()
    assert cache.get("kind", "a", lambda: [1], renew=lambda since, old: [*old, since]) == [1]
    store.at = 5
    assert cache.holds("kind", "a")
    assert cache.get("kind", "a", lambda: [9], renew=lambda since, old: [*old, since]) == [1, 1]


def test_the_oldest_goes_first():
    store, cache = opened()
    for key in "abc":
        cache.get("kind", key, lambda key=key: key, most=2)
    assert cache.get("kind", "b", lambda: "again", most=2) == "b"
    assert cache.get("kind", "a", lambda: "again", most=2) == "again"
    assert store.at == 1


def test_many_are_read_once_each_and_the_first_go():
    store, cache = opened()
    asked = []

    def read(unknown):
        asked.append(unknown)
        return {one: one.upper() for one in unknown if one != "gone"}

    assert cache.many("kind", "key", ["a", "gone", "b"], read, 2) == {"a": "A", "b": "B"}
    assert cache.many("kind", "key", ["b", "c"], read, 2) == {"b": "B", "c": "C"}
    assert cache.many("kind", "key", ["c", "a"], read, 2) == {"c": "C", "a": "A"}
    assert store.at == 1
    assert asked == [["a", "gone", "b"], ["c"], ["a"]]


def test_nothing_is_kept_of_an_older_state_or_of_what_is_not_committed():
    store, cache = opened()
    store.at = 2
    assert cache.get("kind", "a", lambda: "new") == "new"
    store.at = 1
    assert [cache.get("kind", "a", lambda made=made: made) for made in "xy"] == ["x", "y"]
    store.at, store.writing = 2, True
    assert cache.get("kind", "a", lambda: "written") == "written"
    store.writing = False
    assert cache.get("kind", "a", lambda: "again") == "new"


def test_a_cache_does_not_keep_its_store_alive():
    store, cache = opened()
    del store
    assert [cache.get("kind", "a", lambda made=made: made) for made in "xy"] == ["x", "y"]
