"""The words of an answer: what to do, what to expect of it, how sure that is; how a configuration is written."""

from __future__ import annotations

from steelyard.config.search_config import SearchConfig
from steelyard.systems import find_system, written_name
from steelyard_eval.common.answer import LONGEST, Conclusion, Step, name_of
from steelyard_eval.common.documents.parts import SettingsPart
from steelyard_eval.common.markup import in_range, number, tells
from steelyard_eval.datasets import Dataset
from steelyard_eval.decide.decision import Decision
from steelyard_eval.decide.promise import Gain
from steelyard_eval.decide.steps import drawing, labelling, to_do

PERHAPS = 0.3
"""Odds of a loss from which on a gain is no longer called likely."""
FEW = ((0.45, "1 in 2"), (0.3667, "2 in 5"), (0.2917, "1 in 3"))
"""Odds near even, down to halfway to the next."""


def is_stated(decision: Decision, queries: int, fewest: int) -> bool:
    """Whether the gain is printed: of what ships, from so many labelled queries on."""
    return decision.verdict == "ship" and queries >= fewest


def named(config: SearchConfig) -> str:
    """A configuration as one would write it: a system, its changed parameters, the strategy, unusual depths."""
    usual = find_system(config.name).config(config.limit).depths
    deep = {depth for name, depth in depths_read(config).items() if depth and depth != usual.get(name, depth)}
    depths = f" at depth {', '.join(map(str, sorted(deep)))}" if deep else ""
    system, _, parameters = written_name(config).rstrip("]").partition("[")
    moved = f" with {parameters}" if parameters else ""
    lead = "" if system in ("plain", str(config.effective)) else f"{system} with "
    return f"{lead}{config.effective}{moved}{depths}"


def settings(config: SearchConfig) -> SettingsPart:
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


def answer_of(
    decision: Decision,
    dataset: Dataset,
    current: str,
    metric: str,
    asked: int,
    fewest: int,
    formula: str,
    model: str,
) -> Conclusion:
    """The answer that a decision is; `asked` and `fewest` as for `sentence`, `model` is of the vectors."""
    steps = to_do(decision.verdict, _last(decision, dataset), dataset, model)
    return Conclusion(sentence(decision, current, metric, asked, fewest), steps, formula)


def _last(decision: Decision, dataset: Dataset) -> Step:
    """What would settle the rest."""
    if why := decision.refusal:
        return drawing(dataset, why.remedy) if why.wants_queries else Step(why.remedy)
    return labelling(dataset, decision.more, " to settle it" if decision.verdict == "try" else " to halve that")


def sentence(decision: Decision, current: str, metric: str, asked: int = 0, fewest: int = 0) -> str:
    """One sentence to act on; the gain is left open where `asked` different queries are less than `fewest`.

    >>> decision = Decision("ship", 3, Gain.of(0.0612, 0.0211), 0.1, None)
    >>> sentence(decision, "echovault", "nDCG@10")
    'Ship: +0.061 nDCG@10 expected over your echovault, 95% sure of +0.020 to +0.103; 1 in 500 that it is worse.'
    """
    name = name_of(current)
    if is_stated(decision, asked, fewest):
        return f"Ship: {in_words(decision.gain, metric, f'expected over {name}')}."
    if decision.verdict == "ship":
        likely = f"better than {name} ({odds(decision.gain)})"
        return f"Ship: {likely}; it takes {fewest} different labelled queries to say by how much ({asked} now)."
    if decision.verdict == "try" and decision.refusal:
        reason = f"Try: not proven, because {decision.refusal.reason}."
        return reason if len(reason) <= LONGEST else "Try: not proven, because these labels cannot carry it."
    if decision.verdict == "try" and (decision.gain.worse or 0) > 0.5:
        lost = f"though it did worse on queries kept aside (by those, {odds(decision.gain)})"
        return f"Try: your labels and public collections favour it over {name}, {lost}."
    if decision.verdict == "try":
        sure = "likely" if (decision.gain.worse or 0) <= PERHAPS else "perhaps"
        return f"Try: {sure} better than {name} ({odds(decision.gain)}), not proven."
    return f"Keep {name}: nothing that was tried beats it by more than {decision.bound:.3f} {metric} (95% sure)."


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
