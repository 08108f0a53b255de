"""Searches of LoCoMo's sessions that other programs published figures of, by what their sources do.

Only what decides the figure: graph-memory takes a question's first eight words, deja-vu adds up how rare the words
are that a session holds at all, basic-memory searches by vectors of turns and, since #994, by words as well.
"""

import math
import re
import sqlite3
from datetime import UTC, datetime

import numpy as np

from steelyard_eval.measures.runs import Ranked

LIMIT = 30
MORE_STOP_WORDS = frozenset(
    """i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves what which who whom this that these those am is are
    was were be been being have has had having do does did doing a an the and but if or because as until while
    of at by for with about against between into through during before after above below to from up down in out
    on off over under again further then once here there when where why how all any both each few more most
    other some such no nor not only own same so than too very s t can will just don should now""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
)
"""The 127 English stop words of NLTK, which fastembed and bm25s come close to."""


def eight_words(text):
    """graph-memory's query: any of the first eight words."""
    return " OR ".join(f'"{word}"' for word in text.replace('"', "").split()[:8])


def every_word(text):
    """The same without its limit."""
    return " OR ".join(f'"{word}"' for word in text.replace('"', "").split())


def bare(text):
    """basic-memory's words of a question, without the signs at their ends."""
    return [word for word in (word.strip("?!.,;:") for word in text.split()) if word]


def strict(text):
    """basic-memory's first query: the start of every word; a phrase where a word has a sign in it."""
    if all(word.isalnum() for word in bare(text)):
        return " AND ".join(f"{word}*" for word in bare(text))
    return '"' + " ".join(bare(text)).replace('"', '""') + '"*'


def relaxed(text):
    """basic-memory's second query, where the first finds nothing: the start of any word that says something."""
    words = (word for word in bare(text) if word.isalnum() and word.lower() not in MORE_STOP_WORDS)
    return " OR ".join(f"{word}*" for word in words)


def fts5(texts, queries, titles=None):
    """float64[Q, D]: BM25 of SQLite's FTS5 with its own tokenizer; 0 where nothing matches.

    With titles either may match, as basic-memory asks; what a title matches, SQLite scores by the title alone.
    """
    queries, titles = list(queries), titles or [""] * len(texts)
    found = np.zeros((len(queries), len(texts)))
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE VIRTUAL TABLE f USING fts5(title, text)")
        rows = zip(range(len(texts)), titles, texts, strict=True)
        database.executemany("INSERT INTO f(rowid, title, text) VALUES (?, ?, ?)", rows)
        sql = "SELECT rowid, -bm25(f) FROM f WHERE title MATCH ?1 OR text MATCH ?1"
        for at, query in enumerate(queries):
            for row, score in database.execute(sql, (query or '""',)):
                found[at, row] = score
    return found


def presence(texts, queries, scope):
    """float64[Q, D]: the sum of ln(N / df) of the words that a session holds, of two at least; deja-vu's."""
    held = [set(re.findall(r"[a-z0-9]+", text.lower())) for text in texts]
    found = np.zeros(scope.shape)
    for at, query in enumerate(queries):
        inside = np.flatnonzero(scope[at])
        words = {word.partition("'")[0] for word in re.findall(r"[a-z0-9']+", query.lower())} - MORE_STOP_WORDS
        here = [np.array([word in held[row] for row in inside]) for word in sorted(words) if len(word) > 2]
        here = [hit for hit in here if hit.any()]
        rarity = [math.log((len(inside) + 1) / (hit.sum() + 1)) for hit in here]
        # a word of almost all sessions counts nothing; in a store of two sessions it still counts a little
        weight = [idf if idf > 0 else 0.1 * (hit.sum() <= 2) for idf, hit in zip(rarity, here, strict=True)]
        if here:
            enough = sum((hit & (own > 0)).astype(int) for hit, own in zip(here, weight, strict=True)) >= 2
            total = sum(own * hit for own, hit in zip(weight, here, strict=True))
            found[at, inside] = enough * (total + 1e-9 * np.arange(len(inside)))  # of equal ones the newest
    return found


def unit(rows):
    """Rows of length one."""
    rows = np.asarray(rows, dtype=np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def best_turns(sessions, turns, best=1):
    """float64[Q, D]: the mean cosine of a session's best turns, from the vectors that the collection records."""
    cosines = unit(turns.query_vectors["minilm"]) @ unit(turns.vectors["minilm", "text"]).T
    return best_of(sessions, turns, cosines, best)


def best_of(sessions, turns, cosines, best):
    """float64[Q, D]: the mean of a session's best turns."""
    place = {entry.id: at for at, entry in enumerate(sessions.entries)}
    owner = np.array([place[f"{entry.project}:{entry.source}"] for entry in turns.entries])
    found = np.empty((len(cosines), len(place)))
    for at in range(len(place)):
        own = np.sort(cosines[:, owner == at], axis=1)
        found[:, at] = own[:, -best:].mean(axis=1)
    return found


def when(entry):
    """The time of a session as LoCoMo writes it, of which basic-memory's harness makes title and heading."""
    time = datetime.fromtimestamp(entry.created_at, UTC)
    half = "pm" if time.hour > 11 else "am"
    return f"{time:%I:%M} {half} on {time:%d %B, %Y}".lstrip("0").replace("on 0", "on ")


def relevance(sessions):
    """float64[Q, D]: basic-memory's share of the best BM25; of any word where no session has every word."""
    titles, queries = [when(entry) for entry in sessions.entries], [query.text for query in sessions.queries]
    texts = [f"{title}\n{entry.text}" for title, entry in zip(titles, sessions.entries, strict=True)]
    exact, any_word = (fts5(texts, map(form, queries), titles) for form in (strict, relaxed))
    words = np.where(exact.any(axis=1, keepdims=True), exact, any_word)
    return words / np.maximum(words.max(axis=1, keepdims=True), 1e-9)


def both(cosine, share):
    """basic-memory's sum of the two."""
    return np.maximum(cosine, share) + 0.3 * np.minimum(cosine, share)


def ranked(dataset, scores):
    """The lists of a matrix of scores: the best first, equal ones by id, what has no score left out."""
    ids = np.array([entry.id for entry in dataset.entries])
    order = np.lexsort((np.broadcast_to(ids, scores.shape), -scores))[:, :LIMIT]
    lists = [[str(ids[at]) for at in own if row[at] > 0] for own, row in zip(order, scores, strict=True)]
    return Ranked.of([query.id for query in dataset.queries], lists)


def rankings(sessions, turns):
    """By label the lists of every query of the sessions."""
    texts, queries = [entry.text for entry in sessions.entries], [query.text for query in sessions.queries]
    own = np.array([entry.project for entry in sessions.entries])
    scope = np.array([query.id.partition(":")[0] for query in sessions.queries])[:, None] == own[None, :]
    everywhere = np.ones_like(scope)
    cosine, share = np.maximum(best_turns(sessions, turns), 0), relevance(sessions)
    found = {
        "fts5, eight words": (fts5(texts, map(eight_words, queries)), scope),
        "fts5, every word": (fts5(texts, map(every_word, queries)), scope),
        "presence of words": (presence(texts, queries, scope), scope),
        "best turn": (cosine, scope),
        "best three turns": (np.maximum(best_turns(sessions, turns, 3), 0), scope),
        "best turn, unscoped": (cosine, everywhere),
        "fts5 relaxed, unscoped": (share, everywhere),
        "max + 0.3 min, unscoped": (both(cosine, share), everywhere),
    }
    return {label: ranked(sessions, np.where(inside, scores, 0)) for label, (scores, inside) in found.items()}
