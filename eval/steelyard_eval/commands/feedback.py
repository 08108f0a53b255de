"""Commands on feedback: learn from a log, simulate one, add to one."""

from __future__ import annotations

from pathlib import Path

import click

from steelyard_eval.commands import completion
from steelyard_eval.commands.manners import note
from steelyard_eval.commands.options import embedder_option, json_option, put, seed_option

RULES = ("classes", "naive", "ips", "dr", "adaptive")
MODELS = (
    *("pbm", "noisy", "trust", "cascade", "dbn", "agent", "hetero", "wild"),
    *("attract", "attract1", "tags"),
)
ACTS = (
    *("accepted", "used", "cited", "copied", "opened", "clicked", "modified"),
    *("thumbs_up", "thumbs_down", "dismissed", "failed", "none_useful"),
)
EXPLORATIONS = ("none", "swap", "tail", "mix", "interleave")
CURRENT = (
    "What ranked the log, and is used today: a system, a strategy or a weights file. By default the policy that "
)
CURRENT += "ranked most of it, else the data set's system."


@click.command()
@click.argument("dataset", type=click.Path())
@click.option("--feedback", type=click.Path(), metavar="LOG", help="The data set's own feedback.jsonl by default.")
@click.option("--current", metavar="CONTENDER", type=completion.CONFIGURATION, help=CURRENT)
@click.option(
    "--rule",
    default="classes",
    show_default=True,
    type=click.Choice(RULES),
    help="The learner, or a rule to compare it with, whose choice never ships.",
)
@click.option("--labels/--no-labels", default=True, help="Pool 30 labelled queries or more with the log.")
@click.option("--out", type=click.Path(), default="search-weights.json", show_default=True)
@click.option("--document", type=click.Path(), metavar="FILE", help="Write the JSON document to this file.")
@embedder_option
@json_option
def learn(
    dataset: str,
    feedback: str | None,
    current: str | None,
    rule: str,
    labels: bool,
    out: str,
    document: str | None,
    embedder: str,
    as_json: bool,
) -> None:
    """Learn weights from a feedback log, and say whether they should replace those that are used today.

    Corrects for what was shown and where. Under ship the file has the learned weights. Under try and keep it has
    the current ones, and what is worth trying goes beside it as *.try.json.
    """
    from steelyard_eval.datasets import load
    from steelyard_eval.learn import learn as run
    from steelyard_eval.learn.show import learned

    found = run(load(dataset), feedback, current, rule=rule, labels=labels, embedder=embedder)
    if document:
        found.save(document)
    files = [str(path) for path in found.save_weights(out)]
    if found.record["log"]["simulated"]:
        note("this log is simulated: it shows how learning works, and nothing about people")
    put(found.to_json(), as_json, f"{learned(found.record)}\n\nwritten: {', '.join(files)}")


@click.command()
@click.argument("dataset", type=click.Path())
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="CONTENDER",
    type=completion.CONFIGURATION,
    help="What ranks; repeat it for several, one after the other. The data set's system by default.",
)
@click.option("--model", default="pbm", show_default=True, type=click.Choice(MODELS), help="How people act.")
@click.option("--sessions", default=10_000, show_default=True, type=click.IntRange(1, 10_000_000))
@click.option("--explore", default="none", show_default=True, type=click.Choice(EXPLORATIONS))
@click.option("--share", default=0.1, show_default=True, type=click.FloatRange(0, 1), help="Of sessions explored.")
@click.option("--act", "kind", default="clicked", show_default=True, type=click.Choice(ACTS[:-1]))
@click.option("--signal", metavar="NAME", help="The signal that attracts (models attract and tags).")
@click.option("--out", type=click.Path(), default="feedback.jsonl", show_default=True)
@embedder_option
@seed_option
@json_option
def simulate(
    dataset: str,
    policies: tuple[str, ...],
    model: str,
    sessions: int,
    explore: str,
    share: float,
    kind: str,
    signal: str | None,
    out: str,
    embedder: str,
    seed: int,
    as_json: bool,
) -> None:
    """Simulate a feedback log over labelled queries, with known truth and marked as simulated."""
    from steelyard_eval.datasets import load
    from steelyard_eval.learn.simulation import simulate_log

    data = load(dataset)
    found = simulate_log(
        data,
        policies or (data.system or "bm25",),
        model=model,
        sessions=sessions,
        seed=seed,
        explore=explore,
        share=share,
        act=kind,
        signal=signal,
        embedder=embedder,
    )
    found.save(out)
    counts = found.record
    text = f"{out}: {counts['sessions']} sessions of {counts['queries']} queries, {counts['acts']} acts, simulated"
    put({**counts, "file": out}, as_json, text)


@click.command()
@click.argument("log", type=click.Path())
@click.argument("query_id")
@click.argument("entry_ids", metavar="[ENTRY_ID]...", nargs=-1)
@click.option("--action", default="accepted", show_default=True, type=click.Choice(ACTS))
@click.option("--client", default="", help="Who acts, as a name that stays the same.")
@json_option
def act(log: str, query_id: str, entry_ids: tuple[str, ...], action: str, client: str, as_json: bool) -> None:
    """Log what was done with entries of a search that `steelyard search --log LOG` has logged."""
    from steelyard.feedback import append_act

    for entry_id in entry_ids or ("",):
        append_act(Path(log), query_id, entry_id, action, client)
    document = {"query_id": query_id, "action": action, "entries": list(entry_ids)}
    put(document, as_json, f"{log}: {action} {', '.join(entry_ids) or 'list'} of {query_id}")


COMMANDS = (learn, simulate, act)
