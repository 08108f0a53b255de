"""What is tried: every family of strategies over the signals that the data set has, and the systems' own.

Nothing here reads a label, so the candidates are the same in every fold and on every half.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from steelyard.base.errors import ConfigError
from steelyard.config.search_config import SearchConfig
from steelyard.finish import stages_without
from steelyard.fusion import FAMILIES
from steelyard.memory.query import Query
from steelyard.systems import SYSTEMS, find_system
from steelyard.table.signal_table import LAYERS, RERANK
from steelyard_eval.compare.contenders import Contender, Setting
from steelyard_eval.datasets import GIVEN, Dataset
from steelyard_eval.decide.grid import LINE
from steelyard_eval.tune.source import Source
from steelyard_eval.tune.tuned_parameters import settings

SETTINGS = 30
"""Of a system, and of the two families that are common: beyond it one parameter is varied at a time, and depth
with the given ones alone."""
FEW = 10
"""As many settings are tried of each of the other families."""
COLUMNS = 600
"""Weights laid out over all settings of a family; of the two that are common, all."""
COMMON = {
    "weighted_sum": "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)",
    "rrf": "rrf(bm25, vector, k=60)",
}
SPECIAL = {
    "boost": "boost(rrf(bm25, vector, k=60), decay)",
    "tiered": "tiered(fts, min_results=10, then=rrf(fts, vector, k=60))",
    "layered": "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.4, 0.3])",
}
"""Around these settings and weights are laid out; the other families take two lists as they are."""
SAME = frozenset({"comb_sum"})
"""Another name of a weighted sum."""
PRESETS = tuple(
    name.removesuffix(":documented")
    for name in SYSTEMS
    if name.endswith(":documented") and name != "plain:documented"
)
"""The baselines and the five systems as documented, and as the environment configures them."""
LEAST_PER_INTENT = 5
"""Queries of an intent, below which it goes with the rest."""


@dataclass(frozen=True)
class Start:
    """A configuration around which settings and weights are laid out, with the settings, its own first.

    `preset` is true where people run it as it is: a system, or one retriever alone.
    """

    label: str
    config: SearchConfig
    settings: tuple[SearchConfig, ...]
    preset: bool = False

    @classmethod
    def around(cls, row: Contender, source: Source) -> Start:
        """Its shapes and depths as far as they can be measured, none re-ranked, or all would have to be scored."""
        wide = row.config.system != "plain" or row.config.strategy.common
        bare = replace(row.config, finish=stages_without(row.config.finish, {RERANK}))
        found = source.reached(settings(bare, SETTINGS if wide else FEW))
        return cls(row.label, row.config, tuple(found), row.kind == "system")

    @property
    def columns(self) -> int:
        """How many weights are laid out over its settings."""
        return len(self.settings) * len(LINE) if self.config.strategy.common else COLUMNS


def starts(source: Source, queries: Sequence[Query], limit: int) -> list[Start]:
    """A start for each family and system, as far as there is what it needs."""
    setting = Setting(limit, source.model, source.lists)
    if source.lists is None:
        texts = {
            **dict(_families()),
            **dict(_over_facts(source.dataset, queries)),
            **dict(_by_intent(source, queries)),
        }
        texts = {label: text.replace("bm25", source.words) for label, text in texts.items()}
        presets = {name: find_system(name).config(limit, source.model, os.environ) for name in PRESETS}
    else:
        texts, presets = dict(_over_lists(source.lists)), {name: setting.strategy(name) for name in source.lists}
    rows = [Contender(label, setting.strategy(text), "family") for label, text in texts.items()]
    rows += [Contender(name, config, "system") for name, config in presets.items()]
    found = (_whole(source, row) for row in rows)
    return [Start.around(row, source) for row in found if row is not None]


def _families() -> Iterator[tuple[str, str]]:
    """Every family that fuses lists, by its title."""
    for keyword, family in FAMILIES.items():
        if keyword in COMMON or keyword in SPECIAL:
            yield family.shown_as, (COMMON | SPECIAL)[keyword]
        elif not family.by_query and keyword not in SAME:
            yield family.shown_as, f"{keyword}(bm25, vector)"


def _over_lists(lists: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The families that fuse lists, over all lists of other engines, and each list as the first tier."""
    every = ", ".join(lists)
    for keyword, family in FAMILIES.items() if len(lists) > 1 else ():
        if keyword == "weighted_sum":
            terms = ", ".join(f"{1 / len(lists):.4g}*{name}" for name in lists)
            yield family.shown_as, f"weighted_sum({terms}, normalize=minmax)"
        elif keyword in COMMON or not (keyword in SPECIAL or family.by_query or keyword in SAME):
            yield family.shown_as, f"{keyword}({every})"
    for name in lists if len(lists) > 1 else ():
        yield f"{name} first", f"tiered({name}, min_results=10, then=rrf({every}, k=60))"


def _whole(source: Source, row: Contender) -> Contender | None:
    """The contender where there is what it needs: a system as far as it goes, a family only as a whole.

    A family that lost a part is another family, and a system that lost its layers is a search by vectors.
    """
    try:
        left, notices = source.usable(row)
    except ConfigError:
        return None
    lost = row.config.effective.signals() - left.config.effective.signals()
    return left if not notices or (row.kind == "system" and lost.isdisjoint(LAYERS)) else None


def _over_facts(dataset: Dataset, queries: Sequence[Query]) -> Iterator[tuple[str, str]]:
    """A sum of keywords, vectors and every fact that differs between entries, where there is one."""
    facts = _facts(dataset, queries)
    if facts:
        terms = "".join(f", 0.1*{fact}" for fact in facts)
        yield "all signals", f"weighted_sum(0.3*bm25, 0.7*vector{terms}, normalize=minmax)"


def _facts(dataset: Dataset, queries: Sequence[Query]) -> list[str]:
    entries = dataset.entries

    def differs(name: str) -> bool:
        return len({getattr(entry, name) for entry in entries} - {None, ""}) > 1

    facts = {
        "recency(half_life=90d)": differs("created_at"),
        "importance": differs("importance"),
        "severity": differs("severity"),
        "tags": differs("tags") and any(query.tags for query in queries),
        "domain": differs("domain") and any(query.domain for query in queries),
    }
    return [name for name, there in facts.items() if there]


def _by_intent(source: Source, queries: Sequence[Query]) -> Iterator[tuple[str, str]]:
    """Weights of their own for each intent that enough queries are asked with: nothing classifies them here."""
    counts = Counter(query.intent for query in queries if query.intent and source.intents == GIVEN)
    often = sorted(intent for intent, count in counts.items() if count >= LEAST_PER_INTENT)
    if often:
        mixture = COMMON["weighted_sum"]
        cases = "".join(f", {intent}={mixture}" for intent in often)
        yield "by intent", f"by_intent(default={mixture}{cases})"


def with_current(found: list[Start], source: Source, label: str, config: SearchConfig | None) -> list[Start]:
    """The starts, and one around the current configuration where there is one and it is none of them."""
    if config is None:
        return found
    own = replace(config, strategy=config.effective, by_intent={})
    known = any(start.config == own for start in found)
    return found if known else [*found, Start.around(Contender(label, own, "system"), source)]
