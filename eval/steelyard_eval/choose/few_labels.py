"""The decision where labels are few: a posterior that starts from what public collections showed.

A rule that asks for proof keeps what there is under about 40 labels. What it does not ship is decided again: of
few contenders, what public collections favour stands until the posterior of another one lies ahead of it. There
is no step from the table to the labels: the table counts as ten queries, whatever their number. It is no proof,
so it never ships: docs/evidence/few-labels.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.config import SearchConfig
from steelyard.fusion import Expr, parse_strategy
from steelyard.systems import find_system
from steelyard_eval.choose import public, rule
from steelyard_eval.choose.blockers import MIN_TO_SHIP, TOO_FEW, chosen_queries
from steelyard_eval.choose.differences import Scored, posterior
from steelyard_eval.choose.public import PriorGains, PublicGains, PublicTable
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.spread import Matrix, spread
from steelyard_eval.result.structs import Blocker, Fact, Message

MIN_QUERIES_WITH_LOG = 15  # labelled questions from which on they decide together with a log
MIN_OVER_FUSION_WITH_LOG = 60
"""The same over a fusion, which little is better than: 30 recovered 24 to 40% there, and to 7% of ships lost."""
LEAD_SD_CONTENDERS = 0.5  # deviations of the posterior by which a contender has to be ahead of what stands
LEAD_SD_CANDIDATES = 1.5
"""The same for the best of thousands of candidates, of which chance alone lifts some. It lies a whole deviation
below what ships: at 2.5 one label turned a ship to a keep, in 3 of 60 sets of labels over workshop."""


def fewest_labels(config: SearchConfig) -> int:
    """Labelled questions from which on they decide together with a log, over what is used today."""
    return MIN_OVER_FUSION_WITH_LOG if rule.gain_prior_over(config) is rule.OVER_FUSION else MIN_QUERIES_WITH_LOG


@dataclass(frozen=True)
class FewLabelCandidates:
    """The contenders among the candidates that few labels choose from."""

    rows: Indices  # int64[K], where they are, and their `labels`
    known: Floats  # float64[K], of their difference to the default on public collections: the mean over these
    variance: Floats  # float64[K], and the variance between queries
    default: int  # where the default is
    labels: tuple[str, ...] = ()
    known_current: float = 0.0  # the same difference of what is used today; 0 where nothing is known of it
    favoured: bool = False  # whether public collections favour the default over what is used today

    @classmethod
    def of(
        cls,
        keys: Sequence[str],
        table: PublicTable,
        model: str,
        sha256: str = "",
        shown: PublicGains | None = None,
        favoured: bool = False,
    ) -> "FewLabelCandidates | None":
        """From the names of all candidates (`config_key`); None where the default is not among them.

        `sha256` is of the user's own data: a public collection says nothing about itself. `shown` is what public
        collections showed of the default over what is used today.
        """
        candidates: dict[str, int] = {}
        for row, key in enumerate(keys):
            if key in table.rows:
                candidates.setdefault(table.rows[key], row)
        if public.DEFAULT not in candidates:
            return None
        labels = [label for label in public.CONTENDERS if label in candidates]
        kind, others = public.class_of(model), table.others(sha256)
        kind = kind if kind in table.variances else public.MINILM
        known = [(table.means[kind][label] - table.means[kind][public.DEFAULT])[others].mean() for label in labels]
        variance = [table.variances[kind][label][others].mean() for label in labels]
        rows = np.array([candidates[label] for label in labels], dtype=np.int64)
        known_current = 0.0 if shown is None else -float(shown.gains.mean())
        default = candidates[public.DEFAULT]
        return cls(rows, np.array(known), np.array(variance), default, tuple(labels), known_current, favoured)

    @property
    def favourite(self) -> int | None:
        """What public collections favour; None is what is used today."""
        return self.default if self.favoured else None

    def leader(self, scored: Scored, candidate: int | None = None) -> int | None:
        """The contender furthest ahead of what stands, else that; None is what is used today.

        Where the default stands, what is used today is a contender like the others. `candidate` is what labels
        alone would choose among all that is tried.
        """
        middle, rows = float(self.variance.mean()), [*self.rows.tolist()]
        if self.favourite is None:
            base = np.zeros(scored.metric.shape[1])
            differences = scored.metric[self.rows]
            known, variance = self.known - self.known_current, self.variance
        else:
            rows.append(None)
            base = np.asarray(scored.metric[self.favourite], dtype=np.float64)
            differences = np.vstack([scored.metric[self.rows] - base, -base])
            known, variance = np.append(self.known, self.known_current), np.append(self.variance, middle)
        prior = PriorGains(known, variance, np.full(len(rows), public.PRIOR_QUERIES))
        ahead = ahead_by(differences, scored.units, prior, LEAD_SD_CONTENDERS)
        if candidate is not None:
            table, of = scored.prior_metric, [candidate]
            mean, effective_n = table.mean[of], table.effective_n[of]
            if self.favourite is not None:
                mean = mean - table.mean[self.favourite]
                effective_n = np.minimum(effective_n, table.effective_n[self.favourite])
            prior = PriorGains(mean, np.array([middle]), effective_n)
            ahead = np.append(ahead, ahead_by(scored.metric[of] - base, scored.units, prior, LEAD_SD_CANDIDATES))
            rows.append(candidate)
        top = int(np.argmax(ahead))
        return rows[top] if ahead[top] > 0 else self.favourite


def ahead_by(differences: Matrix, units: Indices, prior: PriorGains, deviations: float) -> Floats:
    """float64[C]: posterior means of differences, float[C, n], less so many of their deviations."""
    gains = posterior(spread(differences, units), prior)
    return np.asarray(gains.mean - deviations * gains.deviation, dtype=np.float64)


def decide_with_public_prior(
    decision: rule.Ruling,
    expect: rule.Expectation,
    gates: rule.Gates,
    few: FewLabelCandidates | None,
    labelled: int,
    find_blocker: Callable[[int], Blocker | None] = lambda candidate: None,
) -> tuple[rule.Ruling, bool]:
    """The decision, and whether it now rests on public collections.

    Below `MIN_TO_SHIP` labelled questions nothing ships. What does not ship for want of proof gives way to the
    leader; where nothing is `labelled`, to what public collections favour.
    """
    scored = expect.scored
    if (scored.second is not None and decision.verdict != "keep") or (
        decision.verdict == "keep" and decision.blocker
    ):
        return decision, False  # it rests on more than labels, or on labels that mislead the posterior as well
    if decision.verdict == "ship" and labelled < MIN_TO_SHIP:
        decision = replace(decision, verdict="try", blocker=decision.blocker or TOO_FEW)
    proven = decision.verdict == "ship" or (decision.blocker is not None and decision.more is None)
    if few is None or (proven and labelled >= MIN_TO_SHIP):
        return decision, False
    top = few.leader(scored, decision.candidate) if labelled else few.favourite
    by_public = labelled < MIN_TO_SHIP and top == few.favourite
    if top is None:
        return rule.keep_decision(scored), by_public
    attempt = decision if top == decision.candidate else rule.try_decision(expect, gates, top, find_blocker(top))
    if attempt.verdict == "try" and attempt.more is not None:  # with fewer nothing ships, whatever is expected
        fewest = queries_needed(labelled)
        least, most = (count and max(count, fewest) for count in attempt.more_range)
        attempt = replace(attempt, more=max(attempt.more, fewest), more_range=(least, most))
    return attempt, by_public and attempt.verdict == "try"


def decide_from_pairs(expect: rule.Expectation, gates: rule.Gates, row: int | None) -> rule.Ruling:
    """The decision on pairs that were chosen one by one: their own leader, whatever queries say.

    `row` is the leader, which is worth trying; None is what is used today, which is kept.
    """
    if row is None:
        return rule.keep_decision(expect.scored)
    return rule.try_decision(expect, gates, row, chosen_queries("duel"))


_OWN = ("severity", "importance", "importance_tier", "document_type", "spec_level", "tags", "domain")
SIGNAL_FIELDS = {name: (name,) for name in _OWN} | {
    "promised": ("memory_type", "document_type", "context_type"),
    "popularity": ("access_count",),
    "retrievability": ("stability",),
    "corrections": ("correction_count",),
}
"""Signals that no public collection has, and the fields of an entry that each reads."""
QUERY_SIGNALS = frozenset({"tags", "domain"})  # those that compare an entry with what its query names


def queries_needed(labelled: int, enough: int = MIN_TO_SHIP) -> int:
    """How many more queries to label until labels decide; `judge` counts by it what recommend asks for."""
    return max(enough - labelled, 0)


@dataclass(frozen=True)
class UnlabelledAdvice:
    """What to do without proof, and what is said of it.

    `attempt` is the default under try, `shown` what public collections showed; `labelled` and `pairs` are what was
    judged: different questions, and single pairs by duel; `more` pairs count.
    """

    verdict: Literal["try", "keep"]
    message: Message
    attempt: SearchConfig | None = None
    shown: PublicGains | None = None
    labelled: int = 0
    pairs: int = 0
    more: int = 0

    @property
    def labels_needed(self) -> int | None:
        """How many more queries to label; None where it is pairs."""
        return max(queries_needed(self.labelled), 1) if self.labelled and not self.pairs else None


def advise(
    label: str,
    config: SearchConfig | None,
    limit: int,
    model: str,
    sha256: str = "",
    labelled: int = 0,
    pairs: int = 0,
    facts: Sequence[str] = (),
) -> UnlabelledAdvice:
    """What to do with a current configuration (None for lists alone) of which the labels prove nothing.

    `model` is that of the vectors, empty without any, `sha256` that of the data set, which says nothing about
    itself; `labelled` different questions have labels, or `pairs` were judged that a duel chose. `facts` are by
    what it ranks here and could not rank there (`fact_signals_used`): its figures there are of something else.
    """
    known: dict[str, Fact] = {"current": label, "unmeasured": not labelled}
    known |= {"pairs": (labelled and pairs) or None, "labelled": None if pairs else labelled or None}
    advice = partial(UnlabelledAdvice, labelled=labelled, pairs=pairs)
    if not model:
        return advice("keep", Message("public_no_vectors", known))
    if config is not None and public.near_default(config):
        return advice("keep", Message("public_as_good", known))
    shown = None if config is None or facts else public.public_table().against(config, model, sha256)
    if shown is None:
        lacks = Message("public_lacks", {**known, "facts": list(facts)})
        return advice("keep", lacks if facts else Message("public_not_run", known))
    known |= {**shown.facts, "vectors": public.vectors_of(model)}
    if not shown.likely:
        return advice("keep", Message("public_keep", known), shown=shown)
    made = find_system("plain").config(config.limit if config else limit, model)
    return advice("try", Message("public_try", known), made.with_strategy(parse_strategy(public.DEFAULT)), shown)


def fact_signals_used(config: SearchConfig | None, dataset: Dataset) -> list[str]:
    """The signals by which a configuration ranks these notes, and which no public collection has the facts for.

    On workshop, which has them, the default loses .034 to .161 to soleri, over which it was better on all ten
    public collections (docs/evidence/few-labels.md).
    """
    used = set() if config is None else SIGNAL_FIELDS.keys() & _signals_with_weight(config.effective)
    return [
        name
        for name in sorted(used)
        if any(len({getattr(entry, field) for entry in dataset.entries}) > 1 for field in SIGNAL_FIELDS[name])
        and (name not in QUERY_SIGNALS or any(getattr(query, name) for query in dataset.queries))
    ]


def _signals_with_weight(strategy: Expr) -> frozenset[str]:
    silent = [term.expr for term in strategy.own_terms if term.weight == 0]
    children = strategy.children
    signals = strategy.signals.difference(*(child.signals for child in children))
    return signals.union(*(_signals_with_weight(child) for child in children if child not in silent))
