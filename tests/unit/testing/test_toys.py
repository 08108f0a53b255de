"""The worked examples of CONTRIBUTING.md: one file and one list entry each, read from the page and run."""

import json
import math
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from shared import ROOT, beside, run_apart, vault_with, write_set
from tests.contracts.importer_contract import ImporterContract

import steelyard
import steelyard_eval
from steelyard import Entry, Searcher, find_system
from steelyard.base.errors import DataError
from steelyard.fusion import FAMILIES
from steelyard.signals import PRIORS
from steelyard.testing import FusionContract, RetrieverContract, SignalContract, StoreContract
from steelyard.testing.retrievers import sample_entries

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^`((?:engine|eval)/[\w/]+\.py)`:\n\n```(python|diff)\n(.*?)^```", PAGE, re.M | re.S)
"""What the page shows of files: path, python (the whole file) or diff (a change of it), text."""
FILES = {path: text for path, kind, text in BLOCKS if kind == "python"}
CHANGES = {path: text for path, kind, text in BLOCKS if kind == "diff"}
SAMPLES = beside(__file__, "toys.json")  # A data set, strategies of weights files, and the commands that are run
COMMANDS = SAMPLES["commands"]


def toy(name):
    """The module that the page shows under this name."""
    path = next(path for path in FILES if Path(path).stem == name)
    module = sys.modules[f"toy_{name}"] = types.ModuleType(f"toy_{name}")
    exec(compile(FILES[path], path, "exec"), vars(module))  # noqa: S102 -- our own page
    return module


@pytest.mark.parametrize("path", sorted(FILES))
def test_what_the_page_shows_is_linted(path):
    for words in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *words, "--stdin-filename", path, "-"]
        done = subprocess.run(command, input=FILES[path], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


class TestRevised(SignalContract):
    @pytest.fixture
    def signal(self, monkeypatch):
        monkeypatch.setitem(PRIORS, "revised", toy("revised").revised)
        return "revised"


class TestTitle(RetrieverContract):
    @pytest.fixture
    def retriever(self):
        with vault_with(*sample_entries()) as vault:
            yield toy("title").TitleRetriever(vault, least=0.5)


class TestDiscounted(FusionContract):
    @pytest.fixture(params=["discounted(fts, 2*vector)", "weighted_sum(1*discounted(fts, tfidf), 0.5*importance)"])
    def strategy(self, request, monkeypatch):
        monkeypatch.setitem(FAMILIES, "discounted", toy("discounted").Discounted)
        return request.param


class TestNotes(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with toy("notes").NotesFile(tmp_path / "notes.jsonl") as store:
            yield store


class TestLines(ImporterContract):
    @pytest.fixture
    def importer(self, monkeypatch):
        found = toy("lines").lines
        monkeypatch.setattr("steelyard_eval.extensions.importers.run.importers", lambda: {found.name: found})
        return found

    @pytest.fixture
    def store(self, tmp_path):
        file = tmp_path / "mine.diary"
        file.write_text("2026-03-01 Rotated the keys.\n2026-03-02 Slept.\n")
        return file


def test_what_was_written_to_the_notes_is_read_again(tmp_path):
    file = tmp_path / "notes.jsonl"
    entries = [Entry("a", title="Käse", tags=("t",), created_at=0.5, extra={"x": 1}), Entry("b")]
    with toy("notes").NotesFile(file) as store:
        store.upsert(entries)
        with pytest.raises(DataError), store.transaction():
            store.delete(["a"])
            raise DataError("broken off")
    with toy("notes").NotesFile(file) as store:
        assert list(store.entries()) == entries
    file.write_text("[1]\n")
    with pytest.raises(DataError, match=r"line 1: \[1\]"):
        toy("notes").NotesFile(file)


def test_a_searcher_takes_the_store(tmp_path, monkeypatch):
    """By hand: one of the two entries has a word of the query; FTS5 finds words, so no vectors are needed."""
    monkeypatch.chdir(tmp_path)
    Path("notes.jsonl").write_text('{"id": "a", "title": "Rotate the keys"}\n{"id": "b", "title": "Login"}\n')
    names = {"Searcher": Searcher, "Path": Path, "find_system": find_system, "NotesFile": toy("notes").NotesFile}
    exec(re.search(r"^```python\n(searcher = .*?)^```", PAGE, re.M | re.S)[1], names)  # noqa: S102 -- our own page
    assert [hit.entry.id for hit in names["result"].hits] == ["a"]


def apply(change, file):
    """A diff as the page prints it: the lines of each part without a plus are there once, and are replaced."""
    text = file.read_text(encoding="utf-8")
    for part in change.split("@@\n"):
        lines = part.splitlines(keepends=True)
        before, after = ("".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
        assert ("\n" + text).count("\n" + before) == 1, (file, before)
        text = ("\n" + text).replace("\n" + before, "\n" + after)[1:]
    file.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The command line of a copy of both packages to which the page's examples were added, and a data set."""
    home = tmp_path_factory.mktemp("toys")
    for package in (steelyard, steelyard_eval):
        source = Path(package.__file__).parent
        shutil.copytree(source, home / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in FILES.items():
        (home / path.partition("/")[2]).write_text(text, encoding="utf-8")
    for path, change in CHANGES.items():
        apply(change, home / path.partition("/")[2])

    (home / "my.diary").write_text("2026-03-01 Rotated the keys.\n2026-03-02 Slept.\n")
    qrels = "q1 0 e1 1\nq2 0 e4 1\n"
    about = {"text_for_embedding": "{title}", "as_of": "2026-03-31"}
    write_set(home / "data", SAMPLES["corpus"], SAMPLES["queries"], qrels, **about)
    for name, (least, strategy) in SAMPLES["weights"].items():
        (home / f"{name}.json").write_text(json.dumps(weights(least, strategy)))
    shown = run_apart(home, *((words, {}) for words in COMMANDS.values()))
    found = ((code, json.loads(out or "null"), error) for code, out, error in shown)
    return dict(zip(COMMANDS, found, strict=True))


def weights(least, strategy):
    """A weights file of the strategy."""
    settings = {"title": {"depth": 10, "least": least}}
    settings |= {name: {"depth": 10} for name in ("fts", "vector") if name in strategy}
    record = {"system": "plain", "profile": "documented", "limit": 10, "strategy": strategy}
    return record | {"schema_version": 1, "retrievers": settings, "finish": ["cut(10)"]}


def test_the_retriever_is_compared_by_itself_and_within_a_fusion(run):
    """By hand: title ranks e1 first of q1 and finds e4 alone for q2, so nDCG is 1; FTS5 finds no fewer."""
    _, found, _ = run["compared"]
    means = {
        (row["strategy"], metric): mean["mean"] for row in found["rows"] for metric, mean in row["means"].items()
    }
    assert means["title", "nDCG@10"] == 1.0
    assert means["rrf(fts, title, k=60)", "R@10"] == 1.0
    assert {row["system"] for row in found["rows"]} == {"diary", "plain"}


def test_the_retriever_has_a_parameter_in_weights_files(run):
    """By hand: the title of e2 has one of two words, 0.5, below a least share of 0.6."""
    assert [hit["id"] for hit in run["shown"][1]["hits"]] == ["e1", "e2"]
    assert [hit["id"] for hit in run["strict"][1]["hits"]] == ["e1"]
    code, _, error = run["refused"]
    assert code == 2
    assert "'retrievers.title.least' = 2:" in error


def test_each_part_does_its_own(run):
    """By hand: e4 alone has the word; no entry has both words of the second query.

    e1 and e2 have 1 and 0.5 of the words; e2 alone was updated after creation, so it has 0.5 + 2. e1 is first of
    both lists (1 + 3), e2 second (1 / log2(3) of that).
    """
    assert (run["imported"][1]["kind"], run["imported"][1]["counts"]) == ("lines", {"entries": 2})
    own = {"id": "e4", "day": "2026-03-31", "text": "Sessions are opaque."}
    assert run["diary"][1]["hits"] == [own | {"title": "Login", "score": 1.0}]
    assert run["both words"][1]["hits"] == []
    revised, discounted = (
        {hit["id"]: hit["score"] for hit in run[name][1]["hits"]} for name in ("revised", "discounted")
    )
    assert list(revised.items()) == [("e2", 2.5), ("e1", 1.0)]
    assert discounted == pytest.approx({"e1": 4.0, "e2": 4.0 / math.log2(3)}, abs=1e-12)


def test_the_exporter_writes_what_it_can_and_refuses_the_rest(run):
    assert run["exported"][1]["blend"] == {"fts": 0.25, "vector": 0.75, "limit": 10}
    code, _, error = run["lost"]
    assert code == 2
    assert "1 / log2(rank" in error
    assert "weighted_sum(0.5*fts, 0.5*vector, normalize=minmax)" in error
