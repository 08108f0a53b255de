"""The command judge: pairs of query and entry, graded by single keys in the terminal."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click
from click.core import ParameterSource

from steelyard.base.errors import shown
from steelyard.net.chat import chat_of
from steelyard_eval.cli.commands.contenders import contenders_argument, contenders_of
from steelyard_eval.cli.commands.first_queries import write_queries
from steelyard_eval.cli.commands.options import embedder_option, json_option, put, seed_option, tell
from steelyard_eval.cli.commands.shared_options import note as tell_user
from steelyard_eval.common.answer import step_in_terminal
from steelyard_eval.common.console import table, wrapped
from steelyard_eval.datasets import Dataset, load
from steelyard_eval.datasets.faults import counted
from steelyard_eval.datasets.manifest import FILE as MANIFEST
from steelyard_eval.datasets.manifest import holds_hash
from steelyard_eval.gate.gating import BASELINE
from steelyard_eval.notebook.label import by_model, whole_queries
from steelyard_eval.notebook.label.apply import Applied, apply, labels_file
from steelyard_eval.notebook.label.desk import DeskDocument, NextPair, desk, upcoming
from steelyard_eval.notebook.label.duel_session import open_duel
from steelyard_eval.notebook.label.judgments import NOTHING, Judgment, Pair, folder_of, judgments_of
from steelyard_eval.notebook.label.open import open_judging
from steelyard_eval.notebook.label.session import Session
from steelyard_eval.notebook.label.write_queries import draw_from_log, drawn_from_log
from steelyard_eval.recording.rankings.spelling import word

INDENT = 9
KEYS = "0-3 grade, x cannot say, z nothing answers this query, s skip, u undo, m more of the entry, n note, q quit"
OPENS = {"out", "name", "random", "from_log", "feedback", "second_to", "split", "embedder", "seed"}
"""Options that say which session is opened."""
NAMED = 3
"""Labels of a kind that are named where there are no more."""
LINES = 16
"""Lines of a pair that are shown at first."""


@click.command()
@click.argument("dataset", type=click.Path())
@contenders_argument
@click.option("--out", type=click.Path(), help="Folder of the judgments; judgments in the data set's by default.")
@click.option("--judge", "name", default="judge", show_default=True, help="Who judges; a file each.")
@click.option("--list", "lists", is_flag=True, help="Ask nothing; print the next pairs of the queries there are.")
@click.option(
    "--random/--duel",
    default=None,
    help="Queries drawn at random, whose labels can carry a ship; or pairs, worth a try. By default what "
    "`steelyard recommend` needs next.",
)
@click.option("--from-log", is_flag=True, help="The same, of the distinct queries of a log, for steelyard learn.")
@click.option("--feedback", type=click.Path(), metavar="LOG", help="That log; the data set's own by default.")
@click.option("--model", is_flag=True, help="Let the language model of LLM_BASE_URL and LLM_MODEL judge, too.")
@click.option("--most", type=click.IntRange(1), default=200, show_default=True, help="Pairs that --model judges.")
@click.option("--yes", is_flag=True, help="Ask the model without asking you first.")
@click.option("--second-to", metavar="JUDGE", default="", help="Judge again what JUDGE has judged; prints kappa.")
@click.option(
    "--apply",
    "applies",
    is_flag=True,
    help="Ask nothing; give the data set these labels, and say there what they are.",
)
@click.option("--split", help="train, dev, test or all; all by default.")
@embedder_option
@seed_option
@json_option
def judge(
    dataset: str,
    contenders: tuple[str, ...],
    out: str | None,
    name: str,
    lists: bool,
    random: bool | None,
    from_log: bool,
    feedback: str | None,
    model: bool,
    most: int,
    yes: bool,
    second_to: str,
    applies: bool,
    split: str | None,
    embedder: str,
    seed: int,
    as_json: bool,
) -> None:
    """Label what tells most next: pairs of a query and an entry, each by one key.

    Keys are 0 (not relevant) to 3 (answers it), x cannot say, z nothing answers the query, s skip, m more of the
    entry, n note, q quit. u takes the last answer back and asks it again; once more, the one before. Every key is
    saved, and the command goes on where it was left. At the end it says how many are judged, and which command
    gives the data set the labels. --list prints the next pairs instead of asking.

    Without a CONTENDER it asks for what `steelyard recommend` needs. Where nothing is labelled that is a duel
    between the usual strategies: the next pair is where those that lead now part most. After every answer it says
    who leads, how sure that is and how many more it takes, and it ends when the verdict stands. Labels of a duel
    are worth a try, never a ship. Where queries have labels, it is more queries, as with --random.

    With CONTENDERs the pool is what they rank among the first ten, and what other weights of theirs would bring
    there; the others are compared with the first one, and pairs come shuffled. There is no hint of who found an
    entry. With --json it asks nothing and prints how far the work is.

    With --model a language model judges all pairs of a query, those queries that you labelled first: what that
    costs is told before, answers are kept in a file of its own, and its labels count for nothing until 50 of the
    pairs are judged by you as well. Then `steelyard recommend --model-labels FILE` lets them sharpen yours.

    With --random queries are drawn, and a query counts once all that the contenders rank among its first ten is
    judged. Such queries stand for the others, so what their labels prove can ship. With --from-log
    they are drawn from the distinct queries of a log, each as likely as another: then `steelyard learn` decides by
    them, from 15 on, and what was done in the log makes them worth more. New ones are added to queries.jsonl.
    """
    if feedback and not from_log:
        raise click.UsageError("--feedback names the log of --from-log; add it")
    if random is False and (contenders or from_log):
        raise click.UsageError("--duel is between the usual strategies; leave out contenders and --from-log")
    if model:
        if contenders or lists or random or from_log or second_to or applies:
            raise click.UsageError(
                "--model judges what the duel does; leave out contenders, --list, --random, --from-log, "
                "--second-to and --apply"
            )
        data = load(dataset)
        folder = Path(out) if out else folder_of(data, name)
        _by_model(open_duel(data, folder, name, split, seed, embedder=embedder), most, yes, as_json)
        return
    data, asked = load(dataset), list[str]()
    folder = Path(out) if out else folder_of(data, second_to or name)
    if from_log:
        data, asked = _with_log(data, seed, feedback, as_json or lists or applies)
    if not (as_json or applies) and not data.queries:
        if lists:
            what = f"{data.name} has no queries, so no pair is next; write some"
            put(None, False, step_in_terminal({"what": what, "command": _again(dataset)}))
            return
        for judge_ in (name, second_to or name):  # before queries are typed
            judgments_of(data, folder / f"{judge_}.jsonl")
        write_queries(data, seed)
        data = load(dataset)
    given = contenders_of(contenders, ()) or None
    session = open_judging(
        *(data, given, folder, name, second_to, split, seed),
        random=from_log or random,
        queries=asked,
        embedder=embedder,
    )
    asks = session.next is not None and not (as_json or applies)
    if asks and given is None and random is None and not (from_log or second_to):
        tell_user(_kind(session))
    if applies:
        stated = whole_queries.to_state(session.pool, session.random, session.given)
        done = apply(session)
        written = [str(path) for path in done.written]
        lines = [f"written: {', '.join(written)}", *map(wrapped, _now_stated(stated, written))]
        lines += _changed(done, session, dataset)
        counts = {"added": len(done.added), "changed": len(done.changed), "removed": len(done.removed)}
        put({"written": written, "stated": stated, **counts}, as_json, "\n".join(lines))
        return
    if lists:
        pairs, document = upcoming(session), desk(session)
        put({**document, "next": pairs}, as_json, "\n".join(_listed(pairs, document, dataset)))
        return
    if not as_json:
        _work(session, dataset)
    document = desk(session)
    for text in (*_told(document), *_marked(session)):
        tell_user(text)
    where = [_where(document, session, dataset)] if document["given"] else []
    put(document, as_json, "\n".join(_ended(document, where)))


def _with_log(data: Dataset, seed: int, log: str | None, asks_nothing: bool) -> tuple[Dataset, list[str]]:
    """The data set with queries drawn from a log, and their ids; on disk only where something is asked."""
    if not asks_nothing:
        ids = draw_from_log(data, seed, log)
        return load(data.path), ids
    ids, new = drawn_from_log(data, seed, log)
    return replace(data, queries=(*data.queries, *new)), ids


def _by_model(person: Session, most: int, yes: bool, as_json: bool) -> None:
    """Let a model judge pairs of the same pool, after its cost is told, and say how far both agree."""
    chat = by_model.opened(chat_of(os.environ))
    session = by_model.ModelSession(person.pool, person.folder, by_model.judge_name(chat))
    asked = by_model.cost(session, most)
    click.echo(f"{chat.name}: {asked}", err=True)
    if asked.pairs and (yes or (sys.stdin.isatty() and click.confirm("ask it?", err=True))):
        by_model.ask(session, chat, most)
    judged = by_model.judged_by_person(person.pool.dataset, person.given)
    agreement = by_model.model_agreement(judged, session.given)
    document = {"judge": session.judge, "given": len(session.given), "file": str(session.file), **asdict(asked)}
    told = f"{len(session.given)} judged, in {session.file}\n{by_model.agreed(agreement)}"
    put({**document, **agreement}, as_json, told)


def _kind(session: Session) -> str:
    """What is asked where nobody chose it, and why: labels that the data set gets may change it."""
    name = shown(session.pool.dataset.path.name)
    if session.random:
        return (
            f"queries are drawn at random and judged on all that is found for them, because {name} has labels "
            "already; --duel asks single pairs"
        )
    why = "its labels are of a duel" if session.pool.dataset.qrels else "it has no labels"
    return f"single pairs are asked of {name}, a duel, because {why}; --random asks whole queries, which can ship"


def _listed(pairs: Sequence[NextPair], found: DeskDocument, dataset: str) -> Iterator[str]:
    """The next pairs as a table, how far the work is, and how to begin."""
    before = [None, *(pair["query"] for pair in pairs)]
    same = [pair["query"] == last for pair, last in zip(pairs, before, strict=False)]
    rows = [{**pair, "text": "" if again else pair["text"]} for pair, again in zip(pairs, same, strict=True)]
    yield from [table(rows), ""] if rows else []
    yield from _ended(found)
    if pairs and not (found["duel"] or found["drawn"] or found["agreement"]):
        yield wrapped(
            "The order is drawn at random, with telling pairs likely first: so the labels stand for the rest "
            "wherever you stop."
        )
    if pairs:
        yield step_in_terminal({"what": "label them, one key each", "command": _again(dataset)})


def _told(found: DeskDocument) -> Iterator[str]:
    if found["state"] and found["given"]:
        if found["written"]:
            once = ", once a query is judged in full" if found["drawn"] else ""
            yield f"dataset.json says what these labels are ({', '.join(found['state'])}){once}"
        elif found["drawn"]:
            yield f"{found['qrels']} has drawn queries alone, because other labels do not stand for the rest"


def _marked(session: Session) -> Iterator[str]:
    if marked := session.unanswerable:
        yield (
            f"{counted(len(marked), 'query', 'queries')} without an answer here; {session.judge}.queries.jsonl in "
            f"{session.folder} says so, ready to replace queries.jsonl"
        )


def _ended(found: DeskDocument, where: Sequence[str] = ()) -> Iterator[str]:
    """How far the work is, `where` the judgments are, and what to do where there is nothing left to ask."""
    yield wrapped(f"{_counts(found)} {found['sentence']}")
    yield from where
    yield from map(step_in_terminal, found["steps"])


def _counts(found: DeskDocument) -> str:
    return f"{found['given']} judged, {found['left']} left." if found["card"] else f"{found['given']} judged."


def _where(found: DeskDocument, session: Session, dataset: str) -> str:
    """Where the judgments are, and how the data set gets them."""
    rest = found["given"] - found["own_labels"]
    without = (
        f"; {rest} judged without becoming a label (no grade, or a query not judged in full yet)" if rest else ""
    )
    unstated = found["state"] and not found["written"]
    wanted = found["own_labels"] and (found["new_labels"] or unstated)
    copy = f"; to use them: {command}" if wanted and (command := _applying(dataset)) else ""
    return (
        f"saved in {found['qrels']}: {counted(found['labels'], 'label', 'labels')}, {found['own_labels']} of them "
        f"yours{without}{copy}"
    )


def _changed(done: Applied, session: Session, dataset: str) -> Iterator[str]:
    """How many labels the data set has not had so, what to do with them, and how to undo it."""
    kinds = {"added": done.added, "changed": done.changed, "taken out": done.removed}
    yield wrapped("labels: " + ", ".join(f"{len(pairs)} {what}{_named(pairs)}" for what, pairs in kinds.items()))
    if done.again and done.added:
        yield wrapped(
            "a label of yours that was deleted there since is among the added; to keep one out, delete its line "
            f"in {session.file}, too"
        )
    yield step_in_terminal(
        {"what": "decide by these labels", "command": f"steelyard recommend {word(Path(dataset))}"}
    )
    file = done.written[0]
    if done.before and BASELINE.is_file():
        what = "the gate's baseline is of the labels before, and it stops until that is renewed"
        renewed = shlex.join(["steelyard", "gate", word(Path(dataset)), "--update", "--because", "new labels"])
        yield step_in_terminal({"what": what, "command": renewed})
    if done.before:
        copy = shlex.join(["cp", str(done.before), str(file)])
        accept = shlex.join(["steelyard", "check", word(Path(dataset)), "--accept"])
        hashed = holds_hash(file.parent, file.name)
        yield step_in_terminal({"what": "to undo", "command": f"{copy} && {accept}" if hashed else copy})


def _named(pairs: Sequence[Pair]) -> str:
    """Pairs in brackets, where they are few."""
    return f" ({', '.join(map(' '.join, pairs))})" if 0 < len(pairs) <= NAMED else ""


def _now_stated(stated: Mapping[str, object], written: Sequence[str]) -> Iterator[str]:
    """What dataset.json says from now on of queries that nobody drew, because it decides what may ship."""
    if stated.get("sampled") == "duel" and any(Path(name).name == MANIFEST for name in written):
        yield (
            f'{MANIFEST} now says "sampled": "duel", because queries that nobody drew have their first labels: a '
            "verdict is try at most. judge --random labels what may ship; without that line it is as before"
        )


def _applying(dataset: str) -> str:
    """The command by which the data set gets the labels; empty for one that keeps them in another form."""
    return "" if labels_file(Path(dataset)) is None else f"{_again(dataset)} --apply"


def _again(dataset: str) -> str:
    """The command that opens this session again, with its contenders and options as they were typed."""
    return shlex.join(["steelyard", "judge", word(Path(dataset)), *_typed_words()])


def _typed_words() -> Iterator[str]:
    ctx = click.get_current_context()
    yield from ctx.params["contenders"]
    for option in ctx.command.params:
        typed = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if typed and option.name in OPENS:
            value = ctx.params[option.name or ""]
            yield max(option.secondary_opts if value is False else option.opts, key=len)
            yield from [] if isinstance(value, bool) else [str(value)]


def _work(session: Session, dataset: str) -> None:
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
        if key == "u":
            _undo(session, dataset)
        elif _done(key, session, note):
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


def _undo(session: Session, dataset: str) -> None:
    """Take the last judgment back and name it; where the data set has its label, say how to take that out."""
    if not session.given:
        tell("nothing is judged, so nothing is taken back")
        return
    last, pool = [*session.given.values()][-1], session.pool
    session.undo()
    tell(f"taken back: {_judged(last)}")
    if session.pool is not pool and (command := _applying(dataset)):
        tell(f"{labels_file(Path(dataset))} still holds it; to take it out: {command}")


def _judged(one: Judgment) -> str:
    if one.entry == NOTHING:
        return f"{one.query}, nothing answers it"
    return f"{one.query}, {one.entry}, {'cannot say' if one.grade is None else f'grade {one.grade}'}"


def _card(found: DeskDocument) -> str:
    """The pair at hand as text."""
    card = found["card"]
    if card is None:
        return ""
    texts = [("query", card["query"]), ("entry", card["title"]), *card["parts"], ("", card["facts"])]
    lines = [
        wrapped(f"{'' if name == 'text' or i else name:9}{line}", INDENT)
        for name, text in texts
        for i, line in enumerate(text.splitlines())
    ]
    return "\n".join(["", f"{_counts(found)} {found['sentence']}", *lines])
