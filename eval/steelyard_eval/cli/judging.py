"""The command judge: pairs of query and entry, graded by single keys in the terminal."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

import click

from steelyard.base.extensions import extension as engine_extension
from steelyard.memory.entry import Entry
from steelyard_eval.cli import judge_texts
from steelyard_eval.cli.judge_texts import KEYS
from steelyard_eval.cli.options import note, put, show, tell, wants_json
from steelyard_eval.cli.options import note as tell_user
from steelyard_eval.common.console import step_text, wrapped
from steelyard_eval.common.extensions import extension
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets import Dataset, load
from steelyard_eval.notebook.label.apply import apply, labels_file
from steelyard_eval.notebook.label.desk import desk, upcoming
from steelyard_eval.notebook.label.judgments import Pair, folder_of, judgments_of
from steelyard_eval.notebook.label.open import open_duel, open_judging
from steelyard_eval.notebook.label.session import Session
from steelyard_eval.notebook.label.write_queries import (
    QUERIES,
    WANTED,
    draw_from_log,
    drawn_from_log,
    logged_queries,
    refused,
    reminders,
    save_queries,
)
from steelyard_eval.recording.workspace import embedder_of


def judging(
    dataset: str,
    contenders: list[str],
    out: str | None,
    name: str,
    lists: bool,
    applies: bool,
    kind: bool | None,
    from_log: bool,
    feedback: str | None,
    second_to: str,
    most: int,
    yes: bool,
    split: str | None,
    embedder: str,
    seed: int,
) -> None:
    """Do what the command was asked for; `kind` is True for whole queries, `most` above 0 lets a model judge."""
    if feedback and not from_log:
        raise click.UsageError("--feedback names the log of --from-log; add it")
    if kind is False and (contenders or from_log):
        raise click.UsageError("--duel is between the usual strategies; leave out contenders and --from-log")
    if most:
        if contenders or lists or kind or from_log or second_to or applies:
            raise click.UsageError(
                "--model judges what the duel does; leave out contenders, --list, --random, --from-log, "
                "--second-to and --apply"
            )
        data = load(dataset).embedded_by(embedder)
        folder = Path(out) if out else folder_of(data, name)
        _by_model(open_duel(data, folder, name, split, seed, embedder=embedder), most, yes)
        return
    as_json = wants_json()
    data, asked = load(dataset).embedded_by(embedder), list[str]()
    folder = Path(out) if out else folder_of(data, second_to or name)
    if from_log:
        data, asked = _with_log(data, seed, feedback, as_json or lists or applies)
    if not (as_json or applies) and not data.queries:
        if lists:
            what = f"{data.called} has no queries, so no pair is next; write some"
            show(step_text(what, judge_texts.again()))
            return
        for judge_ in (name, second_to or name):  # before queries are typed
            judgments_of(data, folder / f"{judge_}.jsonl")
        write_queries(data, seed)
        data = load(dataset).embedded_by(embedder)
    given = contenders or None
    embedder = embedder_of(data, embedder, given or ())
    if applies and not (given or second_to or from_log) and kind is None:
        answers = judgments_of(data, folder / f"{name}.jsonl")
        kind = any(one.drawn for one in answers.values())
        given = None if kind or data.by_pairs else ["bm25"]  # single pairs are labels whoever is compared
    session = open_judging(
        *(data, given, folder, name, second_to, split, seed),
        random=from_log or kind,
        queries=asked,
        embedder=embedder,
    )
    asks = session.next is not None and not (as_json or applies)
    if asks and given is None and kind is None and not (from_log or second_to):
        tell_user(judge_texts.kind(session))
    if applies:
        stated = session.state
        done = apply(session, lambda removed: yes or (not as_json and _sure(removed)))
        written = [str(path) for path in done.written]
        lines = judge_texts.applied(done, session, stated)
        counts = {"added": len(done.added), "changed": len(done.changed), "removed": len(done.removed)}
        put({"written": written, "stated": stated, **counts}, "\n".join(lines))
        return
    if lists:
        pairs, document = upcoming(session), desk(session)
        put({**document, "next": pairs}, "\n".join(judge_texts.listed(pairs, session, document)))
        return
    if not as_json:
        _work(session)
    document = desk(session)
    for text in judge_texts.notes(session, document):
        tell_user(text)
    where = [*judge_texts.saved(session, document)] if document["given"] else []
    put(document, "\n".join(judge_texts.ended(document, where)))


def _with_log(data: Dataset, seed: int, log: str | None, asks_nothing: bool) -> tuple[Dataset, list[str]]:
    """The data set with queries drawn from a log, and their ids; on disk only where something is asked."""
    if not asks_nothing:
        ids = draw_from_log(data, seed, log)
        return replace(load(data.path), embedder=data.embedder, chosen=data.chosen), ids
    ids, new = drawn_from_log(data, seed, log)
    return replace(data, queries=(*data.queries, *new)), ids


def _by_model(person: Session, most: int, yes: bool) -> None:
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


def _sure(removed: list[Pair]) -> bool:
    """Whether labels are to be taken out; nobody is asked where there is no terminal."""
    count = counted(len(removed), "label")
    return sys.stdin.isatty() and click.confirm(f"--apply takes {count} out, {removed[0]} first; do it?", err=True)


def _work(session: Session) -> None:
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
