"""Walks through expressions to list their signals and the variants of their parameters."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from steelyard.fusion.base import Expr
from steelyard.fusion.signal import Signal


def leaves(expr: Expr) -> list[Signal]:
    """List the signals of a strategy in the order written, each once."""
    signals = [expr] if isinstance(expr, Signal) else [leaf for child in expr.children() for leaf in leaves(child)]
    return list(dict.fromkeys(signals))


def replaced(expr: Expr, instead: Mapping[str, str]) -> Expr:
    """The same strategy with other signals in the place of some, by their names."""
    if isinstance(expr, Signal):
        return Signal(instead[expr.name]) if expr.name in instead else expr
    return expr.with_children([replaced(child, instead) for child in expr.children()])


def all_variants(expr: Expr) -> Iterator[Expr]:
    """Iterate over every combination of the variants of an expression and of the expressions in it."""
    options = [list(all_variants(child)) for child in expr.children()]
    for children in itertools.product(*options):
        yield from expr.with_children(children).variants()


def near_variants(expr: Expr) -> Iterator[Expr]:
    """Iterate over the variants that differ from an expression in the parameters of one node.

    Cases that a query's intent chooses among, and that differ in no more than weights and parameters, are also
    varied together: what holds for one of them often holds for all.
    """
    yield from expr.variants()
    children = expr.children()
    for i, child in enumerate(children):
        for other in near_variants(child):
            yield expr.with_children((*children[:i], other, *children[i + 1 :]))
    if expr.by_query and _of_one_kind(children):
        for other in near_variants(children[0]):
            yield expr.with_children([other.with_weights(child.weights) for child in children])


def _of_one_kind(cases: Sequence[Expr]) -> bool:
    """Whether strategies are of one family, over the same signals with as many weights."""
    kinds = {(type(case), len(case.weights), tuple(map(str, leaves(case)))) for case in cases}
    parts = {tuple(type(child) for child in case.children()) for case in cases}
    return len(kinds) == len(parts) == 1
