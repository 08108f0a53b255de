"""Cortex-Mem's document, statement by statement; docs/cortex-mem.md lists which test holds which.

Expected values come from the document's own figures and examples, or are worked out by hand beside the test.
Vectors are placed by their cosine with the query, which is always the vector (1, 0).
"""

import asyncio
import itertools
import json
import os
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from steelyard.base.errors import ConfigError, DataError
from steelyard.embedders.embed import LAYER_RECIPES, embed_missing, space_of
from steelyard.extensions.cortex_client import ask
from steelyard.extensions.cortex_client.client import CortexMem, SearchOptions
from steelyard.extensions.cortex_client.layers import extract, with_layers
from steelyard.extensions.cortex_client.rewriting import Rewriter, accepted, profile_of
from steelyard.extensions.cortex_client.uris import check_uri, vault_of
from steelyard.extensions.network.chat import ChatEndpoint, chat_of
from steelyard.extensions.network.endpoint import EndpointError
from steelyard.fusion import parse_strategy
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING, Filters, Query
from steelyard.stores.base import Space
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard.systems.cortex_mem import (
    DIMENSIONS,
    DOCUMENTED,
    SHIPPED,
    THRESHOLDS,
    directory_of,
    intent_of,
    is_entity,
    snippet,
    snippet_shipped,
    timeline_of,
)
from steelyard_eval.cli.main import main
from steelyard_eval.compare.scales import summary_of
from steelyard_eval.datasets import open_dataset
from steelyard_eval.export import export

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "cortex-mem.md"
SESSION = "cortex://session/abc/timeline"


class Spy:
    """Every query is the vector (1, 0); it keeps what it was asked."""

    model, recipe = "spy", None

    def __init__(self):
        self.asked = []

    def embed(self, texts, kind="entry"):
        self.asked += texts
        return np.tile(np.array([1, 0], dtype=np.float32), (len(texts), 1))

    def warm(self):
        return True


def placed(cosine):
    """A vector at this cosine with the query."""
    return np.array([cosine, np.sqrt(1 - cosine**2)], dtype=np.float32)


def filled(entries, cosines):
    """A vault of entries; `cosines` is layer -> id -> cosine with the query."""
    vault = Vault(":memory:")
    vault.upsert(entries)
    for layer in ("l0", "l1", "l2"):
        own = cosines.get(layer, {})
        if own:
            space = Space("spy", layer, LAYER_RECIPES[layer])
            vault.put_vectors(space, list(own), np.array([placed(value) for value in own.values()]))
    some = next(iter(own for own in cosines.values() if own))
    vault.put_vectors(Space("spy", "text", DOCUMENTED.reading.recipe), list(some)[:1], placed(1.0)[None])
    return vault


def message(at, **more):
    return Entry(f"{SESSION}/{at}.md", uri=f"{SESSION}/{at}.md", text=f"message {at}", **more)


def directory(uri=SESSION):
    return Entry(uri, uri=uri, l0="abstract", l1="overview")


def session(l0, l1, **l2):
    """One session with messages at these cosines."""
    cosines = {"l0": {SESSION: l0}, "l1": {} if l1 is None else {SESSION: l1}}
    cosines["l2"] = {f"{SESSION}/{at}.md": value for at, value in l2.items() if value is not None}
    return filled([directory(), *(message(at) for at in l2)], cosines)


def found(vault, query="project plans", profile="documented", **options):
    """The last part of each URI, with its score."""
    with CortexMem(vault, Spy(), profile=profile) as memory:
        hits = memory.layered_semantic_search(query, SearchOptions(**options))
    return {hit.uri.rpartition("/")[2].removesuffix(".md"): pytest.approx(hit.score, abs=1e-6) for hit in hits}


def progress(vault, query="project plans", profile="documented", **options):
    with CortexMem(vault, Spy(), profile=profile) as memory:
        return memory.search(query, SearchOptions(**options)).progress


class TestIntents:
    """Section 4.1: five rows, with the examples of the table."""

    @pytest.mark.parametrize(
        ("query", "intent", "threshold"),
        [
            ("What is the capital", "factual", 0.4),
            ("When did we deploy", "factual", 0.4),
            ("Find the plan", "search", 0.5),
            ("Look for tokens", "search", 0.5),
            ("How is login related to sessions", "relational", 0.5),
            ("Last week I met Alice", "temporal", 0.5),
            ("Yesterday at noon", "temporal", 0.5),
            ("machine learning project requirements", "general", 0.5),
        ],
    )
    def test_the_rows_of_the_table(self, query, intent, threshold):
        assert (intent_of(query).name, THRESHOLDS[intent_of(query).name]) == (intent, threshold)

    @pytest.mark.parametrize("query", ["elastic search", "agony of choice", "the blast furnace", "finding nemo"])
    def test_words_inside_other_words_are_no_signs(self, query):
        assert intent_of(query).name == "general"

    @pytest.mark.parametrize(
        ("query", "entity"),
        [
            ("Docker", True),
            ("Alice Smith", True),
            ("Alice Smith Jones", False),
            ("Alice Smith-Johnstones", False),  # 22 characters
            ("alice", False),
            ("What now", False),
            ("\u8bb0\u5fc6", True),  # two Chinese characters
            ("\u8bb0", False),
            ("", False),
        ],
    )
    def test_the_program_takes_one_or_two_short_words_for_the_name_of_a_thing(self, query, entity):
        assert is_entity(query) == entity

    @pytest.mark.parametrize(("query", "passes"), [("What is this", True), ("machine learning", False)])
    def test_factual_queries_open_abstracts_from_04_on(self, query, passes):
        assert (progress(session(0.45, 0.9, a=0.9), query).step[0] == 0) == passes

    def test_intent_detection_can_be_switched_off(self):
        vault = session(0.45, 0.9, a=0.9)
        assert progress(vault, "What is this", detect_intent=False).step[0] == 1


class TestLayers:
    def test_the_score_is_the_documented_sum(self):
        """0.2 x 0.6 + 0.3 x 0.7 + 0.5 x 0.8 = 0.73."""
        assert found(session(0.6, 0.7, a=0.8)) == {"a": 0.73}

    def test_the_directory_of_a_message_answers_for_it_and_no_other_directory_does(self):
        assert timeline_of(f"{SESSION}/10_00.md") == SESSION
        assert timeline_of("cortex://user/keys/rotation.md") == "cortex://user/keys/rotation.md"

    def test_messages_of_a_timeline_are_compared_one_by_one(self):
        """0.12 + 0.21 + 0.5 x 0.8 and 0.5 x 0.7."""
        assert found(session(0.6, 0.7, a=0.8, b=0.7)) == {"a": 0.73, "b": 0.68}

    def test_files_of_a_resource_are_compared_directly(self):
        home = "cortex://resources/book"
        vault = filled(
            [directory(home), Entry("f", uri=f"{home}/one.md", text="one")],
            {"l0": {home: 0.6}, "l1": {home: 0.7}, "l2": {"f": 0.8}},
        )
        assert found(vault) == {"one": 0.73}

    def test_an_entry_with_layers_of_its_own_is_its_own_directory(self):
        own = Entry("e", uri="", l0="abstract", l1="overview", text="text")
        assert found(filled([own], {"l0": {"e": 0.6}, "l1": {"e": 0.7}, "l2": {"e": 0.8}})) == {"e": 0.73}

    def test_without_an_overview_the_abstract_counts_eight_tenths(self):
        """0.2 x 0.6 + 0.3 x 0.8 x 0.6 + 0.5 x 0.8 = 0.664, the program's rule; the document has none."""
        assert found(session(0.6, None, a=0.8)) == {"a": 0.664}

    def test_a_file_without_a_vector_counts_by_its_directory_alone(self):
        """0.2 x 0.9 + 0.3 x 0.9 = 0.45, L2 is 0 (section 5.2)."""
        assert found(session(0.9, 0.9, a=None, b=0.2), threshold=0.4) == {"b": 0.55, "a": 0.45}

    def test_the_directory_itself_is_no_result(self):
        assert found(session(0.9, 0.9, a=0.9), threshold=0.1) == {"a": 0.9}

    def test_a_directory_whose_layers_are_below_half_the_threshold_is_left(self):
        """A relaxed abstract of 0.24 is below half of 0.5; so is the overview. (The program.)"""
        vault = session(0.24, 0.2, a=1.0)
        assert progress(vault, profile="shipped").directories[0] == 1
        assert progress(vault, profile="shipped").refined[0] == 0
        assert found(vault, profile="shipped") == {}

    def test_results_reach_the_threshold_by_their_combined_score(self):
        """0.12 + 0.18 + 0.5 x 0.38 = 0.49 and 0.12 + 0.18 + 0.5 x 0.42 = 0.51."""
        assert found(session(0.6, 0.6, a=0.38, b=0.42)) == {"b": 0.51}

    @pytest.mark.parametrize(
        ("abstract", "query"), [(0.45, "plans"), (0.45, "plans at 0.6"), (0.35, "What is it")]
    )
    def test_results_of_a_lower_step_reach_that_step(self, abstract, query):
        """The other two add up to half the step or a little less: 0.2 x 0.45 + 0.5 x 0.63 = 0.405 for 0.4."""
        step = 0.4 if abstract == 0.45 else 0.3
        rest = step - 0.2 * abstract
        vault = session(abstract, 0.0, a=2 * (rest + 0.005), b=2 * (rest - 0.005))
        options = {"threshold": 0.6} if "0.6" in query else {}
        assert found(vault, query, **options) == {"a": step + 0.005}
        assert found(vault, query, "shipped") == {}  # cut at 0.5 whatever found it


class TestRelaxation:
    """Section 5.1: 0.5, 0.4, 0.3, then all details."""

    @pytest.mark.parametrize(("abstract", "step"), [(0.5, 0), (0.45, 1), (0.35, 2), (0.25, -1)])
    def test_the_ladder(self, abstract, step):
        assert progress(session(abstract, 0.9, a=0.9)).step[0] == step

    def test_it_goes_on_below_an_explicit_threshold(self):
        """0.3 is the only step below 0.4."""
        assert progress(session(0.35, 0.9, a=0.9), threshold=0.4).step[0] == 1

    def test_the_last_resort_ranks_details_alone_and_cuts_none(self):
        """The page promises that results are delivered; the program cuts them at 0.5 here, too."""
        vault = session(0.1, 0.1, a=0.8, b=0.6, c=-0.4)
        assert found(vault) == {"a": 0.8, "b": 0.6, "c": -0.4}
        assert found(vault, threshold=0.9) == {"a": 0.8, "b": 0.6, "c": -0.4}
        assert found(vault, profile="shipped") == {"a": 0.8, "b": 0.6}

    def test_without_layers_all_details_are_searched(self):
        vault = filled([Entry("a", text="a")], {"l2": {"a": 0.8}})
        with CortexMem(vault, Spy()) as memory:
            found = memory.search("plans", SearchOptions())
        assert ([hit.score for hit in found.hits], found.progress.step[0]) == ([pytest.approx(0.8)], -1)

    def test_without_layers_nothing_is_cut(self):
        vault = filled([Entry("a", text="a"), Entry("b", text="b")], {"l2": {"a": 0.8, "b": 0.1}})
        assert found(vault) == {"a": 0.8, "b": 0.1}
        left = DOCUMENTED.config(10, threshold=0.5).strategy.without({"l0", "l1"})  # as in data sets without any
        assert str(left) == "layered(1*l2, threshold=-1, relax=[])"

    @pytest.mark.parametrize(
        ("vault", "profile", "why"),
        [
            (
                session(0.6, 0.1, a=0.1),
                "documented",
                "reaches 0.5, but no entry's score of all layers reaches 0.5",
            ),
            (
                session(0.35, 0.1, a=0.1),
                "documented",
                "reaches 0.3, but no entry's score of all layers reaches 0.3",
            ),
            (
                session(0.24, 0.2, a=1.0),
                "shipped",
                "reaches 0.2, but no overview or abstract of these reaches 0.25",
            ),
            (
                session(0.1, 0.2, a=0.3),
                "shipped",
                "any step of the ladder, and of all details no score reaches 0.5",
            ),
        ],
        ids=["threshold", "lower step", "half the cut", "last resort"],
    )
    def test_an_empty_list_says_which_step_emptied_it(self, vault, profile, why):
        with CortexMem(vault, Spy(), profile=profile) as memory:
            assert why in memory.search("plans", SearchOptions()).emptied

    def test_a_list_that_is_not_empty_says_nothing(self):
        with CortexMem(session(0.6, 0.6, a=0.6), Spy()) as memory:
            assert memory.search("plans", SearchOptions()).emptied == ""

    def test_a_scope_without_entries_is_said_to_have_emptied_the_list(self):
        with CortexMem(session(0.6, 0.6, a=0.6), Spy()) as memory:
            nowhere = memory.search("plans", SearchOptions(scope="cortex://user/"))
        assert (
            nowhere.emptied
            == "no abstract reaches any step of the ladder, and of all details there are none in scope"
        )

    def test_the_program_takes_one_step_to_a_fifth(self):
        """From 0.5 it looks at 0.2 at once: 0.25 passes, as 0.35 does."""
        steps = [progress(session(at, 0.9, a=0.9), profile="shipped").step[0] for at in (0.35, 0.25, 0.15)]
        assert steps == [1, 1, -1]


class TestExamples:
    """Section 10."""

    def test_the_basic_search(self):
        """Five results from cortex://session/, none below 0.5."""
        vault = session(0.9, 0.9, **{f"m{at}": 0.1 * at for at in range(1, 10)})
        vault.upsert([Entry("u", uri="cortex://user/u.md", l0="x", l1="y", text="z")])
        for layer in LAYER_RECIPES:
            vault.put_vectors(Space("spy", layer, LAYER_RECIPES[layer]), ["u"], placed(1.0)[None])
        # 0.45 + 0.5 x 0.9 and so on downwards; the entry of the user would be first
        assert found(
            vault, "machine learning project requirements", limit=5, threshold=0.5, scope="cortex://session/"
        ) == {f"m{at}": 0.45 + 0.05 * at for at in (9, 8, 7, 6, 5)}

    def test_the_factual_lookup_acts_by_its_explicit_threshold(self):
        """No rule makes it factual; the 0.4 that the example writes acts."""
        vault = session(0.45, 0.45, a=0.4)  # 0.225 + 0.2 = 0.425
        query = "user's database password"
        assert intent_of(query).name == "general"
        assert found(vault, query, threshold=0.4, limit=3) == {"a": 0.425}
        assert found(vault, query, limit=3) == {"a": 0.425}  # 0.4 is also the step that finds the abstract
        assert found(vault, query, threshold=0.44, limit=3) == {}

    def test_the_direct_search_bypasses_the_layers(self):
        """A row for every layer that is similar enough."""
        with CortexMem(session(0.9, 0.3, a=0.8), Spy()) as memory:
            rows = memory.semantic_search("plans")
        assert [(row.layer, row.uri, pytest.approx(row.score)) for row in rows] == [
            ("l0", SESSION, 0.9),
            ("l2", f"{SESSION}/a.md", 0.8),
        ]


class TestOptions:
    def test_the_defaults_of_section_8(self):
        options = SearchOptions()
        assert (options.limit, options.threshold, options.scope, options.include_content) == (10, None, "", False)

    @pytest.mark.parametrize("whole", [True, False])
    def test_content_is_returned_where_it_is_asked_for(self, whole):
        with CortexMem(session(0.9, 0.9, a=0.9), Spy()) as memory:
            (hit,) = memory.layered_semantic_search("plans", SearchOptions(include_content=whole))
        assert hit.content == ("message a" if whole else "")

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"participants": ["Ann"]}, {"a"}),
            ({"created": {"from": "2026-01-02"}}, {"b"}),
            ({"created": {"before": "2026-01-02"}}, {"a"}),
            ({"dimension": "session"}, {"a", "b"}),
            ({"dimension": "user"}, set()),
            ({"scope": f"{SESSION}/a"}, {"a"}),
        ],
    )
    def test_filters(self, options, expected):
        """The directory bears what its messages do, so that its abstract is in scope."""
        day = 86_400.0
        first = 1_767_225_600.0  # 2026-01-01
        messages = [
            message("a", participants=("Ann", "Bob"), created_at=first, l0="x", l1="y"),
            message("b", participants=("Cid",), created_at=first + day, l0="x", l1="y"),
        ]
        cosines = {layer: {entry.id: 0.9 for entry in messages} for layer in LAYER_RECIPES}
        assert found(filled(messages, cosines), **options).keys() == expected

    def test_an_unknown_dimension_is_refused(self):
        with pytest.raises(ConfigError, match="unknown dimension 'users';"):
            SearchOptions(dimension="users").filters()

    @pytest.mark.parametrize("value", [-2.0, 1.5, float("nan")])
    def test_a_threshold_is_a_similarity(self, value):
        with pytest.raises(ConfigError, match="-1 and 1"):
            DOCUMENTED.config(10, threshold=value)

    def test_other_systems_have_no_threshold(self):
        with pytest.raises(ConfigError, match="threshold of similarity"):
            find_system("echovault").config(10, threshold=0.4)

    def test_a_prefix_is_plain_text_in_sql_and_in_python(self):
        """No wildcard, no case folding, and no stop at a slash."""
        names = ["cortex://session/a", "cortex://session/ab", "cortex://Session/a", "x cortex://session/a", "c%"]
        vault = Vault(":memory:")
        vault.upsert(Entry(f"e{at}", uri=name) for at, name in enumerate(names))
        for prefix, expected in [("cortex://session/a", {"e0", "e1"}), ("c%", {"e4"}), ("c_rtex", set())]:
            filters = Filters.of({"uri": {"prefix": prefix}})
            assert {entry.id for entry in vault.entries(filters)} == expected
            assert {e.id for e in vault.entries() if not filters.failed(e)} == expected


class TestSnippets:
    """Section 6.1: 100 characters before and after, 200 in all, the query's words marked."""

    TEXT = "x" * 300 + " rotate keys " + "y" * 300

    def test_a_window_around_the_match_of_at_most_200_characters(self):
        part = snippet(self.TEXT, "rotate keys")
        assert len(part.text) == 200
        (first, second) = part.highlights
        assert [part.text[begin:end] for begin, end in (first, second)] == ["rotate", "keys"]
        assert 90 <= first[0] <= 100

    def test_a_match_at_the_end_keeps_what_stands_before_it(self):
        part = snippet("x " * 150 + "end", "end")
        assert part.text.endswith("end")
        assert part.text[: part.highlights[0][0]] == ("x " * 150)[-100:]

    @pytest.mark.parametrize("query", ["absent", "", "  "])
    def test_without_a_match_it_is_the_beginning(self, query):
        assert snippet("z" * 250, query).text == "z" * 200

    def test_words_that_stand_apart_are_found(self):
        assert snippet("Keys are what we rotate.", "rotate keys").highlights == ((0, 4), (17, 23))

    def test_case_is_kept_and_ignored(self):
        assert snippet("ROTATE", "rotate").highlights == ((0, 6),)

    def test_the_program_shows_more_than_200_characters(self):
        assert len(snippet_shipped(self.TEXT, "rotate keys")) == 3 + 200 + len("rotate keys")


class Chatty(ThreadingHTTPServer):
    """A loopback server that answers like a language model; `reply` is what it says, `seen` what it was asked."""

    def __init__(self, reply, status=200, delay=0.0):
        self.reply, self.status, self.delay, self.seen = reply, status, delay, []
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, body))
        threading.Event().wait(self.server.delay)
        reply = self.server.reply
        content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def chatty():
    servers = []

    def start(*arguments, **named):
        servers.append(Chatty(*arguments, **named))
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def said(text):
    return {"choices": [{"message": {"content": text}}]}


class TestRewriting:
    """Section 4.2, through an OpenAI-compatible endpoint."""

    def test_the_rewritten_query_is_embedded_and_the_asked_one_is_quoted(self, chatty):
        server, spy = chatty(said("message plan roadmap\nand more")), Spy()
        vault = session(0.9, 0.9, a=0.9)
        with CortexMem(vault, spy, chat=ChatEndpoint(server.url, "small")) as memory:
            (hit,) = memory.layered_semantic_search("message a")
        assert spy.asked == ["message plan roadmap"]
        assert len(hit.snippet.highlights) == 2  # of "message a", the words that were asked
        path, body = server.seen[0]
        assert (path, body["model"], body["temperature"]) == ("/v1/chat/completions", "small", 0)

    def test_the_profile_is_sent(self, chatty):
        server = chatty(said("x"))
        profile = Entry("p", uri="cortex://user/ann/profile.md", text="Ann likes tea")
        vault = filled([profile, Entry("q", uri="cortex://user/ann/profiles.md", text="no")], {"l2": {"p": 0.9}})
        with CortexMem(vault, Spy(), chat=ChatEndpoint(server.url, "small")) as memory:
            memory.layered_semantic_search("what does she like")
        assert "Ann likes tea" in server.seen[0][1]["messages"][0]["content"]
        assert profile_of(vault) == "Ann likes tea"

    def test_a_changed_profile_is_sent_the_next_time(self, chatty):
        server = chatty(said("x"))
        vault = session(0.9, 0.9, a=0.9)
        with CortexMem(vault, Spy(), chat=ChatEndpoint(server.url, "small")) as memory:
            memory.layered_semantic_search("what does she like")
            vault.upsert([Entry("p", uri="cortex://agent/ann/profile.md", text="Ann likes coffee now")])
            memory.layered_semantic_search("what does she like")
        sent = [body["messages"][0]["content"] for _, body in server.seen]
        assert ["Ann likes coffee" in text for text in sent] == [False, True]

    @pytest.mark.parametrize(
        "reply",
        [said(""), said(" \n "), said("x" * 100), said(None), {"choices": []}, [], b"no json", b""],
    )
    def test_nonsense_leaves_the_query_as_it_is(self, chatty, reply):
        assert Rewriter(ChatEndpoint(chatty(reply).url, "m"))("rotate keys") == "rotate keys"

    def test_an_endpoint_that_fails_is_asked_again_and_then_left(self, chatty):
        server, pauses = chatty(said("x"), status=503), []
        chat = ChatEndpoint(server.url, "m", attempts=4, sleep=pauses.append)
        assert Rewriter(chat)("rotate keys") == "rotate keys"
        assert (len(server.seen), pauses) == (4, [0.25, 0.5, 1.0])

    def test_what_cannot_pass_is_asked_once(self, chatty):
        server = chatty(said("x"), status=401)
        with pytest.raises(EndpointError, match="answered with 401"):
            ChatEndpoint(server.url, "m", attempts=4).complete("hello")
        assert len(server.seen) == 1

    def test_a_slow_endpoint_leaves_the_query_as_it_is(self, chatty):
        chat = ChatEndpoint(chatty(said("other"), delay=1.0).url, "m", timeout=0.1, attempts=1)
        assert Rewriter(chat)("rotate keys") == "rotate keys"

    def test_an_answer_three_times_as_long_is_none(self):
        assert [accepted(text, "ab") for text in ("123456", "1234567")] == ["123456", "ab"]

    def test_the_environment_names_the_endpoint(self):
        assert chat_of({}) is None
        with pytest.raises(ConfigError, match="LLM_MODEL is not"):
            chat_of({"LLM_BASE_URL": "http://localhost:1"})
        chat = chat_of({"LLM_BASE_URL": "http://localhost:1/v1/", "LLM_MODEL": "m"})
        assert chat.name == "http://localhost:1/v1 m"

    def test_the_command_line_rewrites(self, chatty, tmp_path, monkeypatch):
        write_memory(tmp_path / "memory")
        command("index", tmp_path / "memory", tmp_path / "v.db")
        monkeypatch.setenv("LLM_BASE_URL", chatty(said("weekly keys")).url)
        monkeypatch.setenv("LLM_MODEL", "small")
        document = command(
            "search", tmp_path / "v.db", "rotate keys", "--system", "cortex_mem", "--set", "rewrite=true", "--json"
        )
        assert json.loads(document)["embedded"] == "weekly keys"


def command(*arguments, code=0):
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.output


def write_memory(folder, *more):
    files = {
        "session/abc/timeline/.abstract.md": "Session about keys and how to rotate keys",
        "session/abc/timeline/.overview.md": "Topics: keys, rotation. Decision: rotate keys weekly",
        "session/abc/timeline/10_00.md": "Ann: how often do we rotate keys?",
        "session/abc/timeline/10_05.md": "Bob: every week, on monday",
        "user/ann/profile.md": "Ann likes tea",
        **dict(more),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


class TestFiles:
    """Sections 3.1 and 7: layer files and URIs."""

    @pytest.mark.parametrize(
        ("uri", "directory"),
        [
            (f"{SESSION}/.abstract.md", SESSION),
            (f"{SESSION}/.overview.md", SESSION),
            (f"{SESSION}/10_00.md", SESSION),
            (SESSION, SESSION),
            ("cortex://user/preferences", "cortex://user/preferences"),
        ],
    )
    def test_the_directory_of_a_uri(self, uri, directory):
        assert directory_of(uri) == directory

    @pytest.mark.parametrize("dimension", ["resources", "user", "agent", "session"])
    def test_the_dimensions(self, dimension):
        others = [f"cortex://{one}/x/y.md" for one in DIMENSIONS]
        assert check_uri(f"cortex://{dimension}/x/y.md") in others
        vault = Vault(":memory:")
        vault.upsert(Entry(uri, uri=uri) for uri in others)
        within = SearchOptions(dimension=dimension).filters()
        assert [entry.uri for entry in vault.entries(within)] == [f"cortex://{dimension}/x/y.md"]

    @pytest.mark.parametrize(
        "uri",
        [
            "",
            "session/a",
            "http://session/a",
            "cortex://",
            "cortex://thread/a",
            "cortex://session/../user/a.md",
            "cortex://session/./a",
            "cortex://session//a",
            "cortex://user/..",
            "cortex://user/a\\..\\b",
            "cortex://user/a\0b",
        ],
    )
    def test_a_malformed_uri_is_refused(self, uri):
        with pytest.raises(DataError):
            check_uri(uri)

    def test_a_folder_becomes_a_vault(self, tmp_path):
        write_memory(tmp_path / "m")
        dataset = open_dataset(tmp_path / "m")
        assert [(e.uri, bool(e.l0), bool(e.l1), bool(e.text)) for e in dataset.entries] == [
            (SESSION, True, True, False),
            (f"{SESSION}/10_00.md", False, False, True),
            (f"{SESSION}/10_05.md", False, False, True),
            ("cortex://user/ann/profile.md", False, False, True),
        ]
        command("index", tmp_path / "m", tmp_path / "v.db")
        system = ("--system", "cortex_mem", "--set", "threshold=0.2")
        shown = json.loads(command("search", tmp_path / "v.db", "rotate keys", *system, "--json"))
        assert shown["hits"][0]["uri"] == f"{SESSION}/10_00.md"
        assert shown["progress"]["queries"] == 1

    def test_the_participants_of_a_session_stand_in_its_file(self, tmp_path):
        """As the program writes it: session/ID/.session.json."""
        session = json.dumps({"thread_id": "abc", "participants": ["user-1", "coder"], "tags": []})
        write_memory(tmp_path / "m", ("session/abc/.session.json", session), ("session/other/.session.json", "{}"))
        (tmp_path / "m" / "session" / "other" / "a.md").write_text("nobody is named")
        report = open_dataset(tmp_path / "m")
        people = {entry.uri: entry.participants for entry in report.entries}
        assert people[f"{SESSION}/10_00.md"] == people[SESSION] == ("user-1", "coder")
        assert people["cortex://user/ann/profile.md"] == people["cortex://session/other/a.md"] == ()

        command("index", tmp_path / "m", tmp_path / "v.db")
        search = ("search", tmp_path / "v.db", "rotate keys", "--system", "cortex_mem", "--json", "--filter")
        assert json.loads(command(*search, "participants=coder"))["hits"]
        assert json.loads(command(*search, "participants=nobody"))["hits"] == []

    @pytest.mark.parametrize(
        "text",
        ['{"participants": "ann"}', '{"participants": [1]}', "[]", "{", "[" * 100_000, '{"participants": NaN}'],
    )
    def test_a_session_file_that_is_none_names_nobody(self, tmp_path, text):
        write_memory(tmp_path / "m", ("session/abc/.session.json", text))
        report = open_dataset(tmp_path / "m")
        assert all(entry.participants == () for entry in report.entries)

    def test_contents_are_returned_where_they_are_asked_for(self, tmp_path):
        write_memory(tmp_path / "m")
        command("index", tmp_path / "m", tmp_path / "v.db")
        search = ("search", tmp_path / "v.db", "rotate keys", "--system", "cortex_mem", "--json")
        (first, *_) = json.loads(command(*search))["hits"]
        assert first.keys() == {"uri", "score", "snippet", "highlights"}
        (first, *_) = json.loads(command(*search, "--set", "content=true"))["hits"]
        assert first["content"] == "Ann: how often do we rotate keys?"

    def test_the_direct_search_the_dimension_and_the_intent_are_options(self, tmp_path):
        write_memory(tmp_path / "m")
        command("index", tmp_path / "m", tmp_path / "v.db")
        search = ("search", tmp_path / "v.db", "what is it to rotate keys", "--system", "cortex_mem", "--json")
        direct = json.loads(command(*search, "--set", "direct=true", "--set", "threshold=-1"))["hits"]
        assert [row["score"] for row in direct] == sorted((row["score"] for row in direct), reverse=True)
        assert {(row["uri"], row["layer"]) for row in direct} >= {(SESSION, "l0"), (SESSION, "l1")}
        users = json.loads(command(*search, "--set", "dimension=user"))["hits"]
        assert {row["uri"].split("/")[2] for row in users} == {"user"}
        assert "unknown dimension" in command(*search, "--set", "dimension=users", code=2)
        assert json.loads(command(*search))["intent"]["name"] == "factual"
        assert json.loads(command(*search, "--set", "detect_intent=false"))["intent"]["name"] == "general"
        assert "direct search" in command("search", tmp_path / "v.db", "keys", "--set", "direct=true", code=2)

    def test_a_log_holds_how_far_searches_went(self, tmp_path):
        """One search finds abstracts at the threshold, the other does without any."""
        write_memory(tmp_path / "m")
        command("index", tmp_path / "m", tmp_path / "v.db")
        log = tmp_path / "log.jsonl"
        steps = []
        for words in (("--set", "threshold=-1"), ("--set", "dimension=agent")):
            search = ("search", tmp_path / "v.db", "rotate keys", "--system", "cortex_mem", *words)
            command(*search, "--log", log)
            steps.append(json.loads(log.read_text().splitlines()[-1])["layers"]["step"])
        assert steps == [0, -1]

    def test_what_is_no_memory_is_left_out_with_a_notice(self, tmp_path):
        write_memory(tmp_path / "m", ("odd/a.md", "x"), ("user/.hidden.md", "x"))
        (tmp_path / "secret.md").write_text("secret")
        (tmp_path / "m" / "user" / "link.md").symlink_to(tmp_path / "secret.md")
        (tmp_path / "m" / "user" / "out").symlink_to(tmp_path)
        (tmp_path / "m" / "user" / "latin.md").write_bytes(b"\xff")
        report = open_dataset(tmp_path / "m")
        assert {e.uri.rpartition("/")[2] for e in report.entries} == {
            "timeline",
            "10_00.md",
            "10_05.md",
            "profile.md",
        }
        assert not any("secret" in entry.text for entry in report.entries)

    def test_a_directory_without_text_has_no_vector_of_its_text(self):
        """Where no file has details, text stands for them, and a model has a direction for an empty text, too."""
        vault = Vault(":memory:")
        vault.upsert([directory()])
        for layer in ("text", *LAYER_RECIPES):
            embed_missing(vault, Spy(), space_of(Spy(), layer, DOCUMENTED.reading.recipe))
        with CortexMem(vault, Spy()) as memory:
            assert [hit.layer for hit in memory.semantic_search("plans")] == ["l0", "l1"]
            assert memory.layered_semantic_search("plans") == []

    def test_a_changed_file_is_indexed_again_and_a_touched_one_is_not(self, tmp_path):
        write_memory(tmp_path / "m")
        command("index", tmp_path / "m", tmp_path / "v.db")
        profile = tmp_path / "m" / "user" / "ann" / "profile.md"
        os.utime(profile, (2_000_000_000, 2_000_000_000))
        again = json.loads(command("index", tmp_path / "m", tmp_path / "v.db", "--json"))
        assert (again["changed"], again["embedded"]) == (0, 0)
        profile.write_text("Ann likes coffee")
        assert json.loads(command("index", tmp_path / "m", tmp_path / "v.db", "--json"))["changed"] == 1
        with Vault(tmp_path / "v.db") as vault:
            (entry,) = vault.get(["cortex://user/ann/profile.md"])
        assert entry.text == "Ann likes coffee"

    def test_a_name_with_blanks_is_an_id_without(self, tmp_path):
        write_memory(tmp_path / "m", ("user/my notes.md", "x"))
        entry = next(e for e in open_dataset(tmp_path / "m").entries if "notes" in e.uri)
        assert (entry.id, entry.uri) == ("cortex://user/my%20notes.md", "cortex://user/my notes.md")

    @pytest.mark.parametrize("layer", [0, 1])
    def test_layers_are_cut_above_their_most_characters(self, layer):
        """An abstract may have 400 characters and an overview 4,000."""
        most = (400, 4000)[layer]
        assert [len(extract("x" * length)[layer]) for length in (most, most + 1)] == [most, most]

    @pytest.mark.parametrize("after", [" and", "\u2003and", "s and"])
    def test_an_abstract_ends_with_the_last_word_that_fits(self, after):
        """Of ten-letter words and a space each, 36 and a word of four make 400 characters."""
        words = "abcdefghij " * 36
        expected = words + "last" if after[0].isspace() else words.rstrip()
        assert extract(words + "last" + after)[0] == expected

    def test_layers_are_extracted_where_they_are_asked_for(self):
        entries = with_layers([message("a"), message("b"), Entry("own", text="First. Second.")], extract)
        made = {entry.id: (entry.l0, entry.l1) for entry in entries}
        assert made[SESSION] == ("message a", "message a\nmessage b")
        assert made["own"] == ("First.", "First.")
        assert made[f"{SESSION}/a.md"] == ("", "")

    def test_written_layers_stay(self):
        given = [directory(), message("a")]
        assert with_layers(given, extract) == given

    def test_a_model_is_asked_once_for_each_layer(self, chatty, tmp_path):
        server = chatty(said("summary"))
        summarise = ask(ChatEndpoint(server.url, "small"), tmp_path / "cache")
        assert summarise("a text") == summarise("a text") == ("summary", "summary")
        assert len(server.seen) == 2


class TestTenants:
    """Sections 6.2 and 8.2: a collection per tenant."""

    def test_the_file_is_named_for_the_tenant(self, tmp_path):
        assert vault_of(tmp_path, "acme") == tmp_path / "cortex-mem-acme.db"

    @pytest.mark.parametrize(
        "tenant",
        [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "a\0b",
            "A",
            "a.b",
            "-a",
            "a-",
            "a" * 65,
            "ä",
            "a\n",
            " a",
            "*",
            "~",
        ],
    )
    def test_a_hostile_name_is_refused(self, tmp_path, tenant):
        with pytest.raises(ConfigError, match="cannot be a"):
            vault_of(tmp_path, tenant)

    def test_a_link_is_refused(self, tmp_path):
        (tmp_path / "cortex-mem-acme.db").symlink_to(tmp_path / "elsewhere.db")
        with pytest.raises(ConfigError, match="is a link"):
            vault_of(tmp_path, "acme")

    def test_no_random_name_leaves_the_folder_or_meets_another(self, tmp_path):
        """100,000 names of the characters that matter: what is accepted is a file of the folder, and its own."""
        rng = np.random.default_rng(0)
        letters = np.array(list("ab01-_./\\A\0 ~%"))
        files = {}
        for length in rng.integers(1, 6, size=100_000):
            name = "".join(rng.choice(letters, size=length))
            try:
                path = vault_of(tmp_path, name)
            except ConfigError:
                continue
            assert path.parent == tmp_path and os.path.normpath(path) == str(path)
            assert files.setdefault(str(path).lower(), name) == name
        assert len(files) > 100

    def test_a_folder_that_is_not_there_is_named(self, tmp_path):
        write_memory(tmp_path / "m")
        said = command("index", tmp_path / "m", tmp_path / "none", "--tenant", "acme", code=4)
        assert "is no folder" in said
        assert "permission" not in said

    def test_the_command_line_keeps_tenants_apart(self, tmp_path):
        write_memory(tmp_path / "m")
        write_memory(tmp_path / "n", ("user/secret/profile.md", "the other tenant's secret"))
        (tmp_path / "all").mkdir()
        command("index", tmp_path / "m", tmp_path / "all", "--tenant", "acme")
        command("index", tmp_path / "n", tmp_path / "all", "--tenant", "umbrella")
        search = (
            "search",
            tmp_path / "all",
            "the other tenant's secret",
            "--system",
            "vector",
            "--json",
            "--tenant",
        )
        assert "secret" not in json.dumps(json.loads(command(*search, "acme"))["hits"])
        assert "secret" in json.dumps(json.loads(command(*search, "umbrella"))["hits"])
        assert "cannot be a" in command(*search, "../acme", code=2)
        for words in (("vault", "list"), ("vault", "context"), ("vault", "get", "m"), ("index", "--rebuild")):
            at = 1 if words[0] == "index" else 2
            name, more = words[:at], [one.replace("m", "cortex://user/ann/profile.md") for one in words[at:]]
            own = command(*name, tmp_path / "all", *more, "--tenant", "acme", "--json")
            assert "the other tenant" not in own
            assert "cannot be a" in command(*name, tmp_path / "all", *more, "--tenant", "../acme", code=2)
        assert "the other tenant" in command("vault", "list", tmp_path / "all", "--tenant", "umbrella", "--json")


class TestConcurrency:
    """Section 9.1."""

    def test_64_awaited_searches_answer_as_one(self):
        vault = session(0.9, 0.9, **{f"m{at}": 0.1 * at for at in range(1, 10)})

        async def many(memory):
            searches = [
                (memory.semantic_search_async if at % 2 else memory.layered_semantic_search_async)(
                    "plans", SearchOptions(limit=1 + at % 5)
                )
                for at in range(64)
            ]
            return await asyncio.gather(*searches)

        with CortexMem(vault, Spy()) as memory:
            answers = asyncio.run(many(memory))
            for at, answer in enumerate(answers):
                search = memory.semantic_search if at % 2 else memory.layered_semantic_search
                assert answer == search("plans", SearchOptions(limit=1 + at % 5))

    def test_8_threads_share_a_memory(self):
        vault = session(0.9, 0.9, **{f"m{at}": 0.1 * at for at in range(1, 10)})
        with CortexMem(vault, Spy()) as memory:
            expected, faults = memory.layered_semantic_search("plans"), []

            def work():
                for _ in range(20):
                    if memory.layered_semantic_search("plans") != expected:
                        faults.append(1)

            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert faults == []

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
                searches = [
                    memory.layered_semantic_search_async("plans", SearchOptions(limit=30)) for _ in range(64)
                ]
                return (await asyncio.gather(asyncio.to_thread(write), *searches))[1:]

            with CortexMem(vault, Spy()) as memory:
                answers = [*asyncio.run(many(memory)), memory.layered_semantic_search("plans", SearchOptions(30))]
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


class Counting:
    """A vault that counts what is read of its vectors."""

    def __init__(self, vault):
        self._vault, self.reads = vault, []

    def __getattr__(self, name):
        return getattr(self._vault, name)

    def seen_by(self, visible):
        return self

    def vectors(self, space, filters):
        self.reads.append(space.layer)
        return self._vault.vectors(space, filters)


def test_details_are_read_together_and_once():
    """Section 8.2: forty files in four directories are one reading of each layer, and none the next time."""
    homes = [f"cortex://session/s{at}/timeline" for at in range(4)]
    entries = [directory(home) for home in homes]
    entries += [Entry(f"{home}/{at}.md", uri=f"{home}/{at}.md", text="x") for home in homes for at in range(10)]
    cosines = {layer: dict.fromkeys(homes, 0.9) for layer in ("l0", "l1")}
    cosines["l2"] = {entry.id: 0.9 for entry in entries if entry.text}
    store = Counting(filled(entries, cosines))
    searcher = Searcher(store, DOCUMENTED.config(40, "spy"), Spy())
    assert len(searcher.search("plans").hits) == 40
    assert sorted(store.reads) == ["l0", "l1", "l2"]
    searcher.search("other plans")
    assert len(store.reads) == 3
    with CortexMem(store, Spy()) as memory:
        for limit, threshold in itertools.product((5, 10), (None, 0.3, 0.7)):
            assert memory.layered_semantic_search("plans", SearchOptions(limit, threshold))
            assert memory.semantic_search("plans", SearchOptions(limit, threshold))
    assert len(store.reads) == 3  # once for all who search it


class TestObservability:
    """Section 11."""

    def test_how_far_a_search_went(self):
        found = progress(session(0.45, 0.9, a=0.9, b=0.0))
        assert summary_of(found) == {
            "queries": 1,
            "hit_rates": {"l0": 1.0, "l1": 1.0, "l2": 1.0},
            "at_threshold": 0,
            "relaxed": {"1": 1},
            "full_search": 0,
            "without_result": 0,
        }

    def test_a_search_that_finds_nothing_is_counted(self):
        """The abstract opens the session at 0.5; 0.2 x 0.5 + 0.3 x 0.5 + 0.5 x 0.1 stays below it."""
        summary = summary_of(progress(session(0.5, 0.5, a=0.1)))
        assert summary["hit_rates"] == {"l0": 1.0, "l1": 1.0, "l2": 0.0}
        assert (summary["at_threshold"], summary["without_result"]) == (1, 1)

    def test_a_full_search_is_no_layered_one(self):
        summary = summary_of(progress(session(0.2, 0.9, a=0.9)))
        assert summary["hit_rates"] == {"l0": 0.0, "l1": 0.0, "l2": 0.0}
        assert (summary["full_search"], summary["without_result"]) == (1, 0)

    def test_the_time_of_every_layer(self):
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
    tuned = (
        str(config.strategy)
        .replace("0.3*l1", "0*l1", 1)
        .replace("threshold=0.4, relax=[0.3]", "threshold=0.2, relax=[]")
    )
    with pytest.raises(ConfigError, match="fixed in its") as refused:
        export(config.with_strategy(parse_strategy(tuned)), "cortex_mem")
    for change in ("weight of l1 for default 0 instead of 0.3", "threshold for factual 0.2 instead of 0.4"):
        assert change in str(refused.value)
    assert "instead of [0.3]" in str(refused.value)


def test_every_test_of_the_table_is_here():
    """docs/cortex-mem.md names no test that is not in this file or in the file it names."""
    own = Path(__file__).read_text(encoding="utf-8")
    rows = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    names = {name for row in rows for name in re.findall(r"`(test_\w+)`", row)}
    assert names
    assert [name for name in sorted(names) if f"def {name}(" not in own] == []


def test_a_query_may_carry_the_rewritten_text():
    spy = Spy()
    Searcher(session(0.9, 0.9, a=0.9), DOCUMENTED.config(10, "spy"), spy).search(
        Query("plans", rewritten="project plans")
    )
    assert spy.asked == ["project plans"]
