"""One client while it calls a tool: what it may ask of the memory, what it was shown lately, what is logged of it.

Agents hardly ever give feedback, but they open what they use, and quote it: an entry that is read after a list
showed it was opened, and one whose id stands in the next query was cited.
"""

from __future__ import annotations

import json
import logging
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

import jsonschema_rs

from steelyard.base.errors import ConfigError, MachineError, quote
from steelyard.base.fields import format_time
from steelyard.base.files import STRICT_JSON
from steelyard.feedback import FeedbackLog, append, append_act
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters, Query
from steelyard.results import SearchResult
from steelyard_eval.vaults.read import OpenVault, RankedBy

MOST_LOGS = 1_000  # Configurations whose records are known to be in the log
LISTS_PER_CLIENT = 64  # Lists of a client that are remembered
QUOTED = 8  # Lists whose ids are looked for in the next query
SHORTEST = 8  # Characters of an id that is recognised in a query; they are not all letters, as those of words are
_WORD = re.compile(r"[^\s\"'`,;|<>()\[\]{}*]+")
_log = logging.getLogger(__name__)
Json = Any
Arguments = Mapping[str, Any]
MAX_QUOTED_CHARS = 200  # Characters that a message quotes of an argument
MOST_RESULTS = 10_000  # Results of one search, as in `steelyard search`


class LoggedSearch(NamedTuple):
    """What a search found; `query_id` is empty where it was not logged."""

    result: SearchResult
    searcher: Searcher
    query_id: str


class ServerLog:
    """The log of a server; `clock` gives seconds UTC."""

    def __init__(self, path: str, clock: Callable[[], float]) -> None:
        self.path, self._clock = path, clock
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
    """One list that a client was shown, with the entries that were acted upon already."""

    query_id: str
    text: str
    ids: frozenset[str]
    used: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True)
class Caller:
    """A client: its name for the log, its newest lists, the last first, and the memory in one state of it."""

    name: str
    lists: deque[ShownList]
    memory: OpenVault
    log: ServerLog | None

    def search(
        self,
        given: Arguments,
        filters: Filters = EVERYTHING,
        usual: int | None = None,
        weights: Mapping[str, float] = MappingProxyType({}),
        **more: Any,  # noqa: ANN401 -- of the query
    ) -> LoggedSearch:
        """Search as `steelyard search` does, for the `query` and `limit` of a tool's arguments; log the list.

        `usual` results where no limit is given. `weights` take the place of the strategy's own of these names.
        """
        searcher = self.searcher(given, usual)
        if weights:
            with suppress(ConfigError):  # the strategy has none of these names
                searcher = searcher.with_config(searcher.config.with_weights(weights))
        query = Query(**{"text": given.get("query"), "filters": filters, **more})
        result = searcher.search(query)
        if self.log is None:
            return LoggedSearch(result, searcher, "")
        words = _WORD.findall(query.text)
        names = {word for word in (*words, *(word.strip(".:!?#") for word in words)) if len(word) >= SHORTEST}
        self._infer([name for name in sorted(names) if not name.isalpha()], "cited", QUOTED)
        query_id = self.log.shown(searcher, result, self.name)
        if query_id:
            ids = frozenset(hit.entry.id for hit in result.hits)
            self.lists.appendleft(ShownList(query_id, query.text, ids))
        return LoggedSearch(result, searcher, query_id)

    def searcher(self, given: Arguments, usual: int | None = None) -> Searcher:
        """What searches with the limit of a tool's arguments."""
        return self.memory.searcher(self.limit(given, usual))

    def limit(self, given: Arguments, usual: int | None = None) -> int | None:
        """The limit of a tool's arguments, which clients also write as 5.0; ConfigError for none."""
        value = given.get("limit")
        if value is not None and (value != int(value) or not 1 <= value <= MOST_RESULTS):
            raise ConfigError(f"the limit {quote(str(value))} is not a whole number from 1 to {MOST_RESULTS}")
        return usual if value is None else int(value)

    def read(self, ids: Sequence[str], opened: bool = True) -> list[Entry]:
        """Whole entries by id, without those that are not there; each that a list showed counts as opened."""
        entries = self.memory.searcher(None).store.get(list(ids))
        if opened:
            self.opened(entries)
        return entries

    def listed(self, filters: Filters, most: int = -1) -> list[Entry]:
        """The entries that pass, newest first; all by default."""
        return self.memory.searcher(None).store.recent(filters, most)

    def opened(self, entries: Sequence[Entry]) -> None:
        """Log that entries were opened, where a list showed them."""
        self._infer([entry.id for entry in entries], "opened", LISTS_PER_CLIENT)

    def act(self, query_id: str, entry_id: str, action: str) -> None:
        """Log an act that the client reports; ConfigError for an unknown list or action, and without a log."""
        if self.log is None:
            raise ConfigError("this server keeps no log; start it with --log FILE")
        self.log.act(query_id, entry_id, action, self.name)

    def act_on(self, entry_id: str, action: str, text: str | None = None) -> str:
        """Log an act on the newest list that showed an entry, of a query where one is given; the list's id."""
        named = (one for one in self.lists if entry_id in one.ids and text in (None, one.text))
        query_id = next(named, ShownList("", "", frozenset())).query_id
        if self.log is not None and not query_id:
            raise ConfigError(f"no list of this client showed {quote(entry_id)} for that lately; search first")
        self.act(query_id, entry_id, action)
        return query_id

    def _infer(self, names: Sequence[str], action: str, most: int) -> None:
        """Log an act on each entry that one of the newest lists showed, once."""
        for name in names if self.log is not None else ():
            listed = next((one for one in islice(self.lists, most) if name in one.ids), None)
            if listed is None or (name, action) in listed.used:
                continue
            listed.used.add((name, action))
            try:
                self.act(listed.query_id, name, action)
            except (MachineError, ConfigError) as error:  # what nobody reported is nobody's error
                _log.warning("an act was not logged: %s", error)


Answer = Callable[[Caller, Arguments], Json]
"""Makes a JSON value of the caller and valid arguments; ConfigError and DataError are told to the client."""
Fault = Callable[[str, str], Json]  # makes the answer of a call that failed, of a message and the name of the tool


@dataclass(frozen=True)
class Tool:
    """One tool: what clients call it by, what it tells them, and the JSON Schema of its arguments.

    One that `logs` does nothing else, so that it is offered where there is a log.
    """

    name: str
    schema: Mapping[str, Json]
    answer: Answer
    about: str = ""
    logs: bool = False

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        return jsonschema_rs.validator_for(dict(self.schema))

    def checked(self, arguments: Arguments) -> Arguments:
        """The arguments, with defaults for those that are missing; ConfigError where they break the schema."""
        error = next(self._validator.iter_errors(dict(arguments)), None)
        if error is not None:
            place = "".join(f".{part}" for part in error.instance_path)
            raise ConfigError(
                f"{self.name}{place}: {quote(str(error.message), MAX_QUOTED_CHARS)}; see the tool's schema"
            )
        properties = self.schema.get("properties", {})
        defaults = {name: rule["default"] for name, rule in properties.items() if "default" in rule}
        return {**defaults, **arguments}


@dataclass(frozen=True)
class Face:
    """How a server looks to its clients.

    `system` ranks unless the command line says otherwise, `tools` are in the order in which they are listed.
    `source` is the repository and the commit that names, schemas and forms are of. `structured` is whether answers
    are also given as structured content, `indent` that of the JSON text; `instructions` are those of the server.
    """

    system: str
    tools: Sequence[Tool]
    fault: Fault
    source: str = ""
    structured: bool = False
    indent: int | None = None
    instructions: str = ""

    def ranked(self, by: RankedBy) -> Face:
        """The face that says what ranks: a system and its generation, a strategy, or somebody's weights."""
        system, _, profile = by.built(None, ()).name.partition(":")
        own = f"{system}, {FORMS['generations'].get(profile, profile)}"
        ranking = "its owner's weights" if by.config else by.strategy or own
        tools = [replace(tool, about=tool.about.replace("{ranking}", ranking)) for tool in self.tools]
        return replace(self, tools=tools, instructions=FORMS["instructions"].replace("{ranking}", ranking))

    def text(self, value: Json) -> str:
        """An answer as text: JSON, or a message as it is."""
        if isinstance(value, str):
            return value
        separators = (",", ":") if self.structured else None
        return json.dumps(value, ensure_ascii=False, indent=self.indent, separators=separators, allow_nan=False)


def declared(name: str) -> dict[str, Json]:
    """What ``schemas/NAME.json`` declares of a face: its fields, and its tools."""
    text = resources.files(__package__).joinpath(f"schemas/{name}.json").read_text("utf-8")
    face: dict[str, Json] = STRICT_JSON.decode(text)
    return face


FORMS = declared("forms")
"""The words of programs for what we have, see `own_words`, and what they answer where a vault knows nothing."""


def tools_of(tools: Sequence[Mapping[str, Json]], answers: Sequence[Answer]) -> tuple[Tool, ...]:
    """The declared tools, each with what answers it, in the same order."""
    return tuple(Tool(**tool, answer=answer) for tool, answer in zip(tools, answers, strict=True))


def face_of(name: str, *answers: Answer, fault: Fault = lambda message, _: message) -> Face:
    """The declared face; `answers` are those of its tools, in their order."""
    fields = declared(name)
    return Face(tools=tools_of(fields.pop("tools"), answers), fault=fault, **fields)


def own_words(entry: Entry, form: str) -> dict[str, Json]:
    """An entry in a program's words, by a form: their name, and with `=` the field of ours.

    ``+`` before it is a field that an import kept, ``@`` a time as text; of what is empty ``?`` makes null, and
    ``-`` nothing.
    """
    said: dict[str, Json] = {}
    for theirs, _, ours in (part.partition("=") for part in form.split()):
        name = (ours or theirs).strip("+@?-")
        value = entry.extra.get(name) if ours[:1] == "+" else getattr(entry, name)
        value = format_time(value) if ours[:1] == "@" else list(value) if isinstance(value, tuple) else value
        if value or ours[-1:] not in ("?", "-"):
            said[theirs] = value
        elif ours[-1:] == "?":
            said[theirs] = None
    return said


def passing(**wanted: Json) -> Filters:
    """The entries whose fields have these values: any of a list, but all of the tags; None asks nothing."""
    return Filters.of({name: value for name, value in wanted.items() if value is not None})
