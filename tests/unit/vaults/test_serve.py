"""A vault as a memory server, asked by the official SDK's client; with its log."""

import asyncio
import json
import os
import shutil
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("mcp", reason="pip install '.[serve]'")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from steelyard.config.search_config import policy_of
from steelyard.feedback.log import ACTIONS
from steelyard.memory.entry import Entry
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load
from steelyard_eval.extensions.serve.caller import ServerLog
from steelyard_eval.extensions.serve.memory import Memory, Served
from steelyard_eval.extensions.serve.server import MemoryServer, TokenGate, app_of, token_of
from steelyard_eval.extensions.serve.tools import tools
from steelyard_eval.learn.interleaving import interleaving_results
from steelyard_eval.vaults import index_dataset

ROOT = Path(__file__).resolve().parents[3]
QUERY = "how do we rotate signing keys"
NOW = 1_780_000_000.0


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    """The starter set."""
    path = tmp_path_factory.mktemp("served") / "memory.db"
    index_dataset(load(ROOT / "qrels" / "starter"), str(path), "lsa")
    return str(path)


@pytest.fixture
def own(tmp_path, vault):
    """A copy of the vault that may be changed."""
    return shutil.copy(vault, tmp_path / "memory.db")


@asynccontextmanager
async def served(path, log=None, **more):
    """The SDK's client, connected to a server in this process."""
    memory = Memory(Served(str(path), **more))
    server = MemoryServer(memory, ServerLog(str(log), lambda: NOW) if log else None)
    try:
        async with Client(server.protocol) as client:
            yield client
    finally:
        server.close()


def asked(coroutine):
    return asyncio.run(coroutine)


async def call(client, tool, **arguments):
    """The JSON of an answer."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content[0].text
    return json.loads(answer.content[0].text)


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def acts(path):
    return [
        (one["query_id"], act.get("object_id"), act["action_name"])
        for one in lines(path)
        for act in one.get("actions", ())
    ]


def run(*words):
    found = CliRunner().invoke(main, [str(word) for word in words])
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def test_the_tools_take_every_act_that_a_log_knows():
    assert tools()["memory_feedback"].schema["properties"]["action"]["enum"] == [*ACTIONS]


def test_answers_are_those_of_the_command_search_to_the_bit(vault):
    async def found():
        async with served(vault) as client:
            return await call(client, "memory_search", query=QUERY, limit=5)

    expected = run("search", vault, QUERY, "--system", "echovault", "-k", 5, "--json")["hits"]
    assert asked(found())["hits"] == expected
    assert len(expected) == 5


def test_what_is_opened_and_quoted_after_a_search_is_logged_once(vault, tmp_path):
    log = tmp_path / "log.jsonl"

    async def used():
        async with served(vault, log) as client:
            first = await call(client, "memory_search", query=QUERY, limit=3)
            ids = [hit["id"] for hit in first["hits"]]
            for _ in range(2):
                await call(client, "memory_get", ids=[ids[0], "infra-k3s", "gone"])
            second = await call(client, "memory_search", query=f'what does "{ids[1]}" mean for sessions?')
            given = {"query_id": first["query_id"], "id": ids[2], "action": "thumbs_down"}
            assert await call(client, "memory_feedback", **given) == {"recorded": True}
            refused = [
                await client.call_tool("memory_feedback", given | more)
                for more in (
                    {"query_id": "gone"},
                    {"action": "praised"},
                    {"action": "none_useful"},
                    {"id": 7},
                    {"id": "infra-k3s"},  # an entry that this list did not show
                )
            ]
            return first, second, ids, refused

    first, second, ids, refused = asked(used())
    assert acts(log) == [
        (first["query_id"], ids[0], "opened"),
        (first["query_id"], ids[1], "cited"),
        (first["query_id"], ids[2], "thumbs_down"),
    ]
    logged = [one for one in lines(log) if "user_query" in one]
    assert [one["query_id"] for one in logged] == [first["query_id"], second["query_id"]]
    assert [hit["object_id"] for hit in logged[0]["hits"]] == ids
    assert all(one.is_error for one in refused)


def test_feedback_on_the_list_of_another_client_is_refused(vault, tmp_path):
    log = tmp_path / "log.jsonl"

    async def used():
        async with served(vault, log) as client:
            return await call(client, "memory_search", query=QUERY, limit=3)

    found = asked(used())
    rows = log.read_text().replace('"client_id":"mcp"', '"client_id":"somebody"')
    assert rows != log.read_text()
    log.write_text(rows)
    given = {"query_id": found["query_id"], "id": found["hits"][0]["id"], "action": "used"}

    async def acted():
        async with served(vault, log) as client:
            return await client.call_tool("memory_feedback", given)

    assert asked(acted()).is_error
    assert acts(log) == []


def test_a_query_with_a_secret_is_logged_without_its_text(vault, tmp_path):
    log = tmp_path / "log.jsonl"

    async def used():
        async with served(vault, log) as client:
            found = await call(client, "memory_search", query="rotate keys with REDIS_PASSWORD=kumquat9", limit=3)
            given = {"query_id": found["query_id"], "id": found["hits"][0]["id"], "action": "used"}
            await call(client, "memory_feedback", **given)

    asked(used())
    assert "kumquat9" not in log.read_text()
    assert len(acts(log)) == 1
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_session_ends_when_nothing_is_asked(vault, monkeypatch):
    """Its id is then unknown: 404, as the protocol has it."""
    monkeypatch.setattr("steelyard_eval.extensions.serve.server.IDLE", 0.3)
    server = MemoryServer(Memory(Served(vault)))
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}

    async def posted(app, method, params, session=""):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers = {"content-type": "application/json", "accept": "application/json", "host": "127.0.0.1:1"}
        headers |= {"mcp-session-id": session} if session else {}
        coded = [(name.encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": coded}
        sent, waiting = [], [{"type": "http.request", "body": body}]

        async def receive():
            return waiting.pop() if waiting else await asyncio.sleep(60)

        async def send(message):
            sent.append(message)

        await app(scope | {"http_version": "1.1", "scheme": "http", "client": ("127.0.0.1", 2)}, receive, send)
        return sent[0]["status"], dict(sent[0]["headers"]).get(b"mcp-session-id", b"").decode()

    async def used():
        app = app_of(server)
        async with app.router.lifespan_context(app):
            status, session = await posted(app, "initialize", begin)
            first = await posted(app, "tools/list", {}, session)
            await asyncio.sleep(1)
            return status, session, first[0], (await posted(app, "tools/list", {}, session))[0]

    try:
        status, session, before, after = asked(used())
    finally:
        server.close()
    assert (status, before, after) == (200, 200, 404) and session


def test_words_are_not_taken_for_ids(tmp_path):
    """An id of letters alone, or a short one, may be a word of the next question."""
    path = tmp_path / "memory.db"
    with Vault(path, create=True) as made:
        made.upsert(
            [Entry(name, title="keys") for name in ("rotation", "k8s", "key-rotation", "sub/key-rotation.md")]
        )
    log = tmp_path / "log.jsonl"

    async def used():
        async with served(path, log, by="bm25") as client:
            await call(client, "memory_search", query="keys")
            await call(client, "memory_search", query="rotation on k8s, see (key-rotation). sub/key-rotation.md!")

    asked(used())
    assert [act[1:] for act in acts(log)] == [("key-rotation", "cited"), ("sub/key-rotation.md", "cited")]


def test_without_a_log_nothing_is_written_and_no_feedback_offered(vault, tmp_path):
    async def used():
        async with served(vault) as client:
            found = await call(client, "memory_search", query=QUERY)
            unknown = await client.call_tool("memory_save", {"title": "x"})
            return [tool.name for tool in (await client.list_tools()).tools], found, unknown

    names, found, unknown = asked(used())
    assert names == ["memory_search", "memory_get"]
    assert "query_id" not in found
    assert unknown.is_error and "reads only" in unknown.content[0].text
    assert not list(tmp_path.iterdir())


def test_a_scope_hides_entries_from_every_tool(vault):
    async def used(scopes):
        async with served(vault, scopes=scopes) as client:
            found = await call(client, "memory_search", query="session tokens", limit=100)
            return {hit["id"]: hit["project"] for hit in found["hits"]}, await call(
                client, "memory_get", ids=["infra-k3s"]
            )

    everything, _ = asked(used(()))
    seen, read = asked(used(("project=rental-api",)))
    assert set(seen.values()) == {"rental-api"} < set(everything.values())
    assert (read["entries"], read["missing"]) == ([], ["infra-k3s"])


def test_weights_and_vault_are_read_again_and_what_is_broken_is_refused(own, tmp_path, caplog):
    weights = tmp_path / "weights.json"
    find_system("bm25").config(2).save(weights)

    async def used():
        sizes, titles = [], []
        async with served(own, by=str(weights)) as client:

            async def look():
                found = await call(client, "memory_search", query="keys")
                sizes.append(len(found["hits"]))
                titles.append(found["hits"][0]["title"] if found["hits"] else "")

            await look()
            find_system("bm25").config(4).save(weights)
            await look()
            weights.write_text("{")
            await look()
            await look()
            with Vault(own) as changed:
                changed.upsert([Entry("new", title="keys keys keys keys", text="keys")])
            await look()
            find_system("bm25").config(3).save(weights)
            await look()
            broken = tmp_path / "broken.db"
            broken.write_bytes(b"no vault" * 1000)
            broken.replace(own)
            for path in (f"{own}-wal", f"{own}-shm"):
                Path(path).unlink(missing_ok=True)
            await asyncio.gather(*(look() for _ in range(12)))  # of all threads that search
            Path(own).unlink()
            await look()
        return sizes, titles

    sizes, titles = asked(used())
    assert sizes[:6] == [2, 4, 4, 4, 4, 3]
    assert sizes[6:] == [3] * 13
    assert titles[4:] == ["keys keys keys keys"] * 15
    told = [record.getMessage() for record in caplog.records]
    assert sum("stays" in one for one in told) == len(told) >= 3


def test_two_weights_files_take_turns_and_the_log_says_which_is_preferred(own, tmp_path):
    """The client opens the first entry that the second ranking placed, so that one is preferred.

    Weights of other retrievers rank other candidates, and take turns all the same.
    """
    first, second, log = (tmp_path / name for name in ("a.json", "b.json", "log.jsonl"))
    find_system("bm25").config(6).save(first)
    find_system("echovault").config(6, "lsa").save(second)

    async def used():
        more = {"by": str(first), "against": str(second), "share": 1.0}
        async with served(own, log, **more) as client:
            for query in load(ROOT / "qrels" / "starter").queries[:30]:
                found = await call(client, "memory_search", query=query.text)
                teams = [(hit["object_id"], hit["interleaved"]) for hit in lines(log)[-1]["hits"]]
                theirs = [name for name, team in teams if team == other]
                if theirs:
                    await call(client, "memory_feedback", query_id=found["query_id"], id=theirs[0], action="used")

    from steelyard.config.search_config import SearchConfig

    other = policy_of(SearchConfig.load(second))
    asked(used())
    total = next(one for one in interleaving_results(str(log)) if one.other == other)
    assert (total.wins, total.losses) == (total.wins, 0) and total.wins >= 25
    assert total.preferred is True


PARAMETERS = {"env": dict(os.environ), "command": sys.executable}


def test_over_standard_input_a_client_is_served_and_named(vault, tmp_path):
    log = tmp_path / "log.jsonl"
    words = ["-m", "steelyard_eval", "serve", vault, "--log", str(log), "--client", "ann"]

    async def used():
        async with Client(stdio_client(StdioServerParameters(args=words, **PARAMETERS))) as client:
            return await call(client, "memory_search", query=QUERY)

    found = asked(used())
    (logged,) = [one for one in lines(log) if "user_query" in one]
    assert (logged["query_id"], logged["client_id"]) == (found["query_id"], "ann")


# HTTP


async def passed(headers):
    """The status of an answer of the gate, and whether the server behind it was asked."""
    sent, asked_for = [], []

    async def app(scope, receive, send):
        asked_for.append(scope)

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "headers": [(k.encode(), v.encode()) for k, v in headers]}
    await TokenGate(app, "a-token-of-24-characters")(scope, None, send)
    assert not sent or sent[1]["body"] == b""
    return (sent[0]["status"] if sent else 0), bool(asked_for)


HOST, KEY = ("host", "127.0.0.1:8377"), ("authorization", "Bearer a-token-of-24-characters")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([HOST, KEY], 0),
        ([HOST], 401),
        ([HOST, ("authorization", "Bearer a-token-of-24-character")], 401),
        ([HOST, ("authorization", "a-token-of-24-characters")], 401),
        ([HOST, KEY, KEY], 401),
        ([KEY], 0),  # other hosts and origins are refused by the SDK behind it
    ],
)
def test_who_has_no_token_gets_nothing(headers, status):
    assert asyncio.run(passed(headers)) == (status, status == 0)


def test_a_token_is_given_or_made():
    from steelyard.base.errors import ConfigError

    assert token_of({"STEELYARD_SERVE_TOKEN": "x" * 16}) == ("x" * 16, False)
    made = {token_of({}) for _ in range(3)}
    assert len(made) == 3 and all(new and len(token) >= 32 for token, new in made)
    for bad in ("x" * 15, "x" * 16 + "\n", "é" * 16):
        with pytest.raises(ConfigError, match="STEELYARD_SERVE_TOKEN"):
            token_of({"STEELYARD_SERVE_TOKEN": bad})
