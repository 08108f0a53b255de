"""Made transcripts: a simulated log as sessions of an agent, as Claude Code writes them, marked as simulated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.base.files import write_texts
from steelyard.memory.entry import Entry
from steelyard.memory.query import Filters
from steelyard_eval.datasets import Dataset
from steelyard_eval.extensions.usage.transcripts import SIMULATED
from steelyard_eval.learn.top10 import PLACES

MARK = {"steelyard": SIMULATED}
"""In every line."""
OPENED = ("opened", "clicked")
Line = Mapping[str, Any]


def write_transcripts(
    dataset: Dataset, lines: Iterable[str], folder: str | Path, sessions: int = 50, server: str = "echovault"
) -> list[Path]:
    """Write the impressions of a log as so many sessions in a folder; returns the files.

    `server` is what the agent calls the memory's server: echovault, or steelyard where any weights rank.
    """
    tool = f"mcp__{server}__memory"
    projects = {query.id: _project(query.filters) for query in dataset.queries}
    searches = [
        {**line, "project": projects[line["query_id"]]}
        for line in map(json.loads, lines)
        if line.get("hits") and projects[line["query_id"]] is not None
    ]
    entries = {entry.id: entry for entry in dataset.entries}
    files = {
        Path(folder) / f"made-{number:03}.jsonl": "".join(
            _session([searches[row] for row in part], entries, number, tool)
        )
        for number, part in enumerate(np.array_split(np.arange(len(searches)), sessions))
        if len(part)
    }
    write_texts(files)
    return list(files)


def _project(filters: Filters) -> str | None:
    """The one project that a query asks in; empty for all of them, None for a filter that the tool has not."""
    if not filters:
        return ""
    rules = [rule for clause in filters.clauses for rule in clause]
    single = len(rules) == 1 and (rules[0].field, rules[0].test, len(rules[0].values)) == ("project", "any", 1)
    return str(rules[0].values[0]) if single else None


def _session(lines: Iterable[Line], entries: Mapping[str, Entry], number: int, tool: str) -> Iterator[str]:
    """Each impression as a question, a search with its answer, and what was done with it."""
    base = {**MARK, "sessionId": f"made-{number:03}", "isSidechain": False}
    for turn, line in enumerate(lines):
        head = {**base, "timestamp": line["timestamp"]}
        yield _written({**head, "type": "user", "message": {"role": "user", "content": "Please go on."}})
        hits = [_hit(hit, entries[hit["object_id"]]) for hit in line["hits"] if hit["object_id"] in entries]
        asked = {"query": line["user_query"], "limit": PLACES} | (
            {"project": line["project"]} if line["project"] else {}
        )
        answer = json.dumps(hits, ensure_ascii=False)
        yield from _call(head, f"made-{number}-{turn}", f"{tool}_search", asked, answer)
        for act in line.get("actions") or ():
            if (entry := entries.get(act.get("object_id", ""))) is not None:
                yield from _followed(
                    head, f"made-{number}-{turn}-{entry.id}", entry, act["action_name"], f"{tool}_get"
                )


def _followed(head: Line, key: str, entry: Entry, action: str, opens: str) -> Iterator[str]:
    if action in OPENED or not entry.title:
        yield from _call(head, key, opens, {"id": entry.id}, "No details.")
    else:
        useful = "is not relevant here" if action == "dismissed" else "says how"
        content = [{"type": "text", "text": f"\u201c{entry.title}\u201d {useful}."}]
        yield _written({**head, "type": "assistant", "message": {"role": "assistant", "content": content}})


def _call(head: Line, key: str, name: str, asked: Line, answer: str) -> Iterator[str]:
    call = {"type": "tool_use", "id": key, "name": name, "input": asked}
    yield _written({**head, "type": "assistant", "message": {"role": "assistant", "content": [call]}})
    result = {"type": "tool_result", "tool_use_id": key, "content": [{"type": "text", "text": answer}]}
    yield _written({**head, "type": "user", "message": {"role": "user", "content": [result]}})


def _hit(hit: Line, entry: Entry) -> dict[str, object]:
    score = {"score": hit["score"]} if "score" in hit else {}
    return {"id": entry.id, "title": entry.title, "what": entry.text, **score}


def _written(record: Line) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
