"""The list of results in the answer of a search tool, whatever form its program gives it."""

from __future__ import annotations

import sys

from steelyard_eval.datasets.logs import MOST_HITS
from steelyard_eval.extensions.endpoints.answer_form import document_of, is_id, place_of_ids
from steelyard_eval.extensions.usage.session import ShownHit

SCORES = ("score", "similarity", "averageSimilarity", "relevance_score", "relevance", "rank_score")
TITLES = ("title", "name")
TEXTS = """what why impact text content snippet description summary abstract overview abstract_text
    page_content details""".split()  # noqa: SIM905 -- a list literal of so many words reads worse
LONGEST = 20_000
"""Characters of a result's text that are looked at."""


def hits_of(answer: object) -> tuple[ShownHit, ...] | None:
    """The results in an answer, best first; None where it holds none that can be read.

    A result without an id is left out.
    """
    document = document_of(answer)
    if document == []:
        return ()
    place = place_of_ids(document) if isinstance(document, dict | list) else None
    if place is None:
        return None
    head, listed, inner = place.partition("[*]")
    if not listed:
        return ()
    items = _walked(document, head)
    return tuple(
        hit for item in (items if isinstance(items, list) else [])[:MOST_HITS] if (hit := _hit(item, inner[1:]))
    )


def _walked(value: object, path: str) -> object:
    for name in filter(None, path.split(".")):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _hit(item: object, path: str) -> ShownHit | None:
    """One result: its id at the path; the rest beside the id, or beside what the id is wrapped in."""
    name = _walked(item, path) if path else item
    if isinstance(name, bool) or not isinstance(name, str | int) or not is_id(str(name)) or not str(name):
        return None
    wrap = _walked(item, path.rpartition(".")[0]) if "." in path else item
    beside = [record for record in (wrap, item) if isinstance(record, dict)]
    numbers = (record[key] for record in reversed(beside) for key in SCORES if key in record)
    score = next((n for n in numbers if isinstance(n, int | float) and not isinstance(n, bool)), None)
    texts = [record[key] for record in beside for key in TEXTS if isinstance(record.get(key), str)]
    titles = (record[key] for record in beside for key in TITLES if isinstance(record.get(key), str))
    return ShownHit(
        str(name),
        float(score) if score is not None and abs(score) <= sys.float_info.max else None,
        next(titles, "")[:LONGEST],
        "\n".join(dict.fromkeys(texts))[:LONGEST],
    )
