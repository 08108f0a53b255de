"""The map in ARCHITECTURE.md names what exists, and every folder; other pages name no file that is gone."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGES = ("engine/steelyard", "eval/steelyard_eval")
OTHERS = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / f"{name}.md" for name in ("README", "SECURITY"))]


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


def missing(page):
    return [path for path in named(page) if not (ROOT / path).exists()]


def test_every_path_of_the_map_exists():
    assert len(list(named(PAGE))) > 100
    assert missing(PAGE) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_has_a_line(package):
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}

    lines = {ROOT / target for target in re.findall(r"^(?:#+|-) \[[^\]]+\]\(([^)]+)\)", PAGE, re.MULTILINE)}
    assert sorted(folders - lines) == []


def test_a_file_that_is_gone_would_be_seen():
    page = "## [engine](engine/steelyard/)\n`grammar.py` and `gone.py`\n### [x/](engine/steelyard/x/)\n`y.py`"

    assert missing(page) == ["engine/steelyard/gone.py", "engine/steelyard/x/", "engine/steelyard/x/y.py"]


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.name)
def test_other_pages_name_files_from_the_root_a_package_or_the_tests(page):
    names = set(re.findall(r"`([\w/.-]+\.py)\b", page.read_text(encoding="utf-8")))

    found = {
        name for name in names for at in ("", "engine", "eval", *PACKAGES, "tests") if (ROOT / at / name).is_file()
    }
    assert names - found == set()


@pytest.mark.parametrize("page", [*OTHERS, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_the_files_that_other_pages_link_to_exist(page):
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []
