"""What is installed is pinned by its hash, all of it, the build backend included."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {
    "base": (),
    "test": ("test", "notebooks", "docs", "api", "onnx"),
    "bench": ("bench", "test", "notebooks"),
}


def name_of(requirement):
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower().replace("_", "-").replace(".", "-")


def pinned(name):
    """The versions of a requirements file; every entry has hashes and nothing names a host."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    assert "://" not in text
    found = {}
    for entry in re.split(r"\n(?=\S)", text.strip()):
        package, _, version = entry.split(" ")[0].partition("==")
        assert "--hash=sha256:" in entry, package
        found.setdefault(name_of(package), set()).add(version)
    return found


@pytest.mark.parametrize("name", EXTRAS)
def test_every_dependency_is_pinned_by_hash(name):
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], "hatchling", *(line for extra in EXTRAS[name] for line in extras[extra])]
    missing = {name_of(line) for line in wanted} - pinned(name).keys() - {"steelyard"}
    assert not missing, "run make lock"


@pytest.mark.parametrize("name", EXTRAS)
def test_the_versions_are_those_of_the_constraints(name):
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    known = {name_of(line): line.split("==")[1] for line in lines if "==" in line}
    found = pinned(name)
    assert {p: v for p, v in known.items() if p in found} == {
        p: found[p].copy().pop() for p in known if p in found
    }
