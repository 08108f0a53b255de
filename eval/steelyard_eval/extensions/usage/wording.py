"""Words of answers: what cites an entry, what turns it down, what asks the same again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from steelyard_eval.extensions.endpoints.mentioned import SHORTEST

RUN, RUN_CHARACTERS = 8, 16
"""Words, or characters of scripts without blanks, that are no chance when an answer repeats them."""
TITLE_WORDS, TITLE_CHARACTERS = 3, 12
"""A title of so many words and characters is recognised in plain text, others only in quotes or emphasis."""
LEAST_ID, LEAST_TITLE = 6, 5
"""Characters of an id in prose, and of a title in quotes."""
LONGEST_SENTENCE = 2000
"""Characters that are looked at as one sentence."""
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[\u3002\uff01\uff1f])")
FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
TOKEN = re.compile(r"[^\s\"'`,;|<>()\[\]{}*]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_QUOTES = [
    *(('"', '"'), ("\u00ab", "\u00bb"), ("\u201c", "\u201d"), ("\u201e", "\u201c"), ("\u300c", "\u300d")),
    ("\u2018", "\u2019"),
]
_EMPHASIS = [*_QUOTES, ("'", "'"), ("`", "`"), ("*", "*"), ("_", "_"), ("[", "]")]
"""Marks around a title; a single word in the last ones is a name in a program as often."""
_NOT = r"(?:not|never|hardly|barely|\w+n['\u2019]t|cannot|neither|nor)"
_ABOUT = (
    r"(?:relevan|relat|help|appl|useful|match|answer|fit|cover|address|mention|concern|about|explain|solv|touch"
)
_ABOUT += r"|what we|what i|what you|the same|usable|need|use it|trust|rely|bear)"
USELESS = re.compile(
    rf"\b{_NOT}\b(?:\W+\w+){{0,4}}?\W+{_ABOUT}"
    r"|\b(?:unrelated|irrelevant|outdated|out of date|obsolete|stale|superseded|misleading|unhelpful|useless)\b"
    r"|\b(?:off[- ]topic|no longer|nothing (?:about|to do|useful|relevant|here|there|on)|of no (?:use|help))\b"
    r"|\bno (?:use|help|bearing|relation|connection)\b|\b(?:red herring|beside the point)\b"
    r"|\bfalse (?:lead|positive)\b"
    r"|\b(?:ignor(?:e|ed|ing)|skip(?:ped|ping)?|discard\w*|set aside|rul(?:e|ed|ing) out|dismiss\w*)\b"
    r"|\b(?:some|any)(?:thing|where) else\b|\b(?:an?|some) (?:other|different|older|unrelated)\b"
    r"|\banother (?:issue|problem|topic|matter|project|service|team|thing|bug|story|system)\b"
    r"|\bdifferent (?:issue|problem|topic|matter|project|service|team|thing|bug|story|system|one|from)\b"
    r"|\b(?:nichts|unpassend|hilft nicht|veraltet|irrelevant|betrifft nicht)\b",
    re.IGNORECASE,
)
_ADDED = re.compile(
    r"^[ \t]*<(system-reminder|ide_\w+|user-prompt-submit-hook|local-command-caveat)\b[^<>]{0,500}>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""What programs put before or behind the words of a person."""
_PROGRAM = re.compile(
    r"<(?:command|local-command|task|bash|teammate|agent|cross-session|channel|hook|session|tool)[-_]\w"
    r"|<(?:environment|permissions|turn|apps|user|persisted|conversation)[-_ ]\w|<(?:INSTRUCTIONS|skill)>"
    r"|\[(?:Request interrupted|SYSTEM NOTIFICATION|ASYNC TASK)"
    r"|Caveat: The messages below|# AGENTS\.md instructions|API Error:"
    r"|This (?:session|conversation) is being continued from a previous|Another language model started to"
    r"|(?:[\w:]+ )?(?:\w+ )?hook (?:feedback|success|error|blocking|stopped|additional|callback)",
    re.IGNORECASE,
)
"""How texts begin that programs write in a person's place: echoes, notifications, hooks, summaries."""
GOES_ON = re.compile(
    r"\W*(?:it|its|that|this|they|these|those|but|however|though|unfortunately|which|both|neither|none|sadly)\b",
    re.IGNORECASE,
)
_COMMON = frozenset(
    """a an and are as at be by can could did do does for from had has have how i in into is it its me my no not of
    on or our should that the their there they this to was we were what when where which who why will with you
    your""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
"""Words that questions share whatever they ask."""


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text that are not blank, in pieces of `LONGEST_SENTENCE` characters."""
    size = LONGEST_SENTENCE
    parts = (sentence[i : i + size] for sentence in _SENTENCE.split(text) for i in range(0, len(sentence), size))
    return [Sentence.of(part) for part in parts if not part.isspace()]


def plain_words(text: str) -> str:
    """The words of a text, in lower case, with single blanks between."""
    return " ".join(_WORD.findall(text.casefold()))


def persons_words(text: str) -> str:
    r"""What a person wrote of a text in their place; empty where a program wrote all of it.

    >>> persons_words("<system-reminder>Be brief.</system-reminder>\nWho rotates keys?")
    'Who rotates keys?'
    >>> persons_words("<task-notification><status>completed</status></task-notification>")
    ''
    """
    words = _ADDED.sub("", text).strip()
    return "" if _PROGRAM.match(words) else words


def content_words(text: str) -> set[str]:
    """The words of a question that say what it is about."""
    return {word for word in _WORD.findall(text.casefold()) if word not in _COMMON and len(word) > 1}


@dataclass(frozen=True)
class Sentence:
    """A sentence with its plain words, its `tokens`, those of them that may begin an id, and its runs of words."""

    text: str
    plain: str
    tokens: frozenset[str]
    heads: frozenset[str]
    runs: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Sentence:
        """A sentence."""
        tokens = frozenset(token.strip(".:!?#") for token in TOKEN.findall(text))
        heads = (token for token in tokens if len(token) >= SHORTEST and any(map(str.isdigit, token)))
        return cls(text, f" {plain_words(text)} ", tokens, frozenset(heads), tuple(runs_of(text)))

    @classmethod
    def around(cls, text: str, parts: Sequence[Sentence]) -> Sentence:
        """A text as if it were one sentence: what it does not name, none of its sentences names."""
        tokens = frozenset[str]().union(*(part.tokens for part in parts))
        heads = frozenset[str]().union(*(part.heads for part in parts))
        return cls(text, f" {plain_words(text)} ", tokens, heads, ())


def has_id(sentence: Sentence, id_: str) -> bool:
    """Whether an id, or eight characters and more of its beginning with a digit, stands among the words."""
    if len(id_) < LEAST_ID or id_.isalpha() or id_.isdigit():
        return False  # a word or a number stands in any text
    if id_ in sentence.tokens:
        return True
    return bool(sentence.heads) and any(id_[:size] in sentence.heads for size in range(SHORTEST, len(id_)))


def is_untold(title: str, name: str, asked: str) -> bool:
    """Whether a title, whose plain words are `name`, is not in the plain words of what was asked."""
    return bool(name) and (name if _UNSPACED.search(title) else f" {name} ") not in asked


def has_title(sentence: Sentence, title: str, name: str) -> bool:
    """Whether a sentence names a title, whose plain words are `name`."""
    if _UNSPACED.search(title):
        return len(name) >= TITLE_WORDS + 2 and name in sentence.plain
    if f" {name} " not in sentence.plain:
        return False
    if len(name.split()) >= TITLE_WORDS and len(name) >= TITLE_CHARACTERS:
        return True
    held, wanted = sentence.text.casefold(), title.casefold()
    marks = _EMPHASIS if " " in name else _QUOTES
    return len(name) >= LEAST_TITLE and any(f"{begin}{wanted}{end}" in held for begin, end in marks)


def runs_of(text: str) -> Iterator[str]:
    """Every run of so many words of a text."""
    words = _WORD.findall(text.casefold())
    for i in range(len(words) - RUN + 1):
        yield f" {' '.join(words[i : i + RUN])} "
    for word in words:
        if _UNSPACED.search(word) and len(word) >= RUN_CHARACTERS:
            yield from (word[i : i + RUN_CHARACTERS] for i in range(len(word) - RUN_CHARACTERS + 1))


def is_inside(name: str, others: Iterable[str]) -> bool:
    """Whether a title is part of a longer one that stands there."""
    return bool(name) and any(name != other and f" {name.strip()} " in f" {other.strip()} " for other in others)


def file_name(path: str) -> str:
    """The last part of a path."""
    return PurePosixPath(path.replace("\\", "/")).name


@lru_cache(maxsize=10_000)  # a session names the same files over and over
def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(path.replace("\\", "/")).parts


def is_same_file(path: str, related: str) -> bool:
    """Whether a path ends with the other one, folder by folder; a bare name is not enough."""
    long = _parts(path)
    short = tuple(part for part in _parts(related) if part not in (".", "/"))
    return len(short) > 1 and long[-len(short) :] == short
