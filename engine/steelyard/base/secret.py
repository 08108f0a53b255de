"""An API key that does not print itself."""

from __future__ import annotations

import base64
import re

from steelyard.base.errors import ConfigError

MASK = "***"
SHORTEST = 8
"""Shorter texts are place-holders, such as EMPTY, that servers without keys are given; masking them in
messages would only make these unreadable."""


class Secret:
    """A text shown as ``***`` wherever it is printed, formatted or logged; `reveal` gives it away.

    Raises ConfigError, without the value, when the text cannot stand in an HTTP header.

    >>> f"key {Secret('sk-1')}"
    'key ***'
    """

    __slots__ = ("_echoes", "_text")

    def __init__(self, text: str = "", origin: str = "the API key") -> None:
        self._text = text.strip()
        if not (self._text.isascii() and self._text.isprintable()) or " " in self._text:
            raise ConfigError(f"{origin} holds characters that no HTTP header can carry; copy the key again")
        self._echoes = _echoes(self._text) if len(self._text) >= SHORTEST else None

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return MASK if self._text else "no key"

    def __reduce__(self) -> str:
        raise TypeError("a key is never stored")

    def reveal(self) -> str:
        """The text itself, for a request's header and for nothing else."""
        return self._text

    def within(self, text: str) -> bool:
        """Whether the text holds the secret, however it is written."""
        return self._echoes is not None and self._echoes.search(text) is not None

    def scrub(self, text: str) -> str:
        """The text with every occurrence of the secret masked, however it is written."""
        return text if self._echoes is None else self._echoes.sub(MASK, text)


def _echoes(text: str) -> re.Pattern[str]:
    """The ways in which servers repeat a key: plain, spaced, escaped as in URLs and JSON, in hex, in base64."""
    plain = r"\s*".join(rf"(?:{re.escape(c)}|%{ord(c):02x}|\\u00{ord(c):02x})" for c in text)
    digits = r"[\s:]*".join(f"{ord(c):02x}" for c in text)
    coded = [re.sub(r"\\\+|/", "[-+/_]", re.escape(_base64(text.encode(), before))) for before in range(3)]
    return re.compile("|".join([plain, digits, *coded]), re.IGNORECASE)


def _base64(data: bytes, before: int) -> str:
    """Base64 of the data after so many other bytes: the characters that depend on the data alone."""
    bits = 8 * (before + len(data))
    return base64.b64encode(bytes(before) + data).decode()[-(-8 * before // 6) : bits // 6]
