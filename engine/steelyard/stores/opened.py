"""Opens a vault by what names it: a file, or the address of a database."""

from __future__ import annotations

from pathlib import Path

from steelyard.stores.postgres.address import is_address
from steelyard.stores.postgres.vault import PostgresVault
from steelyard.stores.sqlite import Vault


def open_vault(name: str | Path, *, create: bool = False) -> Vault:
    """The vault in a file, or at ``postgresql://USER@HOST:PORT/DATABASE``; see `Vault` and `PostgresVault`."""
    return PostgresVault(str(name), create=create) if is_address(name) else Vault(name, create=create)
