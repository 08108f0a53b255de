"""The answer that a decision is, in words."""

from __future__ import annotations

from steelyard_eval.choose.blockers import DRAWN
from steelyard_eval.choose.rule import Decision
from steelyard_eval.common.answer import LONGEST, Conclusion, Step, name_of
from steelyard_eval.datasets import Dataset
from steelyard_eval.decide.steps import drawing, labelling, to_do
from steelyard_eval.decide.wording import in_words, odds
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Said

PERHAPS = 0.3
"""Odds of a loss from which on a gain is no longer called likely."""


def is_stated(decision: Decision, queries: int, fewest: int) -> bool:
    """Whether the gain is printed: of what ships, from so many labelled queries on."""
    return decision.verdict == "ship" and queries >= fewest


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
    if why := decision.blocker:
        remedy = say(Said(why.remedy, why.facts))
        return drawing(dataset, remedy) if why.remedy in DRAWN else Step(remedy)
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
    if decision.verdict == "try" and decision.blocker:
        reason = f"Try: not proven, because {say(decision.blocker)}."
        return reason if len(reason) <= LONGEST else "Try: not proven, because these labels cannot carry it."
    if decision.verdict == "try" and (decision.gain.worse or 0) > 0.5:
        lost = f"though it did worse on queries kept aside (by those, {odds(decision.gain)})"
        return f"Try: your labels and public collections favour it over {name}, {lost}."
    if decision.verdict == "try":
        sure = "likely" if (decision.gain.worse or 0) <= PERHAPS else "perhaps"
        return f"Try: {sure} better than {name} ({odds(decision.gain)}), not proven."
    return f"Keep {name}: nothing that was tried beats it by more than {decision.bound:.3f} {metric} (95% sure)."
