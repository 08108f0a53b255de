"""The faces that a server can have: our own, with the forms of the commands of these names, and those of systems.

EchoVault's searches and shows what is new; MoltNet's searches, reads and lists diary entries; Cortex-Mem's
searches, and reads a memory at one of three depths. None has a tool for feedback. Those that have stand in modules
of their own.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from steelyard.base.errors import ConfigError, DataError, nearest, quote
from steelyard.base.fields import format_time
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters
from steelyard.systems import find_system
from steelyard.systems.base import record_of
from steelyard.systems.cortex_mem import DIMENSIONS, SCHEME, content, directory_of, uri_or_id
from steelyard_eval.extensions.serve.feedback_tools import SPEC_KIT, soleri
from steelyard_eval.extensions.serve.tool_call import (
    FORMS,
    Arguments,
    Caller,
    Face,
    Json,
    face_of,
    own_words,
    passing,
)
from steelyard_eval.vaults.arguments import parse_filters

AGENT = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)  # A name of an agent, which tools may begin with
TYPES = ("episodic", "semantic", "procedural", "reflection")
WEIGHTS = ("w_relevance", "w_recency", "w_importance")
ENDS = (("created", min), ("updated", max))  # Of a diary, the times of its entries
FARTHEST = 3  # Hops of relations that MoltNet follows; an entry of ours names the first
SESSION = f"{SCHEME}session"
DEPTHS = {
    "abstract": "L0",
    "overview": "L1",
    "content": "L2",
}  # The tools that read, and the layer that each shows


def search(caller: Caller, given: Arguments) -> Json:
    """Hits as `steelyard search --json` gives them."""
    filters, tags = parse_filters(given.get("filters", ())), tuple(given.get("tags", ()))
    logged = caller.search(given, filters, tags=tags, domain=given.get("domain", ""))
    hits = logged.searcher.system.showing.show_all(logged.result.hits, logged.result, given["mode"])
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


def memory_search(caller: Caller, given: Arguments) -> Json:
    """EchoVault's memories: the date without the time, scores of two decimals."""
    logged = caller.search(given, passing(project=given.get("project") or None))
    showing = find_system("echovault:shipped").showing
    return [showing.show(hit, logged.result, "scan") for hit in logged.result.hits]


def memory_context(caller: Caller, given: Arguments) -> Json:
    """EchoVault's newest memories of a project, by default that of the working directory."""
    project = given.get("project") or Path.cwd().name
    hits, total = caller.searcher(given).context("", passing(project=project))
    memories = []
    for entry in (hit.entry for hit in hits):
        date = "" if entry.created_at is None else f"{datetime.fromtimestamp(entry.created_at, UTC):%b %d}"
        known = own_words(entry, "id title category=category? tags")
        memories.append(known | {"title": entry.title or "Untitled", "date": date})
    found = "" if total else f"Nothing is of the project {quote(project)}; name another one, or search. "
    message = f"{found}memory_search finds more by topic; this server reads only."
    return {"total": total, "showing": len(hits), "memories": memories, "message": message}


def entries_search(caller: Caller, given: Arguments) -> Json:
    """MoltNet's diary entries without scores, as the program shows those of one's own diaries."""
    filters = passing(tags=given.get("tags") or None, vault=given.get("diary_id"), type=given.get("entry_types"))
    if given.get("exclude_superseded"):
        filters &= Filters.of({"superseded": False})
    weights = {name: float(given[name]) for name in WEIGHTS if given.get(name) is not None}
    logged = caller.search(given, filters, 10, weights)
    return {"results": [_diary_entry(hit.entry) for hit in logged.result.hits], "total": len(logged.result.hits)}


def entries_get(caller: Caller, given: Arguments) -> Json:
    """One entry, with its own relations where they are asked for."""
    entries = caller.read([given["entry_id"]])
    if not entries:
        raise DataError(f"no entry {quote(given['entry_id'])}; name one that a search showed")
    found = _diary_entry(entries[0])
    if given.get("expand_relations"):
        items = [{**one, "depth": 1, "parentRelationId": None} for one in _relations(entries[0])]
        found["relations"] = {"requestedDepth": given.get("depth", 1), "maxDepth": FARTHEST, "items": items}
    return found


def entries_list(caller: Caller, given: Arguments) -> Json:
    """Entries of a diary, newest first; those of given ids count as opened."""
    filters = passing(vault=given["diary_id"], tags=given.get("tags") or None, type=given.get("entry_type"))
    if given.get("exclude_tags"):
        filters &= Filters.of({"tags": {"none": list(given["exclude_tags"])}})
    if given.get("ids"):
        entries = [entry for entry in caller.read(given["ids"]) if not filters.failed(entry)]
    else:
        entries = caller.listed(filters)
    limit, offset = caller.limit(given, 20) or 20, max(0, int(given.get("offset") or 0))
    items = list(map(_diary_entry, entries[offset : offset + limit]))
    return {"items": items, "total": len(entries), "limit": limit, "offset": offset}


def _diary_entry(entry: Entry) -> dict[str, Json]:
    """What a vault does not have is what the program writes for a new entry."""
    said = own_words(entry, FORMS["diary_entry"])
    return said | {
        "injectionRisk": bool(said["injectionRisk"]),
        "importance": 5 if entry.importance is None else entry.importance,
        "accessCount": entry.access_count or 0,
        "entryType": entry.type if entry.type in TYPES else "semantic",
        "updatedAt": said["updatedAt"] or said["createdAt"],
    }


def relations_list(caller: Caller, given: Arguments) -> Json:
    """Relations that begin or end at an entry, by their kind, their status and their direction."""
    ends = {"as_source": ["sourceId"], "as_target": ["targetId"]}.get(given.get("direction") or "")
    wanted = {name: given[name] for name in ("relation", "status") if given.get(name)}
    found = [
        one
        for entry in caller.listed(EVERYTHING)
        for one in _relations(entry)
        if given["entry_id"] in [one[end] for end in ends or ("sourceId", "targetId")]
        and wanted.items() <= one.items()
    ]
    limit = caller.limit(given, 20)
    return {"items": found[:limit], "total": len(found), "limit": limit, "offset": 0}


def diaries_list(caller: Caller, given: Arguments) -> dict[str, list[Json]]:
    """The diaries in which entries lie; who made them, a vault does not know."""
    diaries: dict[str, list[Entry]] = {}
    for entry in caller.listed(passing(vault=given.get("diary_id"))):
        diaries.setdefault(entry.vault, []).append(entry)
    items = []
    for id_, entries in sorted(diaries.items()):
        times = [entry.created_at for entry in entries if entry.created_at is not None]
        one = {"id": id_, "teamId": entries[0].tenant, "name": entries[0].project or id_}
        one |= {"visibility": entries[0].visibility or "private", **FORMS["diary"]}
        items.append(one | {f"{name}At": format_time(end(times, default=None)) for name, end in ENDS})
    return {"items": items}


def diaries_get(caller: Caller, given: Arguments) -> Json:
    """One diary."""
    if not (found := diaries_list(caller, given)["items"]):
        raise DataError(f"no diary {quote(given['diary_id'])}; name one of diaries_list")
    return found[0]


def diary_tags(caller: Caller, given: Arguments) -> Json:
    """The tags of a diary with how many entries have them, most first."""
    entries = caller.listed(passing(vault=given["diary_id"], type=given.get("entry_types")))
    counts = Counter(tag for entry in entries for tag in entry.tags if tag.startswith(given.get("prefix") or ""))
    rows = sorted((-count, tag) for tag, count in counts.items() if count >= (given.get("min_count") or 1))
    return {"tags": [{"tag": tag, "count": -count} for count, tag in rows], "total": len(rows)}


def _relations(entry: Entry) -> Iterator[dict[str, object]]:
    made = format_time(entry.created_at)
    for place, relation in enumerate(entry.relations):
        yield {
            "id": f"{entry.id}:{place}",
            "sourceId": entry.id,
            "targetId": relation.target,
            "relation": relation.type,
            "status": relation.status or "accepted",
            **FORMS["diary_relation"],
            "similarity": relation.strength,
            "createdAt": made,
            "updatedAt": made,
        }


def cortex_search(caller: Caller, given: Arguments) -> Json:
    """Memories with the layers that are asked for; `min_score` is accepted and not used, as in the program."""
    filters = EVERYTHING if given.get("scope") is None else below(given["scope"])
    return _layered(caller, given, filters, given.get("return_layers") or ["L0"])


def cortex_recall(caller: Caller, given: Arguments) -> Json:
    """Memories with abstract and content, in sessions unless a scope says otherwise."""
    return _layered(caller, given, below(given.get("scope") or SESSION), ["L0", "L2"])


def cortex_ls(caller: Caller, given: Arguments) -> Json:
    """What lies in a directory: files, and directories with how much lies in each."""
    uri, below = (given.get("uri") or SESSION).rstrip("/"), dict[str, list[Entry]]()
    for entry in caller.listed(Filters.of({"uri": {"prefix": f"{uri}/"}})):
        below.setdefault(entry.uri[len(uri) + 1 :].partition("/")[0], []).append(entry)
    rows = []
    for name, entries in sorted(below.items()):
        parts = {entry.uri[len(uri) + len(name) + 2 :].partition("/")[0] for entry in entries} - {""}
        row = {"name": name, "uri": f"{uri}/{name}", "is_directory": bool(parts) or not entries[0].text}
        asked = given.get("include_abstracts") and not row["is_directory"]
        row |= {"size": len(parts) if row["is_directory"] else None, "abstract_text": None}
        rows.append(row | ({"abstract_text": _home(caller, entries[0]).l0 or None} if asked else {}))
    return {"success": True, "uri": uri, "entries": rows, "total": len(rows)}


def cortex_read(depth: str, caller: Caller, given: Arguments) -> Json:
    """One layer of the memory at a URI; reading its overview or content counts as opening it."""
    layer, at = DEPTHS[depth], given["uri"]  # or an id where a memory has no URI
    entry = next(iter(caller.listed(passing(uri=at), 1) or caller.read([at], opened=False)), None)
    places = [] if entry is None else [entry, _home(caller, entry)]
    texts = (content(one) if layer == "L2" else getattr(one, layer.lower()) for one in places)
    if entry is None or not (text := next(filter(None, texts), "")):
        raise DataError(f"no {depth} at {quote(given['uri'])}; use a URI that a search showed")
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
        kept = f"{SESSION}{slash}{rest}" if dimension in FORMS["cortex_moved"] else SESSION
        uri = scope if dimension in DIMENSIONS else kept
    return Filters.of({"uri": {"prefix": uri}})


def _layered(caller: Caller, given: Arguments, filters: Filters, layers: Sequence[str]) -> dict[str, object]:
    rows = []
    for hit in caller.search(given, filters, 10).result.hits:
        entry = hit.entry
        home = entry if entry.l0 or entry.l1 else _home(caller, entry)
        row = {"uri": uri_or_id(entry), "score": hit.score, "snippet": home.l0 if "L0" in layers else ""}
        row["overview"] = (home.l1 or None) if "L1" in layers else None
        row["content"] = (content(entry) or None) if "L2" in layers else None
        rows.append(row | {"layers": list(layers)})
    return {"success": True, "query": given["query"], "results": rows, "total": len(rows)}


def _home(caller: Caller, entry: Entry) -> Entry:
    """The directory whose abstract and overview stand for a memory; the memory itself where there is none."""
    home = directory_of(entry.uri)
    entries = caller.listed(passing(uri=home), 1) if home and home != entry.uri else []
    return entries[0] if entries else entry


MIMICS: Mapping[str, Face] = {
    "echovault": face_of("echovault", memory_search, memory_context),
    "cortex_mem": face_of(
        "cortex_mem", cortex_search, cortex_recall, cortex_ls, *(partial(cortex_read, depth) for depth in DEPTHS)
    ),
    "soleri": soleri("soleri"),
    "moltnet": face_of(
        "moltnet",
        *(entries_search, entries_get, entries_list, diaries_list, diaries_get, diary_tags, relations_list),
        fault=lambda message, _: {"error": message},
    ),
    "spec_kit": SPEC_KIT,
}
"""The memory systems whose place a server can take; Soleri's tools have the name of an agent: `soleri:NAME`."""


def find_face(text: str | None) -> Face:
    """Our own face, or that of a system; ConfigError for one that there is not."""
    if text is None:
        return face_of("steelyard", search, get, feedback)
    name, _, agent = text.partition(":")
    if name == "soleri" and AGENT.fullmatch(agent):
        return soleri(agent)
    if text not in MIMICS:
        raise ConfigError(f"unknown memory system {quote(text)}{nearest(name, MIMICS)}; only soleri takes :AGENT")
    return MIMICS[text]
