"""Commands on a vault file: build it, search it, read from it."""

from __future__ import annotations

import json

import click

from steelyard_eval.commands.manners import note
from steelyard_eval.commands.options import (
    filter_option,
    json_option,
    limit_option,
    put,
    scope_option,
    system_option,
    vault_embedder_option,
    weights_option,
)

MODES = "Whole entries with the system's own fields, or a first look (then: steelyard get)."
PRIORITIES = "Weight of a tier; the system's own by default (Soleri: agent 1, project 0.8, team 0.6, else 0.5)."


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("vault", type=click.Path())
@vault_embedder_option
@json_option
def index(dataset: str, vault: str, embedder: str | None, as_json: bool) -> None:
    """Build or update a vault from a data set: entries, keyword indexes, vectors."""
    from steelyard_eval.datasets import load
    from steelyard_eval.vaults import index_dataset

    counts = index_dataset(load(dataset), vault, embedder)
    put(counts, as_json, f"{vault}: " + ", ".join(f"{value} {name}" for name, value in counts.items()))


@click.command()
@click.argument("vault", type=click.Path())
@vault_embedder_option
@json_option
def reindex(vault: str, embedder: str | None, as_json: bool) -> None:
    """Rebuild keyword indexes and vectors after a change of model, dimension or tokenizer."""
    from steelyard_eval.vaults import reindex_vault

    counts = reindex_vault(vault, embedder)
    put(counts, as_json, f"{vault}: " + ", ".join(f"{value} {name}" for name, value in counts.items()))


@click.command()
@click.argument("vaults", metavar="VAULT...", nargs=-1, required=True, type=click.Path())
@click.argument("query")
@system_option
@weights_option
@limit_option
@filter_option
@click.option("--mode", default="full", show_default=True, type=click.Choice(["scan", "full"]), help=MODES)
@click.option("--tag", "tags", multiple=True, help="A tag of the query, for the signal tags; repeatable.")
@click.option("--domain", default="", help="The query's domain, for the signal domain.")
@click.option("--priority", "priorities", multiple=True, metavar="TIER=NUMBER", help=PRIORITIES)
@scope_option
@click.option("--semantic", default="always", show_default=True, type=click.Choice(["always", "auto", "never"]))
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@json_option
def search(
    vaults: tuple[str, ...],
    query: str,
    system: str,
    weights: str | None,
    limit: int | None,
    filters: tuple[str, ...],
    mode: str,
    tags: tuple[str, ...],
    domain: str,
    priorities: tuple[str, ...],
    scopes: tuple[str, ...],
    semantic: str,
    explain: bool,
    as_json: bool,
) -> None:
    """Search a vault, or several as tiers of one memory.

    A tier is named by its file, agent.db is the tier agent, or written TIER=FILE.
    """
    from steelyard.query import Query
    from steelyard_eval.commands.arguments import parse_filters
    from steelyard_eval.terminal import hits
    from steelyard_eval.vaults.read import open_searcher

    with open_searcher(vaults, system, weights, limit, priorities, scopes) as searcher:
        asked = Query(query, filters=parse_filters(filters), tags=tags, domain=domain)
        result = searcher.search(asked, semantic=semantic)
        shown = [searcher.system.showing.show(hit, result, mode) for hit in result.hits]
        trees = [result.explain(hit) for hit in result.hits] if explain else []
        for text in result.notes:
            note(text)
        document = {
            "system": searcher.config.name,
            "strategy": str(result.strategy),
            "embedding_calls": result.embedding_calls,
            "degraded": result.degraded,
            "notes": list(result.notes),
            "hits": shown,
        }
        if len(vaults) > 1:
            document["tiers"] = [hit.entry.vault for hit in result.hits]  # where each hit can be read
    text = hits(result.hits)
    if explain:
        document["explanations"] = [tree.to_json() for tree in trees]
        text += "".join(f"\n\n{hit.entry.id}\n{tree}" for hit, tree in zip(result.hits, trees, strict=True))
    put(document, as_json, text)


@click.command()
@click.argument("vault", type=click.Path())
@click.argument("ids", nargs=-1, required=True)
@scope_option
@json_option
def get(vault: str, ids: tuple[str, ...], scopes: tuple[str, ...], as_json: bool) -> None:
    """Whole entries by id, details included."""
    from steelyard_eval.vaults.read import read_entries

    records = read_entries(vault, ids, scopes)
    lines = [json.dumps(record, indent=2, sort_keys=True) for record in records]
    put({"entries": records}, as_json, "\n".join(lines))


@click.command()
@click.argument("vault", type=click.Path())
@click.argument("query", default="")
@system_option
@click.option("--limit", type=click.IntRange(1, 10_000), default=10, show_default=True)
@filter_option
@click.option("--semantic", type=click.Choice(["always", "auto", "never"]), help="The system's own by default.")
@click.option("--topup/--no-topup", default=None, help="Fill up with recent entries; the system's own by default.")
@scope_option
@json_option
def context(
    vault: str,
    query: str,
    system: str,
    limit: int,
    filters: tuple[str, ...],
    scopes: tuple[str, ...],
    semantic: str | None,
    topup: bool | None,
    as_json: bool,
) -> None:
    """Relevant entries, filled up with recent ones; only recent ones without a QUERY."""
    from steelyard_eval.commands.arguments import parse_filters
    from steelyard_eval.terminal import hits
    from steelyard_eval.vaults.read import open_searcher

    with open_searcher([vault], system, None, limit, scopes=scopes) as searcher:
        found, total = searcher.context(query, parse_filters(filters), semantic=semantic, topup_recent=topup)
        shown = [searcher.system.showing.present(hit) for hit in found]
    put({"total": total, "entries": shown}, as_json, f"{hits(found)}\n{len(shown)} of {total} entries")


@click.command(name="list")
@click.argument("vault", type=click.Path())
@click.option("--limit", type=click.IntRange(1), help="How many; all by default.")
@filter_option
@scope_option
@json_option
def list_(vault: str, limit: int | None, filters: tuple[str, ...], scopes: tuple[str, ...], as_json: bool) -> None:
    """Every entry that passes the filters, newest first: complete, and not ranked by any query."""
    from steelyard_eval.commands.arguments import parse_filters
    from steelyard_eval.terminal import listing
    from steelyard_eval.vaults.read import list_entries

    entries, total = list_entries(vault, parse_filters(filters), limit, scopes)
    document = {"total": total, "entries": [entry.to_json() for entry in entries]}
    put(document, as_json, f"{listing(entries)}\n{len(entries)} of {total} entries")


COMMANDS = (list_, index, reindex, search, get, context)
