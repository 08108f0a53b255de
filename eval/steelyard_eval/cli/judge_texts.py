"""What the command judge tells: what is asked and why, the query at hand, how far the work is, what to do then."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path

import click
from click.core import ParameterSource

from steelyard.base.errors import visible
from steelyard_eval.common.console import cut, step_text, width, wrapped
from steelyard_eval.common.formatting import counted
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import FILE as MANIFEST
from steelyard_eval.gate.setup import is_of_other_labels
from steelyard_eval.notebook.label.apply import Applied, labels_file
from steelyard_eval.notebook.label.desk import Record
from steelyard_eval.notebook.label.judgment_file import GRADE_MEANINGS, Pair
from steelyard_eval.notebook.label.session import QUERIES, Session
from steelyard_eval.recording.next_steps import deciding, shell_command, shell_word
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Message

INDENT = 9
KEYS = (
    "  ".join((*(f"{grade} {meaning}" for grade, meaning in enumerate(GRADE_MEANINGS)), "x cannot say")),
    "j k entry  h l query  z nothing answers it  u undo  n note  m more  q quit",
)
OPENS = {"out", "judge", "random", "pairs", "from_log", "feedback", "second_judge_of", "split", "embedder", "seed"}
"""Options that say which session is opened."""
MAX_NAMED_LABELS = 3
MIN_ENTRY_LINES = 6


def listed(pairs: Sequence[Record], session: Session, record: Record) -> Iterator[str]:
    """How far the work is, how to begin, and the next pairs below their queries."""
    yield from progress_lines(record, [*_to_use(session, record, "to use your answers")])
    if pairs:
        yield step_text("label them, one key each", resume_command())
        yield ""
    for (query, text), of_query in groupby(pairs, key=lambda pair: (pair["query"], pair["text"])):
        yield wrapped(f"{query}: {text}", INDENT)
        yield from (wrapped(f"    {pair['entry']}: {pair['title']}", INDENT) for pair in of_query)


def progress_lines(record: Record, where: Sequence[str] = ()) -> Iterator[str]:
    """How far the work is, `where` the judgments are or how to use them, and what to do when nothing is left."""
    yield wrapped(" ".join(filter(None, (record["counts"], record["sentence"]))))
    yield from where
    yield from (step_text(step["what"], step["command"]) for step in record["steps"])


def saved(session: Session, record: Record) -> Iterator[str]:
    """Where the judgments are, how to change one, and how the data set gets the labels."""
    own = record["own_labels"]
    others = f" and {record['labels'] - own} from before" if record["labels"] > own else ""
    labels = f"your {counted(own, 'label')}{others}{_why_no_labels(session)}"
    yield wrapped(f"saved in {record['qrels']}: {labels}")
    yield wrapped(f"to change an answer: u while judging, or edit its line in {record['file']}")
    if marked := session.unanswerable:
        ready = f"{session.judge}.{QUERIES} in {session.folder} says so, ready to replace {QUERIES}"
        yield wrapped(f"{counted(len(marked), 'query', 'queries')} without an answer here; {ready}")
    yield from _to_use(session, record, "to use them")


def _to_use(session: Session, found: Record, what: str) -> Iterator[str]:
    """How the data set gets the labels, where it lacks some; nothing for one that keeps them in another form."""
    if labels_file(session.pool.dataset.path) and found["own_labels"] and (found["new_labels"] or found["state"]):
        yield step_text(what if found["new_labels"] else f"to complete {MANIFEST}", f"{resume_command()} --apply")


def _why_no_labels(session: Session) -> str:
    without = sum(one.grade is None for one in session.given.values())
    none = f"; {counted(without, 'answer has', 'answers have')} no grade" if without else ""
    waiting = len(session.waiting)
    wait = f"; {counted(waiting, 'label is', 'labels are')} pending until the query is fully labelled"
    return f"{none}{wait if waiting else ''}"


def applied(done: Applied, session: Session, stated: Mapping[str, object]) -> Iterator[str]:
    """What was written, how many labels the data set has not had so, what to do with them, and how to undo it."""
    if done.written:
        yield f"written: {', '.join(map(str, done.written))}"
    file, own = labels_file(session.pool.dataset.path), session.counted()[1]
    dataset = load(session.pool.dataset.path).embedded_by(session.pool.dataset.embedder or "auto")
    if not any(path.name == MANIFEST for path in done.copies):
        stated = {}  # nothing of it was written
    others = len(session.labels) - len(dataset.random_queries)
    if "provenance" in stated and session.random and others:
        unknown = "unknown" in dataset.sampling_by_query.values()
        count = "as before" if unknown else "as chosen by hand, which cannot prove a ship"
        yield wrapped(
            f"{MANIFEST} now says which queries were drawn (provenance); the labels of the other "
            f"{counted(others, 'query', 'queries')} stay, and count {count}. {say(Message('draw_stands_for'))}"
        )
    elif "provenance" in stated and session.random:
        yield f"{MANIFEST} now says which lists were judged (provenance)"
    elif stated.get("sampled") == "duel":
        yield wrapped(
            f'{MANIFEST} now says "sampled": "duel", because queries that nobody drew have their first labels: by '
            "these a verdict is try at most. judge --random labels what may ship"
        )
    told = f"no label changed: {file} has your {counted(own, 'label')} already"
    if done.added or done.changed:
        kinds = {"added": done.added, "changed": done.changed}
        told = f"labels: {', '.join(f'{len(pairs)} {what}{_bracketed(pairs)}' for what, pairs in kinds.items())}"
    elif not own:
        told = "none of your answers is a label yet"
    yield wrapped(f"{told}{_why_no_labels(session)}")
    if session.waiting or not own:
        yield step_text("go on judging", resume_command())
    if not own:
        return
    first = ""
    if (done.added or done.changed) and is_of_other_labels(dataset):
        what = "first renew the gate's baseline, which is of other labels (till then the gate stops)"
        # weights later: the gate refuses both at once
        yield step_text(
            what, shell_command("gate", dataset, options={"--update": True, "--reason": "new labels"}) or ""
        )
        first = "then "
    decide = deciding(dataset)
    yield step_text(f"{first}{say(decide)}", shlex.join(decide.command))
    if done.undo:
        yield step_text("to undo", done.undo)


def _bracketed(pairs: Sequence[Pair]) -> str:
    return f" ({', '.join(map(' '.join, pairs))})" if 0 < len(pairs) <= MAX_NAMED_LABELS else ""


def resume_command() -> str:
    """The command that opens this session again, as it was typed."""
    ctx = click.get_current_context()
    words = ["steelyard", "judge", shell_word(Path(ctx.params["dataset"])), *ctx.params["contender"]]
    for option in ctx.command.params:
        name, value = option.name or "", ctx.params.get(option.name or "")
        typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        spellings = option.secondary_opts if value is False else option.opts
        if typed and name in OPENS and spellings and value is not None:
            words.append(max(spellings, key=len))
            words += [] if isinstance(value, bool) else [str(value)]
    return shlex.join(words)


def screen(shown: Record, height: int, message: str = "", *, full: bool = False) -> str:
    """A query with what was found for it, a line or two each, and more of the entry under the cursor, as text.

    As many lines as the terminal is high: what does not fit above and below the cursor is counted. `message` is of
    the last key; `full` shows all of the entry, and nothing else.
    """
    rows, at, card = shown["rows"], shown["at"], shown["card"]
    head = [wrapped(shown["progress"]), *wrapped(card["query"], INDENT).splitlines()[:3], ""]
    foot = ["", *KEYS, *([wrapped(message)] if message else [])]
    room = height - 1 - sum(len(line.splitlines()) or 1 for line in (*head, *foot))
    entry = [_row(rows[at], at, "> "), *_folded_entry(card)]
    if full:
        return "\n".join([*head, *entry, *foot])
    size = 2 if room - 2 * len(rows) >= MIN_ENTRY_LINES else 1
    most = max(room - size * (len(rows) - 1), MIN_ENTRY_LINES)
    if len(entry) > most:
        entry[most - 1 :] = [f"{' ' * INDENT}... {len(entry) - most + 1} more lines: m"]
    above = list(chain.from_iterable(_entry_in_brief(rows[place], place, size) for place in range(at)))
    below = list(
        chain.from_iterable(_entry_in_brief(rows[place], place, size) for place in range(at + 1, len(rows)))
    )
    spare = max(room - len(entry), 2)
    up = min(len(above), max(spare // 2, spare - len(below)))
    if up < len(above):
        above = [f"  ... {len(above) - up + 1} above", *above[len(above) - up + 1 :]]
    if spare - up < len(below):
        below = [*below[: spare - up - 1], f"  ... {len(below) - (spare - up) + 1} below"]
    return "\n".join([*head, *above, *entry, *below, *foot])


def _entry_in_brief(row: Record, at: int, size: int) -> list[str]:
    line = _row(row, at, "  ")
    if size == 1:
        return [cut(f"{line}: {visible(row['text'])}" if row["text"] else line, width())]
    return [line, cut(f"{' ' * INDENT}{visible(row['text'])}", width())]


def _row(row: Record, at: int, lead: str) -> str:
    return cut(visible(f"{lead}{row['mark'] or '-'} {at + 1:2}  {row['title']}"), width())


def _folded_entry(card: Record) -> list[str]:
    texts = [*card["parts"], ("", card["facts"])]
    return [
        line
        for name, text in texts
        for i, part in enumerate(text.splitlines())
        for line in wrapped(f"{'' if name == 'text' or i else name:9}{part}", INDENT).splitlines()
    ]
