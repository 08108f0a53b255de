"""A server that is asked nonsense, by many at once, by who may not, and killed: it stays, and loses nothing."""

import asyncio
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import product

import pytest
from tests.unit.shared import ROOT

pytest.importorskip("mcp", reason="pip install '.[serve]'")

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from served import HELLO, Asking, lacking
from small import ATTACKS

from steelyard_eval.datasets import load
from steelyard_eval.vaults import index_dataset

TOKEN = "a-token-of-24-characters"  # noqa: S105 -- of a server of this test
QUERY = "how do we rotate signing keys"


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "memory.db"
    index_dataset(load(ROOT / "qrels" / "starter"), str(path), "none")
    return str(path)


class Raw:
    """A server over pipes, and a client that passes over answers to others' requests."""

    def __init__(self, vault, *words):
        command = [sys.executable, "-m", "steelyard_eval", "serve", vault, "--system", "bm25", *map(str, words)]
        own = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "bufsize": 0}
        self.process = subprocess.Popen(command, **own)
        self.back = os.fdopen(os.dup(self.process.stdout.fileno()), "rb")
        self.client = Asking(self.process.stdin, self.back)
        self.client.number = 10**7  # beyond the ids of nonsense

    def send(self, line):
        self.process.stdin.write(line + b"\n")

    def call(self, tool, **arguments):
        answer = self.client.answer(self.client.call(tool, **arguments))
        assert answer, f"the server ended with {self.process.wait()}"
        return json.loads(answer["content"][0]["text"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(30) in (0, -9)
        self.process.stdout.close()
        self.back.close()


NONSENSE = ATTACKS["nonsense"]
ODD = (*NONSENSE["values"], "é" * 50, "x" * 20_000, ["x"] * 1000)


def nonsense(draw):
    arguments = {draw.choice(NONSENSE["arguments"]): draw.choice(ODD) for _ in range(draw.randrange(4))}
    params = draw.choice([{"name": draw.choice(NONSENSE["tools"]), "arguments": arguments}, draw.choice(ODD)])
    method = draw.choice(NONSENSE["methods"])
    message = {"jsonrpc": "2.0", "id": draw.randrange(10**6), "method": method, "params": params}
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


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_malformed_requests_never_end_the_server(vault, tmp_path, count):
    draw = random.Random(count)  # noqa: S311 -- nonsense, no secrets
    with Raw(vault, "--log", tmp_path / "log.jsonl") as server:
        for number in range(1, count + 1):
            server.send(nonsense(draw))
            if number % 50 == 0:
                assert server.call("memory_search", query=QUERY, limit=2)["hits"]
        server.send(b"x" * 5_000_000)  # more than a line may have
        assert server.call("memory_search", query=QUERY, limit=2)["hits"]
    for line in (tmp_path / "log.jsonl").read_bytes().splitlines():
        json.loads(line)


def test_what_was_acknowledged_is_in_the_log_when_the_server_is_killed(vault, tmp_path):
    """SIGKILL after an acknowledgement; `make campaign` does so again and again."""
    log = tmp_path / "log.jsonl"
    with Raw(vault, "--log", log) as server:
        client = server.client
        client.acted(*client.found(client.answer(client.call("memory_search", query=QUERY))))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    assert client.acts
    assert lacking(log, client.lists, client.acts) == ([], 0)


@pytest.fixture(scope="module")
def over_pipes(vault):
    """One server that stays through all of them."""
    with Raw(vault) as server:
        yield server


LONG, DEEP = '"' + "x" * 2**23 + '"', "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("value", "refused"),
    [('"\\ud800 keys"', False), ("9" * 5000, True), (DEEP, True), (LONG, True)],
    ids=["surrogate", "number", "deep", "long"],
)
def test_a_request_that_cannot_be_read_has_an_answer(over_pipes, value, refused):
    arguments = f'{{"name": "memory_search", "arguments": {{"query": {value}}}}}'
    over_pipes.send(f'{{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {arguments}}}'.encode())
    answer = json.loads(over_pipes.back.readline())
    assert (answer["id"], "error" in answer) == (77, refused)


@contextmanager
def running(vault, folder, *program):
    """A server over HTTP, and its port; its log lies in the folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    command = [sys.executable, *program, "serve", vault, "--system", "bm25", "--http", str(number)]
    command += ["--log", str(folder / "log.jsonl"), "--json"]
    environ = {**os.environ, "STEELYARD_SERVE_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True) as process:
        told = json.loads(process.stdout.readline() + "".join(iter(process.stdout.readline, "}\n")) + "}")
        assert told == {"address": f"http://127.0.0.1:{number}/mcp", "token": TOKEN}
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", number)) == 0:
                    break
            time.sleep(0.05)
        yield number
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)


@pytest.fixture(scope="module")
def port(vault, tmp_path_factory):
    """The port of a server over HTTP; its log lies beside."""
    folder = tmp_path_factory.mktemp("http")
    with running(vault, folder, "-m", "steelyard_eval") as number:
        yield number, folder / "log.jsonl"


@pytest.fixture(scope="module")
def hasty(vault, tmp_path_factory):
    """The port of a server that waits for nobody long, and takes few connections."""
    code = (
        "from steelyard_eval.cli.main import main; from steelyard_eval.extensions.serve import server; "
        "server.IDLE, server.REQUEST_SECONDS, server.MOST_AT_ONCE = 1.0, 0.3, 8; main()"
    )
    with running(vault, tmp_path_factory.mktemp("hasty"), "-c", code) as number:
        yield number


def requested(number, method="POST", path="/mcp", body=b"{}", **headers):
    """The status, the headers and the body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", number, timeout=30)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


GET = b"GET /mcp HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize("begun", [b"", GET, GET + b"\r\n"])
def test_who_asks_nothing_is_not_waited_for(hasty, begun):
    """Nor who begins to ask, also after an answer; then there is room for others again."""
    with ExitStack() as stack:
        connect = partial(socket.create_connection, ("127.0.0.1", hasty), timeout=20)
        connections = [stack.enter_context(connect()) for _ in range(8)]
        for one in connections:
            one.sendall(begun)
        for one in connections:
            with suppress(ConnectionError):
                while one.recv(65536):
                    one.sendall(b"x")
    assert requested(hasty)[0] == 401


def test_a_session_ends_when_nothing_is_asked(hasty):
    """Its id is then unknown: 404, as the protocol has it."""

    def posted(method, params, **more):
        kinds = {"content_type": "application/json", "accept": "application/json", **more}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return requested(hasty, body=body, authorization=f"Bearer {TOKEN}", **kinds)

    status, named, _ = posted("initialize", HELLO)
    before = posted("tools/list", {}, mcp_session_id=named["mcp-session-id"])[0]
    time.sleep(1.5)  # IDLE of this server is one second
    after = posted("tools/list", {}, mcp_session_id=named["mcp-session-id"])[0]
    assert (status, before, after) == (200, 200, 404)


def test_who_may_not_gets_a_status_and_nothing_else(port):
    """Of any path and method; the rules themselves are tested in tests/unit/vaults/test_serve.py."""
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
    elsewhere = {"authorization": f"Bearer {TOKEN}", "origin": "https://example.com"}
    for method, path in product(
        ("POST", "GET", "OPTIONS"), ("/mcp", "/", "/.well-known/oauth-protected-resource")
    ):
        for headers, refused in (({}, 401), (elsewhere, 403)):
            status, named, body = requested(port[0], method, path, hello, **headers)
            assert (status, body) == (refused, b"")
            assert {name.lower() for name in named} <= {"content-length", "date", "connection"}


RAW = (
    b"GET /mcp HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X-%d: %s\r\n" % (at, b"y" * 1000) for at in range(200)),
    *(text.encode("latin-1") for text in ATTACKS["broken requests"]),
    b"\r\n" * 5000,
)


@pytest.mark.parametrize("raw", RAW, ids=range(len(RAW)))
def test_broken_requests_have_no_answer_but_a_refusal(port, raw):
    """Also where who asked closes its half: the connection ends, and the next one is answered."""
    with socket.create_connection(("127.0.0.1", port[0]), timeout=60) as one:
        said = b""
        with suppress(ConnectionError):
            one.sendall(raw)
            with suppress(OSError):  # it is closed already
                one.shutdown(socket.SHUT_WR)
            while part := one.recv(65536):
                said += part
    assert said[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 401", b"HTTP/1.1 403")
    assert requested(port[0])[0] == 401


async def asked(number, client, queries):
    """The lists that one client is shown."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http_client:
        transport = streamable_http_client(f"http://127.0.0.1:{number}/mcp", http_client=http_client)
        async with Client(transport) as connected:
            found = []
            for query in queries:
                answer = await connected.call_tool("memory_search", {"query": f"{query} {client}", "limit": 3})
                assert not answer.is_error, answer.content[0].text
                found.append(json.loads(answer.content[0].text))
            return found


@pytest.mark.parametrize("count", [4, pytest.param(1_250, marks=pytest.mark.nightly)])
def test_eight_clients_lose_no_line(port, count):
    number, log = port
    queries = [query.text for query in load(ROOT / "qrels" / "starter").queries]
    with ThreadPoolExecutor(8) as pool:
        own = (queries * (count // len(queries) + 1))[:count]
        found = list(pool.map(lambda name: asyncio.run(asked(number, f"c{name}", own)), range(8)))
    shown = {one["query_id"]: [hit["id"] for hit in one["hits"]] for lists in found for one in lists}
    assert len(shown) == 8 * count
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    logged = {one["query_id"]: [hit["object_id"] for hit in one["hits"]] for one in lines if "user_query" in one}
    assert shown.items() <= logged.items()
