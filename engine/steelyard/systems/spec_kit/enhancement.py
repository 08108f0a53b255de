"""Enhanced queries: acronyms spelled out, misspelled acronyms recognised, frequent typos mended.

The document puts enhancement into hybrid search; the JavaScript code has it in a module that nothing calls, and
the TypeScript code dropped it.
"""

import re
from functools import lru_cache

from steelyard.systems.spec_kit import words

ACRONYMS = words.table("acronyms")  # the 55 acronyms and what each stands for
TYPOS = {wrong: right for right, every in words.table("misspelled").items() for wrong in every}
"""The 35 typos and their corrections."""
_NO_ACRONYMS = frozenset(words.WORDS["stop_words_of_acronyms"])  # the 82 words that are not misspelled acronyms
_BLANKS = re.compile(r"(?:[^\S\x1c-\x1f\x85]|\ufeff)+")  # white space as JavaScript has it
MAX_EDITS = 2
MIN_TERM = 3  # characters of the shortest word that the program looks up: it never expands acronyms of two letters
LONG_TERM = 4  # characters from which a word is compared with the words an acronym stands for
_SPELLED = tuple(
    (word, name)
    for name, texts in ACRONYMS.items()
    for word in " ".join(texts).lower().split()
    if len(word) >= LONG_TERM
)
"""Every longer word that an acronym stands for, and the acronym, in the order of the table."""


@lru_cache(1024)
def enhanced(query: str) -> str:
    """The query with its typos mended and its acronyms spelled out: what the document matches keywords by.

    Beyond what the program does, acronyms of two letters fire, and a word that resembles a known one is followed
    by that; it stays, because it may be right. Recordings ask for the same queries again: the last are kept.

    >>> enhanced("databasse js")
    'databasse js SQL DB ORM JavaScript ECMAScript database'
    """
    mended = correct(query)
    terms = [term for term in _BLANKS.split(mended) if term]
    short = (ACRONYMS.get(term.upper(), ()) for term in terms if len(term) < MIN_TERM)
    added = dict.fromkeys((*(text for texts in short for text in texts), *filter(None, map(resembled, terms))))
    return " ".join((expand(mended), *added))


KNOWN = tuple(dict.fromkeys(word.lower() for word in TYPOS.values()))
"""The words that typos are mended to. Those that acronyms stand for are none: "selection" resembles "section"."""


def resembled(term: str) -> str:
    """The known word that a misspelled one is 1 edit (Levenshtein) away from, or 2 from nine letters on, or none.

    Another form of a known word, which has its stem, is not misspelled.
    """
    from rapidfuzz.distance import Levenshtein

    word, most = term.lower(), 1 if len(term) < 9 else MAX_EDITS
    if word in KNOWN or len(word) <= LONG_TERM:
        return ""
    edits = {known: Levenshtein.distance(word, known, score_cutoff=most) for known in KNOWN}
    best = min(KNOWN, key=lambda known: edits[known])
    return best if edits[best] <= most and words.PORTER.stemWord(best) != words.PORTER.stemWord(word) else ""


def expand(query: str) -> str:
    """The query, followed by what its acronyms stand for and by the acronyms that its words point to.

    >>> expand("tf-idf weights")
    'tf-idf weights Term Frequency Inverse Document Frequency tfidf'
    """
    found: dict[str, None] = {}
    for term in _BLANKS.split(query):
        if len(term) >= MIN_TERM:
            texts = ACRONYMS.get(term.upper()) or (*acronyms_like(term), *_pointed_to(term.lower()))
            found |= dict.fromkeys(texts)
    return " ".join((query, *found))


def correct(query: str) -> str:
    """The query with every known typo mended, and one blank wherever there is white space."""
    return " ".join(TYPOS.get(word.lower(), word) for word in _BLANKS.split(query))


def acronyms_like(term: str) -> list[str]:
    """What every acronym one edit (Levenshtein) away from the term stands for, in the order of the table.

    Acronyms of up to four characters have to be as long as the term.

    >>> acronyms_like("BM26")
    ['Best Matching 25', 'Okapi BM25', 'keyword search']
    """
    from rapidfuzz.distance import Levenshtein  # here and below: every command would wait for it

    found: list[str] = []
    upper = term.upper()
    for name, texts in ACRONYMS.items() if term.lower() not in _NO_ACRONYMS else ():
        near = abs(len(upper) - len(name)) <= (len(name) > 4)
        if near and Levenshtein.distance(upper, name, score_cutoff=1) <= 1:
            found += texts
    return found


def _pointed_to(term: str) -> list[str]:
    """The acronyms of which a longer word is at most `MAX_EDITS` away from the term, in the order of the table."""
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    spelled = [word for word, _ in _SPELLED] if len(term) >= LONG_TERM else ()
    near = process.extract_iter(term, spelled, scorer=Levenshtein.distance, score_cutoff=MAX_EDITS)
    return list(dict.fromkeys(_SPELLED[at][1] for _, _, at in near))
