"""An API key that does not print itself."""

from __future__ import annotations

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

    __slots__ = ("_text",)

    def __init__(self, text: str = "", origin: str = "the API key") -> None:
        self._text = text.strip()
        if not (self._text.isascii() and self._text.isprintable()) or " " in self._text:
            raise ConfigError(f"{origin} holds characters that no HTTP header can carry; copy the key again")

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
        """Whether the text holds the secret."""
        return len(self._text) >= SHORTEST and self._text in text

    def scrub(self, text: str) -> str:
        """The text with every occurrence of the secret masked."""
        return text.replace(self._text, MASK) if self.within(text) else text
