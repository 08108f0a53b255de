"""The command act: adds to a log what was done with the entries of a search."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from steelyard.feedback.log import append_act
from steelyard.feedback.reviews import review
from steelyard.stores.opened import open_vault
from steelyard.stores.sqlite import Vault
from steelyard_eval.cli.commands.options import json_option, put

ACTS = (
    *("accepted", "used", "cited", "copied", "opened", "clicked", "modified"),
    *("thumbs_up", "thumbs_down", "dismissed", "failed", "reviewed", "none_useful"),
)
GRADES = ("again", "hard", "good", "easy")
REVIEWED = "The vault of the entries, for --action reviewed: their stability in it changes by FSRS."


@click.command()
@click.argument("log", type=click.Path())
@click.argument("query_id")
@click.argument("entry_ids", metavar="[ENTRY_ID]...", nargs=-1)
@click.option("--action", default="accepted", show_default=True, type=click.Choice(ACTS))
@click.option("--client", default="", help="Who acts, as a name that stays the same.")
@click.option("--vault", type=click.Path(), help=REVIEWED)
@click.option("--grade", default="good", show_default=True, type=click.Choice(GRADES), help="Of a review.")
@json_option
def act(
    log: str,
    query_id: str,
    entry_ids: tuple[str, ...],
    action: str,
    client: str,
    vault: str | None,
    grade: str,
    as_json: bool,
) -> None:
    """Log what was done with entries of a search that `steelyard search --log LOG` has logged.

    `--action reviewed --vault VAULT` also writes the review to the entries, which are then forgotten more slowly
    (signal retrievability).
    """
    document: dict[str, object] = {"query_id": query_id, "action": action, "entries": list(entry_ids)}
    with _reviewing(action, vault) as store:
        if store is not None:
            document["stability"] = {id_: review(store, id_, grade, time.time()).stability for id_ in entry_ids}
        for entry_id in entry_ids or ("",):
            append_act(Path(log), query_id, entry_id, action, client)
    put(document, as_json, f"{log}: {action} {', '.join(entry_ids) or 'list'} of {query_id}")


@contextmanager
def _reviewing(action: str, vault: str | None) -> Iterator[Vault | None]:
    """The vault in a transaction, which keeps nothing where the log cannot be written; None for other actions."""
    if (action == "reviewed") != (vault is not None):
        raise click.UsageError("--action reviewed and --vault go together: a review is written to the entries")
    if vault is None:
        yield None
        return
    with open_vault(vault) as store, store.transaction():
        yield store
