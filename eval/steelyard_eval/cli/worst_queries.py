"""The queries on which a contender is worst, which `explain` lists where no query is named."""

from typing import Any

from steelyard.base.errors import ConfigError, closest, quote
from steelyard.systems import SYSTEMS
from steelyard_eval.common.configurations import lists_alone, split_label
from steelyard_eval.common.console import step_text, table, wrapped
from steelyard_eval.compare import compare
from steelyard_eval.compare.contenders import Given, read_config
from steelyard_eval.datasets import Dataset
from steelyard_eval.recording.next_steps import chosen_for, shell_command
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Fact, Message
from steelyard_eval.workbench.workbench import Workbench

MAX_LISTED = 10


def is_configuration(word: str, dataset: Dataset) -> bool:
    """Whether what stands in the place of a query is what ranks; the id of a query wins.

    Raises ConfigError for what is spelt as a configuration, or nearly as the name of one, and is none.
    """
    ids = [query.id for query in dataset.queries]
    if word in ids:
        return False
    try:
        return bool(read_config(word))
    except ConfigError as error:
        if closest(word, ids) or not ("(" in word or lists_alone(word) or closest(word, SYSTEMS)):
            return False
        raise ConfigError(f"{dataset.called}: there is no query {quote(word)}, and {error}") from None


def worst(bench: Workbench, named: list[str], limit: int | None, typed: dict[str, Any]) -> dict[str, Any]:
    """The queries with the lowest values, or that gain most from the first of two to the second: before and after.

    None where nothing is labelled.
    """
    data = bench.dataset
    contenders: list[Given] = [read_config(named[0]), *named[1:]]
    found = compare(data, contenders, limit=limit, embedder=bench.embedder, timed=False).result
    label, *others = (row.label for row in found.rows)
    against = others[0] if others else None
    rows: list[dict[str, Any]] = [
        {"id": query.id, "text": query.text, "category": query.category, "group": query.group,
         "values": query.values, "value": query.values[label]}
        for query in found.queries
        if any(data.qrels[query.id].values())  # without a relevant entry every search has 0
    ]  # fmt: skip
    for row in rows if against else ():
        row |= {"other": row["values"][against], "change": row["values"][against] - row["value"]}
    lost = [row for row in rows if row.get("change", 1) > 0]
    lost.sort(key=lambda row: (-row.get("change", -row["value"]), row["id"]))
    better = sum(row["change"] < 0 for row in rows) if against else None
    second = named[1] if against else chosen_for(data)
    options = {"--against": None if second == split_label(named[0])[1] else second, **typed}
    turned = {"--against": named[0], **typed}
    turns = better and found.rows[-1].kind != "lists"
    return {
        "label": label,
        "metric": found.metric,
        "queries": len(rows),
        "against": against,
        "zero": sum(row["value"] == 0 for row in rows),
        "worse": len(lost) if against else None,
        "better": better,
        "worst": lost[:MAX_LISTED],
        "command": shell_command("explain", data, *(row["id"] for row in lost[:1]), named[0], options=options),
        "reverse": shell_command("explain", data, named[1], options=turned) if turns else None,
        "left_out": [query.id for query in found.queries if not any(data.qrels[query.id].values())],
    }


def listed(document: dict[str, Any], dataset: Dataset) -> str:
    """The document as a table, with the command that explains the first."""
    if not document["queries"]:
        judge = shell_command("judge", dataset, options={})
        return f"no query is labelled, so none is known to be bad; name one, or label some: {judge}"
    label, against = document["label"], document["against"]
    rows = [{**row, "value": f"{row['value']:.4f}"} for row in document["worst"]]
    columns = {"id": "query", "value": f"{document['metric']} of {label}", "text": "text"}
    counts: dict[str, Fact] = {"count": document["queries"], "zero": document["zero"] or None}
    what = Message("worst_queries", counts)
    if against:
        rows = [{**row, "other": f"{row['other']:.4f}", "change": f"{row['change']:+.4f}"} for row in rows]
        columns = {"id": "query", "value": f"before: {label}", "other": f"after: {against}", "change": "change"}
        columns["text"] = "text"
        counts |= {"metric": document["metric"], "worse": document["worse"] or None, "no": not document["worse"]}
        what = Message("worst_changes", {**counts, "some": bool(rows)})
    why = [step_text(say(what), document["command"] if rows else "")]
    if document["left_out"]:
        why.append(wrapped(say(Message("worst_left_out", {"queries": document["left_out"][:MAX_LISTED]}))))
    if document["reverse"]:
        why += [step_text(f"it falls on {document['better']}, listed by", document["reverse"])]
    return "\n\n".join([*([table(rows, columns)] if rows else []), "\n".join(why)])
