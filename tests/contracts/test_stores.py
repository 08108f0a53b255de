"""The store that ships keeps the promises of a store."""

import pytest

from steelyard.stores.sqlite import Vault
from steelyard.testing import StoreContract


class TestVaultInMemory(StoreContract):
    @pytest.fixture
    def store(self):
        with Vault(":memory:") as vault:
            yield vault


class TestVaultInAFile(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with Vault(tmp_path / "memory.vault", create=True) as vault:
            yield vault

    def test_another_connection_sees_what_was_written(self, store):
        from steelyard.entry import Entry

        store.upsert([Entry("a", text="kept")])
        with Vault(store.path) as again:
            assert again.get(["a"]) == [Entry("a", text="kept")]
            assert again.revision() == store.revision()
