"""The command that translates a weights file for another system."""

from __future__ import annotations

import click

from steelyard.base.files import write_text
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.common.configurations import Setting, read_configuration
from steelyard_eval.export import TARGETS
from steelyard_eval.export import export as run_export


@click.command()
@click.argument("config", metavar="CONFIGURATION", type=completion.CONFIGURATION)
@click.option(
    "--to",
    "target",
    required=True,
    type=completion.TARGET,
    metavar="TARGET",
    help=f"One of {', '.join(TARGETS)}.",
)
@click.option("--out", type=click.Path(), help="Write the document to this file, instead of stdout.")
@json_option
def export(config: str, target: str, out: str | None, as_json: bool) -> None:
    """Translate a search-weights.json, a system or a strategy for another system."""
    document = run_export(read_configuration(config).config(Setting(None)), target)
    if out:
        write_text(out, str(document))
        for line in document.notes:
            note(line)
    text = f"written: {out}" if out else str(document).rstrip("\n")
    put({**document.to_json(), **({"file": out} if out else {})}, as_json, text)
