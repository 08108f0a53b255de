"""Query enhancement: acronyms spelled out, misspelled acronyms recognised, and a table of frequent typos.

The document puts all three into hybrid search. The JavaScript code has them in a module that nothing calls, and
the TypeScript code dropped them. Tables and rules are the JavaScript code's (04a827ec); the edit distance is
Levenshtein's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

ACRONYMS: dict[str, tuple[str, ...]] = {
    "RRF": ("Reciprocal Rank Fusion", "rank fusion"),
    "BM25": ("Best Matching 25", "Okapi BM25", "keyword search"),
    "FTS": ("Full Text Search", "fulltext"),
    "FTS5": ("Full Text Search 5", "SQLite FTS5"),
    "TF-IDF": ("Term Frequency Inverse Document Frequency", "tfidf"),
    "RAG": ("Retrieval Augmented Generation", "retrieval augmented"),
    "LLM": ("Large Language Model", "language model"),
    "NLP": ("Natural Language Processing", "text processing"),
    "ML": ("Machine Learning", "model training"),
    "AI": ("Artificial Intelligence", "intelligent system"),
    "GPT": ("Generative Pre-trained Transformer", "transformer model"),
    "MCP": ("Model Context Protocol", "context protocol"),
    "FSRS": ("Free Spaced Repetition Scheduler", "spaced repetition", "memory decay"),
    "ANCHOR": ("memory anchor", "context anchor", "section marker"),
    "HOT": ("hot memory", "active memory", "high attention"),
    "WARM": ("warm memory", "recent memory", "moderate attention"),
    "COLD": ("cold memory", "old memory", "low attention"),
    "TTL": ("Time To Live", "expiration time", "cache duration"),
    "API": ("Application Programming Interface", "web service", "endpoint"),
    "CLI": ("Command Line Interface", "terminal", "command line"),
    "SDK": ("Software Development Kit", "dev kit"),
    "IDE": ("Integrated Development Environment", "code editor"),
    "VSC": ("Visual Studio Code", "VS Code", "vscode"),
    "JSON": ("JavaScript Object Notation", "json data"),
    "YAML": ("YAML Ain't Markup Language", "yaml config"),
    "SQL": ("Structured Query Language", "database query"),
    "DB": ("Database", "data storage"),
    "ORM": ("Object Relational Mapping", "database mapper"),
    "CSS": ("Cascading Style Sheets", "styles", "stylesheet"),
    "HTML": ("HyperText Markup Language", "markup", "web page"),
    "JS": ("JavaScript", "ECMAScript"),
    "TS": ("TypeScript", "typed javascript"),
    "DOM": ("Document Object Model", "page elements"),
    "CDN": ("Content Delivery Network", "asset hosting"),
    "URL": ("Uniform Resource Locator", "web address", "link"),
    "HTTP": ("HyperText Transfer Protocol", "web protocol"),
    "HTTPS": ("HTTP Secure", "secure http"),
    "REST": ("Representational State Transfer", "rest api"),
    "CHK": ("checklist item", "verification check"),
    "REQ": ("requirement", "specification requirement"),
    "ADR": ("Architecture Decision Record", "decision record"),
    "P0": ("Priority Zero", "blocker", "critical priority"),
    "P1": ("Priority One", "high priority", "required"),
    "P2": ("Priority Two", "medium priority", "optional"),
    "LOC": ("Lines of Code", "code size"),
    "KPI": ("Key Performance Indicator", "metric", "success metric"),
    "E001": ("embedding failed", "embedding error"),
    "E040": ("search failed", "query too long"),
    "E050": ("API key invalid", "authentication error"),
    "DDD": ("Domain Driven Design", "domain design"),
    "TDD": ("Test Driven Development", "test first"),
    "SOLID": ("Single responsibility Open-closed Liskov Interface Dependency", "design principles"),
    "DRY": ("Don't Repeat Yourself", "avoid duplication"),
    "KISS": ("Keep It Simple Stupid", "simplicity"),
    "YAGNI": ("You Ain't Gonna Need It", "avoid overengineering"),
}
"""The 55 acronyms and what each stands for."""

_MISSPELLED: dict[str, str] = {
    "reciprocal": "reciporcal recripocal",
    "levenshtein": "levenstein levinstein",
    "JavaScript": "javascript javscript javasript",
    "TypeScript": "typescipt typscript",
    "embedding": "embbeding embedidng embeding",
    "retrieval": "retreival retieval retireval",
    "search": "seach serach",
    "query": "qeury qurey",
    "database": "databse datbase",
    "memory": "memeory memroy",
    "function": "fucntion funciton",
    "implement": "implemnt implment",
    "configuration": "configration configuraiton",
    "initialize": "initalize intiialize",
    "asynchronous": "asyncronous asynchornous",
    "promise": "promies promse",
}
TYPOS = {wrong: right for right, every in _MISSPELLED.items() for wrong in every.split()}
"""The 35 typos and their corrections."""

_STOP_WORDS = frozenset(
    """the a an and or but in on at to for of with by from as is was are were be been being have has had do does
    did will would could should may might must shall can need dare ought used it its this that these those what
    which who whom whose where when why how all each every both few more most other some such no nor not only
    own same so than too very just also now here there""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
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
