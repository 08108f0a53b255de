"""The command that translates a weights file for another system."""

from __future__ import annotations

import click

from steelyard.base.errors import ConfigError, shown
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.common.later import later

with later(__name__):  # --help needs none of it
    from steelyard.base.files import write_text
    from steelyard.config.search_config import SearchConfig, is_foreign, read_json
    from steelyard.systems.spec_kit.foreign import read_foreign
    from steelyard_eval.export import export as run_export


@click.command()
@click.argument("weights", type=click.Path())
@click.option(
    "--to",
    "target",
    required=True,
    type=completion.TARGET,
    metavar="TARGET",
    help="echovault, moltnet, soleri, spec_kit, cortex_mem, opensearch, elasticsearch, vespa, weaviate or qdrant.",
)
@click.option("--out", type=click.Path(), help="Write the document to this file, instead of stdout.")
@json_option
def export(weights: str, target: str, out: str | None, as_json: bool) -> None:
    """Translate a search-weights.json for another system."""
    document = run_export(SearchConfig.load(weights), target)
    if out:
        write_text(out, str(document))
    text = f"written: {out}" if out else str(document).rstrip("\n")
    put({**document.to_json(), **({"file": out} if out else {})}, as_json, text)


@click.command(name="import")
@click.argument("file", type=click.Path())
@click.option("--out", type=click.Path(), required=True, help="The weights file to write.")
@json_option
def import_(file: str, out: str, as_json: bool) -> None:
    """Read system-spec-kit's own configs/search-weights.json into a weights file of ours."""
    record = read_json(file)
    if not is_foreign(record):
        raise ConfigError(f"{shown(file)} is not system-spec-kit's configs/search-weights.json; name that file")
    config = read_foreign(record)
    config.save(out)
    put(config.to_json(), as_json, f"written: {out}\n{config.strategy}")


COMMANDS = (export, import_)
