"""OpenInference, as Phoenix exports it: RETRIEVER spans, and RERANKER spans that put their documents in order.

Attributes are those of its published conventions; no export was at hand to try it on. They may be dotted keys, a
tree of objects, or columns of a table with `attributes.` before them; spans come as lines, as a list, or as OTLP.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from steelyard_eval.extensions.usage.otel import ids_of, raw_spans, times_of
from steelyard_eval.extensions.usage.records import Record, loaded
from steelyard_eval.extensions.usage.spans import ANSWER, SEARCH, TOOL, TraceSpan

LONGEST_NAME = 300
"""Characters of a dotted key; what is longer is no attribute, and a long key before many would fill the memory."""
KIND = "openinference.span.kind"
DOCUMENTS = {"RETRIEVER": "retrieval.documents", "RERANKER": "reranker.output_documents"}
_PLACE = re.compile(r"\.(\d{1,6})\.document\.(id|score|content|metadata)")


def spans(record: Record) -> Iterable[TraceSpan]:
    """The steps of a trace in a record."""
    for span, attributes in list(raw_spans(record)) or [(record, record)]:
        has = {name.removeprefix("attributes."): value for name, value in _flat(attributes).items()}
        kind = str(has.get(KIND) or span.get("span_kind") or "").upper()
        key, trace, parent = ids_of(span)
        begun, ended = times_of(span)
        conversation = str(has.get("session.id") or "")
        asked, given = has.get("input.value"), has.get("output.value")
        if kind in DOCUMENTS:
            asked = has.get("reranker.query") or asked
            given = _documents(has, DOCUMENTS[kind])
            yield TraceSpan(key, trace, SEARCH, conversation, begun, ended, "", asked, given, parent)
        elif kind == "TOOL":
            name = str(has.get("tool.name") or "")
            yield TraceSpan(key, trace, TOOL, conversation, begun, ended, name, asked, given, parent)
        elif kind in ("LLM", "AGENT", "CHAIN"):
            asked = None if parent else asked
            yield TraceSpan(key, trace, ANSWER, conversation, begun, ended, "", asked, given, parent)
        elif trace:
            yield TraceSpan(key, trace, "", conversation)


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
    """The documents of a span, in their order; None where it captured none."""
    documents: dict[int, dict[str, object]] = {}
    for name, value in has.items():
        if name.startswith(root) and (place := _PLACE.match(name, len(root))):
            documents.setdefault(int(place[1]), {})[place[2]] = value
    for document in documents.values():
        metadata = loaded(document.pop("metadata", None))
        if "id" not in document and isinstance(metadata, dict):
            document["id"] = next(
                (metadata[key] for key in ("id", "doc_id", "memory_id") if key in metadata), None
            )
    return [documents[number] for number in sorted(documents)] or None
