"""The differences between two strategies of the same shape: weight by weight, option by option."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steelyard.fusion.base import Expr
from steelyard.fusion.call import Option
from steelyard.grammar import Call, Item, number_text, parse_call, value_text


@dataclass(frozen=True)
class Change:
    """A part of a strategy before and after; `dropped` where it does nothing any more."""

    name: str
    old: str
    new: str
    dropped: bool

    def __str__(self) -> str:
        return f"{self.name} {self.new} instead of {self.old}"


def changes(old: Expr, new: Expr) -> list[Change]:
    """Every weight and option that differs; of parts that do not correspond, the whole part.

    >>> from steelyard.fusion.parse import parse_strategy
    >>> one, other = map(parse_strategy, ("rrf(fts, vector, k=60)", "rrf(fts, 0*vector, k=20)"))
    >>> [str(change) for change in changes(one, other)]
    ['weight of vector 0 instead of 1', 'k 20 instead of 60']
    """
    return list(_changes(parse_call(str(old)).call, parse_call(str(new)).call, ""))


def _changes(old: Call, new: Call, where: str) -> Iterator[Change]:
    if (old.name, len(old.items)) != (new.name, len(new.items)):
        yield Change(f"strategy{where}", str(old), str(new), dropped=False)
        return
    for left, right in zip(old.items, new.items, strict=True):
        was, weight = (1.0 if item.weight is None else item.weight for item in (left, right))
        if was != weight:
            name = f"weight of {left.call.name or old.name}{where}"
            yield Change(name, number_text(was), number_text(weight), dropped=not weight)
        yield from _changes(left.call, right.call, where)
    before, after = dict(old.options), dict(new.options)
    for name in before | after:
        was_set, is_set = before.get(name), after.get(name)
        if isinstance(was_set, Item) and isinstance(is_set, Item):
            yield from _changes(was_set.call, is_set.call, f" for {name}")
        elif was_set != is_set:
            yield Change(f"{name}{where}", _text(was_set), _text(is_set), dropped=is_set in (None, ()))


def _text(value: Option | None) -> str:
    return "none" if value is None or value == () else value_text(value)
