"""Reads vault files for the commands: searches over one or several, listings, entries by id."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Any

from steelyard.base.errors import ConfigError, DataError, nearest, shown
from steelyard.base.fields import TIME_FIELDS, format_time
from steelyard.config.search_config import SearchConfig
from steelyard.embedders.embed import Embedder
from steelyard.feedback.explore import Explore
from steelyard.finish import reranked
from steelyard.fusion import parse_strategy
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.filters import Filters
from steelyard.net.chat import URL, chat_of
from steelyard.rerank.settings import open_reranker
from steelyard.stores.base import Readable
from steelyard.stores.federation import Federation, Tier
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.systems.cortex_mem.rewriting import Rewriter
from steelyard_eval.vaults import vault_embedder, visible_vault
from steelyard_eval.vaults.arguments import parse_priorities, parse_scopes, parse_tier


@contextmanager
def open_searcher(
    paths: Sequence[str],
    system: str,
    weights: str | None,
    limit: int | None,
    priorities: Sequence[str] = (),
    scopes: Sequence[str] = (),
    *,
    model: str = "",
    changed: Mapping[str, float] = MappingProxyType({}),
    threshold: float | None = None,
    rewrite: bool = False,
    strategy: str = "",
    direct: bool = False,
    explore: Explore | None = None,
) -> Iterator[Searcher]:
    """Open a searcher over a vault file, or over several as tiers; a weights file overrides the system.

    Queries are embedded by the embedder of each vault, and compared with that vault's vectors. A weights file
    that names a model is for vectors of that model: tiers with others are found by keywords. The same holds
    for `model`, which beats it. A vault with several models is searched by the first one, or by one that all
    tiers have. `changed` are weights that replace those of the configuration. `threshold` is how similar results
    must be, for a system that asks that. With `rewrite` a language model rewrites queries. `strategy` replaces the
    system's own, `direct` bypasses it where the system has such a way. `explore` interleaves another ranking in a
    share of the searches.
    """
    if strategy and (weights is not None or threshold is not None):
        raise ConfigError("a strategy has its own weights and thresholds; leave --weights and --threshold out")
    if direct and (strategy or weights is not None):
        raise ConfigError("a direct search has no strategy; leave --strategy and --weights out")
    config = None if weights is None else SearchConfig.load(weights)
    if config is not None and threshold is not None:
        raise ConfigError("a weights file has its thresholds in its strategy; leave --threshold out, or edit that")
    names = dict(parse_tier(path) for path in paths)
    if len(names) < len(paths):
        raise ConfigError(f"two of {', '.join(map(shown, paths))} are the same tier; name one as TIER=FILE")
    rule = find_system(config.name if config else system).federation
    numbers = parse_priorities(priorities, {*names, *rule.priorities})
    visible = parse_scopes(scopes)
    with ExitStack() as stack:
        vaults = {name: stack.enter_context(_seen(path, visible)) for name, path in names.items()}
        embedders = _embedders(list(vaults.values()), model or _model_of(config, vaults.values()))
        if config is None:
            models = {own.model for own in embedders}
            config = find_system(system).config(
                limit, models.pop() if len(models) == 1 else "", os.environ, threshold=threshold, direct=direct
            )
            config = config.with_strategy(parse_strategy(strategy)) if strategy else config
        elif limit is not None:
            config = config.with_limit(limit)
        config = config.with_weights(changed) if changed else config
        tiers = [Tier(name, vault, numbers.get(name)) for name, vault in vaults.items()]
        federation = Federation(tiers, rule)
        store = federation if len(tiers) > 1 else tiers[0].store
        reranker = open_reranker(config.rerank, os.environ) if reranked(config.finish) else None
        rewriter = _rewriter(store) if rewrite else None
        yield Searcher(store, config, embedders, reranker=reranker, rewriter=rewriter, explore=explore)


def _rewriter(store: Readable) -> Rewriter:
    """What rewrites queries, with the profile that the store holds; ConfigError without an endpoint."""
    chat = chat_of(os.environ)
    if chat is None:
        raise ConfigError(f"{URL} names no endpoint for --rewrite; set it, or leave --rewrite out")
    return Rewriter.of(chat, store)


@contextmanager
def _seen(path: str, visible: Filters) -> Iterator[Vault]:
    """One state of a vault file, or of what a caller may see of it."""
    with Vault(path) as vault, vault.snapshot(), visible_vault(vault, visible) as seen:
        yield seen


def _model_of(config: SearchConfig | None, vaults: Iterable[Vault]) -> str:
    """The model that a configuration names, if one of the vaults has it; else empty."""
    models = {settings.model for settings in config.retrievers.values()} if config else set()
    return next((name for vault in vaults for name in vault.models() if name in models), "")


def _embedders(vaults: Sequence[Vault], model: str) -> list[Embedder]:
    """The embedders of the vaults that have the model; without one, of a model that all share, else their own."""
    held = [vault.models() for vault in vaults]
    if model and not any(model in names for names in held):
        vault_embedder(vaults[0], model)  # refuses it by name
    some = [names for names in held if names]
    shared = next((name for name in (some[0] if some else ()) if all(name in names for names in some)), "")
    wanted = model or shared
    asked = [(vault, wanted if wanted in names else "") for vault, names in zip(vaults, held, strict=True)]
    opened = (vault_embedder(vault, name) for vault, name in asked if name or not model)
    return [embedder for embedder in opened if embedder is not None]


def list_entries(
    path: str, filters: Filters, limit: int | None, scopes: Sequence[str] = ()
) -> tuple[list[Entry], int]:
    """List the entries in scope, newest first and ties by id, up to `limit`; return them and the total."""
    with Vault(path) as vault, vault.snapshot():
        seen = vault.seen_by(parse_scopes(scopes))
        return seen.recent(filters, -1 if limit is None else limit), seen.count(filters)


def read_entries(path: str, ids: Sequence[str], scopes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Read whole entries by id as JSON values; DataError lists every id that this caller cannot see."""
    with Vault(path) as vault, vault.snapshot():
        seen = vault.seen_by(parse_scopes(scopes))
        found = seen.get(ids)
        missing = sorted(set(ids) - {entry.id for entry in found})
        if missing:
            known = [entry.id for entry in seen.entries()]
            problems = [
                f"no entry {shown(id_)}" + (nearest(id_, known) if len(known) < 1000 else "") for id_ in missing
            ]
            raise DataError(f"{path}: " + "; ".join(problems))
        return [record_of(entry) for entry in found]


def record_of(entry: Entry) -> dict[str, Any]:
    """Return the fields of an entry that are not empty, as JSON values; times as ISO 8601 in UTC."""
    record = entry.to_json()
    return record | {name: format_time(record[name]) for name in TIME_FIELDS & record.keys()}
