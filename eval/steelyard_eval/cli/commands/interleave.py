"""The command interleave: two rankings take turns in one list, and the log says which is preferred."""

from __future__ import annotations

from typing import Any

import click

from steelyard.feedback.log import FeedbackLog
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.contenders import DEFAULT, by_option
from steelyard_eval.cli.commands.options import json_option, limit_option, put
from steelyard_eval.cli.commands.typed_query import QueryCommand
from steelyard_eval.learn.interleaving import duels
from steelyard_eval.learn.learned_text import duelled
from steelyard_eval.show.terminal import hits
from steelyard_eval.vaults.read import RankedBy, open_searcher


@click.command(cls=QueryCommand)
@click.argument("log", type=click.Path())
@click.argument("vault", required=False, default="", type=click.Path())
@click.argument("query", required=False, default="")
@by_option
@click.option(
    "--against", type=completion.CONFIGURATION, help="The other configuration; drawn weights by default."
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
    by: str,
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
        rows = [duel.to_json() for duel in duels(log)]
        put({"duels": rows}, as_json, duelled(rows))
        return
    if not query:
        raise click.UsageError("name a query after the vault, or the log alone to test it")
    document, text = _interleaved(log, vault, query, (RankedBy.of(by or DEFAULT), limit), (share, against), client)
    put(document, as_json, text)


def _interleaved(
    log: str,
    vault: str,
    query: str,
    configured: tuple[RankedBy, int | None],
    explored: tuple[float, str | None],
    client: str,
) -> tuple[dict[str, Any], str]:
    """Search and log; the document, and the text to print."""
    share, against = explored
    other = RankedBy.of(against) if against else None
    with open_searcher([vault], *configured, explore=(share, other)) as searcher:
        result = searcher.search(query)
        query_id = FeedbackLog(log, searcher.config).shown(result, client)
        shown = [searcher.system.showing.show(hit, result, "full") for hit in result.hits]
    document = {"query_id": query_id, "log": log, "interleaved": list(result.placed_by), "hits": shown}
    return document, f"{hits(result.hits)}\nlogged as {query_id} in {log}"
