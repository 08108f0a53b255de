"""The result of a choice: decision, leaderboard, costs, curve, and what to know of them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter

from steelyard.config import SearchConfig
from steelyard_eval.candidates.curve import FreeWeights
from steelyard_eval.choose.answer import answer_of
from steelyard_eval.choose.blockers import MIN_TO_SHIP
from steelyard_eval.choose.choice import Choice, Decided
from steelyard_eval.choose.leaderboard import Place, costs_of
from steelyard_eval.choose.public import METRIC
from steelyard_eval.choose.rule import LEAST_GAIN
from steelyard_eval.compare.answer import of_values
from steelyard_eval.compare.buried import AgeEffect, buried
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.lists_and_latency import ties
from steelyard_eval.compare.result import categories
from steelyard_eval.compare.score_scales import dead, merged, of_scales, undated, weightless
from steelyard_eval.datasets.labels import sampling_notice
from steelyard_eval.datasets.second_labels import judged_twice
from steelyard_eval.export.strategy_changes import changes
from steelyard_eval.measures.paired import difference_interval, mean_intervals, paired
from steelyard_eval.recording.next_steps import words_of
from steelyard_eval.recording.provenance import TOOL
from steelyard_eval.recording.replay import ShownLists, facts_of, lists_of, ordered, rows_by_query
from steelyard_eval.result.structs import Decision, Fact, Message, Paired, Provenance, Result, Row, replace
from steelyard_eval.views.frames import Values


def result_of(decided: Decided, places: Sequence[Place], timed: bool = False) -> tuple[Result, Values]:
    """The result over the rows of the leaderboard, and every metric of every query."""
    choice = decided.choice
    values = {place.label: {str(metric): own for metric, own in place.values.items()} for place in places}
    metric, today, dataset = str(choice.metric), choice.current.label, choice.source.dataset
    primary = {label: own[metric] for label, own in values.items()}
    picked = next((place for place in places if decided.picked and place.config == decided.picked), None)
    # What was tuned here cannot be tested here.
    others = {row.label: primary[row.label] for row in places if not row.tuned and row.label != today}
    tests = paired(others, primary[today], choice.scored.units.tolist(), seed=choice.seed)
    rows = _rows(choice, places, tests, timed)
    means = {label: float(own.mean()) for label, own in primary.items()}
    best = ordered(means, [today, *([picked.label] if picked else [])])
    by_query, entries = rows_by_query(
        dataset, choice.queries, primary, [(label, partial(_listed, choice, places, label)) for label in best]
    )
    decision = decision_of(decided, picked)
    against = next((one for one in [picked.label if picked else today, *best] if one != today), None)
    sides = []
    if against is not None:
        sides = categories(dataset, choice.queries, (today, against), primary[today], primary[against])
    answer = answer_of(decided, empty=not any(own.any() for own in primary.values()))
    beside = [*simpler(choice, places, picked), *_beside(decided, rows, decision)]
    answer = replace(answer, because=[*answer.because, *beside])
    config = choice.current.config
    used = free_weights(choice, config) if choice.only and config and decided.picked else None
    curve = free_weights(choice, decided.picked).table(used) if decided.picked else []
    told, age = buried(_age_effects(decided))
    result = Result(
        "recommend",
        answer,
        _provenance(choice, metric),
        rows=rows,
        decision=decision,
        notices=list(merged([*told, *_notices(decided, values, tests)])),
        tables=[*curve, *sides, *age],
        queries=by_query,
        entries=entries,
    )
    return result, values


def _rows(choice: Choice, places: Sequence[Place], tests: Mapping[str, Paired], timed: bool) -> list[Row]:
    base, units = choice.current.values[choice.metric], choice.scored.units.tolist()
    rows = []
    for place, cost in zip(places, costs_of(choice, places, timed), strict=True):
        means = mean_intervals({str(of): own for of, own in place.values.items()}, units)
        row = replace(place.row(), means=means, cost=cost, against=tests.get(place.label))
        if place.tuned:
            row = replace(row, gain=difference_interval(place.values[choice.metric] - base, units).shown(-1.0))
        rows.append(row)
    return rows


def decision_of(decided: Decided, picked: Place | None = None) -> Decision:
    """What was decided, with the row of it in the result."""
    made = decided.ruling
    return Decision(
        made.verdict,
        chosen=picked.label if picked else None,
        gain=made.gain.shown(-1.0),
        worse=made.gain.worse,
        bound=made.bound,
        more=decided.labels_needed,
        blocker=made.blocker,
        public=decided.public,
    )


def simpler(choice: Choice, places: Sequence[Place], picked: Place | None) -> list[Message]:
    """The preset of fewest signals that keeps half of the gain of what was chosen, and is not proven worse.

    By few labels the winner among many signals changes with the next ones.
    """
    if picked is None or picked.config is None:
        return []
    metric, before = choice.metric, choice.current.values[choice.metric].mean()
    least = max(LEAST_GAIN, (picked.values[metric].mean() - before) / 2)
    presets = [(len(of.effective.signals), place) for place in places if (of := place.config) and not place.tuned]
    for count, place in sorted(presets, key=itemgetter(0)):  # of as many signals the best is first
        values = place.values[metric]
        if count >= len(picked.config.effective.signals) or values.mean() - before < least:
            continue
        difference = difference_interval(values - picked.values[metric], choice.scored.units.tolist()).shown(-1.0)
        if (difference.high or 0.0) >= 0.0:
            return [Message("simpler", {"label": place.label, "difference": difference, "metric": str(metric)})]
    return []


def _beside(decided: Decided, rows: Sequence[Row], decision: Decision) -> Iterator[Message]:
    """What has to be known of the table, and why what was chosen is not its first row."""
    if any(row.tuned for row in rows):
        yield Message("tuned_rows", {"expected": None if decision.verdict == "keep" else decided.ruling.gain.mean})
    means = {row.label: row.means[str(decided.choice.metric)].mean for row in rows}
    if decision.verdict != "keep" and means.get(decision.chosen or "", 1.0) < max(means.values()):
        yield Message(f"place_{decision.verdict}")
    choice, config = decided.choice, decided.choice.current.config
    if choice.only and config and decided.picked:  # what one strategy that was tuned lost
        lost = [str(one) for one in changes(config.effective, decided.picked.strategy) if one.dropped]
        yield from [Message("dropped", {"terms": lost})] if lost else []
    if not choice.candidates.complete:
        yield Message("decided_interrupted")


def _provenance(choice: Choice, metric: str) -> Provenance:
    source, dataset = choice.source, choice.source.dataset
    about = facts_of(dataset, len(dataset.queries) - dataset.set_apart, len(choice.queries))
    return Provenance(
        TOOL,
        about,
        command=_command(choice),
        metrics=list(map(str, choice.measures)),
        named=[] if metric == METRIC else [metric],
        baseline=choice.current.label,
        split=choice.split,
        limit=choice.limit,
        model=source.model,
        recipe=source.recipe,
        intents=source.intents or "",
        ties=ties(("strategy", choice.current.given.kind), source.lists is not None),
        seed=choice.seed,
        candidates=len(choice.candidates.grid),
    )


def _command(choice: Choice) -> list[str]:
    """The words of the command that recommends the same; none where something of it is known in Python alone."""
    used, only = choice.current.given, choice.only
    if isinstance(used, ListContender) and used.kind not in ("run", "endpoint"):
        return []
    word = used.source if isinstance(used, ListContender) else used.label
    usual = {"--metric": METRIC, "--limit": choice.metric.places, "--seed": 0}
    stated = {"--metric": str(choice.metric), "--limit": choice.limit, "--seed": choice.seed}
    options = {"--current": word, **{name: value for name, value in stated.items() if value != usual[name]}}
    options |= {"--model-labels": choice.model and choice.model.path, **choice.restriction.options}
    options |= choice.source.options
    if only is None:
        return words_of("recommend", choice.source.dataset, options=options)
    if used is only.row:
        del options["--current"]
    options["--weights-only"] = only.weights_only or None
    strategy = only.word or str(only.row.config.strategy)
    return words_of("tune", choice.source.dataset, strategy, options=options)


def _listed(choice: Choice, places: Sequence[Place], label: str) -> ShownLists:
    config = next(place.config for place in places if place.label == label)
    return choice.current.lists if config is None else lists_of(choice.candidates.replayed(config), config)


def free_weights(choice: Choice, config: SearchConfig) -> FreeWeights:
    """A configuration with its weights free, over its recording."""
    known = choice.candidates.recorded(config)
    return FreeWeights.of(known.table, config, known.judgments, choice.metric)


def _notices(decided: Decided, values: Values, tests: Mapping[str, Paired]) -> Iterator[Message]:
    choice, dataset = decided.choice, decided.choice.source.dataset
    by_places = choice.metric.by_places
    for label, config in ((choice.current.label, choice.current.config), ("the choice", decided.picked)):
        if config is not None:
            yield from dead(label, config, choice.candidates.recorded(config).table, by_places, dataset.qrels)
    yield from model_notice(decided)
    yield from (Message("plain_text", {"text": text}) for text in dataset.notices)
    yield from choice.current.notices
    used, picked = choice.current.given, decided.picked
    if isinstance(used, Contender):
        table = choice.candidates.recorded(used.config).table
        yield from of_scales(used, table, dataset, by_places)
    if picked and picked != choice.current.config:  # its scale was chosen by labels
        yield from weightless(picked.name, picked, choice.candidates.recorded(picked).table)
    yield from (
        Message("plain_text", {"text": text})
        for text in sampling_notice(dataset.sampled, dataset.pool, dataset.provenance)
    )
    proven = decided.ruling.verdict == "ship"
    yield from of_values(
        dataset, choice.queries, values, str(choice.metric), choice.current.label, tests.values(),
        choice.source.model, proven,
    )  # fmt: skip
    yield from choice.candidates.skipped
    space, about = choice.source.space, [config for config in (decided.picked, choice.current.config) if config]
    yield from (Message("layer_stands_in", {"layer": layer}) for layer in (space.stood_in(about) if space else ()))
    yield from undated(dataset, about)
    yield from choice.only.notices if choice.only else ()
    if dataset.second or proven:  # a bias of the labels is one that no fold shows
        yield judged_twice(dataset)


def _age_effects(decided: Decided) -> Iterator[AgeEffect]:
    choice = decided.choice
    for label, config in ((choice.current.label, choice.current.config), ("the choice", decided.picked)):
        if config is not None:
            run, table = choice.candidates.replayed(config), choice.candidates.recorded(config).table
            yield AgeEffect.of(label, run.ranked, table, config, choice.source.dataset)


def model_notice(decided: Decided) -> list[Message]:
    """What a model's labels were worth; nothing where none were given."""
    choice = decided.choice
    if choice.model is None:
        return []
    text, second = choice.model.sentence, choice.second
    if not choice.model.agreement["counts"]:
        return [Message("model_labels_odd", {"text": text})]
    if second is None:
        return [Message("model_labels_unused", {"fewest": MIN_TO_SHIP})]
    top = int(choice.scored.of_metric.mean.argmax()) if decided.picked is None else decided.ruling.candidate
    facts: dict[str, Fact] = {"both": len(second.at), "others": second.others, "text": text}
    if choice.scored.share:
        facts |= {"queries": len(choice.queries), "worth": choice.effective_n(top or 0)}
    return [Message("model_labels", {**facts, "unrelated": not choice.scored.share})]
