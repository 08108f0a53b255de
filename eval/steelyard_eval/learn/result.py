"""What was learned, as a `Result`: the answer with the evidence that decided, and what the log holds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace as changed

import numpy as np

from steelyard.base.arrays import Ints
from steelyard.base.fields import format_time
from steelyard.config import SearchConfig
from steelyard_eval.choose.answer import answer_of
from steelyard_eval.choose.choice import Decided, decide
from steelyard_eval.choose.differences import FEWEST_BOTH
from steelyard_eval.choose.few_labels import fewest_labels
from steelyard_eval.choose.result import decision_of
from steelyard_eval.choose.rule import ALL_FAMILIES
from steelyard_eval.datasets.groups import judged, questions
from steelyard_eval.learn.counts import describe_interleaving, sums
from steelyard_eval.learn.decision import LogDecision
from steelyard_eval.learn.first_ten import PLACES
from steelyard_eval.learn.gains import IMPUTATION_SHARES
from steelyard_eval.learn.joined_log import LogCase
from steelyard_eval.learn.position_bias import FEW_ACTS, RELEVANCE, STEEPEST, FeedbackBias, feedback_biases
from steelyard_eval.recording import next_steps
from steelyard_eval.recording.provenance import TOOL
from steelyard_eval.recording.replay import facts_of
from steelyard_eval.result.structs import (
    Answer,
    Blocker,
    Cell,
    Decision,
    Estimate,
    Fact,
    Message,
    Provenance,
    Result,
    Row,
    Step,
    Table,
    replace,
)

WANTED = 30  # labelled queries that are asked for, where the log has so many
CONTRADICTION_SE = 2.0  # errors by which labels contradict acts
OBJECTIVE = "nDCG@10"
MOST_TOLD = 4  # interleaved rankings that are told of, all of them together being one


def learned(decision: LogDecision) -> Result:
    """Everything that was learned."""
    case, about, offered = decision.case, decision.about, decision.suggested_config
    lists = None if about is None or case.hits.listless else decision.both(about)
    biases = feedback_biases(case.learned.pairs, case.learned.cells, case.space.dataset.qrels)
    best = offered or (case.config if about is None else decision.config(about))
    dataset = case.space.dataset
    return Result(
        kind="learn",
        answer=answer(decision, biases),
        provenance=Provenance(
            tool=TOOL,
            data=facts_of(dataset, len(case.queries), len(decision.labelled or judged(dataset, case.queries))),
            metrics=[OBJECTIVE],
            limit=PLACES,
            baseline=case.label,
            model=case.space.model,
            candidates=len(decision.candidates.grid),
        ),
        rows=[
            Row(case.label, "system", str(case.config.effective)),
            Row("chosen" if offered else "nearest", "strategy", next_steps.describe_config(best)),
        ],
        decision=_decision(decision),
        notices=[*_notices(decision, lists)],
        tables=[table for table in _tables(decision, lists, biases) if table.rows],
    )


def answer(decision: LogDecision, biases: Sequence[FeedbackBias] = ()) -> Answer:
    """What to do: by labels where they decide, else what acts suggest; which evidence decided."""
    because = [*evidence(decision), *contradiction(decision, biases)]
    if decision.recommended is not None:
        told = answer_of(decision.recommended)
        return Answer(told.key, told.facts, [*told.because, *because], told.steps, told.formula)
    case = decision.case
    facts: dict[str, Fact] = {"baseline": case.label, **_seen(case)}
    if case.hits.listless:
        return Answer("learn_no_lists", {**facts, **_acts(case)}, because, [Step("learn_log_lists")])
    if decision.candidate is not None:
        facts["gain"] = float(decision.gains[decision.candidate].mean())
        config = decision.config(decision.candidate)
        draft = next_steps.taking_turns("learn_turns", next_steps.WEIGHTS, case.space.dataset)
        return Answer("learn_try", facts, because, [*_tried(case), draft], next_steps.describe_config(config))
    if won := case.interleaved(preferred=True):
        result, config = won[0]
        return Answer(
            "learn_preferred", {**facts, **result.share}, because, _tried(case), next_steps.describe_config(config)
        )
    return Answer("learn_nothing", facts, because, [judge_log(case, "settle")])


def adaptive(case: LogCase, chosen: SearchConfig, counted: dict[str, float]) -> Answer:
    """What Soleri's rule would do, which proves nothing."""
    counts = [f"{count} {name}" for name, count in counted.items() if name != "rate"]
    same = chosen == case.config
    facts: dict[str, Fact] = {"baseline": case.label, "same": same, "other": not same, "counts": counts or None}
    steps = [] if same else next_steps.to_do("try", [judge_log(case)], case.space.dataset, case.space.model)
    return Answer("learn_adaptive", facts, steps=steps, formula=next_steps.describe_config(chosen))


def judge_log(case: LogCase, purpose: str = "") -> Step:
    """Judge what would decide: queries of the log, then others; `purpose` is settle, decide or empty."""
    dataset, fewest = case.space.dataset, fewest_labels(case.config)
    asked = [case.queries[at] for at in np.unique(case.learned.cells.queries).tolist()]
    known, left = questions(judged(dataset, dataset.queries)), len(asked) - len(judged(dataset, asked))
    if known >= fewest:
        return Step("learn_by_labels", {"labelled": known, "adaptive": not purpose, "unused": bool(purpose)})
    if left:
        count = min(WANTED, left)
        others, facts = fewest - known - count, dict[str, Fact](count=count)
        facts |= {"others": others, "fewest": fewest} if others > 0 else {purpose: True} if purpose else {}
        options = {"--from-log": True, "--feedback": case.file or None}
        return Step("learn_judge_log", facts, next_steps.words_of("judge", dataset, options=options))
    return next_steps.label_more_step(dataset, fewest - known, "decide")[0]


def _tried(case: LogCase) -> list[Step]:
    return next_steps.to_do("try", [judge_log(case, "decide")], case.space.dataset, case.space.model)


def _seen(case: LogCase) -> dict[str, Fact]:
    return {"searches": case.log.census.impressions, "distinct": len(case.learned.cells.queries)}


def _acts(case: LogCase) -> dict[str, Fact]:
    return {"acts": round(float(case.hits.acts.sum()))}


def evidence(decision: LogDecision) -> Iterator[Message]:
    """Which evidence decided; nothing where there are no labels."""
    case, recommended = decision.case, decision.recommended
    if recommended is None:
        if decision.few:
            yield Message(
                "learn_few_labels", {"labelled": decision.few, "fewest": fewest_labels(decision.case.config)}
            )
        return
    logged, others = len(decision.logged), decision.others
    facts: dict[str, Fact] = {"labelled": len(decision.labelled)}
    if recommended.choice.second is not None and decision.share:
        worth = recommended.choice.effective_n(decision.about or 0)
        more = round(worth) > len(decision.labelled)
        facts |= {"worth": worth if more else None, "idle": not more, "share": decision.share}
        yield Message("learn_worth", {**facts, **_seen(case)})
        yield without_feedback(recommended)
    elif recommended.choice.second is not None:
        yield Message("learn_chance", {**facts, **_seen(case), "logged": logged})
    elif case.hits.listless:
        yield Message("learn_listless", facts)
    elif logged < FEWEST_BOTH:
        some = {"none": not logged, "one": logged == 1, "logged": logged if logged > 1 else None}
        yield Message("learn_unlogged", {**facts, **some, "takes": FEWEST_BOTH})
    else:
        yield Message("learn_unheld", {**facts, "logged": logged, "one": bool(others), "none": not others})


def without_feedback(decided: Decided) -> Message:
    """What `recommend` says by the labels alone."""
    alone, made = decide(changed(decided.choice, second=None, gates=ALL_FAMILIES)), decided.ruling
    same = (alone.ruling.verdict, alone.ruling.candidate) == (made.verdict, made.candidate)
    formula = next_steps.describe_config(alone.picked) if alone.picked else None
    return Message(
        "learn_alone", {"same": True} if same else {"verdict": alone.ruling.verdict, "strategy": formula}
    )


def contradiction(decision: LogDecision, biases: Sequence[FeedbackBias]) -> Iterator[Message]:
    """That labels contradict what acts say of their favourite by two errors, and why."""
    recommended, favourite = decision.recommended, decision.favourite
    if recommended is None or recommended.choice.second is None or favourite is None:
        return
    second = recommended.choice.second
    labels = recommended.choice.scored_with(None).metric[favourite][second.at].astype(float)
    short = labels - second.labelled[favourite]
    error = float(short.std(ddof=1)) / len(short) ** 0.5
    if short.mean() + CONTRADICTION_SE * error >= 0:
        return
    facts: dict[str, Fact] = {
        "queries": len(short),
        "strategy": next_steps.describe_config(decision.config(favourite)),
        "by_acts": float(second.labelled[favourite].mean()),
        "by_labels": float(labels.mean()),
    }
    followed = [bias for bias in biases if bias.label != RELEVANCE and bias.followed]
    if followed:
        most = max(followed, key=lambda bias: bias.delta)
        facts |= {"follows": most.label, "times": float(np.exp(most.delta))}
    yield Message("learn_contradicted", facts)


def _decision(decision: LogDecision) -> Decision:
    """The decision of labels, or that of acts, which promises nothing."""
    if decision.recommended is not None:
        found = decision_of(decision.recommended)
        return replace(found, more=decision.recommended.ruling.more, public=False)
    if decision.case.hits.listless:
        return Decision("keep", blocker=Blocker("learn_no_lists", _acts(decision.case), remedy="learn_log_lists"))
    return Decision("keep" if decision.suggested_config is None else "try")


def _notices(decision: LogDecision, lists: Ints | None) -> Iterator[Message]:
    case, census = decision.case, decision.case.log.census
    shows = sums(case.learned.cells.query, case.learned.cells.shown)
    worth = float(shows.sum() ** 2 / max(float((shows**2).sum()), 1e-12))
    days = [None if time is None else format_time(time)[:10] for time in (census.first_time, census.last_time)]
    facts: dict[str, Fact] = {
        "worth": worth if round(worth) < len(shows) < census.impressions else None,
        "acts": census.acts,
        "first": days[0],
        "last": days[1],
    }
    facts |= {"lines": census.lines, "disordered": census.disordered, "simulated": census.simulated}
    if census.simulated:
        yield Message("learn_simulated")
    yield Message("learn_log", {**_seen(case), **facts})
    counts = case.log.clients
    largest = max(counts.values(), default=0) / max(sum(counts.values()), 1)
    yield Message("learn_clients", {"clients": len(counts), "largest": largest})
    if lists is not None:
        yield Message("learn_places", _places(case))
        yield Message("learn_unseen", {"unseen": decision.learned.unseen(lists[1])})
    yield from (describe_interleaving(turn, case.log.configurations) for turn in case.log.turns[:MOST_TOLD])


def _places(case: LogCase) -> dict[str, Fact]:
    """How much less the tenth place is looked at than the first, and how that is known."""
    bias, acts = case.learned.bias, case.log.census.acts
    known = bool(np.isfinite(bias.error))
    facts: dict[str, Fact] = {"tenth": 10**-bias.exponent, "exponent": bias.exponent}
    facts |= {"source": bias.source, "error": bias.error if known else None}
    if bias.source == "given":
        return {**facts, "given": True}
    if not known or acts < FEW_ACTS:
        return {**facts, "few": acts}
    for name, errors in (("least", 2), ("most", -2)):
        facts[name] = 10 ** -float(np.clip(bias.exponent + errors * bias.error, 0, STEEPEST))
    return {**facts, bias.source: True}


def _tables(decision: LogDecision, lists: Ints | None, biases: Sequence[FeedbackBias]) -> Iterator[Table]:
    """What was learned, in numbers; `lists` are today's and the candidate's that is looked at closely."""
    case, classes = decision.case, decision.case.learned.classes
    yield Table("gains", ["by", "queries", "imputed", "gain_by", "error", "refit"], _gains(decision, lists))
    if lists is not None:
        counts, lifts = case.learned.cells.by_kind(), classes.strengths(case.learned.cells)
        kinds: list[list[Cell]] = [[kind, counts[kind], lifts[kind]] for kind in counts]
        yield Table("acts", ["act", "acts", "lift"], kinds, {"lift": classes.lift})
        rates = zip(classes.relevant.sum(axis=1).tolist(), classes.other.sum(axis=1).tolist(), strict=True)
        yield Table("places", ["place", "relevant", "irrelevant"], [[i, *of] for i, of in enumerate(rates, 1)])
    follows: list[list[Cell]] = [[bias.label, Estimate(bias.delta, *bias.ends)] for bias in biases]
    yield Table("follows", ["follows", "log_odds"], follows)
    lines: list[list[Cell]] = [[n, rule, ", ".join(map(str, first))] for n, rule, first in case.log.census.ordered]
    yield Table("rejected", ["rejected", "rule", "lines"], lines)


def _gains(decision: LogDecision, lists: Ints | None) -> list[list[Cell]]:
    """What labels say of one candidate, alone and sharpened by acts, then what acts say in every view."""
    rows: list[list[Cell]] = []
    recommended, about = decision.recommended, decision.about
    if recommended is not None and about is not None:
        sides = [("by_labels", len(decision.labelled), recommended.choice.scored_with(None).of_metric)]
        sides += [("by_both", decision.others, recommended.choice.scored.of_metric)] if decision.share else []
        rows += [[by, n, None, float(of.mean[about]), float(of.deviation[about]), None] for by, n, of in sides]
    if lists is not None:
        seen = decision.learned.views(lists)
        for view, share in enumerate(IMPUTATION_SHARES):
            refit = float(seen.refit[view]) if view else None
            rows.append(["by_acts", None, share, float(seen.gain[view]), float(seen.error[view]), refit])
    return rows
