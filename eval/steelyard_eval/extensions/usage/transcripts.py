"""Transcripts of Claude Code: a file of JSON lines a session, with messages and the calls of tools inside them.

Fields as seen at 2.1.219: `message.content` is a text, or blocks of the types text, tool_use and tool_result. What
a subagent did has `isSidechain`, and is a session of its own. What the model only thinks is not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from steelyard_eval.common.times import seconds
from steelyard_eval.extensions.usage.corpus import Corpus
from steelyard_eval.extensions.usage.records import Record, objects, records_of, text_of
from steelyard_eval.extensions.usage.session import AGENT, PERSON, Event, Spoken, UseSession
from steelyard_eval.extensions.usage.tools import Calls

MOST_THREADS = 1_000
"""Agents of one file that are told apart."""
SIMULATED = "simulated"
"""What made lines have as `steelyard`: they show how learning works, and nothing about agents."""
_MARKS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isSynthetic", "interruptedMessageId")
"""Fields of records that the program writes in a person's place."""


def homes(environ: Mapping[str, str]) -> Iterator[Path]:
    """Where the program keeps its sessions."""
    yield Path(environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"


def read(files: list[Path], corpus: Corpus, system: str, faults: Counter[str]) -> Iterator[UseSession]:
    """The sessions in some files; a file of another program is counted."""
    for path in files:
        threads: dict[str, list[Record]] = {}
        others = False
        for record in records_of(path, faults):
            record.pop("toolUseResult", None)  # the answer once more, and larger
            if not isinstance(record.get("message"), dict) and not {"sessionId", "type"} <= record.keys():
                others = True
                continue
            session = f"{record.get('sessionId') or path.stem}{record.get('agentId') or ''}"
            key = f"{session}{bool(record.get('isSidechain'))}"
            if key in threads or len(threads) < MOST_THREADS:
                threads.setdefault(key, []).append(record)
        if others and not threads:
            faults["files of no program that is known"] += 1
        for key, thread in threads.items():
            simulated = any(record.get("steelyard") == SIMULATED for record in thread)
            yield UseSession(key, _events(thread, Calls(system, corpus.names)), simulated)


def _events(records: Iterable[Record], calls: Calls) -> Iterator[Event]:
    """The events of one agent."""
    for record in records:
        message = record.get("message")
        if not isinstance(message, dict):
            continue
        time, content = seconds(record.get("timestamp")), message.get("content")
        blocks = objects(content) if isinstance(content, list) else [{"type": "text", "text": content}]
        if record.get("type") == "assistant":
            for block in blocks:
                if block.get("type") == "text" and isinstance(text := block.get("text"), str):
                    yield Spoken(AGENT, text)
                elif block.get("type") == "tool_use":
                    named = str(block.get("name") or "")
                    yield from calls.made(str(block.get("id")), named, block.get("input"), time)
        elif record.get("type") == "user":
            results = [block for block in blocks if block.get("type") == "tool_result"]
            for block in results:
                failed = block.get("is_error") is True
                yield from calls.answered(str(block.get("tool_use_id")), block.get("content"), time, failed)
            asked = text_of([block for block in blocks if block.get("type") == "text"])
            if asked and not results and _is_persons(record):
                yield Spoken(PERSON, asked)


def _is_persons(record: Record) -> bool:
    """Whether no field of a record says that the program wrote it; `follow` looks at its text."""
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else record.get("turnOrigin")
    written = any(record.get(mark) for mark in _MARKS) or record.get("promptSource") == "system"
    return not written and kind in (None, "", "human")
