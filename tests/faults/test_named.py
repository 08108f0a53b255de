"""What a stranger's files name as contenders: nobody is asked, nothing runs, no other file is shown."""

import json
import shutil
from pathlib import Path

import pytest
import small

import steelyard_eval as sy
from steelyard.base.files import STRICT_JSON
from steelyard.systems import find_system
from steelyard_eval.datasets import check
from steelyard_eval.datasets.manifest import Naming
from steelyard_eval.recording.disk import load as load_recording

LINE = "aws_secret_access_key = wJalrXUtnFEMI"

ORIGIN = ("--install", f"git+https://git.example.org/a/b.git@{'1f' * 20}")
"""Where a workflow installs steelyard from; what is installed here may come from a folder."""


@pytest.fixture
def heard(serve):
    """The URL of a server on the loopback address, and what it was asked."""
    return serve(lambda _: (small.answer(b'["m1"]'), True))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data set in a project, a secret beside the project; the working directory is the project."""
    (tmp_path / "secret").write_text(f"{LINE}\n" * 2)
    for name in ("run", "json"):
        (tmp_path / f"secret.{name}").write_text(f"{LINE}\n")
    made = small.written(tmp_path / "project" / "set")
    monkeypatch.chdir(made.parent)
    return made


def steelyard(*words):
    outcome = small.steelyard(*words)
    assert "wJalrXUtnFEMI" not in outcome.output
    return outcome


def outside(folder):
    """Names of files outside the folder: absolute, upwards, through links to files and to folders."""
    root = folder.parents[1]
    (folder / "link.run").symlink_to(root / "secret.run")
    (folder / "elsewhere").symlink_to(root)
    absolute = [str(root / "secret.run"), str(root / "secret.json"), str(root / "secret")]
    return [*absolute, "../../secret.run", "link.run", "elsewhere/secret.json", "../set/../../secret.run"]


ASKING = small.ATTACKS["who asks or runs"]


class TestADataSet:
    @pytest.mark.parametrize("at", range(len(ASKING) + 7))
    def test_names_nothing_that_asks_or_runs_or_lies_elsewhere(self, folder, heard, at):
        url, paths = heard
        name = [*(one.replace("URL", url) for one in ASKING), *outside(folder)][at]
        (folder / "dataset.json").write_text(json.dumps({"name": "small", "system": name}))

        [fault] = check(folder).faults
        assert (fault.field, "never asked, run," in fault.rule) == ("system", True)
        for words in (["check", folder], ["recommend", folder, "--embedder", "none"], ["init", folder]):
            assert steelyard(*words).exit_code == 2
        assert paths == []
        assert not (folder.parent / "reports").exists()

    def test_names_systems_strategies_and_files_beside_it(self, folder, monkeypatch):
        find_system("fts").config(10).save(folder / "today.json")
        (folder / "old.run").write_text("q1 Q0 m1 1 2 x\nq2 Q0 m1 1 2 x\n")
        for name in ("soleri:shipped", "rrf(fts, bm25)", "today.json", "old.run"):
            (folder / "dataset.json").write_text(json.dumps({"name": "small", "system": name}))
            assert check(folder).faults == ()
            assert sy.load(folder).dataset.system in (name, f"{folder}/{name}")
        assert steelyard("init", folder, "--embedder", "none").exit_code == 0
        # In the working directory `x=/secret.run` would be the file /secret.run with the label x.
        (folder / "x=").mkdir()
        (folder / "x=" / "w.json").write_text("{}")
        monkeypatch.chdir(folder)
        assert Naming("dataset.json", Path()).contender("x=/w.json") == "./x=/w.json"


def resealed(path, embedder=None, **changes):
    record = STRICT_JSON.decode(path.read_text())
    record["contenders"][0].update(changes)
    record |= {"embedder": embedder} if embedder else {}
    path.write_text(small.sealed(record))


class TestABaseline:
    @pytest.fixture
    def baseline(self, folder):
        assert steelyard("gate", folder, "bm25", "--update", "--reason", "x", "--embedder", "none").exit_code == 0
        return folder.parent / "reports" / "baseline.json"

    def test_names_nobody_to_ask(self, folder, baseline, heard):
        url, paths = heard
        for kind in ("endpoint", "run", "weights", "system", "strategy", "function", "python"):
            resealed(baseline, kind=kind, written=url)
            for words in (["gate", folder], ["gate", folder, "--update", "--reason", "y"]):
                assert steelyard(*words).exit_code == 2
        assert paths == []
        resealed(baseline, embedder="api", kind="system", written="bm25")
        assert "--embedder api yourself" in steelyard("gate", folder).output

    @pytest.mark.parametrize("kind", ["run", "weights"])
    def test_names_no_file_outside_the_project_and_shows_no_line_of_one_inside(self, folder, baseline, kind):
        for at, name in enumerate(outside(folder)):
            resealed(baseline, kind=kind, written=name if at < 3 else f"set/{name}")
            outcome = steelyard("gate", folder)
            assert (outcome.exit_code, "is not a file" in outcome.output) == (2, True), outcome.output
        (folder.parent / "notes").write_text(f"{LINE}\n")
        resealed(baseline, kind=kind, written="notes")
        outcome = steelyard("gate", folder)
        told = {"run": "is no run that can be read", "weights": "is not valid JSON"}[kind]
        assert (outcome.exit_code, told in outcome.output, "aws" in outcome.output) == (2, True, False)

    def test_what_is_wrong_with_weights_is_said_and_of_other_files_the_command_that_tells(self, folder, baseline):
        file = folder.parent / "w.json"
        resealed(baseline, kind="weights", written="w.json")
        assert "put it back" in steelyard("gate", folder).output  # it is missing
        find_system("fts").config(10).save(file)
        file.write_text(file.read_text().replace('"strategy": "fts"', '"strategy": "ftz"'))
        assert "you mean 'fts'?" in steelyard("gate", folder).output
        file.write_text(file.read_text()[:40])
        assert "valid JSON: " in steelyard("gate", folder).output  # a place and nothing of the file
        file.write_text(json.dumps({"secret": LINE}))
        assert "see why: steelyard" in steelyard("gate", folder).output

    def test_elsewhere_names_files_of_its_own_folder_alone(self, folder, baseline, monkeypatch, tmp_path):
        find_system("fts").config(10).save(folder.parent / "w.json")
        resealed(baseline, kind="weights", written="w.json")
        words = ["gate", folder, "--baseline", baseline]
        assert steelyard(*words).exit_code == 0
        (tmp_path / "other").mkdir()
        shutil.copy("w.json", tmp_path / "other")
        monkeypatch.chdir(tmp_path / "other")
        assert "there is no file" in steelyard(*words).output

    def test_an_endpoint_is_named_again_on_the_command_line_and_in_the_workflow(self, folder, heard):
        url, paths = heard
        outcome = steelyard("init", folder, "--current", f"{url}&api_key=0123456789")
        assert (outcome.exit_code, "0123456789" in outcome.output) == (2, False)
        assert not Path(".github").exists()  # a key is written into no workflow
        assert steelyard("init", folder, "--current", url, *ORIGIN).exit_code == 0
        assert steelyard("gate", folder).exit_code == 2
        asked = len(paths)
        assert steelyard("gate", folder, url).exit_code == 0
        assert len(paths) > asked
        assert f"steelyard gate {folder} '{url}' --baseline" in Path(".github/workflows/relevance.yml").read_text()


def test_a_recording_names_its_own_columns_alone(folder, tmp_path):
    assert steelyard("record", folder, "rec", "--systems", "bm25", "--embedder", "none").exit_code == 0
    (path,) = Path("rec").rglob("manifest.json")
    manifest = json.loads(path.read_text())
    shutil.copy(path.parent / "entry.npy", tmp_path / "secret.npy")
    (path.parent / "link.npy").symlink_to(tmp_path / "secret.npy")
    for name in ("../../../secret", str(tmp_path / "secret"), "link"):
        arrays = {**manifest["arrays"], name: manifest["arrays"]["entry"]}
        path.write_text(json.dumps({**manifest, "arrays": arrays}))
        with pytest.raises(sy.DataError, match="outside its folder"):
            load_recording(path.parent)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.txt", "dataset.json", "feedback.jsonl"])
def test_lines_of_a_file_that_a_link_leads_to_are_not_shown(folder, name):
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(folder.parents[1] / "secret")
    assert steelyard("check", folder).exit_code == 2


class TestInit:
    @pytest.mark.parametrize("name", ["--update", "-x"])
    def test_a_folder_named_as_an_option_is_written_as_a_path(self, folder, name):
        folder.rename(name)
        assert steelyard("init", "--embedder", "none", *ORIGIN).exit_code == 0
        assert f"steelyard gate ./{name} --baseline" in Path(".github/workflows/relevance.yml").read_text()

    @pytest.mark.parametrize(
        "name", ["set/dataset.json", "reports/baseline.json", ".github/workflows/relevance.yml"]
    )
    def test_nothing_is_written_through_a_link_to_what_is_not_there(self, folder, tmp_path, name):
        link = folder.parent / name
        link.unlink(missing_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(tmp_path / "new")
        before = sorted(folder.parent.rglob("*"))
        outcome = steelyard("init", folder, "--embedder", "none")
        assert (outcome.exit_code, "broken link" in outcome.output) == (4, True)
        assert sorted(folder.parent.rglob("*")) == before
        assert not (tmp_path / "new").exists()


def test_python_may_still_name_anything(folder, heard):
    data = sy.load(folder)
    assert data.compare(["bm25", heard[0]]).result.rows[1].kind == "lists"
    with pytest.raises(sy.ConfigError):
        Naming("x", folder).contender(heard[0])
