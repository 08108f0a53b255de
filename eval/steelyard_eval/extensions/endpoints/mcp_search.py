"""A tool of an MCP server as a contender: what a memory system answers to its agents, compared as it is.

The server is started by the user's command; `mcp_client.py` speaks to it.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any
from urllib.parse import unquote

from steelyard.base.errors import MASK, ConfigError, DataError, nearest, quote
from steelyard.extensions.network.endpoint import SHORTEST
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.common.configurations import MCP_PREFIX
from steelyard_eval.extensions.endpoints import answer_form
from steelyard_eval.extensions.endpoints.answer_form import FormError, Mentioned
from steelyard_eval.extensions.endpoints.http_search import KEY_NAMES, KEYS, holds_key, masked
from steelyard_eval.extensions.endpoints.mcp_client import McpClient, started

OPTIONS = ("arguments", "ids")
STARTING = 120.0  # Seconds in which a server may start: it may load a model, or be installed first
TIMEOUT = 30.0
MAX_QUOTED_CHARS, FEW = 300, 5  # Characters of what a server said that a message shows, and places of ids
_FLAG = re.compile(rf"--?(?:{KEY_NAMES})", re.IGNORECASE)
_HEADER = re.compile(rf"((?:--?[\w-]+=)?[\w-]*(?:{KEYS})[\w-]*\s*:\s*)(.+)", re.IGNORECASE | re.DOTALL)
"""A header with a key, as ``Authorization: Bearer ...``."""
_ASSIGNED = re.compile(rf"(-{{0,2}}(?:{KEY_NAMES}))=(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class McpSearch:
    """A tool of an MCP server.

    `command` starts the server, as words or as a shell would take it; no shell runs it. `tool` is the name of the
    tool that searches. `arguments` are JSON, in which the string ``"{limit}"`` is replaced by a number and
    ``{query}`` inside any string by the text; left out, they are guessed by the names in the tool's own schema,
    and told. `ids` is a JMESPath expression for the ids of the answer, best first: without it the first list that
    looks like results is read, and of an answer that is prose the ids of entries that stand in it. `timeout` is in
    seconds, of one answer.

    Raises ConfigError for an empty command, arguments without the query, or a path that cannot be parsed.
    """

    command: str | Sequence[str] = field(repr=False)
    tool: str
    arguments: str = field(default="", repr=False)
    ids: str = ""
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        if not self.words or not self.tool:
            raise ConfigError('an MCP server is written as mcp:COMMAND#TOOL, as in "mcp:npx -y my-server#search"')
        if self.arguments and (not isinstance(self.template, dict) or "{query}" not in self.arguments):
            raise ConfigError(
                f"the arguments of {quote(self.tool)} are not a JSON object with {{query}} in it; write "
                '{"query": "{query}", "limit": "{limit}"}'
            )
        answer_form.path_of(self.ids) if self.ids else None  # so that a faulty path is named before anything runs

    @classmethod
    def of(cls, text: str) -> McpSearch:
        """Read a server and its tool from one text; options may follow, as those of an endpoint do."""
        command, _, rest = text.removeprefix(MCP_PREFIX).partition("#")
        tool, _, options = rest.partition("&")
        arguments, ids = answer_form.options_of(options, OPTIONS, f"{MCP_PREFIX}...#{tool}")
        return cls(command, unquote(tool), arguments, ids)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The command as words."""
        if not isinstance(self.command, str):
            return tuple(self.command)
        try:
            return tuple(shlex.split(self.command))
        except ValueError as error:
            raise ConfigError(
                f"the command of an MCP server cannot be read ({error}); quote it as in a shell"
            ) from None

    @cached_property
    def template(self) -> Any:  # noqa: ANN401 -- any JSON value
        """The arguments, where they are given."""
        return answer_form.template_of(self.arguments, "arguments") if self.arguments else None

    @property
    def label(self) -> str:
        """The name of the tool."""
        return self.tool

    @property
    def shown(self) -> str:
        """The command as messages and documents have it: keys in it are masked, by the names before them."""
        told = (f"{before}{MASK}" if key else masked(before) for before, key in self._keyed)
        options = {"arguments": self.arguments, "ids": self.ids}
        more = "".join(f"&{name}={text.replace('&', '%26')}" for name, text in options.items() if text)
        return f"{MCP_PREFIX}{shlex.join(told)}#{self.tool}{'' if holds_key(more) else more}"

    @cached_property
    def _keyed(self) -> list[tuple[str, str]]:
        """The words of the command, each as what is no key of it, and the key."""
        pairs, flag = list[tuple[str, str]](), False
        for word in self.words:
            plain = ("", word) if flag and not word.startswith("-") else (word, "")
            if header := _HEADER.fullmatch(word):
                plain = header[1], header[2]
            elif assigned := _ASSIGNED.fullmatch(word):
                plain = f"{assigned[1]}=", assigned[2]
            pairs.append(plain)
            flag = _FLAG.fullmatch(word) is not None
        return pairs

    def hidden(self, text: str) -> str:
        """The text without the keys of the command."""
        parts = (part for _, key in self._keyed for part in (key, *key.split()))
        keys = (part for part in parts if len(part) >= SHORTEST)
        return reduce(lambda told, key: told.replace(key, MASK), keys, text)

    def redacted_quote(self, value: object, width: int = MAX_QUOTED_CHARS) -> str:
        """What a server said, for a message: keys are hidden before it is cut, which could leave half of one."""
        return quote(self.hidden(str(value)), width)

    @contextmanager
    def opened(self, entries: Sequence[Entry]) -> Iterator[McpSession]:
        """The server while it runs, for a corpus that its answers name; MachineError when it does not start."""
        place = f"the MCP tool {quote(self.tool)} of {quote(self.words[0])}"
        with started(self.words, place, self.redacted_quote) as client:
            session = McpSession(self, client, place, Mentioned(entries))
            session.begin()
            yield session


class McpSession:
    """A server that is running; `notices` say how it is asked and read."""

    def __init__(self, search: McpSearch, client: McpClient, place: str, names: Mentioned) -> None:
        self._search, self._client, self._place, self._names = search, client, place, names
        self._template: Any = search.template
        self._places: dict[str, int] = {}
        self._limited = "{limit}" in search.arguments
        self._most: float | None = None

    @property
    def notices(self) -> list[str]:
        """How the tool was asked, where its answers were read, and how their ids were found in the corpus."""
        notices = []
        if not self._search.arguments:
            notices.append(f"asks {self._search.tool} with {json.dumps(self._template)[:MAX_QUOTED_CHARS]}")
        if not self._limited:
            notices.append("takes no limit, so that lists are as long as it likes")
        elif self._most is not None:
            notices.append(f"returns at most {self._most:g} results")
        if self._places and not self._search.ids:
            notices.append(f"ids are read from {', '.join(list(self._places)[:FEW])}; ids= names another place")
        return notices + self._names.notices

    def begin(self) -> None:
        """Greet the server, and see how its tool is asked, and how many results it may be asked for."""
        until = time.monotonic() + STARTING
        self._client.greet(until)
        known, tool = {one["name"]: one for one in self._client.tools(until)}, self._search.tool
        if tool not in known:
            raise ConfigError(f"{quote(self._search.words[0])} has no tool {quote(tool)}{nearest(tool, known)}")
        schema = known[tool].get("inputSchema")
        schema = schema if isinstance(schema, dict) else {}
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        limit = next((name for name in answer_form.NAMES["limits"] if name in properties), "")
        if self._template is None:
            self._template = self._guessed(properties, schema.get("required"), limit)
            self._limited = bool(limit)
        else:
            limit = next((name for name, value in self._template.items() if value == "{limit}"), "")
        most = properties[limit].get("maximum") if isinstance(properties.get(limit), dict) else None
        self._most = most if isinstance(most, int | float) and most >= 1 else None

    def ask(self, query: Query, limit: int) -> list[str]:
        """The ids of one query's results, best first; DataError for an unusable answer, MachineError for none."""
        wanted = limit if self._most is None else int(min(limit, self._most))
        arguments = answer_form.filled(self._template, query.text, wanted)
        about, until = f", query {quote(query.id)}", time.monotonic() + self._search.timeout
        answer = self._client.call("tools/call", {"name": self._search.tool, "arguments": arguments}, until, about)
        try:
            return self._results(answer)
        except FormError as error:
            raise DataError(f"{self._place}{about}: {self._search.hidden(str(error))}") from None

    def _results(self, answer: object) -> list[str]:
        if not isinstance(answer, dict):
            raise FormError(f"answered with {self._search.redacted_quote(answer)}, not with a tool result")
        if answer.get("isError") is True:
            raise FormError(f"failed: {self._search.redacted_quote(answer_form.text_in(answer))}")
        told = answer.get("structuredContent") is not None or answer_form.text_in(answer.get("content"))
        document = answer_form.document_of(answer) if told else None
        if document is None and self._search.ids:
            raise FormError("answers with prose, which a path such as ids= cannot read; leave ids= out")
        if document is None:
            self._places["what its text mentions"] = 1
            return self._names.in_text(answer_form.text_in(answer))
        place, ids = answer_form.ids_of(document, self._search.ids)
        self._places[place] = 1
        return [self._names.named(id_) or id_ for id_ in ids]

    def _guessed(self, properties: Mapping[str, Any], required: object, limit: str) -> dict[str, str]:
        needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        text = next((name for name in answer_form.NAMES["queries"] if name in properties), "")
        if not text and len(needed) == 1:
            text = needed[0]
        left = [name for name in needed if name not in (text, limit)]
        if not text or left:
            lacks = f"needs {', '.join(map(quote, left))}" if left else "has no argument that looks like a query"
            raise ConfigError(
                f"{self._place} {lacks}; write its arguments: "
                f'#{self._search.tool}&arguments={{"{text or "query"}": "{{query}}", ...}}'
            )
        return {text: "{query}"} | ({limit: "{limit}"} if limit else {})
