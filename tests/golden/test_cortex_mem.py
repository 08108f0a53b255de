"""Cortex-Mem's document, statement by statement; docs/cortex-mem.md lists which test holds which.

Expected values come from the document's own figures and examples, or are worked out by hand beside the test.
Vectors are placed by their cosine with the query, which is always the vector (1, 0).
"""

import asyncio
import json
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tables import Spy, Table, named
from tests.unit.shared import document, done, tabled, vault_with

from steelyard import Entry, Filters, Query, Searcher, Vault, find_system, parse_strategy
from steelyard.base.errors import ConfigError, DataError
from steelyard.embedders.embed import LAYER_RECIPES, embed_missing, space_of
from steelyard.extensions.cortex_client import ask
from steelyard.extensions.cortex_client.client import CortexMem, SearchOptions
from steelyard.extensions.cortex_client.layers import extract, with_layers
from steelyard.extensions.cortex_client.rewriting import Rewriter, accepted, profile_of
from steelyard.extensions.cortex_client.uris import check_uri, vault_of
from steelyard.extensions.network.chat import ChatEndpoint, chat_of
from steelyard.extensions.network.endpoint import Endpoint, EndpointError, Response
from steelyard.memory.query import EVERYTHING
from steelyard.stores.base import Space
from steelyard.systems.cortex_mem import (
    DIMENSIONS,
    DOCUMENTED,
    SHIPPED,
    TABLES,
    directory_of,
    intent_of,
    is_entity,
    snippet,
    timeline_of,
)
from steelyard_eval.compare.score_scales import summary_of
from steelyard_eval.datasets import open_dataset
from steelyard_eval.export import export

SESSION = "cortex://session/abc/timeline"
TABLE = json.loads(Path(__file__).with_name("cortex_mem.json").read_text("utf-8"))


def placed(cosine):
    """A vector at this cosine with the query."""
    return np.array([cosine, np.sqrt(1 - cosine**2)], dtype=np.float32)


def filled(entries, cosines):
    """A vault of entries; `cosines` is layer -> id -> cosine with the query."""
    vault = vault_with(*entries)
    for layer in ("l0", "l1", "l2"):
        own = cosines.get(layer, {})
        if own:
            space = Space("spy", layer, LAYER_RECIPES[layer])
            vault.put_vectors(space, list(own), np.array([placed(value) for value in own.values()]))
    some = next(own for own in cosines.values() if own)
    vault.put_vectors(Space("spy", "text", DOCUMENTED.reading.recipe), list(some)[:1], placed(1.0)[None])
    return vault


def message(at, **more):
    return Entry(f"{SESSION}/{at}.md", uri=f"{SESSION}/{at}.md", text=f"message {at}", **more)


def directory(uri=SESSION):
    return Entry(uri, uri=uri, l0="abstract", l1="overview")


def session(l0, l1, **l2):
    """One session with messages at these cosines."""
    details = {f"{SESSION}/{at}.md": value for at, value in l2.items() if value is not None}
    cosines = {"l0": {SESSION: l0}, "l1": {} if l1 is None else {SESSION: l1}, "l2": details}
    return filled([directory(), *(message(at) for at in l2)], cosines)


def nine():
    """One session with nine messages that are farther and farther away."""
    return session(0.9, 0.9, **{f"m{at}": 0.1 * at for at in range(1, 10)})


def found(vault, query="project plans", profile="documented", **options):
    """The last part of each URI, with its score."""
    with CortexMem(vault, Spy(), profile=profile) as memory:
        hits = memory.layered_semantic_search(query, SearchOptions(**options))
    return scores_of((hit.uri, hit.score) for hit in hits)


def scores_of(rows):
    return {uri.rpartition("/")[2].removesuffix(".md"): pytest.approx(score, abs=1e-6) for uri, score in rows}


@pytest.mark.parametrize("row", Table.rows(TABLE["searches"]))
def test_a_search_of_the_table_goes_as_it_says(row):
    query, options = row.get("query", "project plans"), row.get("options", {})
    l0, l1, l2 = row["session"]
    with CortexMem(session(l0, l1, **l2), Spy(), profile=row.get("profile", "documented")) as memory:
        result = memory.search(query, SearchOptions(**options))
    told = {
        "found": scores_of((hit.entry.uri, hit.score) for hit in result.hits),
        "opened": [result.progress.directories[0], result.progress.refined[0]],
        "step": result.progress.step[0],
        "summary": summary_of(result.progress),
        "emptied": row.get("emptied", "") if row.get("emptied", "") in result.emptied else result.emptied,
    }
    assert {name: told[name] for name in told.keys() & row.keys()} == {n: row[n] for n in told.keys() & row.keys()}
    assert bool(result.emptied) == (not result.hits)


def intent(query):
    name = intent_of(query).name
    return [name, TABLES["documented"]["steps"][name][0]]


def written(parts):
    """A text of parts, how often each is said, and what follows it."""
    return "".join(parts[at] * parts[at + 1] + parts[at + 2] for at in range(0, len(parts), 3))


def refused(check):
    """The function, with a word for its refusal."""

    def checked(text):
        try:
            return check(text)
        except (ConfigError, DataError):
            return "refused"

    return checked


@pytest.mark.parametrize("row", Table.rows(TABLE["calls"]))
def test_a_function_of_the_table_answers_as_it_says(row, tmp_path):
    if row["function"] == "snippet":
        (parts, query), (text, marked) = row["of"], row["is"]
        part = snippet(written(parts), query)
        assert (part.text, [list(own) for own in part.highlights]) == (written(text), marked)
        return
    functions = {"intent": intent, "is_entity": is_entity, "timeline_of": timeline_of}
    functions |= {"directory_of": directory_of, "accepted": lambda text: accepted(text, "ab")}
    functions |= {"check_uri": refused(check_uri), "vault_of": refused(lambda name: vault_of(tmp_path, name))}
    assert functions[row["function"]](row["of"]) == row["is"]


@pytest.mark.parametrize("row", TABLE["others"], ids=lambda row: row["says"])
def test_other_entries_than_messages_have_the_same_sum(row):
    entries = [Entry(id_, **fields) for id_, fields in row["entries"].items()]
    assert found(filled(entries, row["cosines"])) == row["found"]


def test_without_layers_all_details_are_searched():
    """Section 5.1: 0.5, 0.4, 0.3, then all details."""
    with CortexMem(filled([Entry("a", text="a")], {"l2": {"a": 0.8}}), Spy()) as memory:
        assert memory.search("plans", SearchOptions()).progress.step[0] == -1
    left = DOCUMENTED.config(10, threshold=0.5).strategy.without({"l0", "l1"})  # as in data sets without any
    assert str(left) == "layered(1*l2, threshold=-1, relax=[])"


class TestExamples:
    """Section 10."""

    def test_the_basic_search(self):
        """Five results from cortex://session/, none below 0.5."""
        vault = nine()
        vault.upsert([Entry("u", uri="cortex://user/u.md", l0="x", l1="y", text="z")])
        for layer in LAYER_RECIPES:
            vault.put_vectors(Space("spy", layer, LAYER_RECIPES[layer]), ["u"], placed(1.0)[None])
        # 0.45 + 0.5 x 0.9 and so on downwards; the entry of the user would be first
        how = {"limit": 5, "threshold": 0.5, "scope": "cortex://session/"}
        expected = {f"m{at}": 0.45 + 0.05 * at for at in (9, 8, 7, 6, 5)}
        assert found(vault, "machine learning project requirements", **how) == expected

    def test_the_direct_search_bypasses_the_layers(self):
        """A row for every layer that is similar enough: 0.5, also for a factual query."""
        with CortexMem(session(0.9, 0.45, a=0.8), Spy()) as memory:
            rows = memory.semantic_search("What is a plan")
        found = [(row.layer, row.uri, pytest.approx(row.score)) for row in rows]
        assert found == [("l0", SESSION, 0.9), ("l2", f"{SESSION}/a.md", 0.8)]


class TestOptions:
    def test_content_is_returned_where_it_is_asked_for(self):
        with CortexMem(session(0.9, 0.9, a=0.9), Spy()) as memory:
            for options, content in ((SearchOptions(include_content=True), "message a"), (SearchOptions(), "")):
                assert [hit.content for hit in memory.layered_semantic_search("plans", options)] == [content]

    @tabled
    def test_filters(self, options, expected):
        """The directory bears what its messages do, so that its abstract is in scope."""
        day = 86_400.0
        first = 1_767_225_600.0  # 2026-01-01
        people = {"a": ("Ann", "Bob"), "b": ("Cid",)}
        times = {"a": first, "b": first + day}
        messages = [message(at, participants=people[at], created_at=times[at], l0="x", l1="y") for at in "ab"]
        cosines = {layer: {entry.id: 0.9 for entry in messages} for layer in LAYER_RECIPES}
        assert [*found(filled(messages, cosines), **options)] == expected

    @pytest.mark.parametrize(
        ("refused", "why"),
        [
            (lambda: SearchOptions(dimension="users").filters(), "'users';"),
            *((lambda own=own: DOCUMENTED.config(10, threshold=own), "-1 and 1") for own in (-2.0, 1.5, math.nan)),
            (lambda: find_system("echovault").config(10, threshold=0.4), "threshold of similarity"),
        ],
    )
    def test_options_that_make_no_sense_are_refused(self, refused, why):
        with pytest.raises(ConfigError, match=why):
            refused()

    def test_a_prefix_is_plain_text_in_sql_and_in_python(self):
        """No wildcard, no case folding, and no stop at a slash."""
        names = ["cortex://session/a", "cortex://session/ab", "cortex://Session/a", "x cortex://session/a", "c%"]
        vault = vault_with(*(Entry(f"e{at}", uri=name) for at, name in enumerate(names)))
        for prefix, expected in [("cortex://session/a", {"e0", "e1"}), ("c%", {"e4"}), ("c_rtex", set())]:
            filters = Filters.of({"uri": {"prefix": prefix}})
            assert {entry.id for entry in vault.entries(filters)} == expected
            assert {e.id for e in vault.entries() if not filters.failed(e)} == expected


@pytest.fixture
def chatty(monkeypatch):
    """A language model that says one thing: its address, and what it was asked."""

    def start(reply):
        seen = []

        def ask(self, path="", body=None, **_):
            seen.append((path, body))
            if isinstance(reply, Exception):
                raise reply
            return Response(200, {}, reply if isinstance(reply, str) else json.dumps(reply))

        monkeypatch.setattr(Endpoint, "ask", ask)
        return SimpleNamespace(url="http://chat.example/v1", seen=seen)

    return start


def said(text):
    return {"choices": [{"message": {"content": text}}]}


class TestRewriting:
    """Section 4.2, through an OpenAI-compatible endpoint."""

    def test_the_rewritten_query_is_embedded_and_the_asked_one_is_quoted(self, chatty):
        server, spy = chatty(said("message plan roadmap\nand more")), Spy()
        vault = session(0.9, 0.9, a=0.9)
        with CortexMem(vault, spy, chat=ChatEndpoint(server.url, "small")) as memory:
            (hit,) = memory.layered_semantic_search("message a")
        assert spy.texts == ["message plan roadmap"]
        assert len(hit.snippet.highlights) == 2  # of "message a", the words that were asked
        path, body = server.seen[0]
        assert (path, body["model"], body["temperature"]) == ("/chat/completions", "small", 0)

    def test_the_profile_is_sent(self, chatty):
        server, vault = chatty(said("x")), session(0.9, 0.9, a=0.9)
        vault.upsert([Entry("q", uri="cortex://user/ann/profiles.md", text="no")])
        with CortexMem(vault, Spy(), chat=ChatEndpoint(server.url, "small")) as memory:
            for text in ("", "Ann likes tea", "Ann likes coffee now"):  # what changed is sent the next time
                vault.upsert([Entry("p", uri="cortex://user/ann/profile.md", text=text)])
                memory.layered_semantic_search("what does she like")
                assert profile_of(vault) == text
        sent = [body["messages"][0]["content"] for _, body in server.seen]
        drinks = [[drink for drink in ("tea", "coffee") if drink in text] for text in sent]
        assert drinks == [[], ["tea"], ["coffee"]]

    @pytest.mark.parametrize(
        "reply",
        [
            *(said(""), said(" \n "), said("x" * 100), said(None), {"choices": []}, [], "no json", ""),
            EndpointError("the model", "is slow"),
        ],
    )
    def test_nonsense_or_a_failure_leaves_the_query_as_it_is(self, chatty, reply):
        assert Rewriter(ChatEndpoint(chatty(reply).url, "m", attempts=1))("rotate keys") == "rotate keys"

    def test_the_environment_names_the_endpoint(self):
        assert chat_of({}) is None
        with pytest.raises(ConfigError, match="LLM_MODEL is not"):
            chat_of({"LLM_BASE_URL": "http://localhost:1"})
        told = chat_of({"LLM_BASE_URL": "http://localhost:1/v1/", "LLM_MODEL": "m"})
        assert told.name == "http://localhost:1/v1 m"

    def test_a_query_may_carry_the_rewritten_text(self):
        spy, config = Spy(), DOCUMENTED.config(10, "spy")
        Searcher(session(0.9, 0.9, a=0.9), config, spy).search(Query("plans", rewritten="project plans"))
        assert spy.texts == ["project plans"]


def write_memory(folder, *more):
    for name, text in [*TABLE["files"].items(), *more]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


class TestFiles:
    """Sections 3.1 and 7: layer files and URIs."""

    def test_the_dimensions(self):
        assert {*DIMENSIONS} == {"resources", "user", "agent", "session"}
        vault, uris = Vault(":memory:"), {one: f"cortex://{one}/x/y.md" for one in DIMENSIONS}
        vault.upsert(Entry(uri, uri=check_uri(uri)) for uri in uris.values())
        for one, uri in uris.items():
            within = SearchOptions(dimension=one).filters()
            assert [entry.uri for entry in vault.entries(within)] == [uri]

    def test_a_folder_becomes_a_vault(self, tmp_path):
        write_memory(tmp_path / "m")
        dataset = open_dataset(tmp_path / "m")
        found = {e.uri: (bool(e.l0), bool(e.l1), bool(e.text)) for e in dataset.entries}
        messages = [f"{SESSION}/10_00.md", f"{SESSION}/10_05.md", "cortex://user/ann/profile.md"]
        assert found == {SESSION: (True, True, False), **dict.fromkeys(messages, (False, False, True))}

    def test_the_participants_of_a_session_stand_in_its_file(self, tmp_path):
        """As the program writes it: session/ID/.session.json."""
        session = json.dumps({"thread_id": "abc", "participants": ["user-1", "coder"], "tags": []})
        write_memory(tmp_path / "m", ("session/abc/.session.json", session), ("session/other/.session.json", "{}"))
        (tmp_path / "m" / "session" / "other" / "a.md").write_text("nobody is named")
        report = open_dataset(tmp_path / "m")
        people = {entry.uri: entry.participants for entry in report.entries}
        assert people[f"{SESSION}/10_00.md"] == people[SESSION] == ("user-1", "coder")
        assert people["cortex://user/ann/profile.md"] == people["cortex://session/other/a.md"] == ()

    @pytest.mark.parametrize(
        "text",
        ['{"participants": "ann"}', '{"participants": [1]}', "[]", "{", "[" * 100_000, '{"participants": NaN}'],
    )
    def test_a_session_file_that_is_none_names_nobody(self, tmp_path, text):
        write_memory(tmp_path / "m", ("session/abc/.session.json", text))
        report = open_dataset(tmp_path / "m")
        assert all(entry.participants == () for entry in report.entries)

    def test_the_command_line_has_every_option(self, chatty, tmp_path, monkeypatch):
        session = json.dumps({"participants": ["coder"]})
        write_memory(tmp_path / "m", ("session/abc/.session.json", session))
        done("index", tmp_path / "m", tmp_path / "v.db")
        log, asked = tmp_path / "log.jsonl", ("search", tmp_path / "v.db")

        def search(*options, query="what is it to rotate keys", more=(), code=0):
            words = [word for option in options for word in ("--set", option)]
            ran = done(*asked, query, "--system", "cortex_mem", "--json", "--log", log, *words, *more, code=code)
            return code or json.loads(ran.stdout)

        plain = search("threshold=0.2", query="rotate keys")
        assert plain["hits"][0].keys() == {"id", "title", "uri", "score", "snippet", "highlights"}
        assert (plain["hits"][0]["uri"], plain["progress"]["queries"]) == (f"{SESSION}/10_00.md", 1)
        assert search("content=true", query="rotate keys")["hits"][0]["content"].startswith("Ann: how often")
        direct = search("direct=true", "threshold=-1")["hits"]
        assert [row["score"] for row in direct] == sorted((row["score"] for row in direct), reverse=True)
        assert {(row["uri"], row["layer"]) for row in direct} >= {(SESSION, "l0"), (SESSION, "l1")}
        assert {row["uri"].split("/")[2] for row in search("dimension=user")["hits"]} == {"user"}
        search("dimension=users", code=2)
        done(*asked, "keys", "--set", "direct=true", code=2)
        assert search()["intent"]["name"] == "factual"
        assert search("detect_intent=false")["intent"]["name"] == "general"
        for name, there in (("coder", True), ("nobody", False)):
            assert bool(search(query="rotate keys", more=("--filter", f"participants={name}"))["hits"]) == there
        # One search finds abstracts at the threshold, the other does without any.
        for option, step in (("threshold=-1", 0), ("dimension=agent", -1)):
            search(option)
            assert json.loads(log.read_text().splitlines()[-1])["layers"]["step"] == step
        monkeypatch.setenv("LLM_BASE_URL", chatty(said("weekly keys")).url)
        monkeypatch.setenv("LLM_MODEL", "small")
        assert search("rewrite=true")["embedded"] == "weekly keys"

    def test_what_is_no_memory_is_left_out_with_a_notice(self, tmp_path):
        write_memory(tmp_path / "m", ("odd/a.md", "x"), ("user/.hidden.md", "x"))
        (tmp_path / "secret.md").write_text("secret")
        (tmp_path / "m" / "user" / "link.md").symlink_to(tmp_path / "secret.md")
        (tmp_path / "m" / "user" / "out").symlink_to(tmp_path)
        (tmp_path / "m" / "user" / "latin.md").write_bytes(b"\xff")
        report = open_dataset(tmp_path / "m")
        names = {e.uri.rpartition("/")[2] for e in report.entries}
        assert names == {"timeline", "10_00.md", "10_05.md", "profile.md"}
        assert not any("secret" in entry.text for entry in report.entries)

    def test_a_directory_without_text_has_no_vector_of_its_text(self):
        """Where no file has details, text stands for them, and a model has a direction for an empty text, too."""
        vault = vault_with(directory())
        for layer in ("text", *LAYER_RECIPES):
            embed_missing(vault, Spy(), space_of(Spy(), layer, DOCUMENTED.reading.recipe))
        with CortexMem(vault, Spy()) as memory:
            assert [hit.layer for hit in memory.semantic_search("plans")] == ["l0", "l1"]
            assert memory.layered_semantic_search("plans") == []

    def test_a_changed_file_is_indexed_again_and_a_touched_one_is_not(self, tmp_path):
        write_memory(tmp_path / "m")
        done("index", tmp_path / "m", tmp_path / "v.db")
        profile = tmp_path / "m" / "user" / "ann" / "profile.md"
        os.utime(profile, (2_000_000_000, 2_000_000_000))
        again = document("index", tmp_path / "m", tmp_path / "v.db")
        assert (again["changed"], again["embedded"]) == (0, 0)
        profile.write_text("Ann likes coffee")
        assert document("index", tmp_path / "m", tmp_path / "v.db")["changed"] == 1
        with Vault(tmp_path / "v.db") as vault:
            assert [e.text for e in vault.get(["cortex://user/ann/profile.md"])] == ["Ann likes coffee"]

    def test_a_name_with_blanks_is_an_id_without(self, tmp_path):
        write_memory(tmp_path / "m", ("user/my notes.md", "x"))
        entry = next(e for e in open_dataset(tmp_path / "m").entries if "notes" in e.uri)
        assert (entry.id, entry.uri) == ("cortex://user/my%20notes.md", "cortex://user/my notes.md")

    @pytest.mark.parametrize(("layer", "most"), [(0, 400), (1, 4000)])
    def test_layers_are_cut_above_their_most_characters(self, layer, most):
        """An abstract may have 400 characters and an overview 4,000."""
        assert [len(extract("x" * length)[layer]) for length in (most, most + 1)] == [most, most]

    @tabled
    def test_an_abstract_ends_with_the_last_word_that_fits(self, text, kept):
        assert extract(written(text))[0] == written(text)[:kept]

    def test_layers_are_extracted_where_they_are_asked_for(self):
        entries = with_layers([message("a"), message("b"), Entry("own", text="First. Second.")], extract)
        made = {entry.id: (entry.l0, entry.l1) for entry in entries}
        assert made[SESSION] == ("message a", "message a\nmessage b")
        assert made["own"] == ("First.", "First.")
        assert made[f"{SESSION}/a.md"] == ("", "")
        given = [directory(), message("a")]  # written layers stay
        assert with_layers(given, extract) == given

    def test_a_model_is_asked_once_for_each_layer(self, chatty, tmp_path):
        server = chatty(said("summary"))
        summarise = ask(ChatEndpoint(server.url, "small"), tmp_path / "cache")
        assert summarise("a text") == summarise("a text") == ("summary", "summary")
        assert len(server.seen) == 2


def test_the_file_is_named_for_the_tenant_and_a_link_is_refused(tmp_path):
    """Sections 6.2 and 8.2: a collection per tenant."""
    assert vault_of(tmp_path, "acme") == tmp_path / "cortex-mem-acme.db"
    (tmp_path / "cortex-mem-acme.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(ConfigError, match="is a link"):
        vault_of(tmp_path, "acme")


class TestConcurrency:
    """Section 9.1."""

    ASKED = tuple(
        ("semantic_search" if at % 2 else "layered_semantic_search", SearchOptions(limit=1 + at % 5))
        for at in range(64)
    )

    def test_64_awaited_searches_answer_as_one(self):
        async def many(memory):
            return await asyncio.gather(
                *(getattr(memory, f"{name}_async")("plans", how) for name, how in self.ASKED)
            )

        with CortexMem(nine(), Spy()) as memory:
            assert asyncio.run(many(memory)) == [getattr(memory, name)("plans", how) for name, how in self.ASKED]

    def test_8_threads_share_a_memory(self):
        with CortexMem(nine(), Spy()) as memory, ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: memory.layered_semantic_search("plans"), range(160)))
            assert found == [memory.layered_semantic_search("plans")] * 160

    def test_64_awaited_searches_of_a_file_go_on_while_messages_are_written(self, tmp_path):
        """Each answer is whole: what it found has its own score, and what was there before is there."""
        space = Space("spy", "l2", LAYER_RECIPES["l2"])
        with Vault(tmp_path / "v.db", create=True) as vault:
            first = session(0.9, 0.9, **{f"m{at}": 0.9 for at in range(5)})
            vault.upsert(first.entries())
            for layer in ("l0", "l1", "l2", "text"):
                recipe = LAYER_RECIPES.get(layer, DOCUMENTED.reading.recipe)
                vault.put_vectors(own := Space("spy", layer, recipe), *first.vectors(own, EVERYTHING))

            def write():
                for at in range(20):
                    entry = message(f"new{at}")
                    with vault.transaction():
                        vault.upsert([entry])
                        vault.put_vectors(space, [entry.id], placed(0.6)[None])

            async def many(memory):
                search, how = memory.layered_semantic_search_async, SearchOptions(limit=30)
                return await asyncio.gather(*(search("plans", how) for _ in range(64)), asyncio.to_thread(write))

            with CortexMem(vault, Spy()) as memory:
                answers = asyncio.run(many(memory))[:-1]
                answers.append(memory.layered_semantic_search("plans", SearchOptions(30)))
        for answer in answers:
            names = [hit.uri.rpartition("/")[2] for hit in answer]
            assert names[:5] == [f"m{at}.md" for at in range(5)]
            assert all(name.startswith("new") for name in names[5:])
            # 0.2 x 0.9 + 0.3 x 0.9 + 0.5 x 0.9, and with 0.6 for the details of a new one
            expected = [0.9] * 5 + [0.75] * (len(names) - 5)
            assert [hit.score for hit in answer] == pytest.approx(expected, abs=1e-6)
        assert len(answers[-1]) == 25

    def test_a_cancelled_search_stops_before_its_next_layer(self):
        """The embedder waits; meanwhile the task is cancelled, and no second layer is read."""
        waiting, go_on = threading.Event(), threading.Event()

        class Slow(Spy):
            def embed(self, texts, kind="entry"):
                waiting.set()
                go_on.wait(10)
                return super().embed(texts, kind)

        vault = session(0.9, 0.9, a=0.9)

        async def cancelled(memory):
            task = asyncio.ensure_future(memory.layered_semantic_search_async("plans"))
            await asyncio.to_thread(waiting.wait, 10)
            task.cancel()
            await asyncio.sleep(0)
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task

        with CortexMem(vault, Slow()) as memory:
            read, sources = [], memory._searcher._sources
            original = sources.retrieve
            sources.retrieve = lambda name, *rest: (read.append(name), original(name, *rest))[1]
            asyncio.run(cancelled(memory))
        assert len(read) == 1


def test_details_are_read_together_and_once(monkeypatch):
    """Section 8.2: forty files in four directories are one reading of each layer, and none the next time."""
    homes = [f"cortex://session/s{at}/timeline" for at in range(4)]
    entries = [directory(home) for home in homes]
    entries += [Entry(f"{home}/{at}.md", uri=f"{home}/{at}.md", text="x") for home in homes for at in range(10)]
    cosines = {layer: dict.fromkeys(homes, 0.9) for layer in ("l0", "l1")}
    cosines["l2"] = {entry.id: 0.9 for entry in entries if entry.text}
    store, vectors, reads = filled(entries, cosines), Vault.vectors, []
    counting = lambda own, space, filters: reads.append(space.layer) or vectors(own, space, filters)  # noqa: E731 -- one line that only counts
    monkeypatch.setattr(Vault, "vectors", counting)
    searcher = Searcher(store, DOCUMENTED.config(40, "spy"), Spy())
    assert len(searcher.search("plans").hits) == 40
    assert sorted(reads) == ["l0", "l1", "l2"]
    searcher.search("other plans")
    assert len(reads) == 3
    with CortexMem(store, Spy()) as memory:
        for how in map(SearchOptions, (5, 10, 5), (None, 0.3, 0.7)):
            assert memory.layered_semantic_search("plans", how) and memory.semantic_search("plans", how)
    assert len(reads) == 3  # once for all who search it


def test_the_time_of_every_layer():
    """Section 11."""
    with CortexMem(session(0.9, 0.9, a=0.9), Spy()) as memory:
        seconds = memory.search("plans", SearchOptions()).seconds
    assert seconds.keys() == {"l0", "l1", "l2", "unindexed", "search"}
    assert all(value >= 0 for value in seconds.values())


@pytest.mark.parametrize("system", [DOCUMENTED, SHIPPED])
@pytest.mark.parametrize("threshold", [None, 0.35])
def test_its_configurations_can_be_exported_to_it(system, threshold):
    config = system.config(7, threshold=threshold)
    expected = {"limit": 7} if threshold is None else {"limit": 7, "threshold": 0.35}
    assert export(config, "cortex_mem").parts == {"options": expected}


def test_other_weights_cannot_be_exported_and_every_change_is_named():
    config = DOCUMENTED.config(10)
    lighter = str(config.strategy).replace("0.3*l1", "0*l1", 1)
    tuned = lighter.replace("threshold=0.4, relax=[0.3]", "threshold=0.2, relax=[]")
    with pytest.raises(ConfigError, match="fixed in its") as refused:
        export(config.with_strategy(parse_strategy(tuned)), "cortex_mem")
    for change in ("weight of l1 for default 0 instead of 0.3", "threshold for factual 0.2 instead of 0.4"):
        assert change in str(refused.value)
    assert "instead of [0.3]" in str(refused.value)


def test_every_test_of_the_table_is_here():
    own = Path(__file__).read_text(encoding="utf-8")
    rows = {*TABLE["searches"], *TABLE["calls"]}
    assert [name for name in named("cortex-mem.md") - rows if f"def {name}(" not in own] == []
