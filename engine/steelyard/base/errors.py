"""Every error that a user can cause, with the exit code of the command line.

A message states the value, the rule it broke and the remedy. Code that finds several faults
collects them and raises once. The command line prints the message without a traceback.
"""

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

PATH_WIDTH = 1000
"""The width at which `quote` cuts paths, wide because paths mostly differ at their ends."""
LISTED = 40
"""The largest number of valid names that a message lists."""
MASK = "***"
"""What stands for a key, wherever one would be shown."""


class SteelyardError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the command line returns."""

    exit_code = 2


class DataError(SteelyardError):
    """A data set, corpus, qrels or vector file that does not follow its format."""


class ConfigError(SteelyardError):
    """A system, strategy, metric, parameter or weights file that cannot be used."""


class VaultError(SteelyardError):
    """A vault that cannot be opened, or lacks what the request needs."""


class DimensionMismatchError(VaultError):
    """Vectors that differ in length from those that the vault stores for the same model."""


class EmbedderError(SteelyardError):
    """A failure to embed text; live search then answers by keywords."""


class RerankError(SteelyardError):
    """Texts could not be re-ranked; live search then shows them as they were fused."""


class RetrieverError(SteelyardError):
    """A retriever that its system can do without has failed; `signal` names it."""

    def __init__(self, signal: str, reason: SteelyardError) -> None:
        super().__init__(f"{signal} failed: {reason}")
        self.signal, self.reason = signal, reason

    def __reduce__(self) -> "tuple[type[RetrieverError], tuple[str, SteelyardError]]":
        """The arguments that it was made with: processes of --jobs send it to the one that started them."""
        return RetrieverError, (self.signal, self.reason)


class MachineError(SteelyardError):
    """A fault of the machine and not of the input: a missing extra, no permission, no disk space."""

    exit_code = 4


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault of the input: its place, the value found there, the rule, and the remedy."""

    file: str
    line: int
    field: str
    value: str
    rule: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        what = f" {self.field}" if self.field else ""
        value = f"{' =' if self.field else ''} {self.value}" if self.value else ""
        subject = f"{place}:{what}{value}" if what or value else place
        return f"{subject}: {self.rule}. {self.remedy}"


T = TypeVar("T")


def collect_errors(*checks: Callable[[], T]) -> list[T]:
    """Run all checks and return their results; the messages of all that fail form one ConfigError."""
    results, problems = [], []
    for check in checks:
        try:
            results.append(check())
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("; ".join(problems))
    return results


def nearest(word: str, valid: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the closest valid name, else the list of valid names if it is short.

    >>> nearest("vectr", ["fts", "vector"]), nearest("ndgc", ["nDCG", "AP"])
    ("; did you mean 'vector'?", "; did you mean 'nDCG'?")
    """
    names = sorted(map(visible, valid))
    return closest(word, names) or (f"; valid: {', '.join(names)}" if 0 < len(names) <= LISTED else "")


def closest(word: str, names: Iterable[str], alike: float = 0.6) -> str:
    """Return ``; did you mean 'x'?`` for the closest name; empty where none is close.

    >>> closest("search-weight.json", ["dataset.json", "search-weights.json"]), closest("zzz", ["fts"])
    ("; did you mean 'search-weights.json'?", '')
    """
    folded = {name.casefold(): name for name in sorted(map(visible, names), reverse=True)}
    close = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=alike)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


def closest_file(path: str | Path) -> str:
    """Return `closest` of the names beside a path that is not there."""
    place = Path(path)
    try:
        return closest(place.name, (other.name for other in place.parent.iterdir()))
    except (OSError, ValueError):  # no such folder, or no name that a folder can have
        return ""


def quote(value: object, width: int = 80) -> str:
    """Format an untrusted value for a terminal: its `repr` in ASCII, cut to `width` characters."""
    if isinstance(value, str | bytes | list | tuple) and len(value) > width:
        value = value[:width]  # the rest is not shown, and formatting all of it may take seconds
    elif isinstance(value, dict) and len(value) > width:
        value = dict(islice(value.items(), width))
    if isinstance(value, int) and value.bit_length() > 10_000:
        return f"an integer of {value.bit_length()} bits"  # Python writes no more than 4300 digits
    text = ascii(value) if isinstance(value, str) else repr(value).encode("ascii", "backslashreplace").decode()
    return text if len(text) <= width else text[: width - 3] + "..."


_COLOUR = re.compile(r"(\x1b\[(?:0|1|3[0-7]|9[0-7])m)")
_KEPT = "\u200c\u200d\xa0\u2009\u202f\u3000"
"""Joiners, with which Persian, Hindi and emoji are written, and the spaces of some scripts."""


def visible(text: str) -> str:
    r"""The text on one line with nothing that moves a terminal: control and format characters escaped.

    >>> visible("red \x1b[31m\n")
    'red \\x1b[31m\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _KEPT else ascii(c)[1:-1] for c in text)


def harmless(text: str, colours: bool = False) -> str:
    r"""The text with its lines as they are, each made harmless; with `colours` those of our own tables stay.

    >>> harmless("\x1b[1mbold\x1b[0m \x1b[2J", colours=True)
    '\x1b[1mbold\x1b[0m \\x1b[2J'
    """
    parts = _COLOUR.split(text) if colours else [text]
    return "".join(part if i % 2 else "\n".join(map(visible, part.split("\n"))) for i, part in enumerate(parts))
