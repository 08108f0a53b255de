"""Reads the results of a comparison or a choice, and checks that they have what a report needs."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from steelyard.base.errors import DataError, Fault, nearest, shown, visible
from steelyard.base.files import STRICT_JSON
from steelyard.base.inputs import read_text
from steelyard_eval.common.documents.results import ResultsDocument
from steelyard_eval.common.documents.schema import schema_of
from steelyard_eval.show.report.log import SUFFIXES, of_log

_REMEDY = "Write the file again with --json of `steelyard compare`, `recommend` or `tune`"
_LARGEST = 1e300  # beyond it differences overflow
_SURROGATES = re.compile("[\ud800-\udfff]")
_FAULTS_SHOWN = 10


def load_results(path: str | Path) -> dict[str, object]:
    """Read the JSON of `steelyard compare`, `recommend`, or `tune`, a report.json, or a log.

    Of a feedback log (*.jsonl) the report has how far its layered searches went. Raises DataError when the file
    cannot be read, is not JSON, or is the document of no such job; the message lists every place with its value
    and the rule.
    """
    if str(path).endswith(SUFFIXES):
        return checked(of_log(path), shown(str(path), 1000))
    source = shown(str(path), 1000)  # the end of a long path is what tells files apart
    if (Path(path) / "report.json").is_file():
        raise DataError(f"{source} is the folder of a report; name its report.json")
    if Path(path).is_dir():
        folder = shlex.quote(visible(str(path)))
        raise DataError(
            f"{source} is a folder, and a report is made of the results of one job; write them first: "
            f"`steelyard compare {folder} -o results.json`, or `steelyard recommend {folder} --report FOLDER`"
        )
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read the results file {source}: {reason}") from None
    try:
        record = STRICT_JSON.decode(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"results file {source} is not valid JSON: {error}. {_REMEDY}") from None
    return checked(record, source)


def checked(results: object, source: str = "results") -> dict[str, object]:
    """Results as plain JSON values with sorted keys, so that equal results make equal reports.

    Raises DataError listing every fault.
    """
    try:
        # Twice: infinite and unpaired values are faults with a place, not an exception without one.
        plain = json.loads(json.dumps(results, sort_keys=True))
        faults = list(dict.fromkeys(_faults(plain, source)))
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{source}: not JSON values: {error}. {_REMEDY}") from None
    if faults:
        more = len(faults) - _FAULTS_SHOWN
        lines = [str(fault) for fault in faults[:_FAULTS_SHOWN]] + (
            [f"and {more} more faults"] if more > 0 else []
        )
        raise DataError("\n".join(lines))
    loaded: dict[str, object] = plain
    return loaded


def job_of(record: Mapping[str, object]) -> str:
    """The command that wrote a document, as kept runs name it."""
    return "tune" if record.get("only") else "recommend" if "verdict" in record else "compare"


def _faults(record: object, source: str) -> Iterator[Fault]:
    """Every fault: values first, then the shape, then names (which are only looked up in a sound shape)."""
    for check in (_value_faults, _shape_faults):
        faults = list(check(record, source))
        if faults:
            yield from faults
            return
    sound = cast(ResultsDocument, record)
    yield from _label_faults(sound, source)
    for i, contender in enumerate((sound.get("rankings") or {}).get("lists", ())):
        for query, hits in contender["queries"].items():
            sizes = {len(part) for part in (hits.get("scores", ()), *hits.get("parts", {}).values())}
            if hits.keys() & {"scores", "parts"} and ("parts" not in hits or sizes != {len(hits["entries"])}):
                place = f"rankings.lists.{i}.queries.{query}"
                rule = "must have as many scores and parts of each signal as entries"
                yield Fault(source, 0, place, shown(hits), rule, _REMEDY)


def _shape_faults(record: object, source: str) -> Iterator[Fault]:
    for violation in schema_of(ResultsDocument).violations(record):
        yield Fault(source, 0, shown(violation.place), violation.value, violation.rule, _REMEDY)


def _sound(value: object) -> bool:
    """Whether all numbers are finite and all texts Unicode.

    Raises RecursionError for what is nested too deep to be written, too: this takes two frames a level.
    """
    if isinstance(value, str):
        return value.isascii() or not _SURROGATES.search(value)
    if isinstance(value, Mapping):
        return all(_sound(key) and _sound(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_sound(item) for item in value)
    return not isinstance(value, int | float) or -_LARGEST < value < _LARGEST


def _value_faults(record: object, source: str) -> Iterator[Fault]:
    """Numbers that are not finite, text that is not Unicode, with their places."""
    waiting: list[tuple[str, object]] = [] if _sound(record) else [("", record)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [(f"{place}.{key}".lstrip("."), item) for key, item in value.items()]
            waiting += [(f"{place}.{key}".lstrip("."), key) for key in value]
        elif isinstance(value, list):
            waiting += [(f"{place}.{index}".lstrip("."), item) for index, item in enumerate(value)]
        elif isinstance(value, int | float) and not -_LARGEST < value < _LARGEST:
            yield Fault(source, 0, shown(place), shown(value), "must be a finite number", _REMEDY)
        elif isinstance(value, str) and _SURROGATES.search(value):
            yield Fault(
                source, 0, shown(place), shown(value), "must be Unicode, not half a surrogate pair", _REMEDY
            )


def _label_faults(record: ResultsDocument, source: str) -> Iterator[Fault]:
    """Labels that name no configuration, or more than one: their numbers would be lost or mixed."""
    counts = Counter(configuration["label"] for configuration in record["configurations"])
    for label, count in counts.items():
        if count > 1:
            yield Fault(source, 0, "configurations", shown(label), "is the label of more than one", _REMEDY)
    for place, label in _labels(record):
        if label not in counts:
            rule = f"is the label of no configuration{nearest(label, counts)}"
            yield Fault(source, 0, place, shown(label), rule, _REMEDY)
    pairs = Counter((result["label"], result["metric"]) for result in record["results"])
    for (label, metric), count in pairs.items():
        if count > 1:
            rule = f"has {count} values of {shown(metric)}, and must have one"
            yield Fault(source, 0, "results", shown(label), rule, _REMEDY)


def _labels(record: ResultsDocument) -> Iterator[tuple[str, str]]:
    """Every label that is used, with its place."""
    if baseline := record.get("baseline"):
        yield "baseline", baseline
    yield from ((f"results.{i}.label", row["label"]) for i, row in enumerate(record["results"]))
    yield from ((f"comparisons.{i}.challenger", row["challenger"]) for i, row in enumerate(record["comparisons"]))
    yield from ((f"comparisons.{i}.baseline", row["baseline"]) for i, row in enumerate(record["comparisons"]))
    yield from ((f"timing.{i}.label", row["label"]) for i, row in enumerate(record.get("timing", ())))
    for index, query in enumerate(record.get("per_query", ()) if record["configurations"] else ()):
        for label in query["values"]:
            yield f"per_query.{index}.values", label
