"""The one form in which every kind of log is read: sessions of an agent, as events in their order.

Texts stay in memory: `impressions` writes none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


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
class EntriesOpened:
    """Entries, or files, that were read whole."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntriesChanged:
    """Entries that were updated."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rated:
    """An act that somebody reported: on an entry, without a name on a whole list; of one search, where named."""

    name: str
    action: str
    search: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """What was saved into the memory: its words are the agent's own, and cite nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class Wrote:
    """Files that were edited, and what was written into them."""

    paths: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class AgentSaid:
    """What the agent answered."""

    text: str


@dataclass(frozen=True, slots=True)
class PersonAsked:
    """What a person asked."""

    text: str


Event = Searched | EntriesOpened | EntriesChanged | Rated | Kept | Wrote | AgentSaid | PersonAsked


@dataclass(frozen=True, slots=True)
class UseSession:
    """The events of one session, in their order; `client` tells sessions apart."""

    client: str
    events: Iterable[Event]
    simulated: bool = False
