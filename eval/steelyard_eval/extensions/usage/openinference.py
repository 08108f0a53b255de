"""OpenInference, as Phoenix exports it: RETRIEVER spans, and RERANKER spans that put their documents in order.

Attributes are those of its published conventions; no export was at hand to try it on. They may be dotted keys, a
tree of objects, or columns of a table with `attributes.` before them; spans come as lines, as a list, or as OTLP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from steelyard_eval.extensions.usage.records import Record, loaded
from steelyard_eval.extensions.usage.traces import ANSWER, SEARCH, TOOL, TraceSpan, placed, raw_spans

LONGEST_NAME = 300
"""Characters of a dotted key; what is longer is no attribute, and a long key before many would fill the memory."""
KIND = "openinference.span.kind"
DOCUMENTS = {"RETRIEVER": "retrieval.documents", "RERANKER": "reranker.output_documents"}
_PLACE = re.compile(r"\.(\d{1,6})\.document\.(id|score|content|metadata)")


KINDS = {**dict.fromkeys(DOCUMENTS, SEARCH), "TOOL": TOOL, **dict.fromkeys(("LLM", "AGENT", "CHAIN"), ANSWER)}


def spans(record: Record) -> Iterator[TraceSpan]:
    """The steps of a trace in a record."""
    for span, attributes in [*raw_spans(record)] or [(record, record)]:
        has = {name.removeprefix("attributes."): value for name, value in _flat(attributes).items()}
        named = str(has.get(KIND) or span.get("span_kind") or "").upper()
        kind = KINDS.get(named, "")
        key, trace, parent, begun, ended = placed(span)
        asked, given = has.get("input.value"), loaded(has.get("output.value"))
        if kind == SEARCH:
            asked, given = has.get("reranker.query") or asked, _documents(has, DOCUMENTS[named])
        elif kind == ANSWER and parent:
            asked = None
        if not (kind or trace):
            continue
        name = str(has.get("tool.name") or "") if kind == TOOL else ""
        conversation = str(has.get("session.id") or "")
        yield TraceSpan(key, trace, parent, conversation, begun, ended, kind, name, asked, given)


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
