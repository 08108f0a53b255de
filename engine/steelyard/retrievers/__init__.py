"""Retrievers find candidates (query -> entries with scores); scorers compute a number for every candidate.

To add one, write a module with its declaration and name it in the list below.
"""

from collections.abc import Collection

from steelyard.node import Registry
from steelyard.retrievers import graph, keywords, tsearch, vector
from steelyard.retrievers.heuristics import HOUSEKEEPING, URI_BONUS
from steelyard.retrievers.kinds import Kind, RetrieverKind, ScorerKind

RETRIEVER_KINDS: Registry[RetrieverKind] = Registry(
    "retriever",
    "name",
    (
        *(keywords.FTS, keywords.BM25, vector.VECTOR, vector.L0, vector.L1, vector.L2, vector.UNINDEXED),
        *(keywords.MEMORY, vector.CONSTITUTIONAL, graph.GRAPH),
    ),
)
SCORER_KINDS: Registry[ScorerKind] = Registry(
    "scorer",
    "name",
    (
        *(keywords.TFIDF, vector.COSINE_SCORE, tsearch.LEXICAL, keywords.TERMS, vector.INSIDE),
        *(HOUSEKEEPING, URI_BONUS),
    ),
)


def layers_read(signals: Collection[str]) -> set[str]:
    """Return the layers of vectors that these signals compare queries with."""
    kinds: list[Kind] = [*RETRIEVER_KINDS.values(), *SCORER_KINDS.values()]
    return {kind.layer for kind in kinds if kind.name in signals and kind.layer}


RETRIEVERS = frozenset(RETRIEVER_KINDS)
"""Signals that have a value only for the entries they returned."""
SCORERS = frozenset(SCORER_KINDS)
"""Signals computed for every candidate, whichever retriever found it."""
FETCHED = RETRIEVERS | SCORERS
"""Signals stored in the table as columns; the others are derived from facts."""
LAYERS = tuple(kind.name for kind in RETRIEVER_KINDS.values() if kind.uncut)
"""Signals with a value for every entry in scope; layered strategies apply their own threshold to them."""
SEPARATE_SIGNALS = frozenset(kind.name for kind in RETRIEVER_KINDS.values() if kind.separate_scope is not None)
"""Signals of entries that are searched separately and merged into the ranking by a finish stage."""
DEPENDENT = frozenset(kind.name for kind in RETRIEVER_KINDS.values() if kind.after)
"""Signals whose retrievers start from what others found."""
CANDIDATE_RETRIEVERS = RETRIEVERS - SEPARATE_SIGNALS - DEPENDENT - frozenset(LAYERS)
"""Signals whose lists, cut at a depth, make the candidates of strategies that name no retriever."""
EMBEDDING = frozenset(name for name in FETCHED if layers_read({name}))
"""Signals that need the query's embedding."""
