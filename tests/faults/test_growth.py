"""Readers take twice as long for twice the input, whatever is in it: operations are counted, and not time.

A call counts as one operation, and a call of a method that walks its whole list or text (`count`, `split`)
as many as that has parts. What stands between two calls is not seen, so an `in` over a list is not.
"""

import gzip
import json
import sys

import pytest

from steelyard.base.errors import SteelyardError
from steelyard.base.files import STRICT_JSON
from steelyard.base.inputs import unpacked
from steelyard.config.search_config import SearchConfig
from steelyard.feedback.log import append_act
from steelyard.net.endpoint import Answer
from steelyard.systems import find_system
from steelyard_eval.compare.http_search import HttpSearch
from steelyard_eval.datasets import check
from steelyard_eval.gate.baseline import SEAL, load_baseline
from steelyard_eval.gate.hashes import digest
from steelyard_eval.gate.history import continued, history_text, load_history
from steelyard_eval.learn.importers import from_soleri, from_ubi, open_bandit
from steelyard_eval.learn.interleaving import duels
from steelyard_eval.learn.reader import Known, read_log
from steelyard_eval.measures.runs import read_run
from steelyard_eval.notebook.label.session import read_judgments
from steelyard_eval.recording.disk import load as load_recording
from steelyard_eval.show.report.load import load_results

SIZE = 400
WALKS = {
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
KNOWN = Known({"m1": 0}, {"q1": 0}, {"token": 0}, {"q1": "token"})


def operations(run) -> int:
    """Calls, and what is walked in them."""
    counted = 0

    def see(frame, event, called):
        nonlocal counted
        if event in ("call", "c_call"):
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
@pytest.mark.parametrize("read", [lambda path: read_log(path, KNOWN, 2e9), lambda path: duels(str(path))])
def test_a_log(tmp_path, what, read):
    grows(file_of(tmp_path, LOGS[what]), read)


def test_an_act_looks_for_its_impression_in_linear_time(tmp_path):
    make = file_of(tmp_path, lines(lambda at: logged(query_id=f"i{at}", hits=HITS)))
    grows(make, lambda path: append_act(path, "none", "m1", "accepted"))


UBI = {
    "queries": lines(lambda at: json.dumps({"query_id": str(at), "query_response_hit_ids": ["a"]})),
    "events": lines(lambda at: json.dumps({"query_id": "1", "action_name": "click"})),
    "hits": lambda n: json.dumps({"query_id": "1", "query_response_hit_ids": ["a"] * n}),
    "keys twice": lambda n: f'{{{keys(n)}, "k{n - 1}": 1}}',
}


@pytest.mark.parametrize("what", UBI)
@pytest.mark.parametrize("read", [from_ubi, from_soleri])
def test_logs_of_others(tmp_path, what, read):
    grows(file_of(tmp_path, UBI[what]), lambda path: list(read([path])))


CSV = "campaign,policy,item_id,click,propensity\n"
ROWS = {
    "rows": lambda n: CSV + "".join(f"all,{('bts', 'random')[at % 2]},{at},0,0.5\n" for at in range(n)),
    "columns": lambda n: f"{','.join(named(n))}\n{',' * n}\n",
    "an open quote": lambda n: f'{CSV}all,bts,"' + "x\n" * n,
    "blank": lambda n: CSV + "\n" * n,
}


@pytest.mark.parametrize("what", ROWS)
@pytest.mark.parametrize("name", ["feedback.csv", "feedback.csv.gz"])
def test_open_bandit(tmp_path, what, name, monkeypatch):
    monkeypatch.setattr("steelyard_eval.learn.offpolicy.RESAMPLES", 2)
    pack = gzip.compress if name.endswith(".gz") else bytes
    grows(file_of(tmp_path, lambda n: pack(ROWS[what](n).encode()), name), open_bandit)


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
    names = ("tool", "date", "dataset", "split", "embedder", "dialect", "platform", "history")
    record = {**dict.fromkeys(names, ""), "schema_version": 1, "limit": 1, "contenders": [kept]}
    record["hashes"] = dict.fromkeys(("corpus", "queries", "labels", "sources"), "")
    return json.dumps({**record, SEAL: digest(record)})


def history(n):
    keys = ("date", "who", "because", "tool", "accepted_worse", "comparable", "hashes", "contenders")
    found = []
    for _ in range(n):
        found = continued(found, dict.fromkeys(keys, ""))
    return history_text(found)


OTHERS = {
    "baseline": (baseline, lambda path: load_baseline(path, "")),
    "baseline, a key twice": (STRICT["every key twice"], lambda path: load_baseline(path, "")),
    "history": (history, load_history),
    "judgments": (
        lines(lambda at: json.dumps({"query": f"q{at}", "entry": "e", "grade": 1, "note": "", "at": ""})),
        read_judgments,
    ),
    "results": (lambda n: f'{{"schema_version": 1, {keys(n)}}}', load_results),
    "results, a key twice": (STRICT["every key twice"], load_results),
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


ANSWERS = {
    "ids": lambda n: json.dumps(list(range(n))),
    "hits": lambda n: json.dumps({"hits": [{"id": str(at)} for at in range(n)]}),
    "lists": lambda n: f"[{','.join(['[]'] * n)}]",
    "a long number": lambda n: f"[{'9' * n}]",
}


@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer_of_an_endpoint(what, monkeypatch):
    monkeypatch.setattr("steelyard_eval.compare.http_search.exchange", lambda text, *_: Answer(200, {}, text))
    search = HttpSearch("http://h/{query}")

    class Asked:
        id, text = "q1", ""

    def read(text):
        monkeypatch.setattr("steelyard_eval.compare.http_search._replaced", lambda *_: text)
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
