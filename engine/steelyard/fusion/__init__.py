"""Strategies combine signals into one score: the families by name, what parses their texts, varies and fuses."""

import itertools
import math
from collections.abc import Collection, Iterator, Mapping

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, nearest, quote
from steelyard.fusion.layered import Layered, Progress, progress
from steelyard.fusion.node import RECIPROCAL, Expr, Fallback, Linear, Signal, Term, compile_plan
from steelyard.fusion.plan import Branch, Column, Explanation, Plan
from steelyard.fusion.ranks import Borda, Gated, Isr, LogIsr, Rbc, Rrf
from steelyard.fusion.routing import Boost, ByIntent, Tiered, intents_of
from steelyard.fusion.sums import CombAnz, CombMax, CombMed, CombMin, CombMnz, CombSum, WeightedSum
from steelyard.grammar import Call
from steelyard.node import Reader, Registry, parse_node
from steelyard.retrievers import FETCHED
from steelyard.signals import PRIORS
from steelyard.table.signal_table import SignalTable

__all__ = ["RECIPROCAL", "Branch", "ByIntent", "Column", "Explanation", "Expr", "Fallback", "Linear", "Plan"]
__all__ += ["Progress", "Signal", "Term", "compile_plan", "intents_of", "leaves", "progress"]

FAMILIES: Registry[type[Expr]] = Registry(
    "fusion",
    "keyword",
    (
        *(WeightedSum, Rrf, Tiered, Layered, ByIntent, CombSum, CombMnz, CombAnz, CombMed, CombMax, CombMin),
        *(Isr, LogIsr, Borda, Rbc, Boost, Gated),
    ),
)
"""Every family by its name in the grammar. To add one, write a class in its own file and list it here."""


def parse_strategy(text: str, lists: Collection[str] = ()) -> Expr:
    """Parse the text of a strategy; ``str`` of the result parses to an equal one.

    It has at most 10,000 characters, also when defaults are written out, and may mention recorded `lists` of other
    engines in addition to the signals. ConfigError lists every unknown name, option and value at once.

    >>> str(parse_strategy("tiered(fts, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))"))
    'tiered(fts, min_results=3, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))'
    """
    reader = strategy_reader(lists)
    strategy: Expr = parse_node(text, reader, reader.build, "strategy")
    return strategy


def strategy_reader(lists: Collection[str] = ()) -> Reader:
    """What makes strategies of calls; what is faulty is read as fts, so that reading continues."""

    def build(call: Call) -> Expr:
        signal = call.name in FETCHED or call.name in PRIORS or call.name in lists
        if call.name in FAMILIES or (call.name and not signal and FAMILIES.find(call.name)):
            return FAMILIES[call.name].read(call, reader) or Signal("fts")
        if signal or (call.name and PRIORS.find(call.name)):
            return Signal.read(call, reader) or Signal("fts")
        known = FETCHED.union(PRIORS, lists)
        close = nearest(call.name, (*FAMILIES, *known)) or nearest(call.name, FAMILIES if call.items else known)
        unknown = f"unknown signal or fusion {call.name!r}{close}"
        reader.faults.append(unknown if call.name else "a number was found where a signal or fusion is expected")
        for item in call.items:  # so that faults inside it are reported too
            build(item.call)
        return Signal("fts")

    reader = Reader(build, Term, [])
    return reader


def leaves(expr: Expr) -> list[Signal]:
    """List the signals of a strategy in the order written, each once."""
    return list(dict.fromkeys(node for node in expr.walk() if isinstance(node, Signal)))


def replaced(expr: Expr, instead: Mapping[str, str]) -> Expr:
    """The same strategy with other signals in the place of some, by their names."""
    if isinstance(expr, Signal):
        return Signal(instead[expr.name]) if expr.name in instead else expr
    return expr.with_children([replaced(child, instead) for child in expr.children])


def all_variants(expr: Expr, most: int | None = None) -> Iterator[Expr]:
    """Iterate over combinations of the variants of an expression and of those in it, at most `most` of each."""
    options = [list(itertools.islice(all_variants(child, most), most)) for child in expr.children]
    for children in itertools.product(*options):
        yield from expr.with_children(children).variants()


def near_variants(expr: Expr) -> Iterator[Expr]:
    """Iterate over the variants that differ from an expression in the parameters of one node.

    Cases that a query's intent chooses among, and that differ in no more than weights and parameters, are also
    varied together: what holds for one of them often holds for all.
    """
    yield from expr.variants()
    children = expr.children
    for i, child in enumerate(children):
        for other in near_variants(child):
            yield expr.with_children((*children[:i], other, *children[i + 1 :]))
    # Of one family, over the same signals with as many weights.
    kinds = {(type(one), len(one.weights), *map(str, leaves(one)), *map(type, one.children)) for one in children}
    if expr.by_query and len(kinds) == 1:
        for other in near_variants(children[0]):
            yield expr.with_children([other.with_weights(child.weights) for child in children])


def reweighted(strategy: Expr, weights: Mapping[str, float], some: bool = False) -> Expr:
    """The strategy with other weights; `weights` names each term by its signal or fusion.

    Every term of a name gets its weight: tiers may have one each. ConfigError for a weight out of range, for a
    name that one sum has twice, and for one that the strategy lacks; with `some` those it lacks are left out.

    >>> weights = {"decay": 0.5, "graph": 2.0}
    >>> str(reweighted(parse_strategy("boost(rrf(vector, 1.5*graph), decay)"), weights))
    'boost(rrf(vector, 2*graph, k=60), 0.5*decay)'
    """
    names = [[_name(term.expr) for term in node.own_terms] for node in strategy.walk()]
    known = {name for each in names for name in each}
    weights = {name: weight for name, weight in weights.items() if name in known or not some}
    unclear = [name for name in weights if name not in known or any(each.count(name) > 1 for each in names)]
    if unclear:
        listed = ", ".join(f"{quote(name)}{nearest(name, known)}" for name in unclear)
        raise ConfigError(f"{strategy} has no single term {listed}; write its weights in the strategy instead")
    if bad := [name for name, weight in weights.items() if not math.isfinite(weight)]:
        raise ConfigError(f"weight {weights[bad[0]]} of {quote(bad[0])} must be a finite number")

    def changed(expr: Expr) -> Expr:
        terms = [Term(weights.get(_name(term.expr), term.weight), term.expr) for term in expr.own_terms]
        node = expr.with_terms(terms) if terms else expr
        return node.with_children([changed(child) for child in node.children])

    return parse_strategy(str(changed(strategy)), strategy.signals)  # the parser checks the weights


def _name(expr: Expr) -> str:
    return str(expr).partition("(")[0]


def fuse(table: SignalTable, strategy: Expr) -> Floats:
    """Score every row that a strategy ranks, see `compile_plan`; float64[N], NaN for the others.

    Pure and vectorised over queries: the score of a row depends only on the rows of its own query.
    """
    return compile_plan(table, strategy).scores()
