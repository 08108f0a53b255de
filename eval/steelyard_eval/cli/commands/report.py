"""The command report: HTML, Markdown, JSON and CSV of what other commands wrote."""

from __future__ import annotations

import click

from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.cli.layered_log import SUFFIXES, of_log
from steelyard_eval.datasets import load
from steelyard_eval.recording.history import Runs
from steelyard_eval.views.report import write
from steelyard_eval.views.report.load import load as load_result


@click.command()
@click.argument("results", type=click.Path())
@click.option("--out", type=click.Path(), default="reports/report", show_default=True)
@click.option("--data", metavar="DATASET", type=click.Path(), help="Show the trend of its kept runs, too.")
@json_option
def report(results: str, out: str, data: str | None, as_json: bool) -> None:
    """Write HTML, Markdown, JSON and CSV from the document of compare, recommend, tune, gate or learn (--json).

    From a feedback log (*.jsonl): how far the layered searches of `search --log` went, in total.
    """
    runs = Runs(load(data)) if data else None
    result = of_log(results) if results.endswith(SUFFIXES) else load_result(results)
    files = [str(path) for path in write(result, out, runs.history(result.job) if runs else None)]
    put({"files": files}, as_json, "\n".join(files))
