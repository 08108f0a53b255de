"""What is inferred on sessions that no rule was written on, against a reader's judgement of each.

`strangers/sessions.txt` was written after the rules and before they were run on it; its head says how it reads.
"""

import hashlib
import json
import re
import uuid
from pathlib import Path

import pytest
from written_set import write_set

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


def with_ids(text):
    return NAMED.sub(lambda found: ENTRIES[found[1]]["id"][: int(found[2]) if found[2] else None], text)


def sessions():
    """Blocks of (mark, rest) lines."""
    for block in re.split(r"\n\s*\n", (HERE / "sessions.txt").read_text()):
        lines = [(line[0], line[2:]) for line in block.splitlines() if line and line[0] != "#"]
        if lines:
            yield lines


def recorded(lines, number):
    """A session as Claude Code records it, and for each of its searches the entries that were used."""
    found, truth, tool = [], [], 0
    for at, (mark, rest) in enumerate(lines):
        stamp = SECOND.format(day=1 + number // 8, hour=8 + number % 8, minute=at, second=0)
        base = {"sessionId": f"session-{number}", "timestamp": stamp}
        rest = with_ids(rest)
        if mark == "?":
            found.append({**base, "type": "user", "message": {"role": "user", "content": rest}})
        elif mark == ":":
            content = [{"type": "text", "text": rest}]
            found.append({**base, "type": "assistant", "message": {"content": content}})
        elif mark == "=":
            truth.append({ENTRIES[key]["id"] for key in rest.split()})
        else:
            tool += 1
            key = f"toolu_{number}_{tool}"
            name, args, answer = "mcp__echovault__memory_search", {}, "ok"
            if mark == ">":
                query, _, keys = rest.partition(" | ")
                args = {"query": query}
                hits = [ENTRIES[one] for one in keys.split()]
                answer = json.dumps(
                    [{"id": e["id"], "title": e["title"], "what": e["text"], "score": 0.5} for e in hits]
                )
            else:
                name, _, text = rest.partition(" ")
                args = json.loads(text)
            call = {"type": "tool_use", "id": key, "name": name, "input": args}
            found.append({**base, "type": "assistant", "message": {"content": [call]}})
            result = {"type": "tool_result", "tool_use_id": key, "content": answer}
            found.append({**base, "type": "user", "message": {"content": [result]}})
    return found, truth


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Pairs of what was inferred and what was judged, a search each, in the order of the file."""
    folder = tmp_path_factory.mktemp("strangers")
    data = write_set(folder / "data", [*ENTRIES.values()], ["bread"], system="echovault")
    truths, logs = [], folder / "logs"
    logs.mkdir()
    for number, lines in enumerate(sessions()):
        own, truth = recorded(lines, number)
        (logs / f"{number:03}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in own))
        truths += truth
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        found = gather(load(data), f"transcripts:{logs}")
    lines = [line for line in map(json.loads, found.lines) if "hits" in line]
    inferred = [
        {act["object_id"]: act["action_name"] for act in line["actions"] if act.get("object_id")} for line in lines
    ]
    assert len(inferred) == len(truths) == found.record["calls"]
    return list(zip(inferred, truths, strict=True))


def test_what_is_inferred_as_used_was_used(judged):
    acts = [(name, kind, truth) for own, truth in judged for name, kind in own.items()]
    right = sum(name in truth for name, _, truth in acts)
    recalled = sum(len(truth & set(own)) for own, truth in judged)
    used = sum(len(truth) for _, truth in judged)
    print(f"{len(acts)} acts, precision {right / len(acts):.3f}, recall {recalled / used:.3f} of {used}")
    assert len(acts) >= 100
    assert right / len(acts) >= 0.9
    assert recalled / used >= 0.85
