"""Query enhancement: acronyms spelled out, misspelled acronyms recognised, and a table of frequent typos.

The document puts all three into hybrid search. The JavaScript code has them in a module that nothing calls, and
the TypeScript code dropped them. Tables and rules are the JavaScript code's (04a827ec); the edit distance is
Levenshtein's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from steelyard.systems.spec_kit.tables import WORDS, table

ACRONYMS = table("acronyms")
"""The 55 acronyms and what each stands for."""

TYPOS = {wrong: right for right, every in table("misspelled").items() for wrong in every}
"""The 35 typos and their corrections."""

_STOP_WORDS = frozenset(WORDS["stop_words_of_acronyms"])
"""The 82 words that are not misspelled acronyms."""

_BLANKS = re.compile(r"(?:[^\S\x1c-\x1f\x85]|\ufeff)+")
"""White space as JavaScript has it."""
KEPT = 1024
"""Queries that are kept as they were enhanced: recordings ask for the same ones again."""
MAX_EDITS = 2
MIN_TERM = 3
"""Characters of the shortest word that is looked up; two-letter acronyms are never expanded, as in the code."""
LONG_TERM = 4
"""Characters from which a word is compared with the words an acronym stands for."""


@lru_cache(KEPT)
def enhanced(query: str) -> str:
    """The query with its typos mended and its acronyms spelled out: what the document matches keywords by.

    >>> enhanced("tf-idf serach").split()[:2]
    ['tf-idf', 'search']
    """
    return expand(correct(query))


def expand(query: str) -> str:
    """The query, followed by what its acronyms stand for and by the acronyms that its words point to.

    >>> expand("tf-idf weights")
    'tf-idf weights Term Frequency Inverse Document Frequency tfidf'
    """
    expansions = dict.fromkeys(text for term in _BLANKS.split(query) for text in _expansions(term))
    return " ".join((query, *expansions))


def correct(query: str) -> str:
    """The query with every known typo mended, and one blank wherever there is white space.

    >>> correct("serach  qeury"), correct("   ")
    ('search query', ' ')
    """
    return " ".join(TYPOS.get(word.lower(), word) for word in _BLANKS.split(query))


def acronyms_like(term: str) -> list[str]:
    """What every acronym one edit away from the term stands for, in the order of the table.

    Acronyms of up to four characters have to be as long as the term.

    >>> acronyms_like("BM26")
    ['Best Matching 25', 'Okapi BM25', 'keyword search']
    """
    if term.lower() in _STOP_WORDS:
        return []
    return [text for name, texts in ACRONYMS.items() if _is_near(term.upper(), name) for text in texts]


def _expansions(term: str) -> Iterator[str]:
    if len(term) < MIN_TERM:
        return
    exact = ACRONYMS.get(term.upper())
    if exact is not None:
        yield from exact
        return
    yield from acronyms_like(term)
    if len(term) >= LONG_TERM:
        yield from _pointed_to(term)


def _is_near(term: str, acronym: str) -> bool:
    from rapidfuzz.distance import Levenshtein  # here and below: every command would wait for it

    room = 0 if len(acronym) <= 4 else 1
    return abs(len(term) - len(acronym)) <= room and Levenshtein.distance(term, acronym, score_cutoff=1) <= 1


def _pointed_to(term: str) -> Iterator[str]:
    """The acronyms of which a word is at most `MAX_EDITS` away from the term, in the order of the table."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    words, names = _spelled()
    edits = cdist([term.lower()], words, scorer=Levenshtein.distance, score_cutoff=MAX_EDITS)[0]
    near = {names[i] for i in (edits <= MAX_EDITS).nonzero()[0]}
    return (name for name in ACRONYMS if name in near)


@cache
def _spelled() -> tuple[list[str], list[str]]:
    """Every longer word that an acronym stands for, and the acronym of each."""
    pairs = [
        (word, name)
        for name, texts in ACRONYMS.items()
        for text in texts
        for word in text.lower().split()
        if len(word) >= LONG_TERM
    ]
    return [word for word, _ in pairs], [name for _, name in pairs]
