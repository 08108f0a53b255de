"""What is inferred on sessions that no rule was written on, against a reader's judgement of each.

`strangers/sessions.txt` was written after the rules and before they were run on it; its head says how it reads.
"""

import hashlib
import json
import re
import uuid
from pathlib import Path

import pytest
from shared import called, told, write_lines, write_set

from steelyard_eval.datasets import load
from steelyard_eval.extensions.usage.gather import gather

HERE = Path(__file__).with_name("strangers")
NAMED = re.compile(r"\{(e\d\d)(?::(\d+))?\}")
SECOND = "2026-07-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z"


def memory():
    """The entries by their keys in the file, with ids as EchoVault makes them."""
    rows = [json.loads(line) for line in (HERE / "memory.jsonl").read_text().splitlines()]
    ids = {
        row["key"]: str(uuid.UUID(hashlib.sha256(row["key"].encode()).hexdigest()[:32], version=4)) for row in rows
    }
    return {row.pop("key"): {**row, "id": ids[key]} for row in rows if (key := row["key"])}


ENTRIES = memory()


def sessions():
    """Blocks of (mark, rest) lines."""
    for block in re.split(r"\n\s*\n", (HERE / "sessions.txt").read_text()):
        lines = [(line[0], line[2:]) for line in block.splitlines() if line and line[0] != "#"]
        if lines:
            yield lines


def recorded(lines, number):
    """A session as Claude Code records it, and for each of its searches the entries that were used."""
    events, truth = [], []
    for at, (mark, rest) in enumerate(lines):
        stamp = SECOND.format(day=1 + number // 8, hour=8 + number % 8, minute=at, second=0)
        base = {"sessionId": f"session-{number}", "timestamp": stamp}
        rest = NAMED.sub(lambda found: ENTRIES[found[1]]["id"][: int(found[2]) if found[2] else None], rest)
        if mark == "?":
            events.append(told(base, "user", rest))
        elif mark == ":":
            events.append(told(base, "assistant", [{"type": "text", "text": rest}]))
        elif mark == "=":
            truth.append({ENTRIES[key]["id"] for key in rest.split()})
        elif mark == ">":
            query, _, keys = rest.partition(" | ")
            hits = [ENTRIES[one] for one in keys.split()]
            answer = [{"id": e["id"], "title": e["title"], "what": e["text"], "score": 0.5} for e in hits]
            ask = "mcp__echovault__memory_search", {"query": query}, json.dumps(answer)
            events += called(base, f"toolu_{number}_{at}", *ask)
        else:
            name, _, text = rest.partition(" ")
            events += called(base, f"toolu_{number}_{at}", name, json.loads(text), "ok")
    return events, truth


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Pairs of what was inferred and what was judged, a search each, in the order of the file."""
    folder = tmp_path_factory.mktemp("strangers")
    data = write_set(folder / "data", [*ENTRIES.values()], ["bread"], system="echovault")
    truths, logs = [], folder / "logs"
    for number, lines in enumerate(sessions()):
        own, truth = recorded(lines, number)
        write_lines(logs / f"{number:03}.jsonl", own)
        truths += truth
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        found = gather(load(data), f"transcripts:{logs}")
    lines = [line for line in map(json.loads, found.lines) if "hits" in line]
    inferred = [{act.get("object_id") for act in line["actions"]} - {None} for line in lines]
    assert len(inferred) == len(truths) == found.record["calls"]
    return list(zip(inferred, truths, strict=True))


def test_what_is_inferred_as_used_was_used(judged):
    acts, used = (sum(map(len, own)) for own in zip(*judged, strict=True))
    right = sum(len(inferred & truth) for inferred, truth in judged)
    print(f"{acts} acts, precision {right / acts:.3f}, recall {right / used:.3f} of {used}")
    assert acts >= 100
    assert right / acts >= 0.9
    assert right / used >= 0.85
