"""A store in one file: entries in JSON Lines, which an editor can open, searched by a vault in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steelyard.base.errors import DataError
from steelyard.base.files import STRICT_JSON, write_text
from steelyard.memory.entry import Entry, read_entry
from steelyard.stores.sqlite import Vault


class NotesFile(Vault):
    """Entries are read when it is opened, and written before a transaction ends. Vectors are not kept."""

    def __init__(self, file: Path) -> None:
        self.file: Path | None = None  # nothing is written before everything was read
        super().__init__(":memory:")
        if file.exists():
            with file.open(encoding="utf-8") as lines:
                self.upsert(_read(file, at, line) for at, line in enumerate(lines, 1))
        self.file = file

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See Vault.transaction; a file that cannot be written rolls it back."""
        outermost = not self._db.in_transaction
        with super().transaction():
            yield
            if outermost and self.file:
                write_text(self.file, "".join(map(_line, self.entries())))


def _line(entry: Entry) -> str:
    record = entry.to_json()
    return json.dumps(record.pop("extra", {}) | record, ensure_ascii=False) + "\n"


def _read(file: Path, at: int, line: str) -> Entry:
    try:
        record = STRICT_JSON.decode(line)
    except ValueError as error:
        raise DataError(f"{file}, line {at}: {error}; write one JSON object a line") from None
    if not isinstance(record, dict):
        raise DataError(f"{file}, line {at}: {record!r:.40} is not a JSON object; write one object a line")
    entry, faults = read_entry(record, file.name, at)
    if entry is None:
        raise DataError("; ".join(map(str, faults)))
    return entry
