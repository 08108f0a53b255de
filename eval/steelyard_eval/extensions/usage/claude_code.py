"""Claude Code: a file of JSON lines a session, with the messages and the calls of tools inside them.

Fields as seen at 2.1.219: `message.content` is a text, or blocks of the types text, tool_use and tool_result. What
a subagent did has `isSidechain`, and is a session of its own. What the model only thinks is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steelyard_eval.common.times import seconds
from steelyard_eval.extensions.usage.records import Record, objects, text_of
from steelyard_eval.extensions.usage.session import AgentSaid, Event, PersonAsked
from steelyard_eval.extensions.usage.tools import Calls

_MARKS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isSynthetic", "interruptedMessageId")
"""Fields of records that the program writes in a person's place."""


def matches(record: Record) -> bool:
    """Whether a line is of such a session."""
    return isinstance(record.get("message"), dict) or ("sessionId" in record and "type" in record)


def thread(record: Record) -> str:
    """Which agent of the file a line is of."""
    return f"{record.get('sessionId') or ''}{record.get('agentId') or ''}{bool(record.get('isSidechain'))}"


def events(records: Iterable[Record], calls: Calls) -> Iterator[Event]:
    """The events of one agent."""
    for record in records:
        message = record.get("message")
        if not isinstance(message, dict):
            continue
        time = seconds(record.get("timestamp"))
        content = message.get("content")
        if record.get("type") == "assistant":
            yield from _answer(content, calls, time)
        elif record.get("type") == "user":
            yield from _answered(content, calls, time)
            if _is_persons(record):
                yield from _question(content)


def _is_persons(record: Record) -> bool:
    """Whether no field of a record says that the program wrote it; `follow` looks at its text."""
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else record.get("turnOrigin")
    written = any(record.get(mark) for mark in _MARKS) or record.get("promptSource") == "system"
    return not written and kind in (None, "", "human")


def _blocks(content: object) -> list[Record]:
    """The blocks of a message, which may be a text alone."""
    return objects(content) if isinstance(content, list) else [{"type": "text", "text": content}]


def _answer(content: object, calls: Calls, time: float | None) -> Iterator[Event]:
    for block in _blocks(content):
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            yield AgentSaid(text)
        elif block.get("type") == "tool_use":
            yield from calls.made(str(block.get("id")), str(block.get("name") or ""), block.get("input"), time)


def _answered(content: object, calls: Calls, time: float | None) -> Iterator[Event]:
    for block in _blocks(content):
        if block.get("type") == "tool_result":
            failed = block.get("is_error") is True
            yield from calls.answered(str(block.get("tool_use_id")), block.get("content"), time, failed)


def _question(content: object) -> Iterator[Event]:
    blocks = _blocks(content)
    if any(block.get("type") == "tool_result" for block in blocks):
        return
    if text := text_of([block for block in blocks if block.get("type") == "text"]):
        yield PersonAsked(text)
