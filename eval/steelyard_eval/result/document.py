"""A result as canonical JSON, its schema, and the reader of files that others may have written."""

import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from steelyard.base.errors import DataError, nearest, quote, visible
from steelyard.base.files import read_bytes
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import VERSION, Message, Result

REMEDY = "write the file again with --json of `steelyard compare`, `recommend`, `tune`, `gate` or `learn`"


def render(result: Result, *, one_line: bool = False) -> str:
    """Canonical JSON: keys in the order of the types, two spaces, no NaN."""
    return msgspec.json.format(msgspec.json.encode(result), indent=0 if one_line else 2).decode() + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of a result, made of its types."""
    return msgspec.json.schema(Result)


def read(data: bytes, source: str = "the result") -> Result:
    """A result from JSON; DataError with the place of the first fault.

    Fields that are not known are left out, so that a later minor version can be read; another `version` cannot.
    """
    try:
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("version")
        if version is None or msgspec.json.decode(version) != VERSION:
            told = "none" if version is None else quote(bytes(version).decode())
            raise DataError(f"{source}: its version is {told}, and must be {VERSION}; {REMEDY}")
        result = msgspec.json.decode(data, type=Result)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{source}: {quote(str(error), 300)}; {REMEDY}") from None
    if fault := next(_faults(result), None):
        raise DataError(f"{source}: {fault}; {REMEDY}")
    return result


def _faults(result: Result) -> Iterator[str]:
    """What does not hold together: labels without a row, or with two; sentences without a key or a fact."""
    counts = Counter(row.label for row in result.rows)
    yield from (f"{quote(label)} is the label of {n} rows" for label, n in counts.items() if n > 1)
    used = [("provenance.baseline", result.provenance.baseline)] if counts and result.provenance.baseline else []
    used += [(f"queries.{i}", label) for i, row in enumerate(result.queries) for label in row.values | row.lists]
    for place, label in used if counts else ():
        if label not in counts:
            yield f"{place}: {quote(label)} is the label of no row{nearest(label, counts)}"
    yield from (
        f"queries.{i}.lists.{quote(label)}: must have as many scores and parts of each signal as entries"
        for i, row in enumerate(result.queries)
        for label, listed in row.lists.items()
        if {len(part) for part in (*filter(None, [listed.scores]), *listed.parts.values())} - {len(listed.entries)}
    )
    for said in _said(result):
        try:
            say(said)
        except (KeyError, TypeError, ValueError) as error:
            yield f"no sentence can be made of {quote(said.key)}: {quote(repr(error), 100)}"


def _said(result: Result) -> Iterator[Message]:
    yield from (result.answer, *result.answer.because, *result.answer.steps, *result.notices)
    yield from (row.against.why for row in result.rows if row.against and row.against.why)
    if result.decision and result.decision.blocker:
        yield result.decision.blocker


def load(path: str | Path) -> Result:
    """The result in a file of `--json`, or in report.json; DataError for anything else."""
    source = quote(str(path), 1000)  # the end of a long path is what tells files apart
    if (Path(path) / "report.json").is_file():
        raise DataError(f"{source} is the folder of a report; name its report.json")
    if Path(path).is_dir():
        folder = shlex.quote(visible(str(path)))
        raise DataError(
            f"{source} is a folder, and a report needs a results file; write one first: "
            f"`steelyard compare {folder} --out results.json`, or `steelyard recommend {folder} --report FOLDER`"
        )
    try:
        data = read_bytes(path)
    except OSError as error:
        raise DataError(f"cannot read the results file {source}: {error.strerror or error}") from None
    return read(data, source)
