"""Seeded synthetic memories, questions, vectors and recordings: the same on every machine.

Words follow Zipf's law; a third of an entry's words come from its topic, a third are function words, as in
English. Lengths differ, as real ones do, so that scores seldom tie. Questions mix words of one entry with function
words, because people write whole sentences and EchoVault searches every word of them.
"""

from dataclasses import dataclass

import numpy as np

from steelyard import Entry, Query, SignalTable
from steelyard.retrievers import CANDIDATE_RETRIEVERS
from steelyard.table.join import entry_facts, query_facts

FUNCTION_WORDS = """
    the of and to in is for on that with as it be by are this was not or from at we an have do how which what
    has can if when all so but no will they our use where after before into why
""".split()  # noqa: SIM905 -- a list of 44 words reads worse
ONSETS = "b c d f g h j k l m n p r s t v w z st tr pl gr br cl sh ch"
NUCLEI = "a e i o u ai ou ea"
CODAS = "b d k l m n p r s t x st nd rk ing ed er s ation ness ly ment able"
TOPICS = 400
VOCABULARY = 40_000
LENGTHS = {"title": 6, "why": 10, "impact": 6, "text": 80}
SHORTEST = 40
TAGS = 400
NOW = 1_790_000_000.0
DAY = 86_400.0


@dataclass(frozen=True)
class Memory:
    """Entries and the words they are made of: codes into `words`, -1 past the end of an entry."""

    entries: list[Entry]
    codes: np.ndarray
    words: np.ndarray


def vocabulary(size, rng):
    """Pronounceable words of three or more letters, none twice."""
    onsets, nuclei, codas = ONSETS.split(), NUCLEI.split(), CODAS.split()
    found = {}
    while len(found) < size:
        syllables = [pick(rng, onsets) + pick(rng, nuclei) for _ in range(rng.integers(1, 4))]
        found["".join(syllables) + pick(rng, codas)] = None
    return np.array(list(found), dtype=object)


def pick(rng, parts):
    return parts[rng.integers(len(parts))]


def memory(count, seed=1):
    rng = np.random.default_rng(seed)
    words = vocabulary(VOCABULARY, rng)
    words[: len(FUNCTION_WORDS)] = FUNCTION_WORDS
    total = sum(LENGTHS.values())
    codes = zipf(rng, len(FUNCTION_WORDS), VOCABULARY, (count, total))
    topics = rng.integers(200, VOCABULARY, size=(TOPICS, 60))  # the words of each
    codes = mixed(rng, codes, topics[rng.integers(TOPICS, size=count)])
    tags = words[rng.integers(1000, 1000 + TAGS, size=(count, 3))]
    return Memory([entry(at, words[row[row >= 0]], tags[at]) for at, row in enumerate(codes)], codes, words)


def mixed(rng, codes, topics):
    """The codes of entries, a third of which become words of the entry's topic and a third function words.

    `topics` are int[entries, 60]. Entries end somewhere: what follows is -1.
    """
    count, total = codes.shape
    kind = rng.random((count, total))
    of_topic = np.take_along_axis(topics, rng.integers(60, size=(count, total)), axis=1)
    codes = np.where(kind < 0.33, of_topic, codes)
    codes = np.where(kind > 0.67, zipf(rng, 0, len(FUNCTION_WORDS), (count, total)), codes)
    codes[np.arange(total) >= rng.integers(SHORTEST, total + 1, size=(count, 1))] = -1
    return codes


def entry(at, words, tags):
    ends = np.cumsum(list(LENGTHS.values()))
    texts = [" ".join(part) for part in np.split(words, ends[:-1])]
    fields = dict(zip(LENGTHS, texts, strict=True))
    return Entry(
        id=f"m{at:06d}",
        **fields,
        tags=tuple(tags),
        category=("decision", "bug", "pattern", "context")[at % 4],
        project=f"project{at % 7}",
        importance=float(at % 10 + 1),
        created_at=NOW - (at % 700) * DAY,
    )


def zipf(rng, low, high, shape):
    """Codes low..high-1, the n-th about 1/n as frequent as the first."""
    weights = 1.0 / (np.arange(high - low) + 3.0)
    edges = np.cumsum(weights / weights.sum())
    return low + np.minimum(np.searchsorted(edges, rng.random(shape)), high - low - 1)


def questions(made, count, seed=2):
    """Questions of two to five words of one entry and one to three function words."""
    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(count):
        row = made.codes[rng.integers(len(made.codes))]
        telling = np.unique(row[row >= len(FUNCTION_WORDS)])
        content = rng.choice(telling, size=min(len(telling), rng.integers(2, 6)), replace=False)
        small = rng.choice(len(FUNCTION_WORDS), size=rng.integers(1, 4), replace=False)
        asked.append(" ".join(made.words[rng.permutation(np.concatenate([small, content]))]))
    return asked


def vectors(count, dim, seed=3):
    """float32[count, dim]: unit vectors around 400 centres."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((TOPICS, dim), dtype=np.float32)
    made = rng.standard_normal((count, dim), dtype=np.float32)
    made += centres[rng.integers(TOPICS, size=count)]
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def probes(stored, count, seed=4):
    """float32[count, dim]: unit vectors near some of the stored ones."""
    rng = np.random.default_rng(seed)
    near = stored[rng.integers(len(stored), size=count)]
    near = near + rng.standard_normal(near.shape, dtype=np.float32) / np.sqrt(near.shape[1])
    return (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32)


def recording(queries, candidates, signals, seed=5):
    """A table of retrievers that each return two thirds of the candidates, scorers that score all, and qrels.

    Scores never tie, so every tool must find the same lists.
    """
    rng = np.random.default_rng(seed)
    size, corpus = queries * candidates, 20 * candidates
    ids = [f"d{at:06d}" for at in range(corpus)]
    entry = np.concatenate([np.sort(rng.choice(corpus, candidates, replace=False)) for _ in range(queries)])
    grade = np.where(rng.random(size) < 4 / candidates, rng.integers(1, 4, size), 0)
    columns, positions = {}, {}
    query = np.repeat(np.arange(queries), candidates)
    finders = [name for name in signals if name in CANDIDATE_RETRIEVERS]
    absent = dict(zip(finders, rng.random((len(finders), size)) < 1 / 3, strict=True))
    absent[finders[0]] &= ~np.all(list(absent.values()), axis=0)  # a candidate was found by somebody
    for name in signals:
        columns[name] = rng.random(size) + 0.3 * grade
        if name in CANDIDATE_RETRIEVERS:
            columns[name][absent[name]] = np.nan
            positions[name] = places(columns[name], query)
    asked = [f"q{at:04d}" for at in range(queries)]
    qrels = {name: {} for name in asked}
    for at in np.flatnonzero((grade > 0) | (rng.random(size) < 0.1)):
        qrels[asked[query[at]]][ids[entry[at]]] = int(grade[at])
    table = SignalTable(
        queries=tuple(asked),
        entries=tuple(ids),
        offsets=np.arange(0, size + 1, candidates, dtype=np.int64),
        entry=entry.astype(np.int32),
        columns=columns,
        positions=positions,
        entry_facts=entry_facts([Entry(id_) for id_ in ids], {}),
        query_facts=query_facts([Query("", id=name) for name in asked], [NOW] * queries, {}),
    )
    return table, qrels


def places(values, query):
    """int32: the place of each value in its query's list, best first; 0 where there is none."""
    order = np.lexsort((-values, query))  # NaN last
    place = np.empty(len(values), dtype=np.int32)
    place[order] = np.arange(len(values)) - np.searchsorted(query, query[order]) + 1
    return np.where(np.isnan(values), 0, place).astype(np.int32)
