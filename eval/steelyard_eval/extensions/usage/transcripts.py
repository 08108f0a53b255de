"""Transcripts of coding agents: which program wrote a file is seen by its lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from types import ModuleType

from steelyard_eval.extensions.usage import claude_code, codex
from steelyard_eval.extensions.usage.corpus import Corpus
from steelyard_eval.extensions.usage.records import Record, records_of
from steelyard_eval.extensions.usage.session import UseSession
from steelyard_eval.extensions.usage.tools import Calls

PROGRAMS: tuple[ModuleType, ...] = (claude_code, codex)
FIRST = 50
"""Lines by which a file is recognised."""
MOST_THREADS = 1_000
"""Agents of one file that are told apart."""
SIMULATED = "simulated"
"""What made lines have as `steelyard`: they show how learning works, and nothing about agents."""


def homes(environ: Mapping[str, str]) -> Iterator[Path]:
    """Where the programs keep their sessions."""
    yield Path(environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"
    yield Path(environ.get("CODEX_HOME") or Path.home() / ".codex") / "sessions"


def read(files: list[Path], corpus: Corpus, system: str, faults: Counter[str]) -> Iterator[UseSession]:
    """The sessions in some files; a file of another program is counted."""
    for path in files:
        records = records_of(path, faults)
        first = list(islice(records, FIRST))
        program = next((program for program in PROGRAMS if any(map(program.matches, first))), None)
        if program is None:
            faults["files of no program that is known"] += bool(first)
            continue
        if program is codex:
            faults["files of Codex, whose form was not tried on real ones"] += 1
        threads: dict[str, list[Record]] = {}
        for record in chain(first, records):
            record.pop("toolUseResult", None)  # the answer once more, and larger
            if program.matches(record):
                key = program.thread(record)
                if key in threads or len(threads) < MOST_THREADS:
                    threads.setdefault(key, []).append(record)
        for key, thread in threads.items():
            simulated = any(record.get("steelyard") == SIMULATED for record in thread)
            yield UseSession(key or path.stem, program.events(thread, Calls(system, corpus.names)), simulated)
