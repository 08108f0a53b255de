"""Ids that a vault keeps in memory belong to one state of it."""

from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.retrievers.keywords import Bm25Retriever
from steelyard.stores.sqlite import Vault


def test_an_entry_that_takes_the_row_of_a_removed_one_has_its_own_id(tmp_path):
    """SQLite gives the largest row number again once it is free."""
    with Vault(tmp_path / "vault", create=True) as vault:
        vault.upsert([Entry("a", text="token"), Entry("b", text="token token")])
        for _ in range(2):
            assert {hit.id for hit in Bm25Retriever(vault).retrieve(Query("token"), 9)} == {"a", "b"}
        vault.delete(["b"])
        vault.upsert([Entry("c", text="token token")])
        assert {hit.id for hit in Bm25Retriever(vault).retrieve(Query("token"), 9)} == {"a", "c"}
