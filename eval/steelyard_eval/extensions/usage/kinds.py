"""Every kind of log that is read: its name, what it is, its reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from steelyard_eval.extensions.usage import openinference, traces, transcripts, ubi
from steelyard_eval.extensions.usage.corpus import Corpus
from steelyard_eval.extensions.usage.session import UseSession

Read = Callable[[list[Path], Corpus, str, Counter[str]], Iterator[UseSession]]


@dataclass(frozen=True)
class UseKind:
    """A kind of log: what the command line calls it, what it is, how it is read.

    `read` gives the sessions in some files; it gets the data set's corpus, its system, and a counter of faults.
    `suffixes` are how its files end, `homes` where the program keeps them, from the environment.
    """

    name: str
    about: str
    read: Read
    suffixes: tuple[str, ...]
    homes: Callable[[Mapping[str, str]], Iterable[Path]] = lambda environ: ()


LINES = (".jsonl", ".jsonl.gz")
KINDS = {
    kind.name: kind
    for kind in (
        UseKind("transcripts", "sessions of Claude Code", transcripts.read, LINES, transcripts.homes),
        UseKind("otel", "OpenTelemetry GenAI spans", traces.read, (*LINES, ".json", ".json.gz")),
        UseKind(
            "openinference",
            "OpenInference spans, of Phoenix",
            partial(traces.read, spans_of=openinference.spans),
            (*LINES, ".json", ".json.gz"),
        ),
        UseKind("ubi", "ubi_queries and ubi_events of OpenSearch", ubi.read, (*LINES, ".ndjson")),
    )
}
