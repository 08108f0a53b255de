"""What differs between two strategies, and the same strategy under other weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.fusion.base import Expr, Term
from steelyard.fusion.call import Option
from steelyard.fusion.parse import parse_strategy
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


def term_names(strategy: Expr) -> list[str]:
    """Name the weighted terms of a strategy, and of those in it, each by its signal or fusion, each name once.

    >>> term_names(parse_strategy("boost(rrf(vector, 1.5*graph), 0.5*decay, 0*recency(half_life=69h))"))
    ['decay', 'recency', 'vector', 'graph']
    """
    inner = [name for child in strategy.children() for name in term_names(child)]
    return list(dict.fromkeys([*map(_name, strategy.own_terms), *inner]))


def reweighted(strategy: Expr, weights: Mapping[str, float]) -> Expr:
    """Replace the weights of some terms by their names, of every term that has the name, as one in each tier.

    Raises ConfigError for a name that the strategy does not have, or that one sum has twice, and for a weight out
    of range.

    >>> str(reweighted(parse_strategy("weighted_sum(1*rrf(fts, vector), 0*recency)"), {"recency": 0.2, "fts": 2}))
    'weighted_sum(1*rrf(2*fts, vector, k=60), 0.2*recency(half_life=365d))'
    """
    names = set(term_names(strategy))
    unclear = [name for name in weights if name not in names or _twice(strategy, name)]
    if unclear:
        listed = ", ".join(f"{shown(name)}{nearest(name, names)}" for name in unclear)
        raise ConfigError(f"{strategy} has no single term {listed}; write its weights in the strategy instead")
    if bad := [name for name, weight in weights.items() if not math.isfinite(weight)]:
        raise ConfigError(f"weight {weights[bad[0]]} of {shown(bad[0])} must be a finite number")
    return parse_strategy(str(_changed(strategy, weights)), strategy.signals())  # the parser checks the weights


def _changed(expr: Expr, weights: Mapping[str, float]) -> Expr:
    terms = [Term(weights.get(_name(term), term.weight), term.expr) for term in expr.own_terms]
    node = expr.with_terms(terms) if terms else expr
    return node.with_children([_changed(child, weights) for child in node.children()]) if node.children() else node


def _twice(expr: Expr, name: str) -> bool:
    """Whether one sum has two terms of a name."""
    names = [_name(term) for term in expr.own_terms]
    return names.count(name) > 1 or any(_twice(child, name) for child in expr.children())


def _name(term: Term) -> str:
    return str(term.expr).partition("(")[0]
