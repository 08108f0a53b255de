"""What a page is made of, and the sections of a report, for whatever result it is given; without any markup."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from steelyard.base.fields import format_time
from steelyard_eval.common.console import brief
from steelyard_eval.common.formatting import MISSING, clip, number
from steelyard_eval.measures.metrics import meaning
from steelyard_eval.measures.paired import DRAWS, EXTRA_QUERY_RMS, MARGIN
from steelyard_eval.measures.spread import ALPHA
from steelyard_eval.result.sentences import GLOSSARY, HEADINGS, METHOD, dialect, filled, heading, say
from steelyard_eval.result.structs import Fact, QueryRow, Result
from steelyard_eval.views.drawing.canvas import Chart, picture
from steelyard_eval.views.figures import difference_rows, differences, figures, two_sides
from steelyard_eval.views.sheets import Sheet, SheetColumn, contenders, facts_of, leading, ranked, sheets


@dataclass(frozen=True)
class Texts:
    """Paragraphs; those that are `warnings` are folded after the first few."""

    kind: ClassVar[str] = "texts"
    texts: tuple[str, ...]
    warnings: bool = False


@dataclass(frozen=True)
class TermList:
    """Terms with their values; as code where `code`."""

    kind: ClassVar[str] = "terms"
    pairs: tuple[tuple[str, str], ...]
    code: bool = False


@dataclass(frozen=True)
class TableBlock:
    """A sheet; readers with scripts sort it by any column, and filter it where it is long."""

    kind: ClassVar[str] = "table"
    sheet: Sheet


@dataclass(frozen=True)
class FigureBlock:
    """A chart, with what a reader has to know to read it."""

    kind: ClassVar[str] = "figure"
    chart: Chart
    note: str = ""


Block = Texts | TermList | TableBlock | FigureBlock


@dataclass(frozen=True)
class Section:
    """A heading, the fragment that links lead to, and blocks; one that is folded shows its heading alone."""

    id: str
    title: str
    blocks: tuple[Block, ...] = ()
    folded: bool = False


UNFOLDED_TABLES = frozenset({"contenders", "agreement", "findings", "gated", "lost"})
FIRST_SECTIONS = frozenset({"findings", "gated", "lost"})
UNFOLDED_OF_DECISION = frozenset({"leaderboard", "queries", "notices", "gains", "acts"})
TERMS = frozenset({"gate_file"})  # tables of one row whose cells are hashes and paths: as terms they need no width


def title(result: Result) -> str:
    """What the page is about."""
    about = result.provenance
    tuned = about.command[1:2] == ["tune"]
    facts: dict[str, Fact] = {"data": about.data.name, "strategy": about.command[3] if tuned else None}
    return heading(f"page_{'tune' if tuned else result.kind}", facts)


def badge(result: Result) -> str:
    """The word of the verdict; empty where nothing was decided."""
    return result.decision.verdict if result.decision else str(result.answer.facts.get("verdict") or "")


def answer_without_badge(result: Result) -> str:
    """The answer without the word that is on the badge."""
    word = badge(result).capitalize()
    return say(result.answer).removeprefix(f"{word}: ").removeprefix(f"{word} ") if word else say(result.answer)


def pictured(result: Result) -> FigureBlock | None:
    """Today and the choice in a picture; None where nothing was decided by labels."""
    drawn = figures(result).get("answer")
    return FigureBlock(picture(drawn(), heading("figure_answer", {"metric": result.metric}))) if drawn else None


def facts(result: Result) -> tuple[tuple[str, str], ...]:
    """Sizes and settings, without those that are not known."""
    about, data = result.provenance, result.provenance.data
    counts = {"entries": data.entries, "queries": data.queries, "judged": data.judged, "limit": about.limit}
    known = {name: number(count, 0) for name, count in counts.items() if count is not None}
    clock = "" if data.as_of in (None, format_time(0.0)) else data.as_of  # a set without any date has 1970
    known |= {"split": about.split, "model": about.model, "as_of": clock, "licence": data.licence or ""}
    if data.set_apart:
        known["set_apart"] = heading("apart", {"count": data.set_apart})
    return tuple((heading(f"fact_{name}"), value) for name, value in known.items() if value)


def sections(result: Result, sha256: str) -> list[Section]:
    """The sections that have something in them; `sha256` is that of the report.json beside the page."""
    every, board = sheets(result), contenders(result, leading(result), short=True)
    names = [(row.label, ", ".join(filter(None, (brief(row.strategy), row.settings)))) for row in ranked(result)]
    first = replace(board, legend="") if board and result.decision else board  # all rows follow in this page
    shown = [
        Section("leaderboard", heading("title_contenders"), (TableBlock(first),) if first else ()),
        _section("queries", list(widest(result)), folded=True),
        _section("differences", list(_differences(result))),
        *(_table_section(result, sheet) for sheet in every if sheet != board),
        _section("notices", [Texts(tuple(map(say, result.notices)), warnings=True)] if result.notices else []),
        _section("strategies", [TermList(tuple(names), code=True)] if names else [], folded=True),
    ]
    kept = [section for section in shown if section.blocks]
    if result.decision and result.rows:
        kept = [replace(section, folded=section.id not in UNFOLDED_OF_DECISION) for section in kept]
    kept.sort(key=lambda section: (section.folded, section.id not in FIRST_SECTIONS))
    terms = list(dict(_glossary_terms(result, kept)).items())
    last = [
        _section("glossary", [TermList(tuple(terms))] if terms else [], folded=True),
        _section("method", [TermList(tuple(_method_terms(result)))] if result.rows else [], folded=True),
        _section("provenance", [TermList(tuple(_provenance(result, sha256)), code=True)], folded=True),
    ]
    return [*kept, *(section for section in last if section.blocks)]


def _section(key: str, blocks: Sequence[Block], *, folded: bool = False) -> Section:
    return Section(key, heading(f"title_{key}"), tuple(blocks), folded)


def _table_section(result: Result, sheet: Sheet) -> Section:
    key = "metrics" if sheet.key == "contenders" else sheet.key
    sheet = replace(sheet, title=heading(f"title_{key}"))
    table = next((one for one in result.tables if one.key == sheet.key), None)
    drawn = figures(result).get(sheet.key) if table else None
    blocks: list[Block] = [TableBlock(sheet)]
    if key in TERMS:
        blocks = [TermList(tuple(zip((one.name for one in sheet.columns), sheet.rows[0], strict=True)), code=True)]
    if drawn and table:
        known = {**facts_of(result), **table.facts}
        note = heading(f"note_{key}", known) if f"note_{key}" in HEADINGS else ""
        blocks.insert(0, FigureBlock(picture(drawn(), heading(f"figure_{key}", known)), note))
    return Section(key, sheet.title, tuple(blocks), key not in UNFOLDED_TABLES)


def _differences(result: Result) -> Iterator[Block]:
    if result.kind != "gate" and difference_rows(result, leading(result)):  # the gate draws its changes itself
        note = heading("note_differences", {**facts_of(result), "margin": MARGIN})
        yield FigureBlock(picture(differences(result, short=True), heading("figure_differences")), note)


def _glossary_terms(result: Result, shown: list[Section]) -> Iterator[tuple[str, str]]:
    for name in result.provenance.metrics:
        if words := meaning(name):
            yield name, words
    known = {**facts_of(result), "alpha": ALPHA, "margin": MARGIN}
    for section in shown:
        for block in section.blocks:
            for column in block.sheet.columns if isinstance(block, TableBlock) else ():
                if column.key in GLOSSARY:
                    yield column.name or column.key, filled(GLOSSARY[column.key], known)


def _method_terms(result: Result) -> Iterator[tuple[str, str]]:
    about = result.provenance
    known: dict[str, Fact] = {
        "dialect": dialect(about.ties) if about.ties else None,
        "split": about.split,
        "limit": about.limit,
        "model": about.model or None,
        "recipe": about.recipe or None,
        "level": 1 - ALPHA,
        "alpha": ALPHA,
        "unseen": EXTRA_QUERY_RMS,
        "draws": DRAWS,
        "margin": MARGIN,
        "metric": result.metric,
        "candidates": about.candidates,
    }
    for term, template in METHOD.items():
        try:
            yield term, filled(template, known)
        except KeyError:  # it is of a fact that is not known here
            continue


def _provenance(result: Result, sha256: str) -> Iterator[tuple[str, str]]:
    about = result.provenance
    known = {
        "tool": about.tool,
        "command": shlex.join(about.command),
        "data": about.data.sha256 or "",
        "report": sha256,
    }
    yield from ((heading(f"term_{name}"), value) for name, value in known.items() if value)


SHOWN = 5
MAX_BESIDE = 6
MAX_QUERY_CHARS, MAX_NAME_CHARS = 240, 60


def widest(result: Result) -> Iterator[Block]:
    """The queries with the widest range of values, widest first, equal ones by id."""
    if not result.rows or not result.queries:
        return
    base = result.provenance.baseline
    labels = list((result.decision and two_sides(result)) or [row.label for row in ranked(result)])
    others = [label for label in labels if label != base][: MAX_BESIDE - (base in labels)]
    kept = [label for label in labels if label == base or label in others]
    wide = []
    for query in result.queries:
        values = [value for label in kept if (value := query.values.get(label)) is not None]
        if values and max(values) > min(values):
            wide.append((min(values) - max(values), query.id, query))
    if not wide:
        yield Texts((heading("all_alike"),))
        return
    top = [query for _, _, query in sorted(wide, key=lambda row: row[:2])[:SHOWN]]
    known = {**facts_of(result), "others": len(kept) - 1 if len(kept) < len(labels) else None}
    heads = (SheetColumn(heading("query"), key="query"), *(SheetColumn(label, right=True) for label in kept))
    rows = tuple(_row(query, kept) for query in top)
    yield TableBlock(Sheet("wide", heading("title_wide"), heads, rows, heading("legend_wide", known)))


def _row(query: QueryRow, labels: Sequence[str]) -> tuple[str, ...]:
    values = [query.values.get(label) for label in labels]
    best = max(value for value in values if value is not None)
    cells = [number(value) + ("*" if value == best else "") for value in values]
    about = ", ".join(clip(part, MAX_NAME_CHARS) for part in (query.id, query.category) if part)
    return (f"{clip(query.text or MISSING, MAX_QUERY_CHARS)} ({about})", *cells)
