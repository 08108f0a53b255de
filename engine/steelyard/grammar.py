"""The grammar of strategies and finish stages: parses text to a tree of calls, and prints values as text.

::

    expr  := name [ "(" [ item { "," item } ] ")" ]
    item  := [ number "*" ] expr  |  number  |  name "=" value
    value := number [ "d" | "h" ]  |  "[" number { "," number } "]"  |  [ number "*" ] expr
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

from steelyard.base.errors import ConfigError, quote

MAX_LENGTH = 10_000
MAX_NESTING = 32

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?P<unit>[dh]\b)?"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<mark>[(),*=\[\]])|(?P<end>\Z)|(?P<odd>\S))"
)


@dataclass(frozen=True)
class Duration:
    """A span of time that prints as it was written: 365d or 69h."""

    amount: float
    unit: str

    @cached_property
    def seconds(self) -> float:
        """The span in seconds."""
        return self.amount * {"d": 86_400.0, "h": 3_600.0}[self.unit]

    def __str__(self) -> str:
        return f"{number_text(self.amount)}{self.unit}"


@dataclass(frozen=True, slots=True)
class Call:
    """``name(items, option=value)``; a bare name is a call without brackets."""

    name: str
    items: "tuple[Item, ...]" = ()
    options: "tuple[tuple[str, Value], ...]" = ()

    def __str__(self) -> str:
        parts = [*map(str, self.items), *(f"{name}={value_text(value)}" for name, value in self.options)]
        return f"{self.name}({', '.join(parts)})" if parts else self.name


@dataclass(frozen=True, slots=True)
class Item:
    """A call with the weight written before it, None where none is; a bare number is a weight of no name."""

    weight: float | None
    call: Call

    def __str__(self) -> str:
        if self.weight is None:
            return str(self.call)
        return f"{number_text(self.weight)}*{self.call}" if self.call.name else number_text(self.weight)


Value = float | Duration | tuple[float, ...] | Item
"""What can stand behind the name of an option."""


def value_text(value: Any) -> str:  # noqa: ANN401 -- any value of an option
    """Print the value of an option as it is written."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(number_text, value))}]"
    return number_text(value) if isinstance(value, int | float) else str(value)


def number_text(value: float) -> str:
    """Print a number as the shortest text that reads back as the same number.

    >>> number_text(60.0), number_text(0.3)
    ('60', '0.3')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def parse_call(text: str, what: str = "expression") -> Item:
    """Parse one item of the grammar; ConfigError with what it is and the position of the first fault.

    >>> parse_call("0.5*rrf(fts, k=60)").call.options
    (('k', 60.0),)
    """
    if len(text) > MAX_LENGTH:
        raise ConfigError(f"{what} of {len(text)} characters is longer than {MAX_LENGTH}; shorten it")
    parser = _Parser(text, what)
    item = parser.item(0)
    if parser.kind() != "end":
        raise parser.expected("the end")
    return item


class _Parser:
    """Recursive descent over the tokens, one token ahead."""

    def __init__(self, text: str, what: str) -> None:
        self.text, self.what, self.at = text, what, 0
        self.tokens = list(_TOKEN.finditer(text))
        if odd := next(filter(itemgetter("odd"), self.tokens), None):
            raise self.fault(f"character {quote(odd['odd'])} at position {odd.start('odd')} is not allowed")

    def kind(self) -> str:
        return str(self.tokens[self.at].lastgroup).replace("unit", "number")

    def peek(self, ahead: int = 0) -> str:
        token = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return token["number"] or token["name"] or token["mark"] or ""

    def fault(self, problem: str, mark: str = ":") -> ConfigError:
        return ConfigError(f"{self.what} {quote(self.text)}{mark} {problem}")

    def expected(self, wanted: str) -> ConfigError:
        place, token = self.tokens[self.at].start(self.kind()), self.peek()
        if not token and self.text.count("(") > self.text.count(")"):
            return self.fault("a bracket is not closed; write ')' at its end")
        return self.fault(f"expected {wanted} at position {place}, found {quote(token) if token else 'the end'}")

    def take(self, wanted: str) -> None:
        if self.peek() != wanted:
            raise self.expected(repr(wanted))
        self.at += 1

    def number(self, unit: str = "") -> Any:  # noqa: ANN401 -- a float, or a Duration where `unit` is empty
        """A number; `unit` says what is wrong with one that has a unit, where none may stand."""
        if self.kind() != "number":
            raise self.expected("a number")
        token, written = self.tokens[self.at].group("number", "unit")
        self.at += 1
        if abs(value := float(token)) == float("inf"):
            raise self.fault(f"number {token} is too large; use a finite one")
        if written and unit:
            raise self.fault(unit.format(f"{number_text(value)}{written}"))
        return Duration(value, written) if written else value

    def item(self, depth: int) -> Item:
        if depth > MAX_NESTING:
            raise self.fault(f"is nested deeper than {MAX_NESTING}; simplify it", "")
        weight = None
        if self.kind() == "number":
            weight = self.number("weight {} has a unit; a weight is a plain number")
            self.take("*")
        return Item(weight, self.call(depth))

    def call(self, depth: int) -> Call:
        if self.kind() != "name":
            raise self.expected("a name")
        name = self.peek()
        self.at += 1
        if self.peek() != "(":
            return Call(name)
        items: list[Item] = []
        options: list[tuple[str, Value]] = []
        for _ in self.listed(")"):
            if self.kind() == "name" and self.peek(1) == "=":
                option = self.peek()
                self.at += 2
                options.append((option, self.value(depth + 1)))
            elif self.kind() == "number" and self.peek(1) in (",", ")"):
                items.append(Item(self.number("{0} needs a name, as in half_life={0}"), Call("")))
            else:
                items.append(self.item(depth + 1))
        return Call(name, tuple(items), tuple(options))

    def value(self, depth: int) -> Value:
        """What stands behind the name of an option and its sign."""
        if self.peek() == "[":
            return tuple(self.number("{} has a unit; a list takes plain numbers") for _ in self.listed("]"))
        return self.number() if self.kind() == "number" and self.peek(1) != "*" else self.item(depth)

    def listed(self, end: str) -> Iterator[None]:
        """A turn for each part of a list in brackets, which the turn takes; then what closes it is taken."""
        self.at += 1
        while self.peek() != end:
            yield
            if self.peek() != end:
                self.take(",")
        self.at += 1
