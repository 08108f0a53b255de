"""What the commands do with vault files: index, reindex, open for search, read."""

from __future__ import annotations

import dataclasses
import json
import os
from hashlib import sha256

from steelyard.embed import BATCH, Embedder, embed_missing, layers_of, space_of, texts_of
from steelyard.embedders import KINDS, CachedEmbedder, open_embedder
from steelyard.embedders.kinds import remembered, restore
from steelyard.errors import ConfigError, EmbedderError, shown
from steelyard.lsa import MODEL, LsaEmbedder
from steelyard.stores.base import Space
from steelyard.stores.sqlite import Vault
from steelyard.systems import EMBEDDED, SYSTEMS, keyword_indexes
from steelyard.template import render
from steelyard_eval.datasets import Dataset
from steelyard_eval.progress import bar
from steelyard_eval.recording.workspace import resumable


def index_dataset(dataset: Dataset, path: str, embedder: str | None = None) -> dict[str, int]:
    """Write a data set into a vault file; entries that are there already stay as they are.

    `embedder` is lsa, none or one of `steelyard.embedders.KINDS`; without one it is the vault's own, and lsa
    for a new vault. Broken off at any moment and run again it ends as if it had not been. Raises ConfigError
    when the vault was indexed with another model.
    """
    asked = open_embedder(embedder, os.environ) if embedder in KINDS else None
    with Vault(path, create=True) as vault:
        embedder = embedder or _own_kind(vault)
        outside = asked or (open_embedder(embedder, os.environ) if embedder in KINDS else None)
        _refuse_another(vault, outside.model if outside else embedder)
        changed = vault.upsert(dataset.entries)
        for index in keyword_indexes(SYSTEMS.values()):
            vault.ensure_index(index)
        embedded = _renew(vault, _stored(vault)) if embedder == "lsa" else 0
        if outside is not None:
            vault.save_model(outside.model, *remembered(outside), {})
            with resumable(outside):
                embedded = _embed(vault, outside)
        return {"entries": vault.count(), "changed": changed, "embedded": embedded}


def reindex_vault(path: str, embedder: str | None = None) -> dict[str, int]:
    """Build every keyword index and all vectors anew; old vectors, of whatever model, are dropped.

    `embedder` is as for `index_dataset`. All in one transaction: searches go on with what there was, and so
    does the vault when it is broken off.
    """
    with Vault(path) as vault:
        embedder = embedder or _own_kind(vault)
        outside = open_embedder(embedder, os.environ) if embedder in KINDS else None
        if outside is not None:
            with resumable(outside):
                _ask_ahead(vault, outside)
        with vault.transaction():
            vault.rebuild_indexes(keyword_indexes(SYSTEMS.values()))
            for space, _ in vault.spaces():
                vault.drop_space(space)
            vault.drop_models()
            embedded = _renew(vault, None) if embedder == "lsa" else 0
            if outside is not None:
                vault.save_model(outside.model, *remembered(outside), {})
                embedded = _embed(vault, outside)
        return {"entries": vault.count(), "embedded": embedded}


def vault_embedder(vault: Vault) -> Embedder | None:
    """The embedder the vault was indexed with; None when there is none, and search goes by keywords."""
    for name in vault.models():
        stored = vault.load_model(name)
        if stored is not None:
            kind, settings, arrays = stored
            return LsaEmbedder.from_arrays(arrays) if kind == MODEL else restore(kind, settings, os.environ)
    return None


def _own_kind(vault: Vault) -> str:
    """The kind of embedder the vault was indexed with; lsa when there is none."""
    kinds = [stored[0] for name in vault.models() if (stored := vault.load_model(name)) is not None]
    return kinds[0] if kinds else MODEL


def _refuse_another(vault: Vault, model: str) -> None:
    """ConfigError when the vault holds another model: its entries would be split between the two."""
    others = [name for name in vault.models() if name != model]
    if others and model != "none":
        raise ConfigError(
            f"{vault.path} was indexed with the model {shown(others[0])}, this run would use {shown(model)}; "
            f"keep to one, or run steelyard reindex with the embedder you want"
        )


def _ask_ahead(vault: Vault, embedder: CachedEmbedder) -> None:
    """Fill the cache with every vector the vault needs, so that no transaction waits for an answer."""
    ids = [entry.id for entry in vault.entries()]
    for space in _spaces(vault, embedder):
        done = 0
        for batch in bar(f"embedding {space.layer}")([ids[at : at + BATCH] for at in range(0, len(ids), BATCH)]):
            try:
                embedder.embed(list(texts_of(vault, space, batch).values()))
            except EmbedderError as error:
                raise EmbedderError(f"{error}; {done} of {len(ids)} entries were done") from None
            done += len(batch)


@dataclasses.dataclass(frozen=True)
class _Fit:
    """A model, and the hash of the texts it was fitted on."""

    model: LsaEmbedder
    texts: str


def _stored(vault: Vault) -> _Fit | None:
    stored = vault.load_model(MODEL)
    return _Fit(LsaEmbedder.from_arrays(stored[2]), stored[1].get("texts", "")) if stored else None


def _renew(vault: Vault, known: _Fit | None) -> int:
    """Fit the model on the entries as they are, unless it is the known one, and embed what has no vector.

    Vectors are written in batches, and stay when the run breaks off; until all are there the vault
    answers with the model it had, for each fit has spaces of its own. Then model and spaces change
    hands in one transaction. Returns how many entries were embedded.
    """
    fit = _fitted(vault, known)
    embedded = _embed(vault, fit.model)
    with vault.transaction():
        fit = _fitted(vault, fit)  # another one only if another process changed entries meanwhile
        embedded += _embed(vault, fit.model)
        mine = _spaces(vault, fit.model)
        for space, _ in vault.spaces():
            if space.model.partition(":")[0] == MODEL and space not in mine:
                vault.drop_space(space)
        if known is None or known.texts != fit.texts:
            settings, arrays = fit.model.to_arrays()
            vault.save_model(MODEL, "lsa", {**settings, "texts": fit.texts}, arrays)
    return embedded


def _fitted(vault: Vault, known: _Fit | None) -> _Fit:
    texts = [render(EMBEDDED, entry) for entry in vault.entries()]
    digest = sha256(json.dumps(texts).encode()).hexdigest()
    return known if known is not None and known.texts == digest else _Fit(LsaEmbedder.fit(texts), digest)


def _spaces(vault: Vault, embedder: Embedder) -> list[Space]:
    layers = ("text", *layers_of(vault))
    recipes = {system.reading.recipe for system in SYSTEMS.values()}
    spaces = {space_of(embedder, layer, recipe) for recipe in recipes for layer in layers}
    return sorted(spaces, key=lambda space: (space.layer, space.recipe))


def _embed(vault: Vault, embedder: Embedder) -> int:
    spaces = _spaces(vault, embedder)
    return sum(embed_missing(vault, embedder, space, bar(f"embedding {space.layer}")) for space in spaces)
