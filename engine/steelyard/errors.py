"""Every error a user can cause, with the exit code the command line gives it.

A message states the value, the rule it broke and the remedy. Code that finds several faults
collects them and raises once. The command line prints the message without a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from steelyard.escape import visible as visible

PATH_WIDTH = 1000
"""Width for `shown` of a path: what tells paths apart is their end."""
LISTED = 40
"""How many valid names a message lists at most."""


class SteelyardError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the command line returns."""

    exit_code = 2


class DataError(SteelyardError):
    """A data set, corpus, qrels or vector file does not hold what its format says."""


class ConfigError(SteelyardError):
    """A system, strategy, metric, parameter or weights file that cannot be used."""


class VaultError(SteelyardError):
    """A vault that cannot be opened, or does not hold what the request needs."""


class DimensionMismatchError(VaultError):
    """Vectors of another length than the vault stores for the same model."""


class EmbedderError(SteelyardError):
    """Text could not be turned into vectors; live search then answers by keywords."""


class MachineError(SteelyardError):
    """The machine, not the input: a missing extra, no permission, no disk space."""

    exit_code = 4


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault of the input: where it is, what stands there, the rule, and the remedy."""

    file: str
    line: int
    field: str
    value: str
    rule: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        what = f" {self.field}" if self.field else ""
        value = f" = {self.value}" if self.value else ""
        subject = f"{place}:{what}{value}" if what or value else place
        return f"{subject}: {self.rule}. {self.remedy}"


T = TypeVar("T")


def together(*checks: Callable[[], T]) -> list[T]:
    """The results of all checks; when some raise ConfigError, one ConfigError with all their messages."""
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
    """Return ``; did you mean 'x'?`` for the closest valid spelling, else the list of them if it is short.

    >>> nearest("vectr", ["fts", "vector"])
    "; did you mean 'vector'?"
    >>> nearest("zzz", ["fts", "vector"])
    '; valid: fts, vector'
    """
    names = sorted(map(visible, valid))
    close = difflib.get_close_matches(word, names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; valid: {', '.join(names)}" if 0 < len(names) <= LISTED else ""


def shown(value: object, width: int = 80) -> str:
    """`repr` of a hostile value, cut to `width` characters, safe to print in a terminal."""
    if isinstance(value, str | bytes | list | tuple) and len(value) > width:
        value = value[:width]  # no more of it is shown, and all of it may take seconds
    elif isinstance(value, dict) and len(value) > width:
        value = dict(islice(value.items(), width))
    text = ascii(value) if isinstance(value, str) else repr(value).encode("ascii", "backslashreplace").decode()
    return text if len(text) <= width else text[: width - 3] + "..."
