"""The commands recommend and tune: which weights, over all families or for one strategy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from steelyard.base.errors import DataError
from steelyard.base.files import regular_target
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.contenders import by_option
from steelyard_eval.cli.commands.options import (
    Handed,
    floor_option,
    intents_option,
    jobs_option,
    json_option,
    limit_option,
    put,
    recording_option,
    seed_option,
    standing_embedder,
)
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.datasets import Dataset, load
from steelyard_eval.export import TARGETS
from steelyard_eval.notebook.label.by_model import model_labels as read_model_labels
from steelyard_eval.recording.rankings import spelled
from steelyard_eval.recording.runs import keep
from steelyard_eval.recording.workspace import embedder_of
from steelyard_eval.show.runs_kept import Runs
from steelyard_eval.show.terminal import recommendation, tuning
from steelyard_eval.tune import tune as run_tune
from steelyard_eval.tune.floor import floored
from steelyard_eval.tune.recommendation import recommend as run_recommend

_CHOICE = (
    click.option("--metric", default="nDCG@10", show_default=True, type=completion.METRIC),
    click.option("--out", type=click.Path(), default="search-weights.json", show_default=True),
    click.option(
        "--for",
        "target",
        type=click.Choice(list(TARGETS)),
        callback=lambda ctx, param, value: value or "",
        help="Choose only what this system expresses, so that `steelyard export` writes it for that.",
    ),
    click.option(
        "--latency",
        type=click.FloatRange(0),
        metavar="MS",
        help="Choose only where half of the searches take at most so many milliseconds on this machine.",
    ),
    click.option(
        "--embedding-calls",
        type=click.FloatRange(0, 100),
        metavar="N",
        help="Choose only what embeds at most N of 100 queries; 0: only what reads no vectors.",
    ),
    floor_option,
    recording_option,
    limit_option,
    intents_option,
    standing_embedder,
    seed_option,
    json_option,
)


def choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of both: on what is decided, what may be chosen, where it goes."""
    for option in reversed(_CHOICE):
        command = option(command)
    return command


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("contender", default="", metavar="[CONFIGURATION]", type=completion.CONFIGURATION)
@by_option
@click.option("--strategy", type=completion.STRATEGY, help="Another strategy over what that retrieves.")
@click.option("--ablate", is_flag=True, help="Measure what each signal, each weight and more labels are worth.")
@choosing
def tune(
    dataset: str,
    contender: str,
    by: str,
    strategy: str | None,
    out: str,
    floor: str | None,
    intents: str | None,
    as_json: bool,
    **options: Handed,
) -> None:
    """Choose the settings and weights of one strategy, estimate their gain, and write search-weights.json.

    CONFIGURATION is what to start from: a system, a strategy or a weights file; `plain` by default.
    With the verdict ship the file has the chosen weights, with keep the current ones. With try there are two files
    beside it, *.current.json and *.try.json. Ctrl-C ends the search with the best found so far, which never ships,
    and the exit code is 130. A second Ctrl-C ends the command.
    """
    if contender and by:
        raise click.UsageError(f"{contender} and {by} are two to start from; name one")
    regular_target(Path(out))
    data = load(dataset, intents).embedded_by(options["embedder"])
    result = run_tune(data, contender or by or None, strategy, **options)
    result, floors = floored(result, data, floor, options["embedder"])
    keep(data, "tune", result.to_json())
    for notice in (*result.record["notices"], *floors):
        if notice not in result.aside:
            note(notice)
    if not (contender or by or strategy):
        named = spelled("tune", data, "CONFIGURATION", options={})
        note(f"tuned from {result.record['current']}, as what you run today was not named: {named}")
    result, files = result.saved(out, data)
    put(result.to_json(), as_json, "\n".join([tuning(result.record), "", *files]))
    if result.interrupted:
        raise KeyboardInterrupt  # the result is printed; the exit code marks it as incomplete


def _trend(data: Dataset) -> Runs | None:
    """The kept runs; a file that is damaged or somebody else's costs the trend and not the result."""
    try:
        return Runs(data)
    except DataError as error:
        note(f"the report has no trend: {error}")
        return None


@click.command()
@click.argument("dataset", type=click.Path())
@click.option(
    "--current",
    metavar="CONTENDER",
    type=completion.CONTENDER,
    help="What you use today: a system, a strategy, a weights file. The data set's own, else bm25, by default.",
)
@click.option(
    "--report",
    "folder",
    type=click.Path(),
    help="Write HTML, Markdown, JSON and a summary for a pull request to this folder.",
)
@click.option("--model-labels", type=click.Path(), metavar="FILE", help="What judge --model wrote.")
@jobs_option
@choosing
def recommend(
    dataset: str,
    current: str | None,
    out: str,
    folder: str | None,
    model_labels: str | None,
    floor: str | None,
    intents: str | None,
    as_json: bool,
    **options: Handed,
) -> None:
    """Say which strategy and which weights to use instead of what you use today, and what to expect of them.

    Every family and system is tuned over all signals of the data set. Under ship the file holds what was chosen,
    under keep what you use today. Under try there are two files beside it: *.current.json, what you use today, and
    *.try.json, what to try; so there are under keep where what you use today may not be chosen (--for, --latency,
    --embedding-calls). Ctrl-C decides on what was tried so far, of which nothing ships; the exit code is 130.
    """
    regular_target(Path(out))  # before the work, whose result would be lost
    data = load(dataset, intents).embedded_by(options["embedder"])
    labels = read_model_labels(model_labels, data) if model_labels else None
    options["embedder"] = embedder_of(data, options["embedder"], [current])
    answer = run_recommend(data, current, model_labels=labels, **options)
    answer, floors = floored(answer, data, floor, options["embedder"])
    answer, files = answer.saved(out, data)
    document = answer.to_json()
    keep(data, "recommend", document)
    for notice in (*document["notices"], *floors):
        if notice not in answer.aside:
            note(notice)
    files += [str(path) for path in (answer.report(folder, _trend(data)) if folder else [])]
    put(document, as_json, "\n".join([recommendation(answer.record), "", *files]))
    if answer.interrupted:
        raise KeyboardInterrupt  # the result is printed; the exit code marks it as incomplete
