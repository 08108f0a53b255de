"""English full-text search by PostgreSQL's rules, without PostgreSQL.

`websearch` turns typed text into a query, and `tsvector` turns a text into lexemes with positions. `matches` and
`rank` apply a query to one text, `TsIndex` to all texts of a scope. All were compared with PostgreSQL 15.
"""

from steelyard.tsearch.english import TsVector, tsvector
from steelyard.tsearch.index import TsIndex, flat
from steelyard.tsearch.query import And, Node, Not, Or, Phrase, Term, has_negation, matches
from steelyard.tsearch.rank import rank
from steelyard.tsearch.websearch import websearch

__all__ = [
    "And",
    "Node",
    "Not",
    "Or",
    "Phrase",
    "Term",
    "TsIndex",
    "TsVector",
    "flat",
    "has_negation",
    "matches",
    "rank",
    "tsvector",
    "websearch",
]
