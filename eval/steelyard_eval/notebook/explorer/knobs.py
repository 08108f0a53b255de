"""What can be moved in a strategy: its weights, and the parameters of its families.

Nothing here knows a family: weights come from `Expr.weights`, parameters from the variants that a family declares
for tuning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any

from steelyard.fusion import Expr, Term
from steelyard.grammar import Duration, number_text

TOPS = (1.0, 2.0, 5.0)
"""The ends of sliders, times powers of ten."""
STEPS = 100
"""Steps from one end of a slider to the other."""


@dataclass(frozen=True)
class ParameterChoice:
    """One parameter of one node of a strategy with the values that tuning tries.

    Attributes
    ----------
    path : tuple of int
        Which child of which child the node is; empty for the strategy itself.
    field : str
        The field of the node.
    label : str
        The name that is shown.
    texts : tuple of str; values : tuple
        The alternatives, in the order that the family lists them.
    at : int
        The one that the strategy has.
    """

    path: tuple[int, ...]
    field: str
    label: str
    texts: tuple[str, ...]
    values: tuple[Any, ...]
    at: int

    def applied(self, strategy: Expr, at: int) -> Expr:
        """The strategy with another of the values."""
        return _replaced(strategy, self.path, self.field, self.values[at])


def choices(strategy: Expr, path: tuple[int, ...] = ()) -> Iterator[ParameterChoice]:
    """Every parameter with more than one value to try, of the strategy and then of the expressions in it."""
    node: Any = strategy  # every expression is a dataclass, which its base class cannot declare
    for field in fields(node):
        current = getattr(strategy, field.name)
        near = [v for v in strategy.variants() if _alike(v, strategy, field.name)]
        values = list(dict.fromkeys([getattr(v, field.name) for v in near])) if len(near) > 1 else []
        if current in values:
            texts = tuple(_text(value) for value in values)
            label = f"{field.name} of {_title(strategy)}" if field.name != "options" else _title(strategy)
            yield ParameterChoice(path, field.name, label, texts, tuple(values), values.index(current))
    for place, child in enumerate(strategy.children()):
        yield from choices(child, (*path, place))


def weight_names(strategy: Expr) -> list[str]:
    """What each weight of a strategy multiplies, in the order of `strategy.weights`; distinct.

    >>> from steelyard.fusion import parse_strategy
    >>> weight_names(parse_strategy("tiered(fts, then=weighted_sum(0.3*fts, 0.7*vector))"))
    ['fts', 'vector']
    """
    names = strategy.weight_names
    return [_distinct(names, i) for i in range(len(names))]


def top_of(weights: Sequence[float]) -> float:
    """Where sliders end: the first of 1, 2, 5, 10, 20 ... above the largest weight.

    >>> top_of([0.3, 0.7]), top_of([1.0, 1.5]), top_of([4.0, 12.0])
    (1.0, 2.0, 20.0)
    """
    largest = max(weights, default=0.0)
    return next(top * 10.0**power for power in count() for top in TOPS if top * 10.0**power > largest)


def _alike(variant: Expr, strategy: Expr, name: str) -> bool:
    """Whether a variant differs from the strategy in this field at most."""
    node: Any = variant
    return type(variant) is type(strategy) and replace(node, **{name: getattr(strategy, name)}) == strategy


def _replaced(strategy: Expr, path: tuple[int, ...], name: str, value: object) -> Expr:
    if not path:
        node: Any = strategy
        changed: Expr = replace(node, **{name: value})
        return changed
    children = list(strategy.children())
    children[path[0]] = _replaced(children[path[0]], path[1:], name, value)
    return strategy.with_children(children)


def _title(strategy: Expr) -> str:
    return str(strategy).partition("(")[0]


def _text(value: object) -> str:
    """A value as it is read in a list of alternatives; terms without weight are left out."""
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Duration):
        return f"{value.amount:.4g}{value.unit}"
    if isinstance(value, Term):
        return str(value) if value.weight else ""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        return f"{value[0]}={_text(value[1])}"
    if isinstance(value, tuple):
        return ", ".join(text for text in map(_text, value) if text) or "none"
    return "none" if value is None else str(value)


def _distinct(names: Sequence[str], at: int) -> str:
    before = names[:at].count(names[at])
    return f"{names[at]} ({before + 1})" if before else names[at]
