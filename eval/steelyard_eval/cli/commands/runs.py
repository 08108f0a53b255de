"""The command runs: what was measured on a data set so far."""

from __future__ import annotations

from pathlib import Path

import click

from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.common.console import folded
from steelyard_eval.common.markup import spans
from steelyard_eval.datasets import Dataset, check, load
from steelyard_eval.decide.wording import named
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.rankings.spelling import word
from steelyard_eval.recording.runs import find_run, forget, kept
from steelyard_eval.show.runs_kept import Runs, printed
from steelyard_eval.tune.replaced import write_weights


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("run", required=False, type=click.IntRange(1))
@click.argument("other", required=False, type=click.IntRange(1))
@click.option(
    "--out",
    type=click.Path(),
    help="Write the weights that RUN chose or compared to PATH; to *.current.json those used then.",
)
@click.option("--delete", is_flag=True, help="Delete RUN.")
@json_option
def runs(dataset: str, run: int | None, other: int | None, out: str | None, delete: bool, as_json: bool) -> None:
    """List what compare, recommend, tune, learn and gate found on DATASET, and say whether the last is better.

    Nothing is measured: after a change compare the same weights again first. In the list `today` is what the
    others were held against; `value` and `of` are what the run chose, else its weights file, else the best other
    one. The last column has an earlier run that measured the same in the same way, and what changed since:
    `1: labels` means that labels changed since run 1; a name in brackets is what both runs have, where that is
    not `of`. docs/report.md says which run is taken.

    With RUN that run alone. With RUN and OTHER whether OTHER is better, by how much, and what changed. Runs are
    kept in .steelyard/runs.db beside the data set, with ids and numbers and without texts; STEELYARD_RUNS=off
    keeps none.
    """
    if out and (run is None or other is not None):
        raise click.UsageError("--out writes the weights of one run; name that run")
    if delete and (run is None or other is not None or out):
        raise click.UsageError("--delete deletes one run; name that run alone")
    data = _as_it_is(dataset)
    if delete and run is not None:
        gone = forget(data, run)
        left = ", ".join(spans([one.id for one in kept(data)])) or "none"
        said = f"deleted: run {gone.id}, {gone.kind} of {gone.at}\nkept are: {left}"
        put({"deleted": gone.id}, as_json, said)
        return
    history = Runs(data)
    if run is None:
        put(history.to_json(), as_json, str(history))
    elif other is None:
        past = find_run(history.runs, run)
        written = _written(history, run, Path(out)) if out else []
        more = {"replaced": written[1:]} if written[1:] else {}
        document = {"run": past.id, "at": past.at, "kind": past.kind, **past.facts, **more}
        steps = [f"to check it: {spelled('compare', data, word(Path(out)), options={})}"] if out else []
        put(document, as_json, "\n".join([*written, *steps]) or history.one(run))
    else:
        changes = history.changed(run, other)
        rows = [find_run(history.runs, one).facts.get("rows", []) for one in (run, other)]
        put(
            {"before": run, "after": other, "changes": changes, "rows": rows},
            as_json,
            "\n".join(map(printed, changes)),
        )


def _as_it_is(folder: str) -> Dataset:
    """The data set; files that are no longer those whose hashes dataset.json holds are noted and no fault here."""
    report = check(folder, log=False)
    data = report.dataset or check(folder, log=False, sealed=False).dataset or load(folder)
    for fault in report.faults:
        note(str(fault))
    return data


def _written(found: Runs, run: int, out: Path) -> list[str]:
    config = found.file(run, out)
    return [folded(f"written: {out}, with {named(config)}"), *write_weights({out: config}, found.dataset)]
