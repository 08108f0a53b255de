"""The first queries of a data set, typed beside an entry that reminds of what there is."""

from __future__ import annotations

import click

from steelyard.memory.entry import Entry
from steelyard_eval.cli.options import note, show, tell
from steelyard_eval.common.console import wrapped
from steelyard_eval.datasets import Dataset
from steelyard_eval.notebook.label.write_queries import (
    QUERIES,
    WANTED,
    logged_queries,
    refused,
    reminders,
    save_queries,
)

INDENT = 9
REMINDER = 300
"""Characters of an entry that reminds of what there is."""


def write_queries(data: Dataset, seed: int) -> None:
    """The first queries: from the log, else by hand; none are written where nothing is answered."""
    texts = logged_queries(data, seed)
    if not texts:
        click.echo(
            f"{data.called} has no queries. Write {WANTED} as you would ask; an empty line shows another entry, "
            "u takes the last query back, q ends. The entry is a reminder of what there is: do not use its words.",
            err=True,
        )
        try:
            _type(data, seed, texts)
        except click.Abort:  # what was typed is kept
            _save(data, texts)
            raise
    _save(data, texts)


def _save(data: Dataset, texts: list[str]) -> None:
    if texts:
        note(f"{save_queries(data, texts)} queries are in {data.path / QUERIES}")


def _type(data: Dataset, seed: int, texts: list[str]) -> None:
    """Add what is typed to `texts`."""
    for entry in reminders(data, seed):
        show(wrapped(f"entry    {' '.join(f'{entry.title} {entry.text}'.split())[:REMINDER]}", INDENT))
        text = _asked(entry, texts)
        if text == "q":
            break
        texts += [text] if text else []
        if len(texts) == WANTED:
            break


def _asked(entry: Entry, texts: list[str]) -> str:
    """A query that may be asked beside an entry; empty, or q. `u` takes the last of the texts back."""
    while True:
        text = click.prompt(f"query {len(texts) + 1}", default="", show_default=False, err=True).strip()
        if text == "u":
            tell(f"taken back: {texts.pop()}" if texts else "there is no query to take back")
        elif text in ("", "q") or not (why := refused(text, entry)):
            return str(text)
        else:
            tell(why)
