"""The command report: HTML, Markdown and JSON of what other commands wrote."""

from __future__ import annotations

import click

from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.cli.layered_log import SUFFIXES, of_log
from steelyard_eval.result.document import load as load_result
from steelyard_eval.views.report import write


@click.command()
@click.argument("results", type=click.Path())
@click.option("--out", type=click.Path(), default="reports/report", show_default=True)
@json_option
def report(results: str, out: str, as_json: bool) -> None:
    """Write HTML, Markdown and JSON from the document of compare, recommend, tune, gate or learn (--json).

    From a feedback log (*.jsonl): how far the layered searches of `search --log` went, in total.
    """
    result = of_log(results) if results.endswith(SUFFIXES) else load_result(results)
    files = [str(path) for path in write(result, out)]
    put({"files": files}, as_json, "\n".join(files))
