"""What a second attack found: logs, endpoints, exports, baselines and names that hung, flooded or lied."""

import base64
import fcntl
import gzip
import json
import os
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from small import ATTACKS, answer, steelyard

import steelyard.feedback as feedback
from steelyard.base.errors import ConfigError, DataError, MachineError
from steelyard.base.files import STRICT_JSON, lines
from steelyard.config import SearchConfig
from steelyard.embedders.embed import UnavailableEmbedder, restore
from steelyard.extensions.network.endpoint import Secret
from steelyard.memory.query import Query
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard.systems import find_system
from steelyard_eval.datasets import check, open_dataset
from steelyard_eval.datasets.dataset import hashed
from steelyard_eval.datasets.logs import decode
from steelyard_eval.export import TARGETS, export
from steelyard_eval.extensions.endpoints.http_search import HttpSearch, masked
from steelyard_eval.extensions.usage.session import Corpus
from steelyard_eval.extensions.usage.transcripts import read_ubi
from steelyard_eval.gate.baseline import SEAL
from steelyard_eval.learn import searchers as waiting
from steelyard_eval.learn.log_reader import DatasetIndex, read_log

KEY = "sk-live-0123456789"


class TestKeys:
    ECHOES = (
        KEY,
        " ".join(KEY),
        KEY.encode().hex(),
        KEY.encode().hex(":").upper(),
        *(base64.b64encode(b"x" * n + KEY.encode() + b"y").decode() for n in range(3)),
        "".join(f"%{ord(c):02X}" for c in KEY),
        json.dumps(KEY).replace("s", "\\u0073"),
    )

    @pytest.mark.parametrize("echo", ECHOES)
    def test_an_echo_is_masked_however_it_is_written(self, echo):
        told = Secret(KEY).scrub(f"invalid key {echo}!")
        assert told.startswith("invalid key ")
        assert echo[4:-4] not in told

    @pytest.mark.parametrize("name", ATTACKS["names of keys"])
    def test_a_key_in_an_address_is_masked(self, name):
        url = f"https://h/s?q={{query}}&{name}={KEY}&size=3"
        assert masked(url) == f"https://h/s?q={{query}}&{name}=***&size=3"
        assert KEY not in repr(HttpSearch(url))


class TestAnEndpoint:
    @pytest.mark.parametrize(
        "body",
        [
            b"[" + b",".join([b"[]"] * 300_000) + b"]",
            b"[" + b",".join([b"1"] * 300_000) + b"]",
            b'["' + b"a" * 20_000 + b'"]',
            b'["\\ud800"]',
            b"[" * 100_000,
        ],
        ids=["lists", "ids", "a long id", "half a pair", "deep"],
    )
    def test_too_much_is_refused_before_it_is_searched(self, serve, body):
        url, _ = serve(lambda _: (answer(body), True))
        with pytest.raises(DataError, match=r"too many parts|longer than|not Unicode|nested too deep"):
            HttpSearch(url).ask(Query("t", id="q1"), 10)

    def test_a_connection_that_was_closed_silently_is_tried_once_more_and_not_for_ever(self, serve):
        """The second request is read and not answered: the server had given up the connection that it kept."""
        url, asked = serve(lambda at: (b"", False) if at == 2 else (answer(b'["m1"]'), True))
        search = HttpSearch(url)
        assert [search.ask(Query("t", id="q1"), 10) for _ in range(2)] == [["m1"], ["m1"]]
        assert len(asked) == 3
        url, asked = serve(lambda _: (b"", False))
        with pytest.raises(MachineError, match="broke off"):
            HttpSearch(url).ask(Query("t", id="q1"), 10)
        assert len(asked) == 2

    def test_its_key_stands_in_no_document_and_no_message(self, serve, folder, tmp_path):
        url, _ = serve(lambda _: (answer(b'["m1"]'), True))
        words = ("compare", folder, "bm25", f"{url}&api_key={KEY}", "--embedder", "none", "--json")
        outcome = steelyard(*words)
        assert (outcome.exit_code, KEY in outcome.output, "api_key=***" in outcome.output) == (0, False, True)
        url, _ = serve(lambda _: (answer(f"no key {KEY} {' '.join(KEY)}".encode(), "401 No"), True))
        outcome = steelyard("compare", folder, f"{url}&api_key={KEY}", "--embedder", "none")
        assert (outcome.exit_code, KEY in outcome.output, " ".join(KEY) in outcome.output) == (2, False, False)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ATTACKS["hostile names"])
@pytest.mark.parametrize("keywords", ["fts", "bm25"])
def test_no_export_holds_a_hostile_name(target, name, keywords):
    """By every exporter and in every place of a configuration that a file may fill with a name of its own."""
    strategy = ATTACKS["exported strategies"].get(target, f"rrf({keywords}, vector, k=60)")
    record = find_system("plain").config(10).to_json() | {"strategy": strategy, "by_intent": {}}
    record["retrievers"] = {
        one: RetrieverConfig(depth=20, field_weights={name: 2.0}, model=name).to_json() | {"filters": "before_cut"}
        for one in ("fts", "bm25", "vector")
    }
    try:
        text = str(export(SearchConfig.from_json(record), target))
    except ConfigError as error:
        assert str(error).isprintable()
        return
    if TARGETS[target].form == "json":
        fields = json.dumps(json.loads(text)).replace(json.dumps(strategy), "")
        assert not name or json.dumps(name)[1:-1] not in fields or name in ("*",)
    else:
        assert "evil" not in text
        assert text.count("rank-profile") == 1


class TestALog:
    @pytest.fixture
    def log(self, tmp_path):
        path = tmp_path / "log.jsonl"
        path.write_text('{"schema_version":1,"query_id":"a","hits":[{"object_id":"m1"}]}\n')
        return path

    @pytest.mark.parametrize("kind", ["pipe", "/dev/null", "/dev/zero", "link", "folder"])
    def test_is_a_regular_file(self, tmp_path, kind):
        path = tmp_path / "log"
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to(kind if kind != "link" else "nowhere")
        with pytest.raises(MachineError):
            feedback.append(path, [{"a": 1}])
        with suppress(MachineError):
            assert not any(feedback._lines_with(path, b"x"))
        assert not (tmp_path / "nowhere").exists()

    @pytest.mark.parametrize(
        "begin",
        [b"SQLite format 3\0", b'{\n  "system": "bm25"\n}\n', gzip.compress(b"{}", mtime=0), b'{"id":"m1"}\n'],
        ids=["vault", "weights", "compressed", "corpus"],
    )
    def test_is_not_appended_to_what_is_no_log(self, tmp_path, begin):
        path = tmp_path / "memory.db"
        path.write_bytes(begin)
        with pytest.raises(ConfigError, match=r"memory.db'? is no"):
            feedback.append(path, [{"a": 1}])
        assert path.read_bytes() == begin

    def test_a_foreign_lock_is_waited_for_and_then_named(self, log, monkeypatch):
        monkeypatch.setattr(feedback, "PATIENCE", 0.05)
        with log.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(MachineError, match="locked"):
                feedback.append_act(log, "a", "m1", "accepted")
        feedback.append_act(log, "a", "m1", "accepted")
        assert len(log.read_text().splitlines()) == 2

    def test_is_not_mapped_while_another_program_cuts_it_off(self, log, monkeypatch):
        """A mapped page that is gone ends the process; what is read is there or not."""
        log.write_text(log.read_text() * 50_000)
        read = os.pread

        def cut(handle, size, at):
            os.truncate(log, 0)
            return read(handle, size, at)

        monkeypatch.setattr(os, "pread", cut)
        assert not any(feedback._lines_with(log, b'"query_id":"b"'))

    def test_ids_are_found_across_the_blocks_in_which_it_is_read(self, log, monkeypatch):
        monkeypatch.setattr(feedback, "BLOCK", 7)
        assert [*feedback._lines_with(log, b'"query_id":"a"')] == log.read_bytes().splitlines()
        assert not any(feedback._lines_with(log, b'"query_id":"b"'))

    @pytest.mark.parametrize("place", ["query", "entry", "client"])
    def test_bytes_that_are_no_text_are_named(self, log, place):
        odd = {"query": "a", "entry": "m1", "client": "c"} | {place: "\udcff"}
        with pytest.raises(ConfigError, match="valid Unicode"):
            feedback.append_act(log, odd["query"], odd["entry"], "accepted", odd["client"])


KNOWN = {"entries": {"m1": 0}, "by_id": {"q1": 0}, "by_text": {"token": 0}, "texts": {"q1": "token"}}


ACT = '{"schema_version":1,"query_id":"a","actions":[{"action_name":"accepted","object_id":"m1"}]}'


def impression(name, **more):
    hits = [{"object_id": "m1", "position": 1}]
    stamp = {"schema_version": 1, "timestamp": "2026-01-01T00:00:00Z", "client_id": name}
    return json.dumps({**stamp, "query_id": name, "user_query": "token", "hits": hits, **more})


class TestWhatWaits:
    def test_acts_are_added_to_the_list_that_is_there(self):
        """Each act made a list of all acts before it: 80,000 on one impression took eight seconds."""
        held = waiting.Waiting()
        line = decode(impression("a").encode())
        assert list(held.put(line, 1, 10)) == []
        act = decode(ACT.encode())
        list(held.act(act, 10))
        first = line.actions
        list(held.act(act, 10))
        assert line.actions is first
        assert len(first) == 2

    def test_is_bounded_by_its_bytes(self, monkeypatch):
        monkeypatch.setattr(waiting, "ROOM", 100)
        held = waiting.Waiting()
        gone = [n for at in range(10) for _, n in held.put(decode(impression(str(at)).encode()), at, 30)]
        assert gone == [0, 1, 2, 3, 4, 5, 6]
        assert [number for _, number in held.rest()] == [7, 8, 9]

    def test_acts_on_what_went_are_counted(self, tmp_path, monkeypatch):
        monkeypatch.setattr(waiting, "ROOM", 10)
        (tmp_path / "log").write_text(f"{impression('a')}\n{ACT}\n")
        census = read_log(tmp_path / "log", DatasetIndex(**KNOWN), 2e9).census
        assert (census.impressions, census.acts) == (1, 0)
        assert dict(census.rejected) == {"acts on an impression that is not in the log, or long past": 1}


class TestCompressed:
    def test_a_log_that_unpacks_to_too_much_is_refused(self, tmp_path, monkeypatch):
        """Both were read to their end, whatever that was."""
        monkeypatch.setattr("steelyard.base.files.LEAST_UNPACKED", 8 * 2**20)
        bomb = gzip.compress(b"\n" * 2**20, 9) * 10
        for name, read in (
            ("log.jsonl.gz", lambda path: read_log(path, DatasetIndex(**KNOWN), 2e9)),
            ("ubi.jsonl.gz", lambda path: list(read_ubi([path], Corpus([]), "", Counter()))),
        ):
            (tmp_path / name).write_bytes(bomb)
            with pytest.raises(DataError, match="than 8 MB"):
                read(tmp_path / name)

    def test_lines_are_numbered_over_blank_ones_and_cut_when_they_are_long(self, tmp_path, monkeypatch):
        monkeypatch.setattr("steelyard.base.files.READ_BYTES", 5)
        (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\n\n \r\nlonger than ten\n\nend"))
        assert list(lines(tmp_path / "a.gz", 10)) == [(1, b"one"), (4, b"longer than"), (6, b"end")]


@pytest.mark.parametrize(
    ("ids", "query", "counted"),
    [*((ids, "x", False) for ids in (7, {"a": 1}, "abc", True)), (["a"], "\ud800", True)],
)
def test_odd_lines_of_ubi_are_left_out(tmp_path, ids, query, counted):
    line, faults = {"query_id": "1", "user_query": query, "query_response_hit_ids": ids}, Counter()
    (tmp_path / "u").write_text(json.dumps(line))
    assert list(read_ubi([tmp_path / "u"], Corpus([]), "", faults)) == []
    assert faults.total() == 1 or not counted


@pytest.fixture
def baseline(folder):
    """A baseline of the folder, and what gates it."""
    words = ("gate", folder, "--baseline", folder / "b.json")
    assert steelyard(*words, "bm25", "--update", "--reason", "x", "--embedder", "none").exit_code == 0
    return folder / "b.json", words


@pytest.mark.parametrize("what", ["none", "cut", "doubled", "of another query", "1e308", "limit"])
def test_odd_baselines_that_are_sealed_again_end_in_one_message(baseline, what):
    path, words = baseline
    record = STRICT_JSON.decode(path.read_text())
    del record[SEAL]
    (kept,) = record["contenders"]
    rows = kept["lists"]
    other, huge = {**rows[0], "id": "elsewhere"}, {**rows[0], "values": [1e308, -1e308, 1e308]}
    lists = {"cut": rows[:1], "doubled": rows * 2, "of another query": [other, rows[1]], "1e308": [huge, rows[1]]}
    record |= {"none": {"contenders": []}, "limit": {"limit": 10**200}}.get(what, {})
    kept["lists"] = lists.get(what, rows)
    path.write_text(json.dumps({**record, SEAL: hashed(record)}))
    for more in ((), ("bm25",), ("bm25", "--update", "--reason", "y")):
        assert steelyard(*words, *more).exit_code == 2


def test_a_baseline_is_read_by_query_and_not_by_line(folder, baseline):
    rows = (folder / "queries.jsonl").read_text().splitlines()
    (folder / "queries.jsonl").write_text("\n".join(reversed(rows)))
    assert steelyard(*baseline[1]).exit_code == 0


def test_a_pipe_among_memories_is_left_out(tmp_path):
    (tmp_path / "session").mkdir()
    (tmp_path / "session" / "a.md").write_text("a token")
    (tmp_path / "session" / ".abstract.md").write_text("of tokens")
    os.mkfifo(tmp_path / "session" / "b.md")
    assert [entry.text for entry in open_dataset(tmp_path).entries if entry.text] == ["a token"]


def test_the_shape_of_a_hostile_array_warns_nobody(folder, recwarn):
    """numpy multiplies the numbers of a shape before it looks at the file."""
    header = {"descr": "<f2", "fortran_order": False, "shape": (2**62, 2**62)}
    with (folder / "corpus.m.f16.npy").open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
    assert check(folder).faults
    assert [str(one.message) for one in recwarn] == []


@pytest.mark.parametrize("settings", [[], "x", None, 3])
def test_settings_of_an_embedder_may_be_any_json(settings):
    assert isinstance(restore("api", settings, {}), UnavailableEmbedder)
