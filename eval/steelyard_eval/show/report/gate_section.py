"""The report of a gate: the change of every contender, what got worse, and how far the gate can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from steelyard_eval.common.documents.gate import FindingRecord, GateDocument, GatedRecord, LostQuery
from steelyard_eval.common.markup import MISSING, clip, number, p_value
from steelyard_eval.show.report.blocks import (
    Block,
    Cell,
    Figure,
    ListPlace,
    Notices,
    Page,
    Pair,
    Pairs,
    Paragraph,
    Row,
    Section,
    TermList,
    amount,
    table,
)
from steelyard_eval.show.report.glossary import explained
from steelyard_eval.show.report.queries import move
from steelyard_eval.views.drawing.picture import picture
from steelyard_eval.views.drawing.spans import difference, spans

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

COLOURS = {"pass": "good", "fail": "bad"}


def gate_page(record: GateDocument, sha256: str) -> Page:
    """The page of a gate's document."""
    sections = [
        Section("notices", "Before you read on", Notices.of(record["notices"])),
        Section("findings", "What was found", _findings(record)),
        Section("contenders", "Contenders", _contenders(record)),
        Section("slices", "Categories and intents", _slices(record), folded=True),
        Section("queries", "Queries that lost most", tuple(_worst(record))),
        Section("trust", "How far this gate can be trusted", tuple(_trust(record)), folded=True),
        Section("baseline", "Baseline", _baseline(record)),
    ]
    facts = (("tool", record["tool"]), ("report.json (SHA-256)", sha256))
    settings = {
        "split": record.get("split"),
        "budget": number(record.get("budget"), 3),
        "check": record.get("check"),
    }
    return Page(
        title=f"Gate of {record['dataset']['name']}",
        badge=record["verdict"],
        answer=record["sentence"],
        record=record,
        facts=tuple((name, str(value)) for name, value in settings.items() if value),
        sections=explained(sections, facts),
    )


def _findings(record: GateDocument) -> tuple[Block, ...]:
    return table(
        "Findings",
        "Worst first.",
        (
            {
                "contender": finding.get("contender") or MISSING,
                "kind": finding["kind"],
                "verdict": _verdict(finding),
                "finding": finding["text"],
            }
            for finding in record["findings"]
        ),
    )


def _verdict(one: FindingRecord | GatedRecord) -> Cell:
    return Cell(one["verdict"], colour=COLOURS.get(one["verdict"], ""))


def _contenders(record: GateDocument) -> tuple[Block, ...]:
    if not record["contenders"]:
        return ()
    note = "Left of the line is worse than before; dashed: the drop that is accepted. Cross: fails; hollow: open."
    figure = Figure(picture(change_figure(record), "Change of nDCG@10 with 95% intervals"), note)
    rows = map(_contender, record["contenders"])
    said = "nDCG@10 against the committed baseline."
    if power := record.get("power"):
        said += f" Catches: the share of changes that lower it by {power['drop']:g} which this gate blocks."
    return (figure, *table("Contenders", said, rows))


def change_figure(record: GateDocument) -> MatplotlibFigure:
    """The change of every contender since the baseline, and since the anchor where that is an older one."""
    looks, budget = {"pass": "filled", "fail": "cross"}, record.get("budget")
    rows = [
        difference(
            part,
            row["label"] if part is row["against"][0] else f"{row['label']}, {part['name']}",
            looks.get(part["verdict"], "hollow"),
            part["delta"],
            part["verdict"],
        )
        for row in record["contenders"]
        for part in row["against"]
        if part is row["against"][0] or part["delta"] != row["against"][0]["delta"]
    ]
    return spans(rows, "change of nDCG@10", 0.0, "baseline", dashed=None if budget is None else -budget)


def _contender(row: GatedRecord) -> Row:
    first, base, power = row["metrics"][0], row["against"][0], row["power"]
    return {
        "contender": Cell(row["label"], row.get("strategy") or ""),
        "verdict": _verdict(row),
        "before": amount(first["before"]),
        "now": amount(first["now"]),
        "change": amount(base["delta"], signed=True, ends=base),
        "p worse": amount(base.get("p_worse"), text=p_value(base.get("p_worse"))),
        "lists changed": amount(row["lists_changed"], text=f"{row['lists_changed']} of {row['queries']}"),
        "catches": _share(power["caught"], "misses most" if power["asleep"] else ""),
        "finding": row["text"],
    }


def _share(value: float | None, under: str = "") -> Cell:
    return amount(value, text=MISSING if value is None else f"{value:.0%}", under=under)


def _slices(record: GateDocument) -> tuple[Block, ...]:
    rows: Iterator[Row] = (
        {
            "slice": f"{part['field']} {part['value']}",
            "contender": row["label"],
            "queries": amount(part["queries"], 0),
            "change": amount(part["delta"], signed=True, colour="bad" if part["worse"] else ""),
            "p by slice": amount(part.get("p_adjusted"), text=p_value(part.get("p_adjusted"))),
        }
        for row in record["contenders"]
        for part in row["slices"]
        if part["delta"]
    )
    return table("Slices", "Where something changed.", rows)


def _worst(record: GateDocument) -> Iterator[Block]:
    for row in record["contenders"]:
        pairs = tuple(_pair(query) for query in row["worst"])
        if pairs:
            yield Pairs((f"{row['label']}, before", f"{row['label']}, now"), pairs)


def _pair(query: LostQuery) -> Pair:
    before, now = query["list_before"], query["list_now"]
    return Pair(
        text=clip(query.get("text") or MISSING, 240),
        about=clip(query["id"], 60),
        change=f"{number(query['before'])} to {number(query['now'])}",
        left=tuple(
            ListPlace(clip(id_, 80), None, move(i, now, id_, "to", "left"), "") for i, id_ in enumerate(before)
        ),
        right=tuple(
            ListPlace(clip(id_, 80), None, move(i, before, id_, "was", "new"), "") for i, id_ in enumerate(now)
        ),
    )


def _trust(record: GateDocument) -> Iterator[Block]:
    power = record.get("power")
    if not power:
        return
    if power["asleep"]:
        names = ", ".join(power["asleep"])
        yield Paragraph(
            f"Most drops of {power['drop']:g} of {names} would pass: too few queries have labels.", "warning"
        )
    drops = f"share of drops of {power['drop']:g} that it catches, for the worst contender"
    alarms = "share of harmless changes that it blocks, for the worst contender"
    shares = {drops: power["least"], alarms: record.get("false_alarm_rate")}
    yield TermList(tuple((name, _share(value).text) for name, value in shares.items()))


def _baseline(record: GateDocument) -> tuple[Block, ...]:
    base = record["baseline"]
    because = base.get("because") or MISSING
    facts = (("file", base["path"]), ("date", base["date"]), ("reason", because), ("tool", base["tool"]))
    again = record.get("rebaseline")
    command = (TermList((("accept this as the new baseline", again),), code=True),) if again else ()
    return (TermList(facts), *command)
