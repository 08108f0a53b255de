"""The command check: every fault of a data set at once."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from steelyard.base.errors import shown
from steelyard.base.escape import visible
from steelyard_eval.cli.commands import completion
from steelyard_eval.cli.commands.options import embedder_option, json_option, put, seed_option
from steelyard_eval.common.console import folded
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets import LOGGED, Dataset, Report
from steelyard_eval.datasets import check as validate
from steelyard_eval.datasets.file_reader import FolderReader, grouped
from steelyard_eval.datasets.groups import alike, duplicates, duplicates_in_words, lack_groups
from steelyard_eval.datasets.labels import in_words, stated, unstated
from steelyard_eval.datasets.manifest import accept as accept_files
from steelyard_eval.recording.history import moved_since_last

LISTED = 10
"""Queries that measure nothing and are named."""


@click.command()
@click.argument("dataset", type=click.Path())
@click.option("--accept", is_flag=True, help="Take files that were changed on purpose: renew their hashes.")
@click.option("--known-items", is_flag=True, help="Ask for 200 entries by a sentence of each: is the index whole?")
@click.option(
    "--current",
    metavar="CONTENDER",
    type=completion.CONTENDER,
    help="What --known-items asks; the data set's own, else bm25, by default.",
)
@embedder_option
@seed_option
@json_option
def check(
    dataset: str, accept: bool, known_items: bool, current: str | None, embedder: str, seed: int, as_json: bool
) -> None:
    """Validate a data set and report every fault at once.

    Where dataset.json holds the hashes of files, a file that changed is a fault. With --accept, and where that is
    the only kind, its hash is written anew, and what changed is told.
    With --known-items also whether entries are found that are asked for by a sentence of their own, by kind of
    entry: what is not found names broken indexing. It says nothing of quality.
    """
    report = validate(dataset)
    taken = accept_files(Path(dataset), report.faults) if accept else {}
    report = validate(dataset) if taken else report
    reported = list(report.notices)
    document: dict[str, Any] = {"faults": [str(fault) for fault in report.faults], "notices": reported}
    said: list[str] = []
    if accept:
        document |= {"accepted": taken, "changes": _changes(report, taken)}
        said += document["changes"]
    if report.dataset is not None:
        data = report.dataset
        labels = data.sampled, data.pool, data.provenance
        document |= stated(data.sampled, data.pool)
        reported += unstated(*labels) if data.qrels else ()
        said += in_words(*labels) if data.qrels else ()
        reported += _without_relevant(data)
        document |= {"name": data.name, "entries": len(data.entries), "queries": len(data.queries)}
        document |= {"sha256": data.sha256, "vectors": sorted("/".join(key) for key in data.vectors)}
        document["duplicates"] = duplicates(data.entries)
        document["groups"] = _proposed(data)
        if known_items:
            from steelyard_eval.explain.known_items import ask_known_items  # with all that searches

            document["known_items"] = ask_known_items(data, current, embedder=embedder, seed=seed)
            said.append(document["known_items"]["sentence"])
    repeated = duplicates_in_words(document.get("duplicates", []))
    notices = [*reported, *document.get("groups", []), *([repeated] if repeated else [])]
    lines = [*grouped(report.faults), *(f"note: {notice}" for notice in notices), *said]
    if report.dataset is not None:
        lines.append(data.told)
    else:
        notes = f", {counted(len(notices), 'note')}" if notices else ""
        lines.append(f"{counted(len(report.faults), 'fault')}{notes}")
    put(document, as_json, "\n".join(map(folded, lines)))
    if report.faults:
        sys.exit(2)


def _changes(report: Report, taken: Mapping[str, str | None]) -> list[str]:
    """What was accepted, a line each: files, what differs since the last kept run, vectors of the texts before."""
    if report.dataset is None or not taken:
        return ["accepted: nothing, as " + ("there are other faults" if report.faults else "no file differs")]
    files = [f"accepted: {visible(name)}{'' if digest else ', which is gone'}" for name, digest in taken.items()]
    return [*files, *moved_since_last(report.dataset), *_of_old_texts(report.dataset.path, taken)]


def _without_relevant(data: Dataset) -> Iterator[str]:
    """Which queries measure nothing: those without a label, where others have some, and those with zeros alone."""
    asked = [query for query in data.queries if data.qrels and query.answerable and query.split != LOGGED]
    none = [query.id for query in asked if query.id not in data.qrels]
    zeros = [query.id for query in asked if query.id in data.qrels and not any(data.qrels[query.id].values())]
    if 0 < len(none) <= LISTED:
        yield f"without labels: {_ids(none)}"
    if zeros:
        count = counted(len(zeros), "query has", "queries have")
        yield f"{count} labels and no relevant entry, so every search scores 0 on it: {_ids(zeros)}"


def _ids(ids: Sequence[str]) -> str:
    return ", ".join([*(shown(id_, 40) for id_ in ids[:LISTED]), *(["..."] if len(ids) > LISTED else [])])


def _of_old_texts(folder: Path, taken: Collection[str]) -> Iterator[str]:
    arrays = FolderReader(folder).arrays()
    for name in taken:
        part = f"{name.partition('.jsonl')[0]}."
        if old := [array for array in arrays if array.startswith(part) and array not in taken]:
            remedy = "if a text changed, record them again or delete them"
            yield f"warning: vectors of the texts before in {', '.join(map(visible, old))}; {remedy}"


def _proposed(dataset: Dataset) -> list[str]:
    """Groups that queries seem to have; what measures them is loaded where there are any."""
    asked = dataset.split("all") if dataset.qrels else ()
    queries = [query for query in asked if query.id in dataset.qrels and query.answerable]
    if not (lack_groups(queries) or alike(dataset, queries)):
        return []
    from steelyard_eval.explain.proposed_groups import propose_groups

    return propose_groups(dataset)
