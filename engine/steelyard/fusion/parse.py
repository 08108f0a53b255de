"""Turns parsed calls into strategies, and reports every fault of a text at once; contains the list of families."""

from __future__ import annotations

from collections.abc import Callable, Collection

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.fusion.base import Expr
from steelyard.fusion.boost import Boost
from steelyard.fusion.by_intent import ByIntent
from steelyard.fusion.call import CallReader, Family
from steelyard.fusion.comb import CombAnz, CombMax, CombMed, CombMin, CombMnz, CombSum
from steelyard.fusion.gated import Gated
from steelyard.fusion.layered import Layered
from steelyard.fusion.ranks import Borda, Isr, LogIsr, Rbc, Rrf
from steelyard.fusion.signal import Signal
from steelyard.fusion.sums import WeightedSum
from steelyard.fusion.tiered import Tiered
from steelyard.grammar import MAX_LENGTH, Call, number_text, parse_call
from steelyard.signals import PRIORS
from steelyard.table.signal_table import FETCHED

FAMILIES: dict[str, type[Family]] = {
    family.keyword: family
    for family in (
        WeightedSum,
        Rrf,
        Tiered,
        Layered,
        ByIntent,
        CombSum,
        CombMnz,
        CombAnz,
        CombMed,
        CombMax,
        CombMin,
        Isr,
        LogIsr,
        Borda,
        Rbc,
        Boost,
        Gated,
    )
}
"""Every family by its name in the grammar. To add one, write a class in its own file and list it here."""


def parse_strategy(text: str, lists: Collection[str] = ()) -> Expr:
    """Parse the text of a strategy; ``str`` of the result parses to an equal one.

    Parameters
    ----------
    text : str
        The expression, at most 10,000 characters also when defaults are written out.
    lists : collection of str
        Recorded lists of other engines that it may mention in addition to the signals.

    Raises
    ------
    ConfigError
        Lists every unknown name, option and value at once, with the nearest valid spellings.

    Examples
    --------
    >>> str(parse_strategy("tiered(fts, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))"))
    'tiered(fts, min_results=3, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))'
    """
    item = parse_call(text)
    problems: list[str] = []
    if item.weight is not None:
        problems.append(f"weight {number_text(item.weight)} before the whole strategy changes nothing; drop it")
    strategy = _builder(problems, FETCHED.union(PRIORS, lists))(item.call)
    if problems:
        raise ConfigError(f"strategy {shown(text, 200)}: " + "; ".join(problems))
    if (length := len(str(strategy))) > MAX_LENGTH:
        raise ConfigError(
            f"strategy {shown(text, 200)} is {length} characters when its defaults are written out, "
            f"longer than {MAX_LENGTH}; shorten it"
        )
    return strategy


def _builder(problems: list[str], signals: Collection[str]) -> Callable[[Call], Expr]:
    """Make the function that builds a call and those inside it; faults are appended to `problems`."""

    def build(call: Call) -> Expr:
        if call.name in FAMILIES:
            return FAMILIES[call.name].read(CallReader(call, problems, build))
        if call.name in signals:
            return Signal.read(CallReader(call, problems, build))
        problems.append(_unknown(call, signals))
        for item in call.items:  # so that faults inside it are reported too
            build(item.call)
        return Signal("fts")

    return build


def _unknown(call: Call, signals: Collection[str]) -> str:
    if not call.name:
        return "a number was found where a signal or fusion is expected"
    close = nearest(call.name, (*FAMILIES, *signals)) or nearest(call.name, FAMILIES if call.items else signals)
    return f"unknown signal or fusion {call.name!r}{close}"
