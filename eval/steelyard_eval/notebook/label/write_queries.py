"""The first queries of a data set that has none: from its log, or by hand beside an entry that must not be copied.

Copying words from an entry misleads: such a query favours search by words, and strategies that are chosen by such
queries are worse than the default (docs/start.md). So a text that repeats the entry is refused, and says why.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from steelyard.base.errors import ConfigError
from steelyard.base.files import write_text
from steelyard.memory.entry import Entry
from steelyard.memory.text import terms
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.groups import wording
from steelyard_eval.datasets.log_schema import decode
from steelyard_eval.datasets.logs import lines_of

WANTED = 20
"""Queries from which on labels choose better than the default."""
RUN = 4
"""Words in a row that are a copy."""
SHARE = 0.6
"""Of a query's words in the entry, from which on they are copied, where it has so many as a run."""
LONGEST = 2_000
QUERIES = "queries.jsonl"
COPIED = (
    "it has the entry's own words, and such a query favours search by words: ask as you would if you did not "
    "remember how it is written"
)


def logged_queries(dataset: Dataset, seed: int = 0, count: int = WANTED) -> list[str]:
    """Distinct queries of the data set's log, drawn at random; empty without a log."""
    if dataset.feedback is None:
        return []
    found: dict[str, str] = {}
    for _, line in lines_of(dataset.feedback):
        try:
            text = str(decode(line).user_query).strip()
        except ValueError:
            continue
        if text and len(text) <= LONGEST:
            found.setdefault(wording(text), text)
    texts = list(found.values())
    return [texts[at] for at in np.random.default_rng(seed).permutation(len(texts))[:count].tolist()]


def reminders(dataset: Dataset, seed: int = 0) -> list[Entry]:
    """The entries in a random order: what a query may be about."""
    order = np.random.default_rng([seed, 1]).permutation(len(dataset.entries)).tolist()
    return [dataset.entries[at] for at in order]


def copied(text: str, entry: Entry) -> bool:
    """Whether a query repeats an entry: four words in a row, or most of its words."""
    own = terms(" ".join((entry.title, entry.text)).lower())
    asked = terms(text.lower())
    runs = {tuple(own[at : at + RUN]) for at in range(len(own) - RUN + 1)}
    if any(tuple(asked[at : at + RUN]) in runs for at in range(len(asked) - RUN + 1)):
        return True
    words = set(asked)
    return len(words) >= RUN and len(words & set(own)) >= SHARE * len(words)


def save_queries(dataset: Dataset, texts: Sequence[str]) -> int:
    """Write the queries of a data set that has none; returns how many. ConfigError where it has some."""
    if dataset.queries:
        raise ConfigError(f"{dataset.name} has queries; add yours to {QUERIES}")
    if dataset.in_memory:
        raise ConfigError(f"{dataset.name} is in no folder; import it first (steelyard import)")
    distinct = list({wording(text): text for text in texts}.values())
    lines = [
        json.dumps({"id": f"own-{at:02d}", "text": text}, ensure_ascii=False)
        for at, text in enumerate(distinct, 1)
    ]
    write_text(dataset.path / QUERIES, "".join(f"{line}\n" for line in lines))
    return len(lines)
