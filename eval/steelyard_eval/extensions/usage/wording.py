"""Words of answers: what cites an entry, what turns it down, what asks the same again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePosixPath

from steelyard.base.files import STRICT_JSON
from steelyard_eval.extensions.endpoints.answer_form import SHORTEST

RUN = 8
"""Words that are no chance when an answer repeats them; of scripts without blanks twice as many characters."""
TITLE_WORDS, TITLE_CHARACTERS = 3, 12
"""A title of so many words and characters is recognised in plain text, others only in quotes or emphasis."""
LEAST_ID, LONGEST_ID = 6, 100  # Characters of an id in prose, and of the beginning of one
LEAST_TITLE = 5  # Characters of a title in quotes
LONGEST_SENTENCE = 2000  # Characters that are looked at as one sentence
_UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts without blanks, each of whose characters counts as a word."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_WITHOUT_BLANKS = re.compile(rf"[{_UNSPACED}]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[\u3002\uff01\uff1f])")
FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_TOKEN = re.compile(r"[^\s\"'`,;|<>()\[\]{}*]+")
_QUOTES = [
    *(('"', '"'), ("\u00ab", "\u00bb"), ("\u201c", "\u201d"), ("\u201e", "\u201c"), ("\u300c", "\u300d")),
    ("\u2018", "\u2019"),
]
_EMPHASIS = [*_QUOTES, ("'", "'"), ("`", "`"), ("*", "*"), ("_", "_"), ("[", "]")]
"""Marks around a title; a single word in the last ones is a name in a program as often."""
_WORDS = STRICT_JSON.decode(resources.files(__package__).joinpath("wording.json").read_text("utf-8"))
"""What says that something is of no use, how texts begin that programs write in a person's place (echoes,
notifications, hooks, summaries), and the words that questions share whatever they ask."""
_NOT, _ABOUT, _THINGS, _NO_USE = (f"(?:{'|'.join(_WORDS[n])})" for n in ("not", "about", "things", "useless"))
USELESS = re.compile(
    rf"\b{_NOT}\b(?:\W+\w+){{0,4}}?\W+{_ABOUT}|\b{_NO_USE}\b"
    rf"|\banother {_THINGS}\b|\bdifferent (?:{_THINGS}|one|from)\b",
    re.IGNORECASE,
)
_ADDED = re.compile(
    r"^[ \t]*<(system-reminder|ide_\w+|user-prompt-submit-hook|local-command-caveat)\b[^<>]{0,500}>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""What programs put before or behind the words of a person."""
_PROGRAM = re.compile("|".join(_WORDS["program"]), re.IGNORECASE)
GOES_ON = re.compile(
    r"\W*(?:it|its|that|this|they|these|those|but|however|though|unfortunately|which|both|neither|none|sadly)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Sentence:
    """A sentence, its plain words with a blank at either end, the words that may be an id, and its runs."""

    text: str
    plain: str
    tokens: frozenset[str]
    runs: tuple[str, ...]


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text that are not blank, in pieces of `LONGEST_SENTENCE` characters."""
    size = LONGEST_SENTENCE
    parts = (sentence[i : i + size] for sentence in _SENTENCE.split(text) for i in range(0, len(sentence), size))
    return [
        Sentence(
            part,
            f" {plain_words(part)} ",
            frozenset(token.strip(".:!?#") for token in _TOKEN.findall(part)),
            tuple(runs_of(part)),
        )
        for part in parts
        if not part.isspace()
    ]


def plain_words(text: str) -> str:
    """The words of a text, in lower case, with single blanks between."""
    return " ".join(_WORD.findall(text.casefold()))


def persons_words(text: str) -> str:
    r"""What a person wrote of a text in their place; empty where a program wrote all of it."""
    words = _ADDED.sub("", text).strip()
    return "" if _PROGRAM.match(words) else words


def content_words(text: str) -> set[str]:
    """The words of a question that say what it is about."""
    return {word for word in _WORD.findall(text.casefold()) if word not in _WORDS["common"] and len(word) > 1}


def marks_of(id_: str) -> list[str]:
    """What stands for an id in prose: itself, and eight characters and more of its beginning with a digit."""
    if len(id_) < LEAST_ID or id_.isalpha() or id_.isdigit():
        return []  # a word or a number stands in any text
    begins = (id_[:size] for size in range(SHORTEST, min(len(id_), LONGEST_ID)))
    return [id_, *(begin for begin in begins if any(map(str.isdigit, begin)))]


def is_named(title: str, name: str, sentence: Sentence) -> bool:
    """Whether a sentence that has the plain words of a title, `name`, means the title by them."""
    if len(name.split()) >= TITLE_WORDS and len(name) >= TITLE_CHARACTERS:
        return True
    held, wanted = sentence.text.casefold(), title.casefold()
    marks = _EMPHASIS if " " in name else _QUOTES
    return len(name) >= LEAST_TITLE and any(f"{begin}{wanted}{end}" in held for begin, end in marks)


def runs_of(text: str) -> Iterator[str]:
    """Every run of so many words of a text."""
    words = _WORD.findall(text.casefold())
    size = 2 * RUN if _WITHOUT_BLANKS.search(text) else RUN
    for i in range(len(words) - size + 1):
        yield f" {' '.join(words[i : i + size])} "


def file_name(path: str) -> str:
    """The last part of a path."""
    return PurePosixPath(path.replace("\\", "/")).name


def is_same_file(path: str, related: str) -> bool:
    """Whether a path ends with the other one, folder by folder; a bare name is not enough."""
    long, other = (PurePosixPath(name.replace("\\", "/")).parts for name in (path, related))
    short = tuple(part for part in other if part not in (".", "/"))
    return len(short) > 1 and long[-len(short) :] == short
