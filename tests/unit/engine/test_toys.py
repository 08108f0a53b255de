"""A retriever and a system are added by one file and one list entry each: the worked examples of CONTRIBUTING."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard
import steelyard_eval
from steelyard.entry import Entry
from steelyard.query import Query
from steelyard.stores.sqlite import Vault
from steelyard.testing import RetrieverContract
from steelyard.testing.retrievers import sample_entries

TOYS = Path(__file__).parent / "toys"
CORPUS = (
    ("e1", "Rate limit of the API", "Sixty requests a minute.", "2026-03-01"),
    ("e2", "Rate card", "Prices, no limit on seats.", "2026-01-01"),
    ("e3", "Retry", "Wait when the rate limit is hit.", "2026-03-31"),
    ("e4", "Login", "Sessions are opaque.", "2026-03-31"),
)


def toy(name):
    spec = importlib.util.spec_from_file_location(f"toy_{name}", TOYS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class TestTitle(RetrieverContract):
    @pytest.fixture
    def retriever(self):
        with Vault(":memory:") as vault:
            vault.upsert(sample_entries())
            yield toy("title").TitleRetriever(vault, least=0.5)


def test_the_share_of_words_in_the_title():
    with Vault(":memory:") as vault:
        vault.upsert(Entry(id_, title=title) for id_, title, _, _ in CORPUS)
        found = toy("title").TitleRetriever(vault, least=0.5).retrieve(Query("the rate limit"), None)
        strict = toy("title").TitleRetriever(vault, least=0.6).retrieve(Query("the rate limit"), None)

    assert [(f.id, f.score) for f in found] == [("e1", 1.0), ("e2", 0.5)]
    assert [f.id for f in strict] == ["e1"]


def add(file, line, import_line, entry, after):
    """What CONTRIBUTING describes: the import, and the entry of the list behind another one."""
    text = file.read_text(encoding="utf-8")
    assert text.count(line) == 1
    assert text.count(after) == 1
    file.write_text(text.replace(line, import_line).replace(after, after + entry), encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The command line of a copy of both packages in which the toys were added, and a data set."""
    home = tmp_path_factory.mktemp("toys")
    for package in (steelyard, steelyard_eval):
        source = Path(package.__file__).parent
        shutil.copytree(source, home / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    engine = home / "steelyard"
    shutil.copy(TOYS / "title.py", engine / "retrievers")
    imported = "from steelyard.retrievers import bm25, fts, tfidf, tsquery, vector\n"
    listed = imported.replace("tfidf,", "tfidf, title,")
    add(engine / "retrievers" / "__init__.py", imported, listed, "        title.TITLE,\n", "        fts.MEMORY,\n")
    shutil.copy(TOYS / "diary.py", engine / "systems")
    imported = "from steelyard.systems import baselines, cortex_mem, echovault, moltnet, soleri\n"
    listed = imported.replace("baselines,", "baselines, diary,")
    add(
        engine / "systems" / "__init__.py",
        imported,
        listed,
        "        diary.DOCUMENTED,\n",
        "        soleri.SHIPPED,\n",
    )

    def lines(records):
        return "".join(json.dumps(record) + "\n" for record in records)

    (home / "data").mkdir()
    corpus = [{"id": i, "title": t, "text": x, "created_at": day} for i, t, x, day in CORPUS]
    (home / "data" / "corpus.jsonl").write_text(lines(corpus))
    queries = [{"id": "q1", "text": "the rate limit"}, {"id": "q2", "text": "login"}]
    (home / "data" / "queries.jsonl").write_text(lines(queries))
    (home / "data" / "qrels.txt").write_text("q1 0 e1 1\nq2 0 e4 1\n")
    about = {"name": "toy", "text_for_embedding": "{title}", "as_of": "2026-03-31"}
    (home / "data" / "dataset.json").write_text(json.dumps(about))

    (home / "strict.json").write_text(json.dumps(weights(0.6)))
    (home / "shown.json").write_text(json.dumps(weights(0.5)))
    (home / "refused.json").write_text(json.dumps(weights(2)))
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(COMMANDS)],
        cwd=home,
        env=os.environ | {"PYTHONPATH": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(COMMANDS, json.loads(done.stdout), strict=True))


def weights(least):
    """A weights file of the strategy ``title``."""
    settings = {"depth": 10, "least": least}
    record = {"system": "plain", "profile": "documented", "limit": 10, "strategy": "title"}
    return record | {"schema_version": 1, "retrievers": {"title": settings}, "finish": ["cut(10)"]}


COMMANDS = {
    "compared": [
        *("compare", "data", "--embedder", "none", "--metrics", "nDCG@10,R@10", "--json", "--systems", "diary"),
        *("--strategies", "title; rrf(fts, title, k=60)", "--split", "all"),
    ],
    "indexed": ["index", "data", "memory.db", "--embedder", "none", "--json"],
    "shown": ["search", "memory.db", "the rate limit", "--weights", "shown.json", "--json"],
    "strict": ["search", "memory.db", "the rate limit", "--weights", "strict.json", "--json"],
    "refused": ["search", "memory.db", "the rate limit", "--weights", "refused.json", "--json"],
    "diary": ["search", "memory.db", "login", "--system", "diary", "--json"],
    "both words": ["search", "memory.db", "login rate", "--system", "diary", "--json"],
}
RUN = """
import contextlib, io, json, sys
from steelyard_eval.cli import main
results = []
for arguments in json.loads(sys.argv[1]).values():
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments, standalone_mode=False)
    results.append([code or 0, json.loads(out.getvalue() or "null"), err.getvalue()])
print(json.dumps(results))
"""


def test_the_retriever_is_compared_by_itself_and_within_a_fusion(run):
    """By hand: title ranks e1 first of q1 and finds e4 alone for q2, so nDCG is 1; FTS5 finds no fewer."""
    _, found, _ = run["compared"]

    means = {(record["strategy"], record["metric"]): record["mean"] for record in found["results"]}
    assert means["title", "nDCG@10"] == 1.0
    assert means["rrf(fts, title, k=60)", "R@10"] == 1.0
    assert {record["system"] for record in found["results"]} == {"diary", "plain"}


def test_the_retriever_has_a_parameter_in_weights_files(run):
    """By hand: the title of e2 has one of two words, 0.5, below a least share of 0.6."""
    assert [hit["id"] for hit in run["shown"][1]["hits"]] == ["e1", "e2"]
    assert [hit["id"] for hit in run["strict"][1]["hits"]] == ["e1"]

    code, _, error = run["refused"]
    assert code == 2
    assert "'retrievers.title.least': '2 is greater than the maximum of 1'" in error


def test_the_system_answers_in_its_own_form(run):
    """By hand: e4 alone has the word; no entry has both words of the second query."""
    assert run["diary"][1]["hits"] == [{"id": "e4", "day": "2026-03-31", "text": "Sessions are opaque."}]
    assert run["both words"][1]["hits"] == []
