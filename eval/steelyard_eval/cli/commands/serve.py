"""The command serve: a vault as a memory server for agents."""

from __future__ import annotations

import time
from functools import partial

import click

from steelyard.base.errors import ConfigError
from steelyard.base.extras import require
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.contenders import by_option
from steelyard_eval.cli.commands.options import (
    hnsw_option,
    json_option,
    put,
    scope_option,
    tell,
    tenant_option,
)
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.common.extensions import extension
from steelyard_eval.vaults.arguments import vault_file

LOG = "Add what is shown, and the acts that follow, to this feedback log, for `steelyard learn`."
EXPLORE = "Interleave the list with that of another configuration; see --share. The word `drawn` draws weights."
HTTP = "Serve on a port of this machine, for who has the token, and not over standard input."
DRAWN = "drawn"
SYSTEM = "echovault"
"""What ranks where nothing is named."""


@click.command()
@click.argument("vault", type=click.Path())
@by_option
@click.option("--log", type=click.Path(), metavar="LOG", help=LOG)
@scope_option
@tenant_option
@hnsw_option
@click.option("--explore", metavar="CONFIGURATION", type=completion.CONFIGURATION, help=EXPLORE)
@click.option(
    "--share", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="Of searches interleaved."
)
@click.option("--client", default="", help="What the log calls who asks; by default the client's own name.")
@click.option("--http", "port", type=click.IntRange(1, 65_535), metavar="PORT", help=HTTP)
@json_option
def serve(
    vault: str,
    by: str,
    log: str | None,
    scopes: tuple[str, ...],
    tenant: str | None,
    hnsw: int | None,
    explore: str | None,
    share: float,
    client: str,
    port: int | None,
    as_json: bool,
) -> None:
    """Serve VAULT to an agent as an MCP server: search, get and feedback, over standard input and output.

    It only reads. Files that change are read again; one that is broken is refused, and what was served stays.
    """
    require("serve", "an MCP server")
    serving = extension("serve")
    if explore is not None and log is None:
        raise ConfigError("--explore is for a log, which says who placed what; name one with --log")
    if as_json and port is None:
        raise click.UsageError("standard output is the client's; --json tells the address and goes with --http")
    served = serving.Served(
        vault_file(vault, tenant),
        scopes,
        by or SYSTEM,
        share if explore is not None else 0.0,
        None if explore == DRAWN else explore,
        hnsw,
    )
    writer = None if log is None else serving.ServerLog(log, time.time)
    serving.run(served, writer, client, port, partial(_told, as_json))


def _told(as_json: bool, address: str, token: str, new: bool) -> None:
    """Say where the server is, and its token where nobody knows it yet."""
    if as_json:
        put({"address": address, "token": token}, as_json, "")
        return
    note(f"serving {address} to who sends the header Authorization: Bearer TOKEN")
    if new:
        tell(f"the token of this run is {token}; set STEELYARD_SERVE_TOKEN for one that stays")
