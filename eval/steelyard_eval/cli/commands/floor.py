"""The command floor: below which score nothing is shown."""

from __future__ import annotations

from pathlib import Path

import click

from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.options import (
    Handed,
    json_option,
    limit_option,
    put,
    split_option,
    standing_embedder,
)
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.common.console import table
from steelyard_eval.datasets import load
from steelyard_eval.tune.floor import find_floor, share_of
from steelyard_eval.tune.replaced import write_weights


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("contender", default="", metavar="[CONFIGURATION]", type=completion.CONFIGURATION)
@click.option(
    "--lost", default="10%", show_default=True, help="What share of the relevant entries may be lost, or none."
)
@click.option("--false", help="What share of the questions without an answer may be answered; needs such labels.")
@click.option(
    "--on", help="The sum that the floor is compared with; bm25 and vector on their own scales by default."
)
@click.option("--out", type=click.Path(), default="search-weights.json", show_default=True)
@split_option
@limit_option
@standing_embedder
@json_option
def floor(
    dataset: str,
    contender: str,
    lost: str,
    false: str | None,
    out: str,
    as_json: bool,
    **options: Handed,
) -> None:
    """Find the score below which nothing should be shown, and write the weights file that has it.

    What is promised is what is lost: of the relevant entries in a list, in the mean, with a bound that holds for
    nine of ten sets of labels. CONFIGURATION is what searches: a system, a strategy, or a weights file; by default
    what dataset.json names, else the baselines' sum.
    """
    data = load(dataset).embedded_by(options["embedder"])
    result = find_floor(
        data,
        contender or None,
        lost=None if lost == "none" else share_of(lost),
        false=None if false is None else share_of(false),
        **options,
    )
    document = result.to_json()
    if document["floor"] is not None:
        for line in (f"written: {out}", *write_weights({Path(out): result.config}, data)):
            note(line)
    columns = {
        "questions": "questions",
        "count": "",
        "answered": "answered",
        "hits": "hits",
        "words": "words left",
    }
    rows = [
        {**row, "answered": f"{row['answered']:.0%}", "hits": f"{row['hits']:.1f}", "words": f"{row['words']:.0%}"}
        for row in document["questions"]
    ]
    put(document, as_json, f"{document['sentence']}\n\n{table(rows, columns)}")
