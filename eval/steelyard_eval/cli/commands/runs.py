"""The command runs: what was measured on a data set so far."""

from __future__ import annotations

import click

from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.common.console import table
from steelyard_eval.datasets import Dataset, check, load
from steelyard_eval.recording.history import Runs, in_words


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("run", required=False, type=click.IntRange(1))
@click.argument("other", required=False, type=click.IntRange(1))
@click.option("--trend", metavar="METRIC", help="Show this metric alone over time, such as nDCG@10.")
@json_option
def runs(dataset: str, run: int | None, other: int | None, trend: str | None, as_json: bool) -> None:
    """List what compare, recommend, tune, learn and gate found on DATASET, or compare two of these runs.

    Each run has the value of what it chose, else of its only weights file, else of the best. With RUN and OTHER:
    the difference between the two, query by query, and what changed. Runs are kept in .steelyard/runs.db beside
    the data set, with ids and numbers and without texts; STEELYARD_RUNS=off keeps none.
    """
    if (run is None) != (other is None):
        raise click.UsageError("name two runs to compare, or none to list all")
    history = Runs(_as_it_is(dataset))
    if run is not None and other is not None:
        found = history.between(run, other)
        put(found, as_json, in_words(found))
    elif trend:
        rows = history.trend(trend)
        put({"metric": trend, "runs": rows}, as_json, table(rows))
    else:
        put(history.to_json(), as_json, str(history))


def _as_it_is(folder: str) -> Dataset:
    """The data set; files that are no longer those whose hashes dataset.json holds are noted and no fault here."""
    report = check(folder, log=False)
    data = report.dataset or check(folder, log=False, sealed=False).dataset or load(folder)
    for fault in report.faults:
        note(str(fault))
    return data
