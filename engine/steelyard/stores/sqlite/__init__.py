"""The vault: entries, keyword indexes, vectors and fitted models in one SQLite file. The only place with SQL."""

from steelyard.stores.sqlite.vault import Vault

__all__ = ["Vault"]
