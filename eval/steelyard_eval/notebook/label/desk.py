"""What a judge sees: one pair without a hint of who found it, how far the work is, and what it shows so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any, TypedDict

from steelyard.base.fields import format_time
from steelyard.memory.entry import Entry
from steelyard_eval.common.answer import Step
from steelyard_eval.common.documents.parts import StepRecord
from steelyard_eval.datasets.faults import counted
from steelyard_eval.decide.steps import WEIGHTS, beside, drawing, judging, rough
from steelyard_eval.notebook.label import whole_queries
from steelyard_eval.notebook.label.duel_session import DuelSession, DuelState
from steelyard_eval.notebook.label.judgments import MEANING
from steelyard_eval.notebook.label.kappa import KappaRecord, agreement
from steelyard_eval.notebook.label.outlook import Standing, standings
from steelyard_eval.notebook.label.session import Session
from steelyard_eval.notebook.label.write_queries import QUERIES, log_has_more, query_vectors, sealed
from steelyard_eval.recording.rankings import spelled

LISTED = 20
"""Pairs that are listed without being asked."""
FIELDS = ("text", "context", "why", "impact", "details")


class CardRecord(TypedDict):
    """A pair: the query, and what is known of the entry."""

    pair: list[str]
    query: str
    title: str
    parts: list[tuple[str, str]]
    facts: str


class DrawnRecord(TypedDict):
    """How many drawn queries are judged whole, of how many, and how many more decide."""

    judged: int
    queries: int
    decide: int


class NextPair(TypedDict):
    """A pair that is asked soon."""

    query: str
    text: str
    entry: str
    title: str


class DeskState(TypedDict):
    """How far the work is, without its sentence."""

    judge: str
    meaning: list[str]
    given: int
    left: int
    labels: int
    own_labels: int
    new_labels: int
    file: str
    qrels: str
    card: CardRecord | None
    comparisons: list[dict[str, Any]]
    duel: DuelState | None
    agreement: KappaRecord | None
    state: dict[str, Any]
    written: bool
    drawn: DrawnRecord | None


class DeskDocument(DeskState):
    """All that a judge sees."""

    sentence: str
    steps: list[StepRecord]


def desk(session: Session) -> DeskDocument:
    """All that is shown: the next pair, the counts, the comparisons, agreement; without a pair, what to do now."""
    pair = session.next
    duel = session.to_json() if isinstance(session, DuelSession) else None
    labels, own, new = session.counted()
    record: DeskState = {
        "judge": session.judge,
        "meaning": list(MEANING),
        "given": len(session.given),
        "left": session.left,
        "labels": labels,
        "own_labels": own,
        "new_labels": new,
        "file": str(session.file),
        "qrels": str(session.qrels),
        "card": None if pair is None else _card(session, pair),
        "comparisons": [] if session.first or duel else [asdict(standing) for standing in _standings(session)],
        "duel": duel,
        "agreement": agreement(session.first, session.given) if session.first else None,
        "state": whole_queries.to_state(session.pool, session.random, session.given),
        "written": bool(session.statement()),
        "drawn": _drawn(session) if session.random else None,
    }
    steps = [StepRecord(what=step.what, command=step.command) for step in _to_do(session, record)]
    return {**record, "sentence": sentence(record), "steps": steps}


def _to_do(session: Session, record: DeskState) -> Iterator[Step]:
    """What to do where there is no pair left to ask."""
    dataset, duel = session.pool.dataset, record["duel"]
    if record["card"] is not None or record["agreement"] is not None:
        return
    stands = duel and duel["stands"]
    if dataset.qrels or record["labels"]:
        more = "" if stands else ", or see how many more queries it takes"
        yield Step(f"decide by these labels{more}", spelled("recommend", dataset, options={}) or "")
    if not stands:
        row = '{"id": "...", "text": "..."}'
        written = f"to judge more, add queries to {dataset.path / QUERIES}, a line {row} each"
        if log_has_more(dataset, session.pool.seed):
            yield judging(dataset, f"{written}, or draw them from the log", "--from-log")
        elif sealed(dataset) and not dataset.in_memory:
            vectors = ", ".join(query_vectors(dataset))
            without = f", delete {vectors}, which lacks them" if vectors else ""
            yield Step(f"{written}{without}, and then", spelled("check", dataset, "--accept", options={}) or "")
        else:
            yield Step(written)
    elif dataset.unlabelled:
        yield drawing(dataset, "label queries that are drawn at random, so that more than a try is possible")
        return
    other = next((str(file) for file in (beside(WEIGHTS), WEIGHTS) if file.is_file()), duel and duel["leads"])
    if other and other != dataset.today:
        what = "label what two rankings part on, such as today's and the recommended one"
        yield judging(dataset, what, dataset.today, other)


def upcoming(session: Session) -> list[NextPair]:
    """The pairs that are asked next if none is skipped, `LISTED` at most, with their texts."""
    pairs: list[NextPair] = []
    for query, entry in islice(session.upcoming(), LISTED):
        asked, shown = session.shown((query, entry))
        pairs.append({"query": query, "text": asked.text, "entry": entry, "title": shown.title})
    return pairs


def _standings(session: Session) -> list[Standing]:
    grades = session.grades()
    return standings(
        session.pool, grades, whole_queries.judged_whole(session.pool, grades) if session.random else None
    )


def _drawn(session: Session) -> DrawnRecord:
    """How many drawn queries are judged whole, and of how many."""
    pool = session.pool
    judged = len(whole_queries.judged_whole(pool, session.grades()))
    held = len(pool.dataset.qrels) if whole_queries.fair(pool) else 0
    more = max(session.enough - held - judged, 0)
    return {"judged": judged, "queries": len(whole_queries.drawn(pool)), "decide": more}


def sentence(record: DeskState) -> str:
    """How far the work is, in a line."""
    if record["agreement"] is not None:
        return _agreed(record["agreement"])
    if record["duel"]:
        return _duelled(record["duel"], over=record["card"] is None)
    shown = [_settled(Standing(**comparison), record["left"]) for comparison in record["comparisons"]]
    if (drawn := record["drawn"]) and not drawn["queries"]:
        return "No query is left to draw: all have labels."
    if drawn:
        whole_ = f"{drawn['judged']} of {drawn['queries']} drawn queries are judged in full"
        enough = f"{drawn['decide']} more, and they decide" if drawn["decide"] else "enough to decide"
        return " ".join([f"{whole_}; {enough}.", *shown])
    return " ".join(shown) or f"{record['left']} pairs left."


def _duelled(duel: DuelState, over: bool) -> str:
    """Who leads, how sure that is, and what it still takes; `over` where no pair is left to ask."""
    minutes = f"{duel['minutes']} minutes" if duel["minutes"] > 1 else "a minute"
    more = rough(duel["more"])
    if duel["judged"] < duel["enough"] and not over:
        count = counted(duel["enough"] - duel["judged"], "more pair", "more pairs")
        return f"{count} until these labels count, about {more} until the verdict stands: {minutes}."
    time = f"about {more} more judgments, {minutes}"
    leads = f"{duel['leader']} leads, and what is not judged can move its lead by {duel['error']:.3f} nDCG@10"
    if duel["stands"]:
        return f"{leads}. That stands, so no pair is asked."
    return f"{leads}. No pair is left to ask." if over else f"{leads}; {time}."


def _settled(one: Standing, left: int) -> str:
    against = f"{one.challenger} against {one.baseline}"
    if one.verdict != "open":
        told = f"{one.challenger} is {one.verdict} than {one.baseline}, as {counted(one.judged, 'label')} show"
        return f"{told}; that takes no more." if left else f"{told}."
    if not left:
        return f"{against}: these queries cannot tell them apart."
    if one.low > 0 or one.high < 0:
        leads = "leads" if one.low > 0 else "trails"
        return f"{one.challenger} {leads} so far, by too few labels ({one.judged}) to tell."
    if one.needed is None:
        return f"{against}: too close so far to say how many labels it takes."
    if one.needed > left:
        return f"{against}: more labels than the {left} pairs that are left; add queries."
    return f"{against}: about {rough(one.needed)} labels more."


def _agreed(found: KappaRecord) -> str:
    if found["kappa"] is None:
        return f"{found['pairs']} pairs judged by both; no kappa yet."
    return (
        f"{found['pairs']} pairs judged by both: {found['equal']:.0%} equal, kappa {found['kappa']:.2f}, "
        f"weighted {found['weighted']:.2f}."
    )


def _card(session: Session, pair: tuple[str, str]) -> CardRecord:
    query, entry = session.shown(pair)
    parts = [(name, getattr(entry, name)) for name in FIELDS if getattr(entry, name)]
    return {"pair": list(pair), "query": query.text, "title": entry.title, "parts": parts, "facts": _facts(entry)}


def _facts(entry: Entry) -> str:
    """Date, type, project and tags, as far as they are known."""
    day = "" if entry.created_at is None else format_time(entry.created_at)[:10]
    known = (day, entry.type or entry.category, entry.project, entry.speaker, ", ".join(entry.tags))
    return " · ".join(text for text in known if text)
