"""A vault as a memory server, asked by the official SDK's client; what is expected is from the real servers."""

import asyncio
import json
import os
import shutil
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

pytest.importorskip("mcp", reason="pip install '.[serve]'")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from steelyard.config import policy_of
from steelyard.feedback import ACTIONS
from steelyard.memory.entry import Entry, Relation
from steelyard.stores.sqlite import Vault
from steelyard.systems import SYSTEMS, analyses, find_system, keyword_indexes
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load
from steelyard_eval.extensions.serve.server import MemoryServer, Served, TokenGate, token_of
from steelyard_eval.extensions.serve.tool_call import ServerLog
from steelyard_eval.extensions.serve.tool_sets import MIMICS, find_face
from steelyard_eval.learn.reader import DatasetIndex, read_log
from steelyard_eval.vaults import index_dataset

ROOT = Path(__file__).resolve().parents[3]
REAL = json.loads(Path(__file__).with_name("mcp_tools.json").read_text())
"""Names and schemas of the real servers' tools, without descriptions, each with its commit and how it was read."""
QUERY = "how do we rotate signing keys"
NOW = 1_780_000_000.0


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    """The starter set with what it lacks of the five systems: numbers as ids, URIs, diaries, relations."""
    path = tmp_path_factory.mktemp("served") / "memory.db"
    index_dataset(load(ROOT / "qrels" / "starter"), str(path), "lsa")
    return str(path)


@pytest.fixture
def own(tmp_path, vault):
    """A copy of the vault that may be changed."""
    return shutil.copy(vault, tmp_path / "memory.db")


@asynccontextmanager
async def served(path, face=None, log=None, **more):
    """The SDK's client, connected to a server in this process."""
    shown = find_face(face)
    memory = Served(str(path), **{"by": shown.system, **more})
    server = MemoryServer(memory, shown, ServerLog(str(log), lambda: NOW) if log else None)
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


def bare(schema):
    """A schema without descriptions."""
    if isinstance(schema, list):
        return [bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: bare(one) for name, one in schema.items() if not (name == "description" and isinstance(one, str))
    }


@pytest.mark.parametrize("system", sorted(MIMICS))
def test_names_and_schemas_are_those_of_the_real_servers(vault, tmp_path, system):
    async def listed():
        async with served(vault, system, tmp_path / "log.jsonl") as client:
            return (await client.list_tools()).tools

    tools = asked(listed())
    assert {tool.name: bare(tool.input_schema) for tool in tools} == REAL[system]["tools"]
    commit, repository = REAL[system]["commit"], REAL[system]["repository"]
    assert find_face(system).source.startswith(f"{repository} {commit} ")
    assert all(tool.description for tool in tools)


def test_operations_of_soleri_are_those_of_the_real_server():
    from steelyard_eval.extensions.serve.feedback_tools import OPERATIONS

    ours = {suffix: {name: bare(tool.schema) for name, tool in own.items()} for suffix, own in OPERATIONS.items()}
    assert ours == REAL["soleri"]["operations"]


def test_our_own_face_takes_every_act_that_a_log_knows():
    feedback = find_face(None).tools[-1]
    assert feedback.schema["properties"]["action"]["enum"] == [*ACTIONS]


SEARCHES = {
    None: ("memory_search", {"limit": 5}, lambda found: found["hits"]),
    "echovault": ("memory_search", {"limit": 5}, lambda found: found),
    "cortex_mem": ("search", {"limit": 5}, lambda found: found["results"]),
    "soleri": ("soleri_search_intelligent", {"limit": 5, "mode": "scan"}, lambda found: found["data"]),
    "moltnet": ("entries_search", {"limit": 5}, lambda found: found["results"]),
    "spec_kit": ("memory_search", {"limit": 5}, lambda found: found["data"]["results"]),
}


def name_of(row):
    return row.get("uri") or row.get("entry", row)["id"]


@pytest.mark.parametrize("face", SEARCHES)
def test_answers_are_those_of_the_command_search_to_the_bit(vault, face):
    tool, arguments, rows = SEARCHES[face]
    shown = find_face(face)
    expected = run("search", vault, QUERY, "--system", shown.system, "--limit", 5, "--json")["hits"]

    async def found():
        async with served(vault, face) as client:
            return rows(await call(client, tool, query=QUERY, **arguments))

    ours = asked(found())
    if face is None:
        assert ours == expected
    assert list(map(name_of, ours)) == list(map(name_of, expected))[: len(ours)]
    assert len(ours) == min(len(expected), 5) > 0
    if face != "moltnet":  # the real one shows no scores of one's own diaries
        digits = 2 if face == "echovault" else 17  # the real one rounds
        wanted = [one.get("score", one.get("combined_score")) for one in expected]
        assert [one["score"] for one in ours] == [round(score, digits) for score in wanted][: len(ours)]


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """A small vault with what the five systems show and the starter set lacks."""
    path = tmp_path_factory.mktemp("entries") / "memory.db"
    folder = "cortex://user/preferences"
    with Vault(path, create=True) as made:
        made.upsert(
            [
                Entry(
                    "101",
                    title="Rotate keys monthly",
                    text="Signing keys rotate each month.",
                    uri=f"{folder}/keys.md",
                    vault="d1",
                    domain="security",
                    type="semantic",
                    tags=("keys",),
                    created_at=NOW - 86_400,
                    l0="Keys.",
                    relations=(Relation("supports", "102"),),
                ),
                Entry(
                    "102",
                    title="Sessions",
                    text="Session keys live an hour.",
                    uri=f"{folder}/sessions.md",
                    vault="d2",
                ),
                Entry(
                    "dir", uri=folder, l0="What the user wants.", l1="Keys and sessions, and how long they live."
                ),
            ]
        )
        for index in keyword_indexes(SYSTEMS.values()):
            made.ensure_index(index)
        made.ensure_words(analyses(SYSTEMS.values()))
    return str(path)


def valid(system, tool, value):
    jsonschema.validate(value, REAL[system]["outputs"][tool], jsonschema.Draft202012Validator)


def test_moltnet_searches_reads_and_lists(entries, tmp_path):
    log = tmp_path / "log.jsonl"

    async def used():
        async with served(entries, "moltnet", log) as client:
            found = await call(client, "entries_search", query="rotate keys", w_recency=0.3)
            one = await call(client, "entries_get", entry_id="101", expand_relations=True)
            listed = await call(client, "entries_list", diary_id="d1", ids=["101", "102"])
            gone = await client.call_tool("entries_get", {"entry_id": "103"})
            narrow = await call(client, "entries_search", query="keys", diary_id="d2", tags=[])
            return found, one, listed, gone, narrow

    found, one, listed, gone, narrow = asked(used())
    for tool, value in (("entries_search", found), ("entries_get", one), ("entries_list", listed)):
        valid("moltnet", tool, value)
    assert found["results"][0]["id"] == one["id"] == "101"
    assert one["relations"]["items"][0]["targetId"] == "102"
    assert [item["id"] for item in listed["items"]] == ["101"]
    assert gone.is_error and "error" in json.loads(gone.content[0].text)
    assert {item["id"] for item in narrow["results"]} == {"102"}
    assert [act[1:] for act in acts(log)] == [("101", "opened")]
    config = find_system("moltnet:shipped").config(10).with_weights({"w_recency": 0.3})
    assert next(one["policy"] for one in lines(log) if "user_query" in one) == policy_of(config)


def test_an_entry_in_scope_names_no_entry_outside_it(entries):
    async def used(scopes):
        async with served(entries, "moltnet", scopes=scopes) as client:
            one = await call(client, "entries_get", entry_id="101", expand_relations=True)
            return [item["targetId"] for item in one["relations"]["items"]]

    assert asked(used(())) == ["102"]
    assert asked(used(("vault=d1",))) == []
    assert "relations" not in run("vault", "get", entries, "101", "--scope", "vault=d1", "--json")["entries"][0]
    listed = run("vault", "list", entries, "--scope", "vault=d1", "--json")
    assert ["relations" in entry for entry in listed["entries"]] == [False]


def test_cortex_mem_searches_and_reads_at_three_depths(entries, tmp_path):
    log = tmp_path / "log.jsonl"
    uri = "cortex://user/preferences/keys.md"

    async def used():
        async with served(entries, "cortex_mem", log, by="bm25") as client:
            found = await call(
                client, "search", query="rotate keys", scope="cortex://user", return_layers=["L0", "L1", "L2"]
            )
            nothing = await call(client, "recall", query="rotate keys")  # sessions, where there is nothing
            read = [await call(client, depth, uri=uri) for depth in ("abstract", "overview", "content")]
            gone = await client.call_tool("content", {"uri": f"{uri}x"})
            return found, nothing, read, gone

    found, nothing, read, gone = asked(used())
    valid("cortex_mem", "search", found)
    valid("cortex_mem", "recall", nothing)
    for depth, one in zip(("abstract", "overview", "content"), read, strict=True):
        valid("cortex_mem", depth, one)
    first = found["results"][0]
    assert (first["uri"], first["snippet"], first["overview"]) == (uri, "Keys.", None)
    assert nothing["total"] == 0
    assert read[1]["overview_text"].startswith("Keys and sessions") and read[2]["token_count"] == 5
    assert gone.is_error and uri in gone.content[0].text
    assert [act[1:] for act in acts(log)] == [("101", "opened")]


def test_soleri_searches_loads_and_rates(entries, tmp_path):
    log = tmp_path / "log.jsonl"

    async def used():
        async with served(entries, "soleri:ernesto", log) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            whole = await call(client, "ernesto_search_intelligent", query="rotate keys")
            vault = partial(call, client, "ernesto_vault")
            scan = await vault(op="search", params={"query": "rotate keys", "mode": "scan", "domain": "security"})
            loaded = await vault(op="load_entries", params={"ids": ["101", "gone"]})
            rated = await vault(
                op="search_feedback", params={"query": "rotate keys", "entryId": "101", "helpful": False}
            )
            brain = await call(
                client,
                "ernesto_brain",
                op="brain_feedback",
                params={"query": "rotate keys", "entryId": "101", "action": "modified"},
            )
            faults = [
                await client.call_tool("ernesto_vault", {"op": op, "params": params})
                for op, params in (("vault_bulk_remove", {}), ("search", {}), ("load_entries", {}))
            ]
            return names, whole, scan, loaded, rated, brain, faults

    names, whole, scan, loaded, rated, brain, faults = asked(used())
    assert names == ["ernesto_vault", "ernesto_search_intelligent", "ernesto_brain"]
    assert (whole["success"], whole["op"], whole["facade"]) == (True, "search_intelligent", "ernesto_vault")
    first = whole["data"][0]
    assert first["source"] == "vault" and first["breakdown"]["total"] == first["score"]
    assert first["entry"]["description"] == loaded["data"][0]["description"] == "Signing keys rotate each month."
    assert [row["id"] for row in scan["data"]] == ["101"]
    assert rated["data"] == {
        "recorded": True, "query": "rotate keys", "entryId": "101", "action": "dismissed", "context": None,
    }  # fmt: skip
    assert brain["data"]["action"] == "modified"
    assert [act[1:] for act in acts(log)] == [("101", "opened"), ("101", "dismissed"), ("101", "modified")]
    assert all(one.is_error and json.loads(one.content[0].text)["success"] is False for one in faults)


def test_spec_kit_searches_and_validates(entries, tmp_path):
    log = tmp_path / "log.jsonl"

    async def used():
        async with served(entries, "spec_kit", log) as client:
            found = await call(client, "memory_search", concepts=["rotate", "keys"], includeContent=True)
            quick = await call(client, "memory_quick_search", query="rotate keys")
            named = await call(client, "memory_validate", id=101, wasUseful=True, queryId=found["data"]["queryId"])
            newest = await call(client, "memory_validate", id=101, wasUseful=False)
            none = await client.call_tool("memory_validate", {"id": 7, "wasUseful": True})
            empty = await client.call_tool("memory_search", {"cursor": "x"})
            return found, quick, named, newest, none, empty

    found, quick, named, newest, none, empty = asked(used())
    assert found.keys() == {"summary", "data", "hints", "meta"} and found["meta"]["tool"] == "memory_search"
    assert found["data"]["count"] == len(found["data"]["results"]) > 0
    assert found["data"]["results"][0]["id"] == 101 and "content" in quick["data"]["results"][0]
    assert named["data"]["queryId"] == found["data"]["queryId"] != newest["data"]["queryId"]
    assert [act[1:] for act in acts(log)] == [("101", "accepted"), ("101", "dismissed")]
    for one in (none, empty):
        assert one.is_error and json.loads(one.content[0].text)["meta"]["isError"]


def test_echovault_lists_what_is_new(entries, tmp_path, monkeypatch):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)

    async def used():
        async with served(entries, "echovault") as client:
            return await call(client, "memory_context"), await call(client, "memory_search", query="rotate")

    context, found = asked(used())
    assert (context["total"], context["memories"]) == (0, [])  # nothing is of the project `elsewhere`
    keys = "id title what why impact category tags project created_at score has_details"
    assert found[0].keys() == set(keys.split())


def test_what_is_opened_and_quoted_after_a_search_is_logged_once(vault, tmp_path):
    log = tmp_path / "log.jsonl"

    async def used():
        async with served(vault, None, log) as client:
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
        async with served(vault, None, log) as client:
            return await call(client, "memory_search", query=QUERY, limit=3)

    found = asked(used())
    rows = log.read_text().replace('"client_id":"mcp"', '"client_id":"somebody"')
    assert rows != log.read_text()
    log.write_text(rows)
    given = {"query_id": found["query_id"], "id": found["hits"][0]["id"], "action": "used"}

    async def acted():
        async with served(vault, None, log) as client:
            return await client.call_tool("memory_feedback", given)

    assert asked(acted()).is_error
    assert acts(log) == []


def test_a_query_with_a_secret_is_logged_without_its_text(vault, tmp_path):
    log = tmp_path / "log.jsonl"

    async def used():
        async with served(vault, None, log) as client:
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
        async with served(path, None, log, by="bm25") as client:
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
        async with served(own, None, log, **more) as client:
            for query in load(ROOT / "qrels" / "starter").queries[:30]:
                found = await call(client, "memory_search", query=query.text)
                teams = [(hit["object_id"], hit["interleaved"]) for hit in lines(log)[-1]["hits"]]
                theirs = [name for name, team in teams if team == other]
                if theirs:
                    await call(client, "memory_feedback", query_id=found["query_id"], id=theirs[0], action="used")

    from steelyard.config import SearchConfig

    other = policy_of(SearchConfig.load(second))
    asked(used())
    total = next(one for one in read_log(log, DatasetIndex({}, {}, {}, {}), 2e9).turns if one.other == other)
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
    await TokenGate(app, "a-token-of-24-characters", 8377)(scope, None, send)
    assert not sent or sent[1]["body"] == b""
    return (sent[0]["status"] if sent else 0), bool(asked_for)


HOST, KEY = ("host", "127.0.0.1:8377"), ("authorization", "Bearer a-token-of-24-characters")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([HOST, KEY], 0),
        ([HOST, KEY, ("Origin", "http://localhost:8377")], 0),
        ([HOST], 401),
        ([HOST, ("authorization", "Bearer a-token-of-24-character")], 401),
        ([HOST, ("authorization", "a-token-of-24-characters")], 401),
        ([HOST, KEY, KEY], 401),
        ([HOST, KEY, ("origin", "https://example.com")], 403),
        ([HOST, KEY, ("origin", "null")], 403),
        ([HOST, KEY, ("origin", "http://localhost:8377"), ("origin", "http://evil")], 403),
        ([HOST, KEY, ("origin", "http://localhost:83770")], 403),
        ([("host", "evil.example:8377"), KEY], 403),  # a name that was bent to this machine
        ([("host", "127.0.0.1"), KEY], 403),
        ([KEY], 403),
    ],
)
def test_who_has_no_token_or_comes_from_elsewhere_gets_nothing(headers, status):
    assert asyncio.run(passed(headers)) == (status, status == 0)


def test_a_token_is_given_or_made():
    from steelyard.base.errors import ConfigError

    assert token_of({"STEELYARD_SERVE_TOKEN": "x" * 16}) == ("x" * 16, False)
    made = {token_of({}) for _ in range(3)}
    assert len(made) == 3 and all(new and len(token) >= 32 for token, new in made)
    for bad in ("x" * 15, "x" * 16 + "\n", "é" * 16):
        with pytest.raises(ConfigError, match="STEELYARD_SERVE_TOKEN"):
            token_of({"STEELYARD_SERVE_TOKEN": bad})
