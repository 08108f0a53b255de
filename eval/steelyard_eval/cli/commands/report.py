"""The command report: HTML, Markdown, JSON and CSV of what other commands wrote."""

from __future__ import annotations

from pathlib import Path

import click

from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.datasets import load
from steelyard_eval.show.report import load_results, write_report
from steelyard_eval.show.runs_kept import Runs
from steelyard_eval.views.report import write
from steelyard_eval.views.report.load import load as load_result


def is_result(path: Path) -> bool:
    """Whether a file has a result of this version, and not the document of a job that has none yet."""
    return path.suffix == ".json" and path.is_file() and b'"version": 2' in path.read_bytes()


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
    if is_result(Path(results)):
        result = load_result(results)
        files = [str(path) for path in write(result, out, runs.history(result.job) if runs else None)]
    else:
        files = [
            str(path) for path in write_report(load_results(Path(results)), Path(out), runs.runs if runs else ())
        ]
    put({"files": files}, as_json, "\n".join(files))
