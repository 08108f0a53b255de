"""`recommend`: which strategy and which weights, over every family or one strategy, against what is used today."""

import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard_eval.candidates.candidates import build_candidates, of_config, of_lists, record_all, recording_for
from steelyard_eval.candidates.ceiling import with_ceiling
from steelyard_eval.candidates.choice_limits import Restriction
from steelyard_eval.candidates.families import StartingPoint, read_current, read_only, starts
from steelyard_eval.candidates.grid import LabelScorer
from steelyard_eval.choose.answer import ChosenAnswer, advised, for_target
from steelyard_eval.choose.blockers import MIN_TO_SHIP
from steelyard_eval.choose.choice import Choice, Decided, decide
from steelyard_eval.choose.differences import ModelLabels
from steelyard_eval.choose.few_labels import advise, fact_signals_used
from steelyard_eval.choose.leaderboard import leaderboard
from steelyard_eval.choose.public import METRIC
from steelyard_eval.choose.result import free_weights, result_of
from steelyard_eval.choose.rule import ALL_FAMILIES, ONE_STRATEGY
from steelyard_eval.common.process import day
from steelyard_eval.common.tabular import Frame
from steelyard_eval.compare.contenders import Contender, Given
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.result import agreement
from steelyard_eval.compare.score_scales import dead
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import Dataset, tuning_queries
from steelyard_eval.datasets.groups import judged, questions
from steelyard_eval.datasets.labels import RANDOM_SAMPLES, UNKNOWN_SAMPLES
from steelyard_eval.measures.metrics import parse_measures
from steelyard_eval.measures.paired import mean_interval
from steelyard_eval.recording.next_steps import describe_config
from steelyard_eval.recording.provenance import TOOL, estimate, origin, promised, with_certificate
from steelyard_eval.recording.replay import facts_of, replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Decision, Message, Provenance, Result
from steelyard_eval.result.structs import replace as changed
from steelyard_eval.views.frames import board_frame

METRICS = ("R@10", "RR@10", "Judged@10")  # shown beside the metric that is decided on


@dataclass(frozen=True, repr=False)
class Recommendation(ChosenAnswer):
    """The answer; `out_of_fold` is the metric of every query under what is chosen without it, float64[Q]."""

    out_of_fold: Floats = field(default_factory=lambda: np.zeros(0), kw_only=True, compare=False)

    def to_frame(self) -> Frame:
        """The leaderboard, a row a configuration."""
        return board_frame(self.result)


def recommend(
    dataset: Dataset,
    current: Given | None = None,
    *,
    only: Given | None = None,
    weights_only: bool = False,
    metric: str = "nDCG@10",
    limit: int | None = None,
    embedder: str = "auto",
    seed: int = 0,
    timed: bool = False,
    recording: str | Path | None = None,
    model_labels: ModelLabels | None = None,
    target: str = "",
    latency: float | None = None,
    embedding_calls: float | None = None,
    tokens: int | None = None,
    workspace: Workspace | None = None,
) -> Recommendation:
    """Say which strategy and which weights to use, against what is used today, and what to expect of it.

    The parameters are those of `Workbench.recommend` and of `Workspace.open`. With a `recording` nothing is
    searched, and what it does not hold is not tried; for one of lists `current` has to be named.

    Every labelled query serves for choosing and, left out in its turn, for proof; nothing is held out. Ctrl-C
    decides on what was tried so far, of which nothing ships. Without judgments the answer is what public
    collections showed of the current one, how far configurations agree, and how to begin labelling.

    With `only` one strategy is tuned, and what is used today is by default this strategy as it is written. It is
    tuned on train, else dev, else every query outside test, so that `test` can still be measured on. Raises
    ConfigError for an unknown name, and where `only` has nothing to tune or fewer than two judged queries.
    """
    (named,) = parse_measures([metric])
    measures = parse_measures([metric if tokens is None else f"{named.family}@{tokens}t", *METRICS])
    restriction = Restriction(target, latency, embedding_calls)
    if recording is None:
        source = Source.live((workspace or Workspace.open(dataset, embedder)).about(random_only))
    else:
        source = Source.of_recording(random_only(dataset), recording)
    dataset = source.dataset
    size = limit or named.places
    one = None if only is None else read_only(only, size, source, weights_only)
    queries = judged(dataset, dataset.queries if one is None else tuning_queries(dataset)[0])
    if one and current is None:
        used: Contender | ListContender = one.row
    elif current is None and source.lists is not None:
        raise ConfigError(
            "this recording of lists does not say what you use today; name it with --current: "
            f"{', '.join(source.lists)}, a strategy over them, or a TREC run"
        )
    else:
        used = read_current(source.dataset.today if current is None else current, size, source)
    config = used.config if isinstance(used, Contender) else None
    if one and len(queries) < 2:
        raise ConfigError(f"{dataset.called}: tuning needs at least two labelled queries; add some")
    if len(queries) < 2:
        return _without_labels(source, size, used.label, config, restriction)
    if one is None:
        tried = starts(source, queries, size, used.label, config)
    else:
        tried = (StartingPoint.alone(one.row, source, len(queries), weights_only),)
    recorded = record_all(source, queries, tried, beside=[config] if one and config else [])
    candidates = build_candidates(recorded, tried, LabelScorer(measures[0]))
    second = model_labels.measured(source, queries, candidates, config, measures[0]) if model_labels else None
    gates = ALL_FAMILIES if one is None else ONE_STRATEGY
    if isinstance(used, Contender):
        today = of_config(used, candidates, measures)
    else:
        today = of_lists(used, dataset, queries, size, measures)
    choice = Choice(
        source, queries, measures, candidates, today, size, seed, second, gates, one, model=model_labels
    )
    decided = decide(choice.restricted(restriction))
    result, values = result_of(decided, leaderboard(decided), timed)
    out_of_fold = today.values[measures[0]] + decided.choice.expect.unseen
    ceiling = partial(with_ceiling, source=source, tuned=out_of_fold)
    written = weights_of(decided)
    return Recommendation(
        result, values, *written, not candidates.complete, ceiling=ceiling, out_of_fold=out_of_fold
    )


def _without_labels(
    source: Source, limit: int, label: str, config: SearchConfig | None, restriction: Restriction
) -> Recommendation:
    dataset, tables, notices = source.dataset, [], list[Message]()
    advice = advise(label, config, limit, source.model, dataset.sha256, facts=fact_signals_used(config, dataset))
    restriction.unlabelled(advice.attempt)
    if dataset.queries:
        queries = dataset.split("all")
        tried = starts(source, queries, limit, label, config)
        recordings = record_all(source, queries, tried)
        served = ((start, recording_for(recordings, start.config).table) for start in tried)
        lists = {start.label: replay(table, start.config).ranked.lists() for start, table in served}
        tables = [agreement(lists)[0]]
        notices += dead(label, config, recording_for(recordings, config).table, None, {}) if config else ()
    answer = advised(advice, dataset, describe_config(advice.attempt) if advice.attempt else "", source.model)
    if advice.attempt:
        answer = changed(answer, steps=for_target(answer.steps, restriction.target, advice.verdict))
    about = facts_of(dataset, len(dataset.queries) - dataset.set_apart, 0)
    result = Result(
        "recommend",
        answer,
        Provenance(TOOL, about, metrics=[METRIC], baseline=label, limit=limit, model=source.model),
        decision=Decision(advice.verdict, public=True),
        notices=[*notices, *(Message("plain_text", {"text": text}) for text in dataset.notices)],
        tables=tables,
    )
    facts = {"dataset": dataset.name, "dataset_sha256": dataset.sha256, "learned_from": "public collections"}
    facts |= {"verdict": advice.verdict, "tool": TOOL, "date": day(time.time)}
    attempt = advice.attempt and replace(advice.attempt, provenance=facts)
    return Recommendation(result, config=config, attempt=attempt)


def random_only(dataset: Dataset, fewest: int = MIN_TO_SHIP) -> Dataset:
    """The data set with the labels of drawn queries alone, once they ask `fewest` different questions.

    A query that was picked by hand stands for no other, so its label cannot make a sample random. Below that
    number all labels stay, and nothing ships by them. Their number decides, and never what they say.

    All stay, too, beside labels of which nobody says how they came about: a query for which nothing is found is
    never drawn, and would be missing.
    """
    ways, drawn = frozenset(dataset.sampling_by_query.values()), dataset.random_queries
    if not dataset.provenance or (ways & UNKNOWN_SAMPLES and ways <= RANDOM_SAMPLES | UNKNOWN_SAMPLES):
        return dataset
    kept = replace(dataset, qrels={query: row for query, row in dataset.qrels.items() if query in drawn})
    if not drawn or questions(judged(kept, kept.queries)) < fewest:
        return dataset
    left = len(dataset.qrels) - len(drawn)
    told = say(Message("drawn_decide", {"drawn": len(drawn), "left": left}))
    how = {dataset.sampling_by_query[query] for query in drawn}
    return replace(
        kept,
        sampled="random" if "random" in how else min(how),
        pool=kept.pools[0],
        notices=(*dataset.notices, told) if left else dataset.notices,
    )


def weights_of(decided: Decided) -> tuple[SearchConfig | None, SearchConfig | None]:
    """What to run, and what is worth trying, each with where it comes from, and the date."""
    choice, ruling, picked = decided.choice, decided.ruling, decided.picked
    shown, queries, metric = picked or choice.current.config, len(choice.queries), str(choice.metric)
    known = choice.candidates.recordings[0] if shown is None else choice.candidates.recorded(shown)
    facts = origin(choice.source.dataset, dict(known.table.fingerprint), choice.seed)
    facts |= {"objective": metric, "verdict": ruling.verdict}
    facts["promise"] = promised(ruling.gain, metric, queries)
    units = choice.scored.units.tolist()
    facts["baseline"] = estimate(mean_interval(choice.current.values[choice.metric], units), queries)
    config = choice.current.config
    current = None if config is None else replace(config, provenance=facts)
    if picked is None:
        return current, decided.instead and with_certificate(decided.instead, facts)
    values = choice.candidates.values(picked, [choice.metric])[choice.metric]
    sample = estimate(mean_interval(values, units), queries)
    plateau = list(free_weights(choice, picked).plateau())
    written = with_certificate(picked, {**facts, "in_sample": sample, "plateau": plateau})
    return (written, None) if ruling.verdict == "ship" else (current, written)
