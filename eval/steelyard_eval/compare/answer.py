"""What a comparison answers, and what a reader has to know with it.

Is anything better than the baseline, by how much, how sure, and what to do; the notices are on too few queries,
unjudged hits, queries that vary together, and LSA.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.embedders.embed import installed
from steelyard.memory.query import Query
from steelyard_eval.common.configurations import split_label
from steelyard_eval.common.formatting import tells
from steelyard_eval.compare.buried import PLACES
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.lists_and_latency import Made, Runner
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import components, lack_groups, nearly, unit_numbers
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.measures.metrics import Measure, known_mean
from steelyard_eval.measures.paired import MARGIN
from steelyard_eval.measures.spread import ALPHA
from steelyard_eval.recording import next_steps
from steelyard_eval.recording.provenance import overlap_notice
from steelyard_eval.result.sentences import MAX_NAME_CHARS, best_one
from steelyard_eval.result.structs import Answer, Fact, Message, Paired, Row, Step

MIN_QUERIES_TO_COMPARE = 25
MAX_USEFUL_MDE = 0.1
MISLEADING_JUDGED_DIFFERENCE = 0.05
JUDGED = Measure("Judged", 10)
Values = Mapping[str, Floats]  # label -> float64[Q] of one metric
Words = Mapping[str, str | None]  # how a command names each contender; None for one that is known in Python alone


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
    base, word = next(row for row in rows if row.label == baseline), words.get(baseline)
    if not tested:
        facts: dict[str, Fact] = {"choice": baseline, "metric": metric, "value": base.means[metric].mean}
        if not word or word == dataset.today:
            return Answer("alone", facts)
        command = next_steps.words_of("compare", dataset, word, options={"--current": dataset.today})
        return Answer("alone", facts, steps=[Step("compare_today", {"today": dataset.today}, command)])
    row, test = max(tested, key=lambda pair: (pair[1].verdict == "better", pair[1].gain.mean))
    low, high = test.gain.low, test.gain.high
    vague = test.worse is not None and (low is None or high is None or not tells(low, high))
    facts = {
        "choice": row.label,
        "metric": metric,
        "gain": test.gain,
        "worse": None if vague else test.worse,
        "vague": vague,
        "margin": MARGIN,
        "used" if used or len(baseline) > MAX_NAME_CHARS else "baseline": baseline,
    }
    if len(tested) > 1:
        place = "best_of" if test.gain.mean == max(one.gain.mean for _, one in tested) else "one_of"
        facts[place] = len(tested)
    else:
        facts["single"] = row.label
    if not any(one.wins or one.losses for _, one in tested):
        return Answer("equal", facts)
    if test.verdict == "open" and test.p < ALPHA <= test.p_holm:  # alone it would be told
        facts["tried"] = len(tested)
    flattered = row.tuned and not row.edited and not base.tuned and test.verdict != "worse"
    because = [*([Message("flattered")] if flattered else []), *([test.why] if test.why else [])]
    wanted = max(0, (test.needed or 0) - queries)
    steps = _steps(test, base, row, (word, words.get(row.label)), dataset, options, wanted, model)
    formula = row.strategy if row.system in (None, "plain") else f"{row.system} with {row.strategy}"
    if (
        test.verdict == "worse"
        or row.kind == "lists"
        or row.strategy in (best_one(row.label), facts.get("single"))
    ):
        formula = ""  # nothing speaks for it, or its name says it
    elif len(tested) > 1:
        formula = f"{row.label}: {formula}"
    return Answer(test.verdict, facts, because, next_steps.installed_first(steps), formula)


def _steps(
    test: Paired,
    base: Row,
    row: Row,
    words: tuple[str | None, str | None],
    dataset: Dataset,
    options: Mapping[str, object],
    wanted: int,
    model: str,
) -> list[Step]:
    (used, other), verdict, tuned = words, test.verdict, row.tuned and not row.edited
    if verdict == "open" and used and other:
        if dataset.unlabelled:
            return [next_steps.label_step(dataset, "label_found", used, other, option="--random")]
        labelled = [one.means[str(JUDGED)].mean for one in (base, row) if str(JUDGED) in one.means]
        if dataset.complete or labelled == [1, 1]:
            return next_steps.label_more_step(dataset, wanted or None)
        return [next_steps.label_step(dataset, "label_both", used, other)]
    if verdict == "better" and row.kind == "lists":
        command = (
            next_steps.words_of("recommend", dataset, options={"--current": other, **options}) if other else []
        )
        return [Step("only_lists", {"more": bool(command)}, command)]
    files = [Path(split_label(word)[1]) for word in (other, used) if word and word.endswith(".json")]
    out = next_steps.NEW if next_steps.WEIGHTS in files else None  # what was compared is not to be replaced
    key, steps = "find_best" if verdict == "better" else "find_better", []
    if verdict == "better" and other and other.endswith(".json"):
        told = next_steps.using("search_tuned" if tuned else "search", files[0], dataset)
        steps = [*next_steps.indexing(files[0], dataset, model), told]
        key, used = "find_better_still", None if tuned else other
    if not used:
        return steps
    command = next_steps.words_of("recommend", dataset, options={"--current": used, **options, "--out": out})
    return [*steps, Step(key, {}, command)]


def of_lists(
    arena: Runner,
    made: Sequence[Made],
    judged: Sequence[Query],
    measures: Sequence[Measure],
    limit: int,
    timed: bool,
) -> Iterator[Message]:
    """On the data and on how the contenders ran; `judged` are the queries whose labels are used."""
    yield from (Message("plain_text", {"text": text}) for text in arena.source.dataset.notices)
    yield from (said for one in made for said in one.notices)
    for one in made:
        if judged and isinstance(one.contender, Contender):
            yield from overlap_notice(one.label, one.contender.config, arena.source.dataset, judged)
    if counts := [f"{one.label} {one.empty}" for one in made if one.empty]:
        yield Message("empty", {"queries": len(made[0].ranked.queries), "counts": counts})
    if cut := [str(measure) for measure in measures if (measure.cutoff or 0) > limit]:
        yield Message("shallow", {"limit": limit, "metrics": cut})
    yield from held({one.label: one.ranked for one in made}, measures, arena.source.dataset, limit)
    yield from arena.notices(made, timed)


def held(
    lists: Mapping[str, Ranked], measures: Sequence[Measure], dataset: Dataset, limit: int
) -> Iterator[Message]:
    """How many entries the tokens of a measure hold of each list, in the median query, or that they hold all.

    Lists are longer for such a measure, and a system may look deeper for longer lists.
    """
    for tokens in dict.fromkeys(measure.tokens for measure in measures if measure.tokens):
        within = {label: np.diff(own.within(tokens, dataset.tokens).offsets) for label, own in lists.items()}
        cut = any((sizes < np.diff(lists[label].offsets)).any() for label, sizes in within.items())
        counts = [f"{label} {median(sizes.tolist()):g}" for label, sizes in within.items()]
        facts: dict[str, Fact] = {"tokens": tokens, "counts": counts, "limit": limit if limit > PLACES else None}
        yield Message("held" if cut else "all_held", facts)


def of_values(
    dataset: Dataset,
    queries: Sequence[Query],
    values: Mapping[str, Mapping[str, Floats]],
    metric: str,
    baseline: str,
    tests: Iterable[Paired],
    model: str,
    proven: bool = False,
) -> list[Message]:
    """On what so few queries, and hits without labels, can hide, most important first.

    `values` are by label and metric. Where a gain is `proven`, what so few queries miss matters no more, and where
    everything is judged, an unjudged hit is not relevant.
    """
    primary, judged = (
        {label: own[name] for label, own in values.items() if name in own} for name in (metric, str(JUDGED))
    )
    return [
        *without_relevant(dataset, queries, metric),
        *([] if proven else few(queries, tests)),
        *one_scope(queries, primary, baseline),
        *nearly(queries),
        *([] if dataset.complete else unjudged(judged, baseline)),
        *lsa(model),
    ]


def without_relevant(dataset: Dataset, queries: Sequence[Query], metric: str) -> list[Message]:
    """How many labelled queries no list can answer, and the most that the mean can be for them."""
    none = [query.id for query in queries if not any(dataset.qrels[query.id].values())]
    facts: dict[str, Fact] = {"none": len(none), "queries": len(queries), "metric": metric, "ids": none}
    return [Message("without_relevant", {**facts, "most": 1 - len(none) / len(queries)})] if none else []


def few(queries: Sequence[Query], tests: Iterable[Paired]) -> list[Message]:
    """What so few queries miss; how many to label is the answer's to say."""
    shown = [test for test in tests if test.detectable]
    many = len(set(unit_numbers(queries).tolist())) >= MIN_QUERIES_TO_COMPARE
    if not shown:
        return [] if many else [Message("tell_little", {"queries": len(queries)})]
    best = max(shown, key=lambda test: test.gain.mean).detectable or 0.0
    if many and best <= MAX_USEFUL_MDE:
        return []
    return [Message("few_queries", {"queries": len(queries), "detectable": best})]


def one_scope(queries: Sequence[Query], values: Values, baseline: str) -> list[Message]:
    """Queries that share a scope vary together without being declared a group.

    How many independent queries they are worth is the median over the contenders, of their differences from the
    baseline, with everything that varies together as one.
    """
    if not lack_groups(queries):
        return []
    first: dict[str, int] = {}
    base, unit = values[baseline], unit_numbers(queries).tolist()
    ends = [(unit[first.setdefault(str(query.filters), i)], unit[i]) for i, query in enumerate(queries)]
    unit = components(ends, len(unit))[unit]
    differences = [column - base for label, column in values.items() if label != baseline] or [base]
    worth = float(median(effective_number(difference, unit) for difference in differences))
    facts: dict[str, Fact] = {"queries": len(queries), "worth": worth, "scopes": len(first)}
    return [Message("scopes", facts)] if worth <= 0.9 * len(queries) else []


def effective_number(values: Floats, groups: Sequence[str] | Indices) -> float:
    """N over the design effect: the variance of the mean over whole groups, beside that of independent queries.

    Kish, Survey Sampling (1965), 5.4; at most n, and 1 for a single group.
    """
    n = len(values)
    _, code, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if len(counts) < 2:
        return 1.0
    alone = float(values.var(ddof=1)) / n
    away = np.bincount(code, values) - values.mean() * counts
    together = float((away**2).sum()) * len(counts) / (len(counts) - 1) / n**2
    return n * min(1.0, alone / together) if together > 0 else float(n)


def unjudged(judged: Values, baseline: str) -> list[Message]:
    """Contenders whose first ten hits are judged less often than the baseline's, and the reverse."""
    share = {label: known_mean(column) for label, column in judged.items() if np.isfinite(column).any()}
    if (base := share.pop(baseline, None)) is None:
        return []
    fewer = [label for label, value in share.items() if value < base - MISLEADING_JUDGED_DIFFERENCE]
    more = [label for label, value in share.items() if value > base + MISLEADING_JUDGED_DIFFERENCE]
    if not fewer and not more:
        return []
    facts: dict[str, Fact] = {"share": base, "baseline": baseline, "fewer": fewer or None, "more": more or None}
    return [Message("unjudged", facts)]


def lsa(model: str) -> list[Message]:
    """What LSA may hide, with the option for a neural model where one is installed here."""
    if not model.startswith("lsa"):
        return []
    here = installed()
    return [Message("lsa", {"kind": here[0]} if here else {})]
