"""The command judge: pairs of query and entry, graded by single keys in the terminal."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from steelyard.net.chat import chat_of
from steelyard_eval.cli.commands.contenders import contenders_argument, contenders_of
from steelyard_eval.cli.commands.options import embedder_option, json_option, put, seed_option
from steelyard_eval.cli.commands.shared_options import note as tell_user
from steelyard_eval.common.answer import step_in_terminal
from steelyard_eval.common.console import wrapped
from steelyard_eval.datasets import Dataset, load
from steelyard_eval.datasets.beir import is_beir
from steelyard_eval.datasets.faults import counted
from steelyard_eval.datasets.manifest import holds_hash
from steelyard_eval.notebook.label.by_model import (
    ModelSession,
    agreed,
    ask,
    cost,
    judge_name,
    judged_by_person,
    model_agreement,
    opened,
)
from steelyard_eval.notebook.label.desk import Record, desk
from steelyard_eval.notebook.label.duel_session import open_duel
from steelyard_eval.notebook.label.open import open_judging
from steelyard_eval.notebook.label.session import Session
from steelyard_eval.notebook.label.write_queries import (
    COPIED,
    QUERIES,
    WANTED,
    copied,
    draw_from_log,
    logged_queries,
    reminders,
    save_queries,
)

INDENT = 9
REMINDER = 300
"""Characters of an entry that reminds of what there is."""
KEYS = "0-3 grade, x cannot say, z nothing answers this query, s skip, u undo, m more of the entry, n note, q quit"
LINES = 16
"""Lines of a pair that are shown at first."""


@click.command()
@click.argument("dataset", type=click.Path())
@contenders_argument
@click.option("--out", type=click.Path(), default="judgments", show_default=True, help="Folder of the judgments.")
@click.option("--judge", "name", default="judge", show_default=True, help="Who judges; a file each.")
@click.option("--random", is_flag=True, help="Whole queries drawn at random, whose labels can carry a ship.")
@click.option("--from-log", is_flag=True, help="The same, of the distinct queries of a log, for steelyard learn.")
@click.option("--feedback", type=click.Path(), metavar="LOG", help="That log; the data set's own by default.")
@click.option("--model", is_flag=True, help="Let the language model of LLM_BASE_URL and LLM_MODEL judge, too.")
@click.option("--most", type=click.IntRange(1), default=200, show_default=True, help="Pairs that --model judges.")
@click.option("--yes", is_flag=True, help="Ask the model without asking you first.")
@click.option("--second-to", metavar="JUDGE", default="", help="Judge again what JUDGE has judged; prints kappa.")
@click.option("--split", help="train, dev, test or all; all by default.")
@embedder_option
@seed_option
@json_option
def judge(
    dataset: str,
    contenders: tuple[str, ...],
    out: str,
    name: str,
    random: bool,
    from_log: bool,
    feedback: str | None,
    model: bool,
    most: int,
    yes: bool,
    second_to: str,
    split: str | None,
    embedder: str,
    seed: int,
    as_json: bool,
) -> None:
    """Label pairs of query and entry, those first that tell most about the choice between contenders.

    Without a CONTENDER the usual strategies are chosen between, by duel: the next pair is where those that lead
    now part most. After every answer it says who leads, how sure that is and how many more it takes, and it ends
    when the verdict stands. Labels of a duel are worth a try, never a ship.

    With CONTENDERs the pool is what they rank among the first ten, and what other weights of theirs would bring
    there; the others are compared with the first one, and pairs come shuffled. There is no hint of who found an
    entry. Every key is saved: the command goes on where it was left. With --json it asks nothing and prints how
    far the work is.

    With --model a language model judges queries of the duel whole, those that you labelled first: what that costs
    is told before, answers are kept in a file of its own, and its labels count for nothing until 50 of the pairs
    are judged by you as well. Then `steelyard recommend --model-labels FILE` lets them sharpen yours.

    With --random whole queries are drawn, and each is judged on what the contenders rank among the first ten. The
    labels of queries that are judged whole stand for the others, so what they prove can ship. With --from-log
    they are drawn from the distinct queries of a log, each as likely as another: then `steelyard learn` decides by
    them, from 15 on, and what was done in the log makes them worth more. New ones are added to queries.jsonl.
    """
    if feedback and not from_log:
        raise click.UsageError("--feedback names the log of --from-log; add it")
    if model:
        if contenders or random or from_log or second_to:
            raise click.UsageError(
                "--model judges what the duel does; leave out contenders, --random, --from-log, --second-to"
            )
        _by_model(open_duel(load(dataset), Path(out), name, split, seed, embedder=embedder), most, yes, as_json)
        return
    asked = draw_from_log(load(dataset), seed, feedback) if from_log else []
    if not as_json and not load(dataset).queries:
        _write_queries(load(dataset), seed)
    given = contenders_of(contenders, ()) or None
    session = open_judging(
        *(load(dataset), given, Path(out), name, second_to, split, seed),
        random=random or from_log,
        queries=asked,
        embedder=embedder,
    )
    if not as_json:
        _work(session)
    found = desk(session)
    for text in (*_told(found), *_marked(session)):
        tell_user(text)
    put(found, as_json, "\n".join(_ended(found, dataset)))


def _by_model(person: Session, most: int, yes: bool, as_json: bool) -> None:
    """Let a model judge pairs of the same pool, after its cost is told, and say how far both agree."""
    chat = opened(chat_of(os.environ))
    session = ModelSession(person.pool, person.folder, judge_name(chat))
    asked = cost(session, most)
    click.echo(f"{chat.name}: {asked}", err=True)
    if asked.pairs and (yes or (sys.stdin.isatty() and click.confirm("ask it?", err=True))):
        ask(session, chat, most)
    found = model_agreement(judged_by_person(person.pool.dataset, person.given), session.given)
    document = {"judge": session.judge, "given": len(session.given), "file": str(session.file), **asdict(asked)}
    put({**document, **found}, as_json, f"{len(session.given)} judged, in {session.file}\n{agreed(found)}")


def _write_queries(data: Dataset, seed: int) -> None:
    """The first queries: from the log, else by hand; none are written where nothing is answered."""
    texts = logged_queries(data, seed)
    if not texts:
        click.echo(
            f"{data.name} has no queries. Write {WANTED} as you would ask; an empty line shows another entry, "
            "q ends. The entry is a reminder of what there is: do not use its words.",
            err=True,
        )
        texts = list(_typed(data, seed))
    if texts:
        tell_user(f"{save_queries(data, texts)} queries are in {data.path / QUERIES}")


def _typed(data: Dataset, seed: int) -> Iterator[str]:
    count = 0
    for entry in reminders(data, seed):
        put(None, False, wrapped(f"entry    {' '.join(f'{entry.title} {entry.text}'.split())[:REMINDER]}", INDENT))
        while (
            text := click.prompt(f"query {count + 1}", default="", show_default=False, err=True).strip()
        ) != "q":
            if not text or not copied(text, entry):
                break
            click.echo(COPIED, err=True)
        if text == "q":
            return
        if text:
            yield text
            count += 1
        if count == WANTED:
            return


def _told(found: Record) -> Iterator[str]:
    if found["state"] and found["given"]:
        keys = json.dumps(found["state"], ensure_ascii=False)[1:-1]
        if found["written"]:
            once = ", once a query is whole" if found["drawn"] else ""
            yield f"dataset.json says what these labels are ({', '.join(found['state'])}){once}"
        elif not found["drawn"]:
            yield f"pairs are chosen where contenders disagree, so say it in dataset.json: {keys}"
        else:
            yield f"{found['qrels']} has drawn queries alone; with it, dataset.json has to say: {keys}"


def _marked(session: Session) -> Iterator[str]:
    if marked := session.unanswerable:
        yield (
            f"{counted(len(marked), 'query', 'queries')} without an answer here; {session.judge}.queries.jsonl in "
            f"{session.folder} says so, ready to replace queries.jsonl"
        )


def _ended(found: Record, dataset: str) -> Iterator[str]:
    """How far the work is, where the judgments are, and what to do where there is nothing left to ask."""
    yield wrapped(f"{_counts(found)} {found['sentence']}")
    if found["given"]:
        yield _where(found, dataset)
    yield from map(step_in_terminal, found["steps"])


def _counts(found: Record) -> str:
    return f"{found['given']} judged, {found['left']} left." if found["card"] else f"{found['given']} judged."


def _where(found: Record, dataset: str) -> str:
    """Where the judgments are, and how the data set gets them; that of BEIR has its own folder."""
    folder = Path(dataset)
    target = folder / "qrels.txt"
    copy = (
        ""
        if is_beir(folder) or not found["own_labels"]
        else f"; to use them: {shlex.join(['cp', found['qrels'], str(target)])}"
    )
    if copy and holds_hash(folder, target.name):
        copy += ", and remove its line from files in dataset.json"
    rest = found["given"] - found["own_labels"]
    without = (
        f"; {rest} judged without becoming a label (no grade, or a query that is not whole yet)" if rest else ""
    )
    return (
        f"saved in {found['qrels']}: {found['labels']} labels, {found['own_labels']} of them yours{without}{copy}"
    )


def _work(session: Session) -> None:
    """Ask until everything is judged or the judge quits; every judgment is saved before the next pair shows."""
    if session.next is not None:
        click.echo(KEYS, err=True)
    note = ""
    while session.next is not None:
        card = _card(desk(session))
        put(None, False, _folded(card))
        key = _key()
        if key == "m":
            put(None, False, card)
            key = _key()
        if key == "q":
            return
        note = click.prompt("note", default="", show_default=False, err=True) if key == "n" else note
        if _done(key, session, note):
            note = ""


def _folded(card: str) -> str:
    lines = card.splitlines()
    more = f"\n{' ' * INDENT}... {len(lines) - LINES} more lines: m" if len(lines) > LINES + 1 else ""
    return "\n".join(lines[:LINES]) + more if more else card


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
        session.skip() if key == "s" else session.nothing()
        return True
    if key == "u":
        session.undo()
    elif key not in ("n", "\n"):
        click.echo(KEYS, err=True)
    return False


def _card(found: Record) -> str:
    """The pair at hand as text."""
    card = found["card"]
    texts = [("query", card["query"]), ("entry", card["title"]), *card["parts"], ("", card["facts"])]
    lines = [
        wrapped(f"{'' if name == 'text' or at else name:9}{line}", INDENT)
        for name, text in texts
        for at, line in enumerate(text.splitlines())
    ]
    return "\n".join(["", f"{_counts(found)} {found['sentence']}", *lines])
