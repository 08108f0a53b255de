"""OpenTelemetry's GenAI spans: `search_memory` and `retrieval`, with the tools and answers that follow them.

Attributes are those of the semantic conventions for GenAI (status Development). Queries, records and documents are
opt-in there: a program has to be told to capture content. OTLP in JSON is read, and lines of ReadableSpan.to_json.

OpenInference, as Phoenix exports it, has RETRIEVER spans, and RERANKER spans that put their documents in order.
Its attributes may be dotted keys, a tree of objects, or columns of a table with `attributes.` before them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.base.errors import DataError
from steelyard_eval.common.times import seconds
from steelyard_eval.extensions.endpoints.answer_form import text_in
from steelyard_eval.extensions.usage import session
from steelyard_eval.extensions.usage.session import Acted, Corpus, Event, Record, Searched, Spoken, UseSession
from steelyard_eval.extensions.usage.tool_names import FORMS, Calls, hits_of

MOST_SPANS = 1_000_000
SEARCH, TOOL, ANSWER, CHANGE = "search", "tool", "answer", "change"
# what a span is, and the attributes with its name, with what was asked, and with what came of it
OPERATIONS: Mapping[str, tuple[str, str, str, str]] = FORMS["genai"]
_VALUES = tuple(f"{kind}Value" for kind in ("string", "double", "bool", "int", "bytes"))
LONGEST_NAME = 300
"""Characters of a dotted key; what is longer is no attribute, and a long key before many would fill the memory."""
SPAN_KIND = "openinference.span.kind"
_SNAKE = re.compile(r"_([a-z])")
_PLACE = re.compile(r"\.(\d{1,6})\.document\.(id|score|content|metadata)")
Step = tuple[str, str, object, object, str]  # what a span says: the first five fields of `TraceSpan`


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One step of a trace; `parent` is the key of the span around it. Times are seconds UTC.

    `kind` is one of the constants above, or empty where the span only joins a conversation. `name` is the engine,
    the tool, or the entry that was changed; `request` the query of a search, the arguments of a call, or the
    question; `given` what came of it.
    """

    kind: str
    name: str
    request: object
    given: object
    conversation: str
    key: str
    trace: str
    parent: str
    begun: float | None
    ended: float | None


def genai(span: Record, has: Mapping[str, object]) -> Step:
    """A span by the semantic conventions for GenAI."""
    kind, *names = OPERATIONS.get(str(has.get("gen_ai.operation.name")), ("", "", "", ""))
    name, asked, given = (has.get(f"gen_ai.{attribute}") if attribute else None for attribute in names)
    if names[1] == "input.messages":  # the question is the last message of a person
        questions = [
            message for message in session.objects(session.loaded(asked)) if message.get("role") == "user"
        ]
        asked = questions[-1] if questions else ""
    kind = "" if kind == CHANGE and not name else kind
    return kind, str(name or ""), asked, session.loaded(given), str(has.get("gen_ai.conversation.id") or "")


def openinference(span: Record, attributes: Mapping[str, object]) -> Step:
    """A span of OpenInference."""
    has = {name.removeprefix("attributes."): value for name, value in _flat(attributes).items()}
    named = str(has.get(SPAN_KIND) or span.get("span_kind") or "").upper()
    kind = FORMS["openinference"].get(named, "")
    asked, given = has.get("input.value"), session.loaded(has.get("output.value"))
    if kind == SEARCH:
        asked, given = has.get("reranker.query") or asked, _documents(has, FORMS["documents"][named])
    elif kind == ANSWER and _parent(span):
        asked = None
    name = str(has.get("tool.name") or "") if kind == TOOL else ""
    return kind, name, asked, given, str(has.get("session.id") or "")


def read(
    files: list[Path],
    corpus: Corpus,
    system: str,
    faults: Counter[str],
    step_of: Callable[[Record, Mapping[str, object]], Step] = genai,
) -> Iterator[UseSession]:
    """The sessions in some files, by conversation, else by trace; `step_of` reads a span."""
    spans: dict[str, TraceSpan] = {}
    for path in files:
        for record in session.records_of(path, faults):
            try:
                for span, attributes in [*raw_spans(record)] or [(record, record)]:
                    made = _placed(span, step_of(span, attributes))
                    if made.kind or made.trace:
                        spans.setdefault(made.key, made)
            except RecursionError:
                faults["records that are nested too deep"] += 1
            if len(spans) > MOST_SPANS:
                raise DataError(f"more than {MOST_SPANS:,} spans; export a shorter time")
    named = ((span.trace, span.conversation) for span in reversed(spans.values()))
    conversations = {trace: conversation for trace, conversation in named if conversation}
    groups: dict[str, list[TraceSpan]] = {}
    for made in spans.values():
        if made.kind:
            groups.setdefault(conversations.get(made.trace) or made.trace, []).append(made)
    for name, group in sorted(groups.items()):
        yield UseSession(name, _events(group, Calls(system, corpus.names)))


def raw_spans(record: Record) -> Iterator[tuple[Record, Mapping[str, object]]]:
    """The spans of a record of either form, with their attributes as plain values."""
    record = _in_camel(record) if "resource_spans" in record else record
    if isinstance(resources := record.get("resourceSpans"), list):
        for resource in session.objects(resources):
            for scope in session.objects(resource.get("scopeSpans")):
                for span in session.objects(scope.get("spans")):
                    yield span, _listed(span.get("attributes"))
    elif isinstance(attributes := record.get("attributes"), dict):
        yield record, attributes
    elif isinstance(attributes, list):
        yield record, _listed(attributes)


def _in_camel(value: Any) -> Any:  # noqa: ANN401 -- any JSON value
    """OTLP whose fields have their names of the schema, which readers have to take, with those of its JSON."""
    if isinstance(value, dict):
        return {_SNAKE.sub(lambda of: of[1].upper(), name): _in_camel(part) for name, part in value.items()}
    return [_in_camel(part) for part in value] if isinstance(value, list) else value


def _placed(span: Record, step: Step) -> TraceSpan:
    context = session.dict_of(span.get("context"))
    trace = span.get("traceId") or context.get("trace_id") or span.get("context.trace_id") or ""
    key = span.get("spanId") or context.get("span_id") or span.get("context.span_id") or ""
    parent = _parent(span)
    return TraceSpan(
        *step,
        f"{trace}/{key}".replace("0x", ""),
        str(trace).removeprefix("0x"),
        f"{trace}/{parent}".replace("0x", "") if parent else "",
        seconds(span.get("startTimeUnixNano") or span.get("start_time")),
        seconds(span.get("endTimeUnixNano") or span.get("end_time")),
    )


def _parent(span: Record) -> object:
    return span.get("parentSpanId") or span.get("parent_id")


def _listed(attributes: object) -> dict[str, object]:
    return {str(attribute.get("key")): _value(attribute.get("value")) for attribute in session.objects(attributes)}


def _value(value: object) -> object:
    if not isinstance(value, dict):
        return value
    if isinstance(array := value.get("arrayValue"), dict):
        values = array.get("values")
        return [_value(item) for item in values] if isinstance(values, list) else []
    if isinstance(pairs := value.get("kvlistValue"), dict):
        return _listed(pairs.get("values"))
    return next((value[key] for key in _VALUES if key in value), None)


def _events(spans: list[TraceSpan], calls: Calls) -> Iterator[Event]:
    """The spans of one conversation as events: questions when they begin, all else when it ends."""
    asked = ((span.trace, span.request) for span in spans if span.kind == SEARCH)
    searched = {(trace, query) for trace, query in asked if isinstance(query, str)}
    keys, ends, timed = {span.key for span in spans}, dict[str, float](), list[tuple[float, int, int]]()
    for span in spans:
        ends[span.trace] = max(ends.get(span.trace, 0.0), span.ended or span.begun or 0.0)
    for i, span in enumerate(spans):  # an answer ends with its trace, whatever the clocks of two machines say
        answers = span.kind == ANSWER
        end = ends[span.trace] if answers and span.parent not in keys else span.ended or span.begun or 0.0
        timed += [(span.begun or 0.0, 0, i), (end, 2 if answers else 1, i)]
    for _, order, i in sorted(timed):
        span = spans[i]
        if order == 0:
            if span.kind == ANSWER and span.request is not None:
                yield Spoken(session.PERSON, text_in(session.loaded(span.request)))
        elif span.kind == SEARCH:
            hits = hits_of(span.given) if span.given is not None else None
            query = span.request if isinstance(span.request, str) else ""
            yield Searched(span.key, span.begun, query, hits, span.name)
        elif span.kind == TOOL and (span.trace, calls.asks(span.name, span.request)) not in searched:
            yield from calls.made(span.key, span.name, span.request, span.begun)
            yield from calls.answered(span.key, span.given, span.begun)
        elif span.kind == CHANGE:
            yield Acted((span.name,), "modified")
        elif span.kind == ANSWER and (answer := text_in(span.given)):
            yield Spoken(session.AGENT, answer)


def _flat(value: object, prefix: str = "", depth: int = 0) -> dict[str, object]:
    """A tree as dotted keys; places of lists are numbers."""
    if len(prefix) > LONGEST_NAME:
        return {}
    if depth > 8 or not isinstance(value, dict | list) or not value:
        return {prefix: value}
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    flat: dict[str, object] = {}
    for name, inner in pairs:
        flat |= _flat(inner, f"{prefix}.{name}" if prefix else str(name), depth + 1)
    return flat


def _documents(has: Mapping[str, object], root: str) -> list[dict[str, object]] | None:
    documents: dict[int, dict[str, object]] = {}
    for name, value in has.items():
        if name.startswith(root) and (place := _PLACE.match(name, len(root))):
            documents.setdefault(int(place[1]), {})[place[2]] = value
    for document in documents.values():
        metadata = session.loaded(document.pop("metadata", None))
        if "id" not in document and isinstance(metadata, dict):
            document["id"] = next(
                (metadata[key] for key in ("id", "doc_id", "memory_id") if key in metadata), None
            )
    return [documents[number] for number in sorted(documents)] or None
