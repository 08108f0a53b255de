"""What a recording costs, told before it is paid: seconds and bytes by constants that were measured.

Processor time of `record` on starter (131 entries), locomo (5,882) and scifact (5,183) with one to three
retrievers was 0.3 to 1.2 ms a query and retriever; what grows is the scan of the corpus.
"""

from __future__ import annotations

SECONDS, SECONDS_AN_ENTRY = 0.3e-3, 0.12e-6
"""Of one query and one retriever: always, and for each entry of the corpus."""
BYTES, BYTES_A_COLUMN = 24, 16
"""Of one row: always, and for each retriever."""
LONG, LARGE = 60.0, 2.0**30
"""Seconds and bytes from which the price is told."""


def price(queries: int, retrievers: int, depth: int, entries: int) -> tuple[float, float]:
    """Seconds of one processor and bytes of a table, for lists of this depth: rough, and rather too much.

    >>> seconds, size = price(50_000, 2, 100, 5_000)
    >>> round(seconds), round(size / 1e6)
    (90, 560)
    """
    rows = queries * min(entries, retrievers * depth)
    seconds = queries * retrievers * (SECONDS + SECONDS_AN_ENTRY * entries)
    return seconds, float(rows * (BYTES + BYTES_A_COLUMN * retrievers))


def in_words(queries: int, retrievers: int, depth: int, entries: int, jobs: int = 1) -> str:
    """The price where it is worth a word; empty where it is small.

    >>> in_words(100_000, 2, 100, 5_000, jobs=2)
    '100,000 queries over 5,000 entries: about 2 minutes and 1.1 GB; --split takes a part of them'
    >>> in_words(1_000, 2, 100, 5_000)
    ''
    """
    seconds, size = price(queries, retrievers, depth, entries)
    if seconds / jobs < LONG and size < LARGE:
        return ""
    minutes = max(1, round(seconds / jobs / 60))
    return (
        f"{queries:,} queries over {entries:,} entries: about {minutes} minute{'s' if minutes > 1 else ''} and "
        f"{size / 1e9:.1f} GB; --split takes a part of them"
    )
