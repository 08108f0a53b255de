"""The names of the tools by which agents search a memory, open entries, change and rate them, for each system.

They are in `tools.json`, as in the servers' sources: EchoVault d2f5d2d, MoltNet 25e711d, Soleri d87b305 (a facade
takes `op` and `params`), Cortex-Mem 0bbcdb1 (and its README's older names), system-spec-kit 030971a.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources

from steelyard.base.files import STRICT_JSON
from steelyard.feedback import ACTIONS
from steelyard_eval.datasets.logs import MOST_HITS
from steelyard_eval.extensions.endpoints.answer_form import FormError, Mentioned, document_of, ids_of, text_in
from steelyard_eval.extensions.usage.session import MEMORY, Acted, Event, Searched, Spoken, Wrote, dict_of, objects

FORMS = STRICT_JSON.decode(resources.files(__package__).joinpath("tools.json").read_text("utf-8"))
"""Tools of systems; arguments that name entries, paths and what is written; editors, readers; forms of logs."""
MANY = 100  # Results that a search may ask for; more is a mistake, and the system's own number is taken
WAITING = 1_000  # Calls of a session whose answers are waited for; the oldest go first
Arguments = Mapping[str, object]
OPENS, CHANGES, KEEPS, RATES = "opened", "modified", "kept", "rated"
RATINGS = frozenset(ACTIONS) - {"none_useful"}  # What somebody says of one entry
_READS = re.compile(r"(^|_)(get|read|open|load|fetch|details)(_|$)")
_COMMAND = re.compile(r"\bmemory\s+(?:details|get|show)\s+([^\s;|&]+)")
"""EchoVault's own command, by which agents open what they found."""


@dataclass(frozen=True)
class MemoryTools:
    """The tools of one system.

    `does` has what each tool does: one of the constants above, or for a search the argument with the query.
    `narrows` maps arguments of a search to the fields of entries that they filter by. `server` is what the name of
    the server holds: needed for tools whose names are words that others use too.
    """

    system: str
    server: str
    does: Mapping[str, str]
    narrows: Mapping[str, str] = field(default_factory=dict)

    def named(self, tool: str) -> str:
        """The name that a tool goes by: the same, or of several words behind a prefix of an agent."""
        return next(
            (name for name in self.does if tool == name or ("_" in name and tool.endswith(f"_{name}"))), ""
        )


SYSTEMS = tuple(MemoryTools(**one) for one in FORMS["systems"])
"""Every system whose searches are recognised; of those that share a name, the data set's own counts first.

The first is our own server: what ranked is in its log, so no system is named there.
"""


class Calls:
    """The calls of a session, from where they are made to where they are answered.

    `prefers` is the system of the data set: it owns the names that several systems use. `names` finds entries in
    answers that are prose.
    """

    def __init__(self, prefers: str, names: Mentioned) -> None:
        self._prefers, self._names = prefers, names
        self._waiting: dict[str, tuple[MemoryTools, str, Mapping[str, object], float | None]] = {}

    def made(self, key: str, name: str, arguments: object, time: float | None) -> Iterator[Event]:
        """What a call says by itself; a search waits for its answer under the key."""
        tools, tool, args = self._found(name, dict_of(arguments))
        does = tools.does[tool] if tools else ""
        if tools is None:
            yield from _other(tool, args)
        elif does in (OPENS, CHANGES):
            if named := _named(args):
                yield Acted(named, does)
        elif does == KEEPS:
            yield Spoken(MEMORY, "\n".join(value for value in args.values() if isinstance(value, str)))
        elif does == RATES:
            useful = args.get("wasUseful", args.get("useful"))
            rated = "thumbs_up" if useful is True else "thumbs_down" if useful is False else args.get("action")
            if isinstance(rated, str) and rated in RATINGS and len(named := _named(args)) == 1:
                yield Acted(named, rated, reported=True)
        elif isinstance(query := args.get(does), str) and query.strip():
            self._waiting[key] = tools, query, args, time
            if len(self._waiting) > WAITING:
                del self._waiting[next(iter(self._waiting))]

    def answered(self, key: str, answer: object, time: float | None, failed: bool = False) -> Iterator[Event]:
        """The search whose answer this is; nothing for the answers of other calls."""
        if (waiting := self._waiting.pop(key, None)) is None:
            return
        tools, query, args, asked = waiting
        hits = () if failed else hits_of(answer)
        if hits is None and (names := self._names.in_text(text_in(answer))):
            hits = tuple(names)
        narrowed = {field: args[name] for name, field in tools.narrows.items() if args.get(name)}
        limit = args.get("limit")
        asked_for = limit if isinstance(limit, int) and not isinstance(limit, bool) and 0 < limit <= MANY else None
        yield Searched(key, asked if asked is not None else time, query, hits, tools.system, narrowed, asked_for)

    def asks(self, name: str, arguments: object) -> str:
        """The query of a call that searches a memory; empty for other calls."""
        tools, tool, args = self._found(name, dict_of(arguments))
        return str(args.get(tools.does[tool]) or "") if tools else ""

    def _found(
        self, name: str, args: Mapping[str, object]
    ) -> tuple[MemoryTools | None, str, Mapping[str, object]]:
        """The system, the tool and its arguments; a facade's operation is its tool.

        First counts whose server it is, then the data set's own system, then any.
        """
        server, _, tool = name.removeprefix("mcp__").rpartition("__")
        operation, inner = args.get("op"), args.get("params")
        facade = isinstance(operation, str) and isinstance(inner, dict | str)
        if facade:
            server, tool, args = tool, str(operation), dict_of(inner)
        candidates = [
            tools
            for tools in SYSTEMS
            if tools.named(tool)
            and ("_" in tool or facade or tools.server in server.casefold())
            and (not facade or tools.system == "soleri")
            and (tools.system or tools.server in server.casefold())
        ]
        named = [tools for tools in candidates if server and tools.server in server.casefold()]
        best = min(named or candidates, key=lambda tools: tools.system != self._prefers, default=None)
        return best, best.named(tool) if best else tool, args


def _other(tool: str, args: Mapping[str, object]) -> Iterator[Event]:
    """Calls of tools of no memory that we know: editors, readers, a shell, getters of other servers."""
    paths = tuple(str(args[name]) for name in FORMS["paths"] if isinstance(args.get(name), str))
    if tool in FORMS["editors"]:
        texts = [args.get(name) for name in FORMS["written"]]
        texts += [edit.get("new_string") for edit in objects(args.get("edits"))]
        yield Wrote(paths, "\n".join(text for text in texts if isinstance(text, str)))
    elif tool in FORMS["readers"] and paths:
        yield Acted(paths, OPENS)
    elif tool == "Bash":
        if opened := tuple(_COMMAND.findall(str(args.get("command") or ""))):
            yield Acted(opened, OPENS)
    elif _READS.search(tool) and (named := _named(args)):
        yield Acted(named, OPENS)


def _named(args: Mapping[str, object]) -> tuple[str, ...]:
    """What the arguments name: texts and whole numbers under the usual keys."""
    names: list[str] = []
    for name in FORMS["names"]:
        value = args.get(name)
        many = value if isinstance(value, list) else [value]
        names += [str(item) for item in many if isinstance(item, str | int) and not isinstance(item, bool)]
    return tuple(dict.fromkeys(filter(None, names)))


def hits_of(answer: object) -> tuple[str, ...] | None:
    """The ids of the results in an answer, best first; None where it holds none that can be read."""
    document = document_of(answer)
    if not isinstance(document, dict | list):
        return None
    try:
        return tuple(str(name) for name in ids_of(document)[1][:MOST_HITS] if name != "")
    except FormError:
        return None
