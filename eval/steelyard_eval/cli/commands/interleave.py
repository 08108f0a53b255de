"""The command interleave: two rankings take turns in one list, and the log says which is preferred."""

from __future__ import annotations

from typing import Any

import click

from steelyard.config.search_config import SearchConfig
from steelyard.feedback.log import FeedbackLog
from steelyard.feedback.team_draft import Explore
from steelyard_eval.cli.commands.options import json_option, limit_option, put, system_option, weights_option
from steelyard_eval.cli.commands.typed_query import QueryCommand
from steelyard_eval.learn.interleaving import duels
from steelyard_eval.learn.learned_text import duelled
from steelyard_eval.show.terminal import hits
from steelyard_eval.vaults.read import open_searcher


@click.command(cls=QueryCommand)
@click.argument("log", type=click.Path())
@click.argument("vault", required=False, default="", type=click.Path())
@click.argument("query", required=False, default="")
@system_option
@weights_option
@click.option(
    "--against", metavar="FILE", type=click.Path(), help="The other weights file; drawn weights by default."
)
@click.option(
    "--share", default=1.0, show_default=True, type=click.FloatRange(0, 1), help="Of searches interleaved."
)
@click.option("--client", default="", help="Who searches, as a name that stays the same.")
@limit_option
@json_option
def interleave(
    log: str,
    vault: str,
    query: str,
    system: str,
    weights: str | None,
    against: str | None,
    share: float,
    client: str,
    limit: int | None,
    as_json: bool,
) -> None:
    """Search VAULT for QUERY with two rankings interleaved, and log it; with LOG alone, test which is preferred.

    In each list two rankings take turns (team draft), so that acts decide between them, and show how places are
    examined. `steelyard act LOG QUERY_ID ENTRY_ID` adds acts.
    """
    if not vault:
        found = [one.to_json() for one in duels(log)]
        put({"duels": found}, as_json, duelled(found))
        return
    if not query:
        raise click.UsageError("name a query after the vault, or the log alone to test it")
    document, text = _interleaved(log, vault, query, (system, weights, limit), (against, share), client)
    put(document, as_json, text)


def _interleaved(
    log: str,
    vault: str,
    query: str,
    configured: tuple[str, str | None, int | None],
    explored: tuple[str | None, float],
    client: str,
) -> tuple[dict[str, Any], str]:
    """Search and log; the document, and the text to print."""
    against, share = explored
    explore = Explore(share, SearchConfig.load(against) if against else None)
    with open_searcher([vault], *configured, explore=explore) as searcher:
        result = searcher.search(query)
        query_id = FeedbackLog(log, searcher.config).shown(result, client)
        shown = [searcher.system.showing.show(hit, result, "full") for hit in result.hits]
    document = {"query_id": query_id, "log": log, "interleaved": list(result.placed_by), "hits": shown}
    return document, f"{hits(result.hits)}\nlogged as {query_id} in {log}"
