"""What the command judge tells: what is asked and why, the pair at hand, how far the work is, what to do then."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from steelyard.base.errors import shown
from steelyard_eval.common.console import step_text, wrapped
from steelyard_eval.common.formatting import counted
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import FILE as MANIFEST
from steelyard_eval.gate.setup import is_of_other_labels
from steelyard_eval.notebook.label.apply import Applied, labels_file
from steelyard_eval.notebook.label.desk import Record
from steelyard_eval.notebook.label.judgment_file import MEANING, NOTHING, Judgment, Pair
from steelyard_eval.notebook.label.session import QUERIES, Session
from steelyard_eval.recording.next_steps import deciding, rough, spelled, word
from steelyard_eval.result.sentences import say

INDENT = 9
GRADES = "  ".join(f"{grade} {meaning}" for grade, meaning in enumerate(MEANING))
KEYS = f"""{GRADES}
x cannot say  z nothing answers this query  s skip  u undo  n note
m more of the entry  q quit; every answer is saved, and judging goes on there"""
OPENS = {"out", "judge", "random", "duel", "from_log", "feedback", "second_to", "split", "embedder", "seed"}
"""Options that say which session is opened."""
NAMED = 3
"""Labels of a kind that are named where there are no more."""
LINES = 16
"""Lines of a pair that are shown at first."""


def kind(session: Session) -> str:
    """What is asked where nobody chose it, and why: labels that the data set gets may change it."""
    name = shown(session.pool.dataset.path.name)
    if session.random:
        return (
            f"queries are drawn at random and judged on all that is found for them, because {name} has labels "
            "already; --duel asks single pairs"
        )
    why = "its labels are of a duel" if session.pool.dataset.qrels else "it has no labels"
    return f"single pairs are asked of {name}, a duel, because {why}; --random asks whole queries, which can ship"


def listed(pairs: Sequence[Record], session: Session, found: Record) -> Iterator[str]:
    """How far the work is, how to begin, and the next pairs below their queries."""
    yield from ended(found, [*_to_use(session, found, "to use your answers")])
    open_ = not found["complete"] and any(one["verdict"] == "open" for one in found["comparisons"])
    if pairs and open_ and not found["drawn"]:
        yield wrapped(
            "The order is drawn at random, with telling pairs likely first: so the labels stand for the rest "
            "wherever you stop."
        )
    if pairs:
        needed = open_ or found["drawn"] or not found["comparisons"]
        what = "label them, one key each" if needed else "to label pairs all the same, one key each"
        yield step_text(what, again())
        yield ""
    before = [None, *(pair["query"] for pair in pairs)]
    for pair, last in zip(pairs, before, strict=False):
        if pair["query"] != last:
            yield wrapped(f"{pair['query']}: {pair['text']}", INDENT)
        yield wrapped(f"    {pair['entry']}: {pair['title']}", INDENT)


def ended(found: Record, where: Sequence[str] = ()) -> Iterator[str]:
    """How far the work is, `where` the judgments are or how to use them, and what to do when nothing is left."""
    yield wrapped(" ".join(filter(None, (found["counts"], found["sentence"]))))
    yield from where
    yield from (step_text(step["what"], step["command"]) for step in found["steps"])


def saved(session: Session, found: Record) -> Iterator[str]:
    """Where the judgments are, how to change one, and how the data set gets the labels."""
    own = found["own_labels"]
    others = f" and the {found['labels'] - own} that were there" if found["labels"] > own else ""
    labels = f"your {counted(own, 'label')}{others}{_unlabelled(session)}"
    yield wrapped(f"saved in {found['qrels']}: {labels}")
    yield wrapped(f"to change an answer: u while judging, or edit its line in {found['file']}")
    if marked := session.unanswerable:
        ready = f"{session.judge}.{QUERIES} in {session.folder} says so, ready to replace {QUERIES}"
        yield wrapped(f"{counted(len(marked), 'query', 'queries')} without an answer here; {ready}")
    yield from _to_use(session, found, "to use them")


def _to_use(session: Session, found: Record, what: str) -> Iterator[str]:
    """How the data set gets the labels, where it lacks some; nothing for one that keeps them in another form."""
    if labels_file(session.pool.dataset.path) and found["own_labels"] and (found["new_labels"] or found["state"]):
        whole = session.random or any(one.drawn for one in session.given.values())
        yield step_text(what, f"{again() if whole else again(contender=())} --apply")


def _unlabelled(session: Session) -> str:
    """How many answers are no labels, and why."""
    without = sum(one.grade is None for one in session.given.values())
    none = f"; {counted(without, 'answer has', 'answers have')} no grade" if without else ""
    waiting = len(session.waiting)
    wait = f"; {counted(waiting, 'answer waits', 'answers wait')} until the query is judged in full"
    return f"{none}{wait if waiting else ''}"


def applied(done: Applied, session: Session, stated: Mapping[str, object]) -> Iterator[str]:
    """What was written, how many labels the data set has not had so, what to do with them, and how to undo it."""
    if done.written:
        yield f"written: {', '.join(map(str, done.written))}"
    file, own = labels_file(session.pool.dataset.path), session.counted()[1]
    dataset = load(session.pool.dataset.path).embedded_by(session.pool.dataset.embedder or "auto")
    if not any(path.name == MANIFEST for path in done.copies):
        stated = {}  # nothing of it was written
    if "provenance" in stated and session.random:
        others = len(session.labels) - len(dataset.drawn)
        yield wrapped(
            f"{MANIFEST} now says which queries were drawn (provenance); the labels of the other "
            f"{counted(others, 'query', 'queries')} stay, and count as chosen by hand"
        )
    elif stated.get("sampled") == "duel":
        yield wrapped(
            f'{MANIFEST} now says "sampled": "duel", because queries that nobody drew have their first labels: by '
            "these a verdict is try at most. judge --random labels what may ship"
        )
    told = f"no label changed: {file} has your {counted(own, 'label')} already"
    if done.added or done.changed:
        kinds = {"added": done.added, "changed": done.changed}
        told = f"labels: {', '.join(f'{len(pairs)} {what}{_named(pairs)}' for what, pairs in kinds.items())}"
    elif not own:
        told = "none of your answers is a label yet"
    yield wrapped(f"{told}{_unlabelled(session)}")
    if session.waiting or not own:
        yield step_text("go on judging", again())
    if not own:
        return
    first = ""
    if (done.added or done.changed) and is_of_other_labels(dataset):
        what = "first renew the gate's baseline, which is of other labels (till then the gate stops)"
        # weights later: the gate refuses both at once
        yield step_text(
            what, spelled("gate", dataset, options={"--update": True, "--because": "new labels"}) or ""
        )
        first = "then "
    decide = deciding(dataset)
    yield step_text(f"{first}{say(decide)}", shlex.join(decide.command))
    if done.undo:
        yield step_text("to undo", done.undo)


def _named(pairs: Sequence[Pair]) -> str:
    """Pairs in brackets, where they are few."""
    return f" ({', '.join(map(' '.join, pairs))})" if 0 < len(pairs) <= NAMED else ""


def again(**other: object) -> str:
    """The command that opens this session again, as it was typed but for `other` contenders and options."""
    ctx = click.get_current_context()
    params = {**ctx.params, **other}
    words = ["steelyard", "judge", word(Path(params["dataset"])), *params["contender"]]
    for option in ctx.command.params:
        name, value = option.name or "", params.get(option.name or "")
        typed = name in other or ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        spellings = option.secondary_opts if value is False else option.opts
        if typed and name in OPENS and spellings and value is not None:
            words.append(max(spellings, key=len))
            words += [] if isinstance(value, bool) else [str(value)]
    return shlex.join(words)


def judged(one: Judgment) -> str:
    """A judgment in words."""
    if one.entry == NOTHING:
        return f"{one.query}, nothing answers it"
    return f"{one.query}, {one.entry}, {'cannot say' if one.grade is None else f'grade {one.grade}'}"


def card(found: Record, whole: bool = False, before: str = "") -> str:
    """The pair at hand as text, with the grades; of a long one the first lines, or the `whole`.

    `before` is the sentence of the pair before: where it differs by numbers alone, a short line stands for it.
    """
    pair = found["card"]
    if pair is None:
        return ""
    texts = [("query", pair["query"]), ("entry", pair["title"]), *pair["parts"], ("", pair["facts"])]
    lines = [
        line
        for name, text in texts
        for i, part in enumerate(text.splitlines())
        for line in wrapped(f"{'' if name == 'text' or i else name:9}{part}", INDENT).splitlines()
    ]
    if not whole and len(lines) > LINES + 1:
        lines[LINES:] = [f"{' ' * INDENT}... {len(lines) - LINES} more lines: m"]
    same = re.sub(r"\d+", "", before) == re.sub(r"\d+", "", found["sentence"])
    return "\n".join(["", *([status(found)] if same else ended(found)), *lines, f"{GRADES}  ? all keys"])


def status(found: Record) -> str:
    """How far the work is, in one short line."""
    duel, drawn = found["duel"], found["drawn"]
    left = f"{drawn['left']} of {drawn['query']} left" if drawn else f"{found['left']} left"
    if duel:
        few = duel["enough"] - duel["judged"]
        left = f"{few} more until these labels count" if few > 0 else f"about {rough(duel['more'])} more"
    return f"{counted(found['given'], 'pair')} judged, {left}."
