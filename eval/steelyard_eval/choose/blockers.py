"""Why labels cannot carry a ship, whatever the figures say: how their queries were drawn, whose lists were judged.

Queries that were chosen because the current configuration fails on them flatter every other one, for it regresses
to its mean on the rest. Labels that were found in one contender's list flatter whatever ranks like it. A data set
says how both came about (`datasets.labels`); where it does not, the traces that both leave are looked for. How
often that finds them: docs/evidence/tuning.md.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.config import LISTS, SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.labels import RANDOM_SAMPLES, SAMPLINGS, UNKNOWN_SAMPLES, JudgedPool
from steelyard_eval.measures.judgments import condensed
from steelyard_eval.measures.metrics import Judgments, Measure, evaluate, known_mean
from steelyard_eval.result.structs import Blocker, Fact

MIN_SD_RATIO = 0.75
"""The least standard deviation of the current one's scores between queries, as a share of the candidate's. Random
samples of 25 queries or more have more of it in 98 to 99%, and 30 queries of its worst third less in 98%."""
MIN_NEGATIVES = 3.0
"""Judged entries that are not relevant among the first places of either side, a query on average, from which on a
comparison of judged entries alone speaks: with fewer, one label of grade 0 turned every third ship."""
MIN_RELEVANT_ENTRIES = 20  # relevant entries from which on it tells something that all of them are in one list
MAX_P_NO_GAIN_UNKNOWN_POOL, MAX_P_NO_GAIN_KNOWN_POOL = 0.05, 0.5
"""The largest doubt in a gain among judged entries: where no pool is stated, and where the stated one covers the
current configuration. Then few entries are missing, and what is left only must not speak against the gain."""
CUTOFF = 10  # the first places that have to be judged, for a metric without a cutoff
SIGNALS_THAT_RANK_ALIKE = {
    "words": frozenset({"fts", "bm25", "tfidf"}),
    "vectors": frozenset({"vector", "cosine", "l0", "l1", "l2"}),
}


MISLEADING_SD_RATIO = 0.5
"""The same share below which the labels move nothing. Of 17 to 30 queries of six collections no random sample had
less than 0.63, under four current configurations, and half of those of the worst third had less than 0.5. It lies
far from the other bound, so that no single label turns a ship to keep."""
MIN_TO_SHIP = 20  # labelled queries that choose better than the default; five do not: docs/evidence/few-labels.md
TOO_FEW = Blocker("too_few", {"fewest": MIN_TO_SHIP}, "label_queries")
INTERRUPTED = Blocker("interrupted", remedy="search_again")
DRAWN = frozenset({"label_queries", "draw_more", "draw"})  # remedies that are labels of queries drawn at random


@dataclass(frozen=True)
class ContenderScores:
    """Per-query scores of one contender on the Q labelled queries."""

    # label, config: its name, and its configuration where it is more than lists
    label: str
    config: SearchConfig | None
    # values, bare: float64[Q], the metric, and the same over judged entries alone
    values: Floats
    bare: Floats
    # judged, found: float64[Q], the share of the first places that is judged (NaN where there are none), and of
    # relevant entries in them
    judged: Floats
    recall: Floats
    relevant: Indices  # int64[Q], how many entries are relevant
    negatives: float  # judged entries among the first places that are not relevant, a query on average

    @classmethod
    def of(
        cls,
        label: str,
        config: SearchConfig | None,
        lists: tuple[Indices, NDArray[np.integer]],
        judgments: Judgments,
        metric: Measure,
    ) -> "ContenderScores":
        """From its lists (offsets and entries, as `evaluate` takes them), best deeper than the metric looks."""
        places = metric.cutoff or CUTOFF
        share, recall, precision = (Measure(family, places) for family in ("Judged", "R", "P"))
        seen = evaluate(*lists, judgments, [metric, share, recall, precision])
        bare = evaluate(*condensed(*lists, judgments), judgments, [metric])
        judged = np.nan_to_num(seen[share]) * np.minimum(np.diff(lists[0]), places)
        negatives = float((judged - seen[precision] * places).mean()) if len(judged) else 0.0
        return cls(
            label, config, seen[metric], bare[metric], seen[share], seen[recall], judgments.relevant, negatives
        )


def find_blocker(
    dataset: Dataset,
    metric: Measure,
    current: ContenderScores,
    chosen: ContenderScores,
    finders: Iterable[ContenderScores],
    doubt: Callable[[Floats], float],
) -> Blocker | None:
    """Why the labels cannot carry a ship; None where nothing speaks against it.

    `finders`: contenders whose lists may have been all that was judged; `doubt`: the probability that differences
    between the two sides, float64[Q], are no gain.
    """
    cutoff = metric.cutoff or CUTOFF
    both: dict[str, Fact] = {"cutoff": cutoff, "current": current.label, "other": chosen.label}
    if how := some_chosen(dataset):
        return how
    if dataset.sampled in UNKNOWN_SAMPLES:
        if len(current.recall) and not current.recall.any():  # it may not be able to read these texts
            facts: dict[str, Fact] = {"current": current.label, "cutoff": cutoff, "queries": len(current.recall)}
            return Blocker("nothing_found", facts, "check_language")
        # Scores that hardly spread are those of queries that were chosen for being low.
        std, other = float(current.values.std()), float(chosen.values.std())
        if std < MIN_SD_RATIO * other:
            return Blocker("flat", {"current": current.label, "spread": std, "wider": other}, "say_how_drawn")
    for pool in dataset.pools:
        if pool is not None and not pool.complete:
            covered = current.label in pool.contenders or _finds(current.label, current.config) <= _pooled(pool)
            if not covered or pool.depth < cutoff:
                return Blocker("pool_misses", {"pool": str(pool), **both}, "judge_both")
    most = MAX_P_NO_GAIN_KNOWN_POOL if dataset.pool else MAX_P_NO_GAIN_UNKNOWN_POOL
    # Whether the gain is gone where entries that were not judged are taken out.
    enough = max(current.negatives, chosen.negatives) >= MIN_NEGATIVES
    if enough and not dataset.complete and doubt(chosen.bare - current.bare) > most:
        shares = {"judged": known_mean(current.judged), "others": known_mean(chosen.judged)}
        return Blocker("unjudged_gain", {**both, **shares}, "judge_both")
    some, count = current.relevant > 0, int(current.relevant.sum())
    if not dataset.pool and count >= MIN_RELEVANT_ENTRIES and (current.recall[some] < 1).any():
        for finder in (chosen, *finders):
            if (finder.recall[some] == 1).all():
                facts = {"count": count, "finder": finder.label, **both, "other": finder.label}
                return Blocker("one_list", facts, "say_the_pool")
    return None


def misleads(blocker: Blocker | None) -> bool:
    """Whether the queries were chosen for failing: of 20 tries by such labels 14 to 20 lost on other queries."""
    if blocker is None or blocker.key != "flat":
        return blocker is not None and blocker.key == "failing"
    return bool(blocker.facts["spread"] < MISLEADING_SD_RATIO * blocker.facts["wider"])  # type: ignore[operator]  # both are numbers


def some_chosen(dataset: Dataset) -> Blocker | None:
    """That not all labelled queries were drawn, where the data set says so, of all or of each."""
    drawn, labelled = len(dataset.random_queries), len(dataset.qrels)
    if set(dataset.sampling_by_query.values()) <= RANDOM_SAMPLES | UNKNOWN_SAMPLES:
        return None
    if not drawn:
        return chosen_queries(dataset.sampled or "by hand")
    return Blocker("some_chosen", {"drawn": drawn, "labelled": labelled}, "draw_more")


def chosen_queries(sampled: str) -> Blocker:
    """That the queries were chosen, and how."""
    if sampled == "failing":
        return Blocker("failing", remedy="draw")
    return Blocker("chosen_queries", {"how": SAMPLINGS[sampled]}, "draw")


def _finds(label: str, config: SearchConfig | None) -> frozenset[str]:
    """In what ways a contender finds entries: by words, by vectors, in the lists of other engines by name."""
    if config is None:
        return frozenset({label})
    signals = config.effective.signals
    return signals if config.system == LISTS else _ways(signals)


def _pooled(pool: JudgedPool) -> frozenset[str]:
    """The same of the contenders of a pool, as far as their names tell; nothing is opened."""
    ways = frozenset(pool.contenders)
    for name in pool.contenders:
        for read in (lambda text: find_system(text).config(CUTOFF).effective, parse_strategy):
            with suppress(ConfigError):
                ways |= _ways(read(name).signals)
    return ways


def _ways(signals: frozenset[str]) -> frozenset[str]:
    return frozenset(way for way, names in SIGNALS_THAT_RANK_ALIKE.items() if signals & names)
