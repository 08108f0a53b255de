"""Every sentence about a result, and no other place: one namespace of keys.

A template stands under a key. ``{fact}`` is a fact, ``{fact:form}`` one in a form of `forms.FORMS`, or for
``clause`` the sentence whose key it is, with the same facts; a part in
``<< >>`` is left out where a fact in it is not known, and one in ``<<?fact: >>`` where that fact is not true.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from steelyard_eval.result.sentences import gate, headings, learn, recommend, report, shared
from steelyard_eval.result.sentences.forms import FORMS
from steelyard_eval.result.structs import Fact, Said

_IF = re.compile(r"\?(\w+):")
_PART, _FACT = re.compile(r"<<(.*?)>>", re.DOTALL), re.compile(r"\{(\w+)(?::(\w+))?\}")


def _joined(*tables: Mapping[str, str]) -> dict[str, str]:
    """All templates; ValueError where a key stands twice."""
    made: dict[str, str] = {}
    for table in tables:
        if twice := made.keys() & table.keys():
            raise ValueError(f"a sentence stands twice: {sorted(twice)}")
        made |= table
    return made


SENTENCES = _joined(shared.SENTENCES, recommend.SENTENCES, gate.SENTENCES, learn.SENTENCES)
HEADINGS = _joined(
    report.REPORT,
    report.FIGURES,
    headings.LATEX,
    headings.TITLES,
    headings.COLUMNS,
    headings.LEGENDS,
    headings.ABOUT,
    gate.HEADINGS,
    learn.HEADINGS,
)


def say(said: Said) -> str:
    """The sentence of a key; KeyError for a key, or a fact, that is not there."""
    return filled(SENTENCES[said.key], said.facts)


def heading(key: str, facts: Mapping[str, Fact] | None = None) -> str:
    """The heading of a table or a column; a name that is none of ours, such as a metric, is its own."""
    return filled(HEADINGS[key], facts or {}) if key in HEADINGS else key


def dialect(ties: Sequence[str]) -> str:
    """How metrics are computed, where ties are broken so; see `Provenance.ties`."""
    return heading("dialect", {"ties": [heading(one) for one in ties]})


def filled(template: str, facts: Mapping[str, Fact]) -> str:
    """A template with its facts; values are put in as they are, whatever braces they hold."""

    def part(text: str, needed: bool) -> str:
        if not needed and (only := _IF.match(text)):
            if not facts.get(only[1]):
                return ""
            text = text[only.end() :]
        names = _FACT.findall(text)
        missing = [name for name, _ in names if facts.get(name) is None]
        if missing and needed:
            raise KeyError(*missing)
        if missing:
            return ""
        values = [
            filled(SENTENCES[str(facts[name])], facts) if form == "clause" else FORMS[form or "as_is"](facts[name])
            for name, form in names
        ]
        if not needed and not all(values):
            return ""
        filling = iter(values)
        return _FACT.sub(lambda _: next(filling), text)

    pieces = _PART.split(template)
    return "".join(part(piece, needed=i % 2 == 0) for i, piece in enumerate(pieces))
