"""The command index, which writes vault files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from steelyard.base.errors import ConfigError, shown
from steelyard.config.search_config import SearchConfig
from steelyard.embedders.kinds import indexing_kind
from steelyard_eval.cli.commands.options import json_option, put, tenant_option, vault_embedder_option
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.common.console import table, wrapped
from steelyard_eval.datasets import open_dataset
from steelyard_eval.datasets.groups import duplicates_in_words
from steelyard_eval.vaults import index_dataset, reindex_vault
from steelyard_eval.vaults.arguments import vault_file

LAYERS = ("none", "extractive", "llm")
HNSW = "Make HNSW indexes in the database, for search --hnsw, and print what they find and how fast."
WEIGHTS = "Add the vectors that this weights file searches, unless --embedder names others."
REBUILD = "Rebuild all keyword indexes and vectors of the vault, which is named alone."
ABSTRACTS = "Where abstracts and overviews come from that are not written: the text, or a model at LLM_BASE_URL."


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("vault", required=False, type=click.Path())
@vault_embedder_option
@click.option("--rebuild", is_flag=True, help=REBUILD)
@click.option("--weights", metavar="FILE", type=click.Path(), help=WEIGHTS)
@click.option("--prune", is_flag=True, help="Remove entries of the vault that are not in the data set.")
@click.option("--layers", default="none", show_default=True, type=click.Choice(LAYERS), help=ABSTRACTS)
@click.option("--hnsw", is_flag=True, help=HNSW)
@tenant_option
@json_option
def index(
    dataset: str,
    vault: str | None,
    embedder: str | None,
    rebuild: bool,
    weights: str | None,
    prune: bool,
    layers: str,
    hnsw: bool,
    tenant: str | None,
    as_json: bool,
) -> None:
    """Build or update a vault from a data set, or from a store that import reads: entries, indexes, vectors.

    --embedder adds a model to those the vault already has. After a change of model, dimension or tokenizer
    `steelyard index VAULT --rebuild` makes keyword indexes and vectors anew: of all models of the vault, or with
    --embedder of that one, which alone is kept.
    """
    if rebuild:
        if vault or weights or prune or hnsw or layers != "none":
            raise click.UsageError("--rebuild takes the vault alone, with --embedder or --tenant")
        vault = vault_file(dataset, tenant)
        rebuilt = reindex_vault(vault, embedder)
        put(rebuilt, as_json, f"{vault}: {_counted(rebuilt)}")
        return
    if vault is None:
        raise click.UsageError("name the DATASET and the VAULT that is written, or a vault alone with --rebuild")
    data = open_dataset(dataset)
    vault = vault_file(vault, tenant)
    embedder = embedder or (_searched_by(weights) if weights else None)
    counts = index_dataset(data, vault, embedder, prune=prune, layers=layers, hnsw=hnsw)
    for text in data.notices if not data.queries else ():
        note(text)
    for text in _index_notes(counts, data.name):
        note(text)
    put(counts, as_json, "\n\n".join([f"{vault}: {_counted(counts)}", *map(_measured, counts.get("hnsw", ()))]))


def _searched_by(weights: str) -> str | None:
    """The embedder of the vectors that a weights file searches; None for one that searches any, or none."""
    models = sorted(SearchConfig.load(weights).models)
    kinds = {indexing_kind(model) for model in models}
    if len(kinds) > 1 or "" in kinds:
        raise ConfigError(f"{weights} searches vectors of {', '.join(map(shown, models))}; name one by --embedder")
    return next(iter(kinds), None)


def _measured(index: dict[str, Any]) -> str:
    """An HNSW index in words, and the table of what it finds and how fast."""
    size, recipe = index["bytes"] / 2**20, shown(index["recipe"])
    head = f"HNSW of {index['model']}, {recipe}: {size:.1f} MB; {index['probes']}, lists of {index['list']}"
    rows = [
        {
            "ef_search": "exact" if row["ef_search"] is None else str(row["ef_search"]),
            **{name: f"{value:.3f}" for name, value in row.items() if name.startswith("recall")},
            "p50, ms": f"{row['p50_ms']:.1f}",
            "p95, ms": f"{row['p95_ms']:.1f}",
        }
        for row in index["rows"]
    ]
    return f"{wrapped(head)}\n{table(rows)}".rstrip()


def _index_notes(counts: dict[str, Any], dataset: str) -> Iterator[str]:
    if counts["outside"]:
        yield f"{counts['outside']} entries of the vault are not in {dataset}; --prune removes them"
    if line := duplicates_in_words(counts["duplicates"]):
        yield line
    for model in counts["stale"]:
        yield f"changed entries have no vectors of {model} now: it could not be opened here; index again with it"


def _counted(counts: dict[str, object]) -> str:
    """The number of entries, and the counts of a run that are not 0."""
    told = {name: value for name, value in counts.items() if isinstance(value, int) and name != "outside"}
    words = {"embedded": "vectors made of texts and their layers"}
    return ", ".join(
        f"{value} {words.get(name, name)}" for name, value in told.items() if value or name != "removed"
    )
