"""Every kind of log that is read: its name, what it is, its reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from steelyard_eval.extensions.usage import langfuse, langsmith, openinference, otel, transcripts, ubi
from steelyard_eval.extensions.usage.corpus import Corpus
from steelyard_eval.extensions.usage.session import UseSession
from steelyard_eval.extensions.usage.spans import sessions

Read = Callable[[list[Path], Corpus, str, Counter[str]], Iterator[UseSession]]
JSON = (".jsonl", ".json", ".jsonl.gz", ".json.gz")


@dataclass(frozen=True)
class UseKind:
    """A kind of log.

    Attributes
    ----------
    name, about : str
        What the command line calls it, and what it is.
    read : callable
        The sessions in some files; the data set's corpus, its system, and a counter of faults are given.
    suffixes : tuple of str
        How its files are called.
    homes : callable
        Where the programs keep their logs, from the environment.
    tried : bool
        Whether there was a sample to try it on.
    """

    name: str
    about: str
    read: Read
    suffixes: tuple[str, ...] = JSON
    homes: Callable[[Mapping[str, str]], Iterable[Path]] = lambda environ: ()
    tried: bool = False


KINDS = {
    kind.name: kind
    for kind in (
        UseKind(
            "transcripts",
            "sessions of Claude Code, and of Codex (untried)",
            transcripts.read,
            (".jsonl", ".jsonl.gz"),
            transcripts.homes,
            tried=True,
        ),
        UseKind("otel", "OpenTelemetry GenAI spans", partial(sessions, otel.spans), tried=True),
        UseKind("openinference", "OpenInference spans, of Phoenix", partial(sessions, openinference.spans)),
        UseKind("langfuse", "exported observations and scores of Langfuse", partial(sessions, langfuse.spans)),
        UseKind("langsmith", "exported runs and feedback of LangSmith", partial(sessions, langsmith.spans)),
        UseKind(
            "ubi",
            "ubi_queries and ubi_events of OpenSearch",
            ubi.read,
            (".jsonl", ".ndjson", ".jsonl.gz"),
            tried=True,
        ),
    )
}
