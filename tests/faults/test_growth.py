"""Readers take twice as long for twice the input, whatever is in it: operations are counted, and not time.

A call counts as one operation, and a call of a method that walks its whole list or text (`count`, `split`)
as many as that has parts. What stands between two calls is not seen, so an `in` over a list is not.
"""

import gzip
import json
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from unittest.mock import patch

import numpy as np
import pytest
import small

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
from steelyard_eval.datasets.dataset import hashed
from steelyard_eval.extensions.endpoints.answer_form import Mentioned
from steelyard_eval.extensions.endpoints.http_search import HttpSearch
from steelyard_eval.extensions.importers import load_store
from steelyard_eval.extensions.importers.markdown import basic_homes as homes
from steelyard_eval.extensions.usage.session import AGENT, MEMORY, Acted, Corpus, Searched, Spoken, Wrote
from steelyard_eval.extensions.usage.transcripts import read_ubi
from steelyard_eval.extensions.usage.what_followed import followed
from steelyard_eval.gate.baseline import SEAL, load_baseline
from steelyard_eval.learn.log_reader import DatasetIndex, read_log
from steelyard_eval.measures.trec_runs import read_run
from steelyard_eval.notebook.label.judgment_file import read_judgments
from steelyard_eval.recording.disk import load as load_recording
from steelyard_eval.result.document import load as load_result
from steelyard_eval.result.document import render
from steelyard_eval.result.structs import Answer, DataFacts, Provenance, Result, Row

SIZE = 400
WALKS = {"casefold", "count", "index", "insert", "remove", "copy", "sort", "find", "rfind", "split", "replace"}
WALKS |= {"join"}
KNOWN = DatasetIndex({"m1": 0}, {"q1": 0}, {"token": 0}, {"q1": "token"})


def operations(run) -> int:
    counted = 0

    def see(frame, event, called):
        nonlocal counted
        if event not in ("call", "c_call"):
            return
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


AT_ONCE = ("a model",)
"""Calls of C, whatever the size. Of all others more is counted for more: none refuses before it reads."""


def grows(make, read, least=1.1):
    """The operations of reading twice as much are at most 2.5 times as many, and at least so many times."""
    small, large = make(SIZE), make(2 * SIZE)
    operations(lambda: read(small))  # what is imported and cached at first
    one, two = operations(lambda: read(small)), operations(lambda: read(large))
    assert 0 < least * one <= two < 2.5 * one, (one, two)


def keys(n):
    return ", ".join(f'"k{at}": 0' for at in range(n))


def named(n):
    return {f"k{at}": at for at in range(n)}


def lines(make):
    return lambda n: "".join(f"{make(at)}\n" for at in range(n))


# What readers read, by name: of a size


LINES = {
    "distinct": lambda at: f'{{"id": "e{at}", "text": "word{at}"}}',
    "the same": lambda at: '{"id": "m1", "text": "token"}',
    "broken": lambda at: "x",
}
OF_A_SET = {
    "dataset.json: a key twice": ("dataset.json", lambda n: f'{{{keys(n)}, "k{n - 1}": 1}}'),
    "dataset.json: files": ("dataset.json", lambda n: f'{{"name": "x", "files": {{{keys(n)}}}}}'),
    **{f"corpus: entries, {what}": ("corpus.jsonl", lines(make)) for what, make in LINES.items()},
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
    **{f"queries, {what}": ("queries.jsonl", lines(make)) for what, make in LINES.items()},
    "queries: filter": ("queries.jsonl", lambda n: f'{{"id": "q1", "text": "x", "filter": {{{keys(n)}}}}}\n'),
    "qrels: unknown": ("qrels.txt", lines(lambda at: f"q{at} 0 m1 1")),
    "qrels: broken": ("qrels.txt", lines(lambda at: "x")),
    "log: acts": ("feedback.jsonl", lines(lambda at: '{"schema_version": 1, "query_id": "a", "actions": []}')),
}


WEIGHTS = find_system("fts").config().to_json()


def weights(**changes):
    return json.dumps({**WEIGHTS, **changes})


OF_WEIGHTS = {
    "by_intent": lambda n: weights(by_intent={f"i{at}": "fts" for at in range(n)}),
    "retrievers": lambda n: weights(retrievers={name: {} for name in named(n)}),
    "recorded lists": lambda n: weights(system="lists", retrievers={name: {} for name in named(n)}, strategy="k1"),
    "strategy": lambda n: weights(strategy=f"rrf({', '.join(['fts'] * n)})"),
    "brackets": lambda n: weights(strategy="rrf(" * n),
    "nested": lambda n: "[" * n,
}


STRICT = {
    "a key twice at the end": lambda n: f'{{{keys(n)}, "k{n - 1}": 1}}',
    "every key twice": lambda n: f"{{{keys(n)}, {keys(n)}}}",
    "objects": lambda n: "[" + ", ".join(['{"a": 1}'] * n) + "]",
}


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
}


TEXT = " ".join(f"w{at}" for at in range(100))
ENTRIES = [Entry("m1", title="one", text=TEXT, extra={"files": ["src/a.py"]}), Entry("m2", text="two")]
FOUND = Searched("s", 1.0, "token", ("m1", "m2"))
SESSIONS = {
    "what is kept and said": lambda n: [FOUND, *[Spoken(MEMORY, "a word"), Spoken(AGENT, "yes")] * n],
    "files that are opened, and edits": lambda n: [
        *(Acted((f"lib{at}/a.py",), "opened") for at in range(n)),
        *[FOUND, Wrote(("x/src/a.py",))] * n,
    ],
    "files of one edit": lambda n: [FOUND, Wrote(tuple(f"{at}/src/a.py" for at in range(n // 8)))],  # 100 are read
    "searches": lambda n: [FOUND, Spoken(AGENT, "m1 says so")] * n,
}


UBI = {
    "queries": lines(lambda at: json.dumps({"query_id": str(at), "query_response_hit_ids": ["a"]})),
    "hits": lambda n: json.dumps({"query_id": "1", "query_response_hit_ids": ["a"] * n}),
}


RUNS = {
    "one list": lines(lambda at: f"q1 Q0 e{at} {at} {at} x"),
    "the same line": lines(lambda at: "q1 Q0 e 1 1 x"),
    "ties": lines(lambda at: f"q1 Q0 e{at} 1 1 x"),
}


def baseline(n):
    own = {"id": "q", "values": [0, 0, 0], "anchor": None, "first": [], "broken": {}}
    own |= {"list_hash": "", "scores_hash": ""}
    kept = {"label": "a", "kind": "system", "written": "fts", "strategy": "fts", "limit": 1, "configuration": "",
            "deep": True, "anchor_date": "", "anchor_deep": True, "lists": [own] * n}  # fmt: skip
    names = ("tool", "date", "dataset", "split", "embedder", "dialect", "platform", "because")
    record = {**dict.fromkeys(names, ""), "schema_version": 1, "limit": 1, "contenders": [kept]}
    record["hashes"] = dict.fromkeys(("corpus", "queries", "labels", "sources"), "")
    return json.dumps({**record, SEAL: hashed(record)})


def results(n):
    rows = [Row(name, "system", "fts") for name in named(n)]
    answer = Answer("alone", {"choice": "k0", "value": 0.5, "metric": "MRR"})
    return render(Result("compare", answer, Provenance("t", DataFacts("x")), rows))


OTHERS = {
    "baseline": (baseline, lambda path: load_baseline(path, "")),
    "judgments": (
        lines(lambda at: json.dumps({"query": f"q{at}", "entry": "e", "grade": 1, "note": "", "at": ""})),
        read_judgments,
    ),
    "results": (results, load_result),
}
HELD = {
    "entries": lambda n: [Entry(f"e{at}", "token") for at in range(n)],
    "unknown fields": lambda n: [Entry("e", "token", extra={name: [name] for name in named(n)})],
}


MEMORIES = {
    "files": lambda n: {f"session/s/{at}.md": "token" for at in range(n)},
    "layers": lambda n: {f"session/{at}/.abstract.md": "token" for at in range(n)},
}


def database(statements):
    def make(path, n):
        with closing(sqlite3.connect(path)) as db, db:
            for statement in statements(n):
                db.execute(statement)

    return make


def table_of(name, columns, values):
    def statements(n):
        yield f"CREATE TABLE {name} ({columns})"
        yield from (f"INSERT INTO {name} VALUES ({values(at)})" for at in range(n))

    return statements


def moltnet(n):
    names = "title content entry_type injection_risk importance access_count created_at updated_at"
    row = dict.fromkeys([*names.split(), "last_accessed_at", "diary_id"])
    rows = [
        {**row, "id": f"e{at}", "content": "token", "tags": "{a,b}", "injection_threats": "[]"} for at in range(n)
    ]
    return json.dumps({"diaries": [], "diary_entries": rows, "entry_relations": []})


ENTRY = {"id": "e", "text": "token"}
MEMORY_FILE = "memory.jsonl"


def entity(name, *said):
    record = {"type": "entity", "name": name, "entityType": "x", "observations": said}
    return json.dumps(record, separators=(",", ":"))


ITEMS = "prefix, key, value, created_at, updated_at"
STORES = {
    "rows of a table": ("t.csv", lambda n: "id,text\n" + "".join(f"e{at},token\n" for at in range(n))),
    "a list of objects": ("t.json", lambda n: json.dumps([{**ENTRY, "id": str(at)} for at in range(n)])),
    "a key twice": ("t.json", lambda n: f'{{{keys(n)}, "k{n - 1}": 1}}'),
    "observations": (MEMORY_FILE, lambda n: entity("e", *["token"] * n)),
    "entities on a line": (MEMORY_FILE, lambda n: "".join(entity(str(at), "token") for at in range(n))),
    "one entity on all lines": (MEMORY_FILE, lines(lambda at: entity("e", str(at)))),
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
    "front matter": ("n/a.md", lambda n: "---\n" + "".join(f"k{at}: 1\n" for at in range(n)) + "---\ntoken\n"),
    "front matter that is none": ("n/a.md", lambda n: "---\nx: y: z\n" + "a: 1\n" * n + "---\ntoken\n"),
    "paths": ("n/a.md", lambda n: "".join(f"[x](../{at}.md#p) " for at in range(n))),
    "an index": ("n/MEMORY.md", lambda n: "".join(f"- [x](MEMORY.md) - {at}\n" for at in range(n))),
    "links": ("n/a.md", lambda n: "".join(f"[[{at}]] #t{at}\n" for at in range(n))),
}
DATABASES = {
    "rows of a database": table_of("t", "id, text", lambda at: f"'e{at}', 'token'"),
    "items of langgraph": table_of("store", ITEMS, lambda at: f"'p', 'k{at}', '{{\"text\": \"token\"}}', '', ''"),
}


ANSWERS = {
    "ids": lambda n: json.dumps(list(range(n))),
    "hits": lambda n: json.dumps({"hits": [{"id": str(at)} for at in range(n)]}),
    "wraps of the first hit": lambda n: json.dumps([{f"w{at}": {"id": 1} for at in range(n)}, *[{}] * n]),
    "a long number": lambda n: f"[{'9' * n}]",
}


MEMBERS = {
    "members": lambda n: gzip.compress(b"a") * n,
    "padding": lambda n: gzip.compress(b"a") + b"\0" * 1000 * n,
}


# Ways to read them


def read_ubi_log(path):
    return [list(one.events) for one in read_ubi([path], Corpus(ENTRIES), "", Counter())]


def read_names(n):
    names = Mentioned([Entry(f"2026-01-01-{at}", text="x") for at in range(n)])
    for at in range(n):
        names.named(f"2026-01-01-{at}-")


def read_vault(path):
    with Vault(path) as vault:
        return vault.load_model("m"), list(vault.entries(EVERYTHING))


def read_answer(text):
    class Asked:
        id, text = "q1", ""

    answer = {"exchange": lambda *_: Response(200, {}, text), "_replaced": lambda *_: text}
    with patch.multiple("steelyard_eval.extensions.endpoints.http_search", **answer):
        HttpSearch("http://h/{query}").ask(Asked(), 10)


def store_of(name):
    return lambda path: load_store(path / name.partition("/")[0])


def model(n):
    _, arrays = LsaEmbedder(named(n), np.zeros(n, np.float32), np.zeros((n, 1), np.float32)).to_arrays()
    return arrays


def recording(n):
    arrays = {f"column.k{at}": [1] for at in range(n)}
    return {"manifest.json": json.dumps({"schema_version": 2, "arrays": arrays})}


def projects(n):
    return {"config.json": json.dumps({"projects": {name: f"/nowhere/{name}" for name in named(n)}})}


def stored(entries):
    def make(path, n):
        with Vault(path, create=True) as vault:
            vault.upsert(entries(n))
            vault.save_model("m", "lsa", named(n), {})

    return make


CASES = {
    **{f"set, {what}": ("set", own, check) for what, own in OF_A_SET.items()},
    **{f"weights, {what}": ("file", make, SearchConfig.load) for what, make in OF_WEIGHTS.items()},
    **{f"json, {what}": ("text", make, STRICT_JSON.decode) for what, make in STRICT.items()},
    **{f"log, {what}": ("file", make, lambda path: read_log(path, KNOWN, 2e9)) for what, make in LOGS.items()},
    "an act looks for its impression": (
        "file",
        lines(lambda at: logged(query_id=f"i{at}", hits=HITS)),
        lambda path: append_act(path, "none", "m1", "accepted"),
    ),
    **{
        f"what followed, {what}": ("text", make, lambda events: list(followed(events, Corpus(ENTRIES))))
        for what, make in SESSIONS.items()
    },
    "names that begin alike": ("text", lambda n: n, read_names),
    **{f"ubi, {what}": ("file", make, read_ubi_log) for what, make in UBI.items()},
    **{f"run, {what}": ("file", make, read_run) for what, make in RUNS.items()},
    **{what: ("file", *own) for what, own in OTHERS.items()},
    "a recording": ("folder", recording, load_recording),
    **{f"vault, {what}": ("place", stored(make), read_vault) for what, make in HELD.items()},
    "a model": ("text", model, LsaEmbedder.from_arrays),
    **{
        f"memories, {what}": ("folder", lambda n, make=make: {"session/s/a.md": "token", **make(n)}, open_dataset)
        for what, make in MEMORIES.items()
    },
    **{
        f"store, {what}": ("folder", lambda n, own=own: {own[0]: own[1](n)}, store_of(own[0]))
        for what, own in STORES.items()
    },
    **{f"store, {what}": ("place", database(own), load_store) for what, own in DATABASES.items()},
    "the folders of a program": (
        "folder",
        projects,
        lambda path: list(homes({"BASIC_MEMORY_CONFIG_DIR": str(path)})),
    ),
    **{f"answer, {what}": ("text", make, read_answer) for what, make in ANSWERS.items()},
    **{f"gzip, {what}": ("text", make, unpacked) for what, make in MEMBERS.items()},
}
"""Name -> where it lies (a text is read as it is made), how it is made of a size, and its reader."""


def laid(place, kind, make, n):
    path = place / f"{n}.json"
    if kind == "text":
        return make(n)
    if kind == "set":
        return small.written(place / str(n), **{make[0]: make[1](n)})
    if kind == "place":
        make(path, n)
    elif kind == "file":
        content = make(n)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    else:
        for name, text in make(n).items():
            (place / str(n) / name).parent.mkdir(parents=True, exist_ok=True)
            (place / str(n) / name).write_text(text)
        return place / str(n)
    return path


@pytest.mark.parametrize("what", CASES)
def test_a_reader_takes_time_in_proportion(tmp_path, what):
    kind, make, read = CASES[what]
    grows(lambda n: laid(tmp_path, kind, make, n), read, 1 if what in AT_ONCE else 1.1)


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


def test_the_count_sees_what_is_quadratic():
    def walked(n):
        names = [str(at) for at in range(n)]
        return lambda: [names.count(name) for name in names]

    assert operations(walked(200)) > 3.5 * operations(walked(100))
