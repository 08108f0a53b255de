"""Expressions that are written as a call, and the reader of its options while it becomes an expression.

Faults are collected and reported together: a faulty part is replaced by the signal fts, and reading continues.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from steelyard.base.errors import nearest
from steelyard.fusion.available import Available
from steelyard.fusion.base import Expr, Term
from steelyard.grammar import Call, Duration, Item, number_text, parse_call, value_text

MAX_WEIGHT = 1_000_000
"""Far beyond any sensible weight; without a bound a weight can make scores infinite."""
Option = float | Duration | tuple[float, ...] | Item
FAULTY = parse_call("fts").call
"""What a faulty part is read as."""


class Family(Expr):
    """An expression that is written as a call of its `keyword`: ``rrf(...)``, ``tiered(...)``."""

    @classmethod
    @abstractmethod
    def read(cls, call: CallReader) -> Self:
        """Build an expression of this family from a parsed call; faults are collected in `call`."""

    @classmethod
    def starts(cls, there: Available) -> dict[str, list[str]]:
        """The strategies of this family that recommending starts from, by the name of a row of its table.

        The first of a row is tried in all its shapes, the others as they are. By default a common family fuses the
        lists, and then the lists with each further one; the others gained nothing on public collections
        (docs/tuning.md), so they are strategies to write, and none to search.
        """
        return {cls.shown_as: [f"{cls.keyword}({lists})" for lists in there.fused]} if cls.common else {}


@dataclass
class CallReader:
    """A parsed call whose options are taken one by one; an option that nobody took is unknown.

    Attributes
    ----------
    call : Call
        The call as the grammar parsed it.
    problems : list of str
        Faults of the whole strategy, to which this call adds its own.
    build : callable
        Builds the expression of a call inside this one.
    """

    call: Call
    problems: list[str]
    build: Callable[[Call], Expr]
    left: dict[str, Option] = field(init=False)

    def __post_init__(self) -> None:
        self.left = dict(self.call.options)
        if len(self.left) < len(self.call.options):
            self.fault(f"{self.call.name} has an option twice; write each once")

    def fault(self, problem: str) -> None:
        """Record a fault and continue."""
        self.problems.append(problem)

    def take(self, name: str) -> Option | None:
        """Take the value of an option as the grammar parsed it; None when it is not written."""
        return self.left.pop(name, None)

    def rest(self) -> dict[str, Option]:
        """Take every option that is left."""
        left, self.left = self.left, {}
        return left

    def number(
        self, name: str, default: float, low: float, *, below: float | None = None, whole: bool = False
    ) -> float:
        """Take a number of at least `low` and less than `below`; its default when it is not written."""
        value = self.take(name)
        if value is None:
            return default
        wrong = not isinstance(value, float) or value < low or (below is not None and value >= below)
        if not isinstance(value, float) or wrong or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            high = "" if below is None else f" and below {number_text(below)}"
            self.bad(name, value, f"must be {kind} of at least {number_text(low)}{high}")
            return default
        return value

    def word(self, name: str, default: str, valid: tuple[str, ...]) -> str:
        """Take one of the `valid` words; the default when none is written."""
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, Item) or value.weight is not None or value.call.items or value.call.options:
            self.bad(name, value, f"must be one of {', '.join(valid)}")
            return default
        if value.call.name not in valid:
            self.fault(f"unknown {name} {value.call.name!r}{nearest(value.call.name, valid)}")
            return default
        return value.call.name

    def bad(self, name: str, value: Option, rule: str) -> None:
        """Record that the value of an option breaks a rule."""
        self.fault(f"{self.call.name}: {name} = {value_text(value)} {rule}")

    def finish(self, *valid: str) -> None:
        """Record a fault for every option that is left, as unknown; `valid` are the names to suggest."""
        for name in self.left:
            hint = nearest(name, valid) if valid else "; it takes no options"
            self.fault(f"{self.call.name}: unknown option {name!r}{hint}")

    def terms(self, default: float | None) -> tuple[Term, ...]:
        """Read the weighted expressions in brackets; without a `default`, each weight has to be written."""
        terms = []
        if not self.call.items:
            self.fault(f"{self.call.name} needs at least one signal or fusion in its brackets")
        for item in self.call.items:
            if item.weight is None and default is None:
                self.fault(f"{self.call.name}: {item.call.name} needs a weight, as in 0.5*{item.call.name}")
            weight = item.weight if item.weight is not None else default or 1.0
            if not 0 <= weight <= MAX_WEIGHT:
                self.fault(f"{self.call.name}: weight {number_text(weight)} is outside 0..{MAX_WEIGHT}")
            terms.append(Term(weight, self.build(item.call)))
        return tuple(terms) or (Term(1.0, self.build(FAULTY)),)

    def branch(self, name: str, value: Option | None) -> Expr:
        """Build the strategy given as the value of an option."""
        if not isinstance(value, Item) or value.weight is not None:
            self.fault(f"{self.call.name} needs {name}=, a strategy without a weight before it")
            return self.build(FAULTY)
        return self.build(value.call)
