"""Transcripts of Claude Code: a file of JSON lines a session, with messages and the calls of tools inside them.

Fields as seen at 2.1.219: `message.content` is a text, or blocks of the types text, tool_use and tool_result.
What a subagent did has `isSidechain`, and is a session of its own. What the model only thinks is not read.

User Behavior Insights 1.3 of OpenSearch: documents of `ubi_queries` and `ubi_events`, a line each in whatever
file. The order of `query_response_hit_ids` is the order that was shown.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from steelyard.base.errors import quote
from steelyard.feedback import ACTIONS
from steelyard_eval.common.times import seconds
from steelyard_eval.datasets.logs import MOST_HITS
from steelyard_eval.extensions.endpoints.answer_form import text_in
from steelyard_eval.extensions.usage import session
from steelyard_eval.extensions.usage.session import Acted, Corpus, Event, Record, Searched, Spoken, UseSession
from steelyard_eval.extensions.usage.tool_names import FORMS, Calls

SIMULATED = "simulated"
"""What made lines have as `steelyard`: they show how learning works, and nothing about agents."""
SHOWN = ("impression", "impressions")  # Events of UBI that say what was shown, which is no act
MAX_NAMED_ACTIONS = 20  # Names of actions that are told apart in the counts of what is left out


def homes(environ: Mapping[str, str]) -> Iterator[Path]:
    """Where the program keeps its sessions."""
    yield Path(environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"


def read(files: list[Path], corpus: Corpus, system: str, faults: Counter[str]) -> Iterator[UseSession]:
    """The sessions in some files; a file of another program is counted."""
    for path in files:
        threads: dict[str, list[Record]] = {}
        others = False
        for record in session.records_of(path, faults):
            record.pop("toolUseResult", None)  # the answer once more, and larger
            if not isinstance(record.get("message"), dict) and not {"sessionId", "type"} <= record.keys():
                others = True
                continue
            name = f"{record.get('sessionId') or path.stem}{record.get('agentId') or ''}"
            key = f"{name}{bool(record.get('isSidechain'))}"
            threads.setdefault(key, []).append(record)
        if others and not threads:
            faults["files of no program that is known"] += 1
        for key, thread in threads.items():
            simulated = any(record.get("steelyard") == SIMULATED for record in thread)
            yield UseSession(key, _events(thread, Calls(system, corpus.names)), simulated)


def _events(records: Iterable[Record], calls: Calls) -> Iterator[Event]:
    for record in records:
        message = record.get("message")
        if not isinstance(message, dict):
            continue
        time, content = seconds(record.get("timestamp")), message.get("content")
        blocks = session.objects(content) if isinstance(content, list) else [{"type": "text", "text": content}]
        if record.get("type") == "assistant":
            for block in blocks:
                if block.get("type") == "text" and isinstance(text := block.get("text"), str):
                    yield Spoken(session.AGENT, text)
                elif block.get("type") == "tool_use":
                    named = str(block.get("name") or "")
                    yield from calls.made(str(block.get("id")), named, block.get("input"), time)
        elif record.get("type") == "user":
            results = [block for block in blocks if block.get("type") == "tool_result"]
            for block in results:
                failed = block.get("is_error") is True
                yield from calls.answered(str(block.get("tool_use_id")), block.get("content"), time, failed)
            asked = text_in([block for block in blocks if block.get("type") == "text"])
            if asked and not results and _is_persons(record):
                yield Spoken(session.PERSON, asked)


def _is_persons(record: Record) -> bool:
    """Whether no field of a record says that the program wrote it; `follow` looks at its text."""
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else record.get("turnOrigin")
    written = (
        any(record.get(mark) for mark in FORMS["written by programs"]) or record.get("promptSource") == "system"
    )
    return not written and kind in (None, "", "human")


def read_ubi(files: list[Path], corpus: Corpus, system: str, faults: Counter[str]) -> Iterator[UseSession]:
    """The sessions in some files, a client each; what has no place in a log is counted, by the reason in words."""
    found = (record for path in files for record in session.records_of(path, faults))
    documents = [session.dict_of(record.get("_source")) or record for record in found]
    clients: dict[str, list[str]] = {}
    events: dict[str, list[Event]] = {}
    for record in (record for record in documents if "action_name" not in record):
        hits, time = record.get("query_response_hit_ids"), seconds(record.get("timestamp"))
        if not isinstance(hits, list) or not hits:
            known = "query_id" in record
            what = (
                "queries without query_response_hit_ids" if known else "documents that are no query and no event"
            )
            faults[what] += 1
        elif time is None and record.get("timestamp") is not None:
            faults["queries with a time that cannot be read"] += 1
        else:
            key, shown_ids = _text(record, "query_id"), tuple(map(str, hits[:MOST_HITS]))
            name, engine = _text(record, "client_id"), _text(record, "application")
            events[key] = [Searched(key, time, _text(record, "user_query"), shown_ids, engine)]
            clients.setdefault(name, []).append(key)
    asked = {_text(record, "query_id") for record in documents if "action_name" not in record}
    for act in (_act(record, faults) for record in documents if "action_name" in record):
        if act is not None and act.search in events:
            events[act.search].append(act)
        elif act is not None:
            faults[f"acts of a query {'that is left out' if act.search in asked else 'that is not there'}"] += 1
    for name, own in sorted(clients.items()):
        yield UseSession(name, [event for key in own for event in events[key]])


def _act(record: Record, faults: Counter[str]) -> Acted | None:
    """An event as an act, by a name of ours, or one of UBI that stands for it; what is none is counted."""
    name = str(record["action_name"])
    action = name if name in ACTIONS else FORMS["ubi"].get(name, "")
    object_id = session.dict_of(session.dict_of(record.get("event_attributes")).get("object")).get("object_id")
    if action and object_id not in (None, ""):
        return Acted((str(object_id),), action, reported=True, search=_text(record, "query_id"))
    why = "acts that name no entry" if action else f"acts by a name that is not known ({quote(name)})"
    if name not in SHOWN:
        faults[
            why if why in faults or len(faults) < MAX_NAMED_ACTIONS else "acts by other names that are not known"
        ] += 1
    return None


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    return "" if value is None else str(value)
