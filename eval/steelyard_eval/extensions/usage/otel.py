"""OpenTelemetry's GenAI spans: `search_memory` and `retrieval`, with the tools and answers that follow them.

Attributes are those of the semantic conventions for GenAI (status Development). Queries, records and documents are
opt-in there: a program has to be told to capture content. OTLP in JSON is read, and lines of ReadableSpan.to_json.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from steelyard_eval.common.times import seconds
from steelyard_eval.extensions.usage.records import Record, loaded, object_of, objects
from steelyard_eval.extensions.usage.spans import ANSWER, CHANGE, SEARCH, TOOL, TraceSpan

_VALUES = tuple(
    f"{kind}{value}" for value in ("Value", "_value") for kind in ("string", "double", "bool", "int", "bytes")
)
_CAPITAL = re.compile("[A-Z]")


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


def ids_of(span: Record) -> tuple[str, str, str]:
    """The ids of a span, of its trace, and of the span around it, which is empty for none."""
    context = object_of(span.get("context"))
    trace = _field(span, "traceId") or context.get("trace_id") or span.get("context.trace_id") or ""
    key = _field(span, "spanId") or context.get("span_id") or span.get("context.span_id") or ""
    parent = _field(span, "parentSpanId") or span.get("parent_id")
    around = f"{trace}/{parent}".replace("0x", "") if parent else ""
    return f"{trace}/{key}".replace("0x", ""), str(trace).removeprefix("0x"), around


def times_of(span: Record) -> tuple[float | None, float | None]:
    """When a span began and ended."""
    begun = seconds(_field(span, "startTimeUnixNano") or span.get("start_time"))
    return begun, seconds(_field(span, "endTimeUnixNano") or span.get("end_time"))


def _field(record: Record, name: str) -> object:
    """A field of protobuf's JSON, whose names readers have to accept as they stand in the schema, too."""
    return record.get(name) or record.get(_CAPITAL.sub(lambda found: f"_{found[0].lower()}", name))


def spans(record: Record) -> Iterable[TraceSpan]:
    """The steps of a trace in a record."""
    for span, has in raw_spans(record):
        key, trace, parent = ids_of(span)
        begun, ended = times_of(span)
        conversation = str(has.get("gen_ai.conversation.id") or "")
        kind, name, asked, given = _read(has)
        yield TraceSpan(key, trace, kind, conversation, begun, ended, name, asked, given, parent)


def _read(has: Mapping[str, object]) -> tuple[str, str, object, object]:
    """Kind, name, what was asked and what came of it."""
    operation = has.get("gen_ai.operation.name")
    if operation == "search_memory":
        records = loaded(has.get("gen_ai.memory.records"))
        return SEARCH, str(has.get("gen_ai.memory.store.id") or ""), has.get("gen_ai.memory.query.text"), records
    if operation == "retrieval":
        documents = loaded(has.get("gen_ai.retrieval.documents"))
        return (
            SEARCH,
            str(has.get("gen_ai.data_source.id") or ""),
            has.get("gen_ai.retrieval.query.text"),
            documents,
        )
    if operation == "execute_tool":
        asked, given = has.get("gen_ai.tool.call.arguments"), has.get("gen_ai.tool.call.result")
        return TOOL, str(has.get("gen_ai.tool.name") or ""), asked, given
    if operation == "update_memory" and has.get("gen_ai.memory.record.id"):
        return CHANGE, str(has["gen_ai.memory.record.id"]), None, None
    if operation in ("invoke_agent", "chat", "generate_content"):
        asked = _last(has.get("gen_ai.input.messages")) if operation == "invoke_agent" else None
        return ANSWER, "", asked, has.get("gen_ai.output.messages")
    return "", "", None, None


def _last(messages: object) -> object:
    """The question: the last message of a person."""
    questions = [message for message in objects(loaded(messages)) if message.get("role") == "user"]
    return questions[-1] if questions else ""


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
