"""Reads the files of one folder, and collects faults instead of raising errors; shows them grouped by rule."""

import codecs
import difflib
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard.base.errors import Fault, MachineError, quote
from steelyard.base.files import STRICT_JSON, UnpackError, inside, open_regular, read_bytes, unpacked
from steelyard_eval.common.formatting import counted

T = TypeVar("T")
_REMEDY_IF_MISSING = {"dataset.json": 'Write it: {"name": "mine", "text_for_embedding": "{title} {text}"}'}
Record = tuple[int, dict[str, object] | None]
"""A line number and the JSON object in that line, None when it is broken."""


class FolderReader:
    """Reads a folder. A method that finds a file unusable records one of the `faults` and returns None.

    `contents` maps each text file read (without ``.gz``) to the SHA-256 of its uncompressed bytes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.faults: list[Fault] = []
        self.contents: dict[str, str] = {}
        self._digests: dict[str, str] = {}

    def fault(self, file: str, line: int, field: str, value: str, rule: str, remedy: str) -> None:
        """Record one fault."""
        self.faults.append(Fault(file, line, field, value, rule, remedy))

    def sorted_faults(self) -> tuple[Fault, ...]:
        """The faults, sorted. What stands in a file that a link leads to, outside of the folder, is not shown."""
        outside = set()
        for name in {fault.file for fault in self.faults}:
            try:
                inside(self.folder, name)
            except ValueError:
                outside.add(name)
        return tuple(sorted(replace(one, value="") if one.file in outside else one for one in self.faults))

    def find(self, name: str, required: bool = True) -> str | None:
        """Return `name` or `name`.gz, whichever is in the folder."""
        files = [n for n in (name, f"{name}.gz") if self.has(n)]
        if len(files) == 2:
            self.fault(files[0], 0, "", "", f"exists beside {files[1]}", "Keep one of the two")
        if not files and required:
            stem, forms = name.partition(".")[0], (".json", ".csv", ".tsv", ".txt")
            other = next((f"{stem}{end}" for end in forms if self.has(f"{stem}{end}")), "")
            remedy = f"Write {other} as {name}: one JSON object on each line" if other else ""
            self.fault(name, 0, "", "", "is missing", remedy or f"Add {name} or {name}.gz")
        return files[0] if files else None

    def digest(self, name: str) -> str | None:
        """Return the SHA-256 of the file as it is on disk, in hexadecimal."""
        if name not in self._digests and (digest := self._open(name, _file_digest)):
            self._digests[name] = digest
        return self._digests.get(name)

    def has(self, name: str) -> bool:
        """Whether there is a file of this very name."""
        return (self.folder / name).exists()

    def arrays(self) -> list[str]:
        """List the names of the .npy files, sorted."""
        return sorted(path.name for path in self.folder.glob("*.npy"))

    def open_array(self, name: str) -> NDArray[Any]:
        """Open a .npy file memory-mapped and without pickle; for a broken header numpy may raise any error."""
        with np.errstate(all="ignore"):  # the size of a shape that no file has
            array: NDArray[Any] = np.lib.format.open_memmap(str(self.folder / name), mode="r")
        return array

    def content(self, name: str) -> bytes | None:
        """Read the uncompressed bytes of a file, without a byte order mark."""
        raw = self._open(name, read_bytes)
        if raw is None:
            return None
        self._digests[name] = hashlib.sha256(raw).hexdigest()
        if name.endswith(".gz"):
            try:
                raw = unpacked(raw)
            except UnpackError as error:
                rule = f"is not a whole gzip file ({error.reason})"
                self.fault(name, 0, "", "", rule, "Compress it again, or copy it again")
                return None
        self.contents[name.removesuffix(".gz")] = hashlib.sha256(raw).hexdigest()
        return raw.removeprefix(codecs.BOM_UTF8)

    def lines(self, name: str) -> Iterator[tuple[int, str | None]] | None:
        """Read the lines that are not blank, numbered from 1; None in place of a line that is not UTF-8."""
        content = self.content(name)
        if content is None:
            return None
        # Parted at line feeds only: str.splitlines would also split at U+2028 inside JSON strings.
        lines = enumerate(BytesIO(content), start=1)
        return ((n, self._decode(name, n, raw.removesuffix(b"\n"))) for n, raw in lines if not raw.isspace())

    def records(self, name: str) -> Iterator[Record] | None:
        """Read the objects of a JSON Lines file, one for each line that is not blank; faults as they are read."""
        lines = self.lines(name)
        if lines is None:
            return None
        return ((n, None if text is None else self._object(name, n, text)) for n, text in lines)

    def json_object(self, name: str) -> dict[str, Any] | None:
        """Read a file that is one JSON object."""
        content = self.content(name)
        text = None if content is None else self._decode(name, 0, content)
        return None if text is None else self._object(name, 0, text)

    def _open(self, name: str, action: Callable[[Path], T]) -> T | None:
        try:
            return action(self.folder / name)
        except FileNotFoundError:
            self.fault(name, 0, "", "", "is missing", _REMEDY_IF_MISSING.get(name, "Add the file"))
        except PermissionError:
            message = f"{self.folder / name}: no permission to read it. Change its access rights"
            raise MachineError(message) from None
        except OSError as error:
            self.fault(name, 0, "", "", f"cannot be read ({error.strerror})", "Put a readable file there")
        return None

    def _decode(self, name: str, line: int, raw: bytes) -> str | None:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            before = raw[: error.start]
            offset = len(before) - before.rfind(b"\n")
            value = f"byte 0x{raw[error.start]:02x} at column {offset}"
            self.fault(
                name, line or before.count(b"\n") + 1, "", value, "is not valid UTF-8", "Save the file as UTF-8"
            )
            return None

    def _object(self, name: str, line: int, text: str) -> dict[str, object] | None:
        try:
            record = STRICT_JSON.decode(text)
        except json.JSONDecodeError as error:
            rule = f"is not valid JSON ({error.msg} at column {error.colno})"
            value = text.split("\n")[error.lineno - 1]
            self.fault(name, line or error.lineno, "", quote(value), rule, "Correct the line")
        except (ValueError, RecursionError) as error:
            rule = f"is JSON that cannot be read ({error})"
            self.fault(name, line, "", quote(text), rule, "Write finite numbers and shallow objects")
        else:
            if isinstance(record, dict):
                return record
            self.fault(name, line, "", quote(record), "must be a JSON object", 'Write it as {"field": value}')
        return None


def _file_digest(path: Path) -> str:
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


MAX_SHOWN_FAULTS = 3
MAX_SHOWN_RULES = 20
_LIKENESS = 0.75
_FOREIGN_NAMES = {
    "id": "_id _key key uuid guid doc_id docid document_id entry_id pid qid query_id".split(),  # noqa: SIM905 -- as below
    "text": "content contents body document passage message note what query question".split(),  # noqa: SIM905 -- a list literal of so many words reads worse
    "title": ("name", "heading", "headline", "subject"),
}


def meant(field: str, names: Collection[str]) -> str | None:
    """Return the name that was probably meant for `field`: a foreign name for it, or a misspelling.

    >>> meant("id", ["project", "_id"]), meant("text", ["txet"]), meant("id", ["project"])
    ('_id', 'txet', None)
    """
    folded = {name.casefold(): name for name in sorted(names, reverse=True)}
    known = [name for name in _FOREIGN_NAMES.get(field, ()) if name in folded]
    close = known or difflib.get_close_matches(field, folded, n=1, cutoff=_LIKENESS)
    return folded[close[0]] if close else None


def hinted(fault: Fault, names: Collection[str]) -> Fault:
    """Add to the fault of a missing field the unknown field of the same line that was probably meant."""
    if fault.rule != "is missing" or not (other := meant(fault.field, names)):
        return fault
    remedy = f"Did you mean `{fault.field}` where it says {quote(other, 40)}? Rename that field"
    return replace(fault, remedy=remedy)


def grouped(faults: Sequence[Fault]) -> list[str]:
    """Show faults as lines: the first three of each rule, then how many more break the same rule."""
    groups: dict[tuple[str, str, str], list[Fault]] = {}
    for fault in faults:  # without the values in its rule, so that those of many lines form one group
        rule = re.sub(r"'[^']*'|\d+", "", fault.rule)
        groups.setdefault((fault.file, fault.field, rule), []).append(fault)
    lines: list[str] = []
    for group in list(groups.values())[:MAX_SHOWN_RULES]:
        lines += map(str, group[:MAX_SHOWN_FAULTS])
        last = f", the last in line {group[-1].line}" if group[-1].line else ""
        if more := len(group[MAX_SHOWN_FAULTS:]):
            lines.append(f"... and {more} more like these in {group[0].file}{last}")
    left = sum(len(group) for group in list(groups.values())[MAX_SHOWN_RULES:])
    return lines + ([f"... and {counted(left, 'fault')} of other rules"] if left else [])
