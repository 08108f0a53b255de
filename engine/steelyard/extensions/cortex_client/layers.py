"""Abstracts and overviews where none are written, taken from the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from steelyard.extensions.cortex_client.uris import directory
from steelyard.memory.entry import Entry
from steelyard.systems.cortex_mem import directory_of

ABSTRACT, OVERVIEW = 400, 4000
"""Characters: about 100 tokens, and about 1000 (500 to 2000 in the real program)."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+")

Summarise = Callable[[str], tuple[str, str]]
"""The abstract and the overview of a text."""


def extract(text: str) -> tuple[str, str]:
    r"""The first sentence of a text, and of each of its paragraphs; both cut at a word.

    >>> extract("# Keys\n\nRotate them weekly. Ask ops.\n\nTokens live an hour. No longer.")
    ('Keys Rotate them weekly.', 'Keys\nRotate them weekly.\nTokens live an hour.')
    """
    parts = [part.strip().lstrip("#").strip() for part in re.split(r"\n\s*\n|\n(?=#)", text)]
    firsts = [_SENTENCE.split(" ".join(part.split()), maxsplit=1)[0] for part in parts if part]
    title = firsts[:2] if text.lstrip().startswith("#") else firsts[:1]
    return cut(" ".join(title), ABSTRACT), cut("\n".join(firsts), OVERVIEW)


def with_layers(entries: Iterable[Entry], summarise: Summarise) -> list[Entry]:
    """The entries with an abstract and an overview for each directory that has neither.

    A directory of files becomes an entry of its own; an entry that lies in none is its own directory.
    """
    given = list(entries)
    held = {entry.uri for entry in given if entry.l0 or entry.l1}
    files: dict[str, list[Entry]] = {}
    made = []
    for entry in given:
        home = directory_of(entry.uri)
        if entry.l0 or entry.l1 or home in held - {""}:
            made.append(entry)
        elif home == entry.uri:
            made.append(_summarised(entry, [entry], summarise))
        else:
            made.append(entry)
            files.setdefault(home, []).append(entry)
    return made + [_summarised(directory(uri), members, summarise) for uri, members in files.items()]


def _summarised(entry: Entry, files: Iterable[Entry], summarise: Summarise) -> Entry:
    text = "\n\n".join(filter(None, (part for file in files for part in (file.title, file.text, file.details))))
    abstract, overview = summarise(text) if text.strip() else ("", "")
    return replace(entry, l0=abstract, l1=overview)


def cut(text: str, most: int) -> str:
    """The words that fit; of a single word that does not fit, what does."""
    return text if len(text) <= most else re.sub(r"\s+\S*\Z", "", text[: most + 1])[:most]
