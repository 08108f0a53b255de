"""The command serve: a vault as a memory server for agents."""

from __future__ import annotations

import time

import click

from steelyard.base.errors import ConfigError
from steelyard.base.extras import require
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.contenders import by_option
from steelyard_eval.cli.commands.options import (
    hnsw_option,
    scope_option,
    tenant_option,
)
from steelyard_eval.common.extensions import extension
from steelyard_eval.vaults.arguments import vault_file

LOG = "Add what is shown, and the acts that follow, to this feedback log, for `steelyard learn`."
EXPLORE = "Interleave the list with that of another configuration; see --share. The word `drawn` draws weights."
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
) -> None:
    """Serve VAULT to an agent as an MCP server: search, get and feedback, over standard input and output.

    It only reads. Files that change are read again; one that is broken is refused, and what was served stays.
    """
    require("serve", "an MCP server")
    serving = extension("serve")
    if explore is not None and log is None:
        raise ConfigError("--explore is for a log, which says who placed what; name one with --log")
    served = serving.Served(
        vault_file(vault, tenant),
        scopes,
        by or SYSTEM,
        share if explore is not None else 0.0,
        None if explore == DRAWN else explore,
        hnsw,
    )
    writer = None if log is None else serving.ServerLog(log, time.time)
    serving.run(served, writer, client)
