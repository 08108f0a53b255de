"""What a judge sees: one pair without a hint of who found it, how far the work is, and what it shows so far."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from steelyard.base.fields import format_time
from steelyard.memory.entry import Entry
from steelyard_eval.choose.blockers import FEWEST
from steelyard_eval.common.formatting import counted
from steelyard_eval.notebook.label.apply import QUERIES, log_has_more, state_of
from steelyard_eval.notebook.label.judgment_file import MEANING, agreement
from steelyard_eval.notebook.label.open import DuelSession
from steelyard_eval.notebook.label.pool import drawn_queries, judged_whole, standings
from steelyard_eval.notebook.label.session import Session
from steelyard_eval.recording.next_steps import (
    WEIGHTS,
    accepting,
    beside,
    deciding,
    installing_for,
    judging,
    lacking,
    rough,
    sealed,
)
from steelyard_eval.recording.saved_runs import KeptFacts
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Step

LISTED = 20
"""Pairs that are listed without being asked."""
VERDICTS = ("ship", "try", "keep")
FIELDS = ("text", "context", "why", "impact", "details")
Record = dict[str, Any]
"""A part of the document of `judge --json`."""


def desk(session: Session) -> Record:
    """All that is shown: the next pair, the counts, the comparisons, agreement; without a pair, what to do now."""
    pair, pool = session.next, session.pool
    duel = session.to_json() if isinstance(session, DuelSession) else None
    whole = judged_whole(pool, session.grades()) if session.random else None
    labels, own, new = session.counted()
    compared = [] if session.first or duel else standings(pool, session.grades(), whole)
    record: Record = {
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
        "comparisons": [asdict(standing) for standing in compared],
        "duel": duel,
        "agreement": agreement(session.first, session.given) if session.first else None,
        "state": state_of(session),
        # whether dataset.json says of all that could be asked that it is not relevant
        "complete": pool.dataset.complete and all(query.id in pool.dataset.qrels for query in pool.queries),
        "drawn": None if whole is None else _drawn(session, len(whole), new),
    }
    left = f", {record['left']} left" if pair and not record["complete"] else ""
    asked = pair or session.given or not session.random  # else nothing was asked, and nothing will be
    return {
        **record,
        "counts": f"{counted(len(session.given), 'pair')} judged{left}." if asked else "",
        "sentence": sentence(record),
        "steps": [{"what": say(step), "command": shlex.join(step.command)} for step in _to_do(session, record)],
    }


def _card(session: Session, pair: tuple[str, str]) -> Record:
    query, entry = session.shown(pair)
    parts = [(name, text) for name in FIELDS if (text := getattr(entry, name))]
    if entry.details in entry.context:  # it is there to be searched, and not to be read twice
        parts = [part for part in parts if part[0] != "details"]
    return {"pair": list(pair), "query": query.text, "title": entry.title, "parts": parts, "facts": _facts(entry)}


def _facts(entry: Entry) -> str:
    """Date, type, project and tags, as far as they are known."""
    day = "" if entry.created_at is None else format_time(entry.created_at)[:10]
    known = (day, entry.type or entry.category, entry.project, entry.speaker, ", ".join(entry.tags))
    return " · ".join(text for text in known if text)


def _drawn(session: Session, judged: int, new: int) -> Record:
    """How far the drawn queries are, `judged` of them in full, and which is next."""
    pool, fair = session.pool, session.pool.dataset.drawn
    labelled = judged + sum(query.id in fair for query in pool.queries)
    decide = max(session.enough - labelled, 0)
    pairs = Counter(query for query, _ in session.upcoming())  # in the order in which they are asked
    query, left = next(iter(pairs.items()), ("", 0))
    facts = session.decided.facts if session.decided and not new else KeptFacts()  # new labels it has not seen
    return {
        "judged": judged,
        "queries": len(drawn_queries(pool)),
        "labelled": labelled,
        "decide": decide,
        "pairs": sum(islice(pairs.values(), decide)),
        "query": query,
        "left": left,
        "of_log": session.enough != FEWEST,
        "verdict": facts.verdict if facts.verdict in VERDICTS else "",
        "needed": facts.labels_needed,
    }


def _to_do(session: Session, record: Record) -> Iterator[Step]:
    """What to do where there is no pair left to ask."""
    dataset, duel, drawn = session.pool.dataset, record["duel"], record["drawn"]
    if record["card"] is not None or record["agreement"] is not None:
        return
    if (dataset.qrels or record["labels"]) and not (drawn and drawn["verdict"]):
        yield deciding(dataset, _decider(drawn))
    if duel and duel["stands"]:
        if dataset.unlabelled:
            what = "label queries that are drawn at random, so that more than a try is possible"
            yield judging(dataset, "told", option="--random" if dataset.by_pairs else "", text=what)
            return
    else:
        row = '{"id": "...", "text": "..."}'
        written = f"to judge more, add queries to {dataset.path / QUERIES}, a line {row} each"
        if log_has_more(dataset, session.pool.seed):
            yield judging(dataset, "told", option="--from-log", text=f"{written}, or draw them from the log")
        elif sealed(dataset) and not dataset.in_memory:
            yield Step("add_queries", {"written": written, **lacking(dataset)}, accepting(dataset).command)
            yield from installing_for(dataset)
        else:
            yield Step("told", {"text": written})
    files = (str(file) for file in (beside(WEIGHTS), WEIGHTS) if file.is_file())
    other = next(files, duel["leads"] if duel else session.pool.labels[-1] if session.random else dataset.today)
    if other != dataset.today:
        what = "label what two rankings part on, such as today's and the recommended one"
        if record["complete"]:
            what = "to check pairs that count as not relevant, name two rankings"
        yield judging(dataset, "told", dataset.today, other, text=what)


def upcoming(session: Session) -> list[Record]:
    """The pairs that are asked next if none is skipped, `LISTED` at most, with their texts."""
    pairs: list[Record] = []
    for query, entry in islice(session.upcoming(), LISTED):
        asked, shown = session.shown((query, entry))
        pairs.append({"query": query, "text": asked.text, "entry": entry, "title": shown.title})
    return pairs


def sentence(record: Record) -> str:
    """Which pairs are next and how many more it takes, in three sentences at most."""
    if found := record["agreement"]:
        kappa = "; no kappa yet"
        if found["kappa"] is not None:
            kappa = f": {found['equal']:.0%} equal, kappa {found['kappa']:.2f}, weighted {found['weighted']:.2f}"
        return f"{found['pairs']} pairs judged by both{kappa}."
    if record["duel"]:
        return _duelled(record["duel"], over=record["card"] is None)
    left = 0 if record["complete"] else record["left"]
    ends = "; ".join(_settled(one, left) for one in record["comparisons"])
    told = [*_whole(record["drawn"])] if record["drawn"] else []
    told += [f"{ends}."] if ends else []
    if ends and record["complete"] and record["card"] and not record["drawn"]:
        told.append(
            "No pair needs a label: one without counts as not relevant (pool: complete), so only grades above 0 "
            "can change this."
        )
    return " ".join(told) or f"{counted(record['left'], 'pair')} left."


def _whole(drawn: Record) -> Iterator[str]:
    """Which query is next, and what the labelled ones are good for."""
    held = drawn["labelled"] - drawn["judged"]
    full = f"{drawn['judged']} of {drawn['queries']} drawn queries are judged in full"
    if held:
        of = "different queries of the log" if drawn["of_log"] else "queries"
        full = f"{drawn['labelled']} of {drawn['queries'] + held} {of} have labels"
    if drawn["query"]:
        yield f"{full}; next: {counted(drawn['left'], 'pair')} of {drawn['query']}."
    else:
        yield f"Nothing is left to label: {full}."
    if drawn["decide"]:
        more = counted(drawn["decide"], "more query", "more queries")
        size = f", {counted(drawn['pairs'], 'pair')}," if drawn["pairs"] else ""
        yield f"With {more}{size} your labels decide."
    elif verdict := drawn["verdict"]:
        more = f"about {rough(drawn['needed'])} more labelled queries" if drawn["needed"] else ""
        then = f"; it takes {more} to settle it" if more else "; it says what would settle it"
        if verdict == "ship":
            then = ", so it needs no more"
        elif verdict == "keep" and more:
            then = f"; it takes {more} to halve the gain that this may miss"
        yield f"By these labels recommend says {verdict}{then}."
    else:
        yield f"These labels are enough for {_decider(drawn)} to decide by."


def _decider(drawn: Record | None) -> str:
    """What decides by these labels: queries of a log do together with its acts."""
    return "learn" if drawn and drawn["of_log"] else "recommend"


def _duelled(duel: Record, over: bool) -> str:
    """Who leads, how sure that is, and what it still takes; `over` where no pair is left to ask."""
    minutes = f"{duel['minutes']} minutes" if duel["minutes"] > 1 else "a minute"
    more = rough(duel["more"])
    if duel["judged"] < duel["enough"] and not over:
        count = counted(duel["enough"] - duel["judged"], "more pair", "more pairs")
        return f"{count} until these labels count, about {more} until the verdict stands: {minutes}."
    leads = (
        f"Of {len(duel['contenders'])} usual strategies and systems {duel['leader']} leads, and what is not "
        f"judged can move its lead by {duel['error']:.3f} nDCG@10"
    )
    if duel["stands"]:
        return f"{leads}. That stands, so no pair is asked."
    return f"{leads}. No pair is left to ask." if over else f"{leads}; about {more} more pairs, {minutes}."


def _settled(one: Record, left: int) -> str:
    """What the labels show of a comparison; `left` pairs have none."""
    challenger, baseline, needed = one["challenger"], one["baseline"], one["needed"]
    against = f"{challenger} against {baseline}"
    if one["verdict"] != "open":
        more = ", and that takes no more" if left else ""
        return f"{challenger} is {one['verdict']} than {baseline}, as the labels of what they find show{more}"
    if not left:
        return f"{against}: these queries cannot tell them apart"
    if one["low"] > 0 or one["high"] < 0:
        leads = "leads" if one["low"] > 0 else "trails"
        return f"{challenger} {leads} so far, by too few labels ({one['judged']}) to tell"
    if needed is None:
        return f"{against}: too close so far to say how many labels it takes"
    if needed > left:
        return f"{against}: more labels than the {left} pairs that are left; add queries"
    return f"{against}: about {counted(rough(needed), 'more label')}"
