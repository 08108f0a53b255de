"""The lists of all queries, packed for the script of the page: columns of small numbers, deflated, in base64."""

from __future__ import annotations

import base64
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from steelyard.base.files import compact
from steelyard_eval.common.configurations import short_name
from steelyard_eval.common.markup import clip, legible
from steelyard_eval.result.sentences import heading
from steelyard_eval.result.structs import Listed, Result
from steelyard_eval.views.figures import two_sides

MOST = 1_000_000
"""The bytes of a whole page."""
PLACES, TEXT = 10, 110
"""Places of a list, and characters of a text, where there is room."""
FINE = 1000
"""Values, scores and contributions are whole thousandths: of 1, of the best score of the list."""
MISSING = -1


@dataclass(frozen=True)
class Packed:
    """The data as base64, empty where there are none, and what had to be left out."""

    text: str
    note: str = ""


def pack(result: Result, room: int) -> Packed:
    """As much as fits into `room` bytes: with all lists, else with fewer of them, shorter texts, fewer places."""
    labels = list(dict.fromkeys(label for query in result.queries for label in query.lists))
    if not labels or two_sides(result) is None:
        return Packed("")
    for count, places, columns in _plans(len(labels)):
        data = compact(_data(result, labels[:count], places, columns))
        text = base64.b64encode(zlib.compress(data.encode(), 9)).decode()
        if len(text) <= room:
            return Packed(text, _note(count, max(len(labels), len(result.rows)), places))
    return Packed("", heading("no_room"))


def _plans(count: int) -> Iterator[tuple[int, int, int]]:
    """How many lists, how many places of each, and how long texts: from everything to the least that is useful."""
    least = min(count, 2)
    yield from ((many, PLACES, TEXT) for many in range(count, least - 1, -1))
    yield from ((least, places, columns) for places, columns in ((10, 70), (10, 40), (5, 70), (5, 40), (3, 40)))


def _note(count: int, whole: int, places: int) -> str:
    fewer, shorter = count < whole, places < PLACES
    facts = {"count": count if fewer else None, "whole": whole, "places": places if shorter else None}
    return heading("less_room", {**facts, "both": fewer and shorter}) if fewer or shorter else ""


def _data(result: Result, labels: Sequence[str], places: int, columns: int) -> dict[str, object]:
    queries, data = result.queries, result.provenance.data
    nothing = Listed([])
    lists = {label: [query.lists.get(label, nothing) for query in queries] for label in labels}
    ids = sorted(
        {id_ for own in lists.values() for one in own for id_ in one.entries[:places]}
        | {id_ for query in queries for id_, grade in query.grades.items() if grade >= 1}
    )
    code = {id_: i for i, id_ in enumerate(ids)}
    return {
        "labels": [legible(label) for label in labels],
        "metric": result.metric,
        "dataset": legible(shlex.quote(data.path or data.name)),
        "ids": [legible(id_) for id_ in ids],
        "texts": [clip(result.entries.get(id_) or "", columns) for id_ in ids],
        "queries": [
            [legible(query.id), clip(query.text, 2 * columns), legible(query.category or "")] for query in queries
        ],
        "values": [[_fine(query.values.get(label)) for query in queries] for label in labels],
        "grades": [_pairs(query.grades, code) for query in queries],
        "lists": [_columns(own, code, places) for own in lists.values()],
    }


def _fine(value: float | None) -> int:
    return MISSING if value is None else round(value * FINE)


def _pairs(grades: Mapping[str, int], code: Mapping[str, int]) -> list[int]:
    """Entry, grade, entry, grade ...; of the entries that are in the page."""
    return [number for id_, grade in sorted(grades.items()) if id_ in code for number in (code[id_], grade)]


def _columns(lists: Sequence[Listed], code: Mapping[str, int], places: int) -> dict[str, object]:
    """One contender: lengths of its lists, their entries, their scores, and what each signal adds."""
    names = sorted({name for one in lists if one.scores for name in one.parts})
    tops = [max(map(abs, one.scores[:places]), default=0.0) for one in lists]
    return {
        "lengths": [len(one.entries[:places]) for one in lists],
        "entries": [code[id_] for one in lists for id_ in one.entries[:places]],
        "tops": [float(f"{top:.4g}") for top in tops],
        "scores": _shares((one.scores[:places] for one in lists), tops),
        "signals": [legible(name) for name in names],
        "short": [legible(short_name(name)) for name in names],
        "parts": [_shares((_part(one, name, places) for one in lists), tops) for name in names],
    }


def _part(one: Listed, name: str, places: int) -> Sequence[float]:
    """What a signal adds at every place, 0 where it takes no part."""
    return (one.parts.get(name) or [0.0] * len(one.entries))[:places] if one.scores else ()


def _shares(lists: Iterator[Sequence[float]], tops: Sequence[float]) -> list[int]:
    return [round(value / top * FINE) if top else 0 for row, top in zip(lists, tops, strict=True) for value in row]
