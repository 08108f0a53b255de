"""The commands recommend and tune: which weights, over all families or for one strategy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from steelyard.base.files import regular_target
from steelyard_eval.choose.find_floor import floored
from steelyard_eval.choose.recommend import recommend as run_recommend
from steelyard_eval.cli.commands import completion
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
from steelyard_eval.common.extensions import extension
from steelyard_eval.datasets import load
from steelyard_eval.export import TARGETS
from steelyard_eval.recording.runs import keep
from steelyard_eval.recording.workspace import embedder_of
from steelyard_eval.result.sentences import say
from steelyard_eval.views import terminal

_CHOICE = (
    click.option(
        "--current",
        metavar="CONTENDER",
        type=completion.CONTENDER,
        help="What you use today: a system, a strategy, a weights file. By default the data set's own, else bm25.",
    ),
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
    click.option("--model-labels", type=click.Path(), metavar="FILE", help="What judge --model wrote."),
    click.option(
        "--report",
        "folder",
        type=click.Path(),
        help="Write HTML, Markdown, JSON and a summary for a pull request to this folder.",
    ),
    floor_option,
    recording_option,
    limit_option,
    intents_option,
    standing_embedder,
    seed_option,
    jobs_option,
    json_option,
)


def choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of both: on what is decided, what may be chosen, where it goes."""
    for option in reversed(_CHOICE):
        command = option(command)
    return command


@click.command()
@click.argument("dataset", type=click.Path())
@choosing
def recommend(dataset: str, **options: Handed) -> None:
    """Say which strategy and which weights to use instead of what you use today, and what to expect of them.

    Every family and system is tuned over all signals of the data set. Under ship the file holds what was chosen,
    under keep what you use today. Under try there are two files beside it: *.current.json, what you use today, and
    *.try.json, what to try; so there are under keep where what you use today may not be chosen (--for, --latency,
    --embedding-calls). Ctrl-C decides on what was tried so far, of which nothing ships; the exit code is 130.
    """
    _choose(dataset, **options)


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("only", metavar="STRATEGY", type=completion.CONFIGURATION)
@click.option("--weights-only", is_flag=True, help="Keep its settings as they are written: k, scale, depths.")
@choosing
def tune(dataset: str, only: str, **options: Handed) -> None:
    """Say which settings and weights of one strategy to use: `recommend`, among those of STRATEGY alone.

    STRATEGY is a system, a strategy or a weights file, and is what you use today unless --current names another.
    It is tuned on the split train where there is one, not on test. Files and verdicts are those of `recommend`.
    """
    _choose(dataset, only=only, **options)


def _choose(
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
    """Recommend, over all families or `only` one strategy; write the weights, print the answer."""
    regular_target(Path(out))  # before the work, whose result would be lost
    data = load(dataset, intents).embedded_by(options["embedder"])
    labels = extension("model_judge").model_labels(model_labels, data) if model_labels else None
    options["embedder"] = embedder_of(data, options["embedder"], [current, options.get("only")])
    answer = run_recommend(data, current, model_labels=labels, **options)
    answer, floors = floored(answer, data, floor, options["embedder"])
    answer, files = answer.saved(out, data)
    keep(data, answer.result)
    for text in (*(say(said) for said in answer.result.notices if said not in answer.aside), *floors):
        note(text)
    files += [str(path) for path in (answer.report(folder) if folder else [])]
    put(answer.record, as_json, "\n".join([terminal.render(answer.result, notes=False), "", *files]))
    if answer.interrupted:
        raise KeyboardInterrupt  # the result is printed; the exit code marks it as incomplete
