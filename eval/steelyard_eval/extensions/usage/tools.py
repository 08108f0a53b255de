"""The names of the tools by which agents search a memory, open entries, change and rate them, for each system.

Names and arguments are those of the servers' sources: EchoVault d2f5d2d (`mcp_server.py`), MoltNet 25e711d
(`diary-tools.ts`), Soleri d87b305 (`vault-facade.ts`, `brain-facade.ts`; a facade takes `op` and `params`),
Cortex-Mem 0bbcdb1 (`definitions.rs`, and the names that its README still has), system-spec-kit 030971a
(`tool-schemas.ts`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from steelyard.feedback.log import ACTIONS
from steelyard_eval.extensions.endpoints.mentioned import Mentioned
from steelyard_eval.extensions.usage.answers import hits_of, text_in
from steelyard_eval.extensions.usage.records import loaded, object_of, objects
from steelyard_eval.extensions.usage.session import (
    EntriesChanged,
    EntriesOpened,
    Event,
    Kept,
    Rated,
    Searched,
    ShownHit,
    Wrote,
)

MANY = 100
"""Results that a search may ask for; more is a mistake, and the system's own number is taken."""
WAITING = 1_000
"""Calls of a session whose answers are waited for; the oldest go first."""


@dataclass(frozen=True)
class MemoryTools:
    """The tools of one system.

    Attributes
    ----------
    search : mapping
        Tool -> the argument that has the query.
    opens, changes, keeps : tuple of str
        Tools that read entries whole, update them, and save new ones.
    rates : tuple of str
        Tools that say what an entry was worth.
    narrows : mapping
        Argument of a search -> the field of entries that it filters by.
    server : str
        What the name of the server holds: needed for tools whose names are words that others use too.
    """

    system: str
    search: Mapping[str, str]
    opens: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()
    narrows: Mapping[str, str] = field(default_factory=dict)
    server: str = ""


SYSTEMS = (
    MemoryTools(
        "echovault",
        {"memory_search": "query"},
        opens=("memory_details", "memory_get"),
        keeps=("memory_save",),
        narrows={"project": "project"},
        server="echovault",
    ),
    MemoryTools(
        "spec_kit",
        {"memory_search": "query", "memory_quick_search": "query", "memory_context": "input"},
        changes=("memory_update",),
        keeps=("memory_save",),
        rates=("memory_validate",),
        narrows={"specFolder": "project", "tier": "importance_tier", "contextType": "context_type"},
        server="spec",
    ),
    MemoryTools(
        "moltnet",
        {"entries_search": "query"},
        opens=("entries_get",),
        changes=("entries_update",),
        keeps=("entries_create",),
        narrows={"tags": "tags", "entry_types": "type"},
        server="moltnet",
    ),
    MemoryTools(
        "soleri",
        dict.fromkeys(("search", "search_intelligent", "vault_search", "vault_search_intelligent"), "query"),
        opens=("load_entries", "vault_get", "get"),
        changes=("update", "vault_update"),
        keeps=("capture_enriched", "capture_knowledge", "capture_quick", "vault_capture"),
        rates=("record_feedback", "brain_feedback"),
        narrows={name: name for name in ("domain", "type", "severity", "tags")},
        server="vault",
    ),
    MemoryTools(
        "cortex_mem",
        {"search": "query", "recall": "query", "query_memory": "query"},
        opens=("content", "overview", "abstract", "get_memory", "get_overview", "get_abstract"),
        keeps=("store", "store_memory"),
        server="cortex",
    ),
)
"""Every system whose searches are recognised; of those that share a name, the data set's own counts first."""
STEELYARD = MemoryTools(
    "", {"memory_search": "query"}, opens=("memory_get",), rates=("memory_feedback",), server="steelyard"
)
"""Our own server: what ranked is in its log, so no system is named here."""
NAMES = """id ids entry_id entryId memory_id memoryId record_id doc_id uri uris path permalink identifier name
    memory_ids entry_ids""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
"""Arguments that name entries."""
EDITORS = """Edit Write MultiEdit NotebookEdit apply_patch str_replace_editor edit_file write_file create_file
    str_replace_based_edit_tool""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
READERS = ("Read", "read_file", "NotebookRead", "view")
SHELLS = ("Bash", "shell", "exec_command", "local_shell", "container.exec", "run_terminal_cmd")
PATHS = ("file_path", "path", "notebook_path", "filePath", "filename")
WRITTEN = ("new_string", "content", "new_source", "file_text", "new_str", "insert_text")
_READS = re.compile(r"(^|_)(get|read|open|load|fetch|details)(_|$)")
_COMMAND = re.compile(r"\bmemory\s+(?:details|get|show)\s+([^\s;|&]+)")
"""EchoVault's own command, by which agents open what they found."""
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)


class Calls:
    """The calls of a session, from where they are made to where they are answered.

    `prefers` is the system of the data set: it owns the names that several systems use. `names` finds entries in
    answers that are prose.
    """

    def __init__(self, prefers: str, names: Mentioned) -> None:
        self._prefers, self._names = prefers, names
        self._waiting: dict[str, tuple[MemoryTools, str, Mapping[str, object], float | None]] = {}
        self._known: set[str] = set()

    def knows(self, key: str) -> bool:
        """Whether a call under this key was made."""
        return key in self._known

    def made(self, key: str, name: str, arguments: object, time: float | None) -> Iterator[Event]:
        """What a call says by itself; a search waits for its answer under the key."""
        self._known.add(key)
        given = loaded(arguments)
        args = given if isinstance(given, Mapping) else {"input": given}
        server, tool, args, facade = _split(name, args)
        for tools in self._candidates(server, tool, facade):
            matched = _matching(tool, (*tools.search, *tools.opens, *tools.changes, *tools.keeps, *tools.rates))
            if matched in tools.search:
                query = args.get(tools.search[matched])
                if isinstance(query, str) and query.strip():
                    self._waiting[key] = (tools, query, args, time)
                    if len(self._waiting) > WAITING:
                        del self._waiting[next(iter(self._waiting))]
            else:
                yield from _event(tools, matched, args)
            return
        yield from _other(server, tool, args)

    def answered(self, key: str, answer: object, time: float | None, failed: bool = False) -> Iterator[Event]:
        """The search whose answer this is; nothing for the answers of other calls."""
        if (waiting := self._waiting.pop(key, None)) is None:
            return
        tools, query, args, asked = waiting
        hits = () if failed else hits_of(answer)
        if hits is None and (names := self._names.in_text(text_in(answer))):
            hits = tuple(map(ShownHit, names))
        narrowed = {field: args[name] for name, field in tools.narrows.items() if args.get(name)}
        limit = args.get("limit")
        asked_for = limit if isinstance(limit, int) and not isinstance(limit, bool) and 0 < limit <= MANY else None
        yield Searched(key, asked if asked is not None else time, query, hits, tools.system, narrowed, asked_for)

    def asks(self, name: str, arguments: object) -> str:
        """The query of a call that searches a memory; empty for other calls."""
        server, tool, args, facade = _split(name, object_of(arguments))
        for tools in self._candidates(server, tool, facade):
            if matched := _matching(tool, tuple(tools.search)):
                return str(args.get(tools.search[matched]) or "")
        return ""

    def _candidates(self, server: str, tool: str, facade: bool) -> Iterator[MemoryTools]:
        """The systems that have such a tool: first whose server it is, then the data set's, then any."""
        candidates = [
            tools
            for tools in (STEELYARD, *SYSTEMS)
            if _matching(tool, (*tools.search, *tools.opens, *tools.changes, *tools.keeps, *tools.rates))
            and ("_" in tool or facade or tools.server in server.casefold())
            and (not facade or tools.system == "soleri")
            and (tools is not STEELYARD or tools.server in server.casefold())
        ]
        named = [tools for tools in candidates if server and tools.server in server.casefold()]
        yield from sorted(named or candidates, key=lambda tools: tools.system != self._prefers)


def _split(name: str, args: Mapping[str, object]) -> tuple[str, str, Mapping[str, object], bool]:
    """The server, the tool and its arguments; a facade's operation is its tool."""
    server, _, tool = name.removeprefix("mcp__").rpartition("__")
    operation, inner = args.get("op"), args.get("params")
    if isinstance(operation, str) and isinstance(inner, dict | str):
        return tool, operation, object_of(inner), True
    return server, tool, args, False


def _matching(tool: str, names: tuple[str, ...]) -> str:
    """The name that a tool goes by: the same, or of several words behind an agent's own prefix; empty for none."""
    return next((name for name in names if tool == name or ("_" in name and tool.endswith(f"_{name}"))), "")


def _event(tools: MemoryTools, tool: str, args: Mapping[str, object]) -> Iterator[Event]:
    named = _named(args)
    if tool in tools.opens and named:
        yield EntriesOpened(named)
    elif tool in tools.changes and named:
        yield EntriesChanged(named)
    elif tool in tools.keeps:
        yield Kept("\n".join(value for value in args.values() if isinstance(value, str)))
    elif tool in tools.rates:
        action = _rating(args)
        if action and len(named) == 1:
            yield Rated(named[0], action)


def _rating(args: Mapping[str, object]) -> str:
    useful = args.get("wasUseful", args.get("useful"))
    if isinstance(useful, bool):
        return "thumbs_up" if useful else "thumbs_down"
    action = args.get("action")
    return action if isinstance(action, str) and action in ACTIONS and action != "none_useful" else ""


def _other(server: str, tool: str, args: Mapping[str, object]) -> Iterator[Event]:
    """Calls of tools of no memory that we know: editors, readers, a shell, getters of other servers."""
    paths = tuple(str(args[name]) for name in PATHS if isinstance(args.get(name), str))
    if tool in EDITORS:
        texts = [args[name] for name in WRITTEN if isinstance(args.get(name), str)]
        texts += [edit.get("new_string", "") for edit in objects(args.get("edits"))]
        patch = args.get("input") or args.get("patch")
        if isinstance(patch, str):
            paths, texts = (*paths, *_PATCHED.findall(patch)), [*texts, patch]
        yield Wrote(paths, "\n".join(text for text in texts if isinstance(text, str)))
    elif tool in READERS and paths:
        yield EntriesOpened(paths)
    elif tool in SHELLS:
        command = args.get("command") or args.get("cmd") or args.get("input")
        words = " ".join(map(str, command)) if isinstance(command, list) else str(command or "")
        if patched := tuple(_PATCHED.findall(words)):
            yield Wrote(patched, words)
        if opened := tuple(_COMMAND.findall(words)):
            yield EntriesOpened(opened)
    elif _READS.search(tool) and (named := _named(args)):
        yield EntriesOpened(named)


def _named(args: Mapping[str, object]) -> tuple[str, ...]:
    """What the arguments name: texts and whole numbers under the usual keys."""
    names: list[str] = []
    for name in NAMES:
        value = args.get(name)
        many = value if isinstance(value, list) else [value]
        names += [str(item) for item in many if isinstance(item, str | int) and not isinstance(item, bool)]
    return tuple(dict.fromkeys(filter(None, names)))
