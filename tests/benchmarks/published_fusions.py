"""Searches of LoCoMo that add several lists, by the sources of the programs that published figures of them.

loomcycle puts the few turns that hold every word of a question beside those of vectors, Engram adds a list of
names to both, and mem0 weighs the words of a question as it does those of a memory.
"""

import json
import math
import re
from collections import Counter
from itertools import groupby

import numpy as np
import Stemmer
from published import MORE_STOP_WORDS, when

from steelyard.retrievers.tsearch.english import lexemes, tsvector
from steelyard.retrievers.tsearch.expression import And, Lexeme, matches
from steelyard.retrievers.tsearch.rank import rank
from steelyard_eval.measures.runs import Ranked

SNOWBALL = Stemmer.Stemmer("english")
NO_NAMES = frozenset(
    """would could should shall may might monday tuesday wednesday thursday friday saturday sunday january february
    march april june july august september october november december also previously recently its yes""".split()  # noqa: SIM905 -- as above
)
"""More words that Engram takes for no names."""


def said(turn):
    """What was said in a turn, and the caption of the picture that was shared, or nothing."""
    text, _, caption = turn.text.partition("\n[shares a picture: ")
    return text.strip(), caption.removesuffix("]")


def chunks(turns):
    """Engram's chunks, (session, text): six turns, which share one with the chunk before; in the end the last."""
    found = []
    for session, own in groupby(turns.entries, lambda turn: f"{turn.project}:{turn.source}"):
        own = list(own)
        lines = [f"{turn.title}: {said(turn)[0]}" for turn in own]
        starts = [*range(0, len(lines) - 1, 5), len(lines) - 1] if len(lines) > 6 else [0]
        found += [(session, f"[{when(own[0])}] " + "\n".join(lines[at : at + 6])) for at in starts]
    return found


def long_words(text):
    """Engram's terms: words of two letters and more that are no stop words, not stemmed."""
    return [word for word in re.findall(r"\w{2,}", text.lower()) if word not in MORE_STOP_WORDS]


def stems(text):
    """The terms of fastembed's Qdrant/bm25: stems of the words that are no stop words."""
    return SNOWBALL.stemWords([word for word in re.findall(r"\w+", text.lower()) if word not in MORE_STOP_WORDS])


def bm25(texts, queries, split, k1=1.2, b=0.75, mean=0, weighed=False):
    """float64[Q, D]: BM25 with ln(1 + (N - df + 0.5) / (df + 0.5)) and a given mean length, or that of the texts.

    Weighed, the words of a query count as those of a text do: mem0 asks Qdrant's model for a text's vector.
    """
    told = [Counter(split(text)) for text in texts]
    lengths = np.array([own.total() for own in told])
    mean, found = mean or lengths.mean(), np.zeros((len(queries), len(told)))
    postings = {}
    for at, own in enumerate(told):
        for word, count in own.items():
            postings.setdefault(word, []).append((at, count))
    for at, query in enumerate(queries):
        asked = Counter(split(query))
        for word, times in sorted(asked.items()):
            if word in postings:
                rows, counts = (np.array(part) for part in zip(*postings[word], strict=True))
                idf = math.log(1 + (len(told) - len(rows) + 0.5) / (len(rows) + 0.5))
                weight = saturated(times, asked.total() / mean, k1, b) if weighed else 1
                found[at, rows] += weight * idf * saturated(counts, lengths[rows] / mean, k1, b)
    return found


def saturated(count, length, k1, b):
    """What a word that often counts in a text of that length, in mean lengths."""
    return count * (k1 + 1) / (count + k1 * (1 - b + b * length))


def fused(lists, k):
    """Reciprocal rank fusion from rank 0: the rows of all lists, the best first, equal ones as they came."""
    scores = {}
    for own in lists:
        for place, row in enumerate(own):
            scores[row] = scores.get(row, 0) + 1 / (k + place)
    return sorted(scores, key=lambda row: -scores[row])


def best_first(scores):
    """Rows by their scores, equal ones in order."""
    return np.argsort(-scores, kind="stable").tolist()


def names(question):
    """What Engram takes for names: words with one capital in front that are no questions, months or days."""
    words = set(re.findall(r"\b[A-Z][a-z]{2,15}\b", question))
    return sorted(word.lower() for word in words if word.lower() not in MORE_STOP_WORDS | NO_NAMES)


def engram(sessions, turns, cosine, pool=20, by_words=True):
    """float64[Q, D]: for the sessions of Engram's first ten chunks how early the first of them comes.

    RRF of vectors (float64[Q, C]), of words by the statistics of the conversation, and of how many names of the
    question a chunk has. A cross-encoder orders the best 20 there; here words do, or with by_words=False nothing.
    Its chunks of preferences and topics are left out.
    """
    place = {entry.id: at for at, entry in enumerate(sessions.entries)}
    owners, texts = zip(*chunks(turns), strict=True)
    owner = np.array([place[own] for own in owners])
    found = np.zeros((len(sessions.queries), len(place)))
    for project in sorted({entry.project for entry in sessions.entries}):
        inside = np.flatnonzero([own.startswith(f"{project}:") for own in owners])
        asked = [at for at, query in enumerate(sessions.queries) if query.id.startswith(f"{project}:")]
        own, questions = [texts[at] for at in inside], [sessions.queries[at].text for at in asked]
        lower = [text.lower() for text in own]
        for at, question, words in zip(asked, questions, bm25(own, questions, long_words, k1=1.5), strict=True):
            held = np.array([sum(name in text for name in names(question)) for text in lower])
            lists = [cosine[at, inside], words, *([held] if held.any() else [])]
            best = fused(map(best_first, lists), 61)[:pool]
            if by_words:
                best.sort(key=lambda chunk: -words[chunk])
            for order, chunk in enumerate(inside[best[:10] if by_words else best]):
                found[at, owner[chunk]] = max(found[at, owner[chunk]], 1 / (1 + order))
    return found


def notes(sessions, turns):
    """The texts of sessions as basic-memory's harness writes them for mem0: what was said, without pictures."""
    texts = {}
    for turn in turns.entries:
        if text := said(turn)[0]:
            texts.setdefault(f"{turn.project}:{turn.source}", []).append(f"- **{turn.title}:** {text}")
    return ["\n".join(texts[entry.id]) for entry in sessions.entries]


def mem0(texts, queries, cosine, pool=60, weighed=True):
    """float64[Q, D]: mem0 2.0.5's mean of cosine and a sigmoid of the words, of those most similar."""
    words = bm25(texts, queries, stems, mean=256, weighed=weighed)
    middle, steep = np.array([sigmoid(len(query.split())) for query in queries]).T[:, :, None]
    share = np.where(words > 0, 1 / (1 + np.exp(-steep * (words - middle))), 0)
    for own, scores in zip(share, words, strict=True):
        own[best_first(scores)[pool:]] = 0
    near = np.argsort(np.argsort(-cosine, axis=1, kind="stable"), axis=1) < pool
    return np.where(near & (cosine >= 0.1), (cosine + share) / 2, 0)


def sigmoid(terms):
    """mem0's midpoint and steepness for so many terms, which are words between blanks without spaCy."""
    return next(
        (own for most, own in ((3, (5, 0.7)), (6, (7, 0.6)), (9, (9, 0.5)), (15, (10, 0.5))) if terms <= most),
        (12, 0.5),
    )


def dated(turn):
    """The text of a turn that loomcycle embeds and reads: a JSON string with time, speaker and picture."""
    text, caption = said(turn)
    shared = f" (shared an image: {caption})" if caption and caption not in text else ""
    return json.dumps(f"[{when(turn)}] {turn.title}: {text}{shared}", ensure_ascii=False)


def every_lexeme(text):
    """PostgreSQL's plainto_tsquery: all lexemes of a text; None where there is none."""
    found = tuple(Lexeme(lexeme) for lexeme, _ in lexemes(text))
    return And(found) if len(found) > 1 else found[0] if found else None


def loomcycle(turns, cosine, depth=40):
    """Ten turns of the conversation by RRF (60 from rank 0) of vectors and of PostgreSQL's words, 40 of each.

    cosine: float64[Q, D]; None for words alone.
    """
    told, ids = [tsvector(dated(turn)) for turn in turns.entries], [turn.id for turn in turns.entries]
    lists = []
    for at, query in enumerate(turns.queries):
        inside = [row for row, id_ in enumerate(ids) if id_.startswith(f"{query.id.partition(':')[0]}:")]
        node = every_lexeme(query.text)
        hits = [row for row in inside if node and matches(node, told[row])]
        by_words = sorted(hits, key=lambda row: -rank(node, told[row]))[:depth]
        near = [] if cosine is None else [inside[own] for own in best_first(cosine[at, inside])[:depth]]
        lists.append([ids[row] for row in fused([near, by_words], 60)[:10]])
    return Ranked.of([query.id for query in turns.queries], lists)
