"""The commands that measure: check, compare, explain, runs, report."""

import sys
from pathlib import Path

import click
from click.core import ParameterSource

from steelyard_eval.cli.options import (
    Handed,
    bench_of,
    command,
    note,
    put,
    put_answer,
    separated,
    show,
    standing,
    wants_json,
)
from steelyard_eval.common.console import table
from steelyard_eval.workbench.workbench import Workbench, load


@command(load, leave="queries qrels vectors text_for_embedding jobs intents")
def check(
    dataset: str,
    *,
    accept: bool = False,
    known_items: bool = False,
    null: bool = False,
    current: str | None = None,
    embedder: str = "auto",
    seed: int = 0,
) -> None:
    """Validate a data set and report all faults at once.

    A data set is a folder. corpus.jsonl and queries.jsonl have one JSON object a line, with "id" and "text".
    qrels.txt has one label a line: QUERY 0 ENTRY GRADE, with grades of 0 to 4.

    If dataset.json holds hashes of files, a changed file is a fault.

    Parameters
    ----------
    accept: Accept changed files: renew their hashes, and list the changes.
    known_items: Search for 200 entries by one sentence of each. Misses indicate broken indexing, not low quality.
    null: Shuffle the labels 200 times: does the best contender still lead --current?
    current: Contender for --known-items and --null (default: the system in dataset.json, else bm25).
    seed: Seed of --known-items and --null.

    Examples
    --------
    steelyard check mine
    steelyard check mine --known-items
    """
    from steelyard_eval.workbench.data_check import checked

    made = checked(
        Path(dataset), accepts=accept, known_items=known_items, null=null, current=current, embedder=embedder,
        seed=seed,
    )  # fmt: skip
    put(made.to_json(), str(made))
    if made.report.faults:
        sys.exit(2)


def _alone(options: dict[str, Handed], *taken: str) -> dict[str, Handed]:
    """The options of these names; UsageError for another one that was given, which would have no effect."""
    from steelyard_eval.result.sentences import heading

    ctx = click.get_current_context()
    for name in sorted(options.keys() - {*taken}):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            said = heading("no_effect", {"option": name.replace("_", "-"), "current": name == "current"})
            raise click.UsageError(said)
    return {name: options[name] for name in taken}


@command(Workbench.compare, load, leave="contenders timed queries qrels vectors text_for_embedding embedder")
@standing
def compare(
    dataset: str,
    contender: tuple[str, ...] = (),
    *,
    embedder: tuple[str, ...] = (),
    stages: bool = False,
    out: str | None = None,
    **options: Handed,
) -> None:
    """Compare systems, strategies, weights files, runs and endpoints.

    compare measures contenders on the labelled queries of a split. Without labels, it shows how far lists agree.

    A CONTENDER is a system (echovault:shipped), a strategy (rrf(bm25, vector)), a weights file (*.json), a TREC
    run (*.run), a search endpoint (http://localhost:8000/search?q={query}&limit={limit}) or a tool of an MCP
    server that steelyard starts (mcp:COMMAND#TOOL). LABEL=CONTENDER names it. An endpoint takes #ids=PATH
    (JMESPath) and body=JSON (for POST) after its address; a tool takes &ids= and &arguments=.

    With two embedders, one strategy (default: today's, else rrf(bm25, vector)) is tuned for each, out of fold.

    With --verify, the exit code is 2 if a value differs from that of ir_measures by more than 1e-9.

    Parameters
    ----------
    embedder: Source of the vectors; a second one compares the two models.
    stages: Compare one contender with itself without each of its signals and stages: which may be left out?
    out: Write the JSON document to this file, for `steelyard report`. A .tex or .parquet file gets the means.

    Examples
    --------
    steelyard compare mine --current echovault
    steelyard compare mine bm25 "rrf(bm25, vector)" --current today=prod.run
    steelyard compare mine --out results.json
    """
    named = separated(contender)
    searched = not options["recording"]
    if len(embedder) > 2 or (len(named) > 1 and (stages or len(embedder) > 1)):
        raise click.UsageError("--stages, and two embedders, are about one search; name at most one CONTENDER")
    options["embedder"] = embedder[0] if embedder else "auto"
    bench = bench_of(dataset, [*named, options["current"]] if searched else [], options)
    if searched and len(named) == 1 and not options["current"]:
        options["current"] = bench.dataset.system or None
    if len(embedder) == 2:
        answered = bench.compare_models(
            *named, old=embedder[0], new=embedder[1], **_alone(options, "metrics", "seed")
        )
    elif stages:
        answered = bench.compare_stages(*named, **_alone(options, "metrics", "split", "seed"))
    else:
        answered = bench.compare(named or None, **options)
    put_answer(answered)  # first: a file that cannot be written costs no answer
    if out:
        answered.save(out)
        if not wants_json():
            show(f"\nwritten: {out}")
    if options["verify"]:
        from steelyard_eval.compare.verification import refuse_differences

        refuse_differences(answered.result)


@command(Workbench.explain, load, leave="config queries qrels vectors text_for_embedding jobs")
def explain(
    dataset: str, query_id: str | None = None, configuration: str | None = None, **options: Handed
) -> None:
    """Explain the results of one query, signal by signal, and what another contender changes.

    The default CONFIGURATION is the system in dataset.json, else bm25. Without a QUERY_ID, explain lists its worst
    queries. With --against, the CONFIGURATION is "before" and the other contender is "after", in this order; then
    explain lists the queries that gain most.

    Examples
    --------
    steelyard explain mine echovault
    steelyard explain mine q1 --against bm25
    steelyard explain mine q1 --entry m1
    """
    from steelyard_eval.cli.worst_queries import is_configuration, listed, worst
    from steelyard_eval.recording.next_steps import shell_command

    embedder, intents, limit = options["embedder"], options["intents"], options["limit"]
    data = bench_of(dataset, [], {**options}).dataset
    against, entry = options["against"], options["entry"]
    if query_id is not None and is_configuration(query_id, data):
        configuration, query_id = query_id, None
    today = configuration or data.today
    bench = bench_of(dataset, [today, against], options)
    typed = {"--embedder": None if embedder == "auto" else embedder, "--intents": intents, "--limit": limit}
    if query_id is not None:
        explanation = bench.explain(query_id, today, **options)
        put(explanation.to_json(), str(explanation))
        return
    if entry is not None:
        grades = {query: own[entry] for query, own in data.qrels.items() if entry in own}
        asked = max(grades, key=grades.__getitem__, default="QUERY")
        again = shell_command(
            "explain", data, asked, today, options={"--against": against, "--entry": entry, **typed}
        )
        raise click.UsageError(f"--entry needs a QUERY_ID; name one: {again}")
    document = worst(bench, [today, against] if against else [today], limit, typed)
    put(document, listed(document, data))


@command()
def runs(dataset: str, run: int | None = None, other: int | None = None, *, trend: str | None = None) -> None:
    """List past runs, and what changed between them.

    The value of a run is that of its choice, else of its only weights file, else of its best contender. The last
    column compares it with the previous run that has the same metric and split. With RUN and OTHER, runs shows how
    the two differ, query by query. Steelyard stores runs in .steelyard/runs.db in the data set, as ids and numbers
    without texts. STEELYARD_RUNS=off stores none.

    Parameters
    ----------
    trend: Show only this metric over time, such as nDCG@10.

    Examples
    --------
    steelyard runs mine
    steelyard runs mine 5 7
    """
    from steelyard_eval.datasets import check as validate
    from steelyard_eval.datasets import load as load_dataset
    from steelyard_eval.recording.history import Runs, describe_comparison

    if (run is None) != (other is None):
        raise click.UsageError("runs takes two runs to compare, or none to list all")
    report = validate(dataset, log=False)
    data = report.dataset or validate(dataset, log=False, sealed=False).dataset or load_dataset(dataset)
    for fault in report.faults:  # such as files that are no longer those whose hashes dataset.json holds
        note(str(fault))
    history = Runs(data)
    if run is not None and other is not None:
        found = history.between(run, other)
        put(found, describe_comparison(found))
    elif trend:
        rows = history.trend(trend)
        put({"metric": trend, "runs": rows}, table(rows))
    else:
        put(history.to_json(), str(history))


@command()
def report(results: str, *, out: str = "reports/report") -> None:
    """Write a result as HTML, Markdown and JSON.

    RESULTS is the JSON document of compare, recommend, tune, gate or learn (--json).

    Parameters
    ----------
    out: Folder of the report.

    Examples
    --------
    steelyard report results.json --out reports/mine
    """
    from steelyard_eval.result.document import load as load_result
    from steelyard_eval.views.report import write

    files = [str(path) for path in write(load_result(results), out)]
    put({"files": files}, "\n".join(files))
