"""Options that several commands share, and the printing of results."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias, cast

import click
from click.core import ParameterSource

from steelyard.base.escape import harmless
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.recording.record import scheduled

Handed: TypeAlias = Any
"""Options that a command hands on, by their names, to the function of the workbench that does its work.

They are declared twice: for the command by `click.option`, and in Python by that function.
"""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
limit_option = click.option("--limit", type=click.IntRange(1, 10_000), help="How many results.")
filter_option = click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Only entries that pass (also !=, >=, >, <=, <). Repeat a field to accept any of its values; repeat tags "
    "to require all.",
)
scope_option = click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="FIELD=VALUE",
    help="What the caller may see, such as vault=notes or tenant=team; repeat it to see more. "
    "By default everything.",
)
tenant_option = click.option(
    "--tenant",
    metavar="NAME",
    help="VAULT is the folder of all tenants' vaults; read or write that of this tenant alone.",
)
hnsw_option = click.option(
    "--hnsw",
    type=click.IntRange(1, 1000),
    metavar="EF",
    help="Search vectors by the HNSW index of a database (index --hnsw makes it), with this ef_search, 1 to 1000: "
    "faster where there are very many, and some of the nearest are missed.",
)
split_option = click.option("--split", help="train, dev, test, all; the data set's own choice by default.")


EMBEDDERS = ("auto", "recorded", "lsa", "none", "minilm", "minilm-int8", "wordllama", "api")
"""The embedders of data sets, as `datasets.named` has them, which would be loaded for every command."""


class EmbedderName(click.Choice[str]):
    """One of EMBEDDERS, or one of the models that the data set has recorded, as recorded:MODEL."""

    def __init__(self) -> None:
        super().__init__(EMBEDDERS)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """See click.Choice.convert; which models there are is known when the data set is read."""
        return value if value.startswith("recorded:") else super().convert(value, param, ctx)


embedder_option = click.option(
    "--embedder",
    default="auto",
    show_default=True,
    type=EmbedderName(),
    help="recorded: vectors of the data set (recorded:MODEL, if of several models); lsa: fitted on its texts; "
    "auto: what dataset.json names, else recorded vectors if there are any, else lsa; none: keywords only. The "
    "others need an extra.",
)


def standing_embedder(command: Callable[..., None]) -> Callable[..., None]:
    """Add --embedder to a command; once it has succeeded, dataset.json says the choice to all later ones."""

    @wraps(command)
    def choosing(*args: Handed, **kwargs: Handed) -> None:
        ctx = click.get_current_context()
        typed = ctx.get_parameter_source("embedder") is ParameterSource.COMMANDLINE
        name, folder = str(ctx.params["embedder"]), Path(str(ctx.params["dataset"]))
        judges = ctx.params.get("applies") is False and ctx.params["as_json"]  # which asks nothing
        shows = judges or ctx.params.get("lists") or ctx.params.get("dry_run")
        if typed and name == "auto" and not shows:
            _choose(folder, None)
        command(*args, **kwargs)
        if typed and name != "auto" and not shows and (file := _choose(folder, name)):
            note(f"{file} now names the embedder {name}, which later commands use; --embedder auto takes it out")

    return embedder_option(choosing)


def _choose(folder: Path, name: str | None) -> Path | None:
    """Write the choice into dataset.json, or take it out; the file where that changed it."""
    from steelyard_eval.datasets import manifest  # with all data sets: not for every command

    return folder / manifest.FILE if manifest.choose_for(folder, name) else None


vault_embedder_option = click.option(
    "--embedder",
    type=click.Choice(["lsa", "none", "minilm", "minilm-int8", "wordllama", "api"]),
    help="By default the vault's own, or lsa for a new vault; those but lsa and none need an extra.",
)
recording_option = click.option(
    "--recording",
    type=click.Path(),
    metavar="FOLDER",
    help="Replay a folder that `steelyard record` wrote, instead of searching.",
)


class Jobs(click.ParamType[int | Executor]):
    """A number of processes, or the address of a Dask scheduler, which becomes an executor."""

    name = "jobs"
    number = click.IntRange(1, 256)

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Executor:
        """Read a number or an address."""
        if isinstance(value, str) and "://" in value:
            return scheduled(value)
        return self.number.convert(cast("int", value), param, ctx)


jobs_option = click.option(
    "--jobs",
    "--scheduler",
    type=Jobs(),
    default=1,
    show_default=True,
    metavar="N|tcp://HOST:PORT",
    help="Processes that search, or the scheduler of a Dask cluster (extra dask); the result is the same, and "
    "more than one pays off for thousands of queries.",
)
intents_option = click.option(
    "--intents",
    type=click.Choice(["classified", "given"]),
    help="Where the intents of queries are from: classified as live search does, the default but for a recording; "
    "or given, those of queries.jsonl that the system knows.",
)
floor_option = click.option(
    "--floor",
    metavar="lost=10%",
    help="Also find the score below which nothing is shown, so that this promise holds: lost, false, or both.",
)
seed_option = click.option("--seed", type=click.IntRange(0), default=0, show_default=True)


def put(document: object, as_json: bool, text: str) -> None:
    """Print the document as JSON, or the text with control characters escaped."""
    if as_json:
        click.echo(json.dumps(document, indent=2, sort_keys=True, allow_nan=False))
    else:
        click.echo(harmless(text, colours=sys.stdout.isatty()))


def tell(text: str) -> None:
    """Print a note, warning or error on stderr, made harmless."""
    click.echo(harmless(text), err=True)


def listed(text: str) -> list[str]:
    """Split names at commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
