"""`steelyard init` of a data set that has labels: its description, a first baseline, a workflow."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from shared import ROOT, STARTER, contents, document, done, tabled

import steelyard_eval as sy
from steelyard.systems import find_system
from steelyard_eval.cli.init_from_data import _misplaced, find_dataset, start
from steelyard_eval.cli.workflow import installing, named, recorded
from steelyard_eval.datasets.labels import JudgedPool

ORIGIN = f"git+https://git.example.org/tools/steelyard.git@{'1f' * 20}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "memory").mkdir()
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.txt"):
        shutil.copy(STARTER / name, tmp_path / "memory")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("steelyard_eval.cli.init_from_data.recorded", lambda: ORIGIN)
    return tmp_path


class TestInit:
    def test_it_writes_everything_once(self, folder):
        first, before = document("init", "-q"), contents(folder)
        second = document("init", "-q")
        assert (first["dataset"], first["gated"], first["kept"]) == ("memory", "bm25", [])
        made = {"memory/dataset.json", "reports/baseline.json", ".github/workflows/relevance.yml"}
        assert set(first["written"]) == made
        assert (second["written"], contents(folder)) == ([], before)
        about = json.loads((folder / "memory" / "dataset.json").read_text())
        assert (about["name"], about["as_of"][:10]) == ("memory", "2026-11-14")  # the latest date in the set
        assert sy.load(folder / "memory").gate(baseline="reports/baseline.json").verdict == "pass"

    def test_without_an_origin_the_workflow_is_asked_for(self, folder, monkeypatch):
        """Whoever owns the package's name in an index would decide what the workflow runs."""
        monkeypatch.setattr("steelyard_eval.cli.init_from_data.recorded", lambda: "")
        first = start(current="bm25")
        assert not Path(".github").exists()
        assert ".github/workflows/relevance.yml" not in first.needed
        assert any("--install" in notice for notice in first.notices)
        second = start(install=ORIGIN)
        assert second.written == [".github/workflows/relevance.yml"]
        text = Path(second.written[0]).read_text()
        assert f'pip install "steelyard @ {ORIGIN}"' in text
        assert "steelyard==" not in text

    @tabled
    def test_what_is_installed_is_named_by_the_origin_that_pip_recorded(self, monkeypatch, record, text):
        class Known:
            def read_text(self, name):
                return json.dumps(record) if name == "direct_url.json" and record is not None else None

        monkeypatch.setattr("importlib.metadata.distribution", lambda name: Known())
        assert recorded() == text

    def test_a_clone_is_named_by_the_commit_that_its_origin_has(self, tmp_path, monkeypatch):
        commit = ["-c", "user.name=a", "-c", "user.email=a", "commit", "-q", "--allow-empty", "-m", "a"]
        named = ["remote", "set-url", "origin", ORIGIN[4:-41]]
        for words in (["init", "-q", "a"], ["-C", "a", *commit], ["clone", "-q", "a", "b"], ["-C", "b", *named]):
            subprocess.run(["git", *words], cwd=tmp_path, check=True)
        known = {"url": (tmp_path / "b").as_uri(), "dir_info": {}}
        monkeypatch.setattr("steelyard_eval.cli.workflow._origin", lambda: known)
        head = subprocess.check_output(["git", "-C", tmp_path / "b", "rev-parse", "HEAD"], text=True).strip()
        assert recorded() == ORIGIN[:-40] + head
        subprocess.run(["git", "-C", tmp_path / "b", *commit], check=True)  # which nobody else has
        assert recorded() == ""

    def test_a_wheel_of_the_repository_is_checked_before_it_is_installed(self, folder):
        Path("vendor").mkdir()
        Path("vendor/s-1-py3-none-any.whl").write_bytes(b"wheel")
        check, install = installing(named("vendor/s-1-py3-none-any.whl"), "[onnx]")
        assert hashlib.sha256(b"wheel").hexdigest() in check
        assert install.endswith('"./vendor/s-1-py3-none-any.whl[onnx]"')
        assert installing(named("vendor"), "") == ['pip install "./vendor"']

    @tabled
    def test_what_is_no_fixed_origin_is_refused_and_nothing_is_written(self, folder, text):
        before = contents(folder)
        with pytest.raises(sy.ConfigError) as refused:
            start(current="bm25", install=text)
        assert "papaya" not in str(refused.value)
        assert contents(folder) == before

    def test_weights_of_another_folder_are_refused_as_the_workflow_could_not_open_them(self, folder, monkeypatch):
        find_system("moltnet").config(10).save("w.json")
        monkeypatch.chdir(folder / "memory")
        before = contents(folder)
        with pytest.raises(sy.ConfigError, match=r"'\.\./w\.json' is outside"):
            start(folder=".", current="../w.json")
        with pytest.raises(sy.ConfigError, match=r"no such file"):
            start(folder=".", current="w.json")
        assert contents(folder) == before

    def test_it_says_what_labels_are_and_asks_where_nobody_did(self, folder):
        asked = start()
        assert ["how the labelled queries were drawn" in one for one in asked.notices] == [True]
        about = Path("memory/dataset.json")
        plain = json.loads(about.read_text())
        done("init", "--sampled", "log", "--pool", "bm25, vector")
        told = {"sampled": "log", "pool": {"contenders": ["bm25", "vector"], "depth": 10}}
        assert json.loads(about.read_text()) == plain | told
        assert start().notices == []

    def test_what_dataset_json_says_of_labels_is_not_changed(self, folder):
        about = Path("memory/dataset.json")
        about.write_text('{"name": "mine", "sampled": "failing"}')
        found = done("init", "--sampled", "random", code=2)
        assert "says sampled is 'failing', not 'random'" in " ".join(found.stderr.split())
        assert json.loads(about.read_text()) == {"name": "mine", "sampled": "failing"}
        assert not Path("reports").exists()
        start(sampled="failing", pool=JudgedPool())
        assert json.loads(about.read_text()) == {"name": "mine", "sampled": "failing", "pool": "complete"}

    def test_faults_are_named_and_nothing_is_written(self, folder):
        (folder / "memory" / "qrels.txt").write_text("q01 0 nowhere 1\n")
        before = contents(folder)
        with pytest.raises(sy.DataError, match="nowhere"):
            start()
        assert contents(folder) == before

    def test_several_data_sets_are_not_guessed_from(self, folder):
        shutil.copytree(folder / "memory", folder / "other")
        with pytest.raises(sy.DataError, match="2: memory, other"):
            find_dataset(Path())

    @pytest.mark.parametrize("name", ["${{ secrets }}", "a\nb", "x'y", "$(id)"])
    def test_a_path_that_means_something_in_a_workflow_is_refused(self, folder, name):
        (folder / "memory").rename(folder / name)
        with pytest.raises(sy.ConfigError, match="a workflow cannot contain"):
            start()

    @pytest.mark.parametrize(("name", "told"), [("mine", 0), ("../mine", 1), ("{here}/mine", 1)])
    def test_a_folder_that_github_does_not_have_is_told(self, name, told, tmp_path, monkeypatch):
        """A workflow is read at the top of a repository, elsewhere than here."""
        (tmp_path / "top" / ".git").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / "top")
        assert len(list(_misplaced(Path(name.format(here=tmp_path / "top"))))) == told


WORKFLOWS = {"github-workflows": ".github/workflows/relevance.yml", "gitlab-ci": ".gitlab-ci.yml"}
"""The name of a schema -> the file that it is for."""
KINDS = [*WORKFLOWS, "github-actions"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """This checkout, as workflows install it."""
    made = tmp_path_factory.mktemp("vendor")
    build = f"-m pip wheel -q --no-deps --no-build-isolation --wheel-dir {made} {ROOT}"
    subprocess.run([sys.executable, *build.split()], check=True, capture_output=True)
    return next(made.iterdir())


def written(kind, **options):
    """The text of a workflow that init writes, or of the action, and what init says."""
    made = start(workflow=WORKFLOWS.get(kind, ""), **options)
    return (ROOT / "action.yml" if kind == "github-actions" else Path(WORKFLOWS[kind])).read_text(), made


def steps(text):
    """What a workflow runs in the shell, with the variables of each step, `${{ inputs.dataset }}` being memory."""
    known = yaml.safe_load(text)
    if "relevance" in known:
        return [(line, {}) for line in known["relevance"]["script"]]
    parts = (known.get("runs") or known["jobs"]["gate"])["steps"]
    given = {"${{ inputs.dataset }}": "memory"}
    variables = [{name: given.get(each, "") for name, each in part.get("env", {}).items()} for part in parts]
    return [(part["run"], own) for part, own in zip(parts, variables, strict=True) if "run" in part]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_workflow_runs_passes_in_a_clone_of_what_is_to_be_committed(folder, wheel, kind):
    (folder / "vendor").mkdir()
    shutil.copy(wheel, folder / "vendor")
    text, made = written(kind, install=f"vendor/{wheel.name}")
    assert not re.findall(r"uses: (?!actions/[\w-]+@[0-9a-f]{40} #)", text.partition("runs:")[2] or text)
    assert ("permissions:\n  contents: read" in text) == (kind == "github-workflows")
    commit = ["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "a"]
    for words in (["init", "-q"], ["add", *made.needed], commit, ["clone", "-q", ".", "clone"]):
        subprocess.run(["git", *words], check=True)
    site, path = str(folder / "site"), f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    runner = {"PIP_TARGET": site, "PYTHONPATH": site, "PATH": f"{site}/bin:{path}"}
    runner |= dict.fromkeys(("PIP_NO_DEPS", "PIP_NO_COMPILE"), "1")  # most of what is installed is not imported
    runner |= {"GITHUB_STEP_SUMMARY": f"{folder}/summary.md", "GITHUB_ACTION_PATH": str(wheel)}
    for line, own in steps(text):
        subprocess.run(["bash", "-ec", line], cwd="clone", env=os.environ | runner | own, check=True)
    assert "Pass" in Path("clone/relevance.md").read_text()
    assert Path("clone/relevance.xml").is_file()
    assert Path("summary.md").exists() == (kind != "gitlab-ci")


@pytest.mark.parametrize("kind", KINDS)
def test_workflows_follow_the_schema_of_their_host(folder, kind):
    place = Path(pytest.importorskip("check_jsonschema").__file__).parent / "builtin_schemas" / "vendor"
    schema = jsonschema_rs.validator_for(json.loads((place / f"{kind}.json").read_text()))
    text, _ = written(kind)
    known = {str(name).replace("True", "on"): value for name, value in yaml.safe_load(text).items()}
    assert [str(one) for one in schema.iter_errors(known)] == []


def test_a_repository_of_gitlab_gets_the_workflow_of_gitlab(folder):
    for line in ("init -q", "remote add origin git@gitlab.example.org:a/b.git"):
        subprocess.run(["git", *line.split()], check=True)
    assert ".gitlab-ci.yml" in start().written
    Path(".gitlab-ci.yml").write_text("other: {script: [make]}")
    assert any("--workflow relevance.gitlab-ci.yml" in one for one in start().notices)
