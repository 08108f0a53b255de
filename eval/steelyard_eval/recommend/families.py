"""What is tried: every family of strategies over the signals that the data set has, and the systems' own.

Nothing here reads a label, so the candidates are the same in every fold and on every half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from steelyard.config import SearchConfig
from steelyard.errors import ConfigError
from steelyard.fusion import FAMILIES, parse_strategy
from steelyard.query import Query
from steelyard.systems import SYSTEMS, find_system
from steelyard.table import LAYERS
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.recommend.grid import LINE
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.tune.settings import settings

SETTINGS = 30
"""Of a system, and of the two families that are common: beyond it one parameter is varied at a time, and depth
with the given ones alone."""
FEW = 10
"""The same of the other families."""
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
"""The baselines and the five systems, as documented."""
LEAST_PER_INTENT = 5
"""Queries of an intent, below which it goes with the rest."""


@dataclass(frozen=True)
class Start:
    """A configuration around which settings and weights are laid out."""

    label: str
    config: SearchConfig
    preset: bool = False
    """Whether people run it as it is: a system, or one retriever alone."""

    @property
    def settings(self) -> list[SearchConfig]:
        """Itself first, then its shapes and depths."""
        return settings(self.config, SETTINGS if self.wide else FEW)

    @property
    def columns(self) -> int:
        """How many weights are laid out over its settings."""
        return len(self.settings) * len(LINE) if self.config.strategy.common else COLUMNS

    @property
    def wide(self) -> bool:
        """Whether all its parameters are varied together."""
        return self.config.system != "plain" or self.config.strategy.common


def starts(space: Workspace, queries: Sequence[Query], limit: int) -> list[Start]:
    """A start for each family and system, as far as the data set has what it needs."""
    plain = find_system("plain").config(limit, space.model)
    texts = {**dict(_families()), **dict(_over_facts(space, queries)), **dict(_by_intent(queries))}
    rows = [Contender(label, plain.with_strategy(parse_strategy(text)), "family") for label, text in texts.items()]
    rows += [Contender(name, find_system(name).config(limit, space.model), "system") for name in PRESETS]
    found = (_whole(space, row) for row in rows)
    return [Start(row.label, row.config, row.kind == "system") for row in found if row is not None]


def _families() -> Iterator[tuple[str, str]]:
    """Every family that fuses lists, by its title."""
    for keyword, family in FAMILIES.items():
        if keyword in COMMON or keyword in SPECIAL:
            yield family.shown_as, (COMMON | SPECIAL)[keyword]
        elif not family.by_query and keyword not in SAME:
            yield family.shown_as, f"{keyword}(bm25, vector)"


def _whole(space: Workspace, row: Contender) -> Contender | None:
    """The contender where the data set can feed it: a system as far as it goes, a family only as a whole.

    A family that lost a part is another family, and a system that lost its layers is a search by vectors.
    """
    try:
        left, notices = usable(space, row)
    except ConfigError:
        return None
    lost = row.config.effective.signals() - left.config.effective.signals()
    return left if not notices or (row.kind == "system" and lost.isdisjoint(LAYERS)) else None


def _over_facts(space: Workspace, queries: Sequence[Query]) -> Iterator[tuple[str, str]]:
    """A sum of keywords, vectors and every fact that differs between entries, where there is one."""
    facts = _facts(space, queries)
    if facts:
        terms = "".join(f", 0.1*{fact}" for fact in facts)
        yield "all signals", f"weighted_sum(0.3*bm25, 0.7*vector{terms}, normalize=minmax)"


def _facts(space: Workspace, queries: Sequence[Query]) -> list[str]:
    entries = space.dataset.entries

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


def _by_intent(queries: Sequence[Query]) -> Iterator[tuple[str, str]]:
    """Weights of their own for each intent that enough queries are labelled with."""
    counts: dict[str, int] = {}
    for query in queries:
        if query.intent:
            counts[query.intent] = counts.get(query.intent, 0) + 1
    often = sorted(intent for intent, count in counts.items() if count >= LEAST_PER_INTENT)
    if often:
        mixture = COMMON["weighted_sum"]
        cases = "".join(f", {intent}={mixture}" for intent in often)
        yield "by intent", f"by_intent(default={mixture}{cases})"


def with_current(found: list[Start], label: str, config: SearchConfig | None) -> list[Start]:
    """The starts, and one around the current configuration where there is one and it is none of them."""
    if config is None:
        return found
    own = replace(config, strategy=config.effective, by_intent={})
    known = any(start.config == own for start in found)
    return found if known else [*found, Start(label, own, preset=True)]
