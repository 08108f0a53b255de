"""Traces: spans with a time and a conversation, put in order and read as sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.base.errors import DataError, shown
from steelyard_eval.extensions.usage.answers import hits_of
from steelyard_eval.extensions.usage.corpus import Corpus
from steelyard_eval.extensions.usage.records import Record, loaded, records_of, text_of
from steelyard_eval.extensions.usage.session import (
    AgentSaid,
    EntriesChanged,
    Event,
    PersonAsked,
    Rated,
    Searched,
    UseSession,
)
from steelyard_eval.extensions.usage.tools import Calls

MOST_SPANS = 1_000_000
DEEPEST = 100
"""Spans inside one another that are looked at."""
NAMED = 20
"""Notes, from which on further scores are not told apart by name."""
SEARCH, TOOL, ANSWER, CHANGE, RATING = "search", "tool", "answer", "change", "rating"


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One step of a trace.

    `kind` is one of the constants above, or empty for a span that only joins its trace to a conversation.
    `asked` is the query of a search, the arguments of a call, the question, or the score that is 0; `given` what
    came of it. `begun` and `ended` are seconds UTC. `name` is the engine, the tool, the entry that was changed, or
    the search rated. `parent` is the key of the span around it.
    """

    key: str
    trace: str
    kind: str = ""
    conversation: str = ""
    begun: float | None = None
    ended: float | None = None
    name: str = ""
    asked: object = None
    given: object = None
    parent: str = ""


def sessions(
    read: Callable[[Record], Iterable[TraceSpan]],
    files: list[Path],
    corpus: Corpus,
    system: str,
    faults: Counter[str],
) -> Iterator[UseSession]:
    """The sessions in some files, by conversation, else by trace; `read` makes the spans of a record."""
    spans: dict[str, TraceSpan] = {}
    for path in files:
        for record in records_of(path, faults):
            try:
                for span in read(record):
                    spans.setdefault(span.key, span)
            except RecursionError:
                faults["records that are nested too deep"] += 1
            if len(spans) > MOST_SPANS:
                raise DataError(f"more than {MOST_SPANS:,} spans; export a shorter time")
    conversations: dict[str, str] = {}
    for span in spans.values():
        if span.conversation:
            conversations.setdefault(span.trace, span.conversation)
    groups: dict[str, list[TraceSpan]] = {}
    ratings = [span for span in spans.values() if span.kind == RATING and _dismisses(span, corpus.scores, faults)]
    rated = {key: span for span in ratings for key in (span.name, f"{span.trace} {span.name}")}
    for span in spans.values():
        if span.kind and span.kind != RATING:
            groups.setdefault(conversations.get(span.trace) or span.trace, []).append(span)
    for name, group in sorted(groups.items()):
        yield UseSession(name, _events(group, Calls(system, corpus.names), rated))


def _ends(spans: list[TraceSpan]) -> dict[str, float]:
    """When each span ended, in seconds UTC; one with others inside it when the last of these did."""
    ends = {span.key: span.ended or span.begun or 0.0 for span in spans}
    parents = {span.key: span.parent for span in spans}
    for span in spans:
        inner, end = span.key, ends[span.key]
        for _ in range(DEEPEST):
            inner = parents.get(inner, "")
            if ends.get(inner, end) >= end:
                break
            ends[inner] = end
    return ends


def _dismisses(rating: TraceSpan, scores: Mapping[str, str], faults: Counter[str]) -> bool:
    """Whether a score of 0 says that a list was of no use; one of which nobody said what it means is counted."""
    name = str(rating.asked)
    if name not in scores:
        told = shown(name) if len(faults) < NAMED else "other names"
        remedy = 'write {"scores": {NAME: "higher"}} into dataset.json, or "lower"'
        faults[f"scores of 0 by the name {told} left out, because nobody says which are better: {remedy}"] += 1
    return scores.get(name) == "higher"


def _events(spans: list[TraceSpan], calls: Calls, rated: dict[str, TraceSpan]) -> Iterator[Event]:
    """The spans of one conversation as events: questions when they begin, all else when it ends.

    An answer ends with the last span inside its own at the earliest, whatever the clocks of two machines say.
    """
    ends = _ends(spans)
    searched = {(span.trace, span.asked) for span in spans if span.kind == SEARCH and isinstance(span.asked, str)}
    timed = [
        (time, order, i)
        for i, span in enumerate(spans)
        for order, time in ((0, span.begun or 0.0), (2 if span.kind == ANSWER else 1, ends[span.key]))
    ]
    for _, order, i in sorted(timed):
        span = spans[i]
        if order == 0:
            if span.kind == ANSWER and span.asked is not None:
                yield PersonAsked(text_of(loaded(span.asked)))
        elif span.kind == SEARCH:
            hits = hits_of(span.given) if span.given is not None else None
            query = span.asked if isinstance(span.asked, str) else ""
            yield Searched(span.key, span.begun, query, hits, span.name)
            if span.key in rated:
                yield Rated("", "none_useful", span.key)
        elif span.kind == TOOL and (span.trace, calls.asks(span.name, span.asked)) not in searched:
            yield from calls.made(span.key, span.name, span.asked, span.begun)
            yield from calls.answered(span.key, loaded(span.given), span.begun)
        elif span.kind == CHANGE:
            yield EntriesChanged((span.name,))
        elif span.kind == ANSWER and (answer := text_of(loaded(span.given))):
            yield AgentSaid(answer)
