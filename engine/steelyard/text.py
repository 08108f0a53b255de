"""Text analysis: words, stop words, stems, and the query builders that turn text into FTS5 expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import Stemmer

from steelyard.entry import Entry
from steelyard.errors import ConfigError, shown
from steelyard.escape import visible as visible  # where it was looked for before

STOP_WORDS = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
"""The 33 English stop words of Lucene's standard analyzer."""

CONTENT = ("title", "text", "why", "impact", "context")
"""The fields that the baselines search: what an entry says, not how it is filed."""

_WORD = re.compile(r"\w\w+")
_english = Stemmer.Stemmer("english", 0)


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    stem: str = _english.stemWord(word)
    return stem


def terms(text: str) -> list[str]:
    """Lower-cased words of two or more characters, without stop words, stemmed (Snowball English).

    >>> terms("The tokens are rotating, JWT-style")
    ['token', 'rotat', 'jwt', 'style']
    """
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]


def content(entry: Entry) -> str:
    """The text of an entry that the baselines search, fields joined by blanks."""
    return " ".join(value for name in CONTENT if (value := getattr(entry, name)))


def quote(term: str) -> str:
    """A term as an FTS5 string: operators and quotes inside are text.

    >>> quote('a"b')
    '"a""b"'
    """
    return '"' + term.replace('"', '""') + '"'


def prefix_or(text: str) -> str:
    """EchoVault: every blank-separated term as a quoted prefix, joined by OR; empty for empty text.

    >>> prefix_or("auth token")
    '"auth"* OR "token"*'
    """
    return " OR ".join(f"{quote(term)}*" for term in text.split())


def prefix_or_bare(text: str) -> str:
    """EchoVault's code: as `prefix_or`, but quotes inside a term stay as they are, with what FTS5 makes of them.

    >>> prefix_or_bare('"event loop"')
    '""event"* OR "loop""*'
    """
    return " OR ".join(f'"{term}"*' for term in text.split())


def words_or(text: str) -> str:
    """Baseline: the words that are not stop words (all of them if there are no others), joined by OR.

    >>> words_or("how do we rotate the token?")
    '"how" OR "do" OR "we" OR "rotate" OR "token"'
    """
    words = list(dict.fromkeys(_WORD.findall(text.lower())))
    return " OR ".join(quote(word) for word in words if word not in STOP_WORDS) or " OR ".join(map(quote, words))


SOLERI_STOP_WORDS = frozenset(
    """a about all an and are as at be because been both but by can could did do does each else every few
    for from had has have he her him his how i if in into is it its just may me might more most must
    my need no not of on only or other our out same shall she should so some such than that the
    their them then these they this those to too up us very was we were what when where which who
    whom why will with would you your""".split()  # noqa: SIM905 -- as above
)
"""The 95 words that Soleri's tokenizer drops."""

_LETTERS = re.compile(r"[^\W_]{2,}")
_NOT_TOKEN = re.compile(r"[^a-z0-9\s-]")
_NOT_ASCII_WORD = re.compile(r"[^a-z0-9]")


def soleri_tokens(text: str) -> list[str]:
    """Soleri: lower-cased tokens of three or more of a-z, 0-9 and hyphens, without stop words, not stemmed.

    >>> soleri_tokens("The full-text search of v1.2.3")
    ['full-text', 'search']
    """
    found = _NOT_TOKEN.sub(" ", text.lower()).split()
    return [token for token in found if len(token) > 2 and token not in SOLERI_STOP_WORDS]


def soleri_or(text: str) -> str:
    """Soleri's document: lower-cased terms of two or more characters that are not stop words, joined by OR.

    Letters of any script stay. A query of stop words alone is searched by all its terms.

    >>> soleri_or("how does JWT validation work")
    'jwt OR validation OR work'
    """
    found = _LETTERS.findall(text.lower())
    return " OR ".join([word for word in found if word not in SOLERI_STOP_WORDS] or found)


def soleri_ascii_or(text: str) -> str:
    """Soleri's code: blank-separated pieces of two or more characters, reduced to a-z and 0-9, joined by OR.

    When nothing is left the text itself is the expression, see `as_written`.

    >>> soleri_ascii_or("how does user-authentication work?")
    'how OR does OR userauthentication OR work'
    """
    pieces = (_NOT_ASCII_WORD.sub("", piece) for piece in text.lower().split() if utf16_length(piece) >= 2)
    return " OR ".join(filter(None, pieces)) or as_written(text)


def as_written(text: str) -> str:
    """The text as an FTS5 expression of its own: blanks mean AND; one that FTS5 cannot read finds nothing."""
    return text


def utf16_length(text: str) -> int:
    """The length as JavaScript counts it.

    >>> utf16_length("a\U0001f600")
    3
    """
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


MAX_WORDS = 1000
"""Far beyond any question; the time of FTS5's bm25 grows with the square of the query's words."""

_CONTROLS = dict.fromkeys((*range(32), 127), " ")

MatchBuilder = Callable[[str], str]


def clean_query(text: str) -> str:
    """The text as it is searched: control characters become blanks.

    Raises ConfigError when nothing is left, for more than `MAX_WORDS` words, or when it is not valid Unicode.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"query {shown(text)} is not valid Unicode; send it as UTF-8") from None
    if is_blank(text):
        raise ConfigError(f"query {shown(text)} is empty; type at least one word")
    if (words := count_words(text)) > MAX_WORDS:
        raise ConfigError(f"query {shown(text)} has {words} words, more than {MAX_WORDS}; shorten it")
    return text.translate(_CONTROLS)


def count_words(text: str) -> int:
    """How many words any of the query builders could make of the text.

    >>> count_words("jwt-style tokens ?")
    3
    """
    return max(len(text.split()), len(re.findall(r"\w+", text)))


def is_blank(text: str) -> bool:
    """Whether nothing but white space and control characters is there."""
    return not text.translate(_CONTROLS).strip()
