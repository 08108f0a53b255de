"""What is tried: every family of strategies over the signals that the data set has, and the systems' own.

Nothing here reads a label, so the candidates are the same in every fold and on every half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.config import SearchConfig
from steelyard.errors import ConfigError
from steelyard.fusion import parse_strategy
from steelyard.query import Query
from steelyard.systems import find_system
from steelyard.table import FINDERS
from steelyard_eval import SYSTEMS
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.tune.settings import settings

SETTINGS = 30
"""Of one family: beyond it one parameter is varied at a time, and depth with the given ones alone."""
TEMPLATES = {
    "weighted sum": "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)",
    "RRF": "rrf(bm25, vector, k=60)",
    "tiered": "tiered(fts, min_results=10, then=rrf(fts, vector, k=60))",
    "layered": "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.5, relax=[0.4, 0.3])",
}
"""One strategy of each family, around which settings and weights are laid out."""
LEAST_PER_INTENT = 5
"""Queries of an intent, below which it goes with the rest."""


def offered(space: Workspace, queries: Sequence[Query], limit: int) -> list[Contender]:
    """One starting point a family and system, as far as the data set has what it needs."""
    texts = {**TEMPLATES, **dict(_over_facts(space, queries)), **dict(_by_intent(queries))}
    plain = find_system("plain").config(limit, space.model)
    found = [Contender(label, plain.with_strategy(parse_strategy(text)), "family") for label, text in texts.items()]
    for name in SYSTEMS:
        system = find_system(name)
        found.append(Contender(name, system.config(limit, space.model), "system"))
    return [row for row in (_whole(space, row) for row in found) if row is not None]


def _whole(space: Workspace, row: Contender) -> Contender | None:
    """The contender where the data set can feed all of it; a family that lost a part is another family."""
    try:
        left, notices = usable(space, row)
    except ConfigError:
        return None
    return left if not notices or row.kind == "system" else None


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
        mixture = TEMPLATES["weighted sum"]
        cases = "".join(f", {intent}={mixture}" for intent in often)
        yield "by intent", f"by_intent(default={mixture}{cases})"


def laid_out(config: SearchConfig) -> list[SearchConfig]:
    """The settings of one family that are tried."""
    return settings(config, SETTINGS)


def single(row: Contender) -> bool:
    """Whether it is one retriever alone, with nothing to tune."""
    return len(row.config.effective.signals() & FINDERS) == 1 and not row.config.effective.children()
