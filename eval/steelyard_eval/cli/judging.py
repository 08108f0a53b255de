"""The command judge: pairs of query and entry, graded by single keys in the terminal."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, replace

import click

from steelyard.base.extensions import extension as engine_extension
from steelyard.memory.entry import Entry
from steelyard_eval.cli import judge_texts
from steelyard_eval.cli.judge_texts import KEYS
from steelyard_eval.cli.options import note, put, show, tell
from steelyard_eval.common.console import wrapped
from steelyard_eval.common.extensions import extension
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets import Dataset, load
from steelyard_eval.notebook.label.apply import (
    QUERIES,
    WANTED,
    draw_from_log,
    drawn_from_log,
    labels_file,
    logged_queries,
    refused,
    reminders,
    save_queries,
)
from steelyard_eval.notebook.label.desk import desk
from steelyard_eval.notebook.label.judgments import Pair
from steelyard_eval.notebook.label.session import Session


def with_log(data: Dataset, seed: int, log: str | None, asks_nothing: bool) -> tuple[Dataset, list[str]]:
    """The data set with queries drawn from a log, and their ids; on disk only where something is asked."""
    if not asks_nothing:
        ids = draw_from_log(data, seed, log)
        return replace(load(data.path), embedder=data.embedder, chosen=data.chosen), ids
    ids, new = drawn_from_log(data, seed, log)
    return replace(data, queries=(*data.queries, *new)), ids


def by_model(person: Session, most: int, yes: bool) -> None:
    """Let a model judge pairs of the same pool, after its cost is told, and say how far both agree."""
    by_model = extension("model_judge")
    chat = by_model.opened(engine_extension("network").chat_of(os.environ))
    session = by_model.ModelSession(person.pool, person.folder, by_model.judge_name(chat))
    asked = by_model.cost(session, most)
    click.echo(f"{chat.name}: {asked}", err=True)
    if asked.pairs and (yes or (sys.stdin.isatty() and click.confirm("ask it?", err=True))):
        by_model.ask(session, chat, most)
    judged = by_model.judged_by_person(person.pool.dataset, person.given)
    agreement = by_model.model_agreement(judged, session.given)
    document = {"judge": session.judge, "given": len(session.given), "file": str(session.file), **asdict(asked)}
    told = f"{counted(len(session.given), 'pair')} judged, in {session.file}\n{by_model.agreed(agreement)}"
    put({**document, **agreement}, told)


def sure(removed: list[Pair]) -> bool:
    """Whether labels are to be taken out; nobody is asked where there is no terminal."""
    count = counted(len(removed), "label")
    return sys.stdin.isatty() and click.confirm(f"--apply takes {count} out, {removed[0]} first; do it?", err=True)


def work(session: Session) -> None:
    """Ask until everything is judged or the judge quits; every judgment is saved before the next pair shows."""
    if session.next is not None:
        click.echo(KEYS, err=True)
    note = told = ""
    while session.next is not None:
        found = desk(session)
        show(judge_texts.card(found, before=told))
        told, key = found["sentence"], _key()
        if key == "m":
            show(judge_texts.card(found, whole=True, before=told))
            key = _key()
        if key == "q":
            return
        note = click.prompt("note", default="", show_default=False, err=True) if key == "n" else note
        if key == "u":
            _undo(session)
        elif _done(key, session, note):
            note = ""


def _key() -> str:
    """One key; the end of the input, Escape and Ctrl-D quit."""
    pressed = click.getchar() if sys.stdin.isatty() else sys.stdin.read(1)
    return "q" if pressed in ("", "\x04", "\x1b") else pressed.lower()


def _done(key: str, session: Session, note: str) -> bool:
    """Do what a key asks for; whether it answered the pair."""
    if key in ("0", "1", "2", "3", "x"):
        session.give(None if key == "x" else int(key), note)
        return True
    if key in ("s", "z"):
        session.skip() if key == "s" else _nothing(session)
        return True
    if key not in ("n", "\n"):
        click.echo(KEYS, err=True)
    return False


def _nothing(session: Session) -> None:
    session.nothing()
    query = session.unanswerable[-1]
    if relevant := session.relevant(query):
        names = ", ".join(relevant[:3])
        tell(f"nothing answers {query}, yet labels call {names} relevant; u takes this back")


def _undo(session: Session) -> None:
    """Take the last judgment back and name it; where the data set has its label, say how to take that out."""
    if not session.given:
        tell("nothing is judged, so nothing is taken back")
        return
    last, pool = [*session.given.values()][-1], session.pool
    session.undo()
    tell(f"taken back: {judge_texts.judged(last)}")
    if session.pool is not pool and (command := judge_texts.applying(session)):
        tell(f"{labels_file(session.pool.dataset.path)} still holds it; to take it out: {command}")


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
