"""No secret reaches a log, wherever in a transcript it stands and whatever is kept.

Which texts are secrets is tested in extensions/test_secret_texts.py.
"""

import json

import pytest
from shared import called, told, write_lines, write_set

from steelyard_eval.datasets import load
from steelyard_eval.extensions.usage.gather import gather

WHEN = "2026-07-22T09:00:00Z"
SECRETS = (
    f"ghp_{'Zk3q' * 9}",
    f"sk-ant-api03-{'Qx7_' * 20}",
    f"-----BEGIN PRIVATE KEY-----\n{'MIIEvQ/x' * 8}",
    "Authorization: Bearer 7fG-kq2LmZ0x9vB4nT6yR8wPcD1sHj",
    "postgres://app:papayafruit@db.internal:5432/app",
    "password=quinoafruit",
    "the password is quinoafruit",
)


def transcript(secret, at):
    """A session with a secret in every field that a stranger may fill."""
    base = {"sessionId": f"{at} {secret}", "timestamp": WHEN, "cwd": f"/home/{secret}", "gitBranch": secret}
    hits = [
        {"id": "m1", "title": secret, "what": secret, "score": 0.5},
        {"id": secret, "title": "x", "score": 0.4},
    ]
    calls = [
        ("mcp__echovault__memory_search", {"query": f"connect with {secret}"}, hits),
        ("mcp__echovault__memory_search", {"query": "plain", "project": secret}, hits),
        (f"mcp__{secret}__memory_search", {"query": "again"}, hits),
        ("Bash", {"command": f"export X='{secret}'"}, secret),
        ("Write", {"file_path": f"/x/{secret}", "content": f"m1 {secret}"}, secret),
    ]
    yield told(base, "user", f"use {secret}")
    for number, (name, args, answer) in enumerate(calls):
        said = {"type": "text", "text": secret}
        yield from called(base, f"t{at}-{number}-{secret}", name, args, json.dumps(answer), said)


def records(kind, secret, at):
    """The same for exports: OTLP's attributes, UBI's fields."""
    if kind == "transcripts":
        return list(transcript(secret, at))
    if kind == "ubi":
        asked = {"query_id": f"{at}{secret}", "user_query": secret, "client_id": secret, "application": secret}
        return [{**asked, "timestamp": WHEN, "query_response_hit_ids": ["m1", secret]}]
    has = {
        "operation.name": "search_memory",
        "memory.query.text": secret,
        "memory.records": json.dumps([{"id": "m1", "score": 0.5, "content": secret}, {"id": secret}]),
        "memory.store.id": secret,
        "conversation.id": f"{at}{secret}",
    }
    span = {"name": secret, "context": {"trace_id": f"{at}{secret}", "span_id": secret}}
    times = {"start_time": WHEN, "end_time": WHEN.replace("00Z", "01Z")}
    return [{**span, **times, "attributes": {f"gen_ai.{name}": value for name, value in has.items()}}]


@pytest.mark.parametrize("kind", ["transcripts", "otel", "ubi"])
@pytest.mark.parametrize("keep", [False, True])
def test_no_secret_is_written(tmp_path, monkeypatch, kind, keep):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    small = load(write_set(tmp_path / "small", ["Rotate them."], ["how do keys rotate"], "q1 0 m1 1\n"))
    lines = [record for at, secret in enumerate(SECRETS) for record in records(kind, secret, at)]
    path = write_lines(tmp_path / "one.jsonl", lines)
    found = gather(small, f"{kind}:{path}", keep_queries=keep)
    assert found.record["searches"] >= len(SECRETS)  # they were read
    found.write()
    written = "".join([*found.lines, found.path.read_text(), str(found), json.dumps(found.record)])
    # as they are, or as JSON writes them
    assert [secret for secret in SECRETS if secret in written or json.dumps(secret)[1:-1] in written] == []
