"""No secret of a planted list reaches a log, wherever in a transcript it stands and whatever is kept."""

import base64
import json
import random
import string

import pytest

from steelyard.extensions.secrets import holds_secret
from steelyard_eval.datasets import load
from steelyard_eval.extensions.usage.gather import gather

LETTERS, DIGITS = string.ascii_letters, string.digits
MAKERS = {
    "aws": lambda r: "AKIA" + text(r, string.ascii_uppercase + DIGITS, 16),
    "aws secret": lambda r: text(r, LETTERS + DIGITS + "/+", 40),
    "github": lambda r: "ghp_" + text(r, LETTERS + DIGITS, 36),
    "github fine": lambda r: "github_pat_" + text(r, LETTERS + DIGITS, 22) + "_" + text(r, LETTERS + DIGITS, 59),
    "gitlab": lambda r: "glpat-" + text(r, LETTERS + DIGITS, 20),
    "openai": lambda r: "sk-proj-" + text(r, LETTERS + DIGITS, 48),
    "anthropic": lambda r: "sk-ant-api03-" + text(r, LETTERS + DIGITS + "-_", 80),
    "stripe": lambda r: "sk_live_" + text(r, LETTERS + DIGITS, 24),
    "slack": lambda r: "xoxb-" + text(r, DIGITS, 12) + "-" + text(r, LETTERS, 24),
    "google": lambda r: "AIza" + text(r, LETTERS + DIGITS + "_-", 35),
    "jwt": lambda r: ".".join(
        ["eyJhbGciOiJIUzI1NiJ9", text(r, LETTERS + DIGITS, 60), text(r, LETTERS + DIGITS, 43)]
    ),
    "pem": lambda r: "-----BEGIN PRIVATE KEY-----\n" + text(r, LETTERS + DIGITS + "+/", 64),
    "bearer": lambda r: "Authorization: Bearer " + text(r, LETTERS + DIGITS + "-", 30),
    "basic": lambda r: "Basic " + base64.b64encode(f"ana:{text(r, LETTERS, 12)}".encode()).decode(),
    "address": lambda r: f"postgres://app:{text(r, LETTERS, 10)}@db.internal:5432/app",
    "password": lambda r: f"password={text(r, string.ascii_lowercase, 8)}",
    "spoken": lambda r: f"the password is {text(r, string.ascii_lowercase, 9)}",
    "npm": lambda r: "npm_" + text(r, LETTERS + DIGITS, 36),
    "hex": lambda r: text(r, "0123456789abcdef", 40),
    "huggingface": lambda r: "hf_" + text(r, LETTERS, 34),
}


def text(source, letters, count):
    return "".join(source.choice(letters) for _ in range(count))


def planted():
    source = random.Random(33)  # noqa: S311 -- they guard nothing
    return [make(source) for make in MAKERS.values() for _ in range(10)]


SECRETS = planted()


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"id": "m1", "title": "Keys", "text": "Rotate them."}\n')
    (folder / "queries.jsonl").write_text('{"id": "q1", "text": "how do keys rotate"}\n')
    (folder / "qrels.txt").write_text("q1 0 m1 1\n")
    (folder / "dataset.json").write_text('{"name": "small"}')
    return load(folder)


def everywhere(secret, at):
    """A session with a secret in every field that a stranger may fill."""
    base = {
        "sessionId": f"{at} {secret}",
        "timestamp": "2026-07-22T09:00:00Z",
        "cwd": f"/home/{secret}",
        "gitBranch": secret,
    }
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
    yield {**base, "type": "user", "message": {"role": "user", "content": f"use {secret}"}}
    for number, (name, args, answer) in enumerate(calls):
        key = f"t{at}-{number}-{secret}"
        call = {"type": "tool_use", "id": key, "name": name, "input": args}
        yield {**base, "type": "assistant", "message": {"content": [call, {"type": "text", "text": secret}]}}
        result = {"type": "tool_result", "tool_use_id": key, "content": json.dumps(answer)}
        yield {**base, "type": "user", "message": {"content": [result]}}


def spans(secret, at):
    """The same for exports: OTLP's attributes, UBI's fields."""
    records = json.dumps([{"id": "m1", "score": 0.5, "content": secret}, {"id": secret}])
    has = {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.query.text": secret,
        "gen_ai.memory.records": records,
    }
    has |= {"gen_ai.memory.store.id": secret, "gen_ai.conversation.id": f"{at}{secret}"}
    when = {"start_time": "2026-07-22T09:00:00Z", "end_time": "2026-07-22T09:00:01Z"}
    yield (
        "otel",
        {"name": secret, "context": {"trace_id": f"{at}{secret}", "span_id": secret}, **when, "attributes": has},
    )
    asked = {"query_id": f"{at}{secret}", "user_query": secret, "client_id": secret, "application": secret}
    yield "ubi", {**asked, "timestamp": when["start_time"], "query_response_hit_ids": ["m1", secret]}


def held(lines):
    """The planted secrets that stand in some lines, as they are or as JSON writes them."""
    found = "".join(lines)
    return [secret for secret in SECRETS if secret in found or json.dumps(secret)[1:-1] in found]


def test_two_hundred_are_planted():
    assert len(set(SECRETS)) == 200


@pytest.mark.parametrize("keep", [False, True])
def test_no_secret_of_a_transcript_is_written(small, tmp_path, keep):
    path = tmp_path / "one.jsonl"
    lines = [line for at, secret in enumerate(SECRETS) for line in everywhere(secret, at)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = gather(small, f"transcripts:{path}", keep_queries=keep)
    assert found.record["searches"] >= 200  # they were read
    assert held(found.lines) == []
    found.write()
    assert held([found.path.read_text()]) == []
    assert held([str(found), json.dumps(found.record)]) == []


@pytest.mark.parametrize("kind", ["otel", "ubi"])
@pytest.mark.parametrize("keep", [False, True])
def test_no_secret_of_an_export_is_written(small, tmp_path, kind, keep):
    path = tmp_path / "one.jsonl"
    lines = [record for at, secret in enumerate(SECRETS) for name, record in spans(secret, at) if name == kind]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = gather(small, f"{kind}:{path}", keep_queries=keep)
    assert found.record["searches"] >= 199
    assert held(found.lines) == []
    assert held([str(found), json.dumps(found.record)]) == []


@pytest.mark.parametrize(
    "text",
    [
        "how do we rotate keys",
        "retry storms need jitter in src/net/retry_policy.py",
        "what did we decide about tokens per minute on 2026-03-01",
        "Größenänderung löscht den Sitzplan",
        "secret santa list of the office",
        "password reset flow on mobile",
        "why does test_reads_v2_tables_from_parquet fail",
        "upgrade postgres 14 to 16 with pgvector 0.8.5",
        "session 12 of the locomo data set",
    ],
)
def test_plain_questions_are_kept(text):
    assert not holds_secret(text)
