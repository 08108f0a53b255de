"""Weights files, recordings, and the lists they replay to have the bytes that commit 8291822 wrote.

Since then manifests name the analysis of words.

Charts are drawn by the matplotlib of constraints.txt.

    python tests/unit/recording/test_same_bytes.py ARCHIVE

makes the archive anew, of the set in it (three queries of qrels/starter and the twelve entries that were judged
for them first), with the Steelyard that Python finds. A change of what is written on purpose needs that; one that
was not meant, such as another name of a function by which recordings are compared, shows here.
"""

import json
import shutil
import sys
import tarfile
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from steelyard.config import SearchConfig
from steelyard.systems import SYSTEMS, find_system
from steelyard_eval.cli.main import main
from steelyard_eval.recording.disk import load
from steelyard_eval.recording.replay import replay

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "tests" / "data" / "made-by-8291822.tar.xz"
NAMES = sorted(name for name in SYSTEMS if not name.endswith(":newest"))


def make(given, folder):
    """Fill a folder with what is written of the set and the results that are given."""
    for name in NAMES:
        find_system(name).config(10, "minilm").save(folder / "weights" / f"{name.replace(':', '.')}.json")
    short = ",".join(name.removesuffix(":documented") for name in NAMES)
    words = ["record", str(given / "set"), str(folder / "recordings"), "--systems", short, "--quiet"]
    assert main(words, standalone_mode=False) in (0, None)
    lists = {}
    for place in sorted((folder / "recordings").iterdir()):
        found = replay(load(place), SearchConfig.load(folder / "weights" / f"{place.name}.json"))
        ends, ids = found.ranking.offsets.tolist(), [found.table.entries[at] for at in found.entry]
        ranked = [[id_, float(score).hex()] for id_, score in zip(ids, found.ranking.score, strict=True)]
        lists[place.name] = [ranked[first:last] for first, last in pairwise(ends)]
    (folder / "lists.json").write_text(json.dumps(lists, indent=1))


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    home = tmp_path_factory.mktemp("old")
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(home, filter="data")
    return home


@pytest.fixture(scope="module")
def new(old, tmp_path_factory):
    folder = tmp_path_factory.mktemp("new")
    make(old / "given", folder)
    return folder


@pytest.mark.parametrize("part", ["weights", "recordings"])
def test_what_is_written_has_the_bytes_of_old(old, new, part):
    before, after = contents(old / "made" / part), contents(new / part)
    assert [*after] == [*before]
    assert [name for name in after if after[name] != before[name]] == []


def test_recordings_give_the_lists_of_old(old, new):
    """Scores to 4 ulps: numpy's exp and log differ in the last bit between processors with and without AVX-512."""
    before, after = (rows(json.loads((place / "lists.json").read_text())) for place in (old / "made", new))
    assert [row[:3] for row in after] == [row[:3] for row in before]
    np.testing.assert_array_max_ulp(*(np.array([row[3] for row in part]) for part in (after, before)), maxulp=4)


def rows(lists):
    """The system, the query, the id and the score of every place."""
    return [
        (name, at, id_, float.fromhex(score))
        for name in sorted(lists)
        for at, query in enumerate(lists[name])
        for id_, score in query
    ]


def test_weights_are_written_as_they_were_read(old, tmp_path):
    for path in (old / "made" / "weights").iterdir():
        SearchConfig.load(path).save(tmp_path / path.name)
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        with tarfile.open(SAMPLE) as archive:
            archive.extractall(home, filter="data")
        shutil.rmtree(home / "made")
        make(home / "given", home / "made")
        paths = sorted(path for path in home.rglob("*") if ".steelyard" not in path.parts)  # runs are kept there
        with tarfile.open(sys.argv[1], "w:xz") as archive:
            for path in paths:
                archive.add(path, path.relative_to(home), recursive=False)
