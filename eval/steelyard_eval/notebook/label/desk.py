"""What a judge sees: one pair without a hint of who found it, how far the work is, and what it shows so far."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from steelyard.base.fields import format_time
from steelyard.memory.entry import Entry
from steelyard_eval.choose.scored import FEWEST
from steelyard_eval.common.markup import counted
from steelyard_eval.datasets import Dataset
from steelyard_eval.notebook.label.apply import QUERIES, log_has_more
from steelyard_eval.notebook.label.judgments import MEANING, agreement
from steelyard_eval.notebook.label.open import DuelSession
from steelyard_eval.notebook.label.outlook import Standing, standings
from steelyard_eval.notebook.label.pool import Pool, drawn_queries, judged_whole
from steelyard_eval.notebook.label.session import Session
from steelyard_eval.recording.runs import KeptFacts
from steelyard_eval.recording.steps import (
    WEIGHTS,
    accepting,
    beside,
    deciding,
    installing_for,
    lacking,
    rough,
    sealed,
    words_of,
)
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
    pair = session.next
    duel = session.to_json() if isinstance(session, DuelSession) else None
    labels, own, new = session.counted()
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
        "comparisons": [] if session.first or duel else [asdict(standing) for standing in _standings(session)],
        "duel": duel,
        "agreement": agreement(session.first, session.given) if session.first else None,
        "state": session.state,
        "written": bool(session.statement()),
        "complete": _complete(session.pool),
        "drawn": _drawn(session) if session.random else None,
    }
    steps = list(_to_do(session, record))
    told = sentence(record)
    return {**record, "counts": _counts(record), "sentence": told, "steps": steps}


def _complete(pool: Pool) -> bool:
    """Whether dataset.json says of all that could be asked that it is not relevant."""
    return pool.dataset.complete and all(query.id in pool.dataset.qrels for query in pool.queries)


def _counts(record: Record) -> str:
    if not (record["card"] or record["given"]) and record["drawn"]:
        return ""  # nothing was asked, and nothing will be
    left = f", {record['left']} left" if record["card"] and not record["complete"] else ""
    return f"{counted(record['given'], 'pair')} judged{left}."


def _to_do(session: Session, record: Record) -> Iterator[Record]:
    """What to do where there is no pair left to ask."""
    dataset, duel = session.pool.dataset, record["duel"]
    if record["card"] is not None or record["agreement"] is not None:
        return
    stands = duel and duel["stands"]
    if (dataset.qrels or record["labels"]) and not (record["drawn"] and record["drawn"]["verdict"]):
        decide = deciding(dataset, _decider(record["drawn"]))
        yield _step(say(decide), decide.command)
    if not stands:
        row = '{"id": "...", "text": "..."}'
        written = f"to judge more, add queries to {dataset.path / QUERIES}, a line {row} each"
        if log_has_more(dataset, session.pool.seed):
            yield _judging(dataset, f"{written}, or draw them from the log", option="--from-log")
        elif sealed(dataset) and not dataset.in_memory:
            told = Step("add_queries", {"written": written, **lacking(dataset)})
            yield _step(say(told), accepting(dataset).command)
            yield from (_step(say(step), step.command) for step in installing_for(dataset))
        else:
            yield _step(written)
    elif dataset.unlabelled:
        what = "label queries that are drawn at random, so that more than a try is possible"
        yield _judging(dataset, what, option="--random" if dataset.by_pairs else "")
        return
    files = (str(file) for file in (beside(WEIGHTS), WEIGHTS) if file.is_file())
    other = next(files, duel["leads"] if duel else session.pool.labels[-1] if session.random else dataset.today)
    if other != dataset.today:
        what = "label what two rankings part on, such as today's and the recommended one"
        if record["complete"]:
            what = "to check pairs that count as not relevant, name two rankings"
        yield _judging(dataset, what, dataset.today, other)


def _judging(dataset: Dataset, what: str, *contenders: str, option: str = "") -> Record:
    return _step(what, words_of("judge", dataset, *contenders, options={option: True} if option else {}))


def _step(what: str, words: Sequence[str] = ()) -> Record:
    return {"what": what, "command": shlex.join(words)}


def upcoming(session: Session) -> list[Record]:
    """The pairs that are asked next if none is skipped, `LISTED` at most, with their texts."""
    pairs: list[Record] = []
    for query, entry in islice(session.upcoming(), LISTED):
        asked, shown = session.shown((query, entry))
        pairs.append({"query": query, "text": asked.text, "entry": entry, "title": shown.title})
    return pairs


def _standings(session: Session) -> list[Standing]:
    grades = session.grades()
    return standings(session.pool, grades, judged_whole(session.pool, grades) if session.random else None)


def _drawn(session: Session) -> Record:
    """How far the drawn queries are, and which is next."""
    pool = session.pool
    judged = len(judged_whole(pool, session.grades()))
    fair = pool.dataset.drawn
    held = sum(query.id in fair for query in pool.queries)
    labelled = judged + held
    decide = max(session.enough - labelled, 0)
    pairs = Counter(query for query, _ in session.upcoming())  # in the order in which they are asked
    query, left = next(iter(pairs.items()), ("", 0))
    decided = None if session.counted()[2] else session.decided  # labels that are new were not decided by
    facts = decided.facts if decided and decided.facts.verdict in VERDICTS else KeptFacts()
    return {
        "judged": judged,
        "queries": len(drawn_queries(pool)),
        "labelled": labelled,
        "decide": decide,
        "pairs": sum(islice(pairs.values(), decide)),
        "query": query,
        "left": left,
        "of_log": session.enough != FEWEST,
        "verdict": facts.verdict,
        "needed": facts.labels_needed,
    }


def sentence(record: Record) -> str:
    """Which pairs are next and how many more it takes, in three sentences at most."""
    if record["agreement"] is not None:
        return _agreed(record["agreement"])
    if record["duel"]:
        return _duelled(record["duel"], over=record["card"] is None)
    left = 0 if record["complete"] else record["left"]
    shown = "; ".join(_settled(Standing(**comparison), left) for comparison in record["comparisons"])
    ends = f"{shown}." if shown else ""
    if record["drawn"]:
        return " ".join(filter(None, (*_whole(record["drawn"]), ends)))
    if ends and record["complete"] and record["card"]:
        return (
            f"{ends} No pair needs a label: one without counts as not relevant (pool: complete), so only grades "
            "above 0 can change this."
        )
    return ends or f"{counted(record['left'], 'pair')} left."


def _whole(drawn: Record) -> Iterator[str]:
    """Which query is next, and what the labelled ones are good for."""
    held = drawn["labelled"] - drawn["judged"]
    full = f"{drawn['judged']} of {drawn['queries']} drawn queries are judged in full"
    of = "different queries of the log" if drawn["of_log"] else "queries"
    full = f"{drawn['labelled']} of {drawn['queries'] + held} {of} have labels" if held else full
    if drawn["query"]:
        yield f"{full}; next: {counted(drawn['left'], 'pair')} of {drawn['query']}."
    else:
        yield f"Nothing is left to label: {full}."
    if drawn["decide"]:
        more = counted(drawn["decide"], "more query", "more queries")
        size = f", {counted(drawn['pairs'], 'pair')}," if drawn["pairs"] else ""
        yield f"With {more}{size} your labels decide."
        return
    if drawn["verdict"]:
        yield _decided(drawn)
        return
    yield f"These labels are enough for {_decider(drawn)} to decide by."


def _decider(drawn: Record | None) -> str:
    """What decides by these labels: queries of a log do together with its acts."""
    return "learn" if drawn and drawn["of_log"] else "recommend"


def _decided(drawn: Record) -> str:
    """How many more labels could change what was decided by those that there are."""
    more = f"about {rough(drawn['needed'])} more labelled queries" if drawn["needed"] else ""
    if drawn["verdict"] == "ship":
        return "By these labels recommend says ship, so it needs no more."
    if drawn["verdict"] == "keep" and more:
        return f"By these labels recommend says keep; it takes {more} to halve the gain that this may miss."
    what = f"it takes {more} to settle it" if more else "it says what would settle it"
    return f"By these labels recommend says {drawn['verdict']}; {what}."


def _duelled(duel: Record, over: bool) -> str:
    """Who leads, how sure that is, and what it still takes; `over` where no pair is left to ask."""
    minutes = f"{duel['minutes']} minutes" if duel["minutes"] > 1 else "a minute"
    more = rough(duel["more"])
    if duel["judged"] < duel["enough"] and not over:
        count = counted(duel["enough"] - duel["judged"], "more pair", "more pairs")
        return f"{count} until these labels count, about {more} until the verdict stands: {minutes}."
    time = f"about {more} more pairs, {minutes}"
    leads = (
        f"Of {len(duel['contenders'])} usual strategies and systems {duel['leader']} leads, and what is not "
        f"judged can move its lead by {duel['error']:.3f} nDCG@10"
    )
    if duel["stands"]:
        return f"{leads}. That stands, so no pair is asked."
    return f"{leads}. No pair is left to ask." if over else f"{leads}; {time}."


def _settled(one: Standing, left: int) -> str:
    against = f"{one.challenger} against {one.baseline}"
    if one.verdict != "open":
        told = f"{one.challenger} is {one.verdict} than {one.baseline}, as the labels of what they find show"
        return f"{told}, and that takes no more" if left else told
    if not left:
        return f"{against}: these queries cannot tell them apart"
    if one.low > 0 or one.high < 0:
        leads = "leads" if one.low > 0 else "trails"
        return f"{one.challenger} {leads} so far, by too few labels ({one.judged}) to tell"
    if one.needed is None:
        return f"{against}: too close so far to say how many labels it takes"
    if one.needed > left:
        return f"{against}: more labels than the {left} pairs that are left; add queries"
    return f"{against}: about {counted(rough(one.needed), 'more label')}"


def _agreed(found: Record) -> str:
    if found["kappa"] is None:
        return f"{found['pairs']} pairs judged by both; no kappa yet."
    return (
        f"{found['pairs']} pairs judged by both: {found['equal']:.0%} equal, kappa {found['kappa']:.2f}, "
        f"weighted {found['weighted']:.2f}."
    )


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
