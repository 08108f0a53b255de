"""The command demo: the main jobs on the data set that comes with the package."""

from __future__ import annotations

from pathlib import Path

import click

from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.cli.demonstration import demo as run_demo
from steelyard_eval.show.terminal import recommendation


@click.command()
@click.option("--out", type=click.Path(), default="reports/demo", show_default=True)
@json_option
def demo(out: str, as_json: bool) -> None:
    """Recommend, learn, report and write weights for the data set that comes with the package."""
    found, learned, files = run_demo(Path(out))
    document = {**found.to_json(), "files": [str(path) for path in files]}
    document["learned"] = None if learned is None else learned.to_json()
    told = [] if learned is None else [f"By its simulated feedback log alone: {learned.sentence}", ""]
    lines = [recommendation(document), "", *document["files"], "", *told, found.sentence]
    put(document, as_json, "\n".join(lines))
