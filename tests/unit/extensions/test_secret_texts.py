# ruff: noqa: SIM905 -- words of a list
"""Secrets are found in questions, and questions about secrets are not.

Two hundred are planted, by the formats that their issuers document, which were listed before the patterns were
written. Each gives a whole query, as a developer or an agent would type it; `planted` draws them with a seed, so
no two runs differ. In tests/data/planted-secrets.txt stands one a line: `«HEX+- 8»` is eight of these letters,
`«b64 <word>»` the base64 of what is in it.
"""

import base64
import random
import re
import string
from pathlib import Path

import pytest
from shared import beside, tabled

from steelyard.extensions.secrets import LONGEST_READ, holds_secret

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM, HEX = LOWER + UPPER + DIGITS, "0123456789abcdef"
LETTERS = {"LOWER": LOWER, "UPPER": UPPER, "DIGITS": DIGITS, "ALNUM": ALNUM, "HEX": HEX}
LETTERS |= {"URLSAFE": ALNUM + "-_", "BASE64": ALNUM + "+/"}
WORDS = beside(__file__)["WORDS"]
NAMES = "winter hunter dragon falcon summer tiger orange maple rocket velvet copper shadow".split()


def text(r, letters, count):
    return "".join(r.choice(letters) for _ in range(count))


def word(r):
    """A password as people choose it."""
    name = r.choice(NAMES)
    forms = [f"{name}{r.randint(1, 99)}", f"{name.title()}{r.randint(1000, 2030)}!", f"{name[:3]}3t-{name}"]
    return r.choice(forms)


def strong(r):
    """A password as managers make it; no quotes, spaces or separators of addresses."""
    return text(r, LOWER, 3) + text(r, ALNUM + "!#%^*_-", 10) + text(r, DIGITS, 2)


def card(r, start, count):
    """A number of a card that passes Luhn's check."""
    digits = [*map(int, start), *(r.randrange(10) for _ in range(count - len(start) - 1))]
    doubled = [d if i % 2 else sum(divmod(2 * d, 10)) for i, d in enumerate(reversed(digits))]
    return "".join(map(str, digits)) + str(-sum(doubled) % 10)


def uuid(r):
    return "-".join(text(r, HEX, n) for n in (8, 4, 4, 4, 12))


def filled(r, form):
    """A format with what it names drawn."""

    def drawn(found):
        kind, _, more = found[1].partition(" ")
        if kind == "b64":
            return base64.b64encode(filled(r, more.replace("<", "«").replace(">", "»")).encode()).decode()
        if kind in ("card", "spaced", "dashed"):
            start, count = more.split()
            sign = {"card": "", "spaced": " ", "dashed": "-"}[kind]
            return sign.join(re.findall(".{1,4}", card(r, start, int(count))))
        if kind == "words":
            return " ".join(r.sample(WORDS, int(more)))
        if kind in ("word", "strong", "uuid"):
            return {"word": word, "strong": strong, "uuid": uuid}[kind](r)
        return text(r, "".join(LETTERS.get(part, part) for part in kind.split("+")), int(more))

    return re.sub("«(.+?)»", drawn, form).replace("\\n", "\n")


DATA = Path(__file__).parents[2] / "data"
FORMS = (DATA / "planted-secrets.txt").read_text(encoding="utf-8").splitlines()


def planted(count=200, seed=2121):
    """Queries with a secret each, drawn with a seed: every form once, then some again."""
    r = random.Random(seed)  # noqa: S311 -- they guard nothing
    forms = [*FORMS, *r.sample(FORMS, max(0, count - len(FORMS)))]
    return [filled(r, form) for form in forms[:count]]


@pytest.mark.parametrize("seed", [1, 2, 3, 2121])
def test_at_most_two_of_two_hundred_planted_secrets_are_kept(seed):
    texts = planted(200, seed)
    assert len(set(texts)) == 200
    assert len([text for text in texts if not holds_secret(text)]) <= 2


def test_at_most_a_few_harmless_questions_are_touched():
    harmless = (DATA / "harmless-questions.txt").read_text(encoding="utf-8").splitlines()
    assert len(harmless) >= 150
    assert len([text for text in harmless if holds_secret(text)]) <= 3


@tabled
def test_neither_language_nor_escapes_nor_length_hide_a_secret(text):
    assert holds_secret(text)
    assert holds_secret("x" * (2 * LONGEST_READ + 1))


@tabled
def test_a_card_has_an_issuer_a_length_and_a_check_digit(number, is_card):
    assert holds_secret(f"order of {number}") is is_card
