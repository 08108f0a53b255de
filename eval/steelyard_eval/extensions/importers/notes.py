"""Notes in Markdown: front matter, links to other notes, tags and sections.

Links, tags and headings are found by expressions that take time in proportion to the text. A Markdown parser can
be made to work for minutes on a note of a megabyte, and nothing else that it finds is needed.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from unicodedata import normalize
from urllib.parse import unquote

from steelyard_eval.extensions.importers.base import WORDS, Record, filled, first, identifier
from steelyard_eval.extensions.importers.source import ForeignStore, read_front_matter
from steelyard_eval.extensions.importers.table import fitted, searched

SUFFIXES = (".md", ".MD", ".markdown")
LINKS = "links_to"  # The type of a relation that a link makes
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_CODE = re.compile(r"`[^`\n]*`")
_WIKI = re.compile(r"\[\[([^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_LINK = re.compile(
    r"\]\([ \t]*+(?:<([^<>\n]++)>|((?:[^()<>\s]|\([^()<>\s]*+\))++))(?:[ \t]++[\"'(][^\n()]*+\)?)?\)"
)
_ELSEWHERE = re.compile(r"[A-Za-z][\w+.-]*:|//")
_TAG = re.compile(r"(?<![\w/&#])#([^\W\d][\w/-]*)")
_HEADING = re.compile(r"#{1,6}\s++(.+)")
_TEMPLATE = re.compile(r"\{\{|<%")


@dataclass(frozen=True)
class Note:
    """A file of notes: its name with / between folders, its front matter and its text.

    `header` is the front matter as it is written; `odd` says what of the file could not be read as what it is
    meant to be.
    """

    name: str
    front: Mapping[str, object]
    text: str
    header: str = ""
    odd: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The name without its suffix, of which the id is made."""
        return without_suffix(self.name)

    @property
    def stem(self) -> str:
        """The name of the file alone, without its suffix."""
        return posixpath.basename(self.place)

    @cached_property
    def links(self) -> tuple[str, ...]:
        """What the note links to: the names in double brackets, then the files that end like notes."""
        named = (name.rstrip("\\").strip() for name in _WIKI.findall(f"{self.header}\n{self.prose}"))
        targets = (link[0] or link[1] for link in _LINK.findall(self.prose))
        files = (re.split(r"[#?]", target, maxsplit=1)[0] for target in targets if not _ELSEWHERE.match(target))
        paths = (unquote(file.strip()) for file in files if file.strip().endswith(SUFFIXES))
        return tuple(dict.fromkeys(filter(None, (*named, *paths))))

    @cached_property
    def prose(self) -> str:
        """The text outside code."""
        return "\n".join(_CODE.sub(" ", line) for line in self.lines)

    @cached_property
    def lines(self) -> list[str]:
        """The lines outside fenced code."""
        lines, fence = [], ""
        for line in self.text.split("\n"):
            mark = _FENCE.match(line)
            if mark and (not fence or mark[1].startswith(fence)):
                fence = "" if fence else mark[1]
            elif not fence:
                lines.append(line)
        return lines

    @cached_property
    def names(self) -> tuple[Iterable[str], ...]:
        """What links call it, the surest last: aliases, titles, the name of the file, its path."""
        titles = filter(None, map(self.text_of, ("permalink", "id", "name", "title")))
        return self.texts_of("aliases", "alias"), [*titles], [self.stem], [self.place]

    def text_of(self, *names: str) -> str:
        """The first of these keys of the front matter that has a value, as text."""
        value = first(self.front, *names)
        return "" if value is None else str(value)

    def texts_of(self, *names: str) -> list[str]:
        """The texts of the first of these keys, which may be a list, or a text with commas."""
        value = first(self.front, *names)
        texts: list[str] = fitted("tags", value.strip("[]") if isinstance(value, str) else value or [])
        return texts


def read_note(source: ForeignStore, name: str) -> Note:
    """One file; DataError when it is no text, or too large."""
    text, guess = source.prose(name)
    text = text.replace("\r", "\n")
    header, body, front, odd = read_front_matter(text)
    return Note(name, front, body, header, odd | ({"encoding": guess} if guess else {}))


def without_suffix(name: str) -> str:
    """The name of a file without the suffix of a note."""
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


class Names:
    """Which note a link means: by its path, seen from the note or from the root, its file's name, title or alias.

    Letters are compared composed, and in either case where no note has the very name. Of several notes the one
    that is nearest to the root is meant, unless one lies in the folder of the link.
    """

    def __init__(self, notes: Iterable[Note]) -> None:
        self._ids: dict[str, str] = {}
        by_name = sorted(notes, key=lambda note: note.name, reverse=True)
        far_first = sorted(by_name, key=lambda note: -note.name.count("/"))
        for fold in (True, False):
            for rank in range(4):
                for note in far_first:
                    for name in note.names[rank]:
                        self._ids[_key(name, fold)] = identifier(note.place)

    def id_of(self, link: str, note: Note) -> str:
        """The id of the note that a link in this note means; of none that is there, the id that it would have."""
        name = without_suffix(link)
        near = posixpath.normpath(posixpath.join("/", posixpath.dirname(note.name), name))
        for known in dict.fromkeys((near, name, unquote(name))):
            for fold in (False, True):
                if (id_ := self._ids.get(_key(known.lstrip("/"), fold))) is not None:
                    return id_
        return identifier((name if name == link else near).lstrip("/"))


def _key(name: str, fold: bool) -> str:
    composed = normalize("NFC", name)
    return f"/{normalize('NFC', composed.casefold())}" if fold else composed


def relations_of(note: Note, names: Names, typed: Sequence[tuple[str, str]] = ()) -> list[Record]:
    """The relations of a note: those with a type, as (type, link), then its other links."""
    known = [(kind, names.id_of(link, note)) for kind, link in typed]
    there = {target for _, target in known}
    known += [(LINKS, target) for link in note.links if (target := names.id_of(link, note)) not in there]
    return [{"type": kind, "target": target} for kind, target in dict.fromkeys(known)]


def entry_of(note: Note, names: Names) -> Record:
    """The note as an entry; `names` has the entries that its links mean."""
    front = note.front
    line, _, rest = note.text.partition("\n")
    heading = heading_of(line)
    named = next((text for key in ("title", "name") if (text := note.text_of(key))), "")
    title = ("" if _TEMPLATE.search(named) else named) or heading or note.stem
    kept = {"title"} if named and title != named else set()
    folder, project = str(PurePosixPath(note.name).parent) if "/" in note.name else "", front.get("project")
    if not isinstance(project, str):
        kept, project = kept | {"project"}, ""
    labels = {
        name: front[name]
        for name in ("category", "domain", "kind", "severity")
        if isinstance(front.get(name), str)
    }
    weight = front.get("importance")
    if isinstance(weight, int | float) and not isinstance(weight, bool) and 1 <= weight <= 10:
        labels["importance"] = weight
    taken = {*WORDS["front_matter"], *labels} - kept
    others = {name: value for name, value in front.items() if name not in taken}
    described = (*note.texts_of("aliases", "alias"), note.text_of("description"), note.text_of("summary"))
    texts = note.texts_of("tags", "tag")
    tags = [tag.lstrip("#") for text in texts for tag in (text.split() if text.startswith("#") else [text])]
    return filled(
        searched(
            {
                "id": identifier(note.place),
                "title": title,
                "text": rest.lstrip("\n") if title == heading else note.text,  # the title is searched once
                "context": "\n".join(dict.fromkeys(filter(None, described))),
                "tags": list(dict.fromkeys([*filter(None, tags), *_TAG.findall(note.prose)])),
                "created_at": first(front, "created", "created_at", "date"),
                "updated_at": first(front, "updated", "updated_at", "modified"),
                "project": project or folder,
                "uri": note.name,
                "type": note.text_of("type"),
                **labels,
                "relations": relations_of(note, names),
                "front_matter": others or None,
            }
        )
    )


def heading_of(line: str) -> str:
    """The text of a heading, without the marks that may close it; empty for another line."""
    match = _HEADING.match(line)
    title = match[1].rstrip() if match else ""
    return title.rstrip("#").rstrip() or title[:1]
