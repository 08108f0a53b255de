"""Reads vault files for the commands: searches over one or several, listings, entries by id."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import MappingProxyType
from typing import Any

from steelyard.base.errors import ConfigError, DataError, nearest, shown
from steelyard.base.fields import TIME_FIELDS, format_time
from steelyard.config.search_config import SearchConfig
from steelyard.embedders.embed import Embedder
from steelyard.feedback.team_draft import Explore
from steelyard.finish import reranked
from steelyard.fusion import parse_strategy
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.filters import Filters
from steelyard.net.chat import URL, chat_of
from steelyard.rerank.settings import open_reranker
from steelyard.stores.base import Readable
from steelyard.stores.federation import Federation, Tier
from steelyard.stores.opened import open_vault
from steelyard.stores.postgres import PostgresVault
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.systems.cortex_mem.rewriting import Rewriter
from steelyard_eval.vaults import vault_embedder, visible_vault
from steelyard_eval.vaults.arguments import parse_priorities, parse_scopes, parse_tier

MOST_LIMITS = 64
"""Numbers of results whose searchers are kept."""


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
            config = _of_system(system, limit, embedders, threshold, direct)
            config = config.with_strategy(parse_strategy(strategy)) if strategy else config
        elif limit is not None:
            config = config.with_limit(limit)
        config = config.with_weights(changed) if changed else config
        tiers = [Tier(name, vault, numbers.get(name)) for name, vault in vaults.items()]
        together = Federation(tiers, rule)  # it refuses bad priorities of a single tier, too
        store = together if len(tiers) > 1 else tiers[0].store
        yield _searcher(store, config, embedders, _rewriter(store) if rewrite else None, explore)


class OpenVault:
    """A vault that is searched again and again, by several threads; `search` sees a single state of it.

    Parameters
    ----------
    path, scopes : str, sequence of str
        The file, and what the caller may see of it.
    system : str
        How it is searched, unless there is a weights file.
    config, explore : SearchConfig or None, Explore or None
        The weights, and what is interleaved.
    """

    def __init__(
        self, path: str, scopes: Sequence[str], system: str, config: SearchConfig | None, explore: Explore | None
    ) -> None:
        self._system, self._config, self._explore = system, config, explore
        with ExitStack() as stack:
            self.file = stack.enter_context(open_vault(path))
            self._seen = stack.enter_context(visible_vault(self.file, parse_scopes(scopes)))
            self._embedders = _embedders([self._seen], _model_of(config, [self._seen]))
            self._searchers: dict[int | None, Searcher] = {}
            self._copied = self._seen is not self.file
            self._opened_at = self._epoch()
            self.searcher(None)
            self._stack = stack.pop_all()

    def searcher(self, limit: int | None) -> Searcher:
        """A searcher for a number of results, the same as `open_searcher` gives; kept for the next one."""
        known = self._searchers.get(limit)
        if known is None:
            config = self._config
            if config is None:
                config = _of_system(self._system, limit, self._embedders)
            elif limit is not None:
                config = config.with_limit(limit)
            known = _searcher(self._seen, config, self._embedders, None, self._explore)
            if len(self._searchers) < MOST_LIMITS:
                self._searchers[limit] = known
        return known

    def outdated(self) -> bool:
        """Whether a database has changed in what is not followed while it is open: models, a part that is seen."""
        return self._epoch() != self._opened_at

    def _epoch(self) -> tuple[int, int]:
        if not isinstance(self.file, PostgresVault):
            return 0, 0
        revision = self.file.revision()
        return self.file.models_revision, revision if self._copied else 0

    def snapshot(self) -> AbstractContextManager[None]:
        """One state of what may be seen, for this thread."""
        return self._seen.snapshot()

    def close(self) -> None:
        """Close the file for every thread."""
        self._stack.close()


def _of_system(
    system: str,
    limit: int | None,
    embedders: Sequence[Embedder],
    threshold: float | None = None,
    direct: bool = False,
) -> SearchConfig:
    """The configuration of a system over the vectors that there are."""
    models = {own.model for own in embedders}
    model = models.pop() if len(models) == 1 else ""
    return find_system(system).config(limit, model, os.environ, threshold=threshold, direct=direct)


def _searcher(
    store: Readable,
    config: SearchConfig,
    embedders: Sequence[Embedder],
    rewriter: Rewriter | None,
    explore: Explore | None,
) -> Searcher:
    """A searcher with what its configuration re-ranks by; ConfigError for a rival of another model."""
    against = explore.against if explore is not None else None
    wanted = {settings.model for settings in against.retrievers.values() if settings.model} if against else set()
    if lacking := sorted(wanted - {own.model for own in embedders}):
        raise ConfigError(
            f"what is interleaved ranks by vectors of {shown(lacking[0])}, which are not those of the other "
            "ranking; interleave weights files of one model"
        )
    reranker = open_reranker(config.rerank, os.environ) if reranked(config.finish) else None
    return Searcher(store, config, embedders, reranker=reranker, rewriter=rewriter, explore=explore)


def _rewriter(store: Readable) -> Rewriter:
    """What rewrites queries, with the profile that the store holds; ConfigError without an endpoint."""
    chat = chat_of(os.environ)
    if chat is None:
        raise ConfigError(f"{URL} names no endpoint for --rewrite; set it, or leave --rewrite out")
    return Rewriter.of(chat, store)


@contextmanager
def _seen(path: str, visible: Filters) -> Iterator[Vault]:
    """One state of a vault file, or of what a caller may see of it."""
    with open_vault(path) as vault, vault.snapshot(), visible_vault(vault, visible) as seen:
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
    with open_vault(path) as vault, vault.snapshot():
        seen = vault.seen_by(parse_scopes(scopes))
        return seen.recent(filters, -1 if limit is None else limit), seen.count(filters)


def read_entries(path: str, ids: Sequence[str], scopes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Read whole entries by id as JSON values; DataError lists every id that this caller cannot see."""
    with open_vault(path) as vault, vault.snapshot():
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
