"""The command explain: one query, signal by signal."""

from __future__ import annotations

from typing import Any

import click

from steelyard.base.errors import ConfigError, closest, shown
from steelyard.systems import SYSTEMS
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.contenders import contenders_argument, contenders_of, more_option
from steelyard_eval.cli.commands.options import embedder_option, intents_option, json_option, limit_option, put
from steelyard_eval.common.configurations import lists_alone, parted, separate
from steelyard_eval.common.console import step_text, table
from steelyard_eval.common.markup import counted
from steelyard_eval.compare import compare
from steelyard_eval.compare.contenders import read_config
from steelyard_eval.datasets import Dataset, load
from steelyard_eval.explain import explain as run_explain
from steelyard_eval.recording.steps import chosen_for, spelled
from steelyard_eval.recording.workspace import embedder_of
from steelyard_eval.result.structs import Result

WORST = 10
"""Queries that are listed where none is named."""


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("query_id", required=False)
@contenders_argument
@more_option
@click.option("--against", metavar="CONTENDER", type=completion.CONTENDER, help="The second contender.")
@click.option("--entry", metavar="ID", help="Explain this entry's score, or why it has none, and nothing else.")
@limit_option
@intents_option
@embedder_option
@json_option
def explain(
    dataset: str,
    query_id: str | None,
    contenders: tuple[str, ...],
    more: tuple[str, ...],
    against: str | None,
    entry: str | None,
    limit: int | None,
    intents: str | None,
    embedder: str,
    as_json: bool,
) -> None:
    """Explain one query of a data set, signal by signal, and what another contender changes.

    The first CONTENDER is explained, by default what dataset.json names as `system`, else bm25; a second one is
    held against it, and may have lists alone. Without a QUERY_ID: the worst queries of the first CONTENDER, or
    those on which it loses most against the second.
    """
    data = load(dataset, intents).embedded_by(embedder)
    if query_id is not None and _is_configuration(query_id, data):
        contenders, query_id = (query_id, *contenders), None
    named = contenders_of(contenders, more)
    named += [against] if against and named else []
    if len(named) > 2:
        raise click.UsageError(f"{', '.join(named)} are {len(named)}; name one, and one to hold against it")
    named = named or [data.today, *([against] if against else [])]
    typed = {"--embedder": None if embedder == "auto" else embedder, "--intents": intents, "--limit": limit}
    embedder = embedder_of(data, embedder, named)
    if query_id is None and entry is not None:
        grades = {query: own[entry] for query, own in data.qrels.items() if entry in own}
        asked = max(grades, key=grades.__getitem__, default="QUERY")
        command = spelled("explain", data, asked, *named, options={"--entry": entry, **typed})
        raise click.UsageError(f"--entry explains an entry for one query; name it: {command}")
    if query_id is None:
        compared = compare(
            data, [read_config(named[0]), *named[1:]], limit=limit, embedder=embedder, timed=False
        ).result
        document = _worst(compared)
        first = [row["id"] for row in document["worst"][:1]]
        chosen = chosen_for(data) if len(named) == 1 else None
        second = {"--against": None if chosen == parted(named[0])[1] else chosen}
        document["command"] = spelled("explain", data, *first, *named, options={**second, **typed})
        turns = document["better"] and compared.rows[-1].kind != "lists"
        document["reverse"] = spelled("explain", data, *named[::-1], options=typed) if turns else None
        put(document, as_json, _listed(document, data))
        return
    explanation = run_explain(data, query_id, *named, entry=entry, limit=limit, embedder=embedder)
    put(explanation.to_json(), as_json, str(explanation))


def _is_configuration(word: str, dataset: Dataset) -> bool:
    """Whether what stands in the place of a query is what ranks; the id of a query wins.

    Raises ConfigError for what is spelt as a configuration, or nearly as the name of one, and is none.
    """
    ids = [query.id for query in dataset.queries]
    if word in ids:
        return False
    try:
        return all(map(read_config, separate(word)))
    except ConfigError as error:
        if closest(word, ids) or not ("(" in word or lists_alone(word) or closest(word, SYSTEMS)):
            return False
        raise ConfigError(f"{dataset.called}: there is no query {shown(word)}, and {error}") from None


def _worst(found: Result) -> dict[str, Any]:
    """The queries with the lowest values, or where the first of two loses most; none where nothing is judged."""
    label, *others = (row.label for row in found.rows)
    against = others[0] if others else None
    rows: list[dict[str, Any]] = [
        {"id": query.id, "text": query.text, "category": query.category, "group": query.group,
         "values": query.values, "value": query.values[label]}
        for query in found.queries
    ]  # fmt: skip
    for row in rows if against else ():
        row |= {"other": row["values"][against], "difference": row["value"] - row["values"][against]}
    lost = [row for row in rows if row.get("difference", -1) < 0]
    lost.sort(key=lambda row: (row.get("difference", row["value"]), row["id"]))
    facts = {"label": label, "metric": found.metric, "queries": len(rows), "against": against}
    counts = {"zero": sum(row["value"] == 0 for row in rows), "worse": len(lost) if against else None}
    better = sum(row["difference"] > 0 for row in rows) if against else None
    return {**facts, **counts, "better": better, "worst": lost[:WORST]}


def _listed(document: dict[str, Any], dataset: Dataset) -> str:
    if not document["queries"]:
        judge = spelled("judge", dataset, options={})
        return f"no query is judged, so none is known to be bad; name one, or label some: {judge}"
    label, against = document["label"], document["against"]
    rows = [{**row, "value": f"{row['value']:.4f}"} for row in document["worst"]]
    columns = {"id": "query", "value": f"{document['metric']} of {label}", "text": "text"}
    counts = f"{document['zero'] or 'none'} of {document['queries']} judged queries have the value 0"
    if against:
        rows = [{**row, "other": f"{row['other']:.4f}", "difference": f"{row['difference']:+.4f}"} for row in rows]
        columns = {"id": "query", "difference": "difference", "value": label, "other": against, "text": "text"}
        worse, of = document["worse"] or "none", document["queries"]
        counts = f"less {document['metric']} with {label} than with {against}: {worse} of {of} judged queries"
    first = "; the first, signal by signal" if rows else ""
    why = [step_text(f"{counts}{first}", document["command"] if rows else "")]
    if document["reverse"]:
        better = counted(document["better"], "query has", "queries have")
        why += [step_text(f"{better} more, listed by", document["reverse"])]
    parts = [table(rows, columns)] if rows else []
    return "\n\n".join([*parts, "\n".join(why)])
