"""Notes in Markdown: front matter, links to other notes, tags and sections.

Links, tags and headings are found by expressions that take time in proportion to the text. A Markdown parser can
be made to work for minutes on a note of a megabyte, and nothing else that it finds is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import unquote

from steelyard_eval.importers.base import Record, filled, identifier
from steelyard_eval.importers.columns import fitted
from steelyard_eval.importers.source import ForeignStore, read_yaml

LARGEST_HEADER = 65_536
"""Characters of front matter."""
LINKS = "links_to"
"""The type of a relation that a link makes."""
_READ = frozenset("title name tags tag created created_at date updated updated_at modified id type".split())  # noqa: SIM905 -- a list literal of so many words reads worse
"""Keys of front matter that fields of an entry stand for."""
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_CODE = re.compile(r"`[^`\n]*`")
_WIKI = re.compile(r"\[\[([^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_LINK = re.compile(r"\]\(<?([^()<>\s]+)>?\)")
_TAG = re.compile(r"(?<![\w/&#])#([^\W\d][\w/-]*)")
_HEADING = re.compile(r"#{1,6}\s++(.+)")


@dataclass(frozen=True)
class Note:
    """A file of notes: its name with / between folders, its front matter and its text."""

    name: str
    front: Mapping[str, object]
    text: str
    links: tuple[str, ...] = field(default=())
    tags: tuple[str, ...] = field(default=())

    @property
    def id(self) -> str:
        """The name without its suffix, as an id."""
        return identifier(self.name.removesuffix(".md"))

    @property
    def stem(self) -> str:
        """The name of the file alone, without its suffix."""
        return PurePosixPath(self.name).name.removesuffix(".md")

    def text_of(self, *names: str) -> str:
        """The first of these keys of the front matter that has a value, as text."""
        value = next((self.front[name] for name in names if self.front.get(name) not in (None, "")), "")
        return value if isinstance(value, str) else str(value)


def read_note(source: ForeignStore, name: str) -> Note:
    """One file; DataError when it is not UTF-8, too large, or its front matter is no YAML."""
    text = source.text(name)
    header, body = _parted(text)
    front = read_yaml(header, f"{source}: {name}") if header else {}
    prose = "\n".join(line for line in _prose(body))
    targets = filter(None, map(_file_of, _LINK.findall(prose)))
    links = dict.fromkeys(unquote(link).strip() for link in (*_WIKI.findall(prose), *targets))
    tags = dict.fromkeys(_TAG.findall(prose))
    return Note(name, front if isinstance(front, dict) else {}, body, tuple(links), tuple(tags))


def _parted(text: str) -> tuple[str, str]:
    """The front matter and the body without blank lines around it."""
    if text.startswith("---\n"):
        end = text.find("\n---", 3, LARGEST_HEADER)
        if end >= 0 and text[end + 4 : end + 5] in ("\n", ""):
            return text[4:end], text[end + 4 :].strip()
    return "", text.strip()


def _file_of(target: str) -> str:
    """The note that a link leads to, without a place in it; empty where it leads to something else."""
    name = target if target.endswith(".md") else target[: target.rfind(".md#") + 3]
    return name if len(name) > 3 else ""


def _prose(body: str) -> Iterator[str]:
    """The lines outside fenced code, without inline code."""
    fence = ""
    for line in body.split("\n"):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence:
            yield _CODE.sub(" ", line)


def entry_of(note: Note, ids: Mapping[str, str]) -> Record:
    """The note as an entry; `ids` has the entry that a link means by the name in it, see `link_names`."""
    front = note.front
    tags = [*fitted("tags", front.get("tags") or front.get("tag") or []), *note.tags]
    first, _, rest = note.text.partition("\n")
    heading = _heading(first)
    title = note.text_of("title", "name") or heading or note.stem
    return filled(
        {
            "id": note.id,
            "title": title,
            "text": rest.lstrip("\n") if title == heading else note.text,  # what is searched has the title once
            "tags": list(dict.fromkeys(tags)),
            "created_at": _time(front, "created", "created_at", "date"),
            "updated_at": _time(front, "updated", "updated_at", "modified"),
            "project": str(PurePosixPath(note.name).parent) if "/" in note.name else "",
            "uri": note.name,
            "type": note.text_of("type"),
            "relations": [{"type": LINKS, "target": ids.get(link, identifier(link))} for link in note.links],
            "front_matter": {name: _plain(value) for name, value in front.items() if name not in _READ} or None,
        }
    )


def link_names(notes: Sequence[Note]) -> dict[str, str]:
    """What a link may call each note: its path with and without suffix, its file's name, its title."""
    names: dict[str, str] = {}
    for note in notes:
        title = note.text_of("title", "name")
        for name in (title, note.stem, f"{note.stem}.md", note.name.removesuffix(".md"), note.name):
            if name:
                names[name] = note.id
    return names


def sections(note: Note) -> list[Note]:
    """The note cut at its headings; what stands before the first keeps the note's own name."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    fenced = False
    for line in note.text.split("\n"):
        fenced ^= bool(_FENCE.match(line))
        title = "" if fenced else _heading(line)
        if title:
            parts.append((title, []))
        else:
            parts[-1][1].append(line)
    notes = []
    for number, (title, lines) in enumerate(parts):
        text = "\n".join(lines).strip()
        if text and number:
            name = f"{note.name.removesuffix('.md')}#{number}-{title}"
            notes.append(Note(name, {**note.front, "title": title}, text))
        elif text:
            notes.append(Note(note.name, note.front, text, note.links, note.tags))
    return notes or [note]


def _heading(line: str) -> str:
    """The text of a heading, without the marks that may close it; empty for another line."""
    match = _HEADING.match(line)
    title = match[1].rstrip() if match else ""
    return title.rstrip("#").rstrip() or title[:1]


def _time(front: Mapping[str, object], *names: str) -> str | None:
    """A date that YAML read as a date or a text; None for text that is none."""
    value: object = next((front[name] for name in names if front.get(name)), None)
    text = value.isoformat() if hasattr(value, "isoformat") else value
    return text if isinstance(text, str) and re.match(r"\d{4}-\d\d-\d\d", text) else None


def _plain(value: object) -> object:
    """YAML's dates as texts; everything else is plain already."""
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(part) for part in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
