"""Commands that read the stores of other programs into data sets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig, is_foreign, read_json
from steelyard.systems.spec_kit.foreign import read_foreign
from steelyard_eval.choose.weights_files import write_weights
from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.common.extensions import extension
from steelyard_eval.common.markup import counted

if TYPE_CHECKING:
    from steelyard_eval.extensions.importers import Import

KIND = "The kind of store, where it is not to be recognised; see --list."
COLUMN = (
    "The column or key that stands for a field of entries, such as text=content or text=payload.body; repeatable."
)
SQL = "Of an SQLite file: the SELECT whose rows are the entries."
LARGEST_WEIGHTS = 2**20
"""Bytes; a larger file is no weights file."""


@click.command(name="import")
@click.argument("source", required=False)
@click.argument("out", required=False, type=click.Path())
@click.option("--kind", metavar="KIND", help=KIND)
@click.option("--map", "columns", multiple=True, metavar="FIELD=COLUMN", help=COLUMN)
@click.option("--sql", default="", metavar="SELECT", help=SQL)
@click.option("--list", "listing", is_flag=True, help="Show the kinds, and where each program keeps its store.")
@json_option
def import_(
    source: str | None,
    out: str | None,
    kind: str | None,
    columns: tuple[str, ...],
    sql: str,
    listing: bool,
    as_json: bool,
) -> None:
    """Read the store of another program into the folder of a data set, or bring that folder up to date.

    SOURCE is a file or a folder, or the name of a kind, whose own place is then looked up. The weights file of
    system-spec-kit (configs/search-weights.json) becomes a weights file OUT.
    """
    if listing:
        _list(as_json)
        return
    if source is None or out is None:
        raise click.UsageError("name the SOURCE and the folder OUT that is written; --list shows the kinds")
    if config := _weights(source):
        told = "".join(f"\n{line}" for line in write_weights({Path(out): config}))
        put(config.to_json(), as_json, f"written: {out}\n{config.strategy}{told}")
        return
    importing = extension("importers")
    options = importing.Options(_pairs(columns), sql)
    _tell(importing.import_store(source, out, kind, options), as_json)


def _tell(done: Import, as_json: bool) -> None:
    for text in done.notes:
        note(text)
    ones = {"entries": "entry", "queries": "query"}
    counts = ", ".join(
        counted(count, ones.get(name, name.removesuffix("s")), name) for name, count in done.counts.items()
    )
    counts = counts or "nothing"
    first = f"{done.folder}: {counts}, from {done.kind}{'' if done.changed else '; nothing has changed'}"
    put(
        done.to_json(),
        as_json,
        f"{first}\nnext: steelyard {'recommend' if _has_labels(Path(done.folder)) else 'judge'} {done.folder}",
    )


def _has_labels(folder: Path) -> bool:
    """Whether a folder has any, from the store or from before."""
    qrels = folder / "qrels.txt"
    return qrels.is_file() and qrels.stat().st_size > 0


def _list(as_json: bool) -> None:
    """The kinds with what they read and where their programs keep it."""
    rows: list[dict[str, Any]] = [
        {"kind": kind.name, "reads": kind.about, "places": [str(path) for path in kind.homes(os.environ)]}
        for kind in extension("importers").importers().values()
    ]
    width = max(len(row["kind"]) for row in rows)
    lines = [f"{row['kind']:{width}}  {row['reads']}" for row in rows]
    places = [f"{row['kind']:{width}}  {', '.join(row['places'])}" for row in rows if row["places"]]
    put(
        rows,
        as_json,
        "\n".join([*lines, "", "Where programs keep their stores (steelyard import KIND OUT):", *places]),
    )


def _weights(source: str) -> SearchConfig | None:
    """The configuration in system-spec-kit's own weights file; None for any other source."""
    path = Path(source)
    if path.suffix != ".json" or not path.is_file() or path.stat().st_size > LARGEST_WEIGHTS:
        return None
    try:
        record = read_json(source)
    except ConfigError:  # a table of another form, which its importer reads
        return None
    return read_foreign(record) if is_foreign(record) else None


def _pairs(columns: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in columns]
    if wrong := [text for text, (field, _, column) in zip(columns, pairs, strict=True) if not field or not column]:
        raise click.BadParameter(f"{wrong[0]!r} is no pair; write FIELD=COLUMN", param_hint="--map")
    return {field.strip(): column.strip() for field, _, column in pairs}
