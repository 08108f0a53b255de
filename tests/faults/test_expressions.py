"""Regular expressions, too, take time in proportion to what they read: no file keeps a command busy for hours.

Counting calls (test_growth.py) does not see what happens inside an expression. Each text here has 400,000
characters and took minutes to years before; its reader runs in a process that is ended after `SECONDS` of CPU.
"""

import multiprocessing
import resource
from contextlib import suppress

import pytest

from steelyard.base.errors import SteelyardError
from steelyard.base.fields import parse_number
from steelyard.extensions.cortex_client.rewriting import _is_profile
from steelyard.systems import find_system
from steelyard_eval.extensions.importers import benchmark, markdown
from steelyard_eval.extensions.importers.notes import Names, entry_of, heading_of, read_note
from steelyard_eval.extensions.importers.source import ForeignStore
from steelyard_eval.extensions.importers.text_systems import _without_footer, array_of, cortex_mem

LENGTH, SECONDS = 400_000, 20


ABSTRACT = "user/a/.abstract.md"


def reading(importer):
    return lambda at: importer.read(ForeignStore(at))


def of(piece, before="", after=""):
    return before + piece * (LENGTH // len(piece)) + after


def noted(folder):
    note = read_note(ForeignStore(folder), "a.md")
    return entry_of(note, Names([note]))


FILES = {
    "a heading of blanks": ("a.md", of(" ", "# a", "x"), noted),
    "a heading of marks": ("a.md", of("#", "# a", "x"), noted),
    "a link with many places": ("a.md", of(".md#", "]("), noted),
    "an observation of blanks": ("a.md", of(" ", "- [a] ", "x"), reading(markdown.basic_memory)),
    "blank lines before a section": ("a.md", of("\n", "a", "x"), reading(markdown.basic_memory)),
    "blank lines in a memory": (ABSTRACT, of("\n", "**Added**: a", "x"), reading(cortex_mem)),
    "remarks that are not closed": (ABSTRACT, of("<!-- source-hash: "), reading(cortex_mem)),
    "topics that are not closed": ("topics", of("<top>"), reading(benchmark.trec)),
    "documents that are not closed": ("docs", of("<DOC>"), reading(benchmark.trec)),
    "marks that are not closed": ("docs", of("<", "<DOC><DOCNO>a</DOCNO>", "</DOC>"), reading(benchmark.trec)),
}
TEXTS = {
    "a number": (of("1", "", "x"), parse_number),
    "the name of a system": (of(" ", "a", "x"), find_system),
    "an array": (of('\\"', '{"', "}"), array_of),
    "a profile": (of("profile/", "cortex://user/", "\n"), _is_profile),
}


def ended(target, *given):
    """The exit code of a process that may take `SECONDS` of CPU."""

    def run():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        with suppress(SteelyardError, ValueError):
            target(*given)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join()
    return process.exitcode


@pytest.mark.parametrize("what", [*FILES, *TEXTS])
def test_a_reader_ends(tmp_path, what):
    name, text, read = FILES.get(what) or ("", *TEXTS[what])
    if name:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert ended(read, tmp_path if name else text) == 0


@pytest.mark.parametrize(
    ("line", "title"),
    [
        *(("# A title", "A title"), ("## closed ##", "closed"), ("###### six", "six"), ("####### seven", "")),
        *(("#tag", ""), ("# ##", "#"), ("#  ", ""), ("# a # b", "a # b")),
    ],
)
def test_headings(line, title):
    """By CommonMark 4.2 (ATX headings), but for a heading of marks alone, which keeps one as its name."""
    assert heading_of(line) == title


@pytest.mark.parametrize(
    ("link", "names"),
    [
        ("[a](b.md)", ("b.md",)),
        ("[a](<b.md#part>)", ("b.md",)),
        ("[a](b.md#x.md)", ("b.md",)),
        ("[a](https://b.example)", ()),
    ],
)
def test_links(tmp_path, link, names):
    (tmp_path / "a.md").write_text(link)
    assert read_note(ForeignStore(tmp_path), "a.md").links == names


@pytest.mark.parametrize(
    ("line", "content", "context"),
    [
        ("- [tech] uses Rust (since May) ", "uses Rust", "since May"),
        ("- [tech] (all of it)", "(all of it)", None),
        ("- [tech] a (b) (c)", "a (b)", "c"),
        ("- [tech] f(x)", "f(x)", None),
        ("- [tech] a (b(c))", "a (b(c))", None),
    ],
)
def test_observations(line, content, context):
    found = markdown._observation(line)
    assert (found["content"], found["context"]) == (content, context)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\n\n---\n**Added**: 2026-01-01\n", "a"),
        ("a\n<!-- source-hash: 1 -->", "a"),
        ("a\n<!-- source-hash: 1", "a\n<!-- source-hash: 1"),
        ("a\n**Added**: 1\nb\n", "a\n**Added**: 1\nb\n"),
    ],
)
def test_a_remark_at_the_end(text, left):
    assert _without_footer(text) == left
