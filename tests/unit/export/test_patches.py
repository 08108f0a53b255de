"""Patches of constants, applied to the sources that they name, whose functions then rank as our weights do.

STEELYARD_SOURCES is a folder of clones: ``git clone https://github.com/mraza007/echovault``, and so on.
"""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from steelyard_eval.export import export

from .test_export import config, lists, ours, tables

SOURCES = os.environ.get("STEELYARD_SOURCES", "")
TABLES = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
WEIGHTS, SHARES, STUBS = (TABLES[name] for name in ("WEIGHTS", "SHARES", "STUBS"))
PATCHES = [("moltnet", "patch"), *((name, "patch") for name in WEIGHTS if ":" in name)]
PATCHES += [(name, part) for name in ("soleri", "echovault") for part in ("patch", "patch_documented")]


@pytest.fixture
def patched(name, part, tmp_path):
    """The source after the patch, a file under `tmp_path`."""
    parts = export(config(WEIGHTS[name], system=name, limit=5), name.partition(":")[0]).parts
    owner, commit = re.match(r"# \S+/(\S+) (\w+)", parts[part]).groups()
    path = re.search(r"^\+\+\+ b/(\S+)", parts[part], re.MULTILINE)[1]
    if not (Path(SOURCES) / owner).is_dir() or not SOURCES:
        pytest.skip(f"STEELYARD_SOURCES has no clone of {owner}")
    shown = ["git", "-C", Path(SOURCES) / owner, "show", f"{commit}:{path}"]
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(subprocess.run(shown, check=True, capture_output=True).stdout)
    apply = ["git", "apply", "--unidiff-zero", "-"]
    subprocess.run(apply, cwd=tmp_path, input=parts[part].encode(), check=True, capture_output=True)
    return tmp_path / path


@pytest.mark.parametrize(("name", "part"), PATCHES)
def test_every_constant_has_the_value_of_the_weights(name, part, patched):
    text = patched.read_text("utf-8")
    if name.startswith("soleri"):  # without vectors, and with
        blocks = re.findall(r"^const DEFAULT_\w+: \w+ = {(.*?)}", text, re.MULTILINE | re.DOTALL)
        found = [[float(value) for value in re.findall(r"\w+: ([\d.]+),", block)] for block in blocks]
        assert found == [shares[: 6 + (part == "patch")] for shares in SHARES[name]]
        assert f"RECENCY_HALF_LIFE_DAYS = {365 if ':' in name else 730};" in text
    elif name == "moltnet":
        assert re.findall(r"^ +([26]0),$", text, re.MULTILINE) == ["20"] * 3
    else:
        assert f"min_fts_results: int = {4 if ':' in name else 5}," in text


class Program:
    """A database that has found these lists, and a model that embeds anything."""

    def __init__(self, fts, vector):
        self.found = [[{"id": i, "score": s, "title": "a test"} for i, s in one.items()] for one in (fts, vector)]

    def fts_search(self, *_, **__):
        return self.found[0]

    def vector_search(self, *_, **__):
        return self.found[1]

    def embed(self, _):
        return [0.0]


@pytest.mark.parametrize(("name", "part"), [each for each in PATCHES if each[0].startswith("echovault")])
def test_echovault_ranks_as_the_weights_say(name, part, patched, monkeypatch):
    """Its own `tiered_search`; the title is that of a test, whose factor 0.75 a weight of 0.4 makes 0.9."""
    (patched.parent / "embeddings").mkdir()
    for file, text in STUBS.items():
        (patched.parent / f"{file}.py").write_text(text)
    monkeypatch.syspath_prepend(patched.parents[1])
    for module in [module for module in sys.modules if module.partition(".")[0] == "memory"]:
        monkeypatch.delitem(sys.modules, module)
    search = importlib.import_module("memory.search").tiered_search
    for table in tables():
        np.absolute(table.columns["fts"], out=table.columns["fts"])  # as its BM25 is
        table.columns["housekeeping"] = np.full(len(table), 0.75)
        for query, scores in enumerate(ours(table, WEIGHTS[name])):
            fts, vector = (lists(table, query, one) for one in ("fts", "vector"))
            program = Program(fts, vector)
            found = {row["id"]: row["score"] for row in search(program, program, "words", limit=50)}
            # keywords alone are divided by their best there
            top = max(fts.values()) if ":" not in name and len(fts) >= 5 else 1.0
            assert found == pytest.approx({id_: score / top for id_, score in scores.items()})
