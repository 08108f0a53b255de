"""What judge asks in the terminal: a query with what was found for it on one screen, graded by single keys."""

import os
import shutil
import sys
from dataclasses import asdict

import click

from steelyard.base.extensions import extension as engine_extension
from steelyard.memory.entry import Entry
from steelyard_eval.cli import judge_texts
from steelyard_eval.cli.options import note, put, show, tell
from steelyard_eval.common import extension
from steelyard_eval.common.console import wrapped
from steelyard_eval.common.formatting import counted
from steelyard_eval.datasets import Dataset
from steelyard_eval.notebook.label.apply import QUERIES, WANTED, logged_queries, refused, reminders, save_queries
from steelyard_eval.notebook.label.desk import labelling_state
from steelyard_eval.notebook.label.screen import Screen
from steelyard_eval.notebook.label.session import Session


def by_model(person: Session, max_pairs: int, yes: bool) -> None:
    """Let a model judge pairs of the same pool, after its cost is told, and say how far both agree."""
    by_model = extension("model_judge")
    chat = by_model.opened(engine_extension("network").chat_of(os.environ))
    session = by_model.ModelSession(person.pool, person.folder, by_model.judge_name(chat))
    asked = by_model.cost(session, max_pairs)
    click.echo(f"{chat.name}: {asked}", err=True)
    if asked.pairs and (yes or (sys.stdin.isatty() and click.confirm("ask it?", err=True))):
        by_model.ask(session, chat, max_pairs)
    judged = by_model.judged_by_person(person.pool.dataset, person.given)
    agreement = by_model.model_agreement(judged, session.given)
    document = {"judge": session.judge, "given": len(session.given), "file": str(session.file), **asdict(asked)}
    told = f"{counted(len(session.given), 'pair')} labelled, in {session.file}\n{by_model.agreed(agreement)}"
    put({**document, **agreement}, told)


def work(session: Session) -> None:
    """Show screen after screen until everything is judged or the judge quits; every answer is saved at once."""
    screen, found, given = Screen(session), labelling_state(session), session.given
    if screen.pair is None:  # what was left can still be labelled, and an answer changed
        screen.query, screen.at = next(reversed(session.screens), ""), 0
    note, told, pair, whole = "", "", screen.pair, False
    while screen.pair is not None:
        if session.given is not given:
            found, given = labelling_state(session), session.given
        if screen.pair != pair:
            note, pair = "", screen.pair
        click.clear()  # where nobody watches, screens stand below each other
        height = shutil.get_terminal_size().lines
        show(judge_texts.screen(screen.to_json(found), height, told, full=whole))
        key = _key()
        whole, told = key == "m", ""
        if key == "q":
            return
        if key == "n":
            note = click.prompt("note", default="", show_default=False, err=True)
            told = f"note: {note}"
        else:
            told = screen.press(key, note)


def _key() -> str:
    """One key; the end of the input, Escape and Ctrl-D quit."""
    pressed = click.getchar() if sys.stdin.isatty() else sys.stdin.read(1)
    if pressed[:2] in ("\x1b[", "\x1bO"):
        return {"A": "k", "B": "j", "C": "l", "D": "h"}.get(pressed[2:], "")  # the arrows up, down, right and left
    return "q" if pressed in ("", "\x04", "\x1b") else pressed.lower()


INDENT = 9
MAX_REMINDER_CHARS = 300


def write_queries(data: Dataset, seed: int) -> None:
    """The first queries: from the log, else by hand; what was typed is kept, also where typing is broken off."""
    texts = logged_queries(data, seed)
    try:
        if not texts:
            click.echo(
                f"{data.called} has no queries. Write {WANTED} as you would ask; an empty line shows another "
                "entry, u takes the last query back, q ends. The entry is a reminder of what there is: do not use "
                "its words.",
                err=True,
            )
            for entry in reminders(data, seed):
                words = " ".join(f"{entry.title} {entry.text}".split())
                show(wrapped(f"entry    {words[:MAX_REMINDER_CHARS]}", INDENT))
                text = _asked(entry, texts)
                texts += [text] if text not in ("", "q") else []
                if text == "q" or len(texts) == WANTED:
                    break
    finally:
        if texts:
            note(f"{save_queries(data, texts)} queries are in {data.path / QUERIES}")


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
