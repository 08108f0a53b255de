"""Regular expressions, too, take time in proportion to what they read: no file keeps a command busy for hours.

Counting calls (test_growth.py) does not see what happens inside an expression. Each text here has 400,000
characters and took minutes to years before; its reader runs in a process that is ended after `SECONDS` of CPU.
"""

import multiprocessing
import resource
from contextlib import suppress

import pytest
from small import ATTACKS

from steelyard.base.errors import SteelyardError
from steelyard.base.fields import parse_number
from steelyard.extensions.cortex_client.rewriting import _is_profile
from steelyard.systems import find_system
from steelyard_eval.extensions.importers import benchmark, markdown
from steelyard_eval.extensions.importers.notes import Names, entry_of, heading_of, read_note
from steelyard_eval.extensions.importers.source import ForeignStore
from steelyard_eval.extensions.importers.text_systems import _without_footer, array_of, cortex_mem

LENGTH, SECONDS = 400_000, 20


def noted(store):
    note = read_note(store, "a.md")
    return entry_of(note, Names([note]))


OF_FILES = {
    "a note": noted,
    "basic memory": markdown.basic_memory.read,
    "cortex": cortex_mem.read,
    "trec": benchmark.trec.read,
}
OF_TEXTS = {"number": parse_number, "system": find_system, "array": array_of, "profile": _is_profile}


def ended(target, given):
    def run():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        with suppress(SteelyardError, ValueError):
            target(given)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join()
    return process.exitcode


@pytest.mark.parametrize("what", ATTACKS["expressions"])
def test_a_reader_ends(tmp_path, what):
    reader, name, before, piece, after = ATTACKS["expressions"][what]
    text = before + piece * (LENGTH // len(piece)) + after
    if name:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        assert ended(OF_FILES[reader], ForeignStore(tmp_path)) == 0
    else:
        assert ended(OF_TEXTS[reader], text) == 0


@pytest.mark.parametrize(("line", "title"), ATTACKS["headings"])
def test_headings(line, title):
    """By CommonMark 4.2 (ATX headings), but for a heading of marks alone, which keeps one as its name."""
    assert heading_of(line) == title


@pytest.mark.parametrize(("link", "names"), ATTACKS["links"])
def test_links(tmp_path, link, names):
    (tmp_path / "a.md").write_text(link)
    assert read_note(ForeignStore(tmp_path), "a.md").links == tuple(names)


@pytest.mark.parametrize(("line", "content", "context"), ATTACKS["observations"])
def test_observations(line, content, context):
    found = markdown._observation(line)
    assert (found["content"], found["context"]) == (content, context)


@pytest.mark.parametrize(("text", "left"), ATTACKS["remarks"])
def test_a_remark_at_the_end(text, left):
    assert _without_footer(text) == left
