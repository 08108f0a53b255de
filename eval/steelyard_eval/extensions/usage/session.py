"""The one form in which every kind of log is read: sessions of an agent, as events in their order.

Texts stay in memory: `impressions` writes none of them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath

import msgspec

from steelyard.base.errors import PATH_WIDTH, DataError, quote
from steelyard.base.files import MAX_NESTING, STRICT_JSON, is_deep, lines, open_unpacked
from steelyard.memory.entry import Entry
from steelyard_eval.extensions.endpoints.answer_form import SHORTEST, Mentioned
from steelyard_eval.extensions.importers.source import ForeignStore

AGENT, PERSON, MEMORY = "agent", "person", "memory"
"""Who said something: the agent its answer, a person a question; what is saved into the memory cites nothing."""
FILES = ("related_files", "files_modified", "files", "applies_to")
"""What programs call the files that an entry is about."""
MAX_LINE_BYTES = 32 * 2**20  # a longer line holds a picture or a file, and no list of results
MAX_DOCUMENT_BYTES = 512 * 2**20  # of a file that is one JSON document
Record = dict[str, object]
RUN = 8  # words that are no chance when an answer repeats them; of scripts without blanks twice as many characters
TITLE_WORDS, TITLE_CHARACTERS = 3, 12
"""A title of so many words and characters is recognised in plain text, others only in quotes or emphasis."""
LEAST_ID, LONGEST_ID = 6, 100  # Characters of an id in prose, and of the beginning of one
LEAST_TITLE = 5  # Characters of a title in quotes
LONGEST_SENTENCE = 2000  # Characters that are looked at as one sentence
_UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts without blanks, each of whose characters counts as a word."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_WITHOUT_BLANKS = re.compile(rf"[{_UNSPACED}]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[\u3002\uff01\uff1f])")
FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_TOKEN = re.compile(r"[^\s\"'`,;|<>()\[\]{}*]+")
_WORDS = STRICT_JSON.decode(resources.files(__package__).joinpath("wording.json").read_text("utf-8"))
"""Marks around a title (a single word in the last ones is a name in a program as often), what says that something
is of no use, how texts begin that programs write in a person's place, and the words that questions share."""
_NOT, _ABOUT, _THINGS, _NO_USE = (f"(?:{'|'.join(_WORDS[n])})" for n in ("not", "about", "things", "useless"))
USELESS = re.compile(
    rf"\b{_NOT}\b(?:\W+\w+){{0,4}}?\W+{_ABOUT}|\b{_NO_USE}\b"
    rf"|\banother {_THINGS}\b|\bdifferent (?:{_THINGS}|one|from)\b",
    re.IGNORECASE,
)
_MARKS = rf"^[ \t]*<({'|'.join(_WORDS['added'])})\b[^<>]{{0,500}}>.*?(?:</\1>|\Z)"
_ADDED = re.compile(_MARKS, re.DOTALL | re.MULTILINE)  # what programs put before or behind the words of a person
_PROGRAM = re.compile("|".join(_WORDS["program"]), re.IGNORECASE)
GOES_ON = re.compile(rf"\W*(?:{'|'.join(_WORDS['goes_on'])})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Searched:
    """A search with its list. `key` names it in its log; `hits` are ids, None where its answer cannot be read.

    `engine` is what answered: a system of ours, or any other name. `narrowed` maps fields of entries to the
    values that were asked for; None where the log does not say. `limit` is how many results were asked for.
    """

    key: str
    time: float | None
    query: str
    hits: tuple[str, ...] | None
    engine: str = ""
    narrowed: Mapping[str, object] | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Acted:
    """An act on entries, or on files, by their names: `opened`, `modified`, or what somebody `reported`.

    A report may be of one `search` alone; without a name it is on the whole list.
    """

    names: tuple[str, ...]
    action: str
    reported: bool = False
    search: str = ""


@dataclass(frozen=True, slots=True)
class Wrote:
    """Files that were edited, and what was written into them."""

    paths: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A text, and who said it."""

    who: str
    text: str


Event = Searched | Acted | Wrote | Spoken


@dataclass(frozen=True, slots=True)
class UseSession:
    """The events of one session, in their order; `client` tells sessions apart."""

    client: str
    events: Iterable[Event]
    simulated: bool = False


class Corpus(dict[str, Entry]):
    """The entries by id, which are found by whatever `names` one of them alone."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__((entry.id, entry) for entry in entries)
        self.names = Mentioned(entries)

    def texts(self, id_: str) -> list[str]:
        """What an entry says."""
        entry = self[id_]
        return [entry.text, entry.why, entry.impact, entry.details, entry.context, entry.l1]

    def files(self, id_: str) -> list[str]:
        """The files that an entry is about."""
        named = [self[id_].extra.get(name) for name in FILES]
        paths = [path for value in named if isinstance(value, list) for path in value if isinstance(path, str)]
        return [path for path in paths if "/" in path or "." in path]


def files_of(place: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The file, or the files below a folder, sorted; links are not followed. DataError for too many."""
    return [place] if place.is_file() else [place / name for name in ForeignStore(place).files(*suffixes)]


def records_of(path: Path, faults: Counter[str]) -> Iterator[Record]:
    """The objects of a file of JSON lines, or of one document with a list of them; DataError when unreadable."""
    try:
        named = path.name.removesuffix(".gz").endswith(".json")
        first = next(lines(path, MAX_LINE_BYTES), (0, b""))[1]
        if named and not isinstance(_decoded(first), dict):  # one JSON value
            yield from _in_document(path, faults)
            return
        for _, raw in lines(path, MAX_LINE_BYTES):
            if isinstance(record := _decoded(raw), dict):
                yield record
            else:
                faults["lines that are no JSON objects, or too long or deep"] += 1
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot read {_named(path)}: {reason}; make it readable, or leave it out") from None


def dict_of(value: object) -> Record:
    """The object that a value is, or holds as text; empty where it is something else."""
    decoded = loaded(value)
    return decoded if isinstance(decoded, dict) else {}


def objects(value: object) -> list[Record]:
    """The objects in a list; none where it is something else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def loaded(value: object) -> object:
    """The JSON value in a text, within bounds; anything else as it is."""
    if not isinstance(value, str) or len(value) > MAX_LINE_BYTES or value.lstrip()[:1] not in ("{", "["):
        return value
    decoded = _decoded(value.encode(errors="replace"))
    return value if decoded is None else decoded


def _decoded(raw: bytes, most: int = MAX_LINE_BYTES) -> object:
    if len(raw) > most:
        return None
    try:
        decoded: object = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if raw.count(b"[") + raw.count(b"{") > MAX_NESTING and is_deep(decoded) else decoded


def _in_document(path: Path, faults: Counter[str]) -> Iterator[Record]:
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        most = MAX_DOCUMENT_BYTES // 2**20
        raise DataError(f"{_named(path)} is one document of more than {most} MB; export JSON lines")
    with open_unpacked(path) as stream:
        document = _decoded(stream.read(), MAX_DOCUMENT_BYTES)
    if document is None:
        faults["files that are no JSON, or nested too deep"] += 1
    yield from objects(document if isinstance(document, list) else [document])


def _named(path: Path) -> str:
    return quote(str(path), PATH_WIDTH)


@dataclass(frozen=True)
class Sentence:
    """A sentence, its plain words with a blank at either end, the words that may be an id, and its runs."""

    text: str
    plain: str
    tokens: frozenset[str]
    runs: tuple[str, ...]


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text that are not blank, in pieces of `LONGEST_SENTENCE` characters."""
    size = LONGEST_SENTENCE
    parts = (sentence[i : i + size] for sentence in _SENTENCE.split(text) for i in range(0, len(sentence), size))
    return [
        Sentence(
            part,
            f" {plain_words(part)} ",
            frozenset(token.strip(".:!?#") for token in _TOKEN.findall(part)),
            tuple(runs_of(part)),
        )
        for part in parts
        if not part.isspace()
    ]


def plain_words(text: str) -> str:
    """The words of a text, in lower case, with single blanks between."""
    return " ".join(_WORD.findall(text.casefold()))


def persons_words(text: str) -> str:
    r"""What a person wrote of a text in their place; empty where a program wrote all of it."""
    words = _ADDED.sub("", text).strip()
    return "" if _PROGRAM.match(words) else words


def content_words(text: str) -> set[str]:
    """The words of a question that say what it is about."""
    return {word for word in _WORD.findall(text.casefold()) if word not in _WORDS["common"] and len(word) > 1}


def marks_of(id_: str) -> list[str]:
    """What stands for an id in prose: itself, and eight characters and more of its beginning with a digit."""
    if len(id_) < LEAST_ID or id_.isalpha() or id_.isdigit():
        return []  # a word or a number stands in any text
    begins = (id_[:size] for size in range(SHORTEST, min(len(id_), LONGEST_ID)))
    return [id_, *(begin for begin in begins if any(map(str.isdigit, begin)))]


def is_named(title: str, name: str, sentence: Sentence) -> bool:
    """Whether a sentence that has the plain words of a title, `name`, means the title by them."""
    if len(name.split()) >= TITLE_WORDS and len(name) >= TITLE_CHARACTERS:
        return True
    held, wanted = sentence.text.casefold(), title.casefold()
    marks = [*_WORDS["quotes"], *(_WORDS["emphasis"] if " " in name else ())]
    return len(name) >= LEAST_TITLE and any(f"{begin}{wanted}{end}" in held for begin, end in marks)


def runs_of(text: str) -> Iterator[str]:
    """Every run of so many words of a text."""
    words = _WORD.findall(text.casefold())
    size = 2 * RUN if _WITHOUT_BLANKS.search(text) else RUN
    for i in range(len(words) - size + 1):
        yield f" {' '.join(words[i : i + size])} "


def file_name(path: str) -> str:
    """The last part of a path."""
    return PurePosixPath(path.replace("\\", "/")).name


def is_same_file(path: str, related: str) -> bool:
    """Whether a path ends with the other one, folder by folder; a bare name is not enough."""
    long, other = (PurePosixPath(name.replace("\\", "/")).parts for name in (path, related))
    short = tuple(part for part in other if part not in (".", "/"))
    return len(short) > 1 and long[-len(short) :] == short
