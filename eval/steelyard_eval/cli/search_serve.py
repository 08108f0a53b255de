"""The commands that search a vault: search, serve."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from steelyard.base.errors import ConfigError, visible
from steelyard_eval.cli.options import Handed, command, note, pairs, put, tell, wants_json

if TYPE_CHECKING:
    from steelyard_eval.vaults.read import RankedBy

USUAL_SYSTEM = "echovault"


def ranked_by(*, system: str = "", weights: str = "", strategy: str = "", default: str = USUAL_SYSTEM) -> RankedBy:
    """What ranks.

    Parameters
    ----------
    system: Rank by this system or strategy (default: echovault). A system is NAME or NAME:PROFILE; retriever
        parameters may follow, as in 'spec_kit[graph.hops=1]'.
    weights: Rank by this weights file.
    strategy: Rank by this strategy, over all retrievers or those of --system.
    """
    from steelyard_eval.vaults.read import RankedBy

    if system and weights:
        raise click.UsageError("--system and --weights exclude each other; leave one out")
    return RankedBy.of(system or weights or ("plain" if strategy else default), strategy)


def narrowed(
    *,
    filter_: tuple[str, ...] = (),
    scope: tuple[str, ...] = (),
    tenant: str | None = None,
    set_: tuple[str, ...] = (),
) -> None:
    """What is seen of a vault, and how it is searched.

    Parameters
    ----------
    filter_: Return only entries that pass (also !=, >=, >, <=, <). Repeat a field to accept any of its values.
        Repeat tags to require all.
    scope: Show only these entries, such as vault=notes or tenant=team (default: all). Repeat it to show more.
    tenant: Use only this tenant's vault; VAULT is then the folder of all tenants' vaults.
    set_: Set a weight (recency=0.2), a tier's weight (priority.team=0.6), or an option: mode, content, tags,
        domain, detect_intent, semantic, topup, model, hnsw, threshold, direct, dimension, rewrite, adaptive.
    """


@command(ranked_by, narrowed, leave="default", typed=True)
def search(
    vault: tuple[str, ...],
    query: str,
    *,
    limit: int | None = None,
    intent: str = "",
    log: str | None = None,
    client: str = "",
    explain: bool = False,
    tenant: str | None = None,
    **options: Handed,
) -> None:
    """Search a vault, or several as tiers of one memory.

    A tier has the name of its file: agent.db is the tier agent. To name a tier, write TIER=FILE.

    Parameters
    ----------
    limit: Number of results.
    intent: Intent of the query; it selects the configuration's strategy for that intent (by_intent).
    log: Append the results to this feedback log. `steelyard vault act` adds actions, `steelyard learn` reads it.
    client: Stable name of the person or program that searches, for --log.
    explain: Show how each score is computed.

    Examples
    --------
    steelyard search memory.db "how do we rotate keys" --limit 5
    steelyard search memory.db "rotate keys" --weights search-weights.json --explain
    steelyard search agent.db team=shared/team.db "rotate keys" --system soleri --set priority.team=0.6
    """
    from steelyard.base.extensions import extension
    from steelyard.feedback import FeedbackLog
    from steelyard.memory.query import Query
    from steelyard_eval.cli.vault_text import hits, search_notes
    from steelyard_eval.vaults.arguments import Settings, parse_filters, vault_file
    from steelyard_eval.vaults.read import open_searcher

    own = Settings.of(pairs(options["set_"], "--set"))
    if own.direct and (explain or len(vault) > 1):
        raise click.UsageError("--set direct works with one vault and without --explain; leave out the rest")
    by = ranked_by(**{name: options[name] for name in ("system", "weights", "strategy")})
    files = [vault_file(path, tenant) for path in vault]
    with open_searcher(files, by.following(log, own.adaptive), limit, options["scope"], own) as searcher:
        scope = parse_filters(options["filter_"])
        if own.dimension:
            options_of = extension("cortex_client").SearchOptions  # it loads asyncio
            scope &= options_of(dimension=own.dimension).filters()
        named = intent or ("" if own.detect_intent else searcher.system.reading.classify("").name)
        tags = tuple(filter(None, own.tags.split(",")))
        asked = Query(query, filters=scope, tags=tags, domain=own.domain, intent=named)
        result = searcher.search(asked, semantic=own.semantic or "always")
        lacks = own.semantic != "never" and result.strategy.signals != searcher.config.effective.signals
        showing = searcher.system.showing
        shown = showing.show_all(result.hits, result, own.mode, own.content)
        if own.direct and showing.rows is not None:
            shown = showing.rows(result, own.content)
        trees = [result.explain(hit) for hit in result.hits] if explain else []
        notes = [*result.notes, *search_notes(searcher, result, intent)]
        if not (options["system"] or options["weights"] or options["strategy"]):
            notes.append(f"ranked by {USUAL_SYSTEM}, the default; name --weights or --system for another ranking")
        document: dict[str, Any] = {"system": searcher.config.name, "strategy": str(result.strategy)}
        document |= {"embedding_calls": result.embedding_calls, "degraded": result.degraded or lacks}
        document |= {"notes": notes, "hits": shown}
        if result.query.intent:
            document["intent"] = {"name": result.query.intent, "confidence": result.query.confidence}
        if (progress := result.progress) is not None:
            from steelyard_eval.compare.score_scales import summary_of  # other searches load nothing of it

            document["progress"] = summary_of(progress)
        if own.rewrite and result.query is not None:
            document["embedded"] = result.query.embedded
        if log is not None:
            document["query_id"] = FeedbackLog(log, searcher.config).shown(result, client)
            again = f": steelyard vault act {log} {document['query_id']} ENTRY_ID" if shown else ""
            notes.append(f"logged as {document['query_id']}{again}")
        if len(vault) > 1:
            document["tiers"] = [hit.entry.vault for hit in result.hits]  # where each hit can be read
    for line in notes:
        note(line)
    text = hits(result.hits, own.mode == "scan")
    if explain:
        document["explanations"] = [tree.to_json() for tree in trees]
        text += "".join(
            f"\n\n{visible(hit.entry.id)}\n{tree}" for hit, tree in zip(result.hits, trees, strict=True)
        )
    put(document, text)


@command(ranked_by, narrowed, leave="strategy default filter_")
def serve(
    vault: str,
    *,
    system: str = "",
    weights: str = "",
    log: str | None = None,
    mimic: str | None = None,
    tenant: str | None = None,
    explore: str | None = None,
    share: float = 0.5,
    client: str = "",
    referee: str | None = None,
    http: int | None = None,
    set_: tuple[str, ...] = (),
    **options: Handed,
) -> None:
    """Serve a vault to agents, as an MCP server.

    The tools are search, get and feedback, over standard input and output. The server only reads the vault. It
    reads changed files again. If a changed file is broken, it keeps serving the version before.

    Parameters
    ----------
    log: Append results, and the actions that follow, to this feedback log, for `steelyard learn`.
    mimic: Offer the tools of this memory system: echovault, cortex_mem, soleri or soleri:AGENT, moltnet, spec_kit.
    explore: Interleave results with those of this configuration. The word drawn draws weights at random.
    share: Share of searches to interleave, for --explore.
    client: Name of the client in the log (default: the name that the client sends).
    referee: Let agents tune on this data set: they look at one half of its labels; the other gives the verdict.
    http: Serve on this port of 127.0.0.1, with a token, instead of stdio.
    set_: hnsw=EF: search vectors with the HNSW index of the database, at this ef_search. adaptive=false: keep
        Soleri's weights, whatever the log says.

    Examples
    --------
    steelyard serve memory.db --weights search-weights.json --log feedback.jsonl
    steelyard serve memory.db --mimic echovault --scope project=api
    steelyard serve memory.db --log feedback.jsonl --explore search-weights.try.json --http 8377
    """
    from steelyard.base.extensions import require
    from steelyard_eval.common import extension
    from steelyard_eval.vaults.arguments import Settings, vault_file
    from steelyard_eval.workbench.workbench import load

    require("serve", "an MCP server")
    serving = extension("serve")
    face = serving.find_face(mimic)
    face = face if referee is None else serving.with_referee(face, load(referee).compare)
    if explore is not None and log is None:
        raise ConfigError("--explore needs a feedback log; add --log FILE")
    if wants_json() and http is None:
        raise click.UsageError("--json needs --http, since the client reads standard output; add --http")
    if system and weights:
        raise click.UsageError("--system and --weights exclude each other; leave one out")
    own = Settings.of(pairs(set_, "--set", ["hnsw", "adaptive"]))
    served = serving.Served(
        vault_file(vault, tenant),
        options["scope"],
        system or weights or face.system,
        share if explore is not None else 0.0,
        None if explore == "drawn" else explore,
        own.hnsw,
        own.adaptive,
        log,
    )
    writer = None if log is None else serving.ServerLog(log, time.time)
    serving.run(served, face, writer, client, http, _say_address)


def _say_address(address: str, token: str, new: bool) -> None:
    if wants_json():
        put({"address": address, "token": token}, "")
        return
    note(f"serving {address} to who sends the header Authorization: Bearer TOKEN")
    if new:
        tell(f"the token of this run is {token}; set STEELYARD_SERVE_TOKEN for one that stays")
