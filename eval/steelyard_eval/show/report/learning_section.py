"""The report of what was learned from feedback: the gain in every view, the log, and how people look at lists."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from steelyard_eval.common.documents.learn import LearnDocument
from steelyard_eval.common.markup import MISSING, number
from steelyard_eval.decide.provenance import ends_of
from steelyard_eval.measures.paired import normal_interval
from steelyard_eval.show.report.blocks import (
    Block,
    Figure,
    Page,
    Paragraph,
    Row,
    Section,
    TermList,
    amount,
    table,
)
from steelyard_eval.show.report.glossary import explained
from steelyard_eval.views.drawing.picture import picture
from steelyard_eval.views.drawing.plots import places
from steelyard_eval.views.drawing.spans import Span, difference, spans

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


def learn_page(record: LearnDocument, sha256: str) -> Page:
    """The page of the document of `steelyard learn`."""
    sections = [
        Section("notices", "Before you read on", _refusal(record)),
        Section("gain", "Expected gain", _gain(record)),
        Section("interleaved", "Rankings that took turns", _interleaved(record)),
        Section("strategies", "Strategies", _strategies(record)),
        Section("acts", "How people act on lists", _acts(record)),
        Section("follows", "What acts follow", _follows(record)),
        Section("parts", "Parts of the log", _parts(record)),
        Section("log", "The log", _log(record)),
    ]
    facts = (
        ("tool", record["tool"]),
        ("data set (SHA-256)", record["dataset"].get("sha256") or MISSING),
        ("report.json (SHA-256)", sha256),
    )
    log = record["log"]
    counts = {"searches": log["impressions"], "distinct queries": log["queries"], "acts": log["acts"]}
    return Page(
        title=f"Learned from feedback on {record['dataset']['name']}",
        badge=record["verdict"],
        answer=record["sentence"],
        record=record,
        facts=(*((name, number(count, 0)) for name, count in counts.items()), ("span", log["span"])),
        sections=explained(sections, facts),
    )


def _refusal(record: LearnDocument) -> tuple[Block, ...]:
    refusal = record.get("refusal")
    warnings = [f"Refused: {refusal['reason']}. {refusal['remedy']}."] if refusal else []
    warnings += [record["warning"]] if record.get("warning") else []
    warnings += ["This log is simulated."] if record["log"].get("simulated") else []
    return tuple(Paragraph(text, "warning") for text in warnings)


def _gain(record: LearnDocument) -> tuple[Block, ...]:
    """The gain in every view: how it depends on what nobody was shown, and on labels."""
    views = [
        (f"unseen at {view['imputed']:g}", view["gain"], math.hypot(view["error"], view.get("refit_error") or 0.0))
        for view in record["views"]
    ]
    if labels := record.get("labels"):
        views.append((f"{labels['queries']} labelled queries", labels["gain"], labels["error"]))
        if labels["share"]:
            views.append(("labels, sharpened by acts", labels["both_gain"], labels["both_error"]))
    title = "Expected gain in nDCG@10 with 95% intervals, by view"
    unseen = number(100 * record["unseen"], 0)
    facts = (
        ("new first places that were never shown", f"{unseen}%"),
        ("the gain is gone where unseen entries count", number(record.get("flip"), 2)),
        ("candidates", number(record.get("candidates"), 0)),
    )
    note = (
        "Labels decide, where there are enough; acts alone prove nothing. What nobody was shown has no feedback: "
        "those rows count such entries at a share of what their signals suggest, all of it (1), half or a quarter."
    )
    return (*_forest(title, views, note), TermList(facts))


def _forest(title: str, rows: Sequence[tuple[str, float, float]], note: str) -> tuple[Block, ...]:
    around = [(label, normal_interval(gain, error)) for label, gain, error in rows]
    drawn = [difference(ends_of(bar), label, "filled", bar.mean) for label, bar in around]
    return (Figure(picture(spans(drawn, "gain in nDCG@10", 0.0, "current"), title), note),) if drawn else ()


def _strategies(record: LearnDocument) -> tuple[Block, ...]:
    chosen = record.get("chosen")
    pairs = (
        ("chosen", chosen["strategy"] if chosen else MISSING),
        ("best found", record["best"]["strategy"]),
        ("current", record["current"]["strategy"]),
    )
    return (TermList(pairs, code=True),)


def _acts(record: LearnDocument) -> tuple[Block, ...]:
    acts, seen = record["acts"], record["examination"]
    title = "Acts per show by place, of relevant entries and of others"
    note = (
        "Filled: relevant entries; hollow: others. The closer the two lines, the less an act tells of relevance."
    )
    facts = (
        ("how far down people look", seen.get("text") or f"{number(seen['exponent'], 2)} ({seen['source']})"),
        ("lift (acts on relevant entries over acts on others)", number(acts["lift"], 2)),
    )
    rows: Iterator[Row] = (
        {"act": act["kind"], "acts": amount(act["count"], 0), "lift": amount(act["lift"], 2)}
        for act in acts["kinds"]
    )
    figure = (Figure(picture(act_figure(record), title), note),) if acts["relevant"] or acts["other"] else ()
    return (*figure, TermList(facts), *table("Acts", "What each kind of act is worth.", rows))


def act_figure(record: LearnDocument) -> MatplotlibFigure:
    """Acts per show by place."""
    acts = record["acts"]
    series = {"relevant entries": acts["relevant"], "other entries": acts["other"]}
    return places(series, "place", "acts per show")


def follow_figure(record: LearnDocument) -> MatplotlibFigure:
    """How much the label and each signal raise the chance of an act, given the place."""
    rows = [
        Span(
            row["label"],
            row["delta"],
            row["low"],
            row["high"],
            f"{row['delta']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]",
        )
        for row in record["follows"]
    ]
    return spans(rows, "log odds of an act, highest to lowest", 0.0, "nothing")


def _follows(record: LearnDocument) -> tuple[Block, ...]:
    """What raises the chance of an act: labels should, and signals should not."""
    if not record.get("follows"):
        return ()
    title = "How much the label and each signal raise the chance of an act, given the place, with 95% intervals"
    note = "Measured on labelled queries. Where a signal lies above 0, acts follow it whatever an entry is worth."
    return (Figure(picture(follow_figure(record), title), note),)


def _interleaved(record: LearnDocument) -> tuple[Block, ...]:
    """Which rankings were preferred where two took turns."""
    told = [row["sentence"] for row in record.get("interleaved", ()) if row["other"]]
    return tuple(Paragraph(sentence) for sentence in told)


def _parts(record: LearnDocument) -> tuple[Block, ...]:
    rows = [(f"{row['part']} ({row['queries']})", row["gain"], row["error"]) for row in record.get("pieces", ())]
    note = "The number of distinct queries is in brackets. Each part is learned alone: they should agree."
    return _forest("Gain by acts alone, by part of the log, with 95% intervals", rows, note)


def _log(record: LearnDocument) -> tuple[Block, ...]:
    log = record["log"]
    policies: Iterator[Row] = (
        {
            "policy": policy["name"] or "without a name",
            "searches": amount(policy["searches"], 0),
            "agreement": amount(policy["agreement"], text=f"{policy['agreement']:.1%}"),
            "how": policy["how"],
        }
        for policy in record.get("policies", ())
    )
    aside: Iterator[Row] = (
        {
            "set aside": row["rule"],
            "count": amount(row["count"], 0),
            "lines": ", ".join(map(str, row.get("lines", ()))),
        }
        for row in log.get("set_aside", ())
    )
    facts = (("worth so many equally frequent queries", number(record.get("effective_queries"), 0)),)
    return (
        TermList(facts),
        *table("Policies", "What ranked the logged lists.", policies),
        *table("Set aside", "Lines that were not used, and why.", aside),
    )
