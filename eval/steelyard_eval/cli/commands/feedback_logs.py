"""Commands on feedback: learn from a log, simulate one, add to one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.manners import note
from steelyard_eval.cli.commands.options import (
    embedder_option,
    intents_option,
    json_option,
    limit_option,
    put,
    seed_option,
    system_option,
    weights_option,
)
from steelyard_eval.cli.commands.typed_query import QueryCommand
from steelyard_eval.common.later import later

with later(__name__):  # --help needs none of it
    from steelyard.base.files import write_text
    from steelyard.config.search_config import SearchConfig
    from steelyard.feedback.explore import Explore
    from steelyard.feedback.log import FeedbackLog, append_act
    from steelyard.feedback.reviews import review
    from steelyard.stores.sqlite import Vault
    from steelyard_eval.datasets import load
    from steelyard_eval.learn import learn as run_learn
    from steelyard_eval.learn.importers import from_soleri, from_ubi, open_bandit
    from steelyard_eval.learn.interleaving import duels
    from steelyard_eval.learn.learned_text import campaigns, duelled, learned
    from steelyard_eval.learn.simulation import simulate_log
    from steelyard_eval.show.terminal import hits
    from steelyard_eval.vaults.read import open_searcher

RULES = ("classes", "naive", "ips", "dr", "adaptive")
MODELS = (
    *("pbm", "noisy", "trust", "cascade", "dbn", "agent", "hetero", "wild"),
    *("attract", "attract1", "tags"),
)
ACTS = (
    *("accepted", "used", "cited", "copied", "opened", "clicked", "modified"),
    *("thumbs_up", "thumbs_down", "dismissed", "failed", "reviewed", "none_useful"),
)
GRADES = ("again", "hard", "good", "easy")
REVIEWED = "The vault of the entries, for --action reviewed: their stability in it changes by FSRS."
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
    intents: str | None,
    embedder: str,
    as_json: bool,
) -> None:
    """Learn weights from a feedback log, and say whether they should replace those that are used today.

    Corrects for what was shown and where. Under ship the file has the learned weights. Under try and keep it has
    the current ones, and what is worth trying goes beside it as *.try.json.
    """
    found = run_learn(load(dataset, intents), feedback, current, rule=rule, labels=labels, embedder=embedder)
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
@click.argument("log", type=click.Path())
@click.argument("query_id")
@click.argument("entry_ids", metavar="[ENTRY_ID]...", nargs=-1)
@click.option("--action", default="accepted", show_default=True, type=click.Choice(ACTS))
@click.option("--client", default="", help="Who acts, as a name that stays the same.")
@click.option("--vault", type=click.Path(), help=REVIEWED)
@click.option("--grade", default="good", show_default=True, type=click.Choice(GRADES), help="Of a review.")
@json_option
def act(
    log: str,
    query_id: str,
    entry_ids: tuple[str, ...],
    action: str,
    client: str,
    vault: str | None,
    grade: str,
    as_json: bool,
) -> None:
    """Log what was done with entries of a search that `steelyard search --log LOG` has logged.

    `--action reviewed --vault VAULT` also writes the review to the entries, which are then forgotten more slowly
    (signal retrievability).
    """
    document: dict[str, Any] = {"query_id": query_id, "action": action, "entries": list(entry_ids)}
    with _reviewing(action, vault) as store:
        if store is not None:
            document["stability"] = {id_: _reviewed(store, id_, grade) for id_ in entry_ids}
        for entry_id in entry_ids or ("",):
            append_act(Path(log), query_id, entry_id, action, client)
    put(document, as_json, f"{log}: {action} {', '.join(entry_ids) or 'list'} of {query_id}")


@contextmanager
def _reviewing(action: str, vault: str | None) -> Iterator[Vault | None]:
    """The vault in a transaction, which keeps nothing where the log cannot be written; None for other actions."""
    if (action == "reviewed") != (vault is not None):
        raise click.UsageError("--action reviewed and --vault go together: a review is written to the entries")
    if vault is None:
        yield None
        return
    with Vault(vault) as store, store.transaction():
        yield store


def _reviewed(store: Vault, entry_id: str, grade: str) -> float | None:
    return review(store, entry_id, grade, time.time()).stability


@click.command(cls=QueryCommand)
@click.argument("log", type=click.Path())
@click.argument("vault", required=False, default="", type=click.Path())
@click.argument("query", required=False, default="")
@system_option
@weights_option
@click.option(
    "--against", metavar="FILE", type=click.Path(), help="The other weights file; drawn weights by default."
)
@click.option(
    "--share", default=1.0, show_default=True, type=click.FloatRange(0, 1), help="Of searches interleaved."
)
@click.option("--client", default="", help="Who searches, as a name that stays the same.")
@limit_option
@json_option
def interleave(
    log: str,
    vault: str,
    query: str,
    system: str,
    weights: str | None,
    against: str | None,
    share: float,
    client: str,
    limit: int | None,
    as_json: bool,
) -> None:
    """Search VAULT for QUERY with two rankings interleaved, and log it; with LOG alone, test which is preferred.

    In each list two rankings take turns (team draft), so that acts decide between them, and show how places are
    examined. `steelyard act LOG QUERY_ID ENTRY_ID` adds acts.
    """
    if not vault:
        found = [one.to_json() for one in duels(log)]
        put({"duels": found}, as_json, duelled(found))
        return
    if not query:
        raise click.UsageError("name a query after the vault, or the log alone to test it")
    document, text = _interleaved(log, vault, query, (system, weights, limit), (against, share), client)
    put(document, as_json, text)


def _interleaved(
    log: str,
    vault: str,
    query: str,
    configured: tuple[str, str | None, int | None],
    explored: tuple[str | None, float],
    client: str,
) -> tuple[dict[str, Any], str]:
    """Search and log; the document, and the text to print."""
    against, share = explored
    explore = Explore(share, SearchConfig.load(against) if against else None)
    with open_searcher([vault], *configured, explore=explore) as searcher:
        result = searcher.search(query)
        query_id = FeedbackLog(log, searcher.config).shown(result, client)
        shown = [searcher.system.showing.show(hit, result, "full") for hit in result.hits]
    document = {"query_id": query_id, "log": log, "interleaved": list(result.placed_by), "hits": shown}
    return document, f"{hits(result.hits)}\nlogged as {query_id} in {log}"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--from", "source", required=True, type=click.Choice(["ubi", "soleri", "open-bandit"]))
@click.option("--out", type=click.Path(), default="feedback.jsonl", show_default=True)
@json_option
def feedback(files: tuple[str, ...], source: str, out: str, as_json: bool) -> None:
    """Convert feedback of another system into a log, or estimate a policy's value from open-bandit's.

    ubi: files of OpenSearch's ubi_queries and ubi_events, a document a line. soleri: rows of brain_feedback, an
    object a line. open-bandit: feedback.csv.gz; the click rate of `random` is estimated from the log of `bts`.
    """
    if source == "open-bandit":
        found = [one.to_json() for path in files for one in open_bandit(path)]
        put({"campaigns": found}, as_json, campaigns(found))
        return
    lines = list((from_ubi if source == "ubi" else from_soleri)(files))
    write_text(out, "".join(lines))
    put({"file": out, "impressions": len(lines)}, as_json, f"{out}: {len(lines)} impressions")


COMMANDS = (learn, simulate, act, interleave, feedback)
