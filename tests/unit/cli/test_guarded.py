"""What strangers tried and found sound: filters, words that are syntax elsewhere, vectors that are none."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from steelyard_eval.cli.main import main

SYSTEMS = ("plain", "echovault", "soleri", "moltnet", "spec_kit")
WORDS = {
    "multi-stage": "multi-stage builds cache their layers",
    "post-merge": "a post-merge hook reloads the schema",
    "billing::refund": "billing::refund retries three times",
    "FIXME: expire": "FIXME: expire the sessions of tablets",
    "tenant:acme": "tenant:acme has a quota of its own",
    "MB/s": "the disk writes 90 MB/s at night",
    "https://docs.example.org/x/y?p=2&q=%20r#top": "see https://docs.example.org/x/y?p=2&q=%20r#top for limits",
    "lib/cache/evict.rs": "lib/cache/evict.rs drops the oldest",
    "can't reproduce flake": "can't reproduce the flake on arm",
    "can\u2019t reproduce flake": "can't reproduce the flake on arm",
    "debian 12.5": "images are built on debian 12.5",
    "v3.0.1-beta.2": "v3.0.1-beta.2 changed the wire format",
    "cron AND backup": "the cron job makes a backup",
    "NEAR(canary rollout, 5)": "a canary rollout takes an hour",
    '"say when': "say when the window opens",
    '"post-merge" hook': "a post-merge hook reloads the schema",
    "(golang": "golang services share a module",
    "^release": "the release train leaves on Tuesdays",
    "\U0001f9ca frozen": "\U0001f9ca frozen branches are merged on Mondays",
    "r\u00e9gion": "every r\u00e9gion has a replica",
    "parseHttpHeader": "parseHttpHeader ignores folded lines",
    "kebab_or_snake": "kebab_or_snake names are checked",
}
"""A query, and the entry that holds its words."""
ODD = (
    "*",
    "AND",
    "NOT",
    "' OR 1=1 --",
    '"',
    "()",
    "{a}",
    "^",
    "a*",
    "\u00bd",
    "\u2460",
    "\U0001f680",
    "col:",
    "\uff21\uff30\uff29",
)
"""What no entry needs to answer, and no query may fail on."""
SMALL = [f"kept{number}" for number in range(5)]


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def ids(found):
    assert found.exit_code == 0, found.output
    return [(hit.get("entry") or hit)["id"] for hit in json.loads(found.stdout)["hits"]]


def indexed(folder, entries, name):
    folder.mkdir()
    (folder / "corpus.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (folder / "queries.jsonl").write_text('{"id": "q", "text": "canary"}\n')
    (folder / "dataset.json").write_text('{"name": "made"}')
    found = run("index", folder, folder.parent / name)
    assert found.exit_code == 0, found.output
    return folder.parent / name


@pytest.fixture(scope="module")
def syntax(tmp_path_factory):
    texts = dict.fromkeys(WORDS.values())
    entries = [{"id": f"e{at:02}", "text": text} for at, text in enumerate(texts)]
    place = indexed(tmp_path_factory.mktemp("syntax") / "set", entries, "words.db")
    return place, {text: f"e{at:02}" for at, text in enumerate(texts)}


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """Five entries of a small project, and 600 that match better outside of it."""
    better = [
        {
            "id": f"loud{at:03}",
            "title": "canary rollout",
            "text": "canary rollout canary",
            "project": "huge",
            "tenant": "o1",
        }
        for at in range(600)
    ]
    long = "a canary was part of one rollout among many other words about lamps, gardens and tides"
    kept = [{"id": name, "title": "notes", "text": long, "project": "tiny", "tenant": "o2"} for name in SMALL]
    return indexed(tmp_path_factory.mktemp("crowded") / "set", [*better, *kept], "crowd.db")


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    "narrowed",
    [("--filter", "project=tiny"), ("--scope", "tenant=o2"), ("--scope", "project=tiny", "--filter", "tenant=o2")],
)
def test_better_matches_outside_take_no_place(crowded, system, narrowed):
    found = run("search", crowded, "canary rollout", "--system", system, "--json", *narrowed)
    assert sorted(ids(found)) == SMALL


@pytest.mark.parametrize("name", ["loud000", "nowhere"])
def test_what_is_hidden_is_not_there(crowded, name):
    """An entry that is hidden and one that never was end alike but for their names."""
    found = run("vault", "get", crowded, name, "--scope", "tenant=o2")
    assert found.exit_code == 2
    assert found.output.replace(name, "ID") == run(
        "vault", "get", crowded, "absent", "--scope", "tenant=o2"
    ).output.replace("absent", "ID")


@pytest.mark.parametrize("system", SYSTEMS)
def test_words_that_are_syntax_elsewhere_find_what_holds_them(syntax, system):
    place, names = syntax
    for query, text in WORDS.items():
        assert names[text] in ids(run("search", place, query, "--system", system, "--json")), (query, text)


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_query_is_a_fault_and_an_empty_one_is_told(syntax, system):
    place, _ = syntax
    for query in ODD:
        assert run("search", place, "--system", system, "--json", "--", query).exit_code == 0, query
    for query in ("", "   ", "\t"):
        assert run("search", place, query, "--system", system).exit_code == 2


def unsound(rows, row):
    rows[1] = row
    return rows


@pytest.mark.parametrize(
    ("file", "make"),
    [
        ("corpus", lambda rows: unsound(rows, 0)),
        ("corpus", lambda rows: unsound(rows, np.nan)),
        ("corpus", lambda rows: unsound(rows, np.inf)),
        ("queries", lambda rows: unsound(rows, 0)),
        ("queries", lambda rows: unsound(rows, np.nan)),
        ("queries", lambda rows: rows[:, :3]),
        ("corpus", lambda rows: rows[:1]),
    ],
    ids=["zero entry", "NaN", "infinite", "zero query", "NaN query", "other dimension", "too few"],
)
def test_vectors_that_are_none_are_one_fault_each(tmp_path, file, make):
    tables = {"corpus": ["lamp", "tide"], "queries": ["garden", "tides"]}
    for name, texts in tables.items():
        rows = [{"id": f"{name[0]}{at}", "text": text} for at, text in enumerate(texts)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        vectors = np.arange(1, 9, dtype=np.float16).reshape(2, 4)
        np.save(tmp_path / f"{name}.tiny.f16.npy", make(vectors) if name == file else vectors)
    (tmp_path / "qrels.txt").write_text("q0 0 c0 1\n")
    (tmp_path / "dataset.json").write_text('{"name": "made"}')
    checked = run("check", tmp_path, "--json")
    faults = json.loads(checked.stdout)["faults"]
    assert checked.exit_code == 2
    assert len(faults) == 1 and faults[0].count(".tiny.f16.npy") and ": " in faults[0]
    assert run("compare", tmp_path).exit_code == 2
