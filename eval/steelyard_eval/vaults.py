"""What the commands do with vault files: index, reindex, open for search, read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from steelyard.config import SearchConfig
from steelyard.embed import Embedder, embed_missing, space_of
from steelyard.entry import NUMBER_FIELDS, Entry, Filters
from steelyard.errors import ConfigError, DataError, nearest, shown
from steelyard.lsa import MODEL, LsaEmbedder
from steelyard.search import Searcher
from steelyard.stores.sqlite import Vault
from steelyard.systems import SYSTEMS, find_system
from steelyard.text import content
from steelyard_eval.datasets import Dataset
from steelyard_eval.progress import bar


def index_dataset(dataset: Dataset, path: str, embedder: str = "lsa") -> dict[str, int]:
    """Write a data set into a vault file; entries that are there already stay as they are."""
    with Vault(path, create=True) as vault:
        changed = vault.upsert(dataset.entries)
        for system in SYSTEMS.values():
            vault.ensure_index(system.index)
        fresh = changed > 0 or vault.load_model(MODEL) is None
        embedded = _embed(vault, _fit(vault) if fresh else vault_embedder(vault)) if embedder == "lsa" else 0
        return {"entries": vault.count(), "changed": changed, "embedded": embedded}


def reindex_vault(path: str, embedder: str = "lsa") -> dict[str, int]:
    """Build every keyword index and all vectors anew; old vectors, of whatever model, are dropped."""
    with Vault(path) as vault:
        vault.rebuild_indexes({system.index.name: system.index for system in SYSTEMS.values()}.values())
        for space, _ in vault.spaces():
            vault.drop_space(space)
        embedded = _embed(vault, _fit(vault)) if embedder == "lsa" else 0
        return {"entries": vault.count(), "embedded": embedded}


def vault_embedder(vault: Vault) -> Embedder | None:
    """The model fitted on this vault; None when there is none, and search goes by keywords."""
    stored = vault.load_model(MODEL)
    return LsaEmbedder.from_arrays(stored[2]) if stored else None


def _fit(vault: Vault) -> LsaEmbedder:
    """Fit the model on the vault's entries; vectors of an older fit are dropped with it."""
    model = LsaEmbedder.fit([content(entry) for entry in vault.entries()])
    for space, _ in vault.spaces():
        if space.model == MODEL:
            vault.drop_space(space)
    settings, arrays = model.to_arrays()
    vault.save_model(MODEL, "lsa", settings, arrays)
    return model


def _embed(vault: Vault, embedder: Embedder | None) -> int:
    if embedder is None:
        return 0
    spaces = {space_of(embedder, layer, s.recipe) for s in SYSTEMS.values() for layer in ("text", "l0", "l1")}
    ordered = sorted(spaces, key=lambda space: (space.layer, space.recipe))
    return sum(embed_missing(vault, embedder, space, bar(f"embedding {space.layer}")) for space in ordered)


@contextmanager
def open_searcher(path: str, system: str, weights: str | None, limit: int | None) -> Iterator[Searcher]:
    """A searcher over a vault file; a weights file beats the system's own configuration."""
    with Vault(path) as vault:
        embedder = vault_embedder(vault)
        if weights is None:
            config = find_system(system).config(limit, embedder.model if embedder else "")
        else:
            config = SearchConfig.load(weights)
        yield Searcher(vault, config, embedder)


def parse_filters(texts: Sequence[str]) -> Filters:
    """``field=value`` options as filters; numbers where the field holds numbers."""
    pairs: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"filter {shown(text)} is not FIELD=VALUE; write it as project=my-app")
        try:
            pairs[name] = float(value) if name in NUMBER_FIELDS else value
        except ValueError:
            raise ConfigError(f"filter {shown(text)}: {name} holds numbers; write one") from None
    return Filters.of(pairs)


def read_entries(path: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Whole entries by id, as JSON values; DataError names every id the vault does not hold."""
    with Vault(path) as vault:
        found = vault.get(ids)
        missing = sorted(set(ids) - {entry.id for entry in found})
        if missing:
            known = [entry.id for entry in vault.entries()]
            problems = [
                f"no entry {shown(id_)}" + (nearest(id_, known) if len(known) < 1000 else "") for id_ in missing
            ]
            raise DataError(f"{path}: " + "; ".join(problems))
        return [_plain(entry) for entry in found]


def _plain(entry: Entry) -> dict[str, Any]:
    """An entry without its empty fields."""
    record = dataclasses.asdict(entry)
    return {name: value for name, value in record.items() if value not in ("", None, (), {}, [])}
