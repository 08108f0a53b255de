"""The first queries of a data set that has none: from its log, or by hand beside an entry that must not be copied.

Copying words from an entry misleads: such a query favours search by words, and strategies that are chosen by such
queries are worse than the default (docs/start.md). So a text that repeats the entry is refused, and says why.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from steelyard.base.errors import ConfigError
from steelyard.base.files import write_text
from steelyard.base.inputs import read_text
from steelyard.base.secret_texts import holds_secret
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.memory.text import terms
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import wording
from steelyard_eval.datasets.logs import decode, lines_of
from steelyard_eval.recording.steps import sealed

WANTED = 20
"""Queries from which on labels choose better than the default."""
DRAWN = 120
"""Queries of a log that are drawn, in order: judging ends where the verdict stands."""
MOST = 100_000
RUN = 4
"""Words in a row that are a copy."""
SHARE = 0.6
"""Of a query's words in the entry, from which on they are copied, where it has so many as a run."""
LONGEST = 2_000
QUERIES = "queries.jsonl"
SHORTEST = 3
"""Bytes: a key that was pressed is shorter, and a word in characters of its own is not."""
SHORT = "a query of one or two letters finds nothing; u takes the last query back, an empty line goes on, q ends"
COPIED = (
    "it has the entry's own words, and such a query favours search by words: ask as you would if you did not "
    "remember how it is written"
)


def logged_queries(
    dataset: Dataset, seed: int = 0, count: int = WANTED, log: str | Path | None = None
) -> list[str]:
    """Distinct queries of a log, the data set's own by default, drawn at random; empty without a log.

    A query that may hold a secret is left out, whoever wrote the log.
    """
    path = log or dataset.feedback
    if path is None:
        return []
    distinct: dict[str, str] = {}
    for _, line in lines_of(path):
        try:
            text = str(decode(line).user_query).strip()
        except ValueError:
            continue
        if text and len(text) <= LONGEST and not holds_secret(text):
            distinct.setdefault(wording(text), text)
    texts = list(distinct.values())
    return [texts[i] for i in np.random.default_rng(seed).permutation(len(texts))[:count].tolist()]


def draw_from_log(dataset: Dataset, seed: int = 0, log: str | Path | None = None) -> list[str]:
    """The ids of `drawn_from_log`, after the new ones are appended to the data set's queries.jsonl."""
    ids, new = drawn_from_log(dataset, seed, log)
    if new:
        file = dataset.path / QUERIES
        before = read_text(file).rstrip("\n") if file.is_file() else ""
        rows = [json.dumps({"id": query.id, "text": query.text}, ensure_ascii=False) for query in new]
        write_text(file, "".join(f"{row}\n" for row in [before, *rows] if row))
    return ids


def drawn_from_log(
    dataset: Dataset, seed: int = 0, log: str | Path | None = None
) -> tuple[list[str], list[Query]]:
    """Ids of up to `DRAWN` distinct queries of a log, each as likely as another however often it was asked.

    And those that the data set does not have; where its queries.jsonl is sealed by a hash, or has recorded vectors
    line by line, these are left out. Nothing is written. Raises ConfigError where no query is left.
    """
    texts = logged_queries(dataset, seed, MOST, log)
    known = {wording(query.text): query.id for query in reversed(dataset.queries)}
    if sealed(dataset):
        texts = [text for text in texts if wording(text) in known]
    if not texts:
        raise ConfigError(f"{dataset.called} has no log with queries that it can take; name one with --feedback")
    drawn = texts[:DRAWN]
    new = {wording(text): text for text in drawn if wording(text) not in known}
    named = {key: f"log-{sha256(key.encode()).hexdigest()[:12]}" for key in new}
    ids = [(known | named)[wording(text)] for text in drawn]
    return ids, [Query(id=named[key], text=text) for key, text in new.items()]


def log_has_more(dataset: Dataset, seed: int) -> bool:
    """Whether `draw_from_log` would add a query."""
    known = {wording(query.text) for query in dataset.queries}
    drawn = () if sealed(dataset) else logged_queries(dataset, seed, DRAWN)
    return any(wording(text) not in known for text in drawn)


def reminders(dataset: Dataset, seed: int = 0) -> list[Entry]:
    """The entries in a random order: what a query may be about."""
    order = np.random.default_rng([seed, 1]).permutation(len(dataset.entries)).tolist()
    return [dataset.entries[i] for i in order]


def copied(text: str, entry: Entry) -> bool:
    """Whether a query repeats an entry: four words in a row, or most of its words."""
    content = terms(" ".join((entry.title, entry.text)).lower())
    asked = terms(text.lower())
    runs = {tuple(content[i : i + RUN]) for i in range(len(content) - RUN + 1)}
    if any(tuple(asked[i : i + RUN]) in runs for i in range(len(asked) - RUN + 1)):
        return True
    words = set(asked)
    return len(words) >= RUN and len(words & set(content)) >= SHARE * len(words)


def refused(text: str, entry: Entry) -> str:
    """Why a text is no query to be asked beside an entry; empty where it is one."""
    return SHORT if len(text.encode()) < SHORTEST else COPIED if copied(text, entry) else ""


def save_queries(dataset: Dataset, texts: Sequence[str]) -> int:
    """Write the queries of a data set that has none; returns how many. ConfigError where it has some."""
    if dataset.queries:
        raise ConfigError(f"{dataset.called} has queries; add yours to {QUERIES}")
    if dataset.in_memory:
        raise ConfigError(f"{dataset.called} is in no folder; import it first (steelyard import)")
    distinct = list({wording(text): text for text in texts}.values())
    lines = [
        json.dumps({"id": f"own-{number:02d}", "text": text}, ensure_ascii=False)
        for number, text in enumerate(distinct, 1)
    ]
    write_text(dataset.path / QUERIES, "".join(f"{line}\n" for line in lines))
    return len(lines)
