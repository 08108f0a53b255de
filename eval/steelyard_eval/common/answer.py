"""What a command answers, in the one order that every face shows: verdict and gain, what to do, the formula below.

recommend, tune, learn and gate write it into their documents; terminal, Markdown and HTML read it from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from steelyard.base.escape import visible
from steelyard_eval.common.console import brief, painted, width, wrapped
from steelyard_eval.common.documents.parts import AnsweredDocument, StepRecord
from steelyard_eval.common.documents.results import DatasetRecord, ResultsDocument
from steelyard_eval.common.markup import legible, markdown, markdown_code

LONGEST = 200
"""Characters of a sentence, which has no formula."""
CHOSEN = "chosen"
"""How tables mark the row of what was chosen."""
INDENT = 4
"""Columns before the lines of a step after its first."""
NAMED = 40
"""Characters of a name in a sentence; a longer one, such as a formula, is not repeated there."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: in words, and the command or the file; either may be empty."""

    what: str
    command: str = ""


@dataclass(frozen=True)
class Conclusion:
    """The answer of a command.

    Attributes
    ----------
    sentence : verdict, gain with its interval and odds, in at most `LONGEST` characters.
    steps : what to do now.
    formula : the strategy that it is about; empty where there is none.
    beside : what else has to be known of it, such as the cost of a restriction; mostly empty.
    """

    sentence: str
    steps: tuple[Step, ...] = ()
    formula: str = ""
    beside: str = ""

    def to_json(self) -> AnsweredDocument:
        """The part of a document that is the answer."""
        steps = [StepRecord(what=step.what, command=step.command) for step in self.steps]
        said = AnsweredDocument(sentence=self.sentence, steps=steps, formula=self.formula or None)
        return {**said, "beside": self.beside} if self.beside else said


def data_set(facts: DatasetRecord) -> str:
    """How text calls the data set of a document: its folder, as that was typed, else its name."""
    return Path(facts.get("path") or "").name or facts["name"]


def name_of(label: str) -> str:
    """A contender in a sentence: by its name, unless that is long."""
    return f"your {label}" if len(label) <= NAMED else "what you use today"


def chosen(record: ResultsDocument) -> str:
    """The label of the configuration that a recommendation chose; empty where there is none."""
    strategy = (record.get("chosen") or {}).get("strategy")
    same = (row["label"] for row in record["configurations"] if strategy and row["strategy"] == strategy)
    return next(same, "")


WHY_CHOSEN = {
    "try": "where labels are few, what public collections showed decides with them (docs/start.md)",
    "ship": "rows are in the order of these queries, and it is the likeliest to gain on others (docs/tuning.md)",
}
"""By verdict, why another row may have a higher mean."""


def place_of_choice(record: ResultsDocument) -> str:
    """Why what was chosen is not the first row of a recommendation; empty where it is."""
    labels, verdict = [row["label"] for row in record.get("leaderboard", ())], record.get("verdict")
    index = labels.index(chosen(record)) if verdict in WHY_CHOSEN and chosen(record) in labels else 0
    return f"What was chosen is row {index + 1} here: {WHY_CHOSEN[str(verdict)]}." if index else ""


def in_terminal(record: AnsweredDocument) -> str:
    """The answer of a document as text for a terminal."""
    steps = map(step_in_terminal, record.get("steps", ()))
    formula = wrapped(visible(brief(of)), 4) if (of := record.get("formula")) else ""
    beside = wrapped(visible(record.get("beside") or ""))
    return "\n\n".join(filter(None, (painted(wrapped(record["sentence"])), "\n".join(steps), formula, beside)))


def step_in_terminal(step: StepRecord) -> str:
    """One thing to do as text for a terminal; a command is on one line, because a folded one cannot be pasted."""
    said = ": ".join(_marked(step, str, str))
    if len(visible(said)) <= width() or not step["command"]:
        return wrapped(said, INDENT)
    what = f"{wrapped(step['what'], INDENT)}:\n" if step["what"] else ""
    return f"{what}{' ' * INDENT}{visible(step['command'])}"


def below_in_markdown(record: AnsweredDocument) -> str:
    """What stands below the sentence, as Markdown."""
    steps = [f"- {': '.join(_marked(step, markdown, markdown_code))}" for step in record.get("steps", ())]
    formula = markdown_code(brief(of)) if (of := record.get("formula")) else ""
    beside = markdown(record.get("beside") or "")
    return "\n\n".join(filter(None, ("\n".join(steps), formula, beside)))


def in_html(record: AnsweredDocument) -> Markup:
    """The answer of a document as HTML, for a notebook."""
    return Markup("<p><b>{}</b></p>{}").format(legible(record["sentence"]), below_in_html(record))


def below_in_html(record: AnsweredDocument) -> Markup:
    """What stands below the sentence, as HTML."""
    code = Markup("<code>{}</code>").format
    steps = [
        Markup("<li>{}</li>").format(Markup(": ").join(_marked(step, escape, lambda text: code(legible(text)))))
        for step in record.get("steps", ())
    ]
    listed = Markup("<ul class='steps'>{}</ul>").format(Markup("").join(steps)) if steps else Markup("")
    formula = Markup("<p>{}</p>").format(code(legible(brief(of)))) if (of := record.get("formula")) else ""
    beside = Markup("<p>{}</p>").format(legible(record["beside"])) if record.get("beside") else ""
    return listed + escape(formula) + escape(beside)


def _marked(step: StepRecord, words: Callable[[str], str], code: Callable[[str], str]) -> Iterator[str]:
    """The parts of a step that are not empty."""
    if step["what"]:
        yield words(step["what"])
    if step["command"]:
        yield code(step["command"])
