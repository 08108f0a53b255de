"""The commands search, context, get and list: what reads vault files."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from steelyard.base.errors import shown
from steelyard.base.escape import visible
from steelyard.base.extensions import extension
from steelyard.feedback.log import FeedbackLog
from steelyard.finish import Cut
from steelyard.fusion import progress as layer_progress
from steelyard.live.search import Searcher
from steelyard.memory.query import Query
from steelyard.results import SearchResult
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.contenders import DEFAULT, by_option
from steelyard_eval.cli.commands.options import (
    Handed,
    filter_option,
    hnsw_option,
    json_option,
    limit_option,
    put,
    scope_option,
    tenant_option,
)
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.cli.commands.typed_query import QueryCommand
from steelyard_eval.cli.found_text import hits, listing, scan
from steelyard_eval.vaults.arguments import parse_filters, parse_weights, vault_file
from steelyard_eval.vaults.read import RankedBy, list_entries, open_searcher, read_entries, record_of

MODES = "full: the system's own fields and the signals behind each score; scan: title, snippet and size."
CONTENT = "With --json: also the whole texts, where the system's results lack them (Cortex-Mem)."
MODEL = "Search the vectors of this model; by default the weights file's, else the vault's first."
STRATEGY = "Rank by this strategy, over all retrievers or those of --system, as in `steelyard compare`."
WEIGHT = "Change the weight of a term of the strategy, such as recency=0.2 (MoltNet: w_recency=0.2); repeatable."
INTENT = "The intent of the query, which selects the configuration's strategy for it (by_intent)."
CONFIGURED = "By default as in the weights file (context), else the system's own setting."
PRIORITIES = "Weight of a tier; the system's own by default (Soleri: agent 1, project 0.8, team 0.6, else 0.5)."
THRESHOLD = "How similar results are at least, -1 to 1 (Cortex-Mem); its own, by the query's intent, by default."
DETECT = "Whether an intent that is not named is read from the query; without, it is the system's usual one."
DIRECT = (
    "Compare every layer of everything with the query, without abstracts first (Cortex-Mem's semantic_search)."
)
DIMENSION = "Only memories of this dimension: resources, user, agent or session (Cortex-Mem)."
REWRITE = "Let the model at LLM_BASE_URL rewrite the query before it is embedded."
LOG = "Add the list to this feedback log, to which `steelyard act` adds acts, for `steelyard learn`."

model_option = click.option("--model", default="", metavar="MODEL", help=MODEL)
weight_option = click.option("--weight", "changed", multiple=True, metavar="NAME=NUMBER", help=WEIGHT)


@click.command(cls=QueryCommand)
@click.argument("vaults", metavar="VAULT...", nargs=-1, required=True, type=click.Path())
@click.argument("query")
@by_option
@click.option("--strategy", default="", type=completion.STRATEGY, help=STRATEGY)
@weight_option
@limit_option
@filter_option
@click.option("--mode", default="full", show_default=True, type=click.Choice(["scan", "full"]), help=MODES)
@click.option("--content", is_flag=True, help=CONTENT)
@click.option("--tag", "tags", multiple=True, help="A tag of the query, for the signal tags; repeatable.")
@click.option("--domain", default="", help="The query's domain, for the signal domain.")
@click.option("--intent", default="", help=INTENT)
@click.option("--priority", "priorities", multiple=True, metavar="TIER=NUMBER", help=PRIORITIES)
@scope_option
@click.option("--semantic", default="always", show_default=True, type=click.Choice(["always", "auto", "never"]))
@model_option
@click.option("--detect-intent/--no-detect-intent", default=True, help=DETECT)
@click.option("--threshold", type=float, help=THRESHOLD)
@click.option("--direct", is_flag=True, help=DIRECT)
@click.option("--dimension", default="", metavar="NAME", help=DIMENSION)
@click.option("--rewrite", is_flag=True, help=REWRITE)
@tenant_option
@hnsw_option
@click.option("--log", "log", type=click.Path(), metavar="LOG", help=LOG)
@click.option("--client", default="", help="Who searches, as a name that stays the same; for --log.")
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@json_option
def search(
    vaults: tuple[str, ...],
    query: str,
    by: str,
    strategy: str,
    changed: tuple[str, ...],
    limit: int | None,
    filters: tuple[str, ...],
    mode: str,
    content: bool,
    tags: tuple[str, ...],
    domain: str,
    intent: str,
    semantic: str,
    detect_intent: bool,
    direct: bool,
    dimension: str,
    rewrite: bool,
    tenant: str | None,
    log: str | None,
    client: str,
    explain: bool,
    as_json: bool,
    **options: Handed,
) -> None:
    """Search a vault, or several as tiers of one memory.

    A tier has the name of its file (agent.db is the tier agent), or is written TIER=FILE.
    """
    if direct and (explain or len(vaults) > 1):
        raise click.UsageError("--direct lists layers of one vault by their cosines; leave --explain out")
    numbers = parse_weights(changed)
    opened = open_searcher(
        [vault_file(path, tenant) for path in vaults],
        RankedBy.of(by or ("plain" if strategy else DEFAULT), strategy),
        limit,
        changed=numbers,
        rewrite=rewrite,
        direct=direct,
        **options,
    )
    with opened as searcher:
        scope = parse_filters(filters)
        if dimension:
            scope &= extension("cortex_client").SearchOptions(dimension=dimension).filters()  # it loads asyncio
        named = intent or ("" if detect_intent else searcher.system.reading.classify(""))
        asked = Query(query, filters=scope, tags=tags, domain=domain, intent=named)
        result = searcher.search(asked, semantic=semantic)
        showing = searcher.system.showing
        shown = [showing.show(hit, result, mode, content) for hit in result.hits]
        if direct and showing.rows is not None:
            shown = showing.rows(result, content)
        trees = [result.explain(hit) for hit in result.hits] if explain else []
        notes = [*result.notes, *_search_notes(searcher, result, intent)]
        document = {
            "system": searcher.config.name,
            "strategy": str(result.strategy),
            "embedding_calls": result.embedding_calls,
            "degraded": result.degraded,
            "notes": notes,
            "hits": shown,
        }
        if result.query.intent:
            document["intent"] = {"name": result.query.intent, "confidence": result.query.confidence}
        if (progress := result.progress) is not None:
            document["progress"] = progress.summary()
        if rewrite and result.query is not None:
            document["embedded"] = result.query.embedded
        if log is not None:
            document["query_id"] = FeedbackLog(log, searcher.config).shown(result, client)
            notes.append(f"logged as {document['query_id']}: steelyard act {log} {document['query_id']} ENTRY_ID")
        if len(vaults) > 1:
            document["tiers"] = [hit.entry.vault for hit in result.hits]  # where each hit can be read
    for line in notes:
        note(line)
    text = (scan if mode == "scan" else hits)(result.hits)
    if explain:
        document["explanations"] = [tree.to_json() for tree in trees]
        text += "".join(
            f"\n\n{visible(hit.entry.id)}\n{tree}" for hit, tree in zip(result.hits, trees, strict=True)
        )
    put(document, as_json, text)


def _search_notes(searcher: Searcher, result: SearchResult, intent: str) -> Iterator[str]:
    """Notes on an intent without a strategy, and on a list that is longer than its limit."""
    config = searcher.config
    progress = result.progress
    if result.emptied:
        yield f"nothing found: {result.emptied}"
    elif progress is not None and progress.asked[0] and progress.step[0] == layer_progress.LAST:
        yield "no abstract reaches any step of the ladder, so all details were searched"
    if intent and intent not in config.intents:
        has = f"only for {', '.join(sorted(config.intents))}" if config.intents else "for no intent at all"
        yield f"{config.name} has another strategy {has}, so the default answered for {shown(intent)}"
    guard = next((stage for stage in config.finish if isinstance(stage, Cut) and stage.all_below), None)
    if guard is not None and len(result.hits) > config.limit:
        yield (
            f"{len(result.hits)} hits, not {config.limit}: {config.name} keeps a list whole when it has fewer "
            f"than {guard.all_below} candidates and the limit would drop more than half of them ({guard})"
        )


@click.command()
@click.argument("vault", type=click.Path())
@click.argument("ids", nargs=-1, required=True)
@scope_option
@tenant_option
@json_option
def get(vault: str, ids: tuple[str, ...], scopes: tuple[str, ...], tenant: str | None, as_json: bool) -> None:
    """Print whole entries by id, including details."""
    records = read_entries(vault_file(vault, tenant), ids, scopes)
    lines = [json.dumps(record, indent=2, sort_keys=True) for record in records]
    put({"entries": records}, as_json, "\n".join(lines))


@click.command(cls=QueryCommand)
@click.argument("vault", type=click.Path())
@click.argument("query", default="")
@by_option
@weight_option
@click.option("--limit", type=click.IntRange(1, 10_000), help="How many entries; the weights file's, or 10.")
@filter_option
@click.option("--semantic", type=click.Choice(["always", "auto", "never"]), help=CONFIGURED)
@click.option("--topup/--no-topup", default=None, help=f"Fill up with recent entries. {CONFIGURED}")
@scope_option
@model_option
@tenant_option
@json_option
def context(
    vault: str,
    query: str,
    by: str,
    changed: tuple[str, ...],
    limit: int | None,
    filters: tuple[str, ...],
    scopes: tuple[str, ...],
    semantic: str | None,
    topup: bool | None,
    model: str,
    tenant: str | None,
    as_json: bool,
) -> None:
    """Print relevant entries, filled up with recent ones; without a QUERY, only recent ones."""
    numbers = parse_weights(changed)
    vault = vault_file(vault, tenant)
    ranked = RankedBy.of(by or DEFAULT)
    size = limit or (None if ranked.config else 10)
    with open_searcher([vault], ranked, size, scopes=scopes, model=model, changed=numbers) as searcher:
        entries, total = searcher.context(query, parse_filters(filters), semantic=semantic, topup_recent=topup)
        shown = [searcher.system.showing.show(hit, None, content=True) for hit in entries]
    put({"total": total, "entries": shown}, as_json, f"{hits(entries)}\n{len(shown)} of {total} entries")


@click.command(name="list")
@click.argument("vault", type=click.Path())
@click.option("--limit", type=click.IntRange(1), help="How many; all by default.")
@filter_option
@scope_option
@tenant_option
@json_option
def list_(
    vault: str,
    limit: int | None,
    filters: tuple[str, ...],
    scopes: tuple[str, ...],
    tenant: str | None,
    as_json: bool,
) -> None:
    """List every entry that passes the filters, newest first, without ranking."""
    entries, total = list_entries(vault_file(vault, tenant), parse_filters(filters), limit, scopes)
    document = {"total": total, "entries": [record_of(entry) for entry in entries]}
    put(document, as_json, f"{listing(entries)}\n{len(entries)} of {total} entries")
