"""Keywords by the statistics of words: BM25 in memory, TF-IDF, and the BM25 of SQLite's FTS5.

BM25 in memory has those of the query's own scope (Robertson and Zaragoza, 2009):
``sum of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length))`` with
``idf = ln(1 + (N - n + 0.5) / (n + 0.5))``, over the terms of the query.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.errors import ConfigError, nearest, quote
from steelyard.memory.query import EVERYTHING, Filters, Query
from steelyard.memory.text import content
from steelyard.memory.words import languages_of
from steelyard.node import Option
from steelyard.retrievers.kinds import BuildContext, Reading, RetrieverConfig, RetrieverKind, Scorer, ScorerKind
from steelyard.retrievers.tsearch import TsRetriever, analysis
from steelyard.stores.analysis import Analysis
from steelyard.stores.base import KeywordIndex, ReadableStore, ScoredId, TextSearch
from steelyard.stores.postings import ScopedPostings, TokenSettings

K1 = Option("k1", 1.2, 0, 1000, "How much further occurrences of a term add; at 0 only the first one counts")
B = Option("b", 0.75, 0, 1, "How much long entries are penalised: from 0, not at all, to 1, in full")
LENGTH = Option(
    "mean_length", 0, 0, 1_000_000, "The length in words that counts as average; at 0 that of the entries searched"
)
ANALYSIS = tuple(Analysis.options().values())
"""How texts are split into words (see `Analysis`)."""
SAMPLE = 500
"""Entries, the newest ones, by which the languages of a memory are told."""
MAX_TEXTS_OF_STOP_WORDS = 20_000
"""Entries whose stop words are counted for a query that has no other words: it takes a second."""


def words_in(store: ReadableStore, words: TokenSettings) -> TokenSettings:
    """The settings for the languages of a store; those of a system's own rules stay."""
    if not isinstance(split := words.split, Analysis):
        return words

    def made() -> TokenSettings:
        languages = store.languages() or languages_of(map(content, store.recent(EVERYTHING, SAMPLE)))
        return replace(words, split=replace(split, languages=languages))

    return store.cache.get("languages", words, made)


def analysed(reading: Reading, settings: RetrieverConfig) -> TokenSettings:
    """The words that BM25 counts by these settings; ConfigError where a system has rules of its own."""
    values, words = BM25.values(settings), reading.bm25_words
    options = {option.name: values[option.name] for option in ANALYSIS}
    if isinstance(words.split, Analysis):
        return replace(words, split=Analysis(**options))
    if changed := [option.name for option in ANALYSIS if options[option.name] != option.default]:
        raise ConfigError(f"bm25.{changed[0]} is for our own words, and this system prescribes its own; use plain")
    return words


@dataclass(frozen=True, eq=False)
class Bm25Index:
    """BM25 over the texts of a scope."""

    counted: ScopedPostings
    k1: float
    b: float
    mean_length: float = LENGTH.default

    def scores(self, words: Iterable[str]) -> Floats:
        """Score every entry, float64[entries]; 0 where no term occurs, and a repeated term counts again."""
        total = np.zeros(len(self.counted.lengths))
        for word in words:
            texts, counts, _ = self.counted.posting(word)
            tf = counts.astype(np.float64)
            total[texts] += self.idf(len(texts)) * tf * (self.k1 + 1) / (tf + self._norm[texts])
        return total

    def idf(self, holding: int) -> float:
        """The weight of a term that so many entries hold."""
        return float(np.log(1 + (len(self.counted.numbers) - holding + 0.5) / (holding + 0.5)))

    @cached_property
    def _norm(self) -> Floats:
        """float64[entries]: how much more often a term has to occur in a longer entry."""
        mean = max(self.mean_length or self.counted.mean_length, 1e-9)
        return self.k1 * (1 - self.b + self.b * self.counted.lengths.astype(np.float64) / mean)


@dataclass(frozen=True)
class Bm25Retriever:
    """BM25 over the words of an entry, with the statistics of each scope.

    Where the words say `whole`, statistics are those of the `corpus` of a query, and its scope acts on what is
    found, before the cut. ConfigError for a parameter outside the legal range.
    """

    store: ReadableStore
    k1: float = K1.default
    b: float = B.default
    words: TokenSettings = field(default_factory=TokenSettings)
    corpus: Callable[[Query], Filters] = lambda query: EVERYTHING
    mean_length: float = LENGTH.default

    def __post_init__(self) -> None:
        for option in (K1, B, LENGTH):
            option.checked(getattr(self, option.name))

    def _asked(self, query: Query) -> tuple[Bm25Index, list[str]]:
        """The index that a query is searched in, and its terms: all its words where it has stop words alone."""
        scope = self.corpus(query) if self.words.corpus_wide else query.filters
        words = words_in(self.store, self.words)
        terms = words.of_query(query.keywords)
        if not terms and isinstance(words.split, Analysis) and self.store.count() <= MAX_TEXTS_OF_STOP_WORDS:
            words = replace(words, split=replace(words.split, words="all"))
            terms = words.of_query(query.keywords)

        def index() -> Bm25Index:
            counted, least = self.store.counted(words.analysis, scope), words.least
            kept = counted.only(counted.lengths >= least) if least else counted
            return Bm25Index(kept, self.k1, self.b, self.mean_length)

        key = words, self.k1, self.b, self.mean_length, scope
        return self.store.cache.get("bm25", key, index), terms

    def retrieve(self, query: Query, depth: int | None) -> list[ScoredId]:
        """See Retriever.retrieve; entries without any term of the query are not returned."""
        index, terms = self._asked(query)
        scores = index.scores(terms)
        matching = scores > 0
        if self.words.corpus_wide and query.filters:
            matching &= index.counted.within(query.filters)
        best = index.counted.best(scores, np.flatnonzero(matching), depth)
        return [ScoredId(id_, score, place) for place, (id_, score) in enumerate(best, 1)]

    def ends(self, query: Query) -> tuple[float, float]:
        """See Retriever: from 0 to the sum of ``idf * (k1 + 1)``, terms that no entry has included."""
        index, terms = self._asked(query)
        return 0.0, float(sum(index.idf(index.counted.holding(term)) for term in terms)) * (self.k1 + 1)


def _bm25(parts: BuildContext, settings: RetrieverConfig) -> Bm25Retriever:
    values, words = BM25.values(settings), analysed(parts.reading, settings)
    numbers = {option.name: values[option.name] for option in (K1, B, LENGTH)}
    return Bm25Retriever(parts.store, words=words, corpus=parts.word_scope, **numbers)


BM25: RetrieverKind = RetrieverKind(
    name="bm25",
    build=_bm25,
    check=analysed,
    bounded=True,
    parameters=(K1, B, LENGTH, *ANALYSIS),
    counts=lambda reading, store: words_in(store, reading.bm25_words).analysis,
    seeks=lambda reading, text: ", ".join(dict.fromkeys(reading.bm25_words.of_query(text))),
)


def _terms(parts: BuildContext) -> Scorer:
    """How many terms of the query BM25 counts, the same for every candidate."""
    words = words_in(parts.store, parts.reading.bm25_words)
    return lambda query, ids: np.full(len(ids), float(len(words.of_query(query.keywords))))


TERMS = ScorerKind(name="terms", build=_terms)

# TF-IDF

Sparse = tuple[dict[str, float], float]
"""Weights by word, and their Euclidean length."""


def tfidf(store: ReadableStore, given: TokenSettings, corpus: Callable[[Query], Filters]) -> Scorer:
    """Cosine of ``tf / length * idf`` vectors with ``idf = ln((N + 1) / (df + 1)) + 1``, in 0..1.

    The vocabulary is taken from the entries in the `corpus` of a query; words outside it have no weight.
    The score is 0 when either side has no known word. Source: Soleri's document, its semantic signal.
    """

    def score(query: Query, ids: Sequence[str]) -> Floats:
        scope, words = corpus(query), words_in(store, given)
        vocabulary = store.cache.get(
            "vocabulary", (words, scope), lambda: Vocabulary(store.counted(words.analysis, scope))
        )
        entries = store.get([id_ for id_ in ids if id_ not in vocabulary.vectors], words.analysis.fields)
        texts = [words.of_entry(words.text(entry)) for entry in entries]
        (asked, length), *weighed = vocabulary.weigh([words.of_query(query.keywords), *texts])
        vocabulary.vectors.update(zip((entry.id for entry in entries), weighed, strict=True))
        scores = np.zeros(len(ids))
        for row, id_ in enumerate(ids):
            weights, other = vocabulary.vectors.get(id_, ({}, 0.0))
            if length and other:
                scores[row] = sum(w * weights.get(word, 0.0) for word, w in asked.items()) / (length * other)
        return scores

    return score


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """IDF of the words of a corpus, and the vectors of the entries scored so far."""

    counted: ScopedPostings
    vectors: dict[str, Sparse] = field(default_factory=dict)
    _idf: dict[str, float] = field(default_factory=dict)

    def weigh(self, texts: Sequence[Sequence[str]]) -> list[Sparse]:
        """Weigh the words of texts by TF-IDF; those outside the vocabulary are left out."""
        size = len(self.counted.numbers)
        for word in {word for words in texts for word in words} - self._idf.keys():
            count = self.counted.holding(word)
            self._idf[word] = math.log((size + 1) / (count + 1)) + 1 if count else 0.0
        weighed = []
        for words in texts:
            weights = {w: n / len(words) * idf for w, n in Counter(words).items() if (idf := self._idf[w])}
            weighed.append((weights, math.sqrt(sum(weight * weight for weight in weights.values()))))
        return weighed


TFIDF = ScorerKind(
    name="tfidf",
    build=lambda parts: tfidf(parts.store, parts.reading.words, parts.word_scope),
    ends=(0.0, 1.0),
    counts=lambda reading, store: words_in(store, reading.words).analysis,
)


# FTS5, or PostgreSQL's rules in systems that use those


@dataclass(frozen=True)
class FtsRetriever:
    """FTS5's BM25 with a weight for each field; the scope is a condition in SQL, before the cut.

    FTS5 computes its statistics over the whole vault, whatever the scope.
    """

    store: ReadableStore
    index: KeywordIndex
    match: Callable[[str], str]
    weights: Sequence[float]

    def retrieve(self, query: Query, depth: int | None) -> list[ScoredId]:
        """See Retriever.retrieve."""
        most = -1 if depth is None else depth
        return self.store.keyword(self.index, self.match(query.keywords), self.weights, query.filters, most)

    def ends(self, query: Query) -> tuple[float, float]:
        """See Retriever; SQLite tells no upper end."""
        return 0.0, math.nan


def _keywords(
    parts: BuildContext, settings: RetrieverConfig, match: Callable[[str], str]
) -> TsRetriever | FtsRetriever:
    index = parts.reading.index
    fields = () if isinstance(index, TextSearch) else index.fields
    if unknown := [name for name in settings.field_weights if name not in fields]:
        named = ", ".join(f"{quote(name)}{nearest(name, fields)}" for name in unknown)
        raise ConfigError(f"field_weights of {parts.name}: unknown field {named}")
    if isinstance(index, TextSearch):
        return TsRetriever(parts.store, index)
    return FtsRetriever(parts.store, index, match, [settings.field_weights.get(name, 1.0) for name in fields])


FTS = RetrieverKind(
    name="fts",
    build=lambda parts, settings: _keywords(parts, settings, parts.reading.match),
    weighs_fields=True,
    counts=lambda reading, _: analysis(reading.index) if isinstance(reading.index, TextSearch) else None,
    seeks=lambda reading, text: None if isinstance(reading.index, TextSearch) else reading.match(text),
)
MEMORY = RetrieverKind(
    name="memory",
    build=lambda parts, settings: _keywords(parts, settings, parts.reading.match_memory),
    weighs_fields=True,
    separate_scope=Filters.of({"kind": "memory"}),
)
