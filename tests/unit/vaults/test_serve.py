"""A vault as a memory server, asked by the official SDK's client; what is expected is from the real servers."""

import asyncio
import json
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from shared import ROOT, beside, document, done, vault_with

pytest.importorskip("mcp", reason="pip install '.[serve]'")

from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import steelyard_eval as sy
from steelyard.config import SearchConfig, policy_of
from steelyard.memory.entry import Entry, read_entry
from steelyard.systems import SYSTEMS, analyses, find_system, keyword_indexes
from steelyard_eval.datasets import load
from steelyard_eval.extensions.serve import ServerLog, with_referee
from steelyard_eval.extensions.serve.feedback_tools import OPERATIONS
from steelyard_eval.extensions.serve.server import MemoryServer, PatientProtocol, Served, TokenGate, token_of
from steelyard_eval.extensions.serve.tool_sets import MIMICS, find_face
from steelyard_eval.learn.log_reader import DatasetIndex, read_log
from steelyard_eval.vaults import index_dataset

REAL = beside(__file__, "mcp_tools.json")
"""Names and schemas of the real servers' tools, without descriptions, each with its commit and how it was read."""
SAMPLES = beside(__file__, "served.json")
"""Entries with what the five systems show; searches, and where in their answers the hits stand; heads of requests,
and the status that answers them."""
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


class Session:
    """The SDK's client, connected to a server in this process, for callers that do not wait."""

    def __init__(self, portal, client):
        self.portal, self.client = portal, client

    def answer(self, tool, **arguments):
        return self.portal.call(self.client.call_tool, tool, arguments)

    def call(self, tool, **arguments):
        """The JSON of an answer."""
        answer = self.answer(tool, **arguments)
        assert not answer.is_error, answer.content[0].text
        return json.loads(answer.content[0].text)

    def tools(self):
        return self.portal.call(self.client.list_tools).tools


@contextmanager
def served(path, face=None, log=None, add=lambda face: face, **more):
    shown = add(find_face(face))
    memory = Served(str(path), **{"by": shown.system, "log": log and str(log), **more})
    server = MemoryServer(memory, shown, ServerLog(str(log), lambda: NOW) if log else None)
    try:
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(Client(server.protocol)) as client,
        ):
            yield Session(portal, client)
    finally:
        server.close()


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def acts(path):
    return [
        (one["query_id"], act.get("object_id"), act["action_name"])
        for one in lines(path)
        for act in one.get("actions", ())
    ]


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
    with served(vault, system, tmp_path / "log.jsonl") as session:
        tools, told = session.tools(), session.client.instructions
    assert {tool.name: bare(tool.input_schema) for tool in tools} == REAL[system]["tools"]
    commit, repository = REAL[system]["commit"], REAL[system]["repository"]
    assert find_face(system).source.startswith(f"{repository} {commit} ")
    assert all(" Call " in tool.description for tool in tools)  # agents search where a tool says when
    ranked = find_face(system).system.partition(":")[0]
    assert any(f" Ranks as {ranked}, as its " in tool.description for tool in tools)
    assert "{" not in told and f" {ranked}, as its " in told
    if system == "soleri":
        own = {suffix: {name: bare(tool.schema) for name, tool in of.items()} for suffix, of in OPERATIONS.items()}
        assert own == REAL["soleri"]["operations"]


def test_an_agent_that_tunes_sees_numbers_of_systems_and_strategies_alone(vault, tmp_path):
    """What it names is never read: no file, no endpoint and no command, though compare takes all of them."""
    data = shutil.copytree(ROOT / "qrels" / "starter", tmp_path / "own")
    (tmp_path / "w.json").write_text("{}")
    with served(vault, add=lambda face: with_referee(face, sy.load(data, embedder="none").compare)) as session:
        found = session.call("referee_look", configurations=["bm25", "rrf(bm25, fts)"])
        for text in (str(tmp_path / "w.json"), "x=bm25", "mcp:touch#x", "http://localhost:1/?q={query}"):
            assert session.answer("referee_look", configurations=[text]).is_error
        assert session.answer("referee_verdict", configurations=["bm25"] * 6).is_error
    known = document("compare", data, "bm25", "rrf(bm25, fts)", "--embedder", "none", "--referee", "look")
    assert [row["means"] for row in found["contenders"]] == [row["means"] for row in known["rows"]]
    assert json.loads((data / ".steelyard" / "referee.json").read_text())["looks"] == 4
    assert not {query.id for query in load(data).queries} & set(re.findall(r"[\w-]+", json.dumps(found)))


def name_of(row):
    return row.get("uri") or row.get("entry", row)["id"]


@pytest.mark.parametrize(("face", "tool", "arguments", "path"), SAMPLES["searches"])
def test_answers_are_those_of_the_command_search_to_the_bit(vault, face, tool, arguments, path):
    expected = document("search", vault, QUERY, "--system", find_face(face).system, "--limit", 5)["hits"]
    with served(vault, face) as session:
        found = session.call(tool, query=QUERY, **arguments)
    ours = within(found, path) if path else found
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
    with vault_with(*(read_entry(row)[0] for row in SAMPLES["entries"]), path=path) as made:
        for index in keyword_indexes(SYSTEMS.values()):
            made.ensure_index(index)
        made.ensure_words(analyses(SYSTEMS.values(), made))
    return str(path)


def within(value, path):
    """The part of a document at a path: keys, places, and * for every item."""
    first, _, rest = path.partition(".")
    if first == "*":
        return [within(item, rest) for item in value]
    part = value[int(first) if isinstance(value, list) else first]
    return within(part, rest) if rest else part


def resolved(value, answers):
    """With what earlier calls answered in the place of $NUMBER.PATH."""
    if isinstance(value, dict):
        return {name: resolved(one, answers) for name, one in value.items()}
    if not (isinstance(value, str) and value.startswith("$")):
        return value
    number, _, path = value[1:].partition(".")
    return within(answers[int(number)], path)


@pytest.mark.parametrize("face", SAMPLES["sessions"])
def test_a_session_with_the_tools_of_a_real_server(entries, tmp_path, face):
    """Answers have the real one's schema where that is known, and what is refused is refused in its form."""
    asked, log, system, answers = SAMPLES["sessions"][face], tmp_path / "log.jsonl", face.partition(":")[0], []
    by = {"by": asked["by"]} if "by" in asked else {}
    assert {call[0] for call in asked["calls"]} == {tool.name for tool in find_face(face or None).tools}
    with served(entries, face or None, log, **by) as session:
        for tool, arguments, *expected in asked["calls"]:
            answer = session.answer(tool, **resolved(arguments, answers))
            assert answer.is_error == (expected[0] == "refused"), answer.content[0].text
            plain = expected[-1] is None
            answers.append(answer.content[0].text if plain else json.loads(answer.content[0].text))
            if not answer.is_error:
                schema = REAL.get(system, {}).get("outputs", {}).get(tool, {})
                jsonschema.validate(answers[-1], schema, jsonschema.Draft202012Validator)
            for path, value in (expected[-1] or {}).items():
                assert within(answers[-1], path) == resolved(value, answers), (tool, path)
    assert [" ".join(act[1:]) for act in acts(log)] == asked["acts"]
    if face == "moltnet":
        config = find_system("moltnet:shipped").config(10).with_weights({"w_recency": 0.3})
        assert next(one["policy"] for one in lines(log) if "user_query" in one) == policy_of(config)


def test_a_scope_hides_entries_from_every_tool_and_names_none_outside_it(entries, vault):
    for scopes, targets in (((), ["102"]), (("vault=d1",), [])):
        with served(entries, "moltnet", scopes=scopes) as session:
            one = session.call("entries_get", entry_id="101", expand_relations=True)
            assert [item["targetId"] for item in one["relations"]["items"]] == targets
    assert "relations" not in document("vault", "get", entries, "101", "--scope", "vault=d1")["entries"][0]
    listed = document("vault", "list", entries, "--scope", "vault=d1")
    assert ["relations" in entry for entry in listed["entries"]] == [False]
    seen = []
    for scopes in ((), ("project=rental-api",)):
        with served(vault, scopes=scopes) as session:
            hits = session.call("memory_search", query=QUERY, limit=100)["hits"]
            seen.append({hit["project"] for hit in hits})
            read = session.call("memory_get", ids=["infra-k3s"])
    assert seen[1] == {"rental-api"} < seen[0]
    assert (read["entries"], read["missing"]) == ([], ["infra-k3s"])


def test_echovault_lists_what_is_new(entries, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with served(entries, "echovault") as session:
        context, found = session.call("memory_context"), session.call("memory_search", query="rotate")
    assert (context["total"], context["memories"]) == (0, [])  # nothing is of the project `elsewhere`
    keys = "id title what why impact category tags project created_at score has_details"
    assert found[0].keys() == set(keys.split())


def test_what_is_opened_and_quoted_after_a_search_is_logged_once(vault, tmp_path):
    log = tmp_path / "log.jsonl"
    with served(vault, None, log) as session:
        first = session.call("memory_search", query=QUERY, limit=3)
        ids = [hit["id"] for hit in first["hits"]]
        for _ in range(2):
            session.call("memory_get", ids=[ids[0], "infra-k3s", "gone"])
        second = session.call("memory_search", query=f'what does "{ids[1]}" mean for sessions?')
        given = {"query_id": first["query_id"], "id": ids[2], "action": "thumbs_down"}
        assert session.call("memory_feedback", **given) == {"recorded": True}
        # the last is an entry that this list did not show
        wrong = [("query_id", "gone"), ("action", "praised"), ("action", "none_useful"), ("id", 7)]
        wrong += [("id", "infra-k3s")]
        refused = [session.answer("memory_feedback", **given | {name: value}) for name, value in wrong]
        unknown = session.answer("memory_save", title="x")

    assert acts(log) == [
        (first["query_id"], ids[0], "opened"),
        (first["query_id"], ids[1], "cited"),
        (first["query_id"], ids[2], "thumbs_down"),
    ]
    logged = [one for one in lines(log) if "user_query" in one]
    assert [one["query_id"] for one in logged] == [first["query_id"], second["query_id"]]
    assert [hit["object_id"] for hit in logged[0]["hits"]] == ids
    assert all(one.is_error for one in refused)
    assert unknown.is_error and "reads only" in unknown.content[0].text


def test_the_thirtieth_act_moves_the_weights_of_soleri(vault, tmp_path):
    """Accepted all: 0.25 + 0.15, and the five others share 0.6."""
    told, log = [], tmp_path / "log.jsonl"
    with served(vault, None, log, by="soleri") as session:
        for _ in range(31):
            found = session.call("memory_search", query=QUERY)
            told.append([note for note in found["notes"] if "moved" in note])
            act = {"query_id": found["query_id"], "id": found["hits"][0]["entry"]["id"], "action": "accepted"}
            session.call("memory_feedback", **act)
    assert [len(notes) for notes in told] == [0] * 30 + [1]
    assert "30 acts (30 accepted): weighted_sum(0.4*tfidf, 0.1199" in told[30][0]
    assert [one["policy"] for one in lines(log) if "configuration" in one][1:] == [lines(log)[-2]["policy"]]


def test_feedback_on_the_list_of_another_client_is_refused(vault, tmp_path):
    log = tmp_path / "log.jsonl"
    with served(vault, None, log) as session:
        found = session.call("memory_search", query=QUERY, limit=3)
    rows = log.read_text().replace('"client_id":"mcp"', '"client_id":"somebody"')
    assert rows != log.read_text()
    log.write_text(rows)
    with served(vault, None, log) as session:
        given = {"query_id": found["query_id"], "id": found["hits"][0]["id"], "action": "used"}
        assert session.answer("memory_feedback", **given).is_error
    assert acts(log) == []


def test_a_query_with_a_secret_is_logged_without_its_text(vault, tmp_path):
    log = tmp_path / "log.jsonl"
    with served(vault, None, log) as session:
        found = session.call("memory_search", query="rotate keys with REDIS_PASSWORD=kumquat9", limit=3)
        session.call("memory_feedback", query_id=found["query_id"], id=found["hits"][0]["id"], action="used")
    assert "kumquat9" not in log.read_text()
    assert len(acts(log)) == 1
    assert log.stat().st_mode & 0o777 == 0o600


def test_words_are_not_taken_for_ids(tmp_path):
    """An id of letters alone, or a short one, may be a word of the next question."""
    path, log = tmp_path / "memory.db", tmp_path / "log.jsonl"
    names = ("rotation", "k8s", "key-rotation", "sub/key-rotation.md")
    vault_with(*(Entry(name, title="keys") for name in names), path=path).close()
    with served(path, None, log, by="bm25") as session:
        session.call("memory_search", query="keys")
        session.call("memory_search", query="rotation on k8s, see (key-rotation). sub/key-rotation.md!")
    assert [act[1:] for act in acts(log)] == [("key-rotation", "cited"), ("sub/key-rotation.md", "cited")]


def test_weights_and_vault_are_read_again_and_what_is_broken_is_refused(own, tmp_path, caplog):
    weights, broken = tmp_path / "weights.json", tmp_path / "broken.db"
    find_system("bm25").config(2).save(weights)
    seen = []
    with served(own, by=str(weights)) as session:

        def look(_=None):
            hits = session.call("memory_search", query="keys")["hits"]
            seen.append((len(hits), hits[0]["title"] if hits else ""))

        look()
        find_system("bm25").config(4).save(weights)
        look()
        weights.write_text("{")
        look()
        look()
        vault_with(Entry("new", title="keys keys keys keys", text="keys"), path=own).close()
        look()
        find_system("bm25").config(3).save(weights)
        look()
        broken.write_bytes(b"no vault" * 1000)
        broken.replace(own)
        for path in (f"{own}-wal", f"{own}-shm"):
            Path(path).unlink(missing_ok=True)
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(look, range(12)))  # of all threads that search
        Path(own).unlink()
        look()

    assert [size for size, _ in seen] == [2, 4, 4, 4, 4, 3, *[3] * 13]
    assert [title for _, title in seen[4:]] == ["keys keys keys keys"] * 15
    told = [record.getMessage() for record in caplog.records]
    assert sum("stays" in one for one in told) == len(told) >= 3


def test_two_weights_files_take_turns_and_the_log_says_which_is_preferred(own, tmp_path):
    """The client opens the first entry that the second ranking placed, so that one is preferred.

    Weights of other retrievers rank other candidates, and take turns all the same.
    """
    first, second, log = (tmp_path / name for name in ("a.json", "b.json", "log.jsonl"))
    find_system("bm25").config(6).save(first)
    find_system("echovault").config(6, "lsa").save(second)
    other = policy_of(SearchConfig.load(second))
    with served(own, None, log, by=str(first), against=str(second), share=1.0) as session:
        for query in load(ROOT / "qrels" / "starter").queries[:30]:
            found = session.call("memory_search", query=query.text)
            theirs = [hit["object_id"] for hit in lines(log)[-1]["hits"] if hit["interleaved"] == other]
            if theirs:
                session.call("memory_feedback", query_id=found["query_id"], id=theirs[0], action="used")
    total = next(one for one in read_log(log, DatasetIndex({}, {}, {}, {}), 2e9).turns if one.other == other)
    assert (total.wins, total.losses) == (total.wins, 0) and total.wins >= 25
    assert total.preferred is True


def test_over_standard_input_a_client_is_served_and_named(vault, tmp_path):
    log = tmp_path / "log.jsonl"
    words = ["-m", "steelyard_eval", "serve", vault, "--log", str(log), "--client", "ann"]
    parameters = StdioServerParameters(args=words, env=dict(os.environ), command=sys.executable)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(parameters))) as client,
    ):
        found = Session(portal, client).call("memory_search", query=QUERY)
    (logged,) = [one for one in lines(log) if "user_query" in one]
    assert (logged["query_id"], logged["client_id"]) == (found["query_id"], "ann")


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


@pytest.mark.parametrize(("headers", "status"), SAMPLES["requests"])
def test_who_has_no_token_or_comes_from_elsewhere_gets_nothing(headers, status):
    assert asyncio.run(passed(headers)) == (status, status == 0)


@pytest.mark.parametrize(("asked", "now", "complete", "ends"), SAMPLES["connections"])
def test_a_connection_ends_where_nothing_came_and_nothing_is_open(asked, now, complete, ends):
    cycles, done = {at: SimpleNamespace(response_complete=complete) for at in (1, 2)}, []
    transport = SimpleNamespace(abort=lambda: done.append("close"), is_closing=lambda: False)
    loop = SimpleNamespace(call_later=lambda *_: done.append("wait"))
    own = SimpleNamespace(cycle=cycles.get(now), _look=None, loop=loop, transport=transport)
    PatientProtocol._look(own, cycles.get(asked))
    assert done == [ends]


def test_a_token_is_given_or_made():
    from steelyard.base.errors import ConfigError

    assert token_of({"STEELYARD_SERVE_TOKEN": "x" * 16}) == ("x" * 16, False)
    made = {token_of({}) for _ in range(3)}
    assert len(made) == 3 and all(new and len(token) >= 32 for token, new in made)
    for bad in ("x" * 15, "x" * 16 + "\n", "é" * 16):
        with pytest.raises(ConfigError, match="STEELYARD_SERVE_TOKEN"):
            token_of({"STEELYARD_SERVE_TOKEN": bad})


def test_a_server_explores_nothing_unless_somebody_says_so(vault, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("steelyard_eval.extensions.serve.run", lambda served, *_: asked.append(served))
    words, log = ("serve", vault, "--system", "bm25"), ("--log", tmp_path / "log.jsonl")
    done(*words, *log)
    done(*words, *log, "--explore", "drawn")
    assert [one.share > 0 for one in asked] == [False, True]
