"""A store as importers see it: read only, without links that lead out of it, within bounds."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from steelyard.base.errors import PATH_WIDTH, DataError, quote
from steelyard.base.files import STRICT_JSON, UnpackError, open_regular, read_bytes, unpacked
from steelyard_eval.extensions.importers.database import MAGIC, Database, snapshot

MOST_FILES = 200_000  # FolderFiles that a folder may hold below it
LARGEST_NOTE = 16 * 2**20  # Bytes of a file that becomes one entry
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # The byte order marks of UTF-16
LARGEST_HEADER = 65_536  # Characters of front matter
_HEADER = re.compile(r"---[^\S\n]*\n(.*?)^(?:---|\.\.\.)[^\S\n]*$", re.DOTALL | re.MULTILINE)
WORDS_OF_A_KEY = 3  # A line with more words before its colon is a sentence
_KEY = re.compile(r"^(?![ \t#\-\[\]{},])([^:\n]+):(?=[ \t]|$)")
"""A key that begins a line."""
DEEPEST = 64  # Levels of a YAML document, as of JSON: libyaml's loader calls itself for each
_ODD = re.compile(
    r"[-+]?(?:\.(?:inf|nan|\d\w*)|0x\w{17,}|[\d_]{19,}(?:\.\d*)?|\d+(?::\d+){3,}(?:\.\d*)?|[\d.]+e[-+]?\d{3,})",
    re.IGNORECASE,
)
"""Infinities, and what is larger than any number that is kept exactly."""
_TEXTS, _VALUES = ("", "!", "str", "seq", "map"), ("int", "float", "bool", "null")
"""Tags that a document may write out."""
_NAMED = dict.fromkeys(("", "~", "null", "Null", "NULL")) | dict.fromkeys(("true", "True", "TRUE"), True)
_NAMED |= dict.fromkeys(("false", "False", "FALSE"), False)


@dataclass(frozen=True)
class Options:
    """What the user says of a source that cannot be seen in it.

    `columns` maps fields of an entry to columns or keys. `sql` is the query whose rows are the entries, if any.
    `model` is what made its vectors.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    sql: str = ""
    model: str = ""


@dataclass(frozen=True)
class ForeignStore:
    """A file or a folder that somebody else's program wrote; or the address of a database that is running."""

    path: Path
    options: Options = Options()
    address: str = ""

    def __str__(self) -> str:
        return quote(self.place, PATH_WIDTH)

    @property
    def place(self) -> str:
        """The path, or the address."""
        return self.address or str(self.path)

    @property
    def folder(self) -> Path:
        """The folder; of a file the one that it lies in."""
        return self.path if self.path.is_dir() else self.path.parent

    def has(self, name: str) -> bool:
        """Whether there is a regular file of this name, which is no link."""
        path = self._place(name)
        return path.is_file() and not path.is_symlink()

    def is_database(self, name: str = "") -> bool:
        """Whether there is an SQLite file of this name, or this is one."""
        if not self.has(name or self.path.name):
            return False
        with open_regular(self._place(name or self.path.name)) as stream:
            return stream.read(len(MAGIC)) == MAGIC

    def holds(self, name: str, **tables: Iterable[str]) -> bool:
        """Whether there is an SQLite file of this name with tables that have these columns."""
        if not self.is_database(name):
            return False
        with self.database(name) as db:
            return all(
                table in db.columns and {*columns} <= {*db.columns[table]} for table, columns in tables.items()
            )

    def prose(self, name: str, most: int | None = LARGEST_NOTE, guessed: bool = True) -> tuple[str, str]:
        """A file as text, line ends as line feeds, and the encoding where that is a guess.

        DataError when it cannot be read, has more than `most` bytes, or is neither UTF-8, nor UTF-16 with its
        mark, nor by a guess windows-1252; text has no NUL, which UTF-16 without its mark would have.
        """
        path, place = self._place(name), f"{self}: {quote(name)}"
        try:
            if path.is_symlink():
                raise DataError(f"{place} is a link, and links are not followed; import its target")
            if most is not None and path.stat().st_size > most:
                raise DataError(f"{place} has more than {most // 2**20} MB; split or remove it")
            content = unpacked(read_bytes(path)) if name.endswith(".gz") else read_bytes(path)
        except OSError as error:
            raise DataError(f"{place} cannot be read ({error.strerror}); make it readable") from None
        except UnpackError as error:
            raise DataError(f"{place} is not a valid gzip file ({error}); copy it again") from None
        guesses = ("windows-1252", "latin-1") if guessed else ()
        for encoding in ("utf-16",) if content.startswith(UTF_16) else ("utf-8-sig", *guesses):
            with suppress(UnicodeDecodeError):
                text = content.decode(encoding)
                if "\0" not in text:
                    return text.replace("\r\n", "\n"), encoding if encoding in guesses else ""
        raise DataError(f"{place} is not UTF-8 text; save it as UTF-8, or remove it")

    def text(self, name: str, most: int | None = LARGEST_NOTE) -> str:
        """A file as text, as `prose` has it without guesses."""
        return self.prose(name, most, guessed=False)[0]

    def head(self, name: str, size: int = 4096) -> str:
        """The beginning of a file, by which a kind is recognised; empty where it cannot be read."""
        try:
            with open_regular(self._place(name)) as stream:
                content = b"" if self._place(name).is_symlink() else stream.read(size)
        except OSError:
            return ""
        text = content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig", "ignore")
        return text.replace("\r\n", "\n")

    def json(self, name: str) -> Any:  # noqa: ANN401 -- any JSON value
        """A file that is one JSON value; DataError when it is none."""
        return decoded(self.text(name, None), f"{self}: {quote(name)}")

    def lines(self, name: str) -> Iterator[tuple[int, str]]:
        """The lines of a file that are not blank, numbered from 1."""
        for number, line in enumerate(self.text(name, None).split("\n"), 1):
            if line.strip():
                yield number, line

    def files(self, *suffixes: str) -> Iterator[str]:
        """Names of all files below the folder with one of these suffixes, sorted, with / between folders.

        Links are neither followed nor named. Raises DataError for more than `MOST_FILES` files.
        """
        names: list[str] = []
        for place, folders, files in os.walk(self.folder, followlinks=False):
            folders[:] = sorted(name for name in folders if not (Path(place) / name).is_symlink())
            parent = PurePosixPath(Path(place).relative_to(self.folder).as_posix())
            names += (str(parent / name) for name in files if name.endswith(suffixes))
            if len(names) > MOST_FILES:
                raise DataError(f"{self} holds more than {MOST_FILES:,} files; import a folder inside it")
        yield from sorted((name for name in names if not self._place(name).is_symlink()), key=os.fsencode)

    @contextmanager
    def database(self, name: str) -> Iterator[Database]:
        """A copy of an SQLite file as it is at this moment, for reading; see `snapshot`."""
        with snapshot(self._place(name)) as database:
            yield database

    def _place(self, name: str) -> Path:
        return self.path if not self.path.is_dir() and name == self.path.name else self.folder / name


def decoded(text: str, place: str) -> Any:  # noqa: ANN401 -- any JSON value
    """A JSON value from a text; DataError, which begins with `place`, when it is none."""
    try:
        return STRICT_JSON.decode(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place} is not JSON that can be read ({error}); restore it") from None


def read_front_matter(text: str) -> tuple[str, str, dict[str, object], dict[str, str]]:
    """Header as written, body, values by key, and what is odd: `yaml` for what is none, `numbers`.

    A header that is no YAML is read key by key; a value that cannot be read stays text. What stands between two
    rules at the top and has no keys is prose: the header is then empty, and the body all of the text.
    """
    match = _HEADER.match(text, 0, LARGEST_HEADER)
    header, body = (match[1], text[match.end() :].strip()) if match else ("", text.strip())
    if not header.strip():
        return "", body, {}, {}
    numbers = list[str]()
    try:
        front, odd = read_yaml(header, "", numbers), {}
    except DataError as error:
        front, odd = _by_key(header, numbers), {"yaml": str(error).removeprefix(" ")}
    if not isinstance(front, dict) or any(len(key.split()) > WORDS_OF_A_KEY for key in front):
        return "", text.strip(), {}, {}
    return header, body, front, odd | ({"numbers": ", ".join(numbers)} if numbers else {})


def _by_key(header: str, numbers: list[str]) -> dict[str, object] | None:
    """The values of the keys that stand at the beginning of a line, each read alone; None if none is first."""
    blocks, loose, front = list[list[str]](), list[str](), dict[str, object]()
    for line in header.split("\n"):
        if _KEY.match(line):
            blocks.append([line])
        elif blocks and line[:1] in ("", " ", "\t", "-", "]", "}"):
            blocks[-1].append(line)
        elif line.strip() and not line.startswith("#"):
            loose.append(line)
            if not blocks:
                return None
    for lines in blocks:
        try:
            front |= read_yaml("\n".join(lines), "", numbers)
        except (DataError, TypeError):
            front[lines[0].partition(":")[0].strip().strip("\"'")] = _as_written(lines)
    return front | ({"unread": loose} if loose else {})


def _as_written(lines: list[str]) -> str | list[str]:
    """The value of a key as text, without quotes around it; a list where every further line is an item."""
    first = lines[0].partition(":")[2].strip()
    rest = [line.strip() for line in lines[1:] if line.strip()]
    if rest and not first and all(line.startswith("- ") for line in rest):
        return [line[2:].strip() for line in rest]
    text = "\n".join([first, *rest]).strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def read_yaml(text: str, place: str, odd: list[str] | None = None) -> Any:  # noqa: ANN401 -- any YAML value
    """A YAML document of plain values, without anchors, by which a small file could grow without end.

    True, false, null and numbers that their text stands for exactly are read; all else is as it is written, such
    as 1.10, 12:30 and 2026-03-01. `odd` gets the numbers that no program computes with, which stay texts.
    DataError, which begins with `place`, when it is no YAML, is too deep, or has anchors or tags.
    """
    import yaml

    stack: list[list[Any]] = [[]]
    try:
        # libyaml, ten times as fast, is in all wheels of PyYAML
        for event in yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            tag = (getattr(event, "tag", None) or "").removeprefix("tag:yaml.org,2002:")
            if isinstance(event, yaml.AliasEvent) or tag not in (*_TEXTS, *_VALUES):
                raise DataError(f"{place} has YAML anchors or tags; write the values out")
            if isinstance(event, yaml.CollectionStartEvent):
                stack.append([])
                if len(stack) > DEEPEST:
                    raise DataError(f"{place} has more than {DEEPEST} levels of YAML")
            elif isinstance(event, yaml.CollectionEndEvent):
                items, pairs = stack.pop(), isinstance(event, yaml.MappingEndEvent)
                values = dict(zip(items[::2], items[1::2], strict=True)) if pairs else {}  # no lists as keys
                stack[-1].append({str(key): value for key, value in values.items()} if pairs else items)
            elif isinstance(event, yaml.ScalarEvent):
                stack[-1].append(_plain(event.value, odd) if event.implicit[0] or tag in _VALUES else event.value)
        value, *more = stack[0] or [None]
        if more:
            raise TypeError("it is more than one document")
        return value
    except (yaml.YAMLError, TypeError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(f"{place} is not YAML that can be read ({reason}); correct it") from None


def _plain(text: str, odd: list[str] | None) -> object:
    """The value of a text without quotes."""
    if text in _NAMED:
        return _NAMED[text]
    if re.fullmatch(r"-?(?:0|[1-9]\d{0,17})", text):
        return int(text)
    if re.fullmatch(r"-?\d{1,9}\.\d{1,9}", text) and str(float(text)) == text:
        return float(text)
    if odd is not None and _ODD.fullmatch(text):
        odd.append(text)
    return text
