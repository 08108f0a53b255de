"""The tools of a memory server, one client while it calls them, and what is logged of it.

Agents hardly ever give feedback, but they open what they use, and quote it: an entry that is read after a list
showed it was opened, and one whose id stands in the next query was cited.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from itertools import islice
from typing import Any

import jsonschema_rs

from steelyard.base.errors import ConfigError, MachineError, shown
from steelyard.base.files import STRICT_JSON
from steelyard.feedback.log import ACTIONS, FeedbackLog, append, append_act
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.results import SearchResult
from steelyard_eval.vaults.arguments import parse_filters
from steelyard_eval.vaults.read import OpenVault, record_of

MOST_LOGS = 1_000
"""Configurations whose records are known to be in the log."""
MOST = 64
"""Lists of a client that are remembered."""
QUOTED = 8
"""Lists whose ids are looked for in the next query."""
SHORTEST = 8
"""Characters of an id that is recognised in a query; they are not all letters, as those of words are."""
_WORD = re.compile(r"[^\s\"'`,;|<>()\[\]{}*]+")
_log = logging.getLogger(__name__)
Json = Any
Arguments = Mapping[str, Any]
LONGEST = 200
"""Characters that a message quotes of an argument."""
MOST_RESULTS = 10_000
"""Results of one search, as in `steelyard search`."""


@dataclass(frozen=True)
class LoggedSearch:
    """What a search found; `query_id` is empty where it was not logged."""

    result: SearchResult
    searcher: Searcher
    query_id: str


class ServerLog:
    """The log of a server; `clock` gives seconds UTC."""

    def __init__(self, path: str, clock: Callable[[], float]) -> None:
        self.path = path
        self._clock = clock
        self._writers: dict[int, FeedbackLog] = {}
        append(path, [])  # refused now, where it cannot be written

    def shown(self, searcher: Searcher, result: SearchResult, client: str) -> str:
        """Log a list; empty, with a warning, where the log cannot be written: nobody's search fails for that."""
        known = self._writers.get(id(searcher.config))
        if known is None or known.config is not searcher.config:
            known = FeedbackLog(self.path, searcher.config, clock=self._clock)
            if len(self._writers) >= MOST_LOGS:
                self._writers.clear()
            self._writers[id(searcher.config)] = known
        try:
            return known.shown(result, client)
        except (MachineError, ConfigError) as error:
            _log.warning("a search was not logged: %s", error)
            return ""

    def act(self, query_id: str, entry_id: str, action: str, client: str) -> None:
        """Log an act; ConfigError for a list that this client was not shown, MachineError for a log that fails."""
        append_act(self.path, query_id, entry_id, action, client, self._clock, client)


@dataclass
class ShownList:
    """One list, with the entries that were acted upon already."""

    query_id: str
    ids: frozenset[str]
    used: set[tuple[str, str]] = field(default_factory=set)


class Recent:
    """The newest lists of one client."""

    def __init__(self) -> None:
        self._lists: deque[ShownList] = deque(maxlen=MOST)

    def shown(self, query_id: str, ids: Sequence[str]) -> None:
        """Remember a list."""
        self._lists.appendleft(ShownList(query_id, frozenset(ids)))

    def newest(self, entry_id: str, act: str, most: int = MOST) -> str:
        """The newest list that showed an entry; empty where there is none, or the act was asked for before."""
        listed = next((one for one in islice(self._lists, most) if entry_id in one.ids), None)
        if listed is None or (entry_id, act) in listed.used:
            return ""
        listed.used.add((entry_id, act))
        return listed.query_id

    def quoted(self, text: str) -> list[tuple[str, str]]:
        """The lists and entries whose ids stand in the next query, each once."""
        words = _WORD.findall(text)
        names = {word for word in (*words, *(word.strip(".:!?#") for word in words)) if len(word) >= SHORTEST}
        return [(self.newest(name, "cited", QUOTED), name) for name in sorted(names) if not name.isalpha()]


@dataclass(frozen=True)
class Caller:
    """A client: its name for the log, what it was shown lately, and the memory as it is now."""

    name: str
    recent: Recent
    memory: OpenVault
    log: ServerLog | None

    def search(self, query: Query, limit: int | None = None) -> LoggedSearch:
        """Search as `steelyard search` does, and log the list."""
        searcher = self.memory.searcher(limit)
        with self.memory.snapshot():
            result = searcher.search(query)
        if self.log is None:
            return LoggedSearch(result, searcher, "")
        self._infer(self.recent.quoted(query.text), "cited")
        query_id = self.log.shown(searcher, result, self.name)
        if query_id:
            self.recent.shown(query_id, [hit.entry.id for hit in result.hits])
        return LoggedSearch(result, searcher, query_id)

    def read(self, ids: Sequence[str]) -> list[Entry]:
        """Whole entries by id, without those that are not there; each that a list showed counts as opened."""
        with self.memory.snapshot():
            entries = self.memory.searcher(None).store.get(list(ids))
        if self.log is not None:
            self._infer([(self.recent.newest(entry.id, "opened"), entry.id) for entry in entries], "opened")
        return entries

    def act(self, query_id: str, entry_id: str, action: str) -> None:
        """Log an act that the client reports; ConfigError for an unknown list or action."""
        if self.log is None:
            raise ConfigError("this server keeps no log; start it with --log FILE")
        if action not in ACTIONS:
            raise ConfigError(f"there is no action {shown(action)}; valid: {', '.join(ACTIONS)}")
        self.log.act(query_id, entry_id, action, self.name)

    def _infer(self, pairs: Sequence[tuple[str, str]], action: str) -> None:
        for query_id, entry_id in pairs:
            try:
                if query_id:
                    self.act(query_id, entry_id, action)
            except (MachineError, ConfigError) as error:  # what nobody reported is nobody's error
                _log.warning("an act was not logged: %s", error)


@dataclass(frozen=True)
class Tool:
    """One tool: what clients call it by, what it tells them, and the JSON Schema of its arguments.

    `answer` makes a JSON value of the caller and the arguments, which are valid; ConfigError and DataError are
    told to the client. One that `logs` does nothing else, so that it is offered where there is a log.
    """

    name: str
    about: str
    schema: Mapping[str, Json]
    answer: Callable[[Caller, Arguments], Json]
    logs: bool = False

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        return jsonschema_rs.validator_for(dict(self.schema))

    def checked(self, arguments: Arguments) -> Arguments:
        """The arguments, with defaults for those that are missing; ConfigError where they break the schema."""
        error = next(self._validator.iter_errors(dict(arguments)), None)
        if error is not None:
            place = "".join(f".{part}" for part in error.instance_path)
            raise ConfigError(f"{self.name}{place}: {shown(str(error.message), LONGEST)}; see the tool's schema")
        properties = self.schema.get("properties", {})
        defaults = {name: rule["default"] for name, rule in properties.items() if "default" in rule}
        return {**defaults, **arguments}


def search(caller: Caller, given: Arguments) -> Json:
    """Hits as `steelyard search --json` gives them."""
    filters, tags = parse_filters(given.get("filters", ())), tuple(given.get("tags", ()))
    query = Query(given["query"], filters=filters, tags=tags, domain=given.get("domain", ""))
    logged = caller.search(query, _limit(given.get("limit")))
    showing = logged.searcher.system.showing
    hits = [showing.show(hit, logged.result, given["mode"]) for hit in logged.result.hits]
    name = {"query_id": logged.query_id} if logged.query_id else {}
    return {"hits": hits, "notes": list(logged.result.notes), **name}


def get(caller: Caller, given: Arguments) -> Json:
    """Whole entries, and the ids of which there is none."""
    entries = caller.read(given["ids"])
    known = {entry.id for entry in entries}
    missing = [name for name in given["ids"] if name not in known]
    return {"entries": list(map(record_of, entries)), "missing": missing}


def feedback(caller: Caller, given: Arguments) -> Json:
    """An act, logged."""
    caller.act(given["query_id"], given.get("id", ""), given["action"])
    return {"recorded": True}


def _limit(value: Json) -> int | None:
    """A number of results as clients write it, also 5.0; ConfigError for none."""
    if value is not None and (value != int(value) or not 1 <= value <= MOST_RESULTS):
        raise ConfigError(f"the limit {shown(str(value))} is not a whole number from 1 to {MOST_RESULTS}")
    return None if value is None else int(value)


def tools() -> dict[str, Tool]:
    """Every tool by name, with the schema that tools.json declares."""
    answers = {"memory_search": search, "memory_get": get, "memory_feedback": feedback}
    declared = STRICT_JSON.decode(resources.files(__package__).joinpath("tools.json").read_text("utf-8"))
    made = (Tool(answer=answers[one["name"]], **one) for one in declared)
    return {tool.name: tool for tool in made}
