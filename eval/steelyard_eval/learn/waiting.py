"""Searches whose acts stand later in the log: they are kept, in bounded memory, until those are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from steelyard_eval.datasets.logs import LogLine

OPEN = 10_000
"""Impressions that wait: an act reaches back so many searches."""
ROOM = 32 * 2**20
"""Bytes of the lines of those that wait, and of their acts; in memory five times that."""


@dataclass
class _Open:
    line: LogLine
    number: int
    size: int


class Waiting:
    """Impressions by their ids. The oldest go when there are more than `OPEN`, or they take more than `ROOM`.

    Acts on one that is gone find nothing, and are counted as such.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._bytes = 0

    def put(self, line: LogLine, number: int, size: int) -> Iterator[tuple[LogLine, int]]:
        """Let an impression wait, of a line of so many bytes; those that no longer wait, with their numbers."""
        yield from self._gone(line.query_id)
        self._open[line.query_id] = _Open(line, number, size)
        yield from self._grown(size)

    def act(self, line: LogLine, size: int) -> Iterator[tuple[LogLine, int]]:
        """Add acts to the impression that they name; those that no longer wait. KeyError where it does not."""
        impression = self._open[line.query_id]
        impression.size += size
        if impression.line.actions is None:
            impression.line.actions = []
        impression.line.actions.extend(line.actions or ())
        return self._grown(size)

    def rest(self) -> Iterator[tuple[LogLine, int]]:
        """All that still wait."""
        for impression in self._open.values():
            yield impression.line, impression.number

    def _grown(self, size: int) -> Iterator[tuple[LogLine, int]]:
        self._bytes += size
        while len(self._open) > OPEN or self._bytes > ROOM:
            yield from self._gone(next(iter(self._open)))

    def _gone(self, query_id: str) -> Iterator[tuple[LogLine, int]]:
        if (impression := self._open.pop(query_id, None)) is not None:
            self._bytes -= impression.size
            yield impression.line, impression.number


def token(*parts: object) -> int:
    """64 bits that stand for a client, a query, a day: texts of others are not kept."""
    text = "\0".join(map(str, parts)).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")
