"""The lists of all queries, packed for the script of the page: columns of small numbers, deflated, in base64."""

from __future__ import annotations

import base64
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.base.files import compact
from steelyard_eval.common.configurations import short_name
from steelyard_eval.common.documents.parts import ContenderLists, ListRecord, RankingsRecord
from steelyard_eval.common.documents.results import ResultsDocument
from steelyard_eval.common.markup import clip, legible
from steelyard_eval.show.report.sides import sides

MOST = 1_000_000
"""The bytes of a whole page."""
FINE = 1000
"""Values, scores and contributions are whole thousandths: of 1, of the best score of the list."""
MISSING = -1


@dataclass(frozen=True)
class Packed:
    """The data as base64, empty where there are none, and what had to be left out."""

    text: str
    note: str = ""


def pack(results: ResultsDocument, room: int) -> Packed:
    """As much as fits into `room` bytes: with all lists, else with fewer of them, shorter texts, fewer places."""
    rankings = results.get("rankings") or {}
    lists = rankings.get("lists")
    if not lists or sides(results) is None:
        return Packed("")
    for count, places, columns in _plans(len(lists)):
        data = compact(_data(results, rankings, lists[:count], places, columns))
        text = base64.b64encode(zlib.compress(data.encode(), 9)).decode()
        if len(text) <= room:
            return Packed(text, _note(count, max(len(lists), len(results["configurations"])), places))
    return Packed("", "The lists of all queries did not fit into this page; they are in report.json.")


def _plans(count: int) -> Iterator[tuple[int, int, int]]:
    """How many lists, how many places of each, and how long texts: from everything to the least that is useful."""
    least = min(count, 2)
    yield from ((many, 10, 110) for many in range(count, least - 1, -1))
    yield from ((least, places, columns) for places, columns in ((10, 70), (10, 40), (5, 70), (5, 40), (3, 40)))


def _note(count: int, whole: int, places: int) -> str:
    cuts = [f"the lists of {count} of {whole} configurations"] if count < whole else []
    cuts += [f"the first {places} places"] if places < 10 else []
    if not cuts:
        return ""
    return f"To stay small this page has {' and '.join(cuts)} of each query: the baseline and the best others."


def _data(
    results: ResultsDocument, rankings: RankingsRecord, lists: Sequence[ContenderLists], places: int, columns: int
) -> dict[str, object]:
    queries = results["per_query"]
    ids = sorted(
        {id_ for row in lists for record in row["queries"].values() for id_ in record["entries"][:places]}
        | {id_ for judged in rankings["grades"].values() for id_, grade in judged.items() if grade >= 1}
    )
    code = {id_: i for i, id_ in enumerate(ids)}
    labels = [row["label"] for row in lists]
    return {
        "labels": [legible(label) for label in labels],
        "metric": results["primary"],
        "dataset": legible(shlex.quote(results["dataset"].get("path") or results["dataset"]["name"])),
        "ids": [legible(id_) for id_ in ids],
        "texts": [clip(rankings["entries"].get(id_) or "", columns) for id_ in ids],
        "queries": [
            [
                legible(query["id"]),
                clip(query.get("text") or "", 2 * columns),
                legible(query.get("category") or ""),
            ]
            for query in queries
        ],
        "values": [[_fine(query["values"].get(label)) for query in queries] for label in labels],
        "grades": [_pairs(rankings["grades"].get(query["id"], {}), code) for query in queries],
        "lists": [_columns([row["queries"].get(query["id"]) for query in queries], code, places) for row in lists],
    }


def _fine(value: float | None) -> int:
    return MISSING if value is None else round(value * FINE)


def _pairs(grades: Mapping[str, int], code: Mapping[str, int]) -> list[int]:
    """Entry, grade, entry, grade ...; of the entries that are in the page."""
    return [number for id_, grade in sorted(grades.items()) if id_ in code for number in (code[id_], grade)]


def _columns(records: Sequence[ListRecord | None], code: Mapping[str, int], places: int) -> dict[str, object]:
    """One configuration: lengths of its lists, their entries, their scores, and what each signal adds."""
    queries = [record or {"entries": []} for record in records]
    scored = [query for query in queries if query.get("scores")]
    names = sorted({name for query in scored for name in query["parts"]})
    tops = [max((abs(score) for score in query.get("scores", ())[:places]), default=0.0) for query in queries]
    return {
        "lengths": [len(query["entries"][:places]) for query in queries],
        "entries": [code[id_] for query in queries for id_ in query["entries"][:places]],
        "tops": [float(f"{top:.4g}") for top in tops],
        "scores": _shares((query.get("scores", ())[:places] for query in queries), tops),
        "signals": [legible(name) for name in names],
        "short": [legible(short_name(name)) for name in names],
        "parts": [_shares((_part(query, name, places) for query in queries), tops) for name in names],
    }


def _part(query: ListRecord, name: str, places: int) -> Sequence[float]:
    """What a signal adds at every place, 0 where it takes no part."""
    if not query.get("scores"):
        return ()
    values: Sequence[float] = query["parts"].get(name) or [0.0] * len(query["entries"])
    return values[:places]


def _shares(lists: Iterator[Sequence[float]] | Any, tops: Sequence[float]) -> list[int]:  # noqa: ANN401 -- rows of any kind of array
    return [round(value / top * FINE) if top else 0 for row, top in zip(lists, tops, strict=True) for value in row]
