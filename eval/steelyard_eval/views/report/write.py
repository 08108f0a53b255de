"""Writes a report: HTML, Markdown and JSON of the same result."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from steelyard.base.files import write_texts
from steelyard_eval.common.console import brief
from steelyard_eval.common.markup import breakable, legible, markdown, markdown_code
from steelyard_eval.result import document
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Result, Row, replace
from steelyard_eval.views import markdown as in_markdown
from steelyard_eval.views.report.data import MOST, Packed, pack
from steelyard_eval.views.report.page import badge, facts, sections, title, told
from steelyard_eval.views.report.parts import Section
from steelyard_eval.views.sheets import Sheet

_TEMPLATES = "templates"
BADGES = ("ship", "try", "keep", "pass", "fail", "inconclusive", "mismatch")
WORDS = {"better": "good", "worse": "bad", "pass": "good", "fail": "bad"}
"""How verdicts are coloured."""
_NUMBER = re.compile(r"[-+<\u2013]?[\d.,%]*(\s?\[.*\])?(e[-+]\d+)?")


def write(result: Result, out: str | Path) -> list[Path]:
    """Write report.html, report.md and report.json into `out`; returns the paths.

    The same result gives the same bytes. Latency is not in report.json, so that it can be compared byte for byte
    with that of another run. The page stays below a megabyte: the lists of single queries are packed, and where
    they do not fit, fewer of them are in the page.

    Raises MachineError when `out` cannot be written.
    """
    json_text = document.render(replace(result, rows=[_untimed(row) for row in result.rows]), one_line=True)
    parts = sections(result, hashlib.sha256(json_text.encode()).hexdigest())
    # All texts are made before the first is written, so that a fault leaves no partial report.
    texts = {
        "report.html": page(result, parts),
        "report.md": _markdown().get_template("report.md.j2").render(**_above(result), sections=parts),
        "report.json": json_text,
    }
    files = {Path(out) / name: text for name, text in texts.items()}
    write_texts(files)
    return list(files)


def _untimed(row: Row) -> Row:
    return replace(row, cost=replace(row.cost, latency=None, unbeaten=False))


def _above(result: Result) -> dict[str, Any]:
    """What stands above the sections."""
    return {
        "title": title(result),
        "badge": badge(result),
        "answer": say(result.answer),
        "told": told(result),
        "because": " ".join(map(say, result.answer.because)),
        "steps": [(say(step), shlex.join(step.command)) for step in result.answer.steps],
        "formula": brief(result.answer.formula),
        "description": result.provenance.data.description or "",
        "facts": facts(result),
    }


def page(result: Result, parts: Sequence[Section]) -> str:
    """The page as HTML, with as many lists of the result as there is room for."""
    return rendered(_above(result), parts, result)


def rendered(above: Mapping[str, Any], parts: Sequence[Section], result: Result | None = None) -> str:
    """A page of these sections below a head, with the lists of a result, if there is one."""
    template = _html().get_template("report.html.j2")
    shared = {**above, "sections": parts, "policy": policy(), "badges": BADGES, "words": WORDS}
    shared |= {"style": _asset("report.css"), "script": _asset("report.js")}
    bare = template.render(packed=Packed(""), **shared)
    if result is None:
        return bare
    packed = pack(result, MOST - len(bare.encode()) - 1000)
    return template.render(packed=packed, **shared) if packed.text or packed.note else bare


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


def parted(cell: str) -> tuple[str, str]:
    """A cell as its value and what is put below it: its interval, or what is said of a name."""
    value, mark, rest = cell.partition(" [")
    return (value, f"[{rest}") if mark and rest.endswith("]") else (cell, "")


@cache
def _asset(name: str) -> Markup:
    """A file of the package, which is written into the page as it is."""
    text = resources.files("steelyard_eval.views.report").joinpath(_TEMPLATES, name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 -- our own file


@cache
def _html() -> Environment:
    """The environment for HTML: every value has its control characters escaped and is then autoescaped."""
    environment = _environment(lambda value: legible(value) if _is_plain(value) else value, autoescape=True)
    environment.filters["breakable"] = breakable
    environment.globals |= {"numeric": numeric, "parted": parted}
    return environment


@cache
def _markdown() -> Environment:
    """The environment for Markdown: every value is escaped, except code spans, which already are."""
    environment = _environment(lambda value: markdown(value) if _is_plain(value) else value, autoescape=False)
    environment.filters["code"] = lambda value: Markup(markdown_code(value))  # noqa: S704 -- escaped just there
    environment.filters["table"] = lambda sheet: Markup(in_markdown.table(sheet))  # noqa: S704 -- escaped just there
    return environment


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
