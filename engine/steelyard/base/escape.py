"""Text of others made harmless for a terminal: the one escape that everything printed goes through."""

from __future__ import annotations

import re

_COLOUR = re.compile(r"(\x1b\[(?:0|1|3[0-7]|9[0-7])m)")


def visible(text: str, kept: str = "") -> str:
    r"""The text on one line with nothing that moves a terminal: control and format characters escaped.

    `kept` are such characters that stay as they are.

    >>> visible("red \x1b[31m\n")
    'red \\x1b[31m\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)


def harmless(text: str, colours: bool = False) -> str:
    r"""The text with its lines as they are, each made harmless; with `colours` those of our own tables stay.

    >>> harmless("first\nred \x1b[31m")
    'first\nred \\x1b[31m'
    >>> harmless("\x1b[1mbold\x1b[0m \x1b[2J", colours=True)
    '\x1b[1mbold\x1b[0m \\x1b[2J'
    """
    parts = _COLOUR.split(text) if colours else [text]
    return "".join(part if i % 2 else "\n".join(map(visible, part.split("\n"))) for i, part in enumerate(parts))
