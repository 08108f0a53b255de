"""The text of an entry: what is searched, and templates of what is embedded."""

import string
from functools import lru_cache

from steelyard.base.errors import ConfigError, nearest, quote
from steelyard.base.fields import TEXT_FIELDS
from steelyard.memory.entry import Entry
from steelyard.memory.words import STOP_WORDS, split, stemmer

CONTENT = ("title", "text", "why", "impact", "context")
"""The fields that the baselines search: the content of an entry, without its metadata."""


def content(entry: Entry) -> str:
    """Return the text of an entry that the baselines search, its fields joined by blanks."""
    return " ".join(value for name in CONTENT if (value := getattr(entry, name)))


def terms(text: str) -> list[str]:
    """Split a text into words, stemmed, without stop words, whatever its script by the stems of English.

    >>> terms("The tokens are rotating, JWT-style")
    ['token', 'rotat', 'jwt', 'style']
    """
    stem = stemmer("english")
    return [stem(word) for word in split(text) if word not in STOP_WORDS]


def fts_quote(term: str) -> str:
    """Quote a term as an FTS5 string, in which operators and quotes are plain text.

    >>> fts_quote('a"b')
    '"a""b"'
    """
    return '"' + term.replace('"', '""') + '"'


TEMPLATE_FIELDS = TEXT_FIELDS | {"tags", "tag"}


def template_fields(template: str) -> tuple[str, ...]:
    """Return the fields that a template names, in the order of their first use.

    Raises ConfigError listing everything in braces that is not a plain field name.

    >>> template_fields("{title} said: {text}")
    ('title', 'text')
    >>> template_fields("{titel}")
    Traceback (most recent call last):
    steelyard.base.errors.ConfigError: unknown template field 'titel'; did you mean 'title'?
    """
    return tuple(dict.fromkeys(name for line in _parse(template) for _, name in line if name))


def render(template: str, entry: Entry) -> str:
    r"""Fill the template from the entry; absent fields are empty, tags are joined by blanks.

    A line whose fields are all empty is left out, and a line with ``{tag}`` is repeated for every tag. Templates
    come with data sets, so they are parsed and never passed to `str.format`: they may name fields only, without
    attributes, indexes, conversions or formats; ConfigError as above. Doubled braces are literal braces.

    >>> render("{title} said: {text} {{{tags}}}", Entry("1", title="Ann", text="Hi", tags=("a", "b")))
    'Ann said: Hi {a b}'
    >>> render("{title}\ntag:{tag}", Entry("1", title="Ann", tags=("a", "b")))
    'Ann\ntag:a\ntag:b'
    """
    lines, every = [], " ".join(entry.tags)
    for pieces in _parse(template):
        names = {name for _, name in pieces if name}
        for tag in entry.tags if "tag" in names else ("",):
            tags = {"": "", "tag": tag, "tags": every}
            values = [tags[name] if name in tags else str(getattr(entry, name)) for _, name in pieces]
            if any(values) or not names:
                texts = (literal + value for (literal, _), value in zip(pieces, values, strict=True))
                lines.append("".join(texts))
    return "\n".join(lines)


@lru_cache(maxsize=64)
def _parse(template: str) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Each line as pairs of literal text and the field that follows it, or the empty string."""
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(f"template {quote(template)} is broken: {error}") from None
    problems: list[str] = []
    lines: list[list[tuple[str, str]]] = [[]]
    for literal, name, spec, conversion in pieces:
        if name is not None and name not in TEMPLATE_FIELDS:
            problems.append(f"unknown template field {quote(name)}{nearest(name, TEMPLATE_FIELDS)}")
        if spec or conversion:
            written = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            problems.append(f"template field {quote(name)} has a format {quote(written)}, which is not allowed")
        *whole, last = literal.split("\n")
        for text in whole:
            lines[-1].append((text, ""))
            lines.append([])
        lines[-1].append((last, name or ""))
    if problems:
        raise ConfigError("; ".join(problems))
    return tuple(map(tuple, lines))
