"""Opens a vault by what names it: a file, or the address of a database."""

from __future__ import annotations

from pathlib import Path

from steelyard.base.errors import ConfigError
from steelyard.base.extensions import extension
from steelyard.stores.sqlite import Vault

SCHEMES = ("postgresql://", "postgres://")


def is_address(source: object) -> bool:
    """Whether a source is the address of a database.

    >>> is_address("postgresql://me@localhost/moltnet"), is_address("moltnet.sql")
    (True, False)
    """
    return isinstance(source, str) and source.startswith(SCHEMES)


def open_vault(name: str | Path, *, create: bool = False, hnsw: int | None = None) -> Vault:
    """The vault in a file, or at ``postgresql://USER@HOST:PORT/DATABASE``; see `Vault` and `PostgresVault`.

    `hnsw` is the ef_search with which a database is searched by its HNSW index; ConfigError for a file.
    """
    if is_address(name):
        database: Vault = extension("postgres").PostgresVault(str(name), create=create, hnsw=hnsw)
        return database
    if hnsw is not None:
        raise ConfigError(f"{name} is a file, and HNSW is an index of a database; leave --hnsw out")
    return Vault(name, create=create)
