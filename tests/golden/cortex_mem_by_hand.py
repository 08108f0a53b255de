"""Cortex-Mem's layered search computed from the files of a data set alone: numpy, and nothing of the engine.

`documented` follows the document's sections 3 to 5 and 8, with the decisions of docs/cortex-mem.md; `shipped` the
facts of its program. Every entry of the sets it is for bears its own abstract, overview and text.
"""

import re

import numpy as np
from recomputed import read

LIMIT = 10
WEIGHTS = (0.2, 0.3, 0.5)
LADDER = (0.5, 0.4, 0.3)
QUESTIONS = {"what", "when", "where", "who", "why", "how", "is", "are", "do", "does"}


class Files:
    """The corpus, the queries and, for each of these, the cosines of the three layers; NaN without a vector."""

    def __init__(self, folder):
        self.entries = read(folder, "corpus.jsonl")
        self.queries = read(folder, "queries.jsonl")
        self._asked = _unit(np.load(folder / "queries.minilm.f16.npy"))
        names = {"l2": "corpus.l2" if (folder / "corpus.l2.minilm.f16.npy").exists() else "corpus"}
        names |= {layer: f"corpus.{layer}" for layer in ("l0", "l1")}
        self._layers = [_unit(np.load(folder / f"{names[layer]}.minilm.f16.npy")) for layer in ("l0", "l1", "l2")]

    def cosines(self, at):
        return [vectors @ self._asked[at] for vectors in self._layers]

    def scope(self, query):
        asked = query.get("filter", {})
        return np.array([all(entry.get(name) == value for name, value in asked.items()) for entry in self.entries])

    def best(self, scores):
        """The ids of the ten best, ties by id, with their scores; NaN is not ranked."""
        rows = [(float(score), self.entries[at]["id"]) for at, score in enumerate(scores) if not np.isnan(score)]
        return sorted(rows, key=lambda row: (-row[0], row[1].encode()))[:LIMIT]


def documented(files, at):
    """The ranked ids with scores of the query at a place in the file."""
    query, inside = files.queries[at], files.scope(files.queries[at])
    l0, l1, l2 = (np.where(inside, own, np.nan) for own in files.cosines(at))
    start = 0.4 if re.match(r"(what is|what's|when did|who is|how to|define)\b", query["text"].lower()) else 0.5
    for step in (start, *(step for step in LADDER if step < start)):
        if (l0 >= step).any():
            total = _sum(l0, np.where(np.isnan(l1), 0.8 * l0, l1), l2)
            return files.best(np.where((l0 >= step) & (total >= step), total, np.nan))
    return files.best(l2)


def shipped(files, at):
    """The same of the program: one retry, a cut at 0.5, and a last resort that ignores the scope."""
    text, inside = files.queries[at]["text"], files.scope(files.queries[at])
    l0, l1, l2 = files.cosines(at)
    start = threshold(text)
    ids = [entry["id"].encode() for entry in files.entries]
    order = sorted(np.flatnonzero(~np.isnan(l0)), key=lambda row: (-l0[row], ids[row]))
    for step, depth in ((start, 3 * LIMIT), (0.3 if start <= 0.4 else start - 0.3, 5 * LIMIT)):
        first = np.isin(np.arange(len(ids)), order[:depth])
        gated = first & (l0 >= step) & inside
        if gated.any():
            overview = np.where(np.isnan(l1), 0.8 * l0, l1)
            total = np.where(np.isnan(l2), 0.4 * l0 + 0.6 * overview, _sum(l0, overview, l2))
            near = (l0 >= 0.25) | (overview >= 0.25)
            return files.best(np.where(gated & near & (total >= 0.5), total, np.nan))
    best = np.fmax.reduce([l0, l1, l2])
    return files.best(np.where(best >= 0.5, best, np.nan))


def threshold(text):
    """The program's: temporal words first, anywhere; a name of one or two words is searched from 0.4 on."""
    lowered, words = text.lower(), text.split()
    asks = QUESTIONS & {word.lower() for word in words}
    if 0 < len(words) <= 2 and len(text) <= 20 and text[0].isupper() and not asks:
        return 0.4
    if any(word in lowered for word in ("when", "recent", "latest", "yesterday", "last", "ago")):
        return 0.45
    if lowered.startswith(("what is", "who is", "how to", "define", "find", "search", "show me", "list")):
        return 0.4
    related = (" vs ", " versus ", "compared to", "difference between", "related to", "connected with")
    return 0.4 if any(words in lowered for words in related) else 0.5


def _sum(l0, l1, l2):
    return WEIGHTS[0] * l0 + WEIGHTS[1] * l1 + WEIGHTS[2] * np.where(np.isnan(l2), 0.0, l2)


def _unit(rows):
    """Rows of length 1; one of zeros is no vector."""
    rows = rows.astype(np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(length > 0, rows / np.where(length > 0, length, 1.0), np.nan)
