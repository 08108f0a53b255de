"""Readers take twice as long for twice the input, whatever is in it: operations are counted, and not time.

A call counts as one operation, and a call of a method that walks its whole list or text (`count`, `split`) as
many as that has parts. What stands between two calls is not seen, so an `in` over a list is not, nor what
happens inside a regular expression: for these a text has 400,000 characters, which took minutes to years before,
and its reader runs in a process that is ended after `SECONDS` of CPU.
"""

import gzip
import json
import multiprocessing
import resource
import sqlite3
import sys
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import small
from small import ATTACKS

from steelyard import Entry, LsaEmbedder, SearchConfig, SteelyardError, Vault, find_system
from steelyard.base.fields import parse_number
from steelyard.base.files import STRICT_JSON, unpacked
from steelyard.extensions.cortex_client.rewriting import _is_profile
from steelyard.extensions.network.endpoint import Response
from steelyard.feedback import append_act
from steelyard.memory.query import EVERYTHING
from steelyard_eval.datasets import check, open_dataset
from steelyard_eval.extensions.endpoints.answer_form import Mentioned
from steelyard_eval.extensions.endpoints.http_search import HttpSearch
from steelyard_eval.extensions.importers import ForeignStore, benchmark, load_store, markdown
from steelyard_eval.extensions.importers.markdown import basic_homes as homes
from steelyard_eval.extensions.importers.notes import Names, entry_of, heading_of, read_note
from steelyard_eval.extensions.importers.text_systems import _without_footer, array_of, cortex_mem
from steelyard_eval.extensions.usage.session import AGENT, MEMORY, Acted, Corpus, Searched, Spoken, Wrote
from steelyard_eval.extensions.usage.transcripts import read_ubi
from steelyard_eval.extensions.usage.what_followed import search_outcomes
from steelyard_eval.gate.baseline import load_baseline
from steelyard_eval.learn.log_reader import DatasetIndex, read_log
from steelyard_eval.measures.trec_runs import read_run
from steelyard_eval.notebook.label.judgment_file import read_judgments
from steelyard_eval.recording.disk import load as load_recording
from steelyard_eval.result.document import load as load_result, render
from steelyard_eval.result.structs import Answer, DataFacts, Provenance, Result, Row

SIZE = 200
WALKS = {"casefold", "count", "index", "insert", "remove", "copy", "sort", "find", "rfind", "split", "replace"}
WALKS |= {"join"}
KNOWN = DatasetIndex({"m1": 0}, {"q1": 0}, {"token": 0}, {"q1": "token"})


def operations(run):
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


def named(n):
    return {f"k{at}": at for at in range(n)}


DATA = json.loads(Path(__file__).with_name("growth.json").read_text("utf-8"))
"""Texts: parts as they are, and [a part, what stands between] as often as the size says, {at} its number."""


def written(part, at=0):
    return (part if isinstance(part, str) else json.dumps(part)).replace("{at}", str(at))


def text_of(*parts):
    def make(n):
        made = (
            part[1].join(written(part[0], at) for at in range(n)) if isinstance(part, list) else written(part)
            for part in parts
        )
        return "".join(made).replace("{last}", str(n - 1))

    return make


WEIGHTS = find_system("fts").config().to_json()


def weights(changes, key, *parts):
    return lambda n: json.dumps({**WEIGHTS, **changes, key: json.loads(text_of(*parts)(n))})


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


def baseline(n):
    (kept,) = DATA["baseline"]["contenders"]
    record = {**DATA["baseline"], "contenders": [{**kept, "lists": kept["lists"] * n}]}
    return small.sealed(record)


def results(n):
    rows = [Row(name, "system", "fts") for name in named(n)]
    answer = Answer("alone", {"choice": "k0", "value": 0.5, "metric": "MRR"})
    return render(Result("compare", answer, Provenance("t", DataFacts("x")), rows))


def database(name, columns, values):
    def make(path, n):
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(f"CREATE TABLE {name} ({columns})")
            for at in range(n):
                db.execute(f"INSERT INTO {name} VALUES ({written(values, at)})")

    return make


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


def model(n):
    idf, components = np.zeros(n, np.float32), np.zeros((n, 1), np.float32)
    return LsaEmbedder(named(n), idf, components, ["english"]).to_arrays()[1]


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


def memories(of):
    return lambda n: {"session/s/a.md": "token"} | {written(of, at): "token" for at in range(n)}


def texts(group, kind, read):
    """The rows of a group; those of a folder begin with the name of their file."""
    for name, own in DATA[group].items():
        one = text_of(*own[kind in ("set", "folder") :])
        make = one if kind in ("text", "file") else lambda n, own=own, one=one: {own[0]: one(n)}
        yield f"{group}, {name}", (kind, make, read)


CASES = {
    **dict(texts("set", "set", check)),
    **dict(texts("json", "text", STRICT_JSON.decode)),
    **dict(texts("log", "file", lambda path: read_log(path, KNOWN, 2e9))),
    **dict(texts("act", "file", lambda path: append_act(path, "none", "m1", "accepted"))),
    **dict(texts("ubi", "file", read_ubi_log)),
    **dict(texts("run", "file", read_run)),
    **dict(texts("judgments", "file", read_judgments)),
    **dict(texts("answer", "text", read_answer)),
    **dict(texts("store", "folder", lambda path: load_store(next(path.iterdir())))),
    **{f"weights, {name}": ("file", weights(*own), SearchConfig.load) for name, own in DATA["weights"].items()},
    **{f"database, {name}": ("place", database(*own), load_store) for name, own in DATA["database"].items()},
    **{f"memories, {what}": ("folder", memories(*own), open_dataset) for what, own in DATA["memories"].items()},
    **{
        f"what followed, {what}": ("text", make, lambda events: list(search_outcomes(events, Corpus(ENTRIES))))
        for what, make in SESSIONS.items()
    },
    "weights, nested": ("file", text_of(["[", ""]), SearchConfig.load),
    "names that begin alike": ("text", lambda n: n, read_names),
    "baseline": ("file", baseline, lambda path: load_baseline(path, "")),
    "results": ("file", results, load_result),
    "a recording": ("folder", recording, load_recording),
    "vault, entries": ("place", stored(lambda n: [Entry(f"e{at}", "token") for at in range(n)]), read_vault),
    "vault, more fields": ("place", stored(lambda n: [Entry("e", extra={k: [k] for k in named(n)})]), read_vault),
    "a model": ("text", model, LsaEmbedder.from_arrays),
    "folders": ("folder", projects, lambda path: list(homes({"BASIC_MEMORY_CONFIG_DIR": str(path)}))),
    "gzip, members": ("text", lambda n: gzip.compress(b"a") * n, unpacked),
    "gzip, padding": ("text", lambda n: gzip.compress(b"a") + b"\0" * 1000 * n, unpacked),
}
"""Name -> where it lies (a text is read as it is made), how it is made of a size, and its reader."""


def laid(place, kind, make, n):
    path = place / f"{n}.json"
    if kind == "text":
        return make(n)
    if kind == "set":
        return small.written(place / str(n), **make(n))
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
    """The operations of reading twice as much are at most 2.5 times as many, and at least 1.1 times."""
    kind, make, read = CASES[what]
    once, twice = (laid(tmp_path, kind, make, n) for n in (SIZE, 2 * SIZE))
    operations(lambda: read(once))  # what is imported and cached at first
    one, two = operations(lambda: read(once)), operations(lambda: read(twice))
    assert 0 < (1 if what in AT_ONCE else 1.1) * one <= two < 2.5 * one, (one, two)


@pytest.mark.parametrize("named", [0, 100])
def test_a_text_is_not_held_against_each_entry_of_a_list_sentence_by_sentence(named):
    """What 2,000 sentences more cost: some steps each, and not one for each of 100 entries."""
    names = [f"entry-{at}" for at in range(100)]
    corpus = Corpus([Entry(name, title=f"the title of {name}", text="x") for name in names])
    shown = Searched("s", 1.0, "token", tuple(names))

    def read(n):
        list(search_outcomes([shown, Spoken(AGENT, f"{' '.join(names[:named])}. {'a b. ' * n}")], corpus))

    read(10)
    few, many = (operations(lambda n=n: read(n)) for n in (2000, 4000))
    assert many - few < 50 * 2000


def test_the_count_sees_what_is_quadratic():
    def walked(n):
        names = [str(at) for at in range(n)]
        return lambda: [names.count(name) for name in names]

    assert operations(walked(200)) > 3.5 * operations(walked(100))


LENGTH, SECONDS = 400_000, 20


def noted(store):
    note = read_note(store, "a.md")
    return entry_of(note, Names([note]))


OF_FILES = {
    "a note": noted,
    "basic memory": markdown.basic_memory.read,
    "cortex": cortex_mem.read,
    "trec": benchmark.trec.read,
}
OF_TEXTS = {"number": parse_number, "system": find_system, "array": array_of, "profile": _is_profile}


def ended(target, given):
    def run():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        with suppress(SteelyardError, ValueError):
            target(given)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join()
    return process.exitcode


@pytest.mark.parametrize("what", ATTACKS["expressions"])
def test_a_reader_ends(tmp_path, what):
    reader, name, before, piece, after = ATTACKS["expressions"][what]
    text = before + piece * (LENGTH // len(piece)) + after
    if name:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        assert ended(OF_FILES[reader], ForeignStore(tmp_path)) == 0
    else:
        assert ended(OF_TEXTS[reader], text) == 0


def test_headings_links_observations_and_remarks_at_the_end(tmp_path):
    """Headings by CommonMark 4.2 (ATX), but for one of marks alone, which keeps one as its name."""
    for line, title in ATTACKS["headings"]:
        assert heading_of(line) == title
    for link, names in ATTACKS["links"]:
        (tmp_path / "a.md").write_text(link)
        assert read_note(ForeignStore(tmp_path), "a.md").links == tuple(names)
    for line, content, context in ATTACKS["observations"]:
        found = markdown._observation(line)
        assert (found["content"], found["context"]) == (content, context)
    for text, left in ATTACKS["remarks"]:
        assert _without_footer(text) == left
