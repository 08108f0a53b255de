"""Templates of the text that is embedded for an entry, such as ``{title} said: {text}``.

Templates come with data sets, so they are parsed and never passed to `str.format`: a template may
name fields only, without attributes, indexes, conversions or format specifications. A line whose
fields are all empty is left out, and a line with ``{tag}`` is repeated for every tag.
"""

from __future__ import annotations

import string
from functools import lru_cache

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.base.fields import TEXT_FIELDS
from steelyard.memory.entry import Entry

TEMPLATE_FIELDS = TEXT_FIELDS | {"tags", "tag"}
"""The fields that a template may name."""
Pieces = tuple[tuple[str, str], ...]
"""One line as pairs of literal text and the field that follows it, or the empty string."""


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

    A line whose fields are all empty is left out. Doubled braces are literal braces. Raises ConfigError
    like `template_fields`.

    >>> render("{title} said: {text} {{{tags}}}", Entry("1", title="Ann", text="Hi", tags=("a", "b")))
    'Ann said: Hi {a b}'
    >>> render("{title}\ntag:{tag}", Entry("1", title="Ann", tags=("a", "b")))
    'Ann\ntag:a\ntag:b'
    """
    lines = []
    for pieces in _parse(template):
        names = {name for _, name in pieces if name}
        for tag in entry.tags if "tag" in names else ("",):
            values = [_value(entry, name, tag) for _, name in pieces]
            if any(values) or not names:
                texts = (literal + value for (literal, _), value in zip(pieces, values, strict=True))
                lines.append("".join(texts))
    return "\n".join(lines)


def _value(entry: Entry, name: str, tag: str) -> str:
    if name in ("", "tag"):
        return tag if name else ""
    return " ".join(entry.tags) if name == "tags" else str(getattr(entry, name))


@lru_cache(maxsize=64)
def _parse(template: str) -> tuple[Pieces, ...]:
    """The pieces of each line."""
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(f"template {shown(template)} is broken: {error}") from None
    problems: list[str] = []
    lines: list[list[tuple[str, str]]] = [[]]
    for literal, name, spec, conversion in pieces:
        if name is not None and name not in TEMPLATE_FIELDS:
            problems.append(f"unknown template field {shown(name)}{nearest(name, TEMPLATE_FIELDS)}")
        if spec or conversion:
            written = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            problems.append(f"template field {shown(name)} has a format {shown(written)}, which is not allowed")
        *whole, last = literal.split("\n")
        for text in whole:
            lines[-1].append((text, ""))
            lines.append([])
        lines[-1].append((last, name or ""))
    if problems:
        raise ConfigError("; ".join(problems))
    return tuple(map(tuple, lines))
