"""Writes a report: HTML, Markdown and JSON of the same results."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from steelyard.files import canonical, write_texts
from steelyard_eval.report.load import checked
from steelyard_eval.report.text import breakable, markdown, markdown_code, visible
from steelyard_eval.report.view import page

_TEMPLATES = "templates"


def write_report(results: Mapping[str, Any], out: str | Path) -> list[Path]:
    """Write report.html, report.md, report.json and timing.json into `out`, and return their paths.

    The same results give the same bytes. Timing is in timing.json and not in report.json, so that
    report.json can be compared byte for byte with that of another run.

    Raises DataError when the results are not those of a comparison, MachineError when `out` cannot
    be written.
    """
    plain = checked(results)
    json_text = canonical({key: value for key, value in plain.items() if key != "timing"})
    content = page(plain, hashlib.sha256(json_text.encode()).hexdigest())
    # All texts are made before the first is written, so that a fault leaves no partial report.
    texts = {
        "report.html": _html().get_template("report.html.j2").render(page=content),
        "report.md": _markdown().get_template("report.md.j2").render(page=content),
        "report.json": json_text,
        "timing.json": canonical(plain.get("timing", [])),
    }
    files = {Path(out) / name: text for name, text in texts.items()}
    write_texts(files)
    return list(files)


@cache
def _html() -> Environment:
    """The environment for HTML: every value has its control characters escaped and is then autoescaped."""
    environment = _environment(lambda value: visible(value) if _is_plain(value) else value, autoescape=True)
    environment.filters["breakable"] = breakable
    return environment


@cache
def _markdown() -> Environment:
    """The environment for Markdown: every value is escaped, except code spans, which already are."""
    environment = _environment(lambda value: markdown(value) if _is_plain(value) else value, autoescape=False)
    environment.filters["code"] = lambda value: Markup(markdown_code(value))  # noqa: S704 -- escaped just there
    return environment


def _environment(finalize: Callable[[Any], Any], *, autoescape: bool) -> Environment:
    return Environment(
        loader=PackageLoader("steelyard_eval.report", _TEMPLATES),
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
