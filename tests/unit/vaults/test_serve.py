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
from steelyard_eval.extensions.serve.caller import ServerLog, tools
from steelyard_eval.extensions.serve.server import MemoryServer, Served
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
    server = MemoryServer(Served(str(path), **more), ServerLog(str(log), lambda: NOW) if log else None)
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
