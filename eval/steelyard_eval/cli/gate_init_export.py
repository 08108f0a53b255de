"""The commands that keep what was chosen: gate, init, export."""

import sys
from pathlib import Path
from typing import Literal

import click

from steelyard.base.files import write_text
from steelyard_eval.cli.options import Handed, command, note, put, put_answer, separated, standing
from steelyard_eval.workbench.workbench import Workbench, load


@command(Workbench.gate, load, leave="contenders queries qrels vectors text_for_embedding jobs")
@standing
def gate(
    dataset: str,
    contender: tuple[str, ...] = (),
    *,
    baseline: str = "reports/baseline.json",
    update: bool = False,
    reason: str = "",
    accept_worse: bool = False,
    strict: bool = False,
    markdown: str | None = None,
    junit: str | None = None,
    github: bool = False,
    out: str | None = None,
    embedder: str | None = None,
    intents: str | None = None,
    **options: Handed,
) -> None:
    """Test whether search got worse since the committed baseline.

    The verdict is pass, fail, inconclusive or mismatch. Without a CONTENDER, gate tests all contenders of the
    baseline. Exit codes: 0 fine; 1 search got worse; 2 data or labels differ from the baseline's, or a file is
    broken; 3 inconclusive (--strict). --update writes the baseline instead, unless that would hide a decline.

    Parameters
    ----------
    baseline: Baseline file, which you commit.
    update: Write a new baseline of the contenders (default: those of the old baseline).
    reason: Reason for the update; the baseline stores it.
    accept_worse: Update even if search got worse or a contender is dropped.
    strict: Exit with 3 if the labels are too few to decide.
    markdown: Write Markdown for a pull request to this file.
    junit: Write JUnit XML to this file.
    github: In GitHub Actions, write annotations and the summary of the step.
    out: Write the JSON document to this file, for `steelyard report`.
    embedder: Source of the vectors (default: that of the weights files, else of the baseline, else auto).

    Examples
    --------
    steelyard gate mine
    steelyard gate mine search-weights.json --strict
    steelyard gate mine --update --reason "the new weights of March"
    """
    from steelyard_eval.cli.gate_outputs import GateOutputs, updated
    from steelyard_eval.datasets import load as load_dataset
    from steelyard_eval.gate.gate import check
    from steelyard_eval.gate.setup import Gate
    from steelyard_eval.recording.saved_runs import keep
    from steelyard_eval.recording.workspace import embedder_of

    faces = GateOutputs() if update else GateOutputs(markdown, junit, out, github)
    with faces.deciding():
        data = load_dataset(dataset, intents)
        named = separated(contender) or None
        taken = embedder_of(data, embedder or "auto", named or ())
        own = Gate.of(data, baseline, embedder or (taken if taken != "auto" else None), **options)
        if update:
            put(*updated(own, named, reason, accept_worse))
            return
        gating = check(own, named)
        keep(data, gating.result)
    faces.write(gating.result, strict=strict)
    put_answer(gating)
    if gating.verdict == "inconclusive":  # never silent: it is told on stderr as well, whatever stdout goes to
        click.echo("warning: inconclusive; this counts as " + ("failed" if strict else "passed"), err=True)
    if code := gating.exit_code(strict):
        sys.exit(code)


@command(load, leave="queries qrels vectors text_for_embedding jobs intents")
@standing
def init(
    dataset: str | None = None,
    *,
    current: str | None = None,
    baseline: str = "reports/baseline.json",
    workflow: str = "",
    embedder: str = "auto",
    sampled: Literal["all", "random", "log", "failing", "duel", "by hand"] | None = None,
    pool: str | None = None,
    install: str = "",
) -> None:
    """Write a first baseline, and a workflow for GitHub or GitLab that gates pull requests.

    The default DATASET is the only data set in or below the working directory. init writes dataset.json, a first
    baseline and, with --install, a workflow. It keeps files that exist, and adds only --sampled and --pool to
    dataset.json.

    Parameters
    ----------
    current: What you use today (default: search-weights.json, else the system in dataset.json, else bm25).
    baseline: Baseline file, which you commit.
    workflow: Workflow file (default: .gitlab-ci.yml if GitLab has the repository, else a workflow for GitHub).
    sampled: How the labelled queries were selected, if dataset.json does not say so.
    pool: Labelled results: "complete", or the contenders whose top 10 were labelled, separated by commas.
    install: Package for the workflow: git+https://...@COMMIT, a file by https with #sha256=..., or a path here.

    Examples
    --------
    steelyard init mine --current prod.run
    """
    from steelyard_eval.cli.init_from_data import start
    from steelyard_eval.datasets.labels import COMPLETE, JudgedPool

    judged = None
    if pool is not None:
        judged = JudgedPool() if pool == COMPLETE else JudgedPool(tuple(separated([pool])), 10)
    started = start(
        dataset, current, baseline=Path(baseline), workflow=workflow, embedder=embedder,
        sampled=sampled or "", pool=judged, install=install,
    )  # fmt: skip
    put(vars(started), str(started))


@command()
def export(configuration: str, *, to: str, out: str | None = None) -> None:
    """Translate a weights file, a system or a strategy for another system.

    Parameters
    ----------
    to: echovault, moltnet, soleri, spec_kit, cortex_mem, opensearch, elasticsearch, vespa, weaviate, qdrant,
        lancedb or pgvector; python for one file of Python.
    out: Write the document to this file instead of stdout.

    Examples
    --------
    steelyard export search-weights.json --to elasticsearch
    """
    from steelyard_eval.common.configurations import Setting, read_configuration
    from steelyard_eval.export import export as run_export

    document = run_export(read_configuration(configuration).config(Setting(0)), to)
    if out:
        write_text(out, str(document))
        for line in document.notes:
            note(line)
    text = f"written: {out}" if out else str(document).rstrip("\n")
    put({**document.to_json(), **({"file": out} if out else {})}, text)
