"""The document of a recommendation: decision, leaderboard, costs, and the results a report is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from steelyard import __version__
from steelyard.config.search_config import SearchConfig
from steelyard.fusion import changes
from steelyard.retrievers.vector import without_layer
from steelyard_eval.candidates.free_weights import candidate_of
from steelyard_eval.candidates.weight_curve import curve_of
from steelyard_eval.candidates.written import said_of_idle
from steelyard_eval.choose.choice import Choice
from steelyard_eval.choose.costs import timing
from steelyard_eval.choose.decision_document import decided
from steelyard_eval.choose.leaderboard import Place
from steelyard_eval.choose.public import METRIC
from steelyard_eval.choose.without_labels import FEWEST
from steelyard_eval.common.configurations import LIMIT
from steelyard_eval.common.documents.parts import RankingsRecord
from steelyard_eval.common.documents.results import (
    ChosenRecord,
    ComparedRecord,
    CurrentRecord,
    ResultsDocument,
    RunnerUpRecord,
    TableRecord,
)
from steelyard_eval.compare.arena import of_scales
from steelyard_eval.compare.comparison_document import dialect
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.scales import Scales
from steelyard_eval.compare.warnings import JUDGED, warnings
from steelyard_eval.datasets.alike import alike
from steelyard_eval.datasets.labels import unstated
from steelyard_eval.decide.provenance import estimate, mean_of, origin, vouched
from steelyard_eval.decide.wording import depths_read
from steelyard_eval.measures.paired import difference_interval, mean_interval
from steelyard_eval.recording.rankings import (
    ShownLists,
    described,
    lists_of,
    ordered,
    query_rows,
    rankings,
    spelled,
)

MODEL_OVERLAP_TOO_SMALL = (
    f"it has to judge {FEWEST} of your labelled queries whole, drawn and not chosen, and others"
)
FIRST = 3
"""Rows of the leaderboard that are looked at in any case."""


def document(
    case: Choice, timed: bool, now: Callable[[], float]
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
        "whole": case.candidates.complete,
        "model_labels": _model(case),
        "current": _configuration(case, board.current),
        "chosen": chosen,
        "runner_up": _runner_up(case),
        "leaderboard": board.rows(),
        "candidates": len(case.candidates.grid),
        "table": _table(case),
        "timing": timing(case.source, case.queries, board, timed),
    }
    facts = origin(case.source.dataset, _fingerprint(case), case.seed, now)
    facts |= {"objective": str(case.metric), "verdict": decision.verdict, "promise": record["promise"]}
    facts["baseline"] = record["current"]["in_sample"]
    if case.only:
        record["only"] = case.only.row.label
    if case.restriction_cost is not None:
        record["restriction"] = case.restriction_cost.to_json()
    current = None if case.current.config is None else replace(case.current.config, provenance=facts)
    if case.picked is None or chosen is None:
        return record, current, case.instead and vouched(case.instead, facts)
    known = {"in_sample": chosen["in_sample"], "plateau": chosen["plateau"]}
    picked = vouched(case.picked, {**facts, **known})
    return (record, picked, None) if decision.verdict == "ship" else (record, current, picked)


def _chosen(case: Choice) -> ChosenRecord | None:
    """The configuration that was decided on, with the curve of its first weight."""
    if case.picked is None:
        return None
    values = case.candidates.values(case.picked, [case.metric])[case.metric]
    known = case.candidates.recorded(case.picked)
    candidate = candidate_of(known.table, case.picked, known.judgments, case.metric)
    today, dropped = None, []
    if case.only and case.current.config:
        of = case.candidates.recorded(case.current.config)
        today = candidate_of(of.table, case.current.config, of.judgments, case.metric)
        dropped = [
            change for change in changes(case.current.config.effective, case.picked.strategy) if change.dropped
        ]
    return {
        "system": case.picked.system,
        "profile": case.picked.profile,
        "strategy": str(case.picked.effective),
        "depths": depths_read(case.picked),
        "in_sample": estimate(mean_interval(values, case.scored.units.tolist()), len(values)),
        "plateau": list(candidate.plateau()),
        **({"dropped": [str(change) for change in dropped]} if dropped else {}),
        **curve_of(candidate, today),
    }


def _configuration(case: Choice, place: Place) -> CurrentRecord:
    values = estimate(mean_interval(place.values[case.metric], case.scored.units.tolist()), len(case.queries))
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


def _runner_up(case: Choice) -> RunnerUpRecord | None:
    """The best row that is neither the one decided on nor the current one, and what parts it from the former."""
    first = next((place for place in case.board.places if place.config == case.picked), case.board.current)
    others = [place for place in case.board.places if place is not first and place is not case.board.current]
    if not others:
        return None
    values, other = first.values[case.metric], others[0].values[case.metric]
    lead = difference_interval(values - other, case.scored.units.tolist())
    low, high = lead.stated(-1.0)
    parted = low is not None and high is not None and (low > 0 or high < 0)
    return {
        "label": others[0].label,
        "strategy": others[0].about()["strategy"],
        **mean_of(lead, -1.0),
        "parted": parted,
    }


def _table(case: Choice) -> TableRecord | None:
    """How much of the candidates a table of other collections is known of."""
    worth = case.scored.prior_composite.effective_n
    return {"known": int((worth > 0).sum()), "worth": float(worth.max())} if worth.any() else None


def _model(case: Choice) -> dict[str, object] | None:
    """What a model's labels were, and how far they were used."""
    if case.model is None:
        return None
    both, others = (0, 0) if case.second is None else (len(case.second.at), case.second.others)
    return {**case.model.agreement, "labelled": both, "others": others, "share": case.scored.share}


def _fingerprint(case: Choice) -> dict[str, object]:
    config = case.picked or case.current.config
    known = case.candidates.recordings[0] if config is None else case.candidates.recorded(config)
    return dict(known.table.fingerprint)


def _results(case: Choice) -> ResultsDocument:
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
        "dialect": dialect(("strategy", case.current.given.kind), case.source.lists is not None),
        "model": case.source.model,
        "recipe": case.source.recipe,
        "notices": [
            *([told] if (told := model_labels_note(case)) else []),
            *dataset.notices,
            *case.current.notices,
            *_scales(case),
            *unstated(dataset.sampled, dataset.pool, dataset.provenance),
            *_warnings(case, tests),
            *case.candidates.skipped,
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


def said_of_layers(case: Choice) -> list[str]:
    """That the text stands in for a layer without vectors that candidates read."""
    read = {signal for start in case.tried.starts for signal in start.config.strategy.signals()}
    space = case.source.space
    return [without_layer(layer) for layer in space.stood_in if layer in read] if space else []


def in_sight(case: Choice) -> set[str]:
    """The signals of what was chosen, of what is used and of the first rows; notices of others concern nobody."""
    configs = [case.picked, case.current.config, *(place.config for place in case.board.places[:FIRST])]
    return {signal for config in configs if config for signal in config.strategy.signals()}


def _scales(case: Choice) -> Iterator[str]:
    """What the scales of a sum do to what is used, and to what was chosen, whose scale labels chose."""
    table = case.candidates.recorded
    if isinstance(case.current.given, Contender):
        yield from of_scales(
            case.current.given, table(case.current.given.config).table, case.source.dataset, case.metric
        )
    if case.picked and case.picked != case.current.config:
        yield from Scales(case.picked.name, case.picked, table(case.picked).table).weightless()


def _warnings(case: Choice, tests: Sequence[ComparedRecord]) -> list[str]:
    places = case.board.places
    values, judged = (
        {place.label: place.values[metric] for place in places if metric in place.values}
        for metric in (case.metric, JUDGED)
    )
    dataset, label = case.source.dataset, case.board.current.label
    near, judged = alike(dataset, case.queries), {} if dataset.complete else judged
    proven = case.decision.verdict == "ship"
    model = case.source.model
    return warnings(case.queries, values, judged, label, tests, model, near, proven=proven, dataset=dataset)


def _rankings(case: Choice) -> RankingsRecord:
    """The lists of the current configuration, of the one that was decided on, then of the others, best first."""
    board = case.board
    places = {place.label: place for place in board.places}
    picked = [label for label, place in places.items() if place.config and place.config == case.picked]
    means = {label: float(place.values[case.metric].mean()) for label, place in places.items()}
    made = [
        (label, partial(_listed, case, places[label])) for label in ordered(means, [board.current.label, *picked])
    ]
    return rankings(case.source.dataset, case.queries, made)


def _listed(case: Choice, place: Place) -> ShownLists:
    if place.config is None:
        return case.current.lists
    return lists_of(case.candidates.replayed(place.config), place.config)


def _command(case: Choice) -> str | None:
    """The command that recommends the same; None where something of it is known in Python alone."""
    used = case.current.given
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


def model_labels_note(case: Choice) -> str:
    """What a model's labels were worth; empty where none were given."""
    if case.model is None:
        return ""
    if not case.model.agreement["counts"]:
        return f"labels of a model: {case.model.sentence}"
    if case.second is None:
        return f"labels of a model were not used: {MODEL_OVERLAP_TOO_SMALL}"
    top = int(case.scored.of_metric.mean.argmax()) if case.picked is None else case.decision.candidate
    count = f"{len(case.second.at)} of your queries and {case.second.others} others"
    used = (
        f"your {len(case.queries)} labelled queries are worth about {case.effective_n(top or 0):.0f} with them"
        if case.scored.share
        else "they are unrelated to your labels of these queries, and were not used"
    )
    return f"labels of a model on {count}: {case.model.sentence} By queries, {used}."
