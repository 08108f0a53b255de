"""Reads vault files for the commands: searches over one or several, listings, entries by id."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from steelyard.base.errors import ConfigError, DataError, nearest, quote
from steelyard.base.extensions import extension
from steelyard.config import SearchConfig, open_reranker
from steelyard.embedders.embed import Embedder
from steelyard.feedback import Explore
from steelyard.finish import reranked
from steelyard.fusion import parse_strategy
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import Filters
from steelyard.stores.base import ReadableStore
from steelyard.stores.federation import Federation, Tier
from steelyard.stores.sqlite import Vault, open_vault
from steelyard.systems import find_system
from steelyard.systems.base import record_of
from steelyard_eval.common.configurations import read_configuration
from steelyard_eval.vaults import vault_embedder, visible_vault
from steelyard_eval.vaults.arguments import Settings, parse_scopes, parse_tier

MAX_KEPT_SEARCHERS = 64
PLAIN = Settings()
Explored = tuple[float, "RankedBy | None"]
"""The share of searches in which another ranking is interleaved, and which one; drawn weights without one."""


@dataclass(frozen=True)
class RankedBy:
    """What ranks: a system, with another strategy where one is named, or the configuration of a weights file."""

    system: str
    strategy: str = ""
    config: SearchConfig | None = None
    follower: Any = None
    """What moves its weights by the acts of a log, a LogFollower of the extension `adaptive`."""

    @classmethod
    def of(cls, text: str, strategy: str = "") -> "RankedBy":
        """Read a configuration; `strategy` replaces that of a system. ConfigError for what is none."""
        named = read_configuration(text)
        given = str(named.given)
        if strategy and named.kind != "system":
            raise ConfigError(f"{named.label} has a strategy of its own; leave --strategy out")
        if named.kind == "weights":
            return cls("", "", SearchConfig.load(given))
        return cls(given, strategy) if named.kind == "system" else cls("plain", given)

    def following(self, log: str | None, asked: bool | None) -> "RankedBy":
        """The same, moved by the acts of a log: by default a system's own weights, where its document has a rule.

        ConfigError where this is `asked` for without a rule or a log.
        """
        ruled = find_system(self.config.name if self.config else self.system).adaptive is not None
        if asked and not (ruled and log):
            raise ConfigError("adaptive needs --log FILE, and a system whose document has such a rule: soleri")
        moves = ruled and not (self.strategy or self.config) if asked is None else asked
        return replace(self, follower=extension("adaptive").LogFollower(log)) if moves and log else self

    def built(self, limit: int | None, embedders: Sequence[Embedder], settings: Settings = PLAIN) -> SearchConfig:
        """The configuration over the vectors that there are."""
        if self.config is not None:
            return self.config if limit is None else self.config.with_limit(limit)
        models = {embedder.model for embedder in embedders}
        model = models.pop() if len(models) == 1 else ""
        made = find_system(self.system).config(
            limit, model, os.environ, threshold=settings.threshold, direct=settings.direct
        )
        return made.with_strategy(parse_strategy(self.strategy)) if self.strategy else made


@contextmanager
def open_searcher(
    paths: Sequence[str], by: RankedBy, limit: int | None, scopes: Sequence[str] = (), settings: Settings = PLAIN
) -> Iterator[Searcher]:
    """Open a searcher over a vault file, or over several as tiers; `by` says what ranks.

    Queries are embedded by the embedder of each vault, and compared with that vault's vectors. A weights file
    that names a model is for vectors of that model: tiers with others are found by keywords. The same holds
    for the model of `settings`, which beats it. A vault with several models is searched by the first one, or
    by one that all tiers have. Weights that are set are moved by nothing.
    """
    if (by.strategy or by.config) and (settings.threshold is not None or settings.direct):
        raise ConfigError("a strategy has its own weights and thresholds; leave threshold and direct out")
    names = dict(parse_tier(path) for path in paths)
    if len(names) < len(paths):
        raise ConfigError(f"two of {', '.join(map(quote, paths))} are the same tier; name one as TIER=FILE")
    rule = find_system(by.config.name if by.config else by.system).federation
    for tier in settings.priorities.keys() - {*names, *rule.priorities}:
        raise ConfigError(f"priority {quote(tier)} names no tier{nearest(tier, {*names, *rule.priorities})}")
    visible = parse_scopes(scopes)
    with ExitStack() as stack:
        vaults = {name: stack.enter_context(_seen(path, visible, settings.hnsw)) for name, path in names.items()}
        embedders = _embedders(list(vaults.values()), settings.model or _model_of(by.config, vaults.values()))
        config = by.built(limit, embedders, settings)
        config = config.with_weights(settings.weights) if settings.weights else config
        tiers = [Tier(name, vault, settings.priorities.get(name)) for name, vault in vaults.items()]
        together = Federation(tiers, rule)  # it refuses bad priorities of a single tier, too
        store = together if len(tiers) > 1 else tiers[0].store
        rewriter = None
        if settings.rewrite:
            if (chat := extension("network").chat_of(os.environ)) is None:
                raise ConfigError("rewrite needs an endpoint; set LLM_BASE_URL, or leave rewrite out")
            rewriter = extension("cortex_client").Rewriter.of(chat, store)
        searcher = _searcher(store, config, embedders, rewriter)
        yield by.follower.follow(searcher) if by.follower and not settings.weights else searcher


class OpenVault:
    """A vault that is searched again and again, by several threads; `search` sees a single state of it.

    The caller may see `scopes`; `by` ranks, and `explore` is interleaved; `ef` is the `hnsw` of `open_vault`.
    """

    def __init__(
        self,
        vault: str | Vault,
        scopes: Sequence[str],
        by: RankedBy,
        explore: Explored | None,
        ef: int | None = None,
    ) -> None:
        self._by, self._explore = by, explore
        with ExitStack() as stack:
            self.file = stack.enter_context(open_vault(vault, hnsw=ef)) if isinstance(vault, str) else vault
            self._seen = stack.enter_context(visible_vault(self.file, parse_scopes(scopes)))
            self._embedders = _embedders([self._seen], _model_of(by.config, [self._seen]))
            self._searchers: dict[int | None, Searcher] = {}
            self._copied = self._seen is not self.file
            self._opened_at = self._epoch()
            self.searcher(None)
            self._stack = stack.pop_all()

    def searcher(self, limit: int | None) -> Searcher:
        """A searcher for a number of results, the same as `open_searcher` gives; kept for the next one."""
        known = self._searchers.get(limit)
        if known is None:
            config = self._by.built(limit, self._embedders)
            known = _searcher(self._seen, config, self._embedders, explore=self._explore)
            if len(self._searchers) < MAX_KEPT_SEARCHERS:
                self._searchers[limit] = known
        return self._by.follower.follow(known) if self._by.follower else known

    def outdated(self) -> bool:
        """Whether a database has changed in what is not followed while it is open: models, a part that is seen."""
        return self._epoch() != self._opened_at

    def _epoch(self) -> tuple[int, int]:
        if self.file.models_revision is None:
            return 0, 0
        return self.file.models_revision, self.file.revision() if self._copied else 0

    def snapshot(self) -> AbstractContextManager[None]:
        """One state of what may be seen, for this thread."""
        return self._seen.snapshot()

    def close(self) -> None:
        """Close the file for every thread."""
        self._stack.close()


def _searcher(
    store: ReadableStore,
    config: SearchConfig,
    embedders: Sequence[Embedder],
    rewriter: Callable[[str], str] | None = None,
    explore: Explored | None = None,
) -> Searcher:
    share, other = explore or (0.0, None)
    against = None if other is None else other.built(config.limit, embedders)
    wanted = {settings.model for settings in against.retrievers.values() if settings.model} if against else set()
    if lacking := sorted(wanted - {embedder.model for embedder in embedders}):
        raise ConfigError(
            f"only one of the rankings uses vectors of {quote(lacking[0])}; interleave weights files of one model"
        )
    exploring = Explore(share, against) if explore else None
    reranker = open_reranker(config.rerank, os.environ) if reranked(config.finish) else None
    return Searcher(store, config, embedders, reranker=reranker, rewriter=rewriter, explore=exploring)


@contextmanager
def _seen(path: str, visible: Filters, hnsw: int | None) -> Iterator[Vault]:
    with open_vault(path, hnsw=hnsw) as vault, vault.snapshot(), visible_vault(vault, visible) as seen:
        yield seen


def _model_of(config: SearchConfig | None, vaults: Iterable[Vault]) -> str:
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


def read_entries(path: str, ids: Sequence[str], scopes: Sequence[str] = ()) -> list[dict[str, object]]:
    """Read whole entries by id as JSON values; DataError lists every id that this caller cannot see."""
    with open_vault(path) as vault, vault.snapshot():
        seen = vault.seen_by(parse_scopes(scopes))
        entries = seen.get(ids)
        missing = sorted(set(ids) - {entry.id for entry in entries})
        if missing:
            known = [entry.id for entry in seen.entries()] if seen.count() < 1000 else []
            raise DataError(
                f"{path}: {'; '.join(f'no entry {quote(id_)}{nearest(id_, known)}' for id_ in missing)}"
            )
        return [record_of(entry) for entry in entries]
