"""The map in ARCHITECTURE.md names what exists, and every folder there is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGES = ("engine/steelyard", "eval/steelyard_eval")


def named(page):
    """Every path that the page names, from the root: a link's target, a file in the folder of its heading."""
    folder = ""
    for line in page.splitlines():
        links = re.findall(r"\]\(([^)#:]+)\)", line)
        if line.startswith("#"):
            folder = links[0] if len(links) == 1 else ""
        yield from links
        for name in re.findall(r"`([\w/.-]+(?:\.py|/))`", line):
            yield name if "/" in name else folder + name


def missing(page):
    return [path for path in named(page) if not (ROOT / path).exists()]


def test_every_path_of_the_map_exists():
    assert len(list(named(PAGE))) > 200
    assert missing(PAGE) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_has_a_heading(package):
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}

    headings = {ROOT / target for target in re.findall(r"^##+ \[[^\]]+\]\(([^)]+)\)$", PAGE, re.MULTILINE)}
    assert sorted(folders - headings) == []


def test_a_file_that_is_gone_would_be_seen():
    page = "## [engine](engine/steelyard/)\n`table.py` and `gone.py`\n### [x/](engine/steelyard/x/)\n`y.py`"

    assert missing(page) == ["engine/steelyard/gone.py", "engine/steelyard/x/", "engine/steelyard/x/y.py"]
