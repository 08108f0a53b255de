"""The command demo: the main job on the data set that comes with the package."""

from __future__ import annotations

from pathlib import Path

import click

from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.cli.demonstration import demo as run_demo
from steelyard_eval.views import terminal


@click.command()
@click.option("--out", type=click.Path(), default="reports/demo", show_default=True)
@json_option
def demo(out: str, as_json: bool) -> None:
    """Recommend, report and write weights for the data set that comes with the package."""
    answer, files, learn = run_demo(Path(out))
    document = {**answer.to_json(), "files": [str(path) for path in files], "learn": learn}
    told = ["", answer.sentence, "", f"What its simulated feedback log says by itself: {learn}"]
    put(document, as_json, "\n".join([terminal.render(answer.result), "", *map(str, files), *told]))
