"""Files that are written: whole or not at all, and nothing left beside them."""

import gzip
import json
import sys
from pathlib import Path

import pytest

from steelyard.base.files import cache_folder, canonical, draft, write_text, write_texts
from steelyard_eval.recording.disk import move_folder


def test_no_control_character_stands_in_a_document():
    """U+009B begins a command of a terminal, as ESC [ does; JSON allows both of these as they are."""
    text = canonical({"a": "\x9b31m\x7fé"})
    assert text == '{\n  "a": "\\u009b31m\\u007fé"\n}\n'
    assert json.loads(text) == {"a": "\x9b31m\x7fé"}


def test_what_a_dead_process_left_is_swept_and_what_a_living_one_writes_is_not(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    dead, living, other = (tmp_path / f".{n}.part" for n in ("w.json.dead", "w.json.live", "v.json.dead"))
    for path in (dead, living, other):
        path.write_text("half")
    with living.open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        write_text(tmp_path / "w.json", "whole")

    assert {p.name for p in tmp_path.iterdir()} == {"w.json", living.name, other.name}
    assert (tmp_path / "w.json").read_text() == "whole"


def test_a_file_that_is_read_as_gzip_is_written_so(tmp_path):
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_text(tmp_path / name, "{}\n")
    written = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    assert [gzip.decompress(data) for data in written] == [b"{}\n"] * 2
    assert written[0] == written[1]  # the same bytes at any time and under any name


def test_no_file_is_replaced_before_all_are_written(tmp_path):
    write_texts({tmp_path / "a": "old", tmp_path / "b": "old"})
    with pytest.raises(UnicodeEncodeError):
        write_texts({tmp_path / "a": "new", tmp_path / "b": "\ud800"})
    assert [(p.name, p.read_text()) for p in sorted(tmp_path.iterdir())] == [("a", "old"), ("b", "old")]


@pytest.mark.parametrize("swaps", [True, False])
def test_a_folder_takes_the_place_of_another(tmp_path, monkeypatch, swaps):
    if not swaps:
        monkeypatch.setattr("steelyard_eval.recording.disk._SWAP", -1)
    target = tmp_path / "folder"
    for text in ("first", "second"):
        with draft(target, folder=True) as part:
            (part / text).write_text(text)
            move_folder(part, target)
    assert [p.name for p in target.iterdir()] == ["second"]
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@pytest.mark.skipif(sys.platform != "linux", reason="others need two renames")
def test_the_older_folder_is_never_away(tmp_path, monkeypatch):
    target = tmp_path / "folder"
    target.mkdir()
    monkeypatch.setattr(Path, "rename", lambda *_: pytest.fail("moved aside before the new one came"))
    with draft(target, folder=True) as part:
        (part / "new").write_text("new")
        move_folder(part, target)
    assert [p.name for p in target.iterdir()] == ["new"]


def test_the_cache_lies_where_the_environment_says():
    assert cache_folder({"STEELYARD_CACHE": "x"}).as_posix() == "x"
    assert cache_folder({"XDG_CACHE_HOME": "x"}).as_posix() == "x/steelyard"
    assert cache_folder({}).parts[-2:] == (".cache", "steelyard")
