"""English full-text search by PostgreSQL's rules, without PostgreSQL.

`websearch` turns typed text into a query, and `tsvector` turns a text into lexemes with positions. `matches` and
`rank` apply a query to one text, `TsIndex` to all texts of a scope. All were compared with PostgreSQL 15.
"""

from steelyard.retrievers.tsearch.english import TsVector, tsvector
from steelyard.retrievers.tsearch.expression import And, Lexeme, LexemePhrase, Node, Not, Or, has_negation, matches
from steelyard.retrievers.tsearch.index import TsIndex, flat
from steelyard.retrievers.tsearch.rank import rank
from steelyard.retrievers.tsearch.websearch import websearch

__all__ = [
    "And",
    "Lexeme",
    "LexemePhrase",
    "Node",
    "Not",
    "Or",
    "TsIndex",
    "TsVector",
    "flat",
    "has_negation",
    "matches",
    "rank",
    "tsvector",
    "websearch",
]
