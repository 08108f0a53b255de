"""Writes a report: HTML, Markdown and JSON of the same result.

The page has the lists of all queries, packed for its script: columns of small numbers, deflated, in base64.
"""

import base64
import hashlib
import re
import shlex
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from steelyard.base.errors import visible
from steelyard.base.files import compact, write_texts
from steelyard_eval.common.configurations import short_name
from steelyard_eval.common.console import brief
from steelyard_eval.common.formatting import breakable, clip, markdown, markdown_code
from steelyard_eval.result import document
from steelyard_eval.result.sentences import heading, say
from steelyard_eval.result.structs import Listed, Result, replace
from steelyard_eval.views.figures import two_sides
from steelyard_eval.views.report.page import Section, answer_without_badge, badge, facts, pictured, sections, title
from steelyard_eval.views.sheets import Sheet, sheets

MAX_PAGE_BYTES = 1_000_000
MAX_PLACES, MAX_TEXT_CHARS = 10, 110
FINE = 1000  # values, scores and contributions are whole thousandths: of 1, of the best score of the list
MISSING = -1


@dataclass(frozen=True)
class Packed:
    """The data as base64, empty where there are none, and what had to be left out."""

    text: str
    note: str = ""


def pack(result: Result, room: int) -> Packed:
    """As much as fits into `room` bytes: with all lists, else with fewer of them, shorter texts, fewer places."""
    sides = two_sides(result)
    labels = list(dict.fromkeys(label for query in result.queries for label in query.lists))
    if not labels or sides is None:
        return Packed("")
    labels.sort(key=lambda label: (*sides, label).index(label))  # the page shows the first two
    least = min(len(labels), 2)
    plans = [(many, MAX_PLACES, MAX_TEXT_CHARS) for many in range(len(labels), least - 1, -1)]
    plans += [(least, places, columns) for places, columns in ((10, 70), (10, 40), (5, 70), (5, 40), (3, 40))]
    for count, places, columns in plans:  # from everything to the least that is useful
        data = compact(_data(result, labels[:count], places, columns))
        text = base64.b64encode(zlib.compress(data.encode(), 9)).decode()
        if len(text) <= room:
            return Packed(text, _note(count, max(len(labels), len(result.rows)), places))
    return Packed("", heading("no_room"))


def _note(count: int, whole: int, places: int) -> str:
    fewer, shorter = count < whole, places < MAX_PLACES
    facts = {"count": count if fewer else None, "total": whole, "places": places if shorter else None}
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
        "labels": [visible(label) for label in labels],
        "metric": result.metric,
        "dataset": visible(shlex.quote(data.path or data.name)),
        "ids": [visible(id_) for id_ in ids],
        "texts": [clip(result.entries.get(id_) or "", columns) for id_ in ids],
        "queries": [
            [visible(query.id), clip(query.text, 2 * columns), visible(query.category or "")] for query in queries
        ],
        "values": [
            [MISSING if (value := query.values.get(label)) is None else round(value * FINE) for query in queries]
            for label in labels
        ],
        "grades": [_pairs(query.grades, code) for query in queries],
        "lists": [_columns(own, code, places) for own in lists.values()],
    }


def _pairs(grades: Mapping[str, int], code: Mapping[str, int]) -> list[int]:
    """Entry, grade, entry, grade ...; of the entries that are in the page."""
    return [number for id_, grade in sorted(grades.items()) if id_ in code for number in (code[id_], grade)]


def _columns(lists: Sequence[Listed], code: Mapping[str, int], places: int) -> dict[str, object]:
    names = sorted({name for one in lists if one.scores for name in one.parts})
    tops = [max(map(abs, one.scores[:places]), default=0.0) for one in lists]
    return {
        "lengths": [len(one.entries[:places]) for one in lists],
        "entries": [code[id_] for one in lists for id_ in one.entries[:places]],
        "tops": [float(f"{top:.4g}") for top in tops],
        "scores": _shares((one.scores[:places] for one in lists), tops),
        "signals": [visible(name) for name in names],
        "short": [visible(short_name(name)) for name in names],
        "parts": [_shares((_part(one, name, places) for one in lists), tops) for name in names],
    }


def _part(one: Listed, name: str, places: int) -> Sequence[float]:
    """What a signal adds at every place, 0 where it takes no part."""
    return (one.parts.get(name) or [0.0] * len(one.entries))[:places] if one.scores else ()


def _shares(lists: Iterator[Sequence[float]], tops: Sequence[float]) -> list[int]:
    return [round(value / top * FINE) if top else 0 for row, top in zip(lists, tops, strict=True) for value in row]


_TEMPLATES = "templates"
BADGES = ("ship", "try", "keep", "pass", "fail", "inconclusive", "mismatch")
COLOURS = {"better": "good", "worse": "bad", "pass": "good", "fail": "bad"}
_NUMBER = re.compile(r"[-+<\u2013]?[\d.,%]*(\s?\[.*\])?(e[-+]\d+)?")


def write(result: Result, out: str | Path) -> list[Path]:
    """Write report.html, report.md and report.json into `out`; returns the paths.

    The same result gives the same bytes. Latency is not in report.json, so that it can be compared byte for byte
    with that of another run. The page stays below a megabyte: the lists of single queries are packed, and where
    they do not fit, fewer of them are in the page.

    Raises MachineError when `out` cannot be written.
    """
    untimed = [replace(row, cost=replace(row.cost, latency=None)) for row in result.rows]
    json_text = document.render(replace(result, rows=untimed), one_line=True)
    parts = sections(result, hashlib.sha256(json_text.encode()).hexdigest())
    # All texts are made before the first is written, so that a fault leaves no partial report.
    texts = {
        "report.html": rendered(_above_sections(result), parts, result),
        "report.md": _markdown().get_template("report.md.j2").render(**_above_sections(result), sections=parts),
        "report.json": json_text,
    }
    files = {Path(out) / name: text for name, text in texts.items()}
    write_texts(files)
    return list(files)


def _above_sections(result: Result) -> dict[str, Any]:
    return {
        "title": title(result),
        "badge": badge(result),
        "answer": say(result.answer),
        "sentence": answer_without_badge(result),
        "pictured": pictured(result),
        "because": " ".join(map(say, result.answer.because)),
        "steps": [(say(step), shlex.join(step.command)) for step in result.answer.steps],
        "formula": brief(result.answer.formula),
        "description": result.provenance.data.description or "",
        "facts": facts(result),
    }


def rendered(above: Mapping[str, Any], parts: Sequence[Section], result: Result | None = None) -> str:
    """A page of these sections below a head, with as many lists of a result, if any, as there is room for."""
    template = _html().get_template("report.html.j2")
    shared = {"pictured": None, **above, "sections": parts, "policy": policy(), "badges": BADGES, "words": COLOURS}
    shared |= {"style": _asset("report.css"), "script": _asset("report.js")}
    bare = template.render(packed=Packed(""), **shared)
    if result is None:
        return bare
    packed = pack(result, MAX_PAGE_BYTES - len(bare.encode()) - 1000)
    return template.render(packed=packed, **shared) if packed.text or packed.note else bare


def piece(result: Result) -> str:
    """A piece of a page, as a notebook shows it: the answer, what to do, the short tables, notes."""
    answer = result.answer
    return (
        _html()
        .get_template("piece.html.j2")
        .render(
            said=say(answer),
            because=" ".join(map(say, answer.because)),
            steps=[(say(step), shlex.join(step.command)) for step in answer.steps],
            formula=brief(answer.formula),
            sheets=sheets(result, short=True),
            notes=[heading("note", {"text": say(notice)}) for notice in result.notices],
        )
    )


def policy() -> str:
    """What the page may do: its own style, and the one script whose hash is here; nothing from any text."""
    digest = base64.b64encode(hashlib.sha256(_asset("report.js").encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


def numeric(sheet: Sheet, at: int) -> bool:
    """Whether a column has numbers alone, with or without their intervals."""
    return sheet.columns[at].right or all(_NUMBER.fullmatch(row[at]) for row in sheet.rows)


def value_and_note(cell: str) -> tuple[str, str]:
    """A cell as its value and what is put below it: its interval, or what is said of a name."""
    value, mark, rest = cell.partition(" [")
    return (value, f"[{rest}") if mark and rest.endswith("]") else (cell, "")


@cache
def _asset(name: str) -> Markup:
    text = resources.files("steelyard_eval.views.report").joinpath(_TEMPLATES, name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 -- our own file


@cache
def _html() -> Environment:
    """The environment for HTML: every value has its control characters escaped and is then autoescaped."""
    environment = _environment(lambda value: visible(value) if _is_plain(value) else value, autoescape=True)
    environment.filters["breakable"] = breakable
    environment.globals |= {"numeric": numeric, "value_and_note": value_and_note}
    return environment


@cache
def _markdown() -> Environment:
    """The environment for Markdown: every value is escaped, except code spans, which already are."""
    environment = _environment(lambda value: markdown(value) if _is_plain(value) else value, autoescape=False)
    environment.filters["code"] = lambda value: Markup(markdown_code(value))  # noqa: S704 -- escaped just there
    environment.filters["table"] = lambda sheet: Markup(_pipe_table(sheet))  # noqa: S704 -- escaped just there
    return environment


def _pipe_table(sheet: Sheet) -> str:
    rows = [[column.name for column in sheet.columns], *sheet.rows]
    lines = [f"| {' | '.join(map(markdown, row))} |" for row in rows]
    lines.insert(1, f"|{'|'.join('---:' if column.right else '---' for column in sheet.columns)}|")
    return "\n".join(lines)


def _environment(finalize: Callable[[Any], Any], *, autoescape: bool) -> Environment:
    return Environment(
        loader=PackageLoader("steelyard_eval.views.report", _TEMPLATES),
        autoescape=autoescape,  # noqa: S701 -- off for Markdown only, where `finalize` escapes
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _is_plain(value: object) -> bool:
    """Whether a value is text that nothing has escaped yet. Macros return Markup."""
    return isinstance(value, str) and not isinstance(value, Markup)
