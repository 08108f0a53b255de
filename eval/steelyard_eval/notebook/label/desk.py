"""How far judging is: the next pair, the counts, how many labels it takes to an answer, and what to do then."""

import shlex
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from steelyard.base.fields import format_time
from steelyard.memory.entry import Entry
from steelyard_eval.choose.blockers import MIN_TO_SHIP
from steelyard_eval.choose.few_labels import queries_needed
from steelyard_eval.common.console import cut
from steelyard_eval.common.formatting import counted
from steelyard_eval.notebook.label.apply import log_has_more
from steelyard_eval.notebook.label.judgment_file import GRADE_MEANINGS, Pair, agreement
from steelyard_eval.notebook.label.open import DuelSession
from steelyard_eval.notebook.label.pool import drawn_queries, fully_labelled
from steelyard_eval.notebook.label.session import Session
from steelyard_eval.notebook.label.statement import state_of
from steelyard_eval.recording.next_steps import chosen_for, deciding, label_step, round_up, writing
from steelyard_eval.recording.saved_runs import RunFacts
from steelyard_eval.result.sentences import say, some
from steelyard_eval.result.structs import Fact, Message, Step

MAX_LISTED_PAIRS = 20
MAX_TITLE_CHARS = 80
FIELDS = ("text", "context", "why", "impact", "details")
Record = dict[str, Any]  # A part of the document of `judge --json`


def labelling_state(session: Session) -> Record:
    """All of it; without a next pair, what to do now."""
    pair = session.next
    duel = session.to_json() if isinstance(session, DuelSession) else None
    labels, own, new = session.counted()
    record: Record = {
        "judge": session.judge,
        "meaning": list(GRADE_MEANINGS),
        "given": len(session.given),
        "left": session.left,
        "labels": labels,
        "own_labels": own,
        "new_labels": new,
        "file": str(session.file),
        "qrels": str(session.qrels),
        "card": None if pair is None else card(session, pair),
        "duel": duel,
        "agreement": agreement(session.first, session.given) if session.first else None,
        "state": state_of(session),
        "drawn": _drawn(session) if session.random else None,
    }
    left = f", {record['left']} left" if pair else ""
    return {
        **record,
        "counts": f"You labelled {counted(len(session.given), 'pair')}{left}.",
        "sentence": sentence(session, record),
        "steps": [{"what": say(step), "command": shlex.join(step.command)} for step in _steps(session, record)],
    }


def card(session: Session, pair: Pair) -> Record:
    """A pair with all that the entry says."""
    query, entry = session.shown(pair)
    parts = [(name, text) for name in FIELDS if (text := getattr(entry, name))]
    if entry.details in entry.context:  # it is there to be searched, and not to be read twice
        parts = [part for part in parts if part[0] != "details"]
    return {"pair": list(pair), "query": query.text, "title": entry.title, "parts": parts, "facts": _facts(entry)}


def _facts(entry: Entry) -> str:
    day = "" if entry.created_at is None else format_time(entry.created_at)[:10]
    known = (day, entry.type or entry.category, entry.project, entry.speaker, ", ".join(entry.tags))
    return " · ".join(text for text in known if text)


def _drawn(session: Session) -> Record:
    """How far the drawn queries are, and how many labels it takes until `recommend` has its answer.

    `needed` labelled queries are what the last `recommend` asked for, less those that were labelled since.
    """
    pool = session.pool
    labels = session.labels  # of any kind: with few that were drawn recommend looks at all
    labelled = [query.id for query in pool.queries if query.id in labels]
    since = sum(query not in pool.dataset.qrels for query in labelled)
    facts = session.decided.facts if session.decided else RunFacts()
    needed = queries_needed(len(labelled), session.enough)
    if facts.labels_needed is not None:
        needed = queries_needed(since, facts.labels_needed)
    open_ = Counter(query for query, _ in session.upcoming() if query not in labels)
    asked, wanted = [*session.pairs_by_query], [*open_][:needed]
    return {
        "judged": len(fully_labelled(pool, session.grades())),
        "queries": len(drawn_queries(pool)),
        "labelled": len(labelled),
        "needed": needed,
        "asked": facts.labels_needed is not None,
        "pairs": sum(open_[query] for query in wanted),
        "last": asked.index(wanted[-1]) + 1 if len(wanted) == needed > 0 else len(asked),
        "missing": needed - len(wanted),
        # a log's queries decide together with its acts
        "decides": "recommend" if session.enough == MIN_TO_SHIP else "learn",
        "verdict": "" if session.counted()[2] else facts.verdict,  # new labels it has not seen
    }


def _steps(session: Session, record: Record) -> Iterator[Step]:
    dataset, duel, drawn = session.pool.dataset, record["duel"], record["drawn"]
    if record["card"] is not None or record["agreement"] is not None:
        return
    if (dataset.qrels or record["labels"]) and not (record["new_labels"] or (drawn and drawn["verdict"])):
        yield deciding(dataset, drawn["decides"] if drawn else "recommend")
    if duel and duel["stands"] and dataset.unlabelled:
        what = "label queries that are drawn at random, which can prove a gain"
        yield label_step(dataset, "plain_text", option="--random" if dataset.by_pairs else "", text=what)
        return
    if log_has_more(dataset, session.pool.seed):
        yield label_step(dataset, "plain_text", option="--from-log", text="label more: draw queries from the log")
    elif not (duel and duel["stands"]):
        yield from writing(dataset, round_up(drawn["needed"]) if drawn and drawn["needed"] else None)
    leader = duel["leads"] if duel else session.pool.labels[-1] if session.random else dataset.today
    other = chosen_for(dataset) or leader
    if dataset.system and other != dataset.today:  # else nobody said what is used today
        what = "label the results on which today's and the recommended ranking differ"
        yield label_step(dataset, "plain_text", dataset.today, other, text=what)


def upcoming(session: Session) -> list[Record]:
    """The pairs that are asked next if none is skipped, `MAX_LISTED_PAIRS` at most, with their texts."""
    pairs: list[Record] = []
    for query, entry in islice(session.upcoming(), MAX_LISTED_PAIRS):
        asked, shown = session.shown((query, entry))
        title = shown.title or cut(" ".join(shown.text.split()), MAX_TITLE_CHARS)
        pairs.append({"query": query, "text": asked.text, "entry": entry, "title": title})
    return pairs


def sentence(session: Session, record: Record) -> str:
    """Where the work is, and how many more labels it takes."""
    if found := record["agreement"]:
        kappa = "; no kappa yet"
        if found["kappa"] is not None:
            kappa = f": {found['equal']:.0%} equal, kappa {found['kappa']:.2f}, weighted {found['weighted']:.2f}"
        return f"{found['pairs']} pairs labelled by both{kappa}."
    pair, duel, drawn, leads = session.next, record["duel"], record["drawn"], ""
    told = progress(session, record, pair[0]) if pair else "no pair is left to ask"
    if duel and (duel["judged"] >= duel["enough"] or not pair):
        told = "settled: no more labels needed" if duel["stands"] else told
        leads = (
            f"Of {len(duel['contenders'])} usual strategies and systems {duel['leader']} leads; labelling the "
            f"rest could change its lead by {duel['error']:.3f} nDCG@10 (one standard error). "
        )
    elif drawn and not pair:
        whose = some(session.pool.labels).replace("; ", ", ")
        told = f"all results of {whose} are labelled (name others for theirs); {_labels_to_go(record)}"
    return f"{leads}{told[0].upper()}{told[1:]}.{_nothing_found(session)}"


def _nothing_found(session: Session) -> str:
    """The queries without labels for which no contender finds an entry, so that nobody is asked; empty without."""
    pool = session.pool
    asked = session.labels.keys() | {pool.queries[at].id for at in pool.query.tolist()}
    ids = [query.id for query in pool.queries if query.id not in asked]
    facts: dict[str, Fact] = {"pool": [*pool.labels], "count": len(ids), "named": ids[:3], "more": len(ids) > 3}
    return f" {say(Message('nothing_found_for', facts))}" if ids else ""


def progress(session: Session, record: Record, query: str) -> str:
    """Where a query is among all, and how many labels it takes to an answer."""
    if record["duel"]:
        return f"pair {len(session.given) + 1}, {_labels_to_go(record)}"
    queries, drawn = [*session.pairs_by_query], record["drawn"]
    at, last = queries.index(query) + 1, drawn["last"] if drawn else len(queries)
    return f"query {at} of {max(at, last)}, {_labels_to_go(record)}"


def _labels_to_go(record: Record) -> str:
    if duel := record["duel"]:
        few = duel["enough"] - duel["judged"]
        if few > 0:
            return f"recommend uses your labels after {few} more"
        return f"about {counted(round_up(duel['more']), 'label')} to go"
    if not (drawn := record["drawn"]):
        return f"{counted(record['left'], 'label')} left"
    if drawn["needed"]:
        told = [f"about {counted(round_up(drawn['pairs']), 'pair')} to label"] if drawn["pairs"] else []
        about = "about " if drawn["asked"] else ""  # what recommend asked for is an estimate, the fewest is none
        rest = f"{about}{counted(round_up(drawn['missing']), 'new query', 'new queries')} to write"
        told += [rest] if drawn["missing"] else []
        more = " and ".join(told)
        return f"recommend asked for {more}" if drawn["asked"] else f"{more} until {drawn['decides']} can decide"
    if drawn["verdict"]:
        return f"recommend says {drawn['verdict']}"
    if drawn["decides"] == "learn":
        return "learn says whether these labels are enough"
    return "enough labels for recommend to decide by"
