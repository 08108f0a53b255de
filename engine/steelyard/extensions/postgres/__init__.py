"""A store in a PostgreSQL database: what lies there is searched in a copy, by the vault's own code."""

from steelyard.extensions.postgres.address import SECONDS, check_address
from steelyard.extensions.postgres.measured import index_hnsw
from steelyard.extensions.postgres.vault import PostgresVault

__all__ = ["SECONDS", "PostgresVault", "check_address", "index_hnsw"]
