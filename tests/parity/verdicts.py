"""What the comparisons of all systems say: ("" where both agree, else "differs: ...", and the worst error)."""

import json
import re
from pathlib import Path

import numpy as np

EXACT = 1e-9  # the same formulas, in double precision on both sides
SINGLE = 1e-6  # what went through single precision there (oracles/README.md)
TIE = 1e-12  # rows this near may change places, also at a cut
LEAST = json.loads(Path(__file__).with_name("least.json").read_text("utf-8"))
"""System -> its groups in order, each with the fewest cases that must be equal: what is not read would show."""


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


def run_groups(system, functions, *given):
    """Every comparison of a system's groups that are among these generators: (group, case, verdict, error)."""
    for group in LEAST[system]:
        if compared := functions.get(group.replace(" ", "_")):
            for case, (verdict, error) in compared(*given):
                yield group, case, verdict, error


def same(expected, got):
    """Verdict of two plain values."""
    return ("" if expected == got else f"differs: {str(expected)[:200]} expected, {str(got)[:200]} here"), 0.0


def both(*verdicts):
    """The first difference, and the worst error."""
    return next((verdict for verdict, _ in verdicts if verdict), ""), max(error for _, error in verdicts)
