"""Soleri's face: two tools that take an operation, and one that searches; their names begin with the agent's."""

from __future__ import annotations

from functools import partial

from steelyard.base.errors import ConfigError, shown
from steelyard.config.search_config import WEIGHT_NAMES
from steelyard.memory.entry import Entry, Hit
from steelyard.systems import find_system
from steelyard_eval.extensions.serve.caller import (
    Answer,
    Arguments,
    Caller,
    Face,
    Json,
    LoggedSearch,
    Tool,
    declared,
    number_of_results,
    passing,
    told,
    tools_of,
)

ENTRY = "id type domain title severity description=text context=context- example=+example- "
ENTRY += "counterExample=+counter_example- why=why- appliesTo=+applies_to- tier=+tier- origin=+origin- "
ENTRY += "validFrom=valid_from- validUntil=valid_until- tags"
SCANNED, WHOLE = 10, 20  # Results where no number is asked for: of `search` and of a scan, and of whole entries
DEFAULTS = {"source": "search", "confidence": 0.6, "duration": None, "context": "{}", "reason": None}
"""What the program answers of feedback that nothing is learned from."""
DRAFT = {"$schema": "http://json-schema.org/draft-07/schema#"}


def search(caller: Caller, given: Arguments) -> Json:
    """Whole entries, or a scan of them."""
    logged = _found(caller, given, SCANNED)
    return [_row(hit, logged, given["mode"]) for hit in logged.hits]


def search_intelligent(caller: Caller, given: Arguments) -> Json:
    """The same with where each result is from, and memories where they are asked for."""
    usual = SCANNED if given["mode"] == "scan" else WHOLE
    logged = _found(caller, given, usual, given["includeMemories"])
    kind = {True: "memory", False: "vault"}
    return [_row(hit, logged, given["mode"]) | {"source": kind[hit.entry.kind == "memory"]} for hit in logged.hits]


def load_entries(caller: Caller, given: Arguments) -> Json:
    """Entries by id, or the newest of a domain."""
    if given.get("ids"):
        return list(map(_entry, caller.read(given["ids"])))
    if not given.get("domain"):
        raise ConfigError("load_entries needs ids, of a search, or a domain")
    entries = caller.listed(passing(domain=given["domain"]), number_of_results(given["limit"]) or WHOLE)
    return {"entries": list(map(_entry, entries)), "total": len(entries)}


def rated(caller: Caller, given: Arguments) -> Json:
    """What became of an entry that a query showed: an action, or whether it was helpful."""
    action = given.get("action") or ("accepted" if given["helpful"] else "dismissed")
    caller.act_on(given["entryId"], action, given["query"])
    context = {"context": given.get("context")} if "helpful" in given else {}
    return {"recorded": True, "query": given["query"], "entryId": given["entryId"], "action": action, **context}


def brain_feedback(caller: Caller, given: Arguments) -> Json:
    """The same, answered with what was said."""
    rated(caller, given)
    return {**DEFAULTS, **given}


def _entry(entry: Entry) -> dict[str, object]:
    """An entry in the program's words; what is empty is left out, but for what every entry has."""
    usual = {"type": entry.type or "pattern", "severity": entry.severity or "suggestion"}
    return told(entry, ENTRY) | usual


def _found(caller: Caller, given: Arguments, usual: int, memories: bool = True) -> LoggedSearch:
    filters = passing(**{name: given.get(name) for name in ("domain", "type", "severity")})
    if not memories and "memory" in caller.searcher(given, usual).config.retrievers:
        filters &= passing(kind={"none": ["memory"]})
    tags, domain = tuple(given.get("tags") or ()), given.get("domain") or ""
    return caller.search(given, filters, usual, tags=tags, domain=domain)


def _row(hit: Hit, logged: LoggedSearch, mode: str) -> dict[str, object]:
    if mode == "scan":
        return find_system("soleri:shipped").showing.show(hit, logged.result, "scan")
    parts = {theirs: hit.signals.get(ours, 0.0) for theirs, ours in WEIGHT_NAMES["soleri"].items()}
    breakdown = {**parts, "graphProximity": hit.signals.get("graph", 0.0), "total": hit.score}
    return {"entry": _entry(hit.entry), "score": hit.score, "breakdown": breakdown}


FIELDS = declared("soleri")
OPERATIONS = {
    suffix: {tool.name: tool for tool in tools_of(FIELDS[suffix]["operations"], answers)}
    for suffix, answers in {
        "vault": (search, search_intelligent, load_entries, rated),
        "brain": (rated, brain_feedback),
    }.items()
}
"""By the ends of the names of the tools that take them."""


def face(agent: str) -> Face:
    """The face of an agent, whose name the tools begin with."""

    def answered(answer: Answer, op: str, facade: str, caller: Caller, given: Arguments) -> Json:
        return {"success": True, "data": answer(caller, given), "op": op, "facade": facade}

    def operated(suffix: str, facade: str, caller: Caller, given: Arguments) -> Json:
        operations, op = OPERATIONS[suffix], given["op"]
        if op not in operations:
            raise ConfigError(f"{facade} has no operation {shown(op)} here; it has {', '.join(operations)}")
        return answered(operations[op].answer, op, facade, caller, operations[op].checked(given["params"]))

    def tool(suffix: str) -> Tool:
        name, operations = f"{agent}_{suffix}", f"One of {', '.join(OPERATIONS[suffix])}."
        properties = {"op": {"type": "string", "description": operations}, "params": FIELDS["params"]}
        schema = {"type": "object", "properties": properties, "required": ["op"], **DRAFT}
        about = f"{FIELDS[suffix]['about']} {operations}"
        return Tool(name, schema, partial(operated, suffix, name), about, suffix == "brain")

    alone = "search_intelligent"
    schema = {**OPERATIONS["vault"][alone].schema, **DRAFT}
    single = partial(answered, search_intelligent, alone, f"{agent}_vault")
    return Face(
        **{name: FIELDS[name] for name in ("system", "source", "indent")},
        fault=lambda message, tool: {"success": False, "error": message, "facade": tool},
        tools=(tool("vault"), Tool(f"{agent}_{alone}", schema, single, "Search the vault."), tool("brain")),
    )
