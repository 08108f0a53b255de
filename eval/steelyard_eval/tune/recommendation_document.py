"""The document of a recommendation: decision, leaderboard, costs, and the results a report is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from steelyard import __version__
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import changes
from steelyard.retrievers.vector import without_layer
from steelyard_eval.common.configurations import LIMIT
from steelyard_eval.common.documents.parts import RankingsRecord
from steelyard_eval.common.documents.results import (
    ChosenRecord,
    CurrentRecord,
    ResultsDocument,
    RunnerUpRecord,
    TableRecord,
)
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.lists import of_scales, ties
from steelyard_eval.compare.notices import of_values
from steelyard_eval.compare.scales import Scales
from steelyard_eval.datasets.labels import unstated
from steelyard_eval.decide.provenance import decided, estimate, mean_of, origin, vouched
from steelyard_eval.decide.public import METRIC
from steelyard_eval.decide.wording import depths_read
from steelyard_eval.measures.paired import difference_interval, mean_interval, paired
from steelyard_eval.recording.rankings import (
    ShownLists,
    described,
    lists_of,
    ordered,
    query_rows,
    rankings,
    spelled,
)
from steelyard_eval.result.sentences import dialect, say
from steelyard_eval.result.structs import Said
from steelyard_eval.tune.board import Place
from steelyard_eval.tune.candidate import candidate_of
from steelyard_eval.tune.cost import timing
from steelyard_eval.tune.recommendation_case import RecommendationCase
from steelyard_eval.tune.weight_curve import curve_of
from steelyard_eval.tune.written import said_of_idle

FIRST = 3
"""Rows of the leaderboard that are looked at in any case."""


def document(
    case: RecommendationCase, timed: bool
) -> tuple[ResultsDocument, SearchConfig | None, SearchConfig | None]:
    """The JSON document, what to run, and what is worth trying."""
    decision, board, chosen = case.decision, case.board, _chosen(case)
    record: ResultsDocument = {
        **_results(case),
        "tool": f"steelyard {__version__}",
        "command": _command(case),
        **case.answer.to_json(),
        "public": case.advice.to_json() if case.public else None,
        **decided(decision, str(case.metric), len(case.queries), case.stated),
        "labels_needed": case.labels_needed,
        "whole": case.layout.whole,
        "model_labels": _model(case),
        "current": _configuration(case, board.current),
        "chosen": chosen,
        "runner_up": _runner_up(case),
        "leaderboard": board.rows(),
        "candidates": len(case.layout.grid),
        "table": _table(case),
        "timing": timing(case.source, case.queries, board, timed),
    }
    facts = origin(case.source.dataset, _fingerprint(case), case.seed, case.now)
    facts |= {"objective": str(case.metric), "verdict": decision.verdict, "promise": record["promise"]}
    facts["baseline"] = record["current"]["in_sample"]
    if case.only:
        record["only"] = case.only.row.label
    if case.toll is not None:
        record["restriction"] = case.toll.to_json()
    current = None if case.config is None else replace(case.config, provenance=facts)
    if case.picked is None or chosen is None:
        return record, current, case.instead and vouched(case.instead, facts)
    known = {"in_sample": chosen["in_sample"], "plateau": chosen["plateau"]}
    picked = vouched(case.picked, {**facts, **known})
    return (record, picked, None) if decision.verdict == "ship" else (record, current, picked)


def _chosen(case: RecommendationCase) -> ChosenRecord | None:
    """The configuration that was decided on, with the curve of its first weight."""
    if case.picked is None:
        return None
    values = case.layout.values(case.picked, [case.metric])[case.metric]
    known = case.layout.recorded(case.picked)
    candidate = candidate_of(known.table, case.picked, known.judgments, case.metric)
    today, dropped = None, []
    if case.only and case.config:
        of = case.layout.recorded(case.config)
        today = candidate_of(of.table, case.config, of.judgments, case.metric)
        dropped = [change for change in changes(case.config.effective, case.picked.strategy) if change.dropped]
    return {
        "system": case.picked.system,
        "profile": case.picked.profile,
        "strategy": str(case.picked.effective),
        "depths": depths_read(case.picked),
        "in_sample": estimate(mean_interval(values, case.evidence.groups.tolist()), len(values)),
        "plateau": list(candidate.plateau()),
        **({"dropped": [str(change) for change in dropped]} if dropped else {}),
        **curve_of(candidate, today),
    }


def _configuration(case: RecommendationCase, place: Place) -> CurrentRecord:
    values = estimate(mean_interval(place.values[case.metric], case.evidence.groups.tolist()), len(case.queries))
    depths = depths_read(place.config) if place.config else {}
    about = place.about()
    return {
        "label": place.label,
        "system": about.get("system"),
        "profile": about.get("profile"),
        "strategy": about["strategy"],
        "family": place.family,
        "kind": about.get("kind"),
        "depths": depths,
        "in_sample": values,
        "embedding_calls": place.calls,
    }


def _runner_up(case: RecommendationCase) -> RunnerUpRecord | None:
    """The best row that is neither the one decided on nor the current one, and what parts it from the former."""
    first = next((place for place in case.board.places if place.config == case.picked), case.board.current)
    others = [place for place in case.board.places if place is not first and place is not case.board.current]
    if not others:
        return None
    values, other = first.values[case.metric], others[0].values[case.metric]
    lead = difference_interval(values - other, case.evidence.groups.tolist())
    low, high = lead.stated(-1.0)
    parted = low is not None and high is not None and (low > 0 or high < 0)
    return {
        "label": others[0].label,
        "strategy": others[0].about()["strategy"],
        **mean_of(lead, -1.0),
        "parted": parted,
    }


def _table(case: RecommendationCase) -> TableRecord | None:
    """How much of the candidates a table of other collections is known of."""
    worth = case.evidence.prior_composite.worth
    return {"known": int((worth > 0).sum()), "worth": float(worth.max())} if worth.any() else None


def _model(case: RecommendationCase) -> dict[str, object] | None:
    """What a model's labels were, and how far they were used."""
    if case.model is None:
        return None
    both, others = (0, 0) if case.second is None else (len(case.second.at), case.second.others)
    return {**case.model.agreement, "labelled": both, "others": others, "share": case.evidence.share}


def _fingerprint(case: RecommendationCase) -> dict[str, object]:
    config = case.picked or case.config
    known = case.layout.recordings[0] if config is None else case.layout.recorded(config)
    return dict(known.table.fingerprint)


def _results(case: RecommendationCase) -> ResultsDocument:
    """The part of the document that is a comparison's, for reports."""
    dataset, board = case.source.dataset, case.board
    judged, tests = len(case.queries), board.comparisons(case.seed)
    return {
        "schema_version": 1,
        "dataset": {
            **described(dataset),
            "queries": len(dataset.queries) - dataset.set_apart,
            "judged": judged,
        },
        "split": case.split,
        "limit": case.limit,
        "intents": case.source.intents,
        "dialect": dialect(ties(("strategy", case.used.kind), case.source.lists is not None)),
        "model": case.source.model,
        "recipe": case.source.recipe,
        "notices": [
            *([case.model_told] if case.model_told else []),
            *dataset.notices,
            *case.current.notices,
            *map(say, _scales(case)),
            *unstated(dataset.sampled, dataset.pool, dataset.provenance),
            *map(say, _warnings(case)),
            *case.layout.skipped,
            *said_of_idle(case.tried.idle, case.picked),
            *said_of_layers(case),
            *case.tried.left_out,
        ],
        "primary": str(case.metric),
        "baseline": board.current.label,
        "configurations": [place.about() for place in board.places],
        "results": board.results(),
        "comparisons": tests,
        "per_query": query_rows(case.queries, {place.label: place.values[case.metric] for place in board.places}),
        "rankings": _rankings(case),
    }


def said_of_layers(case: RecommendationCase) -> list[str]:
    """That the text stands in for a layer without vectors that candidates read."""
    read = {signal for start in case.tried.starts for signal in start.config.strategy.signals()}
    space = case.source.space
    return [without_layer(layer) for layer in space.stood_in if layer in read] if space else []


def in_sight(case: RecommendationCase) -> set[str]:
    """The signals of what was chosen, of what is used and of the first rows; notices of others concern nobody."""
    configs = [case.picked, case.config, *(place.config for place in case.board.places[:FIRST])]
    return {signal for config in configs if config for signal in config.strategy.signals()}


def _scales(case: RecommendationCase) -> Iterator[Said]:
    """What the scales of a sum do to what is used, and to what was chosen, whose scale labels chose."""
    table = case.layout.recorded
    if isinstance(case.used, Contender):
        yield from of_scales(case.used, table(case.used.config).table, case.source.dataset, case.metric)
    if case.picked and case.picked != case.config:
        yield from Scales(case.picked.name, case.picked, table(case.picked).table).weightless()


def _warnings(case: RecommendationCase) -> list[Said]:
    places, board = case.board.places, case.board
    values = {place.label: {str(metric): own for metric, own in place.values.items()} for place in places}
    label, metric = board.current.label, str(case.metric)
    others = {place.label: values[place.label][metric] for place in places if not place.tuned}
    base = others.pop(label)
    tests = paired(others, base, board.groups, seed=case.seed).values()
    proven = case.decision.verdict == "ship"
    return of_values(case.source.dataset, case.queries, values, metric, label, tests, case.source.model, proven)


def _rankings(case: RecommendationCase) -> RankingsRecord:
    """The lists of the current configuration, of the one that was decided on, then of the others, best first."""
    board = case.board
    places = {place.label: place for place in board.places}
    picked = [label for label, place in places.items() if place.config and place.config == case.picked]
    means = {label: float(place.values[case.metric].mean()) for label, place in places.items()}
    made = [
        (label, partial(_listed, case, places[label])) for label in ordered(means, [board.current.label, *picked])
    ]
    return rankings(case.source.dataset, case.queries, made)


def _listed(case: RecommendationCase, place: Place) -> ShownLists:
    if place.config is None:
        return case.current.lists
    return lists_of(case.layout.replayed(place.config), place.config)


def _command(case: RecommendationCase) -> str | None:
    """The command that recommends the same; None where something of it is known in Python alone."""
    used = case.used
    word = used.source if isinstance(used, ListContender) else used.label
    if isinstance(used, ListContender) and used.kind not in ("run", "endpoint"):
        return None
    usual = {"--metric": METRIC, "--limit": LIMIT, "--seed": 0}
    stated = {"--metric": str(case.metric), "--limit": case.limit, "--seed": case.seed}
    options = {"--current": word, **{name: value for name, value in stated.items() if value != usual[name]}}
    options |= {"--model-labels": case.model and case.model.path, **case.restriction.options}
    options |= case.source.options
    if case.only is None:
        return spelled("recommend", case.source.dataset, options=options)
    strategy = case.only.word or str(case.only.row.config.strategy)
    if used is case.only.row:
        del options["--current"]
    options["--weights-only"] = case.only.weights_only or None
    return spelled("tune", case.source.dataset, strategy, options=options)
