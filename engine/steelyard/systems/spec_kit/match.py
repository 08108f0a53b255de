"""How system-spec-kit turns a query into an FTS5 expression."""

from __future__ import annotations

import re

_OPERATORS = re.compile(r"\b(AND|OR|NOT|NEAR)\b", re.IGNORECASE)
_DELETED = re.compile(r'[*^(){}\[\]"]')
_SIGNS_JS = re.compile(r"[*^(){}\[\]:+-]")


def words_of(text: str) -> list[str]:
    """The quoted pieces of a query, without FTS5's operators and signs. Source: the TypeScript code.

    >>> words_of("foo AND bar")
    ['"foo"', '"bar"']
    """
    plain = _DELETED.sub("", _OPERATORS.sub("", text)).replace(":", " ")
    return [f'"{piece}"' for piece in plain.split()]


def any_word(text: str) -> str:
    """Any piece of the query, joined by OR; empty when nothing is left.

    >>> any_word("auth: (token*)")
    '"auth" OR "token"'
    """
    return " OR ".join(words_of(text))


def every_word_js(text: str) -> str:
    """Every piece of the query: the JavaScript code leaves FTS5's own AND between them.

    It doubles quotes and writes none around a piece; ours quotes each, so that no text is read as syntax.
    """
    plain = _SIGNS_JS.sub(" ", _OPERATORS.sub(" ", text))
    return " ".join('"' + piece.replace('"', '""') + '"' for piece in plain.split())
