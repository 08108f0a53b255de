"""The command check: every fault of a data set at once."""

from __future__ import annotations

import sys
from typing import Any

import click

from steelyard_eval.cli.commands.options import json_option, put
from steelyard_eval.compare.proposed_groups import propose_groups
from steelyard_eval.datasets import check as validate
from steelyard_eval.datasets.duplicates import duplicates, duplicates_in_words
from steelyard_eval.datasets.faults import counted, grouped
from steelyard_eval.datasets.labels import in_words, stated, unstated


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
