"""The command runs: what was measured on a data set so far."""

from __future__ import annotations

import click

from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.datasets import load
from steelyard_eval.recording.runs import find_run
from steelyard_eval.show.runs_kept import Runs


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("run", required=False, type=click.IntRange(1))
@click.argument("other", required=False, type=click.IntRange(1))
@json_option
def runs(dataset: str, run: int | None, other: int | None, as_json: bool) -> None:
    """List what compare, recommend, tune, learn and gate found on DATASET, oldest first.

    With RUN that run alone. With RUN and OTHER what changed between the two: entries, queries, labels, code,
    weights, means, ranked queries. Runs are kept in .steelyard/runs.db beside the data set, with ids and numbers
    and without texts; STEELYARD_RUNS=off keeps none.
    """
    found = Runs(load(dataset))
    if run is None:
        put(found.to_json(), as_json, str(found))
    elif other is None:
        own = find_run(found.runs, run)
        put({"run": own.id, "at": own.at, "kind": own.kind, **own.facts}, as_json, found.one(run))
    else:
        changes = found.changed(run, other)
        put({"before": run, "after": other, "changes": changes}, as_json, "\n".join(changes))
