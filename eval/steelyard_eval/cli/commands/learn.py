"""The command learn: weights from logs."""

from __future__ import annotations

import click

from steelyard_eval.choose.find_floor import floored
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.options import (
    floor_option,
    intents_option,
    json_option,
    put,
    standing_embedder,
)
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.common.extensions import extension
from steelyard_eval.datasets import load
from steelyard_eval.datasets.logs import HeldLog
from steelyard_eval.learn import learn as run_learn
from steelyard_eval.recording.runs import keep
from steelyard_eval.views import terminal

RULES = ("labels", "adaptive")
CURRENT = (
    "What ranked the log, and is used today: a system, a strategy or a weights file. By default the policy that "
)
CURRENT += "ranked most of it, else the data set's system."
FROM = "What is read first (transcripts, otel, openinference, ubi): a file or folder, else "
FROM += "where its program keeps it."


@click.command()
@click.argument("dataset", type=click.Path())
@click.option("--feedback", type=click.Path(), metavar="LOG", help="The data set's own feedback.jsonl by default.")
@click.option("--from", "source", metavar="KIND[:PATH]", help=FROM)
@click.option("--keep-queries", is_flag=True, help="Of --from: write the texts of queries into the log, too.")
@click.option("--dry-run", is_flag=True, help="Of --from: print what would be written, and write nothing.")
@click.option("--current", metavar="CONFIGURATION", type=completion.CONFIGURATION, help=CURRENT)
@click.option(
    "--rule",
    default="labels",
    show_default=True,
    type=click.Choice(RULES),
    help="Labels decide and acts sharpen them; or the rule of Soleri, which never ships.",
)
@click.option(
    "--labels/--no-labels",
    default=True,
    help="Labels decide from 15 labelled queries on; without them nothing ships.",
)
@click.option("--out", type=click.Path(), default="search-weights.json", show_default=True)
@click.option("--document", type=click.Path(), metavar="FILE", help="Write the JSON document to this file.")
@floor_option
@intents_option
@standing_embedder
@json_option
def learn(
    dataset: str,
    feedback: str | None,
    source: str | None,
    keep_queries: bool,
    dry_run: bool,
    current: str | None,
    rule: str,
    labels: bool,
    out: str,
    document: str | None,
    floor: str | None,
    intents: str | None,
    embedder: str,
    as_json: bool,
) -> None:
    """Learn weights from a feedback log, and say whether they should replace those that are used today.

    Corrects for what was shown and where. With --from the log is first read from what another program keeps:
    sessions of coding agents, traces, exports. Nothing leaves this machine, and the log that is written holds ids,
    places, scores and acts, and no text of what was read.

    Under ship the file has the learned weights, under keep the current ones. Under try there are two files beside
    it, *.current.json and *.try.json.
    """
    data = load(dataset, intents).embedded_by(embedder)
    log: str | HeldLog | None = feedback
    if source:
        use = extension("usage").gather(data, source, log=feedback, keep_queries=keep_queries)
        if dry_run:
            put(use.to_json(), as_json, "".join([*use.lines, str(use)]))
            return
        use.write()
        log = use.held
        note(str(use))
    elif dry_run or keep_queries:
        raise click.UsageError("--dry-run and --keep-queries are about --from KIND[:PATH]; name what is read")
    result = run_learn(data, log, current, rule=rule, labels=labels, embedder=embedder)
    result, floors = floored(result, data, floor, embedder)
    keep(data, result.result)
    for sentence in floors:
        note(sentence)
    result, files = result.saved(out, data)
    if document:
        result.save(document)
    for sentence in result.notices:
        note(sentence)
    put(result.record, as_json, "\n".join([terminal.render(result.result, notes=False), "", *files]))
