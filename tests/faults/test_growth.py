"""Readers take twice as long for twice the input, whatever is in it: operations are counted, and not time.

A call counts as one operation, and a call of a method that walks its whole list or text (`count`, `split`)
as many as that has parts. What stands between two calls is not seen, so an `in` over a list is not.
"""

import gzip
import importlib.util
import json
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from steelyard.base.errors import SteelyardError
from steelyard.base.files import STRICT_JSON, unpacked
from steelyard.config import SearchConfig
from steelyard.embedders.lsa import LsaEmbedder
from steelyard.extensions.network.endpoint import Response
from steelyard.feedback import append_act
from steelyard.memory.entry import Entry
from steelyard.memory.query import EVERYTHING
from steelyard.stores.sqlite import Vault
from steelyard.systems import find_system
from steelyard_eval.datasets import check, open_dataset
from steelyard_eval.datasets.states import hashed
from steelyard_eval.extensions.endpoints.answer_form import Mentioned
from steelyard_eval.extensions.endpoints.http_search import HttpSearch
from steelyard_eval.extensions.importers import load_store
from steelyard_eval.extensions.importers.markdown import basic_homes as homes
from steelyard_eval.extensions.usage.follow import followed
from steelyard_eval.extensions.usage.session import AGENT, MEMORY, Acted, Corpus, Searched, Spoken, Wrote
from steelyard_eval.extensions.usage.transcripts import read_ubi
from steelyard_eval.gate.baseline import SEAL, load_baseline
from steelyard_eval.learn.reader import DatasetIndex, read_log
from steelyard_eval.measures.runs import read_run
from steelyard_eval.notebook.label.judgments import read_judgments
from steelyard_eval.recording.disk import load as load_recording
from steelyard_eval.result.document import load as load_result

_spec = importlib.util.spec_from_file_location("faults_ways", Path(__file__).with_name("ways.py"))
ways = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(ways)
SIZE = 400
READERS = {
    "steelyard/base/files.py": "test_a_gzip_file[members]",
    "steelyard/config.py": "test_weights[keys]",
    "steelyard/embedders/lsa.py": "test_a_model",
    "steelyard/feedback.py": "test_an_act_looks_for_its_impression_in_linear_time",
    "steelyard/extensions/network/endpoint.py": "test_an_answer_of_an_endpoint[hits]",
    "steelyard/stores/sqlite/vault.py": "test_a_vault[entries]",
    "steelyard/stores/sqlite/schema.py": "test_a_vault[unknown fields]",
    "steelyard/stores/sqlite/check.py": "test_a_vault[entries]",
    "steelyard_eval/extensions/endpoints/answer_form.py": "test_an_answer_of_an_endpoint[hits]",
    "steelyard_eval/datasets/file_reader.py": "test_a_data_set[corpus: tags]",
    "steelyard_eval/datasets/labels.py": "test_a_data_set[corpus: tags]",
    "steelyard_eval/datasets/logs.py": "test_a_data_set[log: acts]",
    "steelyard_eval/gate/baseline.py": "test_other_files[baseline]",
    "steelyard_eval/extensions/importers/markdown.py": "test_the_folders_of_a_program",
    "steelyard_eval/extensions/importers/text_systems.py": "test_a_store[what a message has beside it]",
    "steelyard_eval/extensions/importers/database.py": "test_a_store[rows of a database]",
    "steelyard_eval/extensions/importers/mem0_langgraph.py": "test_a_store[entities]",
    "steelyard_eval/extensions/importers/source.py": "test_a_store[a list of objects]",
    "steelyard_eval/extensions/importers/table.py": "test_a_store[rows of a table]",
    "steelyard_eval/measures/runs.py": "test_a_run[ties]",
    "steelyard_eval/notebook/label/judgments.py": "test_other_files[judgments]",
    "steelyard_eval/recording/disk.py": "test_a_recording",
    "steelyard_eval/result/document.py": "test_other_files[results]",
}
"""What parses what somebody else wrote -> a test of it here, in which it has to run."""
OTHERS_THAT_PARSE = {
    "steelyard_eval/views/answered.py": "its own result, which was read or made before",
    "steelyard_eval/gate/gating.py": "copies the baseline that it replaces",
    "steelyard_eval/cli/workflow.py": "the record of an installation, which pip wrote",
    "steelyard_eval/cli/data.py": "NAME=VALUE pairs of one command line",
    "steelyard_eval/vaults/arguments.py": "NAME=VALUE pairs of one command line",
    "steelyard/extensions/postgres/vault.py": "writes ids and settings",
    "steelyard_eval/extensions/importers/held.py": "decodes the line of an entry that it made",
    "steelyard_eval/extensions/usage/gather.py": "parts of documents that session.py has read",
    "steelyard_eval/extensions/usage/impressions.py": "writes the log, and reads a key of its own",
    "steelyard_eval/extensions/usage/session.py": "lines of at most 32 MB, each decoded once",
    "steelyard_eval/extensions/usage/tools.py": "reads a file of the package",
    "steelyard_eval/extensions/importers/base.py": "reads a file of the package",
    "steelyard_eval/choose/answer.py": "compares the bytes of a copy that is there",
    "steelyard_eval/notebook/label/session.py": "copies queries.jsonl with a mark on some",
    "steelyard_eval/notebook/label/apply.py": "copies the qrels that the session wrote, appends to queries.jsonl",
    "steelyard_eval/recording/runs.py": "rows that it wrote, bounded when they are written",
    "steelyard_eval/extensions/serve/caller.py": "reads a file of the package",
    "steelyard_eval/common/configurations.py": "the first byte of a file",
    "steelyard_eval/compare/verification.py": "hands a run to ir_measures, after our own reader took it",
    "steelyard_eval/recording/disk.py": "ids and arrays, which numpy and the one decoder read once",
    "steelyard/extensions/models/provider_client.py": "the date in a header, which has a few kilobytes",
    "steelyard/extensions/cortex_client/summaries.py": "copies an answer that we kept",
    "steelyard_eval/datasets/manifest.py": "looks where a name leads",
    "steelyard_eval/choose/public.py": "reads a file of the package",
    "steelyard_eval/cli/gate_outputs.py": "copies the summary that it adds to",
    "steelyard/systems/spec_kit/words.py": "reads a file of the package",
    "steelyard_eval/views/gate_faces.py": "writes XML",
    "steelyard_eval/extensions/serve/server.py": "a message of at most 4 MB, decoded twice at most",
    "steelyard_eval/views/report/write.py": "packs what a page holds",
}
RAN = set()
"""The files whose code ran while operations were counted."""
WALKS = {
    "casefold",
    "count",
    "index",
    "insert",
    "remove",
    "copy",
    "sort",
    "find",
    "rfind",
    "split",
    "replace",
    "join",
}
KNOWN = DatasetIndex({"m1": 0}, {"q1": 0}, {"token": 0}, {"q1": "token"})


def operations(run) -> int:
    """Calls, and what is walked in them."""
    counted = 0

    def see(frame, event, called):
        nonlocal counted
        if event not in ("call", "c_call"):
            return
        RAN.add(frame.f_code.co_filename)
        counted += 1
        if event == "c_call" and getattr(called, "__name__", "") in WALKS:
            own = getattr(called, "__self__", None)
            counted += len(own) if isinstance(own, list | str | bytes | bytearray) else 0

    sys.setprofile(see)
    try:
        run()
    except (SteelyardError, ValueError):
        pass
    finally:
        sys.setprofile(None)
    return counted


@pytest.fixture(autouse=True)
def reader_ran(request):
    RAN.clear()
    yield
    own = [module for module, case in READERS.items() if case == request.node.name]
    assert [module for module in own if not any(file.endswith(f"/{module}") for file in RAN)] == []


def test_every_reader_is_counted(request):
    parses = {"file", "json", "loose json", "text", "unpack"}
    found = {module for module, kinds in ways.ways().items() if kinds & parses}
    assert found == READERS.keys() | OTHERS_THAT_PARSE.keys()
    here = {item.name for item in request.session.items if item.path == request.path}
    if not request.config.option.keyword and not any("::" in arg for arg in request.config.args):
        assert set(READERS.values()) <= here


def grows(make, read):
    """The operations of reading twice as much are at most 2.5 times as many."""
    small, large = make(SIZE), make(2 * SIZE)
    operations(lambda: read(small))  # what is imported and cached at first
    one, two = operations(lambda: read(small)), operations(lambda: read(large))
    assert 0 < two < 2.5 * one, (one, two)


def keys(n):
    return ", ".join(f'"k{at}": 0' for at in range(n))


def lines(make):
    return lambda n: "".join(f"{make(at)}\n" for at in range(n))


SET = {
    "dataset.json": '{"name": "x"}',
    "corpus.jsonl": '{"id": "m1", "text": "token"}\n',
    "queries.jsonl": '{"id": "q1", "text": "token"}\n',
    "qrels.txt": "q1 0 m1 1\n",
}
ENTRIES = {
    "distinct": lambda at: f'{{"id": "e{at}", "text": "word{at}"}}',
    "the same": lambda at: '{"id": "m1", "text": "token"}',
    "texts": lambda at: f'{{"id": "e{at}", "text": "token"}}',
    "broken": lambda at: "x",
    "of wrong types": lambda at: f'{{"id": "e{at}", "text": {at}}}',
}
OF_A_SET = {
    "dataset.json: keys": ("dataset.json", lambda n: f'{{"name": "x", {keys(n)}}}'),
    "dataset.json: a key twice": ("dataset.json", lambda n: f'{{{keys(n)}, "k{n - 1}": 1}}'),
    "dataset.json: files": ("dataset.json", lambda n: f'{{"name": "x", "files": {{{keys(n)}}}}}'),
    **{f"corpus: entries, {what}": ("corpus.jsonl", lines(make)) for what, make in ENTRIES.items()},
    "corpus: keys": ("corpus.jsonl", lambda n: f'{{"id": "m1", "text": "x", {keys(n)}}}\n'),
    "corpus: a key twice": ("corpus.jsonl", lambda n: f'{{{keys(n)}, "k{n - 1}": 1}}\n'),
    "corpus: tags": (
        "corpus.jsonl",
        lambda n: json.dumps({"id": "m1", "text": "x", "tags": [str(i) for i in range(n)]}),
    ),
    "corpus: relations": (
        "corpus.jsonl",
        lambda n: json.dumps(
            {"id": "m1", "text": "x", "relations": [{"type": "a", "target": str(i)} for i in range(n)]}
        ),
    ),
    **{f"queries, {what}": ("queries.jsonl", lines(make)) for what, make in ENTRIES.items()},
    "queries: filter": ("queries.jsonl", lambda n: f'{{"id": "q1", "text": "x", "filter": {{{keys(n)}}}}}\n'),
    "qrels: the same": ("qrels.txt", lines(lambda at: "q1 0 m1 1")),
    "qrels: unknown": ("qrels.txt", lines(lambda at: f"q{at} 0 m1 1")),
    "qrels: broken": ("qrels.txt", lines(lambda at: "x")),
    "log: acts": ("feedback.jsonl", lines(lambda at: '{"schema_version": 1, "query_id": "a", "actions": []}')),
    "log: broken": ("feedback.jsonl", lines(lambda at: "x")),
}


@pytest.mark.parametrize("what", OF_A_SET)
def test_a_data_set(tmp_path, what):
    name, make = OF_A_SET[what]

    def made(n):
        folder = tmp_path / str(n)
        folder.mkdir()
        for file, text in {**SET, name: make(n)}.items():
            (folder / file).write_text(text)
        return folder

    grows(made, check)


def file_of(tmp_path, make, name="file"):
    def made(n):
        path = tmp_path / f"{n}-{name}"
        content = make(n)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return made


WEIGHTS = find_system("fts").config().to_json()


def weights(**changes):
    return json.dumps({**WEIGHTS, **changes})


def named(n):
    return {f"k{at}": at for at in range(n)}


OF_WEIGHTS = {
    "keys": lambda n: weights(**named(n)),
    "a key twice": lambda n: f'{{{keys(n)}, "k{n - 1}": 1}}',
    "by_intent": lambda n: weights(by_intent={f"i{at}": "fts" for at in range(n)}),
    "retrievers": lambda n: weights(retrievers={name: {} for name in named(n)}),
    "recorded lists": lambda n: weights(system="lists", retrievers={name: {} for name in named(n)}, strategy="k1"),
    "field_weights": lambda n: weights(retrievers={"fts": {"field_weights": named(n)}}),
    "finish": lambda n: weights(finish=["cut(10)"] * n),
    "weights": lambda n: weights(weights=named(n)),
    "provenance": lambda n: weights(provenance=named(n)),
    "strategy": lambda n: weights(strategy=f"rrf({', '.join(['fts'] * n)})"),
    "brackets": lambda n: weights(strategy="rrf(" * n),
    "nested": lambda n: "[" * n,
}


@pytest.mark.parametrize("what", OF_WEIGHTS)
def test_weights(tmp_path, what):
    grows(file_of(tmp_path, OF_WEIGHTS[what]), SearchConfig.load)


STRICT = {
    "a key twice at the end": lambda n: f'{{{keys(n)}, "k{n - 1}": 1}}',
    "every key twice": lambda n: f"{{{keys(n)}, {keys(n)}}}",
    "lists": lambda n: f"[{', '.join(['[]'] * n)}]",
    "numbers": lambda n: f"[{', '.join(['1.5'] * n)}]",
    "objects": lambda n: "[" + ", ".join(['{"a": 1}'] * n) + "]",
}


@pytest.mark.parametrize("what", STRICT)
def test_strict_json(what):
    grows(STRICT[what], STRICT_JSON.decode)


def logged(**record):
    stamp = {"schema_version": 1, "timestamp": "2026-01-01T00:00:00Z"}
    return json.dumps({**stamp, "query_id": "a", "user_query": "token", **record})


HITS = [{"object_id": "m1", "position": 1, "interleaved": "x"}, {"object_id": "m2", "position": 2}]
ACT = {"action_name": "accepted", "object_id": "m1"}
LOGS = {
    "acts on one impression": lambda n: "\n".join([logged(hits=HITS), *[logged(actions=[ACT])] * n]),
    "distinct acts on one": lambda n: "\n".join(
        [logged(hits=HITS), *(logged(actions=[{**ACT, "object_id": f"m{at}"}]) for at in range(n))]
    ),
    "impressions that wait": lines(lambda at: logged(query_id=f"i{at}", client_id=f"c{at}", hits=HITS)),
    "impressions of one id": lines(lambda at: logged(client_id=f"c{at}", hits=HITS)),
    "acts on nothing": lines(lambda at: logged(query_id=f"i{at}", actions=[ACT])),
    "policies": lines(lambda at: logged(query_id=f"i{at}", policy=f"p{at}", hits=HITS, actions=[])),
    "broken lines": lines(lambda at: f'{{"schema_version": {at}}}'),
    "blank lines": lambda n: "\n" * n,
}


@pytest.mark.parametrize("what", LOGS)
def test_a_log(tmp_path, what):
    grows(file_of(tmp_path, LOGS[what]), lambda path: read_log(path, KNOWN, 2e9))


def test_an_act_looks_for_its_impression_in_linear_time(tmp_path):
    make = file_of(tmp_path, lines(lambda at: logged(query_id=f"i{at}", hits=HITS)))
    grows(make, lambda path: append_act(path, "none", "m1", "accepted"))


TEXT = " ".join(f"w{at}" for at in range(100))
ENTRIES = [Entry("m1", title="one", text=TEXT, extra={"files": ["src/a.py"]}), Entry("m2", text="two")]
FOUND = Searched("s", 1.0, "token", ("m1", "m2"))
SESSIONS = {
    "what is kept and said": lambda n: [FOUND, *[Spoken(MEMORY, "a word"), Spoken(AGENT, "yes")] * n],
    "files that are opened, and edits": lambda n: [
        *(Acted((f"lib{at}/a.py",), "opened") for at in range(n)),
        *[FOUND, Wrote(("x/src/a.py",))] * n,
    ],
    "files of one edit": lambda n: [FOUND, Wrote(tuple(f"{at}/src/a.py" for at in range(n)))],
    "searches": lambda n: [FOUND, Spoken(AGENT, "m1 says so")] * n,
}


@pytest.mark.parametrize("what", SESSIONS)
def test_what_followed_a_search(what):
    corpus = Corpus(ENTRIES)
    grows(SESSIONS[what], lambda events: list(followed(events, corpus)))


@pytest.mark.parametrize("named", [0, 100])
def test_a_text_is_not_held_against_each_entry_of_a_list_sentence_by_sentence(named):
    """What 2,000 sentences more cost: some steps each, and not one for each of 100 entries."""
    names = [f"entry-{at}" for at in range(100)]
    corpus = Corpus([Entry(name, title=f"the title of {name}", text="x") for name in names])
    shown = Searched("s", 1.0, "token", tuple(names))

    def read(n):
        list(followed([shown, Spoken(AGENT, f"{' '.join(names[:named])}. {'a b. ' * n}")], corpus))

    read(10)
    few, many = (operations(lambda n=n: read(n)) for n in (2000, 4000))
    assert many - few < 50 * 2000


def test_names_that_begin_alike():
    def read(n):
        names = Mentioned([Entry(f"2026-01-01-{at}", text="x") for at in range(n)])
        for at in range(n):
            names.named(f"2026-01-01-{at}-")

    grows(lambda n: n, read)


UBI = {
    "queries": lines(lambda at: json.dumps({"query_id": str(at), "query_response_hit_ids": ["a"]})),
    "events": lines(lambda at: json.dumps({"query_id": "1", "action_name": "click"})),
    "hits": lambda n: json.dumps({"query_id": "1", "query_response_hit_ids": ["a"] * n}),
    "keys twice": lambda n: f'{{{keys(n)}, "k{n - 1}": 1}}',
}


@pytest.mark.parametrize("what", UBI)
def test_logs_of_others(tmp_path, what):
    grows(
        file_of(tmp_path, UBI[what]),
        lambda path: [list(one.events) for one in read_ubi([path], Corpus(ENTRIES), "", Counter())],
    )


RUNS = {
    "one list": lines(lambda at: f"q1 Q0 e{at} {at} {at} x"),
    "many lists": lines(lambda at: f"q{at} Q0 e 1 1 x"),
    "the same line": lines(lambda at: "q1 Q0 e 1 1 x"),
    "broken": lines(lambda at: "x"),
    "ties": lines(lambda at: f"q1 Q0 e{at} 1 1 x"),
}


@pytest.mark.parametrize("what", RUNS)
def test_a_run(tmp_path, what):
    grows(file_of(tmp_path, RUNS[what]), read_run)


def baseline(n):
    own = {
        "id": "q",
        "values": [0, 0, 0],
        "anchor": None,
        "list_hash": "",
        "scores_hash": "",
        "first": [],
        "broken": {},
    }
    kept = {"label": "a", "kind": "system", "written": "fts", "strategy": "fts", "limit": 1, "configuration": "",
            "deep": True, "anchor_date": "", "anchor_deep": True, "lists": [own] * n}  # fmt: skip
    names = ("tool", "date", "dataset", "split", "embedder", "dialect", "platform", "because")
    record = {**dict.fromkeys(names, ""), "schema_version": 1, "limit": 1, "contenders": [kept]}
    record["hashes"] = dict.fromkeys(("corpus", "queries", "labels", "sources"), "")
    return json.dumps({**record, SEAL: hashed(record)})


OTHERS = {
    "baseline": (baseline, lambda path: load_baseline(path, "")),
    "baseline, a key twice": (STRICT["every key twice"], lambda path: load_baseline(path, "")),
    "judgments": (
        lines(lambda at: json.dumps({"query": f"q{at}", "entry": "e", "grade": 1, "note": "", "at": ""})),
        read_judgments,
    ),
    "results": (lambda n: f'{{"version": 2, {keys(n)}}}', load_result),
    "results, a key twice": (STRICT["every key twice"], load_result),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_files(tmp_path, what):
    make, read = OTHERS[what]
    grows(file_of(tmp_path, make, "file.json"), read)


def test_a_recording(tmp_path):
    def made(n):
        folder = tmp_path / str(n)
        folder.mkdir()
        arrays = {f"column.k{at}": [1] for at in range(n)}
        (folder / "manifest.json").write_text(json.dumps({"schema_version": 2, "arrays": arrays}))
        return folder

    grows(made, load_recording)


ENTRY = {"id": "e", "text": "token"}
HELD = {
    "entries": lambda n: [Entry(f"e{at}", "token") for at in range(n)],
    "tags": lambda n: [Entry("e", "token", tags=tuple(map(str, range(n))))],
    "unknown fields": lambda n: [Entry("e", "token", extra={name: [name] for name in named(n)})],
}


@pytest.mark.parametrize("what", HELD)
def test_a_vault(tmp_path, what):
    def made(n):
        path = tmp_path / f"{n}.db"
        with Vault(path, create=True) as vault:
            vault.upsert(HELD[what](n))
            vault.save_model("m", "lsa", named(n), {})
        return path

    def read(path):
        with Vault(path) as vault:
            return vault.load_model("m"), list(vault.entries(EVERYTHING))

    grows(made, read)


def test_a_model():
    def made(n):
        vectors = (np.zeros(n, np.float32), np.zeros((n, 1), np.float32))
        _, arrays = LsaEmbedder(named(n), *vectors).to_arrays()
        return arrays

    grows(made, LsaEmbedder.from_arrays)


MEMORIES = {
    "participants": lambda n: {"session/s/.session.json": json.dumps({"participants": list(named(n))})},
    "files": lambda n: {f"session/s/{at}.md": "token" for at in range(n)},
    "layers": lambda n: {f"session/{at}/.abstract.md": "token" for at in range(n)},
}


def folder_of(tmp_path, make):
    def made(n):
        for name, text in make(n).items():
            path = tmp_path / str(n) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / str(n)

    return made


@pytest.mark.parametrize("what", MEMORIES)
def test_memory_files(tmp_path, what):
    def make(n):
        return {"session/s/a.md": "token", **MEMORIES[what](n)}

    grows(folder_of(tmp_path, make), open_dataset)


def database(tmp_path, statements):
    def made(n):
        path = tmp_path / f"{n}.db"
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as db:
            for statement in statements(n):
                db.execute(statement)
        db.close()
        return path

    return made


def table_of(name, columns, values):
    def statements(n):
        yield f"CREATE TABLE {name} ({columns})"
        yield from (f"INSERT INTO {name} VALUES ({values(at)})" for at in range(n))

    return statements


def moltnet(n):
    row = dict.fromkeys(
        ("title", "content", "entry_type", "injection_risk", "importance", "access_count", "created_at",
         "updated_at", "last_accessed_at", "diary_id")
    )  # fmt: skip
    rows = [
        {**row, "id": f"e{at}", "content": "token", "tags": "{a,b}", "injection_threats": "[]"} for at in range(n)
    ]
    return json.dumps({"diaries": [], "diary_entries": rows, "entry_relations": []})


def dump(n):
    columns = "id, title, content, tags, diary_id, entry_type, importance, access_count, embedding, injection_risk"
    rows = "".join(f"e{at}\t\\N\ttoken\t{{a,b}}\td\tx\t1\t0\t\\N\tf\n" for at in range(n))
    return f"COPY public.diary_entries ({columns}) FROM stdin;\n{rows}\\.\n"


def entity(name, said="token"):
    return json.dumps({"type": "entity", "name": name, "entityType": "x", "observations": [said]})


ITEMS = "prefix, key, value, created_at, updated_at"
STORES = {
    "rows of a table": ("t.csv", lambda n: "id,text\n" + "".join(f"e{at},token\n" for at in range(n))),
    "columns of a table": ("t.csv", lambda n: f"id,{','.join(named(n))}\ne,{','.join(['x'] * n)}\n"),
    "lines of a table": ("t.jsonl", lines(lambda at: json.dumps({**ENTRY, "id": str(at)}))),
    "a list of objects": ("t.json", lambda n: json.dumps([{**ENTRY, "id": str(at)} for at in range(n)])),
    "a key twice": ("t.json", lambda n: f'{{{keys(n)}, "k{n - 1}": 1}}'),
    "entities": (
        "memory.jsonl",
        lines(lambda at: f'{{"type":"entity","name":"e{at}","entityType":"x","observations":["token"]}}'),
    ),
    "observations": (
        "memory.jsonl",
        lambda n: json.dumps(
            {"type": "entity", "name": "e", "entityType": "x", "observations": ["token"] * n},
            separators=(",", ":"),
        ),
    ),
    "entities on a line": ("memory.jsonl", lambda n: "".join(map(entity, map(str, range(n))))),
    "one entity on all lines": ("memory.jsonl", lines(lambda at: entity("e", str(at)))),
    "points of a database": (
        "t.jsonl",
        lines(lambda at: json.dumps({"id": at, "payload": {"text": "a b", "said": f"c {at}"}, "vector": [1, at]})),
    ),
    "sentences of a row": (
        "t.json",
        lambda n: json.dumps([{"text": "a\nb" * n, "said": [f"c {at}" for at in range(n)]}]),
    ),
    "what a message has beside it": (
        "t/tenants/x/session/s/a.md",
        lambda n: (
            "# \U0001f464 User\n\n**ID**: `m1`  \n**Timestamp**: 2026-01-01 00:00:00 UTC\n\n"
            "## Content\n\ntoken\n\n"
            f"## Metadata\n\n```json\n{{{keys(n)}}}\n```\n"
        ),
    ),
    "rows of moltnet": ("export.json", moltnet),
    "rows of a dump": ("dump.sql", dump),
    "front matter": ("n/a.md", lambda n: "---\n" + "".join(f"k{at}: 1\n" for at in range(n)) + "---\ntoken\n"),
    "front matter that is none": ("n/a.md", lambda n: "---\nx: y: z\n" + "a: 1\n" * n + "---\ntoken\n"),
    "paths": ("n/a.md", lambda n: "".join(f"[x](../{at}.md#p) " for at in range(n))),
    "an index": ("n/MEMORY.md", lambda n: "".join(f"- [x](MEMORY.md) - {at}\n" for at in range(n))),
    "links": ("n/a.md", lambda n: "".join(f"[[{at}]] #t{at}\n" for at in range(n))),
    "sections": ("n/a.md", lambda n: "# token\n\ntext\n\n" * n),
    "rows of a database": table_of("t", "id, text", lambda at: f"'e{at}', 'token'"),
    "items of langgraph": table_of("store", ITEMS, lambda at: f"'p', 'k{at}', '{{\"text\": \"token\"}}', '', ''"),
}


@pytest.mark.parametrize("what", STORES)
def test_a_store(tmp_path, what):
    own = STORES[what]
    if isinstance(own, tuple):
        name, text = own
        made = folder_of(tmp_path, lambda n: {name: text(n)})
        grows(lambda n: made(n) / name.partition("/")[0], load_store)
    else:
        grows(database(tmp_path, own), load_store)


def test_the_folders_of_a_program(tmp_path):
    def made(n):
        (tmp_path / str(n)).mkdir()
        projects = {name: f"/nowhere/{name}" for name in named(n)}
        (tmp_path / str(n) / "config.json").write_text(json.dumps({"projects": projects}))
        return {"BASIC_MEMORY_CONFIG_DIR": str(tmp_path / str(n))}

    grows(made, lambda environ: list(homes(environ)))


ANSWERS = {
    "ids": lambda n: json.dumps(list(range(n))),
    "hits": lambda n: json.dumps({"hits": [{"id": str(at)} for at in range(n)]}),
    "lists": lambda n: f"[{','.join(['[]'] * n)}]",
    "wraps of the first hit": lambda n: json.dumps([{f"w{at}": {"id": 1} for at in range(n)}, *[{}] * n]),
    "a long number": lambda n: f"[{'9' * n}]",
}


@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer_of_an_endpoint(what, monkeypatch):
    module = "steelyard_eval.extensions.endpoints.http_search"
    monkeypatch.setattr(f"{module}.exchange", lambda text, *_: Response(200, {}, text))
    search = HttpSearch("http://h/{query}")

    class Asked:
        id, text = "q1", ""

    def read(text):
        monkeypatch.setattr(f"{module}._replaced", lambda *_: text)
        search.ask(Asked(), 10)

    grows(ANSWERS[what], read)


MEMBERS = {
    "members": lambda n: gzip.compress(b"a") * n,
    "empty members": lambda n: gzip.compress(b"") * n,
    "padding": lambda n: gzip.compress(b"a") + b"\0" * 1000 * n,
}


@pytest.mark.parametrize("what", MEMBERS)
def test_a_gzip_file(what):
    grows(MEMBERS[what], unpacked)


def test_the_count_sees_what_is_quadratic():
    def walked(n):
        names = [str(at) for at in range(n)]
        return lambda: [names.count(name) for name in names]

    assert operations(walked(200)) > 3.5 * operations(walked(100))
