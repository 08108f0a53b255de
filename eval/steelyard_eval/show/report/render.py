"""Writes a report: HTML, Markdown, JSON and CSV of the same results."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from steelyard.base.files import canonical, write_texts
from steelyard_eval.common.answer import CHOSEN, below_in_html, below_in_markdown
from steelyard_eval.common.documents.results import ResultsDocument
from steelyard_eval.common.markup import breakable, legible, markdown, markdown_code
from steelyard_eval.recording.runs import KeptRun
from steelyard_eval.show.latex import latex
from steelyard_eval.show.report.blocks import Figure, Page, Section, TableBlock, TableRow
from steelyard_eval.show.report.csv_tables import leaderboard_csv, queries_csv
from steelyard_eval.show.report.data import MOST, Packed, pack
from steelyard_eval.show.report.gate_section import gate_page
from steelyard_eval.show.report.learning_section import learn_page
from steelyard_eval.show.report.load import checked, job_of, kind_of
from steelyard_eval.show.report.page import page
from steelyard_eval.show.runs_kept import trends
from steelyard_eval.views.drawing.picture import picture
from steelyard_eval.views.drawing.plots import trend

_TEMPLATES = "templates"
PAGES: Mapping[str, Callable[[Any, str], Page]] = {"results": page, "gate": gate_page, "learn": learn_page}
"""What makes the page of each kind of document."""
BADGES = ("ship", "try", "keep", "pass", "fail", "inconclusive", "mismatch")


def write_report(results: Mapping[str, object], out: str | Path, runs: Sequence[KeptRun] = ()) -> list[Path]:
    """Write report.html, report.md, summary.md and report.json into `out`.

    Of a comparison also CSV files, leaderboard.tex and timing.json; summary.md has ten lines, for a pull request.

    With `runs` that are kept of the data set the page has the trend of those of the same job. Returns the paths.
    The same results give the same bytes. Timing is in timing.json and not in report.json, so that report.json can
    be compared byte for byte with that of another run. The page stays below a megabyte: the lists of single
    queries are packed, and where they do not fit, fewer of them are in the page.

    Raises DataError when the results are not those of a job that has a report, MachineError when `out` cannot be
    written.
    """
    plain = checked(results)
    json_text = canonical({key: value for key, value in plain.items() if key != "timing"}, one_line=True)
    kind = kind_of(plain)
    compared = cast(ResultsDocument, plain) if kind == "results" else None
    alike = [run for run in runs if run.kind == job_of(plain)]
    content = _with_trend(PAGES[kind](plain, hashlib.sha256(json_text.encode()).hexdigest()), alike)
    # All texts are made before the first is written, so that a fault leaves no partial report.
    texts = {
        "report.html": rendered(content, compared),
        "report.md": _markdown().get_template("report.md.j2").render(page=content, below=below_in_markdown),
        "summary.md": _summary(content),
        "report.json": json_text,
    }
    if compared is not None:
        texts |= {"leaderboard.csv": leaderboard_csv(compared), "queries.csv": queries_csv(compared)}
        texts |= {"leaderboard.tex": latex(compared)} if compared["results"] else {}
        texts["timing.json"] = canonical(compared.get("timing", []))
    files = {Path(out) / name: text for name, text in texts.items()}
    write_texts(files)
    return list(files)


def _with_trend(content: Page, runs: Sequence[KeptRun]) -> Page:
    """The page with what was measured before, in front of what is folded."""
    history = trends(runs)
    if history is None:
        return content
    note = "The best contender of each run with its interval, and what was used then; steelyard runs lists all."
    title = "The metric over the kept runs, oldest first"
    added = Section("trend", "Over time", (Figure(picture(trend(*history), title), note),))
    place = next((i for i, section in enumerate(content.sections) if section.folded), len(content.sections))
    return replace(content, sections=(*content.sections[:place], added, *content.sections[place:]))


def _summary(content: Page) -> str:
    """The page for a pull request: three rows of the first table with a baseline (`_told_rows`)."""
    blocks = (block for section in content.sections if not section.folded for block in section.blocks)
    tables = (block for block in blocks if isinstance(block, TableBlock))
    table = next((block for block in tables if any(row.marked for row in block.rows)), None)
    shown = _told_rows(table.rows) if table else ()
    text = _markdown().get_template("summary.md.j2").render(page=content, table=table, rows=shown, chosen=CHOSEN)
    return re.sub(r"\n{3,}", "\n\n", text)


def _told_rows(rows: Sequence[TableRow]) -> list[TableRow]:
    """The best row, what was chosen and the baseline, and the next best to make three; in their order."""
    kept = [i for i, row in enumerate(rows) if not i or row.marked or row.cells[0].under == CHOSEN]
    rest = [i for i in range(len(rows)) if i not in kept]
    return [rows[i] for i in sorted([*kept, *rest[: 3 - len(kept)]])]


def rendered(content: Page, results: ResultsDocument | None = None) -> str:
    """The page as HTML, with as many lists of the results as there is room for."""
    template = _html().get_template("report.html.j2")
    shared = {"page": content, "policy": policy(), "badges": BADGES, "style": _asset("report.css")}
    shared["below"] = below_in_html
    shared["script"] = _asset("report.js")
    bare = template.render(packed=Packed(""), **shared)
    packed = pack(results, MOST - len(bare.encode()) - 1000) if results else Packed("")
    return template.render(packed=packed, **shared) if packed.text or packed.note else bare


def policy() -> str:
    """What the page may do: its own style, and the one script whose hash is here; nothing from any text."""
    digest = base64.b64encode(hashlib.sha256(_asset("report.js").encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


@cache
def _asset(name: str) -> Markup:
    """A file of the package, which is written into the page as it is."""
    text = resources.files("steelyard_eval.show.report").joinpath(_TEMPLATES, name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 -- our own file


@cache
def _html() -> Environment:
    """The environment for HTML: every value has its control characters escaped and is then autoescaped."""
    environment = _environment(lambda value: legible(value) if _is_plain(value) else value, autoescape=True)
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
        loader=PackageLoader("steelyard_eval.show.report", _TEMPLATES),
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
