"""Codex: a rollout of JSON lines a session, each a type with its payload.

Fields by the format's published descriptions (rollouts of late 2025 to mid 2026); none was at hand to try it on.
Calls of MCP servers stand as `function_call` with `function_call_output`, and as the event `mcp_tool_call_end`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steelyard_eval.common.times import seconds
from steelyard_eval.extensions.usage.records import Record, loaded, text_of
from steelyard_eval.extensions.usage.session import AgentSaid, Event, PersonAsked
from steelyard_eval.extensions.usage.tools import Calls

CALLS = ("function_call", "custom_tool_call", "local_shell_call")
ANSWERS = ("function_call_output", "custom_tool_call_output")


def matches(record: Record) -> bool:
    """Whether a line is of such a session."""
    return isinstance(record.get("payload"), dict) and isinstance(record.get("type"), str)


def thread(record: Record) -> str:
    """A rollout has one agent."""
    return ""


def events(records: Iterable[Record], calls: Calls) -> Iterator[Event]:
    """The events of the agent."""
    for record in records:
        payload = record.get("payload")
        if isinstance(payload, dict):
            yield from _event(str(record.get("type")), payload, calls, seconds(record.get("timestamp")))


def _event(kind: str, payload: Record, calls: Calls, time: float | None) -> Iterator[Event]:
    what = payload.get("type")
    key = str(payload.get("call_id") or payload.get("id") or "")
    if kind == "response_item" and what == "message":
        text = text_of(payload.get("content"))
        if payload.get("role") == "assistant":
            yield AgentSaid(text)
        elif payload.get("role") == "user" and text and not text.lstrip().startswith("<"):  # its own are tagged
            yield PersonAsked(text)
    elif kind == "response_item" and what in CALLS:
        name, space = str(payload.get("name") or "shell"), payload.get("namespace")
        arguments = payload.get("arguments", payload.get("input", payload.get("action")))
        yield from calls.made(key, f"{space}__{name}" if isinstance(space, str) else name, arguments, time)
    elif kind == "response_item" and what in ANSWERS:
        output = loaded(payload.get("output"))
        inner = output.get("content", output.get("output", output)) if isinstance(output, dict) else output
        yield from calls.answered(key, inner, time)
    elif kind == "event_msg" and what == "mcp_tool_call_end":
        yield from _ended(payload, key, calls, time)


def _ended(payload: Record, key: str, calls: Calls, time: float | None) -> Iterator[Event]:
    """A call of an MCP server that has ended; one that was already read as a function's is not read again."""
    asked, result = payload.get("invocation"), payload.get("result")
    if not isinstance(asked, dict) or not isinstance(result, dict):
        return
    name = f"{asked.get('server')}__{asked.get('tool')}"
    if calls.knows(key):
        return
    yield from calls.made(key, name, asked.get("arguments"), time)
    answer = result.get("Ok")
    failed = not isinstance(answer, dict) or answer.get("isError") is True
    yield from calls.answered(key, answer, time, failed)
