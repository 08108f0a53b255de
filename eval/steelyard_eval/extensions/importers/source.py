"""A store as importers see it: read only, without links that lead out of it, within bounds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from steelyard.base.errors import PATH_WIDTH, DataError, shown
from steelyard.base.files import STRICT_JSON
from steelyard.base.inputs import UnpackError, open_regular, read_bytes, unpacked
from steelyard_eval.extensions.importers.database import MAGIC, Database, snapshot

MOST_FILES = 200_000  # FolderFiles that a folder may hold below it
LARGEST_NOTE = 16 * 2**20  # Bytes of a file that becomes one entry
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # The byte order marks of UTF-16


@dataclass(frozen=True)
class Options:
    """What the user says of a source that cannot be seen in it.

    `columns` maps fields of an entry to columns or keys. `sql` is the query whose rows are the entries, if any.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    sql: str = ""


@dataclass(frozen=True)
class ForeignStore:
    """A file or a folder that somebody else's program wrote; or the address of a database that is running."""

    path: Path
    options: Options = Options()
    address: str = ""

    def __str__(self) -> str:
        return shown(self.place, PATH_WIDTH)

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

    def content(self, name: str, most: int | None = None) -> bytes:
        """The bytes of a file; DataError when it cannot be read, or has more than `most` bytes."""
        path = self._place(name)
        try:
            if path.is_symlink():
                raise DataError(f"{self}: {shown(name)} is a link, and links are not followed; import its target")
            if most is not None and path.stat().st_size > most:
                raise DataError(f"{self}: {shown(name)} has more than {most // 2**20} MB; split or remove it")
            return read_bytes(path)
        except OSError as error:
            raise DataError(f"{self}: {shown(name)} cannot be read ({error.strerror}); make it readable") from None

    def text(self, name: str, most: int | None = LARGEST_NOTE) -> str:
        """A file as text, line ends as line feeds; DataError for neither UTF-8 nor UTF-16 with its mark."""
        content = self._unpacked(name, most)
        try:
            text = content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")
        except UnicodeDecodeError:
            raise DataError(f"{self}: {shown(name)} is not UTF-8; save it as UTF-8") from None
        return text.replace("\r\n", "\n")

    def prose(self, name: str) -> tuple[str, str]:
        """A file that somebody wrote as text, and the encoding where that is a guess; DataError for no text."""
        content = self._unpacked(name, LARGEST_NOTE)
        guesses = () if 0 in content else ("windows-1252", "latin-1")
        for encoding in ("utf-16",) if content.startswith(UTF_16) else ("utf-8-sig", *guesses):
            with suppress(UnicodeDecodeError):
                text = content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
                return text, encoding if encoding in guesses else ""
        raise DataError(f"{self}: {shown(name)} is no text; remove it")

    def head(self, name: str, size: int = 4096) -> str:
        """The beginning of a file, by which a kind is recognised; empty where it cannot be read."""
        try:
            with open_regular(self._place(name)) as stream:
                content = b"" if self._place(name).is_symlink() else stream.read(size)
        except OSError:
            return ""
        text = content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig", "ignore")
        return text.replace("\r\n", "\n")

    def _unpacked(self, name: str, most: int | None) -> bytes:
        content = self.content(name, most)
        try:
            return unpacked(content) if name.endswith(".gz") else content
        except UnpackError as error:
            raise DataError(f"{self}: {shown(name)} is no sound gzip file ({error}); copy it again") from None

    def json(self, name: str) -> Any:  # noqa: ANN401 -- any JSON value
        """A file that is one JSON value; DataError when it is none."""
        return decoded(self.text(name, None), f"{self}: {shown(name)}")

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
