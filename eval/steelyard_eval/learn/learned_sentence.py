"""The first lines of what was learned: what to do, which evidence decided, and where the two contradict."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.config.search_config import SearchConfig
from steelyard_eval.common.answer import Conclusion, Step, name_of
from steelyard_eval.common.markup import counted
from steelyard_eval.decide.few_labels import WITH_A_LOG
from steelyard_eval.decide.prediction_powered import FEWEST
from steelyard_eval.decide.refusal import Refusal
from steelyard_eval.decide.steps import WEIGHTS, judging, taking_turns, to_do
from steelyard_eval.decide.wording import named
from steelyard_eval.learn.case import LogCase
from steelyard_eval.learn.decided import LogDecision
from steelyard_eval.learn.follows import Follows, warning
from steelyard_eval.learn.interleaving import Duel
from steelyard_eval.measures.paired import exact_interval

WANTED = 30
"""Labelled queries that are asked for, where the log has so many."""
SURE = 2.0
"""Errors by which labels contradict acts."""


def ask(case: LogCase, purpose: str = "") -> Step:
    """What would decide."""
    count = min(WANTED, len(case.cells.queries))
    words = ["--from-log", *(["--feedback", case.file] if case.file else [])]
    return judging(case.space.dataset, f"judge {count} queries of the log, drawn at random{purpose}", *words)


def answer(decision: LogDecision) -> Conclusion:
    """What to do: by labels where they decide, else what acts suggest."""
    case = decision.case
    if decision.recommended is not None:
        return decision.recommended.answer
    today = name_of(case.label)
    if case.listless:
        refusal = unlisted(case)
        return Conclusion(f"Keep {today}: {refusal.reason}.", (Step(refusal.remedy),))
    seen = f"{case.log.census.impressions:,} searches of {len(case.cells.queries)} distinct queries"
    if decision.candidate is None:
        if won := case.interleaved(preferred=True):
            return _preferred(decision, *won[0])
        told = f"Keep {today}: no candidate gains in every view of {seen}."
        return Conclusion(told, (ask(case, " to settle it"),))
    gain = float(decision.gains[decision.candidate].mean())
    told = f"Try: acts in {seen} say {gain:+.3f} nDCG@10 over {today}, and may follow something else than worth."
    steps = to_do("try", ask(case, ", and they decide"), case.space.dataset, case.space.model)
    return Conclusion(told, (*steps, _turns(decision)), named(decision.config(decision.candidate)))


def _preferred(decision: LogDecision, duel: Duel, config: SearchConfig) -> Conclusion:
    """A try of the ranking whose entries were acted upon more often where both took turns."""
    low, high = exact_interval(duel.wins, duel.decided)
    share = f"{duel.wins / duel.decided:.0%} [{low:.0%}, {high:.0%}] of {duel.decided:,} decided searches"
    case = decision.case
    told = f"Try: taking turns with {name_of(case.label)} it won {share}. Acts may follow something else."
    steps = to_do("try", ask(case, ", and they decide"), case.space.dataset, case.space.model)
    return Conclusion(told, steps, named(config))


def _turns(decision: LogDecision) -> Step:
    """To let a try and what is used today take turns, for acts to decide between them."""
    told = "or let both take turns, which tells what agents prefer"
    return Step(told, taking_turns(WEIGHTS, decision.case.space.dataset))


def evidence(decision: LogDecision) -> str:
    """Which evidence decided; empty where there are no labels."""
    case = decision.case
    searches = f"{case.log.census.impressions:,} searches of {len(case.cells.queries)} distinct queries"
    if decision.recommended is not None:
        return _decided(decision, searches)
    labels = counted(decision.few, "different query has labels", "different queries have labels")
    return f"{labels}; labels decide from {WITH_A_LOG} on." if decision.few else ""


def _decided(decision: LogDecision, searches: str) -> str:
    """Which evidence decided."""
    count, case = len(decision.labelled), decision.recommended
    if case is None or case.second is None:
        return f"{count} labelled queries decided; learn did not use the log: {_unused(decision)}."
    if decision.share == 0:
        logged = counted(len(decision.logged), "labelled query", "labelled queries")
        return (
            f"{count} labelled queries decided; learn did not use the log: on the {logged} in it the acts in "
            f"{searches} agree with the labels no more than chance explains."
        )
    return (
        f"{count} labelled queries decided; the acts in {searches} make them worth about {decision.worth:.0f} "
        f"(share {decision.share:.2f})."
    )


def _unused(decision: LogDecision) -> str:
    """Why acts were not held against labels."""
    logged, labelled, others = len(decision.logged), len(decision.labelled), decision.others
    if decision.case.listless:
        return "it has acts on single entries, and no result lists"
    if logged < FEWEST:
        found = f"only {logged}" if logged else "none"
        was = "was" if logged < 2 else "were"
        return f"{found} of the {labelled} labelled queries {was} logged, and it takes {FEWEST}"
    left = "only one other logged query has" if others else "no other logged query has"
    return f"{logged} of the {labelled} labelled queries were logged, but {left} a question of its own; it takes 2"


def unlisted(case: LogCase) -> Refusal:
    """Why acts on single entries say nothing."""
    return Refusal(
        f"the log has {case.hits.tally.acts.sum():,.0f} acts on single entries, and not the lists that they were "
        "in, so it says nothing about weights",
        "log what your search shows, or label 20 queries",
    )


def contradiction(decision: LogDecision, cause: Sequence[Follows]) -> str:
    """That labels contradict what acts say of their favourite by two errors, and why; empty where they do not."""
    case, favourite = decision.recommended, decision.favourite
    if case is None or case.second is None or favourite is None:
        return ""
    second = case.second
    labels = case.labels_alone.metric[favourite][second.at].astype(float)
    short = labels - second.labelled[favourite]
    error = float(short.std(ddof=1)) / len(short) ** 0.5
    if short.mean() + SURE * error >= 0:
        return ""
    told = (
        f"Labels contradict the acts: on {len(short)} labelled queries {named(decision.config(favourite))} gains "
        f"{second.labelled[favourite].mean():+.3f} by the acts, and {labels.mean():+.3f} by the labels"
    )
    why = warning(list(cause))
    return f"{told}. For {why}." if why else f"{told}."
