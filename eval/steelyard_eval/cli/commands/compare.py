"""The commands compare and record: which strategy, by searching or by a recording."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path

import click

from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.contenders import contenders_argument, contenders_of, more_option
from steelyard_eval.cli.commands.options import (
    Handed,
    embedder_option,
    intents_option,
    jobs_option,
    json_option,
    limit_option,
    listed,
    put,
    recording_option,
    seed_option,
    split_option,
    standing_embedder,
)
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.common.default_systems import SYSTEMS
from steelyard_eval.compare import compare as run_compare
from steelyard_eval.compare.list_recording import save_lists
from steelyard_eval.compare.verification import refuse_differences
from steelyard_eval.datasets import load
from steelyard_eval.recording.record import record_systems
from steelyard_eval.recording.replay import intents_of
from steelyard_eval.recording.runs import keep
from steelyard_eval.recording.workspace import embedder_of
from steelyard_eval.result.sentences import say
from steelyard_eval.views import terminal

RERANK = (
    "Which candidates a re-ranker scores: those that the systems read, or all, so that any top can be replayed."
)


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--systems",
    default=",".join(SYSTEMS),
    show_default=True,
    type=completion.SYSTEM,
    help="Names, separated by commas.",
)
@click.option(
    "--runs",
    metavar="NAME=CONTENDER,...",
    help="Record lists of other engines (TREC runs, URLs) into OUT instead: --runs bm25=a.run,mine=b.run.",
)
@split_option
@limit_option
@intents_option
@embedder_option
@click.option("--rerank", default="top", show_default=True, type=click.Choice(["top", "all"]), help=RERANK)
@jobs_option
@json_option
def record(
    dataset: str,
    out: str,
    systems: str,
    runs: str | None,
    split: str | None,
    limit: int | None,
    intents: str | None,
    embedder: str,
    rerank: str,
    jobs: int | Executor,
    as_json: bool,
) -> None:
    """Save signal tables of systems, a folder for each under OUT, or of lists of other engines."""
    data = load(dataset, intents).embedded_by(embedder)
    if runs is None:
        folders = record_systems(data, listed(systems), Path(out), split, limit or 10, embedder, rerank, jobs)
    else:
        folders, notices = save_lists(data, runs, Path(out), split or "all")
        for notice in notices:
            note(say(notice))
    which = f", intents {source}" if (source := intents_of(data)) else ""
    text = "\n".join(f"{folder}: {rows} rows{which}" for folder, rows in folders.items())
    document = {"recordings": [{"folder": k, "rows": v} for k, v in folders.items()], "intents": source}
    put(document, as_json, text)


@click.command()
@click.argument("dataset", type=click.Path())
@contenders_argument
@more_option
@click.option(
    "--metrics",
    default="nDCG@10,R@10,RR@10,RecallAll@10,Judged@10",
    show_default=True,
    type=completion.METRIC,
    help="Names of ir_measures, separated by commas; the first one is tested.",
)
@click.option(
    "--baseline",
    "--current",
    "baseline",
    metavar="LABEL|CONTENDER",
    type=completion.CONTENDER,
    help="What the others are tested against, such as what you run today; by default the `system` of dataset.json "
    "where it is compared or a contender is alone, else the first contender.",
)
@recording_option
@split_option
@limit_option
@click.option("--runs", type=click.Path(), help="Write TREC runs to this folder.")
@click.option("--verify", is_flag=True, help="Compute every metric of the runs again with ir_measures.")
@click.option(
    "--out",
    type=click.Path(),
    help="Write the JSON document to this file, for `steelyard report`; the means as .tex "
    "(RecallAll@10 and Judged@10 only where --metrics names metrics) or .parquet.",
)
@intents_option
@standing_embedder
@jobs_option
@seed_option
@json_option
def compare(
    dataset: str,
    contenders: tuple[str, ...],
    more: tuple[str, ...],
    out: str | None,
    intents: str | None,
    as_json: bool,
    **options: Handed,
) -> None:
    """Compare systems, strategies, weights files, TREC runs and endpoints on the judged queries of a split.

    Where no query has judgments: how far the contenders' lists agree.

    A CONTENDER is a system (echovault:shipped), a strategy (rrf(bm25, vector)), a weights file (*.json), a TREC
    run (*.run), a search endpoint (http://localhost:8000/search?q={query}&limit={limit}) or a tool of an MCP
    server (mcp:COMMAND#TOOL), which is started for it; LABEL= may precede it. After # an endpoint's address may
    have ids=PATH, scores=PATH (JMESPath) and body=JSON, sent by POST; after a tool &ids=, &scores=, &arguments=.

    With --verify the exit code is 2 when a value differs from that of ir_measures by more than 1e-9.
    """
    data = load(dataset, intents).embedded_by(options["embedder"])
    named = contenders_of(contenders, more)
    if len(named) == 1 and not options["baseline"] and not options["recording"]:
        options["baseline"] = data.system or None
    if not options["recording"]:
        options["embedder"] = embedder_of(data, options["embedder"], [*named, options["baseline"]])
    answered = run_compare(data, named or None, **options)
    keep(data, answered.result)
    if out:
        answered.save(out)
    for notice in answered.notices:
        note(notice)
    text = terminal.render(answered.result, notes=False)
    put(answered.record, as_json, "\n".join([text, *([f"\nwritten: {out}"] if out else [])]))
    if options["verify"]:
        refuse_differences(answered.result)
