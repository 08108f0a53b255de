"""What is tried: every family of strategies over what the data set has and the systems' own, or one strategy.

Families, retrievers and signals declare what there is to try (`Expr.initial_strategies`, `Option.tried`); here it
is found out which of it tells entries apart on this data, and what is left out is named. Nothing reads a label,
so the candidates are the same in every fold and on every half.
"""

import itertools
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.finish import stages_without
from steelyard.fusion import FAMILIES, parse_strategy
from steelyard.fusion.node import Available
from steelyard.memory.query import Query
from steelyard.memory.text import content
from steelyard.retrievers import CANDIDATE_RETRIEVERS, DEPENDENT, LAYERS, layers_read
from steelyard.signals import PRIORS
from steelyard.systems import SYSTEMS, find_system
from steelyard.table.signal_table import RERANK, SignalTable
from steelyard_eval.candidates.grid import LINE
from steelyard_eval.candidates.settings import idle_options, of_retrievers, recorded_alike, settings, shapes
from steelyard_eval.common.configurations import Setting
from steelyard_eval.compare.contenders import Contender, Given, read, read_config
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import GIVEN, Dataset
from steelyard_eval.recording.record import index_all
from steelyard_eval.result.structs import Message

SETTINGS = 30
"""Of a system, and of the two families that are common: beyond it one parameter is varied at a time, and depth
with the given ones alone."""
SETTINGS_OF_OTHERS = 10  # as many settings are tried of each of the other families
COLUMNS = 600  # weights laid out over all settings of a family; of the two that are common, all
ALONE = 10_000  # the same where one strategy is tuned alone
TIER = "fts"  # the search by words that may answer alone: it is the cheapest
WORDS = frozenset({"bm25", "fts"})  # retrievers by words, of which a fusion has one
VECTOR = "vector"
SHARES = (0.3, 0.7)  # the weights of words and vectors that EchoVault documents
PRESETS = tuple(
    name.removesuffix(":documented")
    for name in SYSTEMS
    if name.endswith(":documented") and name not in ("plain:documented", "mem0:documented")
)
"""The baselines and the five systems as documented, and as the environment configures them.

mem0 is tried where it is named: what recommendations keep of their promise was measured without it.
"""
LEAST_PER_INTENT = 5  # queries of an intent, below which it goes with the rest
MAX_RANK_CORRELATION = 0.9  # the correlation of two signals' ranks above which one of them is enough
SAMPLE = 100  # queries on which it is seen which signals tell entries apart


@lru_cache(maxsize=2)  # every family of a command asks
def idle(dataset: Dataset) -> frozenset[str]:
    """The options of analysis that are not tried on the entries of a data set."""
    return idle_options([content(entry) for entry in dataset.entries])


@dataclass(frozen=True)
class StartingPoint:
    """A configuration around which settings and weights are laid out, with the settings, its own first.

    `preset` is true where people run it as it is: a system, or one retriever alone. `most` is how many weights are
    laid out over its settings, where that does not follow from its family.
    """

    label: str
    config: SearchConfig
    settings: tuple[SearchConfig, ...]
    preset: bool = False
    most: int = 0

    @classmethod
    def alone(cls, row: Contender, source: Source, queries: int, weights_only: bool) -> "StartingPoint":
        """Every shape and depth that can be measured, or, if `weights_only`, the settings as they are written."""
        tried = [row.config] if weights_only else settings(row.config)
        if source.space is not None and not weights_only:
            tried += of_retrievers(row.config, queries, idle(source.dataset))
        return cls(row.label, row.config, tuple(source.reached(tried)), True, ALONE)

    @classmethod
    def around(
        cls, row: Contender, source: Source, others: Sequence[SearchConfig] = (), queries: int = 0
    ) -> "StartingPoint":
        """Its shapes and depths as far as they can be measured, then others of its kind as they are.

        Parameters of retrievers are tried where the search of so many `queries` for each of their values is
        affordable. None is re-ranked, or all candidates would have to be scored.
        """
        wide = row.config.system != "plain" or row.config.strategy.common
        bare = [
            replace(config, finish=stages_without(config.finish, {RERANK})) for config in (row.config, *others)
        ]
        tried = [*settings(bare[0], SETTINGS if wide else SETTINGS_OF_OTHERS), *bare[1:]]
        if wide and source.space is not None:
            tried += [other for config in bare for other in of_retrievers(config, queries, idle(source.dataset))]
        return cls(row.label, row.config, tuple(source.reached(tried)), row.kind == "system")

    @property
    def columns(self) -> int:
        """How many weights are laid out over its settings."""
        return self.most or (len(self.settings) * len(LINE) if self.config.strategy.common else COLUMNS)

    @property
    def parts(self) -> list[list[SearchConfig]]:
        """The settings that can share a recording, the configuration among the first."""
        return recorded_alike(self.settings)


def starts(
    source: Source, queries: Sequence[Query], limit: int, label: str = "", current: SearchConfig | None = None
) -> tuple[StartingPoint, ...]:
    """A start for each family and system, as far as there is what it needs, and one around what is used today.

    That is the `current` configuration, of a `label`, where there is one and it is none of the others.
    """
    setting = source.setting(limit)
    if source.lists is None:
        presets = {name: find_system(name).config(limit, source.model, os.environ) for name in PRESETS}
    else:
        presets = {name: setting.strategy(name) for name in source.lists}
    if source.space is not None:
        index_all(source.space, [*presets.values(), *([current] if current else [])])
    there = available(source, queries, setting)
    rows: list[tuple[str, str, list[SearchConfig]]] = [
        (name, "family", [setting.strategy(text) for text in texts])
        for family in FAMILIES.values()
        for name, texts in family.initial_strategies(there).items()
    ]
    rows += [(name, "system", [config]) for name, config in presets.items()]
    tried: list[StartingPoint] = []
    for name, kind, configs in rows:
        made = (_whole(source, Contender(name, config, kind)) for config in configs)
        if whole := [row for row in made if row is not None]:
            tried.append(StartingPoint.around(whole[0], source, [row.config for row in whole[1:]], len(queries)))
    if current is not None:
        own = replace(current, strategy=current.effective, by_intent={})
        if all(start.config != own for start in tried):
            row = Contender(label, own, "system")
            tried.append(StartingPoint.around(row, source, (), len(source.dataset.queries)))
    return tuple(tried)


def available(source: Source, queries: Sequence[Query], setting: Setting) -> Available:
    """What there is to fuse, seen on a sample of the queries."""
    if source.lists is None:
        lists = {source.words: SHARES[0], VECTOR: SHARES[1]}
        others = sorted((CANDIDATE_RETRIEVERS | DEPENDENT) - WORDS - {VECTOR})
        layers = tuple(name for name in LAYERS if layers_read({name}))
        tiers: dict[str, tuple[str, ...]] = {TIER: (TIER, VECTOR)}
    else:
        lists = {name: 1 / len(source.lists) for name in source.lists}
        others, layers = [], ()
        tiers = dict.fromkeys(source.lists, source.lists) if len(source.lists) > 1 else {}
    counts = Counter(query.intent for query in queries if query.intent and source.intents == GIVEN)
    intents = tuple(sorted(intent for intent, count in counts.items() if count >= LEAST_PER_INTENT))
    there = Available(lists, tiers=tiers, layers=layers, intents=intents)
    some = queries[:: -(-len(queries) // SAMPLE)]
    try:
        table = source.record_supplied(some, setting.strategy(f"rrf({', '.join([*lists, *others])})"))
    except ConfigError:
        return there
    further = tuple(name for name in others if np.isfinite(table.columns.get(name, np.array([]))).any())
    known = telling_facts(table)
    facts, factors = (
        tuple(text for name, text in known.items() if PRIORS[name].factor == kind) for kind in (0, 1)
    )
    return replace(there, further=further, facts=facts, factors=factors)


def telling_facts(table: SignalTable) -> dict[str, str]:
    """The derived signals that tell candidates apart, by name as they are written.

    Those that order them as another does are left out.
    """
    every = np.ones(len(table), dtype=bool)
    orders: dict[str, Floats] = {}
    texts: dict[str, str] = {}
    for name, prior in PRIORS.items():
        first = [f"{option}={o.tried[0]}" for option, o in prior.options.items() if o.tried]
        words = [(f"{option}={word}",) for option, o in prior.options.items() for word in list(o.words)[1:]]
        for tried in ([*first, *word] for word in [(), *words]):  # once with each of its words
            text = f"{name}({', '.join(tried)})" if tried else name
            order = _order(table, parse_strategy(text).compile(table, every).branches[0].columns[0].values)
            if order.any():
                if all(order @ known <= MAX_RANK_CORRELATION for known in orders.values()):
                    orders[name], texts[name] = order, text
                break
    return texts


def _order(table: SignalTable, values: Floats) -> Floats:
    """float64[N] of length 1: the ranks within each query about their mean, equal values at their middle rank.

    0 where all values are equal.
    """
    centred = np.zeros(len(table))
    for begin, end in itertools.pairwise(table.offsets.tolist()):
        # scipy.stats ranks, too, and takes a second to import
        _, places, counts = np.unique(values[begin:end], return_inverse=True, return_counts=True)
        centred[begin:end] = (np.cumsum(counts) - (counts - 1) / 2)[places] - (end - begin + 1) / 2
    return centred / (np.linalg.norm(centred) or 1.0)


def _whole(source: Source, row: Contender) -> Contender | None:
    """The contender where there is what it needs: a system as far as it goes, a family only as a whole.

    A family that lost a part is another family, and a system that lost its layers is a search by vectors.
    """
    try:
        left, notices = source.usable(row)
    except ConfigError:
        return None
    lost = row.config.effective.signals - left.config.effective.signals
    return left if not notices or (row.kind == "system" and lost.isdisjoint(LAYERS)) else None


@dataclass(frozen=True)
class Only:
    """The one strategy that is tuned.

    `word` is how a command names it, None where it exists in Python alone; with `weights_only` its settings stay
    as they are written. `notices` say what it runs without.
    """

    row: Contender
    word: str | None
    weights_only: bool
    notices: tuple[Message, ...] = ()


def read_current(given: Given, limit: int, source: Source) -> Contender | ListContender:
    """Any contender: a system, an expression, a weights file, a run, an endpoint, a table of lists, a function.

    Raises ConfigError for what is none, or needs what the data set or the recording does not have.
    """
    contender = read(given, lists=source.lists or ())
    return contender if isinstance(contender, ListContender) else source.supplied(contender, limit)[0]


def read_only(given: Given, limit: int, source: Source, weights_only: bool) -> Only:
    """One strategy that is tuned alone; ConfigError for one that has lists alone, or nothing to tune."""
    named = read_config(given, source.lists or ())
    row, notices = source.supplied(named, limit)
    strategy = row.config.effective
    parameters = source.space and not weights_only and of_retrievers(row.config, 1, idle(source.dataset))
    if len(shapes(strategy)) == 1 and len(strategy.weights) < 2 and not parameters:
        raise ConfigError(
            f"{strategy} has nothing to tune; name a strategy with weights, such as rrf(fts, vector)"
        )
    config = replace(row.config, strategy=strategy, by_intent={})
    return Only(replace(row, config=config), named.word, weights_only, tuple(notices))
