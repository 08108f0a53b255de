"""The one form in which every kind of log is read: sessions of an agent, as events in their order.

Texts stay in memory: `impressions` writes none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

AGENT, PERSON, MEMORY = "agent", "person", "memory"
"""Who said something: the agent its answer, a person a question; what is saved into the memory cites nothing."""


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A result as the answer of a search had it: its id, score, title and text, where it says them."""

    name: str
    score: float | None = None
    title: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Searched:
    """A search with its list. `key` names it in its log; `hits` is None where its answer cannot be read.

    `engine` is what answered: a system of ours, or any other name. `narrowed` maps fields of entries to the
    values that were asked for; None where the log does not say. `limit` is how many results were asked for.
    """

    key: str
    time: float | None
    query: str
    hits: tuple[ShownHit, ...] | None
    engine: str = ""
    narrowed: Mapping[str, object] | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Acted:
    """An act on entries, or on files, by their names: `opened`, `modified`, or what somebody `reported`.

    A report may be of one `search` alone; without a name it is on the whole list.
    """

    names: tuple[str, ...]
    action: str
    reported: bool = False
    search: str = ""


@dataclass(frozen=True, slots=True)
class Wrote:
    """Files that were edited, and what was written into them."""

    paths: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A text, and who said it."""

    who: str
    text: str


Event = Searched | Acted | Wrote | Spoken


@dataclass(frozen=True, slots=True)
class UseSession:
    """The events of one session, in their order; `client` tells sessions apart."""

    client: str
    events: Iterable[Event]
    simulated: bool = False
