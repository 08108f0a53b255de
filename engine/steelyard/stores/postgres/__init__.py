"""A store in a PostgreSQL database: what lies there is searched in a copy, by the vault's own code."""

from steelyard.stores.postgres.vault import PostgresVault

__all__ = ["PostgresVault"]
