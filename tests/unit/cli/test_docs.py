"""The documentation does what it says: its commands run, its examples compute, its tables are computed again."""

import importlib.util
import math
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

import msgspec
import pytest
from shared import ROOT, done, run

from steelyard import Entry, Query, fuse, parse_strategy
from steelyard.fusion import FAMILIES
from steelyard.fusion.sums import NORMALIZERS
from steelyard.stores.base import ScoredId
from steelyard.table.join import join
from steelyard_eval.cli.main import main
from steelyard_eval.datasets import load
from steelyard_eval.datasets.logs import LogLine
from steelyard_eval.datasets.manifest import starter

PAGES = sorted((ROOT / "docs").rglob("*.md"))
STRATEGIES = (ROOT / "docs" / "strategies.md").read_text("utf-8")
DATA = (ROOT / "docs" / "data.md").read_text("utf-8")


def commands(text):
    lines = text.replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.startswith("steelyard ")]


def blocks(text, language):
    """The fenced blocks of a language: title (empty without one) and content."""
    return re.findall(rf'```{language}(?: title="([^"]*)")?\n(.*?)```', text, re.DOTALL)


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=lambda path: path.stem)
def test_every_command_takes_its_options(path):
    for line in commands(path.read_text("utf-8")):
        words = shlex.split(line.replace("|", " "))
        command = main.commands[words[1]]
        command = command.commands[words[2]] if words[1] == "vault" else command
        options = (*command.params, *main.params)
        known = {name for option in options for name in (*option.opts, *option.secondary_opts)}
        assert {word for word in words if re.match("--?[a-z]", word)} <= known, line


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The data set of the page, in a folder where commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    for language in ("jsonl", "text", "json"):
        for title, content in blocks(DATA, language):
            if title:
                (tmp_path / "mine" / title).write_text(content, "utf-8")
    return tmp_path / "mine"


def test_the_four_files_of_the_page_are_a_data_set_on_which_its_commands_run(mine):
    dataset = load(mine)
    assert (len(dataset.entries), len(dataset.queries)) == (3, 2)
    assert dataset.qrels == {"q1": {"m1": 2, "m3": 0}, "q2": {"m2": 1}}
    for line in commands(DATA):
        done(*shlex.split(line)[1:])
    assert (mine.parent / "reports" / "mine" / "report.html").is_file()


def test_the_screen_of_the_page_is_what_judge_shows(mine):
    ((command, screen),) = blocks((ROOT / "docs" / "labels.md").read_text("utf-8"), "text")
    (mine / "qrels.txt").unlink()
    assert screen in run(*shlex.split(command)[1:], typed="2q").stdout


def test_the_feedback_of_the_page_is_a_line_of_a_log():
    (line,) = [content for title, content in blocks(DATA, "json") if not title]
    read = msgspec.json.decode(line.encode(), type=LogLine)
    assert [(hit.object_id, hit.position) for hit in read.hits] == [("m1", 1), ("m3", 2)]
    assert [act.action_name for act in read.actions] == ["accepted"]


def rows():
    """The table of one example: strategy, and the printed score of each entry."""
    table = STRATEGIES.split("## One example for all")[1].split("## Sums of scores")[0]
    return re.findall(r"^\| `([^`]+)`" + r" \| ([\d.-]+)" * 4 + r" \|$", table, re.MULTILINE)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_the_scores_of_the_example_are_those_of_the_engine(row):
    lists = {"fts": {"a": 8.0, "b": 6.0, "c": 4.0}, "vector": {"b": 0.9, "d": 0.7, "a": 0.5}}
    found = {
        name: [ScoredId(id_, score, place) for place, (id_, score) in enumerate(own.items(), 1)]
        for name, own in lists.items()
    }
    table = join([Query("t", id="q")], [0.0], [found], {}, lambda ids, _: [Entry(id_) for id_ in ids])
    scores = fuse(table, parse_strategy(row[0])).tolist()
    named = zip((table.entries[at] for at in table.entry), scores, strict=True)
    found = {id_: score for id_, score in named if not math.isnan(score)}
    printed = dict(zip("abcd", row[1:], strict=True))
    assert found.keys() == {id_ for id_, text in printed.items() if text != "-"}
    for id_, score in found.items():
        assert score == pytest.approx(float(printed[id_]), abs=5.1e-5), id_


def test_every_family_and_every_normalisation_is_on_the_page():
    assert len(rows()) > 15
    assert [name for name in (*FAMILIES, *NORMALIZERS) if not re.search(rf"`[^`]*\b{name}\b", STRATEGIES)] == []


@pytest.mark.parametrize("page", ["workbench", "engine"])
def test_the_python_of_the_reference_runs(page, tmp_path, monkeypatch, capsys):
    """On starter, which is smaller than what the page takes."""
    monkeypatch.setattr("steelyard_eval.datasets.manifest.workshop", starter)
    monkeypatch.chdir(tmp_path)
    for _, code in blocks((ROOT / "docs" / "api" / f"{page}.md").read_text("utf-8"), "python"):
        exec(code, {})  # noqa: S102 -- our own page
    assert capsys.readouterr().out


EXAMPLE = re.compile(r"```(sh|python)\n([^`]*)```\n+```output\n(.*?)```", re.DOTALL)
PACKAGES_OF = {"frameworks": ("langchain_core", "llama_index.core", "haystack")}
"""Page -> what its examples need; `make frameworks` installs it."""
SHOWN = {path: found for path in PAGES if (found := EXAMPLE.findall(path.read_text("utf-8")))}


class TestPages:
    @pytest.mark.usefixtures("opened_once")
    @pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.stem)
    def test_every_example_prints_what_the_page_shows(self, path, tmp_path, monkeypatch, capsys):
        """On a copy of starter, in the order of the page; lines of `...` stand for what is left out."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("STEELYARD_RUNS")
        for seconds in ("BAR_DELAY_SECONDS", "PROGRESS_SECONDS"):  # until progress is shown, on a busy machine
            monkeypatch.setattr(f"steelyard_eval.common.console.{seconds}", 1e9)
        shutil.copytree(ROOT / "qrels" / "starter", "mine", ignore=shutil.ignore_patterns(".steelyard"))
        for package in PACKAGES_OF.get(path.stem, ()):
            pytest.importorskip(package)
        for language, code, shown in SHOWN[path]:
            if language == "python":
                exec(code, {})  # noqa: S102 -- our own page
                printed = capsys.readouterr().out
            else:
                printed = "".join(run(*shlex.split(line)[1:]).output for line in commands(code))
            parts = [" ".join(part.split()) for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)]
            assert re.fullmatch(" ?.*?".join(map(re.escape, parts)), " ".join(printed.split()), re.DOTALL), printed

    @pytest.mark.nightly
    def test_the_readme_shows_what_the_demo_says(self, tmp_path):
        ((_, shown),) = blocks((ROOT / "README.md").read_text("utf-8"), "output")
        printed = " ".join(run("demo", "--out", tmp_path).stdout.split())
        assert [line for line in shown.splitlines() if " ".join(line.split()) not in printed] == []

    def test_every_page_is_in_the_navigation(self):
        nav = (ROOT / "mkdocs.yml").read_text("utf-8").split("nav:")[1]
        assert [path for path in PAGES if f": {path.relative_to(ROOT / 'docs').as_posix()}\n" not in nav] == []

    @pytest.mark.skipif(importlib.util.find_spec("mkdocstrings") is None, reason="the extra docs is not installed")
    def test_the_site_builds_without_a_warning(self, tmp_path):
        build = shlex.split(f"-m mkdocs build --strict --quiet --site-dir '{tmp_path}/site'")
        ended = subprocess.run([sys.executable, *build], cwd=ROOT, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert "Searches one store" in (tmp_path / "site" / "api" / "engine.html").read_text("utf-8")
        assert "--embedding-calls" in (tmp_path / "site" / "commands.html").read_text("utf-8")

    def test_every_make_target_of_the_readme_stands_in_the_makefile(self):
        made, readme = ((ROOT / name).read_text("utf-8") for name in ("Makefile", "README.md"))
        targets = {*re.findall(r"make (\w+)`", readme), "demo", "test", "lint"}
        assert [one for one in targets if not re.search(rf"^{one}:", made, re.MULTILINE)] == []


# The map in ARCHITECTURE.md names what exists, and every folder; other pages name no file that is gone

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGES = ("engine/steelyard", "eval/steelyard_eval")
OTHERS = [*PAGES, *(ROOT / f"{name}.md" for name in ("README", "SECURITY"))]


def named(page):
    """Every path that the page names, from the root: a link's target, a file in the folder of its line."""
    folder = ""
    for line in page.splitlines():
        links = re.findall(r"\]\(([^)#:]+)\)", line)
        if line.startswith("#"):
            folder = links[0] if len(links) == 1 else ""
        elif line.startswith("- ["):
            folder = links[0]
        yield from links
        for name in re.findall(r"`([\w/.-]+(?:\.py|/))`", line):
            yield name if "/" in name else folder + name


class TestMap:
    def test_every_path_of_the_map_exists(self):
        paths = list(named(PAGE))
        assert len(paths) > 100
        assert [path for path in paths if not (ROOT / path).exists()] == []

    @pytest.mark.parametrize("package", PACKAGES)
    def test_every_folder_has_a_line(self, package):
        folders = {path.parent for path in (ROOT / package).rglob("*.py")}
        lines = {ROOT / target for target in re.findall(r"^(?:#+|-) \[[^\]]+\]\(([^)]+)\)", PAGE, re.MULTILINE)}
        assert sorted(folders - lines) == []

    @pytest.mark.parametrize("page", [*OTHERS, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
    def test_other_pages_link_to_files_and_name_them_from_the_root_a_package_or_the_tests(self, page):
        text, folders = page.read_text(encoding="utf-8"), ("", "engine", "eval", *PACKAGES, "tests")
        links = re.findall(r"\]\(([^)#:]+)\)", text)
        assert [link for link in links if not (page.parent / link).exists()] == []
        # those of CONTRIBUTING.md are to come
        names = set(re.findall(r"`([\w/.-]+\.py)\b", text) if page in OTHERS else ())
        assert {name for name in names if not any((ROOT / at / name).is_file() for at in folders)} == set()


# What is installed is pinned by its hash, all of it, the build backend included

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {
    "base": (),
    "test": ("test", "notebooks", "docs", "api", "onnx"),
    "bench": ("bench", "test", "notebooks"),
}


def name_of(requirement):
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower().replace("_", "-").replace(".", "-")


@pytest.mark.parametrize("name", EXTRAS)
def test_every_dependency_is_pinned_by_hash_at_the_version_of_the_constraints(name):
    text, extras = (ROOT / "requirements" / f"{name}.txt").read_text(), PROJECT["optional-dependencies"]
    found = {}
    assert "://" not in text  # nothing names a host
    for entry in re.split(r"\n(?=\S)", text.strip()):
        package, _, version = entry.split(" ")[0].partition("==")
        assert "--hash=sha256:" in entry, package
        found.setdefault(name_of(package), set()).add(version)
    wanted = [*PROJECT["dependencies"], "hatchling", *(line for extra in EXTRAS[name] for line in extras[extra])]
    missing = {name_of(line) for line in wanted} - found.keys() - {"steelyard"}
    assert not missing, "run make lock"
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    known = {name_of(line): {line.split("==")[1]} for line in lines if "==" in line}
    assert {one: version for one, version in known.items() if found.get(one, version) != version} == {}
