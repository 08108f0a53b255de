"""Writes vault files for the commands, and opens their embedders."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.base.errors import ConfigError, EmbedderError, nearest, quote
from steelyard.base.extensions import extension
from steelyard.config import SearchConfig
from steelyard.embedders import embed
from steelyard.embedders.embed import LSA, CachedEmbedder, Embedder
from steelyard.embedders.lsa import LsaEmbedder
from steelyard.memory.entry import Entry
from steelyard.memory.query import Filters
from steelyard.memory.text import render
from steelyard.retrievers import layers_read
from steelyard.signals.reviews import REVIEWED
from steelyard.stores.base import Space, is_address
from steelyard.stores.sqlite import Vault, open_vault
from steelyard.systems import EMBEDDED, SYSTEMS, analyses, find_system, keyword_indexes
from steelyard_eval.common.console import bar
from steelyard_eval.vaults.arguments import layered_entries

if TYPE_CHECKING:
    from steelyard_eval.datasets import Dataset

Opened = Mapping[str, CachedEmbedder]


def index_dataset(
    dataset: Dataset,
    path: str,
    embedder: str | None = None,
    *,
    prune: bool = False,
    layers: str = "none",
    hnsw: bool = False,
    config: SearchConfig | None = None,
) -> dict[str, Any]:
    """Index a data set into a vault file, made if it does not exist; unchanged entries are not written again.

    `embedder` is lsa, none or one of `embed.KINDS`, added to the vault's models, which every run keeps up to date;
    by default the vault's own models, and lsa for a new vault. With `prune` entries that are not in the data set
    are removed. With a `config` only vectors that it searches are added to those that there are. `layers` see
    `layered_entries`; what a language model wrote is kept in the cache. With `hnsw` the vectors get HNSW indexes.

    Returns counts: entries (in the vault now), changed, removed, outside (entries that are not in the data set),
    embedded (vectors made). Lists: models, duplicates (ids of entries with equal content), stale (models that
    could not be opened here and lack vectors of changed entries), and with `hnsw` what `index_hnsw` measured.
    Raises ConfigError when no embedder is named and the environment names a different model than the vault's; with
    `hnsw` for a file, and where `index_hnsw` is refused.
    """
    from steelyard_eval.datasets.groups import duplicates  # here: what only searches a vault reads no data set
    from steelyard_eval.datasets.vectors import completed

    asked = _opened([embedder] if embedder else [])  # before a file is made
    entries = layered_entries(dataset.entries, layers)
    if hnsw and not is_address(path):
        raise ConfigError(f"{path} is a file, and only databases have HNSW indexes; leave --hnsw out")
    with open_vault(path, create=True) as vault:
        if hnsw:
            extension("postgres").PostgresVault.check_hnsw(vault)
        kinds, opened = _open_all(vault, embedder, asked)
        alone = dataclasses.replace(dataset, queries=())  # which no vault has
        outside = {kind: completed(alone, one) for kind, one in opened.items()}
        unopened = {name: _most_missing(vault, name) for name in _unopened(vault, kinds, outside)}
        changed, removed = _put_entries(vault, entries, prune)
        vault.set_languages(dataset.language)
        for index in keyword_indexes(SYSTEMS.values()):
            vault.ensure_index(index)
        embedded = _embed_all(vault, kinds, outside, config)
        vault.ensure_words(analyses(SYSTEMS.values(), vault))  # last: every vector counts as a change of its entry
        count = vault.count()
        measured = {}
        if hnsw:
            asked_by = [*outside.values(), *([fit.model] if (fit := _stored(vault)) else [])]
            texts, ids = [query.text for query in dataset.queries], [entry.id for entry in dataset.entries]
            measured["hnsw"] = extension("postgres").index_hnsw(vault, texts, ids, asked_by)
        return {
            "entries": count,
            "changed": changed,
            "removed": removed,
            "outside": count - len(entries),
            "embedded": embedded,
            "models": vault.models(),
            "duplicates": duplicates(vault.entries()),
            "stale": [name for name, missing in unopened.items() if _most_missing(vault, name) > missing],
            **measured,
        }


def reindex_vault(path: str, embedder: str | None = None) -> dict[str, object]:
    """Rebuild every keyword index and all vectors; the old vectors, of every model, are dropped.

    `embedder` is the only model afterwards; by default all present models are kept. Everything happens in
    one transaction: searches see the old state until it is done, and an interruption leaves it unchanged.
    """
    with open_vault(path) as vault:
        kinds = [embedder] if embedder else _own_kinds(vault)
        outside, ids = _opened(kinds), [entry.id for entry in vault.entries()]
        for opened in outside.values():  # so that no transaction waits for an answer
            with embed.resumable(opened):
                spaces = _spaces(vault, opened)
                for at in bar("embedding", range(0, len(ids), embed.BATCH)):
                    texts = embed.texts_of(vault, spaces, ids[at : at + embed.BATCH]).values()
                    try:
                        opened.embed([text for own in texts for text in own.values()])
                    except EmbedderError as error:
                        raise EmbedderError(f"{error}; {at} of {len(ids)} entries were done") from None
        with vault.transaction():
            vault.rebuild_indexes(keyword_indexes(SYSTEMS.values()))
            vault.drop_words()
            for space, _ in vault.spaces():
                vault.drop_space(space)
            vault.drop_models()
            embedded = _embed_all(vault, kinds, outside, None)
            vault.ensure_words(analyses(SYSTEMS.values(), vault))
        return {"entries": vault.count(), "embedded": embedded, "models": vault.models()}


def vault_embedder(vault: Vault, model: str = "") -> Embedder | None:
    """Return the embedder of one of the vault's models, by default of the first that it was indexed with.

    Without a model it is None, and search uses keywords. Raises ConfigError for a model without vectors.
    """
    names = vault.models()
    if model and model not in names:
        raise ConfigError(
            f"{vault.path} has no vectors of the model {quote(model)}{nearest(model, names)}; "
            "run steelyard index with --embedder to add them"
        )
    for name in [model] if model else names:
        stored = vault.load_model(name)
        if stored is not None:
            kind, settings, arrays = stored
            return LsaEmbedder.from_arrays(arrays) if kind == LSA else embed.restore(kind, settings, os.environ)
    return None


@contextmanager
def visible_vault(vault: Vault, visible: Filters) -> Iterator[Vault]:
    """The vault, or a copy in memory of what a caller may see of it, with a model fitted on nothing else.

    LSA is fitted anew on what is visible, because the fit of the whole vault contains words of other entries.
    """
    if not visible and not vault.restricted:
        yield vault
        return
    if vault.approximate([space for space, _ in vault.spaces()]):
        raise ConfigError("searches with --scope are exact; leave --hnsw or --scope out")
    models = {name: stored for name in vault.models() if (stored := vault.load_model(name)) is not None}
    with vault.copied(visible) as copy:
        for name, (kind, settings, arrays) in models.items():
            if kind != LSA:
                copy.save_model(name, kind, settings, arrays)
        if LSA in models or any(space.model.partition(":")[0] == LSA for space, _ in vault.spaces()):
            with suppress(EmbedderError):  # too little is visible to fit it: keywords answer alone
                _renew(copy, None)
        yield copy


def _own_kinds(vault: Vault) -> list[str]:
    stored = (vault.load_model(name) for name in vault.models())
    return list(dict.fromkeys(model[0] for model in stored if model is not None)) or [LSA]


def _open_all(vault: Vault, asked: str | None, opened: Opened) -> tuple[list[str], dict[str, CachedEmbedder]]:
    """The kinds that a run embeds with, and the embedders of those that are opened; `opened` are some already.

    Raises ConfigError when none was asked for and one of the vault's own models is not the one opened.
    """
    known = _own_kinds(vault) if vault.models() or asked is None else []
    kinds = [] if asked == "none" else [kind for kind in dict.fromkeys([*known, asked]) if kind]
    outside = {**opened, **_opened(kind for kind in kinds if kind not in opened)}
    if asked is None and (other := _unopened(vault, kinds, outside)):
        used = ", ".join(quote(embedder.model) for embedder in outside.values())
        raise ConfigError(
            f"{vault.path} was indexed with the model {quote(other[0])}, this run would use {used}; name the "
            "first one in the environment again, add the other with --embedder api, or run "
            "steelyard index VAULT --rebuild"
        )
    return kinds, outside


def _opened(kinds: Iterable[str]) -> dict[str, CachedEmbedder]:
    return {kind: embed.open_embedder(kind, os.environ) for kind in kinds if kind in embed.KINDS}


def _unopened(vault: Vault, kinds: Iterable[str], outside: Opened) -> list[str]:
    usable = {opened.model for opened in outside.values()} | {LSA}
    return [name for name in vault.models() if kinds and name not in usable]


def _most_missing(vault: Vault, model: str) -> int:
    return max((len(vault.missing(space)) for space, _ in vault.spaces() if space.model == model), default=0)


def _put_entries(vault: Vault, entries: Sequence[Entry], prune: bool) -> tuple[int, int]:
    """Write the entries and, with `prune`, remove all others, in one transaction; return both counts.

    Entries that bring no review of their own keep those that the vault has of them.
    """
    with vault.transaction():
        known = vault.entries(Filters.of({"review_count": {"after": 0}}))
        reviews = {entry.id: {name: getattr(entry, name) for name in REVIEWED} for entry in known}
        changed = vault.upsert(
            dataclasses.replace(entry, **reviews[entry.id])
            if not entry.review_count and entry.id in reviews
            else entry
            for entry in entries
        )
        gone = {entry.id for entry in vault.entries()} - {entry.id for entry in entries} if prune else set()
        return changed, vault.delete(sorted(gone))


def _embed_all(vault: Vault, kinds: Iterable[str], outside: Opened, config: SearchConfig | None) -> int:
    embedded = 0
    for kind in kinds:
        if kind == LSA:
            embedded += _renew(vault, _stored(vault), config)
        elif kind in outside:
            vault.save_model(outside[kind].model, *embed.remembered(outside[kind]), {})
            with embed.resumable(outside[kind]):
                embedded += _embed(vault, outside[kind], config)
    return embedded


class _Fit(NamedTuple):
    """A model, and the hash of the texts it was fitted on."""

    model: LsaEmbedder
    texts: str


def _stored(vault: Vault) -> _Fit | None:
    stored = vault.load_model(LSA)
    return _Fit(LsaEmbedder.from_arrays(stored[2]), stored[1].get("texts", "")) if stored else None


def _renew(vault: Vault, known: _Fit | None, config: SearchConfig | None = None) -> int:
    """Fit the model on the entries as they are, unless it is the known one, and embed what has no vector.

    Vectors are written in batches and are kept when the run is interrupted. Until all exist the vault
    answers with its previous model, because each fit has its own spaces. Then model and spaces are
    replaced in one transaction. Returns the number of entries that were embedded.
    """
    fit = _fitted(vault, known)
    embedded = _embed(vault, fit.model, config)
    with vault.transaction():
        fit = _fitted(vault, fit)  # another one only if another process changed entries meanwhile
        embedded += _embed(vault, fit.model, config)
        mine = _spaces(vault, fit.model, config)
        for space, _ in vault.spaces():
            if space.model.partition(":")[0] == LSA and space not in mine:
                vault.drop_space(space)
        if known is None or known.texts != fit.texts:
            settings, arrays = fit.model.to_arrays()
            vault.save_model(LSA, "lsa", {**settings, "texts": fit.texts}, arrays)
    return embedded


def _fitted(vault: Vault, known: _Fit | None) -> _Fit:
    texts = [render(EMBEDDED, entry) for entry in vault.entries()]
    languages, digest = vault.languages(), sha256()
    for part in json.JSONEncoder().iterencode([texts, languages] if languages else texts):
        digest.update(part.encode())
    same = known is not None and known.texts == digest.hexdigest()
    return known if known and same else _Fit(LsaEmbedder.fit(texts, languages), digest.hexdigest())


def _spaces(vault: Vault, embedder: Embedder, config: SearchConfig | None = None) -> list[Space]:
    """Of every system's texts and layers; of a configuration what it reads, and what the vault has already."""
    layers = ("text", *embed.layers_of(vault))
    recipes = {system.reading.recipe for system in SYSTEMS.values()}
    spaces = {embed.space_of(embedder, layer, recipe) for recipe in recipes for layer in layers}
    if config is not None:
        own, read = find_system(config.name).reading.recipe, layers_read(config.effective.signals | config.needs)
        wanted = {embed.space_of(embedder, layer, own) for layer in ({"text", *read} if read else ())}
        kind = embedder.model.partition(":")[0]  # also of an earlier fit
        held = {(one.layer, one.recipe) for one, _ in vault.spaces() if one.model.partition(":")[0] == kind}
        spaces = {one for one in spaces if one in wanted or (one.layer, one.recipe) in held}
    return sorted(spaces, key=lambda space: (space.layer, space.recipe))


def _embed(vault: Vault, embedder: Embedder, config: SearchConfig | None) -> int:
    progress = partial(bar, "embedding")
    return embed.embed_missing(vault, embedder, *_spaces(vault, embedder, config), progress=progress)
