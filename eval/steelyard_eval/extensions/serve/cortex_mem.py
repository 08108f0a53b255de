"""Cortex-Mem's face: it searches, and reads a memory at one of three depths; it has no tool for feedback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from steelyard.base.errors import DataError, shown
from steelyard.memory.entry import Entry
from steelyard.memory.filters import EVERYTHING, Filters
from steelyard.systems.cortex_mem import content
from steelyard.systems.cortex_mem.intents import uri_or_id
from steelyard.systems.cortex_mem.uris import DIMENSIONS, SCHEME, directory_of
from steelyard_eval.extensions.serve.caller import (
    Arguments,
    Caller,
    Json,
    face_of,
    passing,
)

SESSION = f"{SCHEME}session"
MOVED = ("threads", "agents", "users", "global")
"""Old names of dimensions: what lies below them is looked for in sessions."""
DEPTHS: dict[str, tuple[str, Callable[[Entry], str]]] = {
    "abstract": ("L0", lambda entry: entry.l0),
    "overview": ("L1", lambda entry: entry.l1),
    "content": ("L2", content),
}
"""The tools that read, the layer that each shows, and where it stands."""


def search(caller: Caller, given: Arguments) -> Json:
    """Memories with the layers that are asked for; `min_score` is accepted and not used, as in the program."""
    filters = EVERYTHING if given.get("scope") is None else below(given["scope"])
    return _found(caller, given, filters, given.get("return_layers") or ["L0"])


def recall(caller: Caller, given: Arguments) -> Json:
    """Memories with abstract and content, in sessions unless a scope says otherwise."""
    return _found(caller, given, below(given.get("scope") or SESSION), ["L0", "L2"])


def read(depth: str, caller: Caller, given: Arguments) -> Json:
    """One layer of the memory at a URI; reading its overview or content counts as opening it."""
    layer, shown_of = DEPTHS[depth]
    entry = _at(caller, given["uri"])
    if entry is None or not (text := shown_of(entry) or shown_of(_home(caller, entry))):
        raise DataError(f"no {depth} at {shown(given['uri'])}; use a URI that a search showed")
    if depth != "abstract":
        caller.opened([entry])
    name = "content" if depth == "content" else f"{depth}_text"
    return {"success": True, "uri": given["uri"], name: text, "layer": layer, "token_count": len(text.split())}


def below(scope: str) -> Filters:
    """The memories of a scope: a URI, or the name of a session."""
    path = scope.removeprefix(SCHEME)
    if path == scope:
        uri = f"{SESSION}/{scope.lstrip('/')}"
    else:
        dimension, slash, rest = path.partition("/")
        kept = f"{SESSION}{slash}{rest}" if dimension in MOVED else SESSION
        uri = scope if dimension in DIMENSIONS else kept
    return Filters.of({"uri": {"prefix": uri}})


def _found(caller: Caller, given: Arguments, filters: Filters, layers: Sequence[str]) -> dict[str, object]:
    rows = []
    for hit in caller.search(given, filters, 10).hits:
        entry = hit.entry
        home = entry if entry.l0 or entry.l1 else _home(caller, entry)
        row = {"uri": uri_or_id(entry), "score": hit.score, "snippet": home.l0 if "L0" in layers else ""}
        row["overview"] = (home.l1 or None) if "L1" in layers else None
        row["content"] = (content(entry) or None) if "L2" in layers else None
        rows.append(row | {"layers": list(layers)})
    return {"success": True, "query": given["query"], "results": rows, "total": len(rows)}


def _at(caller: Caller, uri: str) -> Entry | None:
    """The memory at a URI, or of an id where it has no URI."""
    entries = caller.listed(passing(uri=uri), 1) or caller.read([uri], opened=False)
    return entries[0] if entries else None


def _home(caller: Caller, entry: Entry) -> Entry:
    """The directory whose abstract and overview stand for a memory; the memory itself where there is none."""
    home = directory_of(entry.uri)
    entries = caller.listed(passing(uri=home), 1) if home and home != entry.uri else []
    return entries[0] if entries else entry


FACE = face_of("cortex_mem", search, recall, *(partial(read, depth) for depth in DEPTHS))
