"""Tools of MCP servers as contenders: one written by hand, and one of the official SDK where that is."""

import json
import os
import shlex
import shutil
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from shared import tabled

from steelyard import Entry, Query
from steelyard.base import errors
from steelyard.base.errors import ConfigError, DataError, MachineError
from steelyard_eval.compare import compare
from steelyard_eval.compare.contenders import read
from steelyard_eval.extensions.endpoints.mcp_search import McpSearch

SERVER = Path(__file__).with_name("mcp_server.py")
SDK = sys.executable if find_spec("mcp") else os.environ.get("STEELYARD_MCP_PYTHON", "")
"""A Python that has the official SDK."""
LONG = [Entry(f"0f9a{at:04}-2b7c-4f2e", title=f"Note {at}") for at in range(20)]
"""Entries with ids as programs make them."""


@pytest.fixture(scope="module")
def lists(dataset):
    """A list a query, the same judged and unjudged entries in each form: text -> ids."""
    ids, found = [entry.id for entry in dataset.entries], {}
    for at, query in enumerate(dataset.queries):
        judged = sorted(dataset.qrels[query.id])[:4]
        found[query.text] = list(dict.fromkeys([ids[(7 * at) % len(ids)], *judged, *ids[at : at + 4]]))
    return found


@pytest.fixture(scope="module")
def answers(dataset, lists, tmp_path_factory):
    """The file that servers answer from."""
    path = tmp_path_factory.mktemp("mcp") / "lists.json"
    long = {"which": [entry.id for entry in LONG[3:0:-1]]}
    titles = {entry.id: entry.title for entry in (*LONG, *dataset.entries)}
    path.write_text(json.dumps(lists | long | {"titles": titles}))
    return path


@pytest.fixture(scope="module")
def server(answers):
    """The command of a server of one form, as `compare` takes it."""
    return lambda form: f"mcp:{shlex.join([sys.executable, str(SERVER), form, str(answers)])}#search"


def asked(text, timeout=20.0, entries=LONG):
    """The answer of one query, and the notices."""
    with replace(McpSearch.of(text), timeout=timeout).opened(entries) as session:
        return session.ask(Query("which", id="q1"), 10), session.notices


def assert_measured_alike(dataset, lists, text):
    """The values of a server are those of a function with its lists; what is said of it."""
    found = compare(dataset, {"mine": lambda query: lists[query.text], "today": text}, embedder="none")
    for measure, values in found.values["mine"].items():
        assert found.values["today"][measure].tolist() == values.tolist()
    return found


def test_a_server_is_measured_as_a_function_with_its_lists(dataset, lists, server):
    found = assert_measured_alike(dataset, lists, server("plain"))
    notes = [note for note in found.notices if note.startswith("today: ")]
    arguments, most, place = notes
    assert json.loads(arguments.partition("with ")[2]) == {"query": "{query}", "limit": "{limit}"}
    assert " 50 " in most
    assert "results[*].id" in place


@tabled
def test_the_form_of_arguments_and_answers_is_guessed_and_told(server, form, place):
    ids, notices = asked(server(form))
    assert ids == [entry.id for entry in LONG[3:0:-1]]
    assert [notice for notice in notices if f" {place}; " in notice]


def test_what_is_matched_by_other_names_is_counted(server):
    assert [notice for notice in asked(server("titles"))[1] if notice.endswith(": 3 by title")]
    twice = [*LONG, Entry("other", title="Note 2")]
    ids, notices = asked(server("titles"), entries=twice)
    assert ids == [LONG[3].id, "Note 2", LONG[1].id]  # two entries have that title
    assert [notice for notice in notices if notice.startswith("1 places")]


def is_running(number):
    state = Path(f"/proc/{number}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


class TestServers:
    def test_arguments_and_paths_are_mapped_by_hand(self, server):
        text = server("demanding") + '&arguments={"query": "{query}", "project": "a"}&ids=results[1:].id'
        ids, notices = asked(text)
        assert ids == [LONG[2].id, LONG[1].id]
        (notice,) = notices
        assert "no limit" in notice

    @tabled
    def test_what_cannot_be_used_ends_with_one_message(self, server, form, error, rule):
        with pytest.raises(getattr(errors, error), match=rule):
            asked(server(form), timeout=0.5 if form in ("silent", "chatter", "pinging") else 30.0)

    def test_no_results_and_what_is_nested_too_deep_are_empty_lists(self, server):
        assert [asked(server(form))[0] for form in ("nothing", "deep")] == [[], []]

    def test_a_path_into_prose_is_refused(self, server):
        with pytest.raises(DataError, match=r"prose.*ids="):
            asked(server("prose") + "&ids=results[*].id")

    def test_the_server_and_what_it_started_end_with_the_comparison(self, server, answers):
        asked(server("family"))
        running = Path(f"{answers}.pid").read_text().split()
        for _ in range(1000):  # a killed process takes a moment to go
            running = [number for number in running if is_running(number)]
            time.sleep(0.01 if running else 0)
        assert running == []

    def test_a_key_in_the_command_is_shown_nowhere(self, dataset, server):
        header = "-H 'Authorization: Bearer zyxwvuts98765'"
        keys = f"--api-key 0f9a2b7c1d2e --other x LLM_TOKEN=abcdefgh12345 {header}"
        text = server("plain").replace("#search", f" {keys}#search")
        found = compare(dataset, f"today={text}", embedder="none")
        record = json.dumps(found.record)
        assert [key in record for key in ("0f9a2b7c1d2e", "abcdefgh12345", "zyxwvuts98765")] == [False] * 3
        words = shlex.split(read(text).source)
        masked = ["--api-key", "***", "--other", "x", "LLM_TOKEN=***", "-H", "Authorization: ***#search"]
        assert words[-len(masked) :] == masked
        assert McpSearch.of(text).hidden("refuses zyxwvuts98765") == "refuses ***"

    @pytest.mark.parametrize("form", ["echoing", "dying"])
    @pytest.mark.parametrize("before", [0, 285])
    def test_a_key_is_masked_before_what_a_server_says_is_cut(self, server, form, before):
        key = "0f9a2b7c1d2e-secret-0f9a2b7c1d2e"
        text = server(form).replace("#search", f" {before} --api-key {key}#search")
        with pytest.raises((DataError, MachineError)) as found:
            asked(text)
        assert "failed" in str(found.value) or "ended" in str(found.value)
        assert not any(key[at : at + 6] in str(found.value) for at in range(len(key) - 5))

    def test_a_command_or_a_tool_that_is_not_there_is_named(self, dataset, server):
        with pytest.raises(MachineError, match="/nowhere/serve"):
            compare(dataset, "mcp:/nowhere/serve#search", embedder="none")
        with pytest.raises(ConfigError, match=r"'serch'.*'search'"):
            compare(dataset, server("plain").replace("#search", "#serch"), embedder="none")

    @pytest.mark.skipif(
        not SDK, reason="the SDK is not installed; name a Python that has it in STEELYARD_MCP_PYTHON"
    )
    def test_a_server_of_the_official_sdk(self, dataset, lists, answers, tmp_path):
        shutil.copy(SERVER.with_name("sdk_server.txt"), tmp_path / "serve.py")
        command = shlex.join(["env", "-u", "PYTHONPATH", SDK, str(tmp_path / "serve.py"), str(answers)])
        assert_measured_alike(dataset, lists, f"mcp:{command}#search")
