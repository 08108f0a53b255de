"""The commands of the gate: gate, init."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.contenders import contenders_argument, contenders_of, more_option
from steelyard_eval.cli.commands.options import (
    EmbedderName,
    Handed,
    intents_option,
    json_option,
    limit_option,
    put,
    split_option,
    standing_embedder,
)
from steelyard_eval.cli.commands.shared_options import note
from steelyard_eval.cli.gate_outputs import GateOutputs
from steelyard_eval.cli.init_from_data import start
from steelyard_eval.cli.init_from_store import begin, is_store
from steelyard_eval.common.configurations import separate
from steelyard_eval.common.console import wrapped
from steelyard_eval.datasets import load
from steelyard_eval.datasets.labels import COMPLETE, JudgedPool
from steelyard_eval.gate.gating import check
from steelyard_eval.gate.gating import update as update_baseline
from steelyard_eval.gate.setup import Gate
from steelyard_eval.recording.runs import keep
from steelyard_eval.recording.workspace import embedder_of
from steelyard_eval.views import terminal
from steelyard_eval.views.answered import Gating

baseline_option = click.option(
    "--baseline", type=click.Path(), default="reports/baseline.json", show_default=True, help="The committed file."
)


@click.command()
@click.argument("dataset", type=click.Path())
@contenders_argument
@more_option
@baseline_option
@click.option(
    "--budget",
    type=click.FloatRange(0, 1),
    default=0.04,
    show_default=True,
    help="Drop of nDCG@10 accepted unproven.",
)
@click.option("--strict", is_flag=True, help="Exit with 3 where the labels are too few to tell.")
@click.option("--block-slices", is_flag=True, help="Fail where a category or intent alone is significantly worse.")
@click.option("--update", is_flag=True, help="Write a new baseline of the contenders, else of those it names.")
@click.option("--because", default="", metavar="TEXT", help="Why the baseline is updated; it keeps that.")
@click.option("--accept-worse", is_flag=True, help="Update although search got worse, or a contender is dropped.")
@click.option("--markdown", type=click.Path(), metavar="FILE", help="Write Markdown for a pull request.")
@click.option("--junit", type=click.Path(), metavar="FILE", help="Write JUnit XML.")
@click.option("--github", is_flag=True, help="Annotate, and write the summary of the step, in GitHub Actions.")
@click.option("--out", type=click.Path(), help="Write the JSON document to this file, for `steelyard report`.")
@intents_option
@click.option(
    "--embedder",
    type=EmbedderName(),
    help="By default that of the weights named, else the baseline's own, else auto.",
)
@split_option
@limit_option
@json_option
def gate(
    dataset: str,
    contenders: tuple[str, ...],
    more: tuple[str, ...],
    baseline: str,
    update: bool,
    because: str,
    accept_worse: bool,
    strict: bool,
    markdown: str | None,
    junit: str | None,
    github: bool,
    out: str | None,
    intents: str | None,
    embedder: str | None,
    as_json: bool,
    **options: Handed,
) -> None:
    """Say whether search got worse since the committed baseline: pass, fail, inconclusive or mismatch.

    Without a CONTENDER everything that the baseline names is gated. Exit codes: 0 fine, 1 search got worse, 2 the
    data or the labels are not those of the baseline or a file is broken, 3 inconclusive under --strict. With
    --update the baseline is written instead, and nothing is written where that would hide a decline.
    """
    faces = GateOutputs() if update else GateOutputs(markdown, junit, out, github)
    with faces.deciding():
        data = load(dataset, intents)
        named = contenders_of(contenders, more) or None
        taken = embedder_of(data, embedder or "auto", named or ())
        gate_ = Gate.of(data, baseline, embedder or (taken if taken != "auto" else None), **options)
        if update:
            _update(gate_, named, because, accept_worse, as_json)
            return
        gating = check(gate_, named)
        keep(data, gating.result)
    for notice in gating.notices:
        note(notice)
    faces.write(gating.result, strict=strict)
    put(gating.record, as_json, terminal.render(gating.result, notes=False))
    _end(gating, strict)


def _update(own: Gate, named: list[str] | None, because: str, accept_worse: bool, as_json: bool) -> None:
    gating, copy = update_baseline(own, named, because=because, accept_worse=accept_worse)
    document: dict[str, Any] = {"files": [str(own.path)], "gate": gating and gating.record}
    document |= {"replaced": str(copy)} if copy else {}
    lines = [wrapped(gating.sentence)] if gating else []
    lines += [f"written: {own.path}", *([f"the baseline before is kept as {copy}"] if copy else [])]
    put(document, as_json, "\n".join(lines))


def _end(found: Gating, strict: bool) -> None:
    """Inconclusive is never silent: it is told on stderr as well, whatever stdout goes to."""
    if found.verdict == "inconclusive":
        click.echo("warning: inconclusive; this counts as " + ("failed" if strict else "passed"), err=True)
    if code := found.exit_code(strict):
        sys.exit(code)


@click.command()
@click.argument("dataset", required=False, type=click.Path())
@click.option(
    "--current",
    metavar="CONTENDER",
    type=completion.CONTENDER,
    help="What you use today; by default search-weights.json, else what dataset.json names, else bm25.",
)
@baseline_option
@click.option(
    "--workflow",
    type=click.Path(),
    default=".github/workflows/relevance.yml",
    show_default=True,
    help="The file for GitHub Actions.",
)
@standing_embedder
@click.option(
    "--sampled",
    type=click.Choice(["all", "random", "log", "failing", "duel", "by hand"]),
    help="How the labelled queries were drawn, for a dataset.json that does not say it.",
)
@click.option(
    "--pool",
    metavar="CONTENDERS",
    help='What was judged: "complete", or the contenders whose first ten were, separated by commas.',
)
@click.option(
    "--install",
    default="",
    metavar="ORIGIN",
    help="What the workflow installs: git+https://...@COMMIT, a file by https with #sha256=..., or a path here.",
)
@json_option
def init(
    dataset: str | None,
    current: str | None,
    baseline: str,
    workflow: str,
    embedder: str,
    sampled: str | None,
    pool: str | None,
    install: str,
    as_json: bool,
) -> None:
    """Begin here: import a store and say what is known without labels, or gate a data set that has them.

    DATASET may be a store or a folder of notes: it is imported into the folder `mine`, and the first sentence says
    what public collections showed of what ranks it today. Without DATASET the only data set in or below the
    working directory is used, else the only store. Of a data set with labels dataset.json, a first baseline and a
    workflow that gates every pull request are written. Files that exist are kept; to dataset.json only what
    --sampled and --pool say is added.
    """
    if is_store(dataset):
        begun = begin(dataset, current, embedder=embedder)
        for text in begun.imported.notes:
            note(text)
        put(begun.to_json(), as_json, str(begun))
        return
    judged = None if pool is None else JudgedPool() if pool == COMPLETE else JudgedPool(tuple(separate(pool)), 10)
    started = start(
        dataset,
        current,
        baseline=Path(baseline),
        workflow=Path(workflow),
        embedder=embedder,
        sampled=sampled or "",
        pool=judged,
        install=install,
    )
    put(started.to_json(), as_json, str(started))
