"""The command line: what it prints, what it writes, and how it fails."""

import json
import shlex
from pathlib import Path

import pytest
from click.testing import Result
from command_line import run

from steelyard_eval.datasets.manifest import starter


def fails(result: Result, code: int, *parts: str) -> None:
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr, result.stderr


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


def test_demo_writes_everything_and_the_same_bytes_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    monkeypatch.setattr(
        "steelyard_eval.datasets.manifest.workshop", starter
    )  # it is larger, and `make demo` runs it
    document = json.loads(run("demo", "--out", tmp_path / "a", "--json").stdout)
    told = run("demo", "--out", tmp_path / "b").stdout
    labels = {row["label"] for row in document["rows"]}
    assert labels >= {"fts", "bm25", "vector", "soleri, tuned", "weighted sum, tuned", "layered, tuned"}
    assert document["provenance"]["baseline"] == "echovault"
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


def test_a_folder_that_cannot_be_written_is_the_environments_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where a folder is needed")  # root may write everywhere else
    fails(
        run("tune", starter(), "rrf(fts, vector)", "--out", tmp_path / "file" / "w.json"),
        4,
        "cannot write",
    )
    fails(run("index", starter(), tmp_path / "file" / "v.db"), 4, "cannot open")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
