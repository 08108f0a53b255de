"""What strategies, stages, signals and retrievers declare of their parameters, an `Option` each, and registries.

An option says how a value is read, checked, printed and tuned. A `Node` is a frozen dataclass whose fields are
options: it reads itself from a call of the grammar, and prints itself as one.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

from steelyard.base.errors import ConfigError, nearest, quote
from steelyard.grammar import MAX_LENGTH, Call, Duration, Item, Value, number_text, parse_call, value_text

T = TypeVar("T")
MAX_WEIGHT = 1_000_000
"""Far beyond any sensible weight; without a bound a weight can make scores infinite."""
MAX_COUNT = 1_000_000_000
"""The largest length an option can name; far beyond any list, and small enough for numpy's integers."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A word with a number, such as ``times(0.1)``."""

    kind: str
    amount: float

    def __str__(self) -> str:
        return f"{self.kind}({number_text(self.amount)})"


@dataclass(frozen=True)
class Option:
    """A parameter: what values it takes, what it is where none is written, and which values tuning tries."""

    name: str
    default: Any = ...
    """``...`` where a value has to be written."""
    low: float = -math.inf
    high: float = math.inf
    """The legal range, both ends included."""
    text: str = ""
    """What it does, for the schema of weights files."""
    tried: tuple[Any, ...] = ()
    """Values that tuning tries beside the own."""
    kind: str = "number"
    """number, numbers, word, amount, span, strategy, terms (weighted), or cases: strategies by any name."""
    integer: bool = False
    """Whether numbers have to be whole."""
    each: str = ""
    """A list of one number for each item is valid, too, where this says so in words."""
    words: Collection[str] = ()
    """Words that it can be; ``none`` stands for None where that is the default."""
    amounts: tuple[str, ...] = ()
    """Words that it can be with an amount."""
    quiet: bool = False
    """Whether it is left out of the text where it has its default."""
    bare: bool = False
    """Whether it stands in the brackets without its name."""

    @property
    def rule(self) -> str:
        """What its value has to be, in words."""
        low, high = (number_text(end) if math.isfinite(end) else "" for end in (self.low, self.high))
        ends = f" from {low} to {high}" if low and high else f" of at least {low}" if low else ""
        whole, words = "whole " * self.integer, ", ".join(self.words)
        rules = {
            "strategy": "a strategy without a weight before it",
            "span": "a positive span of time such as 365d or 69h",
            "word": f"one of {words}",
            "amount": f"{', '.join([*self.words, *(f'{word}(x)' for word in self.amounts)])} with x{ends}",
            "numbers": f"a list of {whole}numbers{ends} in brackets, such as [0.4, 0.3]",
        }
        return rules.get(self.kind, f"a {whole}number{ends}{self.each}" + f", or {words}" * bool(words))

    def _fits(self, value: float) -> bool:
        return self.low <= value <= self.high and (not self.integer or value == int(value))

    def checked(self, value: float | str) -> float | str:
        """Return the value; ConfigError when it is outside the legal range, or none of the words."""
        if self.kind == "word":
            if value not in self.words:
                raise ConfigError(
                    f"{self.name} is {quote(value)}; it must be {self.rule} ({self.default} by default)"
                )
            return value
        if isinstance(value, str) or not (math.isfinite(value) and self._fits(value)):
            raise ConfigError(
                f"{self.name} is {quote(value)}; it must lie between {self.low:g} and {self.high:g} "
                f"({self.default:g} by default)"
            )
        return int(value) if self.integer else value

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        if self.kind == "word":
            return {"enum": list(self.words), "default": self.default, "description": self.text}
        ends = {"minimum": self.low, "maximum": self.high, "default": self.default}
        return {"type": "number", **ends, "description": self.text}

    def read(self, value: Value | None, items: int, build: Callable[[Call], Any]) -> Any:  # noqa: ANN401 -- what it declares
        """The value that is written; ValueError for one that it cannot take.

        `items` is how many there are in the brackets, `build` makes the strategy of a call.
        """
        number = int if self.integer else float
        match value:
            case float() if self.kind == "number" and self._fits(value):
                return number(value)
            case tuple() if self.kind == "numbers" or (self.each and len(value) == items > 1):
                if all(map(self._fits, value)):
                    return tuple(map(number, value))
            case Duration() if self.kind == "span" and value.amount > 0:
                return value
            case Item(None, call) if self.kind == "strategy" and call.name:
                return build(call)
            case Item(None, Call(word, (), ())) if word in self.words:
                return None if word == "none" and self.default is None else word
            case Item(None, Call(word, (Item(float() as amount, Call("")),), ())) if word in self.amounts:
                if self._fits(amount):
                    return Amount(word, amount)
        raise ValueError


def opt(default: Any = ..., *, late: bool = False, **how: Any) -> Any:  # noqa: ANN401 -- stands where the field's default does
    """A field of a node; see `Option` for what may be said of it. Its name is the field's.

    `late` is one without a default that follows one with; Python gives it by its name alone.
    """
    written = {} if default is ... else {"default": default}
    return field(metadata={"option": {"default": default, **how}}, kw_only=late, **written)


@dataclass
class Reader:
    """Makes nodes of calls; the faults of a whole text are collected, so that all are named at once."""

    build: Callable[[Call], Any]
    """Makes the strategy of a call."""
    term: Callable[[float, Any], Any]
    """Makes the term of a weight and a strategy."""
    faults: list[str]

    def terms(self, call: Call, items: Sequence[Item], default: float | None) -> tuple[Any, ...]:
        """Read weighted expressions; without a `default`, each weight has to be written."""
        for item in items:
            if item.weight is None and default is None:
                self.faults.append(f"{call.name}: {item.call.name} needs a weight, as in 0.5*{item.call.name}")
            elif item.weight is not None and not 0 <= item.weight <= MAX_WEIGHT:
                weight = number_text(item.weight)
                self.faults.append(f"{call.name}: weight {weight} is outside 0..{MAX_WEIGHT}")
        if not items:
            self.faults.append(f"{call.name} needs at least one signal or fusion in its brackets")
        default = 1.0 if default is None else default
        return tuple(self.term(default if i.weight is None else i.weight, self.build(i.call)) for i in items)

    def value(self, call: Call, option: Option, value: Value | None) -> Any:  # noqa: ANN401 -- what it declares
        """Read an option of a call; None where its value is not written."""
        if value is None and option.default is not ...:
            return option.default
        with suppress(ValueError):
            return option.read(value, len(call.items), self.build)
        match value:
            case None if option.bare:
                self.faults.append(f"{call.name} takes {option.rule} in its brackets")
            case None:
                self.faults.append(f"{call.name} needs {option.name}=, {option.rule}")
            case Item(None, Call(word, (), ())) if option.kind == "word":
                self.faults.append(f"unknown {option.name} {word!r}{nearest(word, option.words)}")
            case _:
                rule = option.rule.format(items=len(call.items))
                self.faults.append(f"{call.name}: {option.name} = {value_text(value)} must be {rule}")
        return None

    def options(self, call: Call, known: Mapping[str, Option], rest: Option | None = None) -> dict[str, Any]:
        """Read the options of a call by their names, and under that of `rest` the others as strategies."""
        given, read = dict(call.options), {}
        if len(given) < len(call.options):
            self.faults.append(f"{call.name} has an option twice; write each once")
        for name, option in known.items():
            read[name] = self.value(call, option, given.pop(name, None))
        if rest is not None:
            cases = {name: self.value(call, Option(name, kind="strategy"), value) for name, value in given.items()}
            return read | {rest.name: tuple(cases.items())}
        for name in given:
            hint = nearest(name, known) if known else "; it takes no options"
            self.faults.append(f"{call.name}: unknown option {name!r}{hint}")
        return read


class Node:
    """A value that is written as ``keyword(...)``; subclasses are frozen dataclasses of options."""

    keyword: ClassVar[str] = ""
    """What it is called in the grammar; where a class does not say, its own name: ``weighted_sum``."""
    unwritten: ClassVar[float | None] = 1.0
    """The weight of a term without one; None where each has to be written."""

    def __init_subclass__(cls) -> None:
        if "keyword" not in vars(cls):
            cls.keyword = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    @cache
    def options(cls) -> dict[str, Option]:
        """What it declares, by the names of its fields."""
        declared = {one.name: one.metadata.get("option") for one in fields(cls)}  # type: ignore[arg-type]  # subclasses are dataclasses
        return {name: Option(name, **how) for name, how in declared.items() if how is not None}

    @classmethod
    def read(cls, call: Call, reader: Reader) -> Self | None:
        """Make it of a call; None where there is a fault, which the reader is told."""
        known, before, items = cls.options(), len(reader.faults), list(call.items)
        bare = [option for option in known.values() if option.bare]
        named = {n: o for n, o in known.items() if not o.bare and o.kind != "cases"}
        rest = next((option for option in known.values() if option.kind == "cases"), None)
        made = reader.options(call, named, rest)
        for option in bare:
            if option.kind == "terms":
                made[option.name], items = reader.terms(call, items, cls.unwritten), []
            else:
                item = items.pop(0) if items else None
                number = item is not None and not item.call.name
                made[option.name] = reader.value(call, option, item.weight if item and number else item)
        if items:
            rule = f"{bare[0].rule} alone" if bare else "nothing"
            reader.faults.append(f"{call.name} takes {rule} in its brackets; remove {items[0]}")
        for item in items:  # so that faults inside it are reported too
            if item.call.name:
                reader.build(item.call)
        if len(reader.faults) > before:
            return None
        node = cls(**made)
        reader.faults += node.problems()
        return node

    def problems(self) -> Iterator[str]:
        """What is wrong with its options together."""
        return iter(())

    def __str__(self) -> str:
        parts: list[str] = []
        for name, option in self.options().items():
            value = getattr(self, name)
            if option.kind == "terms":
                bare = self.unwritten is not None
                parts += [str(term.expr) if bare and term.weight == 1 else str(term) for term in value]
            elif option.kind == "cases":
                parts += [f"{case}={node}" for case, node in value]
            elif option.bare:
                parts.append(value_text(value))
            elif value is not None and not (option.quiet and value == option.default):
                parts.append(f"{name}={value_text(value)}")
        return f"{self.keyword}({', '.join(parts)})"


def parse_node(text: str, reader: Reader, build: Callable[[Call], Any], what: str) -> Any:  # noqa: ANN401 -- what is built
    """The node of a whole text; ConfigError lists every fault that its reader was told.

    What a text stands for must not be too long to be read again, with its defaults.
    """
    item = parse_call(text, "expression" if what == "strategy" else what)
    if item.weight is not None:
        reader.faults.append(f"weight {number_text(item.weight)} before the whole {what} changes nothing; drop it")
    node = build(item.call)
    if reader.faults:
        raise ConfigError(f"{what} {quote(text, 200)}: " + "; ".join(reader.faults))
    if len(written := str(node)) > MAX_LENGTH:
        raise ConfigError(
            f"{what} {quote(text, 200)} is {len(written)} characters when its defaults are written out, "
            f"longer than {MAX_LENGTH}; shorten it"
        )
    return node


class Registry(dict[str, T]):
    """Declarations of a kind by their names: a name that is taken is refused, and other packages bring more.

    A package of your own names what it brings under an entry point such as ``steelyard.fusions``; it is imported
    when a text names it. `kind` is what they are, in words: ``fusion``; `attribute` has the name of one.
    """

    def __init__(self, kind: str, attribute: str, declared: Iterable[T]) -> None:
        super().__init__()
        self.kind = kind
        for one in declared:
            self[getattr(one, attribute)] = one

    def __setitem__(self, name: str, declared: T) -> None:
        """Add a declaration; ConfigError where its name is taken."""
        if name in self and self[name] is not declared:
            homes = (
                getattr(getattr(one, "compute", getattr(one, "build", one)), "__module__", type(one).__module__)
                for one in (self[name], declared)
            )
            raise ConfigError(
                f"{self.kind} {quote(name)} is declared twice, by {' and by '.join(homes)}; rename one of them"
            )
        super().__setitem__(name, declared)

    def find(self, name: str) -> T | None:
        """The declaration of a name, ours or that of an installed package; None where nobody has it.

        ConfigError where the package's cannot be loaded.
        """
        if name not in self and (point := _brought(f"steelyard.{self.kind}s").get(name)) is not None:
            try:
                self[name] = point.load()
            except (ImportError, AttributeError) as error:
                raise ConfigError(f"cannot load {self.kind} {quote(name)} of {point.value}: {error}") from None
        return self.get(name)


@cache
def _brought(group: str) -> dict[str, Any]:
    """The entry points of a group by name, read once: a text may name thousands that nobody has."""
    from importlib.metadata import entry_points  # it loads the package email

    return {point.name: point for point in entry_points(group=group)}
