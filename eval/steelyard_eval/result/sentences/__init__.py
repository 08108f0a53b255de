"""Every sentence about a result, and no other place: one namespace of keys, read from the files beside this one.

A template stands under a key. ``{fact}`` is a fact, ``{fact:form}`` one in a form of `FORMS`, or for ``clause`` the
sentence whose key it is, with the same facts; a part in ``<< >>`` is left out where a fact in it is not known, and
one in ``<<?fact: >>`` where that fact is not true. Forms are how facts look: numbers, intervals, odds, names.
``{@key}`` is the text of that key in the same file: a fragment, or another sentence.
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from steelyard.base.errors import visible
from steelyard_eval.common.console import brief, cut
from steelyard_eval.common.formatting import clip, counted, in_range, number, tells
from steelyard_eval.result.structs import Estimate, Fact, Message

COARSE_ODDS = ((0.45, "1 in 2"), (0.3667, "2 in 5"), (0.2917, "1 in 3"))
"""Odds near even, down to halfway to the next."""
MAX_NAME_CHARS = 40
SHOWN_HASH_DIGITS = 12
MAX_LABELS = 4
NARROW_INTERVAL, MIN_END = 0.05, 0.005  # an interval of less needs three digits, and an end nearer to 0
MAX_BEST_NAME_CHARS = 24


def one_in(probability: float) -> str:
    """A probability of at most a half in words: 1 in so many, in one digit from 20 on.

    >>> one_in(0.02), one_in(0.2), one_in(0.38), one_in(0.0019), one_in(0.00001)
    ('1 in 50', '1 in 5', '2 in 5', '1 in 500', 'less than 1 in 1,000')
    """
    if probability < 0.001:
        return "less than 1 in 1,000"
    for least, words in COARSE_ODDS:
        if probability >= least:
            return words
    count = round(1 / probability)
    step = 10 ** (len(str(count)) - 1) if count >= 20 else 1
    return f"1 in {round(count / step) * step:,}"


def odds(worse: float) -> str:
    """How likely it is that a gain is a loss; of a loss, that it is a gain.

    >>> odds(1 / 6), odds(5 / 6)
    ('1 in 6 that it is worse', '1 in 6 that it is better')
    """
    return f"{one_in(min(worse, 1 - worse))} that it is {'worse' if worse <= 0.5 else 'better'}"


def yours(label: str) -> str:
    """What is used today, by its name, unless that is long.

    >>> yours("bm25")
    'bm25'
    """
    return label if len(label) <= MAX_NAME_CHARS else "your current search"


def some(labels: Sequence[str]) -> str:
    """The first few labels.

    >>> some(["a", "b"]), some(list("abcdef"))
    ('a; b', 'a; b; c; d and 2 others')
    """
    left = len(labels) - MAX_LABELS
    return "; ".join(labels[:MAX_LABELS]) + (f" and {left} other{'s' if left > 1 else ''}" if left > 0 else "")


def best_one(label: str, otherwise: str = "the best contender") -> str:
    """What is best, by its name, unless that is long."""
    return label if len(label) <= MAX_BEST_NAME_CHARS else otherwise


signed = partial(number, signed=True)


def ends(of: Estimate) -> str:
    """The two ends of the interval of a difference; empty where it is unknown, or too wide to tell anything."""
    if of.low is None or of.high is None or not tells(of.low, of.high):
        return ""
    return f"{signed(in_range(of.low))} to {signed(in_range(of.high))}"


def span(of: Estimate) -> str:
    """The two ends of an interval, in as many digits as tell them and their signs; empty where it tells nothing.

    >>> span(Estimate(0.12, 0.077, 0.164)), span(Estimate(0.06, -0.003, 0.12))
    ('+0.08 to +0.16', '-0.003 to +0.120')
    """
    if of.low is None or of.high is None or not tells(of.low, of.high):
        return ""
    digits = 2 if of.high - of.low >= NARROW_INTERVAL and min(abs(of.low), abs(of.high)) >= MIN_END else 3
    return " to ".join(number(end, digits, signed=True) for end in (of.low, of.high))


_IF = re.compile(r"\?(\w+):")
_PART, _FACT = re.compile(r"<<(.*?)>>", re.DOTALL), re.compile(r"\{(\w+)(?::(\w+))?\}")
_INCLUDED = re.compile(r"\{@(\w+)\}")
FILES = ("shared", "recommend", "gate", "learn", "report", "headings")


def _merged(tables: Iterable[Mapping[str, str]]) -> dict[str, str]:
    made: dict[str, str] = {}
    for table in tables:
        if twice := made.keys() & table.keys():
            raise ValueError(f"a sentence stands twice: {sorted(twice)}")
        made |= table
    return made


def _read(name: str) -> dict[str, Any]:
    """The tables of a file, with the texts that others include in their place."""
    tables = tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text("utf-8"))
    texts = _merged(tables.get(kind, {}) for kind in ("fragments", "sentences"))

    def expanded(text: str) -> str:
        return _INCLUDED.sub(lambda included: expanded(texts[included[1]]), text)

    for table in tables.values():
        if isinstance(table, dict):
            table |= {key: expanded(text) for key, text in table.items()}
    return tables


_TABLES = {name: _read(name) for name in FILES}
PROMISES: dict[str, str] = _TABLES["shared"]["promises"]


def _counted(words: str, count: int) -> str:
    """A number with what it counts: ``one | many``, or one to which an s is added."""
    return counted(count, *words.split(" | "))


FORMS: Mapping[str, Callable[[Any], str]] = {
    "as_is": str,
    "number": number,
    "signed": signed,
    "mean": lambda of: signed(of.mean),
    "range": ends,
    "span": span,
    "odds": odds,
    "percent": "{:.0%}".format,
    "count": "{:,}".format,
    "and": ", ".join,
    "either": " or ".join,
    "semicolons": "; ".join,
    "some": some,
    "command": shlex.join,
    "hundredths": partial(number, digits=2),
    "integer": partial(number, digits=0),
    "plus": "{:+.3f}".format,
    "significant": "{:.4g}".format,
    "permille": "{:.1%}".format,
    "tenths": partial(number, digits=1),
    "digits2": "{:.2g}".format,
    "plain": "{:g}".format,
    "digest": lambda text: text[:SHOWN_HASH_DIGITS],
    "joined": " and ".join,
    "promises": lambda kinds: " and ".join(PROMISES[kind] for kind in kinds),
    "short": lambda label: clip(visible(label), MAX_NAME_CHARS),
    "strategy": brief,
    "yours": yours,
    "best_one": best_one,
    "other_one": partial(best_one, otherwise="the other contender"),  # alone beside the baseline
    "brief": lambda label: cut(label, MAX_BEST_NAME_CHARS),
    **{form: partial(_counted, words) for form, words in _TABLES["shared"]["counts"].items()},
}


SENTENCES, HEADINGS, CELLS = (
    _merged(tables.get(kind, {}) for tables in _TABLES.values()) for kind in ("sentences", "headings", "cells")
)
"""How the cells of a column look, where numbers have not three decimals."""
DETAILS = frozenset(key for tables in _TABLES.values() for key in tables.get("details", ()))
"""Tables that a report has, and that are too much for a terminal."""
VERDICTS: dict[str, str] = _TABLES["headings"]["verdicts"]
METHOD: dict[str, str] = _TABLES["report"]["method"]
"""How it was measured, by the terms of a report; a term without a fact that it names is left out."""
GLOSSARY: dict[str, str] = _TABLES["report"]["glossary"]
"""What columns mean, by their keys, in words for people who dislike statistics."""
ANALYZERS: dict[str, str] = _TABLES["shared"]["analyzers"]
"""How other engines split words as the options of bm25 do; its other options are numbers of its formula."""
CHOSEN, TODAY, BASELINE, TUNED = "chosen", "today", "baseline", "in-sample"
"""How tables mark rows: of what was chosen, of what is used today or others are tested against, of what was tuned."""


def say(message: Message) -> str:
    """The sentence of a key; KeyError for a key, or a fact, that is not there."""
    return filled(SENTENCES[message.key], message.facts).strip()


def heading(key: str, facts: Mapping[str, Fact] | None = None) -> str:
    """The heading of a table or a column; what is not listed, such as a metric, has its key as its heading."""
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

    return "".join(part(piece, needed=i % 2 == 0) for i, piece in enumerate(_PART.split(template)))
