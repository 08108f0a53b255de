"""Files that are written whole or not at all; registries refuse a name that is taken."""

import gzip
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from steelyard import node as registry
from steelyard.base.errors import ConfigError
from steelyard.base.files import cache_folder, canonical, draft, write_text, write_texts
from steelyard.finish import STAGES
from steelyard.fusion import FAMILIES, parse_strategy
from steelyard.fusion.ranks import Isr, RankSum, Rrf
from steelyard.node import Registry
from steelyard.retrievers import RETRIEVER_KINDS
from steelyard.signals import PRIORS
from steelyard.systems import SYSTEMS
from steelyard_eval.recording.disk import move_folder


class TestFiles:
    def test_no_control_character_stands_in_a_document(self):
        """U+009B begins a command of a terminal, as ESC [ does; JSON allows both of these as they are."""
        text = canonical({"a": "\x9b31m\x7fé"})
        assert text == '{\n  "a": "\\u009b31m\\u007fé"\n}\n'
        assert json.loads(text) == {"a": "\x9b31m\x7fé"}

    def test_what_a_dead_process_left_is_swept_and_what_a_living_one_writes_is_not(self, tmp_path):
        fcntl = pytest.importorskip("fcntl")
        dead, living, other = (tmp_path / f".{n}.part" for n in ("w.json.dead", "w.json.live", "v.json.dead"))
        for path in (dead, living, other):
            path.write_text("half")
        with living.open() as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            write_text(tmp_path / "w.json", "whole")
        assert {p.name for p in tmp_path.iterdir()} == {"w.json", living.name, other.name}
        assert (tmp_path / "w.json").read_text() == "whole"

    def test_a_file_that_is_read_as_gzip_is_written_so(self, tmp_path):
        for name in ("a.jsonl.gz", "b.jsonl.gz"):
            write_text(tmp_path / name, "{}\n")
        written = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
        assert [gzip.decompress(data) for data in written] == [b"{}\n"] * 2
        assert written[0] == written[1]  # the same bytes at any time and under any name

    def test_no_file_is_replaced_before_all_are_written(self, tmp_path):
        write_texts({tmp_path / "a": "old", tmp_path / "b": "old"})
        with pytest.raises(UnicodeEncodeError):
            write_texts({tmp_path / "a": "new", tmp_path / "b": "\ud800"})
        assert [(p.name, p.read_text()) for p in sorted(tmp_path.iterdir())] == [("a", "old"), ("b", "old")]


SWAPS = pytest.param(True, marks=pytest.mark.skipif(sys.platform != "linux", reason="others need two renames"))


@pytest.mark.parametrize("swaps", [SWAPS, False])
def test_a_folder_takes_the_place_of_another_which_is_never_away_where_both_can_be_swapped(
    tmp_path, monkeypatch, swaps
):
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").write_text("old")
    if swaps:
        monkeypatch.setattr(Path, "rename", lambda *_: pytest.fail("moved aside before the new one came"))
    else:
        monkeypatch.setattr("steelyard_eval.recording.disk._SWAP", -1)
    with draft(target, folder=True) as part:
        (part / "new").write_text("new")
        move_folder(part, target)
    assert [p.name for p in target.iterdir()] == ["new"]
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_the_cache_lies_where_the_environment_says():
    assert cache_folder({"STEELYARD_CACHE": "x"}).as_posix() == "x"
    assert cache_folder({"XDG_CACHE_HOME": "x"}).as_posix() == "x/steelyard"
    assert cache_folder({}).parts[-2:] == (".cache", "steelyard")


class Halves(RankSum):
    keyword = "halves"
    shown_as = "halves"
    formula = "1 / 2^rank in {}"

    def points(self, rank, place):
        return 0.5**rank


@pytest.mark.parametrize("held", [FAMILIES, PRIORS, STAGES, RETRIEVER_KINDS, SYSTEMS], ids=lambda one: one.kind)
def test_a_name_that_is_taken_is_refused(held):
    name, one = next(iter(held.items()))
    with pytest.raises(ConfigError, match=name):
        held[name] = object()
    assert held[name] is one
    held[name] = one  # the same again is no second one


def test_both_homes_of_a_name_are_told():
    mine = type("Mine", (Isr,), {"keyword": "rrf", "__module__": "mine.fusions"})
    with pytest.raises(ConfigError, match=r"(?s)(?=.*mine\.fusions)(?=.*steelyard\.fusion\.ranks)"):
        Registry("fusion", "keyword", [Rrf, mine])


def test_a_package_brings_a_fusion_under_an_entry_point(monkeypatch):
    brought = {"steelyard.fusions": {"halves": SimpleNamespace(load=lambda: Halves)}}
    monkeypatch.setattr(registry, "_brought", lambda group: brought.get(group, {}))
    try:
        assert str(parse_strategy("halves(fts, 2*vector)")) == "halves(fts, 2*vector)"
    finally:
        FAMILIES.pop("halves", None)


def test_thousands_of_names_that_nobody_has_are_looked_up_at_once(monkeypatch):
    asked = []
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: asked.append(group) or [])
    registry._brought.cache_clear()
    with pytest.raises(ConfigError):
        parse_strategy(f"rrf({', '.join(f'n{i}' for i in range(1000))})")
    registry._brought.cache_clear()
    assert sorted(asked) == ["steelyard.fusions", "steelyard.signals"]
