"""The answer that a choice is: a key with its facts, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard_eval.choose.blockers import DRAWN
from steelyard_eval.choose.choice import Choice
from steelyard_eval.choose.few_labels import Advice
from steelyard_eval.choose.restriction import RestrictionCost
from steelyard_eval.choose.rule import Ruling
from steelyard_eval.common.markup import tells
from steelyard_eval.datasets import Dataset
from steelyard_eval.recording.steps import WEIGHTS, beside, drawing, exporting, judging, labelling, named, to_do
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Answer, Blocker, Fact, Said, Step, replace

MIN_P_LOSS_PERHAPS = 0.3  # odds of a loss from which on a gain is no longer called likely
MAX_SENTENCE_CHARS = 200  # characters of a sentence, which has no formula


def answer_of(choice: Choice, empty: bool = False) -> Answer:
    """Verdict, gain and odds; what to do; the formula. `empty`: nothing that was tried finds anything."""
    dataset, model = choice.source.dataset, choice.source.model
    written = choice.picked or choice.instead
    formula = "" if written is None else named(written)
    if choice.public:
        return advised(choice.advice, dataset, formula, model, choice.restriction_cost)
    decision, label, fewest = choice.decision, choice.current.label, choice.prior.min_queries_to_report
    said = said_of(decision, label, str(choice.metric), choice.labelled, fewest)
    last = _settling(dataset, decision.verdict, decision.blocker, decision.more)
    if empty and decision.verdict == "keep":
        said, last = Said("keep_nothing_found", {"current": label}), [Step("check_language")]
    steps = to_do(decision.verdict, last, dataset, model)
    return restricted(Answer(said.key, said.facts, [], steps, formula), choice.restriction_cost, decision.verdict)


def is_stated(decision: Ruling, asked: int, fewest: int) -> bool:
    """Whether the gain is printed: of what ships, from so many different labelled queries on."""
    return decision.verdict == "ship" and asked >= fewest


def said_of(decision: Ruling, current: str, metric: str, asked: int = 0, fewest: int = 0) -> Said:
    """What is said of a decision; the gain is left open where `asked` different queries are less than `fewest`."""
    gain, facts = decision.gain, {"current": current, "metric": metric}
    worse = 0.5 if gain.worse is None else gain.worse
    if is_stated(decision, asked, fewest):
        vague = gain.worse is not None and not tells(gain.low, gain.high)
        shown: dict[str, Fact] = {"gain": gain.shown(-1.0), "vague": vague, "worse": None if vague else gain.worse}
        return Said("ship", {**facts, **shown})
    if decision.verdict == "ship":
        return Said("ship_unstated", {**facts, "worse": worse, "fewest": fewest, "asked": asked})
    if decision.verdict == "keep":
        return Said("keep", {**facts, "bound": decision.bound})
    if decision.blocker:
        said = Said(f"try_{decision.blocker.key}", decision.blocker.facts)
        return said if len(say(said)) <= MAX_SENTENCE_CHARS else Said("try_blocked")
    likely = "try_likely" if worse <= MIN_P_LOSS_PERHAPS else "try_perhaps"
    return Said("try_aside" if worse > 0.5 else likely, {**facts, "worse": worse})


def _settling(dataset: Dataset, verdict: str, blocker: Blocker | None, more: int | None) -> Sequence[Step]:
    """What would settle the rest."""
    if blocker is None:
        return labelling(dataset, more, "settle" if verdict == "try" else "halve")
    if blocker.remedy in DRAWN:
        return [drawing(dataset, blocker.remedy, **blocker.facts)]
    return [Step(blocker.remedy, blocker.facts)]


def advised(
    advice: Advice, dataset: Dataset, formula: str, model: str, cost: RestrictionCost | None = None
) -> Answer:
    """What to do without proof; `formula` is what is worth trying, `model` of the vectors."""
    if advice.pairs:
        last = [judging(dataset, "judge_more_pairs", pairs=advice.more)]
    elif advice.labels_needed:
        last = labelling(dataset, advice.labels_needed, "decide")
    else:
        last = [judging(dataset, "judge_pairs" if dataset.queries else "write_and_judge", pairs=dataset.pairs)]
    steps = to_do(advice.verdict, last, dataset, model)
    made = Answer(advice.said.key, advice.said.facts, [], steps, formula)
    return restricted(made, cost, advice.verdict)


def restricted(answer: Answer, cost: RestrictionCost | None, verdict: str) -> Answer:
    """An answer with the cost of a restriction, and the command that writes what was chosen for the target."""
    if cost is None:
        return answer
    kept_out = verdict == "keep" and cost.not_allowed is not None  # what is used cannot be written
    above = [Said("best_allowed")] if kept_out and answer.formula else []
    steps = for_target(answer.steps, cost.restriction.target, verdict, kept_out)
    return replace(answer, because=[*answer.because, *above, cost.said()], steps=steps)


def for_target(steps: Sequence[Step], target: str, verdict: str, kept_out: bool = False) -> list[Step]:
    """Steps of a choice that is written for a target; it is searched there, not here."""
    if not target:
        return list(steps)
    path = beside(WEIGHTS) if kept_out or verdict not in ("ship", "keep") else WEIGHTS
    written = exporting("export_best" if kept_out else "export", path, target)
    return [written, *(() if verdict == "ship" else steps[-1:])]
