"""What a comparison answers: is anything better than the baseline, by how much, how sure, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from steelyard_eval.common.configurations import parted
from steelyard_eval.common.markup import tells
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.paired import MARGIN
from steelyard_eval.measures.spread import ALPHA
from steelyard_eval.recording.steps import (
    NEW,
    WEIGHTS,
    indexing,
    installed_first,
    judging,
    labelling,
    using,
    words_of,
)
from steelyard_eval.result.sentences.forms import NAMED, best_one
from steelyard_eval.result.structs import Answer, Fact, Paired, Row, Said, Step

Words = Mapping[str, str | None]
"""How a command names each contender; None for one that is known in Python alone."""


def answer(
    rows: Sequence[Row],
    baseline: str,
    metric: str,
    dataset: Dataset,
    words: Words,
    options: Mapping[str, object],
    *,
    used: bool = True,
    queries: int = 0,
    model: str = "",
) -> Answer:
    """What is proven, else what gained most over the baseline; why no more can be said, and what to do.

    `options` are those by which another command searches in the same way. `used` says whether the baseline is what
    is used today; `queries` are those with labels, and `model` is of the vectors.
    """
    tested = [(row, row.against) for row in rows if row.against]
    base = next(row for row in rows if row.label == baseline)
    if not tested:
        facts: dict[str, Fact] = {"choice": baseline, "metric": metric, "value": base.means[metric].mean}
        return Answer("alone", facts, steps=_beside_today(dataset, words.get(baseline)))
    row, test = max(tested, key=lambda pair: (pair[1].verdict == "better", pair[1].gain.mean))
    place = "best_of" if test.gain.mean == max(one.gain.mean for _, one in tested) else "one_of"
    vague = test.worse is not None and not _tells(test)
    facts = {
        "choice": row.label,
        "metric": metric,
        "gain": test.gain,
        "worse": None if vague else test.worse,
        "vague": vague,
        "margin": MARGIN,
        "used" if used or len(baseline) > NAMED else "baseline": baseline,
    }
    if len(tested) > 1:
        facts[place] = len(tested)
    if not any(one.wins or one.losses for _, one in tested):
        return Answer("equal", facts)
    if test.verdict == "open" and test.p < ALPHA <= test.p_holm:  # alone it would be told
        facts["tried"] = len(tested)
    tuned = row.tuned and not row.edited
    because = [Said("flattered")] if tuned and not base.tuned and test.verdict != "worse" else []
    because += [test.why] if test.why else []
    wanted = max(0, (test.needed or 0) - queries)
    steps = _steps(test, row, baseline, dataset, words, options, wanted, tuned, model)
    return Answer(test.verdict, facts, because, installed_first(steps), _formula(row, test))


def _tells(test: Paired) -> bool:
    low, high = test.gain.low, test.gain.high
    return low is not None and high is not None and tells(low, high)


def _formula(row: Row, test: Paired) -> str:
    """The strategy that the answer is about; none where its name says it, or where nothing speaks for it."""
    if test.verdict == "worse" or row.kind == "lists" or row.strategy == best_one(row.label):
        return ""
    return row.strategy if row.system in (None, "plain") else f"{row.system} with {row.strategy}"


def _beside_today(dataset: Dataset, word: str | None) -> list[Step]:
    """Where one contender is alone: compare it with what is used."""
    if not word or word == dataset.today:
        return []
    command = words_of("compare", dataset, word, options={"--current": dataset.today})
    return [Step("compare_today", {"today": dataset.today}, command)]


def _steps(
    test: Paired,
    row: Row,
    baseline: str,
    dataset: Dataset,
    words: Words,
    options: Mapping[str, object],
    wanted: int,
    tuned: bool,
    model: str,
) -> list[Step]:
    used, other, verdict = words.get(baseline), words.get(row.label), test.verdict
    if verdict == "open" and used and other:
        if dataset.unlabelled:
            return [judging(dataset, "label_found", used, other, option="--random")]
        return (
            labelling(dataset, wanted or None)
            if dataset.complete
            else [judging(dataset, "label_both", used, other)]
        )
    if verdict == "better" and row.kind == "lists":
        command = words_of("recommend", dataset, options={"--current": other, **options}) if other else []
        return [Step("only_lists", {"more": bool(command)}, command)]
    files = [Path(parted(word)[1]) for word in (other, used) if word and word.endswith(".json")]
    out = NEW if WEIGHTS in files else None  # what was compared is not to be replaced
    key, steps = "find_best" if verdict == "better" else "find_better", []
    if verdict == "better" and other and other.endswith(".json"):
        told = using("search_tuned" if tuned else "search", files[0], dataset)
        steps = [*indexing(files[0], dataset, model), told]
        key, used = "find_better_still", None if tuned else other
    if not used:
        return steps
    return [
        *steps,
        Step(key, {}, words_of("recommend", dataset, options={"--current": used, **options, "--out": out})),
    ]
