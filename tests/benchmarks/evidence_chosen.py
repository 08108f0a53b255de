"""Labels that were chosen: what ships on queries that fail, on labels of one list, and on wrong ones.

Every set is labelled in five ways: as it is; by what bm25 alone, vectors alone, or both of them rank among the
first ten; and as it is with a fifth of the relevant entries exchanged for others that were found. CandidateSet do
not depend on labels, so what one labelling ships is measured by the set's own labels, on all queries, at most 400.
The table of other collections is made of those of its group, as everywhere.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from evidence_matrices import METRIC
from evidence_rows import LOSS, Differences, priors_of

from steelyard_eval.candidates.candidates import build_candidates, record_all
from steelyard_eval.candidates.families import starts
from steelyard_eval.candidates.grid import LabelledRecording, LabelScorer
from steelyard_eval.candidates.kernel import DEEPEST
from steelyard_eval.candidates.settings import config_key
from steelyard_eval.candidates.source import Source
from steelyard_eval.choose.blockers import ContenderScores, find_blocker
from steelyard_eval.choose.public import PriorGains
from steelyard_eval.choose.rule import ALL_FAMILIES, ONE_STRATEGY, Expectation, apply_rule, gain_prior_over
from steelyard_eval.choose.scored import Scored
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.datasets.labels import JudgedPool
from steelyard_eval.measures.metrics import Judgments
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import judged

MOST, LABELLED, PLACES = 400, 30, 10
ONE = {"bm25": "vector", "vector": "bm25"}
"""What is used, and whose list alone was judged."""
BOTH = JudgedPool(("bm25", "vector"), PLACES)
CASES = {
    "at random": ("as it is", ("bm25", "vector", "echovault", "RRF"), ("random", JudgedPool())),
    "both lists": ("both", ("bm25", "vector", "echovault", "RRF"), ("random", BOTH)),
    "worst third": ("as it is", ("bm25", "vector", "echovault", "RRF"), ("failing", JudgedPool())),
    "one list": ("one", ("bm25", "vector"), ("random", None)),
    "wrong labels": ("wrong", ("bm25", "vector", "echovault", "RRF"), ("random", JudgedPool())),
}
"""Case -> how it is labelled, what is used, and what the set would say of it."""


class Labelled(Source):
    """A collection under other labels; recorded once for all of them."""

    def __init__(self, space, dataset, recordings):
        super().__init__(dataset, space)
        object.__setattr__(self, "recordings", recordings)

    def record(self, queries, configs):
        """As recorded for other labels before."""
        key = (configs[0].system, len(queries), configs[0].profile)
        if key not in self.recordings:
            self.recordings[key] = super().record(queries, configs)
        return self.recordings[key]


@dataclass(frozen=True)
class Labelling:
    """The candidates of a collection under one labelling, and what each shows, computed once."""

    source: Labelled
    layout: object

    @cached_property
    def sides(self):
        """Configurations that were looked at, by name."""
        return {}

    @cached_property
    def sides_bare(self):
        """The same labelling with relevant entries alone, once it is made."""
        return []

    def side(self, label, config, at):
        """What a configuration shows on some queries."""
        key = config_key(config)
        if key not in self.sides:
            known = self.layout.recorded(config)
            run = replay(known.table, config.with_limit(max(config.limit, DEEPEST)))
            lists = run.ranking.offsets, run.entry
            self.sides[key] = ContenderScores.of(label, config, lists, known.judgments, METRIC)
        whole = self.sides[key]
        parts = {name: getattr(whole, name)[at] for name in ("values", "bare", "judged", "found", "relevant")}
        return replace(whole, **parts)

    def around(self, config):
        """int64[c]: the settings of a configuration's own strategy; none where it is a retriever alone."""
        own = [at for at, start in enumerate(self.layout.starts) if config_key(start.config) == config_key(config)]
        several = len(config.effective.retrievers) > 1
        return np.flatnonzero(np.isin(self.layout.start_index, own if several else []))

    def differences(self, config, at):
        """float32[C, n] of metric and composite, against a configuration."""
        metric, composite = self.layout.measured(config, METRIC)
        sides = ((self.layout.grid.metric, metric), (self.layout.grid.composite, composite))
        return [own[:, at] - base[at].astype(np.float32) for own, base in sides]


class Relabelled:
    """A collection under every labelling that is asked for."""

    def __init__(self, collection):
        self.collection = collection
        self.space = collection.space
        everything = judged(self.space.dataset, self.space.dataset.queries)
        kept = np.random.default_rng(0).permutation(len(everything))[:MOST]
        self.queries = tuple(everything[at] for at in sorted(kept))
        self.qrels = {query.id: self.space.dataset.qrels[query.id] for query in self.queries}
        self.recordings = {}
        self.made = {}

    def labelling(self, name):
        """Laid out under one labelling."""
        if name not in self.made:
            source = Labelled(self.space, replace(self.space.dataset, qrels=self._qrels(name)), self.recordings)
            tried = starts(source, self.queries, PLACES)
            laid = build_candidates(record_all(source, self.queries, tried), tried, LabelScorer(METRIC))
            self.made[name] = Labelling(source, laid)
        return self.made[name]

    def positives(self, name):
        """The same without the entries that were judged and are not relevant, which changes no value."""
        whole = self.labelling(name)
        if not whole.sides_bare:
            qrels = {
                query: {id_: grade for id_, grade in own.items() if grade}
                for query, own in whole.source.dataset.qrels.items()
            }
            tables = [known.table for known in whole.layout.recordings]
            known = (
                LabelledRecording(table, Judgments.of(qrels, table.queries, table.entries)) for table in tables
            )
            whole.sides_bare.append(Labelling(whole.source, replace(whole.layout, recordings=tuple(known))))
        return whole.sides_bare[0]

    @cached_property
    def firsts(self):
        """query -> the first ten of bm25 and of vector."""
        layout = self.labelling("as it is").layout
        lists = {name: layout.replayed(self.config(name)).ranked.lists() for name in ONE}
        return {
            query.id: {name: lists[name][at][:PLACES] for name in ONE} for at, query in enumerate(self.queries)
        }

    def _qrels(self, name):
        """The labels of one labelling; what was judged and is not relevant has grade 0."""
        if name == "as it is":
            return self.qrels
        rng = np.random.default_rng(1)
        found = {}
        for query, own in self.qrels.items():
            lists = self.firsts[query]
            if name == "wrong":
                found[query] = _exchanged(own, sorted({id_ for row in lists.values() for id_ in row}), rng)
                continue
            seen = {id_ for who, row in lists.items() if name in (who, "both") for id_ in row}
            found[query] = {id_: own.get(id_, 0) for id_ in sorted(seen)}
        return found

    def config(self, name):
        """The configuration of a current contender, as far as it runs here."""
        from evidence_matrices import FUSIONS

        config = self.collection.config(*FUSIONS.get(name, (name,)))
        return Source.live(self.space).usable(Contender(name, config, "system"))[0].config


def _exchanged(own, others, rng):
    """Judgments with a fifth of the relevant entries exchanged for others."""
    left = [id_ for id_ in others if own.get(id_, 0) == 0]
    found = {}
    for id_, grade in own.items():
        wrong = grade > 0 and left and rng.random() < 0.2
        found[left.pop(rng.integers(len(left))) if wrong else id_] = grade
    return found


def chosen_row(relabelled, others, case, count):
    """Counts over draws: what ships by the figures alone, where the set states its labels, where it does not.

    Under `tune` the same of the settings of one strategy, where that is what is used.
    """
    way, currents, stated = CASES[case]
    rows, tuned = [], []
    for number, current in enumerate(currents):
        name = ONE[current] if way == "one" else way
        config = relabelled.config(current)
        truth, made = relabelled.labelling("as it is"), relabelled.labelling(name)
        bare = relabelled.positives(name) if way in ("one", "both") else made
        known = stated if way != "one" else ("random", JudgedPool((name,), PLACES))
        priors = _priors(others, current, relabelled, made)
        base = truth.side(current, config, slice(None)).values
        gains = truth.layout.grid.metric.mean(axis=1, dtype=np.float64) - base.mean()
        usable = np.flatnonzero(made.side(current, config, slice(None)).relevant > 0)
        for draw in range(number, count, len(currents)):
            at = _drawn(case, base, usable, np.random.default_rng([draw, len(usable)]))
            asked = made, bare, config, current, at, known, gains
            rows.append(_outcome(*asked, priors, ALL_FAMILIES, np.arange(len(gains))))
            if len(own := made.around(config)):
                tuned.append(_outcome(*asked, priors, ONE_STRATEGY, own))
    return {"draws": len(rows), **_counts(rows), "tune": {"draws": len(tuned), **_counts(tuned)}}


def _drawn(case, base, usable, rng):
    """The labelled queries: at random, or from the third on which the current one does worst, ties at random."""
    if case == "worst third":
        worst = usable[np.lexsort((rng.random(len(usable)), base[usable]))]
        usable = worst[: max(len(worst) // 3, 15)]
    return rng.permutation(usable)[: min(LABELLED, int(0.8 * len(usable)) if case != "worst third" else LABELLED)]


def _priors(others, current, relabelled, made):
    """The table of the other collections, for the candidates here."""
    from evidence_matrices import keys_of

    return priors_of([Differences.of(other, current) for other in others], keys_of(made.layout.grid))


def _outcome(made, bare, config, current, at, known, gains, priors, gates, rows):
    """Verdict by the figures of some candidates, its refusals stated and not, and what it gains and promises."""
    sides = (side[rows] for side in made.differences(config, at))
    prior = tuple(PriorGains(*(values[rows] for values in vars(one).values())) for one in priors)
    evidence = Scored.of(*sides, prior)
    found = apply_rule(Expectation(evidence, gain_prior_over(config)), gates)
    if found.verdict != "ship":
        return None
    candidate = int(rows[found.candidate])
    picked = made.layout.grid.config(candidate)

    def passes(labels, sampled, pool):
        dataset = replace(labels.source.dataset, sampled=sampled, pool=pool)
        sides = labels.side(current, config, at), labels.side(str(picked.effective), picked, at)
        finders = (labels.side(start.label, start.config, at) for start in labels.layout.starts)
        return not find_blocker(
            dataset, METRIC, *sides, finders, lambda gain: evidence.p_no_gain(found.candidate, gain)
        )

    ships = {
        "figures": True,
        "stated": passes(made, *known),
        "unstated": passes(made, "", None),
        "no zeros": passes(bare, "", None),
    }
    return ships, float(gains[candidate]), found.gain.mean


def _counts(rows):
    shipped = [row for row in rows if row is not None]
    found = {}
    for name in ("figures", "stated", "unstated", "no zeros"):
        own = [row for row in shipped if row[0][name]]
        found[name] = len(own)
        found[f"{name} false"] = sum(gain < -LOSS for _, gain, _ in own)
        found[f"{name} promised"] = sum(promise for _, _, promise in own)
        found[f"{name} gained"] = sum(gain for _, gain, _ in own)
    return found
