"""Recording by several processes, of this machine or of any executor; the parts put together are the bits of one.

The queries are cut into blocks, and each block is a file in the cache folder, named by all that decides its bytes.
Who dies costs the block at work; the same command later goes on with what is there, with however many workers.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import steelyard
from steelyard.base.cache_folder import cache_folder
from steelyard.base.errors import PATH_WIDTH, EmbedderError, MachineError, SteelyardError, shown
from steelyard.base.files import canonical, lock
from steelyard.config.search_config import SearchConfig
from steelyard.embedders.embed import Embedder, Kind, Vectors
from steelyard.live.candidates import BLOCK
from steelyard.live.search import Searcher
from steelyard.live.sources import embedded
from steelyard.memory.query import Query
from steelyard.stores.sqlite import Vault
from steelyard.systems import analyses, find_system
from steelyard.table.join import Part
from steelyard_eval.recording.disk import load_block, save_block

BLOCKS = 16  # blocks of a recording at least, whatever the number of workers; none has more queries than BLOCK


class Workers:
    """Who computes the blocks: processes of this machine, or an executor."""

    def __init__(self, jobs: int | Executor = 1) -> None:
        self.jobs = jobs if isinstance(jobs, int) else 1
        self.given = None if isinstance(jobs, int) else jobs
        self.copies: dict[int, str] = {}
        """The file of a vault in memory by its revision, as long as a recording is under way."""

    def begin(self) -> None:
        """Start the processes of this machine, if there are to be any, so that they import while others index."""
        if self.jobs > 1:
            _ = self.executor

    def share(self, queries: int) -> bool:
        """Whether a recording of so many queries is theirs, and not made in this process."""
        return queries > 0 and (self.given is not None or min(self.jobs, queries) > 1)

    @cached_property
    def executor(self) -> Executor:
        """Where blocks are submitted."""
        if self.given is not None:
            return self.given
        pool = ProcessPoolExecutor(self.jobs, get_context("spawn"), _begin)  # a fork would share open connections
        # Threads of one worker would take the cores of others; NumPy reads how many when it is loaded there.
        unset = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"} - os.environ.keys()
        os.environ.update(dict.fromkeys(unset, "1"))
        for _ in range(self.jobs):
            pool.submit(int)  # starts a process, because none is free yet
        for name in unset:
            del os.environ[name]
        weakref.finalize(self, pool.shutdown, wait=False, cancel_futures=True)
        return pool

    @contextmanager
    def ending(self) -> Iterator[None]:
        """End the processes of this machine after any failure; MachineError where workers are gone."""
        try:
            yield
        except BaseException as error:
            self.end()
            if isinstance(error, SteelyardError) or not _lost(error):
                raise
            raise MachineError(
                f"workers ended early ({shown(type(error).__name__)}); free memory, or use fewer, and run the "
                f"same command again: what they had finished is kept"
            ) from None

    def end(self) -> None:
        """End the processes of this machine, after a failure; a later recording starts others."""
        if self.given is None and "executor" in self.__dict__:
            self.executor.shutdown(cancel_futures=True)
            del self.executor


@dataclass(frozen=True)
class Work:
    """What is the same for all blocks of a recording. `key` names all that decides their bytes."""

    key: str
    path: str
    config: SearchConfig
    embedder: tuple[str, str | None, str] | None
    as_of: float
    signals: Sequence[str]
    depth: int | None


@dataclass(frozen=True)
class QueryBlock:
    """What a worker is asked for: a file with the rows of some queries, whose vectors are known."""

    work: Work
    queries: Sequence[Query]
    vectors: Mapping[str, Vectors]
    file: str


Progress = Callable[[Sequence[QueryBlock]], Iterable[QueryBlock]]
"""Wraps the blocks that are waited for, for example to draw a progress bar."""


class Ahead:
    """An embedder of queries whose vectors are known, so that no process needs the model."""

    def __init__(self, model: str, recipe: str | None, version: str) -> None:
        self.model, self.recipe, self.version = model, recipe, version
        self.vectors: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed."""
        if unknown := [text for text in texts if text not in self.vectors]:
            raise EmbedderError(f"no vector of {shown(unknown[0])} was computed ahead")
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)

    def warm(self) -> bool:
        """Return True: there is nothing to load."""
        return True


@contextmanager
def submitted(
    searcher: Searcher,
    queries: Sequence[Query],
    signals: Sequence[str],
    depth: int | None,
    workers: Workers,
    as_of: float,
    embedder: Embedder | None,
    corpus: Sequence[str],
) -> Iterator[Callable[[Progress], list[Part]]]:
    """Give the blocks of a recording to workers; what is yielded waits for their rows, in order.

    See `Searcher.part`. `corpus` holds the hashes of what is indexed. Several recordings may be under way. Raises
    MachineError when workers end early, and what a search in one of them raises.
    """
    store = searcher.store
    if not isinstance(store, Vault):
        raise TypeError("only a vault is recorded by several processes")
    model = embedder and (embedder.model, embedder.recipe, str(getattr(embedder, "version", "")))
    texts = [searcher.admitted(query).embedded for query in queries]
    known = dict(embedded(embedder, list(dict.fromkeys(texts)))) if embedder else {}
    made_of = [_code(), *corpus, searcher.config.to_json(), model, as_of, list(signals), depth]
    key = sha256(canonical(made_of).encode()).hexdigest()
    size = max(1, min(BLOCK, -(-len(queries) // BLOCKS)))
    given = workers.given is not None
    with ExitStack() as ending:
        folder = ending.enter_context(_folder(key, given))
        revision = store.revision()
        if (path := workers.copies.get(revision)) is None:
            path = workers.copies[revision] = ending.enter_context(_file_of(store, folder, given))
            ending.callback(workers.copies.pop, revision)
        ending.enter_context(workers.ending())
        with Vault(path) as file:
            file.ensure_words(analyses([find_system(searcher.config.name)]))
        work = Work(key, path, searcher.config, model or None, as_of, signals, depth)
        blocks = [
            QueryBlock(
                work,
                asked := queries[begin : begin + size],
                {text: known[text] for text in texts[begin : begin + size] if text in known},
                str(folder / f"{sha256(repr(asked).encode('utf-8', 'surrogatepass')).hexdigest()}.npz"),
            )
            for begin in range(0, len(queries), size)
        ]
        waiting: list[Future[str]] = []
        for block in blocks:
            waiting.append(workers.executor.submit(make, block))
            ending.callback(waiting[-1].cancel)

        yield lambda progress: [
            load_block(Path(future.result()), len(block.queries))
            for block, future in zip(progress(blocks), waiting, strict=True)
        ]
        shutil.rmtree(folder, ignore_errors=True)


def make(block: QueryBlock) -> str:
    """The block's file, made unless it is there; what a worker runs."""
    file = Path(block.file)
    if not file.exists():
        searcher, ahead = _searcher(block.work)
        ahead.vectors.update(block.vectors)
        save_block(searcher.part(block.queries, block.work.signals, block.work.depth), file)
    return block.file


@lru_cache(1)
def _vault(path: str) -> Vault:
    """The vault that this process reads; what it has in memory serves all recordings of it."""
    return Vault(path)


_open: dict[str, tuple[Searcher, Ahead]] = {}
"""The searchers of this process by vault and key; those of one recording at most."""


def _searcher(work: Work) -> tuple[Searcher, Ahead]:
    name = f"{work.path} {work.key}"
    if name not in _open:
        _open.clear()
        ahead = Ahead(*work.embedder) if work.embedder else Ahead("", None, "")
        embedder = ahead if work.embedder else None
        _open[name] = Searcher(_vault(work.path), work.config, embedder, clock=lambda: work.as_of), ahead
    return _open[name]


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; whoever started this process ends it


def _lost(error: BaseException) -> bool:
    """Whether it says that workers or their scheduler are gone, and not what a search raised or a person."""
    told = type(error).__module__.partition(".")[0] == "distributed"
    return told or isinstance(error, BrokenExecutor | CancelledError)


@contextmanager
def _folder(key: str, given: bool) -> Iterator[Path]:
    """The folder of the blocks of one recording, in the cache folder; who has read them all removes it.

    Where that cannot be written, or another process makes the same recording, processes of this machine do with a
    temporary one.
    """
    folder = cache_folder(os.environ) / "blocks" / key
    with ExitStack() as ending:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            ending.callback(os.close, lock(folder))
        except OSError as error:
            if given:
                raise MachineError(
                    f"cannot use {shown(str(folder), PATH_WIDTH)}: {error.strerror}; wait until another process "
                    f"has made this recording, or set STEELYARD_CACHE to a folder that all workers see"
                ) from None
            folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="steelyard-")))
        yield folder


@contextmanager
def _file_of(store: Vault, folder: Path, given: bool) -> Iterator[str]:
    """The file of a vault; a copy of one in memory, beside the blocks where other machines have to read it."""
    with tempfile.TemporaryDirectory(prefix="steelyard-", dir=folder if given else None) as place:
        yield store.in_file(Path(place) / "copy.db")


@cache
def _code() -> str:
    """The hash of the engine's code, because a block of older code may differ."""
    root = Path(steelyard.__file__).parent
    return sha256(b"".join(path.read_bytes() for path in sorted(root.rglob("*.py")))).hexdigest()
