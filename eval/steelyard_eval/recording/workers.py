"""Recording by several processes that read one vault file; the parts put together are the bits of one process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steelyard.base.errors import EmbedderError, MachineError, shown
from steelyard.config.search_config import SearchConfig
from steelyard.embedders.embed import Embedder, Kind, Vectors
from steelyard.live.candidates import BLOCK
from steelyard.live.search import Searcher
from steelyard.live.sources import embedded
from steelyard.memory.query import Query
from steelyard.stores.sqlite import Vault
from steelyard.systems import analyses, find_system
from steelyard.table.join import Part

SHARE = 4
"""Blocks that each process is given at least, so that none waits long for the last one."""


@dataclass(frozen=True)
class Ahead:
    """An embedder of queries whose vectors are known, so that no process needs the model."""

    model: str
    recipe: str | None
    version: str
    vectors: Mapping[str, Vectors]

    @classmethod
    def of(cls, embedder: Embedder, texts: Sequence[str]) -> Ahead:
        """Embed the texts, to the bits of a recording by one process."""
        vectors = dict(embedded(embedder, list(dict.fromkeys(texts))))
        return cls(embedder.model, embedder.recipe, getattr(embedder, "version", ""), vectors)

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed."""
        if unknown := [text for text in texts if text not in self.vectors]:
            raise EmbedderError(f"no vector of {shown(unknown[0])} was computed ahead")
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)

    def warm(self) -> bool:
        """Return True: there is nothing to load."""
        return True


@dataclass(frozen=True)
class Work:
    """What every process does for the queries that it is given."""

    path: str
    config: SearchConfig
    embedder: Embedder | None
    as_of: float
    signals: Sequence[str]
    depth: int | None


def parts_of(
    searcher: Searcher,
    queries: Sequence[Query],
    signals: Iterable[str],
    depth: int | None,
    jobs: int,
    as_of: float,
    embedder: Embedder | None,
    progress: Callable[[Sequence[Sequence[Query]]], Iterable[Sequence[Query]]],
) -> list[Part]:
    """The rows of a recording, block by block, each made by one of `jobs` processes; see `Searcher.part`.

    Raises MachineError when a process ends early, and what a search in one of them raises.
    """
    store = searcher.store
    if not isinstance(store, Vault):
        raise TypeError("only a vault is recorded by several processes")
    size = max(1, min(BLOCK, -(-len(queries) // (jobs * SHARE))))
    blocks = [queries[at : at + size] for at in range(0, len(queries), size)]
    known = embedder and Ahead.of(embedder, [searcher.admitted(query).embedded for query in queries])
    with _file_of(store) as path:
        with Vault(path) as file:
            file.ensure_words(analyses([find_system(searcher.config.name)]))
        work = Work(path, searcher.config, known, as_of, list(signals), depth)
        # spawn: a fork would share open connections and the locks of threads
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(jobs, context, _begin, (work,))
        try:
            return [part for _, part in zip(progress(blocks), pool.map(_part, blocks), strict=True)]
        except BrokenProcessPool:
            raise MachineError("a process of --jobs ended early; free memory, or use fewer jobs") from None
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _file_of(store: Vault) -> Iterator[str]:
    """The file of a vault; a copy in a temporary folder of one that is in memory."""
    with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        yield store.in_file(Path(folder) / "copy.db")


_own: list[tuple[Searcher, Work]] = []
"""What this process works with."""


def _begin(work: Work) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; whoever started this process ends it
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    searcher = Searcher(Vault(work.path), work.config, work.embedder, clock=lambda: work.as_of)
    _own.append((searcher, work))


def _part(queries: Sequence[Query]) -> Part:
    searcher, work = _own[-1]
    return searcher.part(queries, work.signals, work.depth)
