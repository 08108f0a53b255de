"""The commands on vault files: index, vault (get, list, context, act), and doctor, which checks them."""

import json
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from steelyard.base.errors import MachineError
from steelyard_eval.cli.options import Handed, command, note, pairs, put
from steelyard_eval.cli.search_serve import narrowed, ranked_by


@command(narrowed, leave="filter_ scope set_")
def index(
    dataset: str,
    vault: str | None = None,
    *,
    embedder: Literal["lsa", "none", "minilm", "minilm-int8", "wordllama", "api"] | None = None,
    rebuild: bool = False,
    weights: str | None = None,
    prune: bool = False,
    layers: Literal["none", "extractive", "llm"] = "none",
    hnsw: bool = False,
    tenant: str | None = None,
) -> None:
    """Build or update a vault: entries, indexes, vectors.

    DATASET is a data set, or a store that import reads. --embedder adds a model to the vault. After a change of
    model, dimension or tokenizer, run `steelyard index VAULT --rebuild`. It rebuilds the keyword indexes and the
    vectors of all models. With --embedder, it keeps only that model.

    Parameters
    ----------
    embedder: Embedder (default: the vault's, or lsa for a new vault). All but lsa and none need an extra.
    rebuild: Rebuild all keyword indexes and vectors of a vault; name only the vault.
    weights: Add only the vectors that this weights file searches. --embedder overrides its model.
    prune: Remove entries from the vault that are not in the data set.
    layers: Source of missing abstracts and overviews: extractive (the text), or llm (a model at LLM_BASE_URL).
    hnsw: Build HNSW indexes in the database, for search --set hnsw=EF, and print their recall and speed.

    Examples
    --------
    steelyard index mine memory.db
    steelyard index mine memory.db --weights search-weights.json
    steelyard index memory.db --rebuild --embedder lsa
    """
    from steelyard.config import SearchConfig
    from steelyard_eval.cli.vault_text import counts_text, index_notes, measured, searched_by
    from steelyard_eval.datasets import open_dataset
    from steelyard_eval.vaults import index_dataset, reindex_vault
    from steelyard_eval.vaults.arguments import vault_file

    if rebuild:
        if vault or weights or prune or hnsw or layers != "none":
            raise click.UsageError("--rebuild takes only the vault, --embedder and --tenant; leave out the rest")
        vault = vault_file(dataset, tenant)
        rebuilt = reindex_vault(vault, embedder)
        put(rebuilt, f"{vault}: {counts_text(rebuilt)}")
        return
    if vault is None:
        raise click.UsageError("name DATASET and the VAULT to write, or only a vault with --rebuild")
    data = open_dataset(dataset)
    vault = vault_file(vault, tenant)
    config = SearchConfig.load(weights) if weights else None
    model = embedder or (searched_by(weights) if weights else None)
    counts = index_dataset(data, vault, model, prune=prune, layers=layers, hnsw=hnsw, config=config)
    for text in (*(data.notices if not data.queries else ()), *index_notes(counts, data.name)):
        note(text)
    put(counts, "\n\n".join([f"{vault}: {counts_text(counts)}", *map(measured, counts.get("hnsw", ()))]))


@click.group(short_help="Read a vault, and log actions: get, list, context, act.")
def vault() -> None:
    """Read a vault, and log actions on search results."""


@command(narrowed, leave="filter_ set_")
def get(vault: str, id_: tuple[str, ...], *, scope: tuple[str, ...] = (), tenant: str | None = None) -> None:
    """Print full entries by id, with details.

    Examples
    --------
    steelyard vault get memory.db m1 m2
    """
    from steelyard_eval.vaults.arguments import vault_file
    from steelyard_eval.vaults.read import read_entries

    records = read_entries(vault_file(vault, tenant), id_, scope)
    put({"entries": records}, "\n".join(json.dumps(record, indent=2, sort_keys=True) for record in records))


@command(narrowed, leave="set_")
def list_(vault: str, *, limit: int | None = None, tenant: str | None = None, **options: Handed) -> None:
    """List all entries that pass the filters, newest first.

    Parameters
    ----------
    limit: Number of entries (default: all).

    Examples
    --------
    steelyard vault list memory.db --filter tags=auth --filter superseded=false
    """
    from steelyard.systems.base import record_of
    from steelyard_eval.cli.vault_text import listing
    from steelyard_eval.vaults.arguments import parse_filters, vault_file
    from steelyard_eval.vaults.read import list_entries

    filters = parse_filters(options["filter_"])
    entries, total = list_entries(vault_file(vault, tenant), filters, limit, options["scope"])
    document = {"total": total, "entries": [record_of(entry) for entry in entries]}
    put(document, f"{listing(entries)}\n{len(entries)} of {total} entries")


@command(ranked_by, narrowed, leave="strategy default", typed=True)
def context(
    vault: str,
    query: str = "",
    *,
    system: str = "",
    weights: str = "",
    limit: int | None = None,
    tenant: str | None = None,
    **options: Handed,
) -> None:
    """Print relevant entries, then recent ones.

    Without a QUERY, context prints only recent entries.

    Parameters
    ----------
    limit: Number of entries (default: the weights file's limit, else 10).

    Examples
    --------
    steelyard vault context memory.db "key rotation" --limit 5
    """
    from steelyard_eval.cli.vault_text import hits
    from steelyard_eval.vaults.arguments import Settings, parse_filters, vault_file
    from steelyard_eval.vaults.read import open_searcher

    own, by = Settings.of(pairs(options["set_"], "--set")), ranked_by(system=system, weights=weights)
    size, filters = limit or (None if by.config else 10), parse_filters(options["filter_"])
    with open_searcher([vault_file(vault, tenant)], by, size, options["scope"], own) as searcher:
        entries, total = searcher.context(query, filters, semantic=own.semantic, topup_recent=own.topup)
        shown = searcher.system.showing.show_all(entries, None, content=True)
    put({"total": total, "entries": shown}, f"{hits(entries)}\n{len(shown)} of {total} entries")


@command()
def act(
    log: str,
    query_id: str,
    entry_id: tuple[str, ...] = (),
    *,
    action: Literal["accepted", "used", "cited", "copied", "opened", "clicked", "modified", "thumbs_up",
                    "thumbs_down", "dismissed", "failed", "reviewed", "none_useful"] = "accepted",
    client: str = "",
    vault: str | None = None,
    grade: Literal["again", "hard", "good", "easy"] = "good",
) -> None:  # fmt: skip
    """Log an action on the results of a search.

    First log the search with `steelyard search --log LOG`. `--action reviewed --vault VAULT` also updates the
    stability of the entries in the vault, by FSRS (signal retrievability).

    Parameters
    ----------
    action: Action to log.
    client: Stable name of the person or program that acts.
    vault: Vault of the entries, for --action reviewed.
    grade: Grade of the review.

    Examples
    --------
    steelyard vault act feedback.jsonl 4be1a2f09c3d7e55 m1 --action cited
    steelyard vault act feedback.jsonl 4be1a2f09c3d7e55 --action none_useful
    """
    from steelyard.feedback import append_act
    from steelyard.signals.reviews import review
    from steelyard.stores.sqlite import open_vault

    if (action == "reviewed") != (vault is not None):
        raise click.UsageError("--action reviewed and --vault need each other; add what is missing")
    document: dict[str, object] = {"query_id": query_id, "action": action, "entries": list(entry_id)}
    with ExitStack() as stack:  # the transaction keeps nothing where the log cannot be written
        if vault is not None:
            store = stack.enter_context(open_vault(vault))
            stack.enter_context(store.transaction())
            document["stability"] = {id_: review(store, id_, grade, time.time()).stability for id_ in entry_id}
        for id_ in entry_id or ("",):
            append_act(Path(log), query_id, id_, action, client)
    put(document, f"{log}: {action} {', '.join(entry_id) or 'list'} of {query_id}")


for one in (get, list_, context, act):
    vault.add_command(one)


@command()
def doctor(vault: tuple[str, ...] = ()) -> None:
    """Check this machine, and every page of vault files.

    doctor checks versions, SQLite, extras, folders and fonts.

    Examples
    --------
    steelyard doctor memory.db
    """
    from steelyard_eval.cli.diagnosis import diagnose, told

    checks = diagnose(vault)
    fit = all(check.state != "fault" for check in checks)
    put({"schema_version": 1, "fit": fit, "checks": [asdict(check) for check in checks]}, told(checks))
    if not fit:
        sys.exit(MachineError.exit_code)
