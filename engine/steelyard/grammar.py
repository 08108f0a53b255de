"""The grammar of strategies: parses text to a tree of calls, and prints values as text.

::

    expr  := name [ "(" [ item { "," item } ] ")" ]
    item  := [ number "*" ] expr  |  name "=" value
    value := number [ "d" | "h" ]  |  "[" number { "," number } "]"  |  [ number "*" ] expr

`steelyard.fusion` defines what the names mean and which options they take.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from steelyard.base.errors import ConfigError, shown

MAX_LENGTH = 10_000
MAX_NESTING = 32

_TOKEN = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?P<unit>[dh]\b)?"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<mark>[(),*=\[\]])"
)


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time that prints as it was written: 365d or 69h."""

    amount: float
    unit: str

    @property
    def seconds(self) -> float:
        """The span in seconds."""
        return self.amount * {"d": 86_400.0, "h": 3_600.0}[self.unit]

    def __str__(self) -> str:
        return f"{number_text(self.amount)}{self.unit}"


@dataclass(frozen=True, slots=True)
class Call:
    """``name(items, option=value)``; a bare name is a call without brackets."""

    name: str
    items: tuple[Item, ...] = ()
    options: tuple[tuple[str, float | Duration | tuple[float, ...] | Item], ...] = ()

    def __str__(self) -> str:
        parts = [str(item) for item in self.items]
        parts += [f"{name}={value_text(value)}" for name, value in self.options]
        return f"{self.name}({', '.join(parts)})" if parts else self.name


@dataclass(frozen=True, slots=True)
class Item:
    """A call with the weight written before it; None where none is written."""

    weight: float | None
    call: Call

    def __str__(self) -> str:
        if self.weight is None:
            return str(self.call)
        return f"{number_text(self.weight)}*{self.call}" if self.call.name else number_text(self.weight)


def value_text(value: float | Duration | tuple[float, ...] | Item) -> str:
    """Print the value of an option as it is written."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(number_text, value))}]"
    return number_text(value) if isinstance(value, float) else str(value)


def number_text(value: float) -> str:
    """Print a number as the shortest text that reads back as the same number.

    >>> number_text(60.0), number_text(0.3)
    ('60', '0.3')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def amount_of(item: Item) -> float | None:
    """Return the number in a call such as ``cut(10)`` or ``times(0.1)``; None when it is anything else.

    >>> amount_of(parse_call("cut(10)")), amount_of(parse_call("2*cut(10)")), amount_of(parse_call("cut(fts)"))
    (10.0, None, None)
    """
    items, options = item.call.items, item.call.options
    if item.weight is not None or options or len(items) != 1 or items[0].call.name:
        return None
    return items[0].weight


def parse_call(text: str) -> Item:
    """Parse one item of the grammar; ConfigError with the position of the first fault.

    >>> parse_call("0.5*rrf(fts, k=60)").call.options
    (('k', 60.0),)
    """
    if len(text) > MAX_LENGTH:
        raise ConfigError(f"expression of {len(text)} characters is longer than {MAX_LENGTH}; shorten it")
    reader = _Reader(text, _tokens(text))
    item = reader.item(0)
    if reader.peek() != "":
        raise reader.fault("the end")
    return item


def _tokens(text: str) -> list[tuple[int, str, str, str]]:
    """Tokens of the whole text as (position, kind, token, unit), ended by an empty token."""
    tokens, place = [], 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        match = _TOKEN.match(text, place)
        if match is None:
            raise ConfigError(
                f"expression {shown(text)}: character {shown(text[place])} at position {place} is not allowed"
            )
        kind = "number" if match["number"] else "name" if match["name"] else "mark"
        tokens.append((place, kind, match[kind], match["unit"] or ""))
        place = match.end()
    return [*tokens, (len(text), "end", "", "")]


class _Reader:
    """Recursive descent over the tokens, one token ahead."""

    def __init__(self, text: str, tokens: list[tuple[int, str, str, str]]) -> None:
        self.text, self.tokens, self.at = text, tokens, 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][2]

    def kind(self) -> str:
        return self.tokens[self.at][1]

    def fault(self, wanted: str) -> ConfigError:
        place, _, token, _ = self.tokens[self.at]
        found = shown(token) if token else "the end"
        if not token and self.text.count("(") > self.text.count(")"):
            return ConfigError(f"expression {shown(self.text)}: a bracket is not closed; write ')' at its end")
        return ConfigError(f"expression {shown(self.text)}: expected {wanted} at position {place}, found {found}")

    def take(self, wanted: str) -> str:
        token = self.peek()
        if token != wanted:
            raise self.fault(repr(wanted))
        self.at += 1
        return token

    def number(self) -> float | Duration:
        if self.kind() != "number":
            raise self.fault("a number")
        _, _, token, unit = self.tokens[self.at]
        self.at += 1
        value = float(token)
        if value in (float("inf"), float("-inf")):
            raise ConfigError(f"expression {shown(self.text)}: number {token} is too large; use a finite one")
        return Duration(value, unit) if unit else value

    def item(self, depth: int) -> Item:
        if depth > MAX_NESTING:
            raise ConfigError(f"expression {shown(self.text)} is nested deeper than {MAX_NESTING}; simplify it")
        weight = None
        if self.kind() == "number":
            value = self.number()
            if isinstance(value, Duration):
                raise ConfigError(
                    f"expression {shown(self.text)}: weight {value} has a unit; a weight is a plain number"
                )
            weight = value
            self.take("*")
        return Item(weight, self.call(depth))

    def call(self, depth: int) -> Call:
        if self.kind() != "name":
            raise self.fault("a name")
        name = self.peek()
        self.at += 1
        if self.peek() != "(":
            return Call(name)
        self.take("(")
        items: list[Item] = []
        options: list[tuple[str, float | Duration | tuple[float, ...] | Item]] = []
        while self.peek() != ")":
            if self.kind() == "name" and self.peek(1) == "=":
                options.append(self.option(depth))
            else:
                items.append(self.argument(depth))
            if self.peek() != ")":
                self.take(",")
        self.take(")")
        return Call(name, tuple(items), tuple(options))

    def argument(self, depth: int) -> Item:
        """Read an argument; a bare number, as in cut(10) or times(0.1), is a weight without a name."""
        if self.kind() == "number" and self.peek(1) in (",", ")"):
            value = self.number()
            if isinstance(value, float):
                return Item(value, Call(""))
            raise ConfigError(f"expression {shown(self.text)}: {value} needs a name, as in half_life={value}")
        return self.item(depth + 1)

    def option(self, depth: int) -> tuple[str, float | Duration | tuple[float, ...] | Item]:
        name = self.peek()
        self.at += 2
        if self.peek() == "[":
            return name, self.numbers()
        if self.kind() == "number" and self.peek(1) != "*":
            return name, self.number()
        return name, self.item(depth + 1)

    def numbers(self) -> tuple[float, ...]:
        self.take("[")
        values: list[float] = []
        while self.peek() != "]":
            value = self.number()
            if isinstance(value, Duration):
                raise ConfigError(f"expression {shown(self.text)}: {value} has a unit; a list takes plain numbers")
            values.append(value)
            if self.peek() != "]":
                self.take(",")
        self.take("]")
        return tuple(values)
