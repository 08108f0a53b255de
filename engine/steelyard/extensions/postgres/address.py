"""Addresses of databases: postgresql://USER@HOST:PORT/DATABASE, without a secret in them."""

from __future__ import annotations

from steelyard.base.errors import ConfigError
from steelyard.base.extensions import require

SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
"""Parameters of an address that may not stand in it: shells, lists of processes and files keep addresses."""
SECONDS = 10
"""Until a connection is given up."""


def check_address(address: str) -> None:
    """ConfigError for an address that cannot be read or holds a secret, MachineError without the extra."""
    require("postgres", "a live database")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        given = conninfo_to_dict(address)
    except psycopg.Error:  # its message may repeat the address, and with it a password
        raise ConfigError(
            "the address of the database cannot be read; write postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    if any(given.get(name) for name in SECRETS):
        raise ConfigError(
            "the address of the database holds a secret, which files and process lists would show; "
            "put it in PGPASSWORD or ~/.pgpass instead"
        )
