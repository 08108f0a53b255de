"""The commands learn, simulate and feedback: weights from logs, and logs to learn from."""

from __future__ import annotations

import click

from steelyard.base.files import write_text
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.act import ACTS
from steelyard_eval.cli.commands.manners import note
from steelyard_eval.cli.commands.options import (
    embedder_option,
    floor_option,
    intents_option,
    json_option,
    put,
    seed_option,
)
from steelyard_eval.datasets import load
from steelyard_eval.learn import learn as run_learn
from steelyard_eval.learn.importers import from_soleri, from_ubi
from steelyard_eval.learn.learned_text import learned
from steelyard_eval.learn.simulation import simulate_log
from steelyard_eval.tune.floor import floored

RULES = ("classes", "naive", "ips", "dr", "adaptive")
MODELS = (
    *("pbm", "noisy", "trust", "cascade", "dbn", "agent", "hetero", "wild"),
    *("attract", "attract1", "tags"),
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
@floor_option
@intents_option
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
    floor: str | None,
    intents: str | None,
    embedder: str,
    as_json: bool,
) -> None:
    """Learn weights from a feedback log, and say whether they should replace those that are used today.

    Corrects for what was shown and where. Under ship the file has the learned weights. Under try and keep it has
    the current ones, and what is worth trying goes beside it as *.try.json.
    """
    data = load(dataset, intents)
    found = run_learn(data, feedback, current, rule=rule, labels=labels, embedder=embedder)
    found, floors = floored(found, data, floor, embedder)
    for sentence in floors:
        note(sentence)
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
@click.option(
    "--act",
    "kind",
    default="clicked",
    show_default=True,
    type=click.Choice((*ACTS[:-1], "mixed")),
    help="What is done.",
)
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
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--from", "source", required=True, type=click.Choice(["ubi", "soleri"]))
@click.option("--out", type=click.Path(), default="feedback.jsonl", show_default=True)
@json_option
def feedback(files: tuple[str, ...], source: str, out: str, as_json: bool) -> None:
    """Convert feedback of another system into a log.

    ubi: files of OpenSearch's ubi_queries and ubi_events, a document a line. soleri: rows of brain_feedback, an
    object a line.
    """
    lines = list((from_ubi if source == "ubi" else from_soleri)(files))
    write_text(out, "".join(lines))
    put({"file": out, "impressions": len(lines)}, as_json, f"{out}: {len(lines)} impressions")
