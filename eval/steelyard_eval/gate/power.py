"""How far the gate can be trusted on these labels: its power and its false alarms, from planted regressions.

The contender is made worse on purpose: a signal is left out, weights are swapped, the embedder is noised, keywords
match without stemming, the final order is noised. Each regression is diluted to a mean drop of .05: a random share
of the units keeps its difference, and of these some with the opposite sign, because real changes win some of what
they lose elsewhere. The units are drawn again and the rule is applied: the share blocked is the power. With the
signs drawn at random the same changes are neither better nor worse, and the share blocked is the rate of false
alarms. Both are near the truth and no bounds: real drops may be caught .1 less often, and real changes that are as
good are blocked up to .01 more often (docs/gate.md). The difference to the baseline is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.memory.text import content, unique_words
from steelyard.table.signal_table import EMBEDDING, SignalTable
from steelyard_eval.common.documents.gate import PowerRecord
from steelyard_eval.datasets import Dataset
from steelyard_eval.gate.answers import GateAnswers, deeper, ranked
from steelyard_eval.gate.rule import Changes, judge
from steelyard_eval.gate.values import composite, measure
from steelyard_eval.measures.runs import Scored
from steelyard_eval.recording.replay import replay

DROP = 0.05
"""The drop of nDCG@10 that the power is about."""
DRAWS = 400
"""Samples of the units, a planted regression."""
ASLEEP = 0.5
CHURN = 1.4
"""How many queries a real drop touches, over those of one that only loses: as measured between configurations of
public collections (docs/gate.md). A planted regression has to be that much larger than the drop."""
NOISE = (1.0, 3.0)
"""Standard deviations of noise on an embedder's scores, over theirs."""
SHUFFLE = (1.0, 2.0)
"""Standard deviations of noise on the logarithm of the ranks."""
KEYWORDS = ("fts", "bm25")


@dataclass(frozen=True)
class Power:
    """What the gate catches of a contender's planted regressions.

    Attributes
    ----------
    caught : float or None
        The share of drops of .05 that is blocked; None when no planted regression is that large.
    false_alarms : float or None
        The share blocked of changes that are neither better nor worse.
    planted : tuple of (name, drop, share caught or None)
        Each regression: its own drop, and None for those too small to be diluted.
    """

    label: str
    caught: float | None
    false_alarms: float | None
    planted: tuple[tuple[str, float, float | None], ...]
    drop: float = DROP

    @property
    def asleep(self) -> bool:
        """Whether the gate would miss most drops."""
        return self.caught is not None and self.caught < ASLEEP

    def record(self) -> PowerRecord:
        """The statement for the document."""
        return {
            "drop": self.drop,
            "caught": self.caught,
            "false_alarms": self.false_alarms,
            "asleep": self.asleep,
            "planted": [{"name": name, "drop": drop, "caught": caught} for name, drop, caught in self.planted],
        }


def power_of(answers: GateAnswers, dataset: Dataset, queries: Sequence[Query], unit: Indices, seed: int) -> Power:
    """The power statement of a contender, from its answers of today."""
    base = answers.values
    matrices = {name: matrix - base.matrix for name, matrix in planted(answers, dataset, queries, seed)}
    return statement(answers.label, matrices, unit, deep=base.deep, seed=seed)


def statement(
    label: str, regressions: Mapping[str, Floats], unit: Indices, *, deep: bool, seed: int, drop: float = DROP
) -> Power:
    """The power statement from planted differences: float64[3, Q] each, worse minus base."""
    rng = np.random.default_rng([seed, 16])
    rows: list[tuple[str, float, float | None]] = []
    alarms = []
    for name, difference in regressions.items():
        mean = float(difference[0].mean())
        if -mean < CHURN * drop:
            rows.append((name, mean, None))
            continue
        caught, false = _blocked(Changes.of(difference[0], composite(difference, deep), unit), drop, rng)
        rows.append((name, mean, caught))
        alarms.append(false)
    shares = [caught for _, _, caught in rows if caught is not None]
    return Power(
        label,
        float(np.mean(shares)) if shares else None,
        float(np.mean(alarms)) if alarms else None,
        tuple(rows),
        drop,
    )


def _blocked(planted: Changes, drop: float, rng: np.random.Generator) -> tuple[float, float]:
    """The share blocked of a planted regression diluted to a drop, and of the same with random signs."""
    size = planted.counts.size
    share = -CHURN * drop / float(planted.ndcg.sum() / planted.counts.sum())
    drawn = rng.integers(0, size, (DRAWS, size))
    kept = rng.random((DRAWS, size)) < share
    worse = np.where(rng.random((DRAWS, size)) < (1 + 1 / CHURN) / 2, 1.0, -1.0)
    equal = rng.choice([-1.0, 1.0], (DRAWS, size))
    caught, false = (
        judge(
            Changes(
                kept * signs * planted.ndcg[drawn],
                kept * signs * planted.composite[drawn],
                planted.counts[drawn],
            )
        ).fails.mean()
        for signs in (worse, equal)
    )
    return float(caught), float(false)


def planted(
    answers: GateAnswers, dataset: Dataset, queries: Sequence[Query], seed: int
) -> Iterator[tuple[str, Floats]]:
    """Every planted regression by name, float64[3, Q] each."""
    if answers.config is not None and answers.recorded is not None:
        for name, table, config in worsened(answers.config, answers.recorded, dataset, queries, seed):
            try:
                lists = replay(table, deeper(config)).ranked
            except ConfigError:
                continue  # the strategy reads what is left out in another way
            yield name, measure(lists, lists, dataset.qrels).matrix
    for size in SHUFFLE:
        lists = ranked(queries, shuffled(answers.deep, size, seed))
        yield f"order noised by {size:g}", measure(lists, lists, dataset.qrels).matrix


def worsened(
    config: SearchConfig, table: SignalTable, dataset: Dataset, queries: Sequence[Query], seed: int
) -> Iterator[tuple[str, SignalTable, SearchConfig]]:
    """The configuration and its recording with one thing made worse each time."""
    for signal in sorted(config.effective.signals()):
        left = config.effective.without({signal})
        if left is not None and left != config.effective:
            yield f"{signal} left out", table, replace(config, strategy=left, by_intent={})
    swapped = _swapped(config)
    if swapped is not None:
        yield "weights swapped", table, swapped
    for name in sorted(EMBEDDING & table.columns.keys()):
        for size in NOISE:
            yield f"{name} noised by {size:g}", _noised(table, name, size, seed), config
    words = [name for name in KEYWORDS if name in table.columns]
    if words:
        unstemmed = _unstemmed(table, words, dataset, queries)
        yield "keywords without stemming", unstemmed, config


def _swapped(config: SearchConfig) -> SearchConfig | None:
    """The weights of the strategy in reverse order; None where that changes nothing."""
    strategy = config.effective
    swapped = strategy.with_weights(strategy.weights[::-1])
    return None if swapped == strategy else replace(config, strategy=swapped, by_intent={})


def _noised(table: SignalTable, name: str, size: float, seed: int) -> SignalTable:
    """A retriever's scores with noise of a size over their spread, and its list in the new order."""
    values = table.columns[name]
    rng = np.random.default_rng([seed, 17])
    noisy = values + size * np.nanstd(values) * rng.standard_normal(values.size)
    return _with_column(table, name, noisy)


def _unstemmed(
    table: SignalTable, names: Sequence[str], dataset: Dataset, queries: Sequence[Query]
) -> SignalTable:
    """Keyword lists as they are when words match only as they are written: in proportion to the words that do."""
    words = [frozenset(unique_words(query.text)) for query in queries]
    texts = {entry.id: entry for entry in dataset.entries}
    known: dict[str, frozenset[str]] = {}
    share = np.array(
        [
            _shared(words[query], table.entries[entry], texts, known)
            for query, entry in zip(table.query.tolist(), table.entry.tolist(), strict=True)
        ]
    )
    for name in names:
        values = table.columns[name] * share
        table = _with_column(table, name, np.where(share > 0, values, np.nan))
    return table


def _shared(
    words: frozenset[str], id_: str, entries: Mapping[str, Entry], known: dict[str, frozenset[str]]
) -> float:
    """The share of a query's words that stand in an entry as they are written."""
    if id_ not in known:
        known[id_] = frozenset(unique_words(content(entries[id_])))
    return len(words & known[id_]) / max(len(words), 1)


def _with_column(table: SignalTable, name: str, values: Floats) -> SignalTable:
    """A retriever's column replaced, with the places that its new values give."""
    places = np.zeros(len(table), dtype=np.int32)
    order = np.lexsort((table.entry, -np.nan_to_num(values, nan=-np.inf), table.query))
    places[order] = np.arange(len(table)) - np.repeat(table.offsets[:-1], np.diff(table.offsets)) + 1
    places[np.isnan(values)] = 0
    positions = {**table.positions, name: places} if name in table.positions else table.positions
    return replace(table, columns={**table.columns, name: values}, positions=positions)


def shuffled(lists: Sequence[Sequence[Scored]], size: float, seed: int) -> list[list[Scored]]:
    """Lists in the order of the logarithm of their ranks with noise."""
    rng = np.random.default_rng([seed, 18])
    noisy = []
    for ranking in lists:
        keys = np.log(np.arange(1, len(ranking) + 1)) + size * rng.standard_normal(len(ranking))
        noisy.append([ranking[i] for i in np.argsort(keys, kind="stable").tolist()])
    return noisy
