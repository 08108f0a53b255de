"""The words of an answer: what to do, what to expect of it, how sure that is; how a configuration is written."""

from __future__ import annotations

from steelyard.config.search_config import SearchConfig
from steelyard.systems import find_system, written_name
from steelyard_eval.common.markup import in_range, number, tells
from steelyard_eval.decide.promise import Gain

FEW = ((0.45, "1 in 2"), (0.3667, "2 in 5"), (0.2917, "1 in 3"))
"""Odds near even, down to halfway to the next."""


def named(config: SearchConfig) -> str:
    """A configuration as one would write it: a system, its changed parameters, the strategy, unusual depths."""
    usual = find_system(config.name).config(config.limit).depths
    deep = {depth for name, depth in depths_read(config).items() if depth and depth != usual.get(name, depth)}
    depths = f" at depth {', '.join(map(str, sorted(deep)))}" if deep else ""
    system, _, parameters = written_name(config).rstrip("]").partition("[")
    moved = f" with {parameters}" if parameters else ""
    lead = "" if system in ("plain", str(config.effective)) else f"{system} with "
    return f"{lead}{config.effective}{moved}{depths}"


def settings(config: SearchConfig) -> dict[str, str]:
    """What a search has that its system has not, apart from the strategy; empty without anything.

    >>> settings(find_system("spec_kit[graph.hops=1]").config())
    {'settings': 'graph.hops=1'}
    """
    usual = find_system(config.name).config(config.limit)
    deep = {name: depth for name, depth in depths_read(config).items() if depth != usual.depths.get(name, depth)}
    told = [written_name(config).rstrip("]").partition("[")[2], *(f"{name}.depth={deep[name]}" for name in deep)]
    told += [f"finish={', '.join(map(str, config.finish)) or 'none'}"] if config.finish != usual.finish else []
    text = ", ".join(filter(None, told))
    return {"settings": text} if text else {}


def depths_read(config: SearchConfig) -> dict[str, int | None]:
    """The depth of every retriever whose list the strategy uses."""
    used = config.effective.signals()
    return {name: depth for name, depth in config.depths.items() if name in used}


def in_words(gain: Gain, metric: str, over: str) -> str:
    """A gain in words, with its interval and odds; both are left out where nothing is known of them.

    An interval wider than the range of a metric is nothing known.

    >>> in_words(Gain.of(-0.02, 0.01), "nDCG@10", "against the baseline")
    '-0.020 nDCG@10 against the baseline, 95% sure of -0.040 to 0.000; 1 in 40 that it is better'
    """
    if gain.worse is None:
        sure = ""
    elif tells(gain.low, gain.high):
        sure = f", 95% sure of {_signed(gain.low)} to {_signed(gain.high)}; {odds(gain)}"
    else:
        sure = ", and so few queries say nothing of others"
    return f"{number(gain.mean, signed=True)} {metric} {over}{sure}"


def _signed(end: float) -> str:
    return number(in_range(end), signed=True)


def odds(gain: Gain) -> str:
    """How likely it is that a gain is a loss; of a loss, that it is a gain.

    >>> odds(Gain.of(0.01, 0.01)), odds(Gain.of(-0.01, 0.01))
    ('1 in 6 that it is worse', '1 in 6 that it is better')
    """
    worse = 0.5 if gain.worse is None else gain.worse
    return f"{one_in(min(worse, 1 - worse))} that it is {'worse' if worse <= 0.5 else 'better'}"


def one_in(probability: float) -> str:
    """A probability of at most a half in words: 1 in so many, in one digit from 20 on.

    >>> one_in(0.02), one_in(0.2), one_in(0.38), one_in(0.0019), one_in(0.00001)
    ('1 in 50', '1 in 5', '2 in 5', '1 in 500', 'less than 1 in 1,000')
    """
    if probability < 0.001:
        return "less than 1 in 1,000"
    for least, words in FEW:
        if probability >= least:
            return words
    number = round(1 / probability)
    step = 10 ** (len(str(number)) - 1) if number >= 20 else 1
    return f"1 in {round(number / step) * step:,}"
