"""What the commands read of vault files: searches over one or several, listings, entries by id."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from steelyard.config import SearchConfig
from steelyard.entry import Entry
from steelyard.errors import ConfigError, DataError, nearest, shown
from steelyard.filters import Filters
from steelyard.finish import reranked
from steelyard.rerank.settings import open_reranker
from steelyard.search import Searcher
from steelyard.stores.federation import Federation, Tier
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard_eval.commands.arguments import parse_priorities, parse_scopes, parse_tier
from steelyard_eval.vaults import vault_embedder


@contextmanager
def open_searcher(
    paths: Sequence[str],
    system: str,
    weights: str | None,
    limit: int | None,
    priorities: Sequence[str] = (),
    scopes: Sequence[str] = (),
) -> Iterator[Searcher]:
    """A searcher over a vault file, or over several as tiers; a weights file beats the system's own configuration.

    Queries are embedded by the embedder of each vault, and compared with that vault's vectors. A weights file
    that names a model is for vectors of that model: tiers with others are found by keywords.
    """
    config = None if weights is None else SearchConfig.load(weights)
    names = dict(parse_tier(path) for path in paths)
    if len(names) < len(paths):
        raise ConfigError(f"two of {', '.join(map(shown, paths))} are the same tier; name one as TIER=FILE")
    rule = find_system(config.name if config else system).federation
    numbers = parse_priorities(priorities, {*names, *rule.priorities})
    with ExitStack() as stack:
        vaults = {name: stack.enter_context(Vault(path)) for name, path in names.items()}
        for vault in vaults.values():
            stack.enter_context(vault.snapshot())
        embedders = [own for vault in vaults.values() if (own := vault_embedder(vault)) is not None]
        if config is None:
            models = {own.model for own in embedders}
            config = find_system(system).config(limit, models.pop() if len(models) == 1 else "", os.environ)
        elif limit is not None:
            config = config.with_limit(limit)
        tiers = [Tier(name, vault, numbers.get(name)) for name, vault in vaults.items()]
        federation = Federation(tiers, rule)
        store = federation if len(tiers) > 1 else tiers[0].store
        reranker = open_reranker(config.rerank, os.environ) if reranked(config.finish) else None
        yield Searcher(store, config, embedders, visible=parse_scopes(scopes), reranker=reranker)


def list_entries(
    path: str, filters: Filters, limit: int | None, scopes: Sequence[str] = ()
) -> tuple[list[Entry], int]:
    """The entries in scope, all or the first `limit`, newest first and ties by id; and how many there are."""
    inside = filters & parse_scopes(scopes)
    with Vault(path) as vault, vault.snapshot():
        return vault.recent(inside, -1 if limit is None else limit), vault.count(inside)


def read_entries(path: str, ids: Sequence[str], scopes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Whole entries by id, as JSON values; DataError names every id the vault does not hold for this caller."""
    visible = parse_scopes(scopes)
    with Vault(path) as vault, vault.snapshot():
        seen = vault.within(ids, visible)
        found = vault.get([id_ for id_ in ids if id_ in seen])
        missing = sorted(set(ids) - {entry.id for entry in found})
        if missing:
            known = [entry.id for entry in vault.entries(visible)]
            problems = [
                f"no entry {shown(id_)}" + (nearest(id_, known) if len(known) < 1000 else "") for id_ in missing
            ]
            raise DataError(f"{path}: " + "; ".join(problems))
        return [entry.to_json() for entry in found]
