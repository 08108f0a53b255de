"""The command line: what it prints, what it writes, and how it fails."""

import json
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from steelyard_eval.cli.main import main
from steelyard_eval.datasets.manifest import starter


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


def fails(result: Result, code: int, *parts: str) -> None:
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr, result.stderr


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vault") / "memory.db"
    assert run("index", starter(), path).exit_code == 0
    return path


def test_check_names_every_fault_with_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    shutil.copytree(starter(), folder)
    (folder / "dataset.json").write_text('{"name": "x", "text_for_embedding": "{title}"}')
    lines = (folder / "corpus.jsonl").read_text().splitlines()
    lines[2] = '{"id": broken'
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    with (folder / "qrels.txt").open("a") as stream:
        stream.write("nobody 0 nothing 1\n")

    result = run("check", folder, "--json")

    assert result.exit_code == 2
    faults = " ".join(json.loads(result.stdout)["faults"])
    assert "corpus.jsonl:3" in faults
    assert "nobody" in faults
    assert "nothing" in faults


def test_search_gives_the_documented_pointer_and_get_the_details(vault: Path) -> None:
    found = json.loads(run("search", vault, "jwt signing keys", "--json").stdout)

    assert len(found["hits"]) == 5  # EchoVault's documented default
    assert found["hits"][0]["id"] == "api-jwt-rotation"
    entry = json.loads(run("vault", "get", vault, found["hits"][0]["id"], "--json").stdout)["entries"][0]
    assert bool(entry.get("details")) == found["hits"][0]["has_details"]


def test_explain_shows_a_tree_for_every_hit(vault: Path) -> None:
    found = json.loads(run("search", vault, "jwt signing keys", "--explain", "--limit", 3, "--json").stdout)

    assert [tree["value"] for tree in found["explanations"]] == [hit["score"] for hit in found["hits"]]


def test_an_entry_that_one_list_lacks_is_explained_in_json(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    words = ("red apple", "green pear", "red pear", "blue plum", "green apple")
    corpus = [json.dumps({"id": f"m{at}", "title": text, "text": text}) for at, text in enumerate(words)]
    (folder / "corpus.jsonl").write_text("\n".join(corpus))
    (folder / "queries.jsonl").write_text(json.dumps({"id": "q1", "text": "red"}))
    (folder / "qrels.txt").write_text("q1 0 m0 1\n")
    (folder / "dataset.json").write_text('{"name": "mine", "text_for_embedding": "{title}"}')
    assert run("index", folder, tmp_path / "v.db").exit_code == 0

    result = run("search", tmp_path / "v.db", "plum", "--system", "plain", "--explain", "--json")

    found = json.loads(result.stdout)
    assert [tree["value"] for tree in found["explanations"]] == [hit["score"] for hit in found["hits"]]
    assert "no rank" in result.stdout  # vectors find more than keywords do


def test_limit_beats_the_weights_file_and_a_torn_one_is_refused(vault: Path, tmp_path: Path) -> None:
    from steelyard.systems import find_system

    record = find_system("echovault").config(10, "lsa").to_json()
    (tmp_path / "w.json").write_text(json.dumps(record))
    found = json.loads(
        run("search", vault, "token", "--weights", tmp_path / "w.json", "--limit", 2, "--json").stdout
    )
    assert len(found["hits"]) == 2
    (tmp_path / "torn.json").write_text(json.dumps(record | {"limit": 3}))
    fails(run("search", vault, "token", "--weights", tmp_path / "torn.json"), 2, "limit 3 is not the cut")
    record["retrievers"]["fts"]["field_weights"]["titel"] = 2
    (tmp_path / "field.json").write_text(json.dumps(record))
    fails(run("search", vault, "token", "--weights", tmp_path / "field.json"), 2, "titel", "did you mean 'title'")


def test_context_without_a_query_lists_the_newest_in_scope(vault: Path) -> None:
    found = json.loads(run("vault", "context", vault, "--filter", "project=infra", "--limit", 4, "--json").stdout)

    dates = [entry["created_at"] for entry in found["entries"]]
    assert dates == sorted(dates, reverse=True)
    assert {entry["project"] for entry in found["entries"]} == {"infra"}
    assert all(entry["score"] is None for entry in found["entries"])


def test_a_terminal_escape_in_the_corpus_is_shown_not_obeyed(vault: Path) -> None:
    result = run("search", vault, "ansi escape log injection terminal", "--limit", 10)

    assert result.exit_code == 0
    assert "\x1b" not in result.stdout


def test_reindex_gives_the_same_results(vault: Path) -> None:
    before = run("search", vault, "vehicles jump across town", "--system", "vector", "--json").stdout
    assert run("index", vault, "--rebuild").exit_code == 0

    assert run("search", vault, "vehicles jump across town", "--system", "vector", "--json").stdout == before


def test_tune_writes_a_file_that_search_loads(vault: Path, tmp_path: Path) -> None:
    weights = tmp_path / "w.json"
    result = run("tune", starter(), "rrf(fts, vector)", "--embedder", "lsa", "--out", weights, "--json")

    assert json.loads(result.stdout)["decision"]["verdict"] in ("ship", "try", "keep")
    weights = min(tmp_path.glob("w*.json"))  # w.current.json under try
    found = json.loads(run("search", vault, "rotate keys", "--weights", weights, "--json").stdout)
    assert found["strategy"] == json.loads(weights.read_text())["strategy"]
    assert len(found["hits"]) == 10


def test_compare_and_report_say_the_same(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    result = run("compare", starter(), "bm25,vector", "--out", out, "--write-runs", tmp_path, "--json")

    document = json.loads(result.stdout)
    assert document == json.loads(out.read_text())
    assert {row["label"] for row in document["rows"]} == {"bm25", "vector"}
    assert (tmp_path / "bm25.documented.run").read_text().startswith("q01 Q0 ")
    assert run("report", out, "--out", tmp_path / "r").exit_code == 0
    assert (tmp_path / "r" / "report.html").is_file()


def test_record_writes_a_folder_a_system(tmp_path: Path) -> None:
    result = run("record", starter(), tmp_path / "rec", "--systems", "bm25,echovault", "--json")

    assert [Path(r["folder"]).name for r in json.loads(result.stdout)["recordings"]] == [
        "bm25.documented",
        "echovault.documented",
    ]
    assert (tmp_path / "rec" / "echovault.documented" / "manifest.json").is_file()


def test_demo_writes_everything_and_the_same_bytes_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    monkeypatch.setattr(
        "steelyard_eval.datasets.manifest.workshop", starter
    )  # it is larger, and `make demo` runs it
    document = json.loads(run("demo", "--out", tmp_path / "a", "--json").stdout)
    told = run("demo", "--out", tmp_path / "b").stdout

    labels = {row["label"] for row in document["rows"]}
    assert labels >= {
        *("fts", "bm25", "vector", "echovault", "soleri", "moltnet", "echovault, tuned", "soleri, tuned"),
        *("weighted sum, tuned", "RRF, tuned", "tiered, tuned", "layered, tuned"),
    }
    assert document["provenance"]["baseline"] == "echovault"
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert names >= {"report.html", "report.md", "report.json", "search-weights.json"}
    for name in ("report.json", "search-weights.json"):  # but for the folder, which the next step names
        first, second = ((tmp_path / own / name).read_text() for own in "ab")
        assert first.replace(f"{tmp_path}/a/", f"{tmp_path}/b/") == second

    vault, searching = (step["command"] for step in document["answer"]["steps"][-2:])  # both can be pasted
    assert (vault[1], Path(vault[2]).resolve()) == ("index", starter())
    assert (searching[2], searching[-1]) == (vault[3], str(tmp_path / "a" / "search-weights.json"))
    learning, exporting = told.rstrip().splitlines()[-2:]
    assert document["learn"].replace("/a/", "/b/") in learning
    assert run(*shlex.split(document["learn"])[1:]).exit_code == 0
    command = shlex.split(exporting[exporting.index("steelyard") :])
    assert run(*command[1:]).exit_code == 0
    assert Path(command[-1]).is_file()
    assert (tmp_path / "a" / "learned" / "search-weights.try.json").is_file()  # acts alone never ship


# Bad input


def test_every_unknown_name_is_told_at_once() -> None:
    result = run(
        *("compare", starter(), "echvault,bm25,vectr", "--metrics", "nDGC@10"),
        "rrf(ftss); wsum(1*fts)",
    )

    fails(
        result, 2, "echvault", "'echovault'", "vectr", "'vector'", "nDGC@10", "'nDCG@10'", "ftss", "'fts'", "wsum"
    )


@pytest.mark.parametrize("query", ["", "   ", "\t\n"])
def test_an_empty_query_is_refused(vault: Path, query: str) -> None:
    fails(run("search", vault, query), 2, "is empty", "type at least one word")


@pytest.mark.parametrize(
    "query",
    ["the of and", "?!...", '"', "NEAR(a b)", 'a" OR "b', "title:x", "AND", "*", "-", "^a", "{a}", "' OR 1=1 --"],
)
@pytest.mark.parametrize("system", ["echovault", "fts", "bm25", "vector"])
def test_a_query_of_stop_words_punctuation_or_operators_is_only_text(vault: Path, query: str, system: str) -> None:
    assert run("search", vault, "--system", system, "--json", "--", query).exit_code == 0


def test_a_missing_vault_is_told_with_the_remedy(tmp_path: Path) -> None:
    fails(run("search", tmp_path / "no.db", "x"), 2, "no.db", "steelyard index")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_id_and_filter_are_named(vault: Path) -> None:
    fails(run("vault", "get", vault, "api-jwt-rotatoin"), 2, "did you mean 'api-jwt-rotation'")
    fails(run("search", vault, "x", "--filter", "projct=a"), 2, "projct", "did you mean 'project'")
    fails(run("search", vault, "x", "--filter", "project"), 2, "FIELD=VALUE")
    fails(run("search", vault, "x", "--filter", "created_at<1", "--filter", "created_at<2"), 2, "two bounds")
    fails(run("search", vault, "x", "--filter", "created_at=soon"), 2, "a number or a date")
    assert run("search", vault, "x", "--filter", "created_at=2026-03-01").exit_code == 0


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"schema_version": 2}, ["schema_version 2 is not 1"]),
        ({"stratgy": "fts"}, ["stratgy", "did you mean 'strategy'"]),
        ({"limit": 0}, ["limit"]),
        ({"strategy": "rrf(fts, vectro)"}, ["vectro", "did you mean 'vector'"]),
        ({"finish": ["cut(ten)"]}, ["cut(ten)"]),
        ({"system": "echvault"}, ["echvault", "did you mean 'echovault'"]),
        ({"retrievers": {"fts": {"depth": -1}}}, ["retrievers.fts.depth"]),
    ],
)
def test_a_bad_weights_file_is_refused_by_name(
    vault: Path, tmp_path: Path, change: dict, parts: list[str]
) -> None:
    from steelyard.systems import find_system

    record = find_system("echovault").config(10, "lsa").to_json() | change
    (tmp_path / "w.json").write_text(json.dumps(record))

    fails(run("search", vault, "x", "--weights", tmp_path / "w.json"), 2, *parts)


def test_nan_and_broken_json_in_a_weights_file_are_refused(vault: Path, tmp_path: Path) -> None:
    (tmp_path / "nan.json").write_text('{"limit": NaN}')
    (tmp_path / "cut.json").write_text('{"limit": 1')

    fails(run("search", vault, "x", "--weights", tmp_path / "nan.json"), 2, "NaN")
    fails(run("search", vault, "x", "--weights", tmp_path / "cut.json"), 2, "not valid JSON")
    fails(run("search", vault, "x", "--weights", tmp_path / "none.json"), 2, "cannot read")


def test_a_folder_that_cannot_be_written_is_the_environments_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where a folder is needed")  # root may write everywhere else

    fails(
        run("tune", starter(), "rrf(fts, vector)", "--out", tmp_path / "file" / "w.json"),
        4,
        "cannot write",
    )
    fails(run("index", starter(), tmp_path / "file" / "v.db"), 4, "cannot open")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_layers_and_vectors_that_a_data_set_lacks_are_named() -> None:
    result = run("compare", starter(), "vector", "--embedder", "none")

    fails(result, 2, "vector needs vector", "embedder: none")


def test_what_is_interrupted_says_so_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("click.Group.main", interrupted)
    fails(run("check", starter()), 130, "interrupted; what was committed is kept")
