"""What the comparisons of all systems say: ("" where both agree, else "differs: ...", and the worst error).

A module that compares has groups: generators of (case, verdict) under the names in least.json. They are given what
`fixture(folder)` of the module, or of one before it, makes of the recordings in a folder; report.py runs them.
"""

import gzip
import json
import re
from pathlib import Path

import numpy as np

EXACT = 1e-9  # the same formulas, in double precision on both sides
SINGLE = 1e-6  # what went through single precision there (oracles/README.md)
TIE = 1e-12  # rows this near may change places, also at a cut
LEAST = json.loads(Path(__file__).with_name("least.json").read_text("utf-8"))
"""System -> its groups in order, each with the fewest cases that must be equal: what is not read would show."""


def recording(folder, name):
    return json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes()))


class Rule:
    """The embedding of a recording: a rule, from a text to so many numbers."""

    def __init__(self, model, size, of, recipe=None):
        self.model, self.identity, self.recipe = model, model, recipe
        self.size, self.of = size, of

    def embed(self, texts, kind="entry"):
        return np.array([self.of(text) for text in texts], dtype=np.float32).reshape(len(texts), self.size)

    def warm(self):
        return True


def counted(size, of):
    """A rule that counts the words of a text by a number of each."""

    def vector(text):
        numbers = [of(word) % size for word in re.findall("[a-z0-9]+", text.lower())]
        return np.bincount(numbers, minlength=size) if numbers else np.zeros(size)

    return vector


def letters(word):
    """oracles/README.md: vector_rule: the sum of the characters."""
    return sum(map(ord, word))


def differs(text, worst=0.0):
    return f"differs: {text}", worst


def same(expected, got):
    return ("", 0.0) if expected == got else differs(f"{str(expected)[:200]} expected, {str(got)[:200]} here")


def both(*verdicts):
    """The first difference, and the worst error."""
    return next((verdict for verdict, _ in verdicts if verdict), ""), max(error for _, error in verdicts)


def near(expected, got, tolerance=EXACT):
    """Verdict of two mappings, of the names that are expected: numbers within a tolerance, other values equal."""
    worst = 0.0
    for name, value in expected.items():
        if name not in got:
            return differs(f"{name} is missing", worst)
        number = isinstance(value, int | float)
        error = abs(value - got[name]) if number else 0.0
        if not (error <= tolerance if number else value == got[name]):
            return differs(f"{name} is {value!r}, here {got[name]!r}", error)
        worst = max(worst, error)
    return "", worst


def close(expected, got):
    """The same where no other name may be there, or of two numbers."""
    if not isinstance(expected, dict):
        return near({"the number": expected}, {"the number": got})
    return both(near(expected, got), same(sorted(map(str, expected)), sorted(map(str, got))))


def compare(expected, got, tolerance=EXACT, floor=0.0, show=None, beyond=(), tie=TIE, open_end=False):
    """Verdict of two lists of (id, score), best first.

    Errors are relative to the expected score, or to `floor` where that is larger. `show` cuts the expected list;
    `beyond` is a deeper one. An id may stand in another place only where its own expected score is tied, within
    `tie`; with an open end one that is not expected at all, too, where its place is tied with the last.
    """
    known, expected = dict(expected) | dict(beyond), expected[:show]
    if len(expected) != len(got):
        return differs(f"{len(expected)} rows expected, {len(got)} here")
    if len({id_ for id_, _ in got}) < len(got):
        return differs("an id appears twice")
    worst, last = 0.0, expected[-1][1] if open_end and expected else np.inf
    for place, ((id_, score), (here, value)) in enumerate(zip(expected, got, strict=True), 1):
        worst = max(worst, abs(value - score) / (max(abs(score), floor) or 1.0))
        if not worst <= tolerance:
            return differs(f"place {place} scores {score!r}, here {value!r}", worst)
        if here != id_ and abs(known.get(here, last) - score) > tie * max(abs(score), floor):
            return differs(f"place {place} is {id_}, here {here}", worst)
    return "", worst


def found(ranking, table):
    return [(table.entries[table.entry[r]], float(s)) for r, s in zip(ranking.row, ranking.score, strict=True)]
