"""Commands on data sets and results (check, record, compare, tune, explain, report, demo), and doctor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from steelyard.base.errors import MachineError
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.manners import note
from steelyard_eval.cli.commands.options import (
    SYSTEM,
    contenders_of,
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
    strategies_of,
)
from steelyard_eval.common.later import later
from steelyard_eval.common.usual import SYSTEMS

with later(__name__):  # --help needs none of it
    from steelyard.base.files import canonical, write_text
    from steelyard_eval.cli.demonstration import demo as run_demo
    from steelyard_eval.cli.doctor import diagnose
    from steelyard_eval.compare import compare as run_compare
    from steelyard_eval.compare.contenders import read_strategy, read_system, read_weights
    from steelyard_eval.compare.list_recording import save_lists
    from steelyard_eval.compare.proposed_groups import propose_groups
    from steelyard_eval.compare.verification import refuse_differences
    from steelyard_eval.datasets import check as validate
    from steelyard_eval.datasets import load
    from steelyard_eval.datasets.duplicates import duplicates, duplicates_in_words
    from steelyard_eval.datasets.faults import counted, grouped
    from steelyard_eval.datasets.labels import in_words, stated, unstated
    from steelyard_eval.explain import explain as run_explain
    from steelyard_eval.recording.record import record_systems
    from steelyard_eval.recording.select import intents_of
    from steelyard_eval.show.report import load_results, write_report
    from steelyard_eval.show.terminal import (
        comparison,
        layers,
        recommendation,
        tests,
        tuning,
        unlabelled,
        verification,
    )
    from steelyard_eval.tune import tune as run_tune
    from steelyard_eval.tune.attempt import save_weights
    from steelyard_eval.tune.recommendation import recommend as run_recommend


@click.command()
@click.argument("dataset", type=click.Path())
@json_option
def check(dataset: str, as_json: bool) -> None:
    """Validate a data set and report every fault at once."""
    report = validate(dataset)
    own = list(report.notices)
    document: dict[str, Any] = {"faults": [str(fault) for fault in report.faults], "notices": own}
    said: list[str] = []
    if report.dataset is not None:
        found = report.dataset
        labels = found.sampled, found.pool
        document |= stated(*labels)
        own += unstated(*labels) if found.qrels else ()
        said = list(in_words(*labels))
        document |= {"name": found.name, "entries": len(found.entries), "queries": len(found.queries)}
        document |= {"sha256": found.sha256, "vectors": sorted("/".join(key) for key in found.vectors)}
        document["duplicates"] = duplicates(found.entries)
        document["groups"] = propose_groups(found)
    repeated = duplicates_in_words(document.get("duplicates", []))
    notices = [*own, *document.get("groups", []), *([repeated] if repeated else [])]
    lines = [*grouped(report.faults), *(f"note: {notice}" for notice in notices), *said]
    notes = f", {counted(len(notices), 'note')}" if notices else ""
    if report.dataset is not None:
        sizes = (
            f"{counted(len(found.entries), 'entry', 'entries')}, {counted(len(found.queries), 'query', 'queries')}"
        )
        lines.append(f"{found.name}: {sizes}, no faults{notes}")
    else:
        lines.append(f"{counted(len(report.faults), 'fault')}{notes}")
    put(document, as_json, "\n".join(lines))
    if report.faults:
        sys.exit(2)


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
    jobs: int,
    as_json: bool,
) -> None:
    """Save signal tables of systems, a folder for each under OUT, or of lists of other engines."""
    data = load(dataset, intents)
    if runs is None:
        folders = record_systems(data, listed(systems), Path(out), split, limit or 10, embedder, rerank, jobs)
    else:
        folders, notices = save_lists(data, runs, Path(out), split or "all")
        for notice in notices:
            note(notice)
    which = f", intents {own}" if (own := intents_of(data)) else ""
    text = "\n".join(f"{folder}: {rows} rows{which}" for folder, rows in folders.items())
    document = {"recordings": [{"folder": k, "rows": v} for k, v in folders.items()], "intents": own}
    put(document, as_json, text)


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("contenders", nargs=-1, metavar="[CONTENDER]...", type=completion.CONFIGURATION)
@click.option(
    "--contender",
    "more",
    multiple=True,
    metavar="[LABEL=]CONTENDER",
    type=completion.CONFIGURATION,
    help="A system, a strategy, a weights file (*.json), a TREC run (*.run) or a URL with {query}; repeatable.",
)
@click.option("--weights", multiple=True, metavar="[LABEL=]FILE", help="A search-weights.json; repeatable.")
@click.option("--run", "lists", multiple=True, metavar="[LABEL=]FILE", help="A TREC run; repeatable.")
@click.option(
    "--systems",
    type=completion.SYSTEM,
    help=f"Systems, separated by commas; {','.join(SYSTEMS)} when no contender is named.",
)
@click.option(
    "--strategies",
    multiple=True,
    type=completion.STRATEGY,
    help="A strategy over fts, bm25, vector, l0-l2; repeatable, or separated by semicolons.",
)
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
    type=completion.CONFIGURATION,
    help="What the others are tested against, such as what you run today; by default the first contender.",
)
@recording_option
@split_option
@limit_option
@click.option("--runs", type=click.Path(), help="Write TREC runs to this folder.")
@click.option("--verify", is_flag=True, help="Compute every metric of the runs again with ir_measures.")
@click.option("--out", type=click.Path(), help="Write the JSON document to this file, for `steelyard report`.")
@intents_option
@embedder_option
@jobs_option
@seed_option
@json_option
def compare(
    dataset: str,
    contenders: tuple[str, ...],
    systems: str | None,
    more: tuple[str, ...],
    weights: tuple[str, ...],
    lists: tuple[str, ...],
    strategies: tuple[str, ...],
    metrics: str,
    baseline: str | None,
    recording: str | None,
    split: str | None,
    limit: int | None,
    runs: str | None,
    verify: bool,
    out: str | None,
    intents: str | None,
    embedder: str,
    jobs: int,
    seed: int,
    as_json: bool,
) -> None:
    """Compare systems, strategies, weights files, TREC runs and endpoints on the judged queries of a split.

    Where no query has judgments: how far the contenders' lists agree, and which queries to label first.

    A CONTENDER is a system (echovault:shipped), a strategy (rrf(bm25, vector)), a weights file (*.json), a TREC
    run (*.run) or a search endpoint (http://localhost:8000/search?q={query}&limit={limit}); LABEL= may precede
    it. After # an endpoint's address may have ids=PATH, scores=PATH (JMESPath) and body=JSON, sent by POST.

    With --verify the exit code is 2 when a value differs from that of ir_measures by more than 1e-9.
    """
    found = run_compare(
        load(dataset, intents),
        contenders_of(contenders, more, weights, lists),
        strategies_of(strategies),
        systems=listed(systems) if systems is not None else None,
        metrics=listed(metrics),
        baseline=baseline,
        split=split,
        limit=limit,
        embedder=embedder,
        jobs=jobs,
        recording=recording,
        runs=runs,
        verify=verify,
        seed=seed,
    )
    document = found.to_json()
    if out:
        write_text(out, canonical(document))
    for notice in document["notices"]:
        note(notice)
    facts = document["dataset"]
    if "agreement" in document:
        put(document, as_json, unlabelled(document))
        return
    head = f"{facts['name']} ({document['split']}): {facts['judged']} queries, limit {document['limit']}"
    head += f", intents {document['intents']}" if document["intents"] else ""
    parts = [f"{head}, vectors {document['model'] or 'none'}", comparison(document), tests(document)]
    parts += [layers(document), verification(document["verification"]) if verify else ""]
    put(document, as_json, "\n\n".join(filter(None, parts)))
    if verify:
        refuse_differences(document["verification"])


@click.command()
@click.argument("dataset", type=click.Path())
@click.option("--system", default="plain", show_default=True, type=completion.SYSTEM, help=SYSTEM)
@click.option(
    "--strategy", type=completion.STRATEGY, help="The strategy to start from; the system's own by default."
)
@click.option("--metric", default="nDCG@10", show_default=True, type=completion.METRIC)
@click.option("--out", type=click.Path(), default="search-weights.json", show_default=True)
@click.option("--ablate", is_flag=True, help="Measure what each signal, each weight and more labels are worth.")
@recording_option
@limit_option
@intents_option
@embedder_option
@seed_option
@json_option
def tune(
    dataset: str,
    system: str,
    strategy: str | None,
    metric: str,
    out: str,
    ablate: bool,
    recording: str | None,
    limit: int | None,
    intents: str | None,
    embedder: str,
    seed: int,
    as_json: bool,
) -> None:
    """Choose the settings and weights of one strategy, estimate their gain, and write search-weights.json.

    With the verdict ship the file has the chosen weights. With try and keep it has the current ones, and what is
    worth trying is written beside it as *.try.json. Ctrl-C ends the search with the best found so far, which never
    ships, and the exit code is 130. A second Ctrl-C ends the command.
    """
    found = run_tune(
        load(dataset, intents),
        system,
        strategy,
        metric=metric,
        limit=limit,
        embedder=embedder,
        recording=recording,
        seed=seed,
        ablate=ablate,
    )
    for notice in found.record["notices"]:
        note(notice)
    files = [str(path) for path in save_weights(out, found.config, found.attempt)]
    put(found.to_json(), as_json, f"{tuning(found.to_json())}\nwritten: {', '.join(files)}")
    if found.interrupted:
        raise KeyboardInterrupt  # the result is printed; the exit code marks it as incomplete


@click.command()
@click.argument("dataset", type=click.Path())
@click.option(
    "--current",
    metavar="CONTENDER",
    type=completion.CONFIGURATION,
    help="What you use today: a system, a strategy, a weights file. The data set's own, else bm25, by default.",
)
@click.option("--metric", default="nDCG@10", show_default=True, type=completion.METRIC)
@click.option("--out", type=click.Path(), default="search-weights.json", show_default=True)
@click.option("--report", "folder", type=click.Path(), help="Write HTML, Markdown and JSON to this folder.")
@recording_option
@limit_option
@intents_option
@embedder_option
@jobs_option
@seed_option
@json_option
def recommend(
    dataset: str,
    current: str | None,
    metric: str,
    out: str,
    folder: str | None,
    recording: str | None,
    limit: int | None,
    intents: str | None,
    embedder: str,
    jobs: int,
    seed: int,
    as_json: bool,
) -> None:
    """Say which strategy and which weights to use instead of what you use today, and what to expect of them.

    Every family and system is tuned over all signals of the data set. Under ship the file holds what was chosen.
    Under try and keep it holds the current weights, and what is worth trying goes beside it as *.try.json. Ctrl-C
    decides on what was tried so far, of which nothing ships, and the exit code is 130.
    """
    found = run_recommend(
        load(dataset, intents),
        current,
        metric=metric,
        limit=limit,
        embedder=embedder,
        jobs=jobs,
        seed=seed,
        recording=recording,
    )
    document = found.to_json()
    for notice in document["notices"]:
        note(notice)
    files = [
        str(path)
        for path in [
            *found.save_weights(out),
            *(found.report(folder) if folder else []),
        ]
    ]
    put(document, as_json, f"{recommendation(document)}\nwritten: {', '.join(files) or 'nothing'}")
    if found.interrupted:
        raise KeyboardInterrupt  # the result is printed; the exit code marks it as incomplete


@click.command()
@click.argument("results", type=click.Path())
@click.option("--out", type=click.Path(), default="reports/report", show_default=True)
@json_option
def report(results: str, out: str, as_json: bool) -> None:
    """Write HTML, Markdown, JSON and CSV from the document of compare, recommend, tune, gate or learn (--json).

    From a feedback log (*.jsonl): how far the layered searches of `search --log` went, in total.
    """
    files = [str(path) for path in write_report(load_results(Path(results)), Path(out))]
    put({"files": files}, as_json, "\n".join(files))


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("query_id")
@click.option("--system", type=completion.SYSTEM, help="name or name:profile; echovault by default.")
@click.option(
    "--strategy", type=completion.STRATEGY, help="A strategy over the system plain, instead of a system."
)
@click.option("--weights", type=click.Path(), help="A search-weights.json, instead of a system.")
@click.option(
    "--against",
    metavar="CONTENDER",
    type=completion.CONFIGURATION,
    help="A second contender, to show which entries move and why.",
)
@click.option("--entry", metavar="ID", help="Explain this entry's score, or why it has none.")
@limit_option
@intents_option
@embedder_option
@json_option
def explain(
    dataset: str,
    query_id: str,
    system: str | None,
    strategy: str | None,
    weights: str | None,
    against: str | None,
    entry: str | None,
    limit: int | None,
    intents: str | None,
    embedder: str,
    as_json: bool,
) -> None:
    """Explain one query of a data set, signal by signal, and what another configuration changes."""
    options = [(read_system, system), (read_strategy, strategy), (read_weights, weights)]
    given = [(read, text) for read, text in options if text is not None]
    if len(given) > 1:
        raise click.UsageError("--system, --strategy and --weights name one configuration; give one of them")
    read, text = given[0] if given else (read_system, "echovault")
    config = read(text)
    found = run_explain(
        load(dataset, intents), query_id, config, against, entry=entry, limit=limit, embedder=embedder
    )
    put(found.to_json(), as_json, str(found))


@click.command()
@click.argument("vaults", nargs=-1, metavar="[VAULT...]", type=click.Path())
@json_option
def doctor(vaults: tuple[str, ...], as_json: bool) -> None:
    """Check this machine (versions, SQLite, extras, folders, fonts), and vault files page by page."""
    found = diagnose(vaults)
    put(found.to_json(), as_json, str(found))
    if not found.fit:
        sys.exit(MachineError.exit_code)


@click.command()
@click.option("--out", type=click.Path(), default="reports/demo", show_default=True)
@json_option
def demo(out: str, as_json: bool) -> None:
    """Recommend, learn, report and write weights for the data set that comes with the package."""
    found, learned, files = run_demo(Path(out))
    document = {**found.to_json(), "files": [str(path) for path in files]}
    document["learned"] = None if learned is None else learned.to_json()
    told = [] if learned is None else [f"By its simulated feedback log: {learned.sentence}", ""]
    lines = [recommendation(document), "", *document["files"], "", *told, found.sentence]
    put(document, as_json, "\n".join(lines))


COMMANDS = (check, record, compare, recommend, tune, report, explain, doctor, demo)
