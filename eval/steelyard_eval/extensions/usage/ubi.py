"""OpenSearch's User Behavior Insights 1.3: lists as they were shown, and what people reported to have done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from steelyard_eval.common.times import seconds
from steelyard_eval.datasets.logs import LogLine, decode
from steelyard_eval.extensions.usage.corpus import Corpus
from steelyard_eval.extensions.usage.session import Acted, Event, Searched, ShownHit, UseSession
from steelyard_eval.extensions.usage.ubi_lines import from_ubi


def read(files: list[Path], corpus: Corpus, system: str, faults: Counter[str]) -> Iterator[UseSession]:
    """The sessions in some files, a client each."""
    clients: dict[str, list[LogLine]] = {}
    for text in from_ubi(files, faults):
        try:
            line = decode(text.encode())
        except ValueError:
            faults["queries that break the schema"] += 1
            continue
        clients.setdefault(line.client_id, []).append(line)
    for name, lines in sorted(clients.items()):
        yield UseSession(name, _events(lines))


def _events(lines: list[LogLine]) -> Iterator[Event]:
    for line in lines:
        hits = tuple(ShownHit(hit.object_id) for hit in line.hits)
        yield Searched(line.query_id, seconds(line.seconds), line.user_query, hits, line.policy)
        for act in line.actions or ():
            names = (act.object_id,) if act.object_id else ()
            yield Acted(names, act.action_name, reported=True, search=line.query_id)
