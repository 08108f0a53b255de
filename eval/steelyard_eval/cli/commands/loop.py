"""The command loop: everything from a week of use to a file to try or to ship."""

from __future__ import annotations

import sys

import click

from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.options import Handed, json_option, put, standing_embedder
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.common.extensions import extension
from steelyard_eval.learn.loop import WEIGHTS
from steelyard_eval.learn.loop import loop as run_loop

CURRENT = "What you use today; the file --weights by default, where there is one, else what the data set names."


@click.command()
@click.argument("dataset", type=click.Path())
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="KIND[:PATH]",
    help="Logs of other programs, as in learn; repeatable. The transcripts on this machine by default.",
)
@click.option("--current", metavar="CONTENDER", type=completion.CONTENDER, help=CURRENT)
@click.option("--weights", type=click.Path(), default=WEIGHTS, show_default=True, help="What is in use.")
@click.option("--baseline", type=click.Path(), default="reports/baseline.json", show_default=True)
@click.option("--report", "reports", type=click.Path(), default="reports/loop", show_default=True)
@click.option("--adopt", is_flag=True, help="Let what ships replace --weights.")
@click.option("--strict", is_flag=True, help="Exit with 3 where the gate cannot tell.")
@click.option("--keep-queries", is_flag=True, help="Write the texts of queries into the logs, too.")
@standing_embedder
@json_option
def loop(
    dataset: str,
    sources: tuple[str, ...],
    current: str | None,
    as_json: bool,
    **options: Handed,
) -> None:
    """Run the whole loop once: refresh the data set, read what use left behind, learn, recommend, gate, report.

    What is worth trying or shipping goes beside --weights as *.try.json or *.ship.json; --weights itself is only
    replaced with --adopt. The same input gives the same files, and one run is kept (steelyard runs). Exit
    codes: 0 fine, 1 what is in use got worse, 2 bad input, 3 the gate cannot tell
    under --strict.
    """
    result = run_loop(dataset, sources, current, **options)
    for use in result.record["use"]:
        note(extension("usage").summary(use))
    put(result.to_json(), as_json, str(result))
    if result.exit_code:
        sys.exit(result.exit_code)
