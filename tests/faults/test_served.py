"""A server that is asked nonsense, by many at once, by who may not, and killed: it stays, and loses nothing."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="pip install '.[serve]'")


from steelyard_eval.datasets import load
from steelyard_eval.vaults import index_dataset

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-of-24-characters"  # noqa: S105 -- of a server of this test
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
QUERY = "how do we rotate signing keys"


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "memory.db"
    index_dataset(load(ROOT / "qrels" / "starter"), str(path), "none")
    return str(path)


class Raw:
    """A server over pipes, spoken to byte by byte."""

    def __init__(self, vault, *words):
        command = [sys.executable, "-m", "steelyard_eval", "serve", vault, "--system", "bm25", *map(str, words)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self.number = 0
        self.ask("initialize", HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        """The answer to one request; others are passed over."""
        self.number += 1
        name = f"own {self.number}"
        self.send({"jsonrpc": "2.0", "id": name, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            assert line, f"the server ended with {self.process.wait()}"
            message = json.loads(line)
            if message.get("id") == name:
                return message

    def call(self, tool, **arguments):
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        return json.loads(answer["content"][0]["text"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(30) in (0, -9)
        self.process.stdout.close()


ODD = (
    *(None, True, 0, -1, 1e308, 10**30, "", " ", "\x00", "\u202e", "é" * 50, "x" * 20_000, "\ud800", "a\nb"),
    *([], {}, [[]], {"": {}}, ["x"] * 1000, {"query": QUERY}, "'; DROP TABLE entries;--", "../../etc/passwd"),
)
TOOLS = ("memory_search", "memory_get", "memory_feedback", "memory_save", "")
METHODS = (
    "tools/call",
    "tools/list",
    "initialize",
    "ping",
    "resources/list",
    "notifications/cancelled",
    "x/y",
    "",
)


def nonsense(draw):
    """A line that no client should send."""
    names = ("query", "limit", "filters", "tags", "mode", "ids", "query_id", "id", "action", "odd")
    arguments = {draw.choice(names): draw.choice(ODD) for _ in range(draw.randrange(4))}
    params = draw.choice([{"name": draw.choice(TOOLS), "arguments": arguments}, draw.choice(ODD)])
    message = {"jsonrpc": "2.0", "id": draw.randrange(10**6), "method": draw.choice(METHODS), "params": params}
    message |= {draw.choice(tuple(message)): draw.choice(ODD)} if draw.random() < 0.3 else {}
    line = json.dumps([message] if draw.random() < 0.05 else message).encode()
    kind = draw.random()
    if kind < 0.2:
        return line[: draw.randrange(len(line))]
    if kind < 0.4:
        spot = draw.randrange(len(line))
        return line[:spot] + draw.randbytes(draw.randrange(1, 5)).replace(b"\n", b"") + line[spot + 1 :]
    if kind < 0.43:
        return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b"[" * 2_000 + b"]" * 2_000 + b"}"
    return line


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_malformed_requests_never_end_the_server(vault, tmp_path, count):
    draw = random.Random(count)  # noqa: S311 -- nonsense, no secrets
    with Raw(vault, "--log", tmp_path / "log.jsonl") as server:
        for number in range(1, count + 1):
            server.send(nonsense(draw))
            if number % 50 == 0:
                assert server.call("memory_search", query=QUERY, limit=2)["hits"]
        server.send(b"x" * 5_000_000)
        assert server.call("memory_search", query=QUERY, limit=2)["hits"]
    for line in (tmp_path / "log.jsonl").read_bytes().splitlines():
        json.loads(line)


def test_what_was_acknowledged_is_in_the_log_when_the_server_is_killed(vault, tmp_path):
    """SIGKILL after each of some acknowledgements; tests/faults/kill.py does so 300 times."""
    log = tmp_path / "log.jsonl"
    for turn in range(3):
        with Raw(vault, "--log", log) as server:
            found = server.call("memory_search", query=f"{QUERY} {turn}", limit=2)
            entry = found["hits"][0]["id"]
            assert server.call("memory_feedback", query_id=found["query_id"], id=entry, action="used")["recorded"]
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        acts = [one for one in lines if one.get("query_id") == found["query_id"] and "actions" in one]
        assert [act["object_id"] for one in acts for act in one["actions"]] == [entry]
