"""The command explain: one query, signal by signal."""

from __future__ import annotations

import click

from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.options import embedder_option, intents_option, json_option, limit_option, put
from steelyard_eval.compare.contenders import read_strategy, read_system, read_weights
from steelyard_eval.datasets import load
from steelyard_eval.explain import explain as run_explain


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
