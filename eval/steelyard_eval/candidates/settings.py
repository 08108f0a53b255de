"""The discrete parameters of a search: everything that is tuned but its weights.

A shape is a strategy with one choice of the parameters of its families (normalisation, k, threshold, half-life);
a setting is a shape with a choice of depth. Settings are listed; the weights of each are searched exactly.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import add

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.finish import Cut
from steelyard.fusion import Expr, all_variants, leaves, near_variants
from steelyard.fusion.node import Linear, Signal
from steelyard.fusion.ranks import Rrf
from steelyard.fusion.sums import WeightedSum
from steelyard.grammar import number_text
from steelyard.memory.words import language_of
from steelyard.retrievers import RETRIEVER_KINDS
from steelyard.signals import PRIORS
from steelyard.systems import find_system
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.configurations import written_name

MAX_SETTINGS = 500
DEPTHS = (1.0, 0.5, 2.0)  # times the depth of every retriever; never less than the limit


def settings(config: SearchConfig, most: int = MAX_SETTINGS) -> list[SearchConfig]:
    """Every shape at every depth, the given configuration first, those of one depth together.

    Where there are more than `most` together, the other depths with the given shape alone.
    """
    every = shapes(config.strategy, most)
    here, *others = depths(config)
    elsewhere = every if len(every) * (1 + len(others)) <= most else every[:1]
    return [here.with_strategy(shape) for shape in every] + [
        other.with_strategy(shape) for other in others for shape in elsewhere
    ]


RECORDED, RECORDED_WORDS = 1000, 5000
"""Queries that may be searched again to try parameters of retrievers, each value of which is a recording; of
retrievers that start from no other's list more, because they are fast."""


def of_retrievers(config: SearchConfig, queries: int, idle: Collection[str] = ()) -> list[SearchConfig]:
    """The configuration under other parameters of its retrievers, one at a time, as they declare them.

    None of a retriever with which that many `queries` would be searched too often. `idle` parameters stay.
    """
    tried, reading = list[SearchConfig](), find_system(config.name).reading
    read = [name for name in config.retrievers if name in config.effective.signals and name in RETRIEVER_KINDS]
    for name in read:
        kind, settings, own = RETRIEVER_KINDS[name], config.retrievers[name], list[SearchConfig]()
        values = [(of.name, value) for of in kind.parameters if of.name not in idle for value in of.tried]
        for option, value in values:
            changed = replace(settings, parameters={**settings.parameters, option: value})
            other = replace(config, retrievers={**config.retrievers, name: changed})
            with suppress(ConfigError):  # the lists that it starts from may be less deep than it reads them
                other.before(name)
                kind.check(reading, changed)
                own.append(other)
        tried += own if len(own) * queries <= (RECORDED if kind.after else RECORDED_WORDS) else []
    return tried


MAX_SAMPLED_TEXTS, MIN_SHARE = 500, 0.2
_OTHER_SCRIPTS = re.compile("[\u0370-\u1fff\u2e80-\uffff]")
_IDENTIFIER = re.compile("[a-z][A-Z]|[A-Za-z]_[A-Za-z]")


def idle_options(texts: Sequence[str]) -> frozenset[str]:
    """The options of analysis that are not tried on these texts.

    identifiers where few texts have one of several parts, ngrams where nearly all are English.
    """
    some = texts[:: max(1, len(texts) // MAX_SAMPLED_TEXTS)]
    parted = sum(bool(_IDENTIFIER.search(text)) for text in some)
    foreign = sum(bool(_OTHER_SCRIPTS.search(text)) or language_of(text) not in ("", "english") for text in some)
    counts = ("identifiers", parted), ("ngrams", foreign)
    return frozenset(name for name, count in counts if count < max(1, MIN_SHARE * len(some)))


def recorded_alike(settings: Sequence[SearchConfig]) -> list[list[SearchConfig]]:
    """The settings in order, those together whose retrievers have the same parameters."""
    alike = itertools.groupby(settings, key=lambda each: [kept.parameters for kept in each.retrievers.values()])
    return [list(part) for _, part in alike]


def depths(config: SearchConfig) -> list[SearchConfig]:
    """The configuration at every depth, its own first, without repetition."""
    deepened = [_deepened(config, factor) for factor in DEPTHS]
    return [deeper for i, deeper in enumerate(deepened) if deeper not in deepened[:i]]


def _deepened(config: SearchConfig, factor: float) -> SearchConfig:
    """The configuration with every depth times a factor, rounded up; depths that are not limited stay so.

    A list shorter than what is shown would be no choice anybody makes.
    """
    retrievers = {
        name: replace(kept, depth=max(math.ceil(kept.depth * factor), min(kept.depth, config.limit)))
        for name, kept in config.retrievers.items()
        if kept.depth is not None
    }
    return replace(config, retrievers={**config.retrievers, **retrievers})


def shapes(strategy: Expr, most: int = MAX_SETTINGS) -> list[Expr]:
    """Every shape of a strategy under its own weights, the given one first, without repetition.

    Where there are more than `most` together, those that differ in a single parameter.
    """
    together = list(itertools.islice(all_variants(strategy, most + 1), most + 1))
    return list(dict.fromkeys([strategy, *(together if len(together) <= most else near_variants(strategy))]))


DIGITS = 6


def config_key(config: SearchConfig) -> str:
    """A name for a configuration: its system, the depths it reads, its strategy with weights that sum to 1."""
    return f"{setting_key(config)} {with_shares(config.effective)}"


def setting_key(config: SearchConfig) -> str:
    """The part of the name that does not depend on the strategy's weights."""
    strategy = config.effective
    read = sorted(strategy.signals & config.retrievers.keys() or config.retrievers.keys())
    system = "plain" if config.system in ("fts", "bm25", "vector") else config.system
    moved = any(kept.parameters for kept in config.retrievers.values())  # to what may not be the system's own
    name = f"{system}:{config.profile}" + ("".join(written_name(config).partition("[")[1:]) if moved else "")
    return f"{name} {','.join(f'{n}={config.depths[n]}' for n in read)}"


def with_shares(expr: Expr) -> Expr:
    """The strategy with the weights of each sum scaled to 1, so that the scale does not part equal rankings."""
    if expr.routes:
        return expr.with_children([with_shares(child) for child in expr.children])
    total = sum(expr.weights)
    return expr.with_weights([round(weight / total, DIGITS) for weight in expr.weights]) if total > 0 else expr


def texts_with_shares(expr: Expr, rows: Sequence[Sequence[float]]) -> list[str]:
    """The texts of `with_shares` under each of these weights; of a sum they differ in its numbers alone."""
    marks = [0.5 + (place + 1) * 1e-9 for place in range(len(expr.weights))]  # that nobody writes
    pattern = "|".join(re.escape(f"{number_text(mark)}*") for mark in marks)
    parts = re.split(pattern, str(expr.with_weights(marks))) if marks else []
    if expr.routes or expr.wraps or len(parts) != len(marks) + 1:
        return [str(with_shares(expr.with_weights(row))) for row in rows]
    texts, bare = [], expr.unwritten is not None
    for row in rows:
        total = sum(row)
        shares = [round(weight / total, DIGITS) for weight in row] if total > 0 else row
        numbers = ["" if bare and share == 1 else f"{number_text(share)}*" for share in shares]
        texts.append(parts[0] + "".join(map(add, numbers, parts[1:])))
    return texts


SAME_SHARE = 0.101  # by less the shares of weights lie apart in what is the same sum on another scale


def same_sum(one: Expr, other: Expr) -> bool:
    """Whether two sums of the same terms differ in their scale and hardly in the shares of their weights."""
    first, second = one.describe(), other.describe()
    if type(one) is not type(other) or not (isinstance(first, Linear) and isinstance(second, Linear)):
        return False
    mine, theirs = (
        {str(term.expr): term.weight / (sum(each.weight for each in sum_.terms) or 1.0) for term in sum_.terms}
        for sum_ in (first, second)
    )
    return (
        first.scale != second.scale
        and mine.keys() == theirs.keys()
        and all(abs(share - theirs[name]) < SAME_SHARE for name, share in mine.items())
    )


WRITTEN_DIGITS = range(2, 17)
MAX_METRIC_CHANGE = 0.0005  # how much shorter writing may move the mean of a metric


def constant_signals(table: SignalTable, strategy: Expr) -> list[str]:
    """The derived signals in a strategy that are the same for all candidates of every query, by name."""
    every, begins = np.ones(len(table), dtype=bool), table.offsets[:-1][np.diff(table.offsets) > 0]
    priors = [leaf for leaf in leaves(strategy) if leaf.name in PRIORS and PRIORS[leaf.name].reads is not None]
    columns = [(leaf.name, leaf.compile(table, every).branches[0].columns[0].values) for leaf in priors]
    ends = np.maximum.reduceat, np.minimum.reduceat
    busy = {name for name, of in columns if len(begins) and np.not_equal(*(end(of, begins) for end in ends)).any()}
    return sorted({name for name, _ in columns} - busy)


FAINT = 0.02  # of all weights: a list with no more only fills up what the others leave


def faint_signals(strategy: Expr) -> list[set[str]]:
    """The signals of each term that has hardly any weight in a sum, and that stand nowhere else."""
    terms = () if strategy.routes else strategy.own_terms
    least = FAINT * sum(term.weight for term in terms)
    read = Counter(node.name for node in strategy.walk() if isinstance(node, Signal))
    faint = [term.expr.signals for term in terms if term.weight <= least]
    return [{name for name in names if read[name] == 1} for names in faint]


def simplify_config(
    table: SignalTable, config: SearchConfig, means: Callable[[SearchConfig], Floats]
) -> SearchConfig:
    """Without a guarded cut, and without constant or faint signals where no metric moves more than rounding may.

    `means` gives the mean of every metric, float64[M]. A signal that is equal for all candidates still moves some
    where scores are compared with a fixed one, as those of Soleri's memories are. A sum of one list is that list.
    """
    config = without_guarded_cut(config)
    idle = [*({name} for name in constant_signals(table, config.strategy)), *faint_signals(config.strategy)]
    if not any(idle):
        return config
    before = means(config)
    for names in filter(None, idle):
        left = config.strategy.without(names)
        drafts = [] if left is None else [_as_one_list(left), left] if config.system == "plain" else [left]
        shorter = (config.with_strategy(draft) for draft in drafts)
        config = next((one for one in shorter if np.abs(means(one) - before).max() <= MAX_METRIC_CHANGE), config)
    return config


def _as_one_list(strategy: Expr) -> Expr:
    alone = isinstance(strategy, Rrf | WeightedSum) and [*map(type, strategy.children)] == [Signal]
    return strategy.children[0] if alone else strategy


def without_guarded_cut(config: SearchConfig) -> SearchConfig:
    """The configuration whose lists are never longer than the limit: without Soleri's guard of small vaults."""
    bare = [Cut(stage.limit) if isinstance(stage, Cut) else stage for stage in config.finish]
    return replace(config, finish=tuple(bare))


def round_weights(config: SearchConfig, means: Callable[[SearchConfig], Floats]) -> SearchConfig:
    """The configuration with its weights in two significant digits, or the fewest more that move no metric.

    `means` gives the mean of every metric, float64[M]; none may move by more than `MAX_METRIC_CHANGE`.
    """
    before = means(config)
    for digits in WRITTEN_DIGITS:
        weights = [float(f"{weight:.{digits}g}") for weight in config.strategy.weights]
        shorter = config.with_strategy(config.strategy.with_weights(weights))
        if shorter == config or np.abs(means(shorter) - before).max() <= MAX_METRIC_CHANGE:
            return shorter
    return config
