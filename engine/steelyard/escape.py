"""Text of others made harmless for a terminal: the one escape that everything printed goes through."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""The text on one line with nothing that moves a terminal: control and format characters escaped.

    >>> visible("red \x1b[31m\n")
    'red \\x1b[31m\\n'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def harmless(text: str) -> str:
    r"""The text with its lines as they are, each made harmless.

    >>> harmless("first\nred \x1b[31m")
    'first\nred \\x1b[31m'
    """
    return "\n".join(map(visible, text.split("\n")))
