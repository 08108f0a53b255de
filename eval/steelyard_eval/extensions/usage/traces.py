"""OpenTelemetry's GenAI spans: `search_memory` and `retrieval`, with the tools and answers that follow them.

Attributes are those of the semantic conventions for GenAI (status Development). Queries, records and documents are
opt-in there: a program has to be told to capture content. OTLP in JSON is read, and lines of ReadableSpan.to_json.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.base.errors import DataError
from steelyard_eval.common.times import seconds
from steelyard_eval.extensions.usage.answers import hits_of
from steelyard_eval.extensions.usage.corpus import Corpus
from steelyard_eval.extensions.usage.records import Record, loaded, object_of, objects, records_of, text_of
from steelyard_eval.extensions.usage.session import AGENT, PERSON, Acted, Event, Searched, Spoken, UseSession
from steelyard_eval.extensions.usage.tools import Calls

MOST_SPANS = 1_000_000
DEEPEST = 100
"""Spans inside one another that are looked at."""
SEARCH, TOOL, ANSWER, CHANGE = "search", "tool", "answer", "change"
OPERATIONS: Mapping[str, tuple[str, str, str, str]] = {
    # what a span is, and the attributes with its name, with what was asked, and with what came of it
    "search_memory": (SEARCH, "memory.store.id", "memory.query.text", "memory.records"),
    "retrieval": (SEARCH, "data_source.id", "retrieval.query.text", "retrieval.documents"),
    "execute_tool": (TOOL, "tool.name", "tool.call.arguments", "tool.call.result"),
    "update_memory": (CHANGE, "memory.record.id", "", ""),
    "invoke_agent": (ANSWER, "", "input.messages", "output.messages"),
    "chat": (ANSWER, "", "", "output.messages"),
    "generate_content": (ANSWER, "", "", "output.messages"),
}
_VALUES = tuple(
    f"{kind}{value}" for value in ("Value", "_value") for kind in ("string", "double", "bool", "int", "bytes")
)
_CAPITAL = re.compile("[A-Z]")


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One step of a trace.

    `kind` is one of the constants above, or empty for a span that only joins its trace to a conversation. `asked`
    is the query of a search, the arguments of a call, or the question; `given` what came of it. `name` is the
    engine, the tool, or the entry that was changed, `parent` the key of the span around it. Times are seconds UTC.
    """

    key: str
    trace: str
    parent: str
    conversation: str
    begun: float | None
    ended: float | None
    kind: str
    name: str
    asked: object
    given: object


def read(
    files: list[Path],
    corpus: Corpus,
    system: str,
    faults: Counter[str],
    spans_of: Callable[[Record], Iterable[TraceSpan]] | None = None,
) -> Iterator[UseSession]:
    """The sessions in some files, by conversation, else by trace; `spans_of` reads a record by other names."""
    spans: dict[str, TraceSpan] = {}
    for path in files:
        for record in records_of(path, faults):
            try:
                for made in (spans_of or _genai)(record):
                    spans.setdefault(made.key, made)
            except RecursionError:
                faults["records that are nested too deep"] += 1
            if len(spans) > MOST_SPANS:
                raise DataError(f"more than {MOST_SPANS:,} spans; export a shorter time")
    conversations = {span.trace: span.conversation for span in reversed(spans.values()) if span.conversation}
    groups: dict[str, list[TraceSpan]] = {}
    for span in spans.values():
        if span.kind:
            groups.setdefault(conversations.get(span.trace) or span.trace, []).append(span)
    for name, group in sorted(groups.items()):
        yield UseSession(name, _events(group, Calls(system, corpus.names)))


def _genai(record: Record) -> Iterator[TraceSpan]:
    return (_span(*raw) for raw in raw_spans(record))


def raw_spans(record: Record) -> Iterator[tuple[Record, Mapping[str, object]]]:
    """The spans of a record of either form, with their attributes as plain values."""
    if isinstance(resources := _field(record, "resourceSpans"), list):
        for resource in objects(resources):
            for scope in objects(_field(resource, "scopeSpans")):
                for span in objects(scope.get("spans")):
                    yield span, _listed(span.get("attributes"))
    elif isinstance(attributes := record.get("attributes"), dict):
        yield record, attributes
    elif isinstance(attributes, list):
        yield record, _listed(attributes)


def placed(span: Record) -> tuple[str, str, str, float | None, float | None]:
    """The keys of a span, of its trace and of the span around it; when it began and ended."""
    context = object_of(span.get("context"))
    trace = _field(span, "traceId") or context.get("trace_id") or span.get("context.trace_id") or ""
    key = _field(span, "spanId") or context.get("span_id") or span.get("context.span_id") or ""
    parent = _field(span, "parentSpanId") or span.get("parent_id")
    return (
        f"{trace}/{key}".replace("0x", ""),
        str(trace).removeprefix("0x"),
        f"{trace}/{parent}".replace("0x", "") if parent else "",
        seconds(_field(span, "startTimeUnixNano") or span.get("start_time")),
        seconds(_field(span, "endTimeUnixNano") or span.get("end_time")),
    )


def _span(span: Record, has: Mapping[str, object]) -> TraceSpan:
    key, trace, parent, begun, ended = placed(span)
    kind, *names = OPERATIONS.get(str(has.get("gen_ai.operation.name")), ("", "", "", ""))
    name, asked, given = (has.get(f"gen_ai.{attribute}") if attribute else None for attribute in names)
    if names[1] == "input.messages":  # the question is the last message of a person
        questions = [message for message in objects(loaded(asked)) if message.get("role") == "user"]
        asked = questions[-1] if questions else ""
    return TraceSpan(
        key,
        trace,
        parent,
        str(has.get("gen_ai.conversation.id") or ""),
        begun,
        ended,
        "" if kind == CHANGE and not name else kind,
        str(name or ""),
        asked,
        loaded(given),
    )


def _field(record: Record, name: str) -> object:
    """A field of protobuf's JSON, whose names readers have to accept as they stand in the schema, too."""
    return record.get(name) or record.get(_CAPITAL.sub(lambda found: f"_{found[0].lower()}", name))


def _listed(attributes: object) -> dict[str, object]:
    """The attributes of OTLP as plain values."""
    return {str(attribute.get("key")): _value(attribute.get("value")) for attribute in objects(attributes)}


def _value(value: object) -> object:
    if not isinstance(value, dict):
        return value
    if isinstance(array := _field(value, "arrayValue"), dict):
        values = array.get("values")
        return [_value(item) for item in values] if isinstance(values, list) else []
    if isinstance(pairs := _field(value, "kvlistValue"), dict):
        return _listed(pairs.get("values"))
    return next((value[key] for key in _VALUES if key in value), None)


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


def _events(spans: list[TraceSpan], calls: Calls) -> Iterator[Event]:
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
                yield Spoken(PERSON, text_of(loaded(span.asked)))
        elif span.kind == SEARCH:
            hits = hits_of(span.given) if span.given is not None else None
            query = span.asked if isinstance(span.asked, str) else ""
            yield Searched(span.key, span.begun, query, hits, span.name)
        elif span.kind == TOOL and (span.trace, calls.asks(span.name, span.asked)) not in searched:
            yield from calls.made(span.key, span.name, span.asked, span.begun)
            yield from calls.answered(span.key, span.given, span.begun)
        elif span.kind == CHANGE:
            yield Acted((span.name,), "modified")
        elif span.kind == ANSWER and (answer := text_of(span.given)):
            yield Spoken(AGENT, answer)
