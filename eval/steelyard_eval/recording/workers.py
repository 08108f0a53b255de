"""Recording by several processes, of this machine or of any executor; the parts put together are the bits of one.

The queries are cut into blocks, and each block is a file in the cache folder, named by all that decides its bytes.
Who dies costs the block at work; the same command later goes on with what is there, with however many workers.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import cast

import numpy as np

import steelyard
from steelyard.base.errors import PATH_WIDTH, EmbedderError, MachineError, SteelyardError, quote
from steelyard.base.extensions import require
from steelyard.base.files import cache_folder, canonical, lock
from steelyard.config import SearchConfig
from steelyard.embedders.embed import Kind, Vectors
from steelyard.live.search import QUERIES_PER_BLOCK, Searcher
from steelyard.live.sources import embedded
from steelyard.memory.query import Query
from steelyard.stores.sqlite import Vault
from steelyard.systems import analyses, find_system
from steelyard.table.join import Part
from steelyard_eval.recording.disk import load_block, save_block
from steelyard_eval.recording.workspace import Workers, Workspace

BLOCKS = 16  # blocks of a recording at least, whatever the number of workers; none has more queries than BLOCK


@dataclass(frozen=True)
class QueryBlock:
    """What a worker is asked for: a file with the rows of some queries, whose vectors are known.

    `key` names all that decides the bytes of the recording.
    """

    key: str
    path: str
    config: SearchConfig
    embedder: tuple[str, str | None, str] | None
    as_of: float
    signals: Sequence[str]
    depth: int | None
    queries: Sequence[Query]
    vectors: Mapping[str, Vectors]
    file: str


Progress = Callable[[Sequence[QueryBlock]], Iterable[QueryBlock]]


class PrecomputedEmbedder:
    """An embedder of queries whose vectors are known, so that no process needs the model."""

    def __init__(self, model: str, recipe: str | None, version: str) -> None:
        self.model, self.recipe, self.version = model, recipe, version
        self.vectors: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed."""
        if unknown := [text for text in texts if text not in self.vectors]:
            raise EmbedderError(f"no vector of {quote(unknown[0])} was computed ahead")
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)

    def warm(self) -> bool:
        """Return True: there is nothing to load."""
        return True


@contextmanager
def submitted(
    searcher: Searcher, queries: Sequence[Query], signals: Sequence[str], depth: int | None, space: Workspace
) -> Iterator[Callable[[Progress], list[Part]]]:
    """Give the blocks of a recording to a workspace's workers; what is yielded waits for their rows, in order.

    See `Searcher.part`. Several recordings may be under way. Raises MachineError when workers end early, and what
    a search in one of them raises.
    """
    store, workers, embedder, data = searcher.store, space.workers, space.embedder, space.dataset
    if not isinstance(store, Vault):
        raise TypeError("several processes can record only a vault")
    model = embedder and (embedder.model, embedder.recipe, str(getattr(embedder, "version", "")))
    texts = [searcher.admitted(query).embedded for query in queries]
    known = dict(embedded(embedder, list(dict.fromkeys(texts)))) if embedder else {}
    made_of = [
        _code(),
        data.sha256,
        data.vectors_sha256,
        data.language,
        searcher.config.to_json(),
        model,
        data.as_of,
    ]
    key = sha256(canonical([*made_of, list(signals), depth]).encode()).hexdigest()
    size = max(1, min(QUERIES_PER_BLOCK, -(-len(queries) // BLOCKS)))
    given = workers.given is not None
    with ExitStack() as ending:
        folder = ending.enter_context(_folder(key, given))
        revision = store.revision()
        if (path := workers.copies.get(revision)) is None:
            # A vault in memory is copied, beside the blocks where other machines have to read it.
            place = tempfile.TemporaryDirectory(prefix="steelyard-", dir=folder if given else None)
            path = store.in_file(Path(ending.enter_context(place)) / "copy.db")
            workers.copies[revision] = path
            ending.callback(workers.copies.pop, revision)
        ending.enter_context(_ending(workers))
        with Vault(path) as file:
            file.ensure_words(analyses([find_system(searcher.config.name)], file))
        whole = partial(QueryBlock, key, path, searcher.config, model or None, data.as_of, signals, depth)
        blocks: list[QueryBlock] = []
        waiting: list[Future[str]] = []
        for begin in range(0, len(queries), size):
            asked, own = queries[begin : begin + size], texts[begin : begin + size]
            name = sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()
            vectors = {text: known[text] for text in own if text in known}
            blocks.append(whole(asked, vectors, str(folder / f"{name}.npz")))
            waiting.append(workers.executor.submit(make, blocks[-1]))
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
        searcher, ahead = _searcher(block)
        ahead.vectors.update(block.vectors)
        admitted = [searcher.admitted(query) for query in block.queries]
        save_block(searcher.part(admitted, block.signals, block.depth), file)
    return block.file


@lru_cache(1)
def _vault(path: str) -> Vault:
    """The vault that this process reads; what it has in memory serves all recordings of it."""
    return Vault(path)


_open: dict[str, tuple[Searcher, PrecomputedEmbedder]] = {}
"""The searchers of this process by vault and key; those of one recording at most."""


def _searcher(block: QueryBlock) -> tuple[Searcher, PrecomputedEmbedder]:
    name, as_of = f"{block.path} {block.key}", block.as_of
    if name not in _open:
        _open.clear()
        ahead = PrecomputedEmbedder(*(block.embedder or ("", None, "")))
        embedder = ahead if block.embedder else None
        _open[name] = Searcher(_vault(block.path), block.config, embedder, clock=lambda: as_of), ahead
    return _open[name]


@contextmanager
def _ending(workers: Workers) -> Iterator[None]:
    """End the processes of this machine after a failure; MachineError where workers, or a scheduler, are gone."""
    try:
        yield
    except BaseException as error:
        workers.end()
        lost = type(error).__module__.partition(".")[0] == "distributed"
        if isinstance(error, SteelyardError) or not (lost or isinstance(error, BrokenExecutor | CancelledError)):
            raise  # what a search raised, or a person
        raise MachineError(
            f"workers ended early ({quote(type(error).__name__)}); free memory, or use fewer, and run the "
            f"same command again: finished work is kept"
        ) from None


@contextmanager
def _folder(key: str, given: bool) -> Iterator[Path]:
    """The folder of the blocks of one recording, in the cache folder; who has read them all removes it.

    If it cannot be written, or another process makes the same recording, this machine uses a temporary one.
    """
    folder = cache_folder(os.environ) / "blocks" / key
    with ExitStack() as ending:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            ending.callback(os.close, lock(folder))
        except OSError as error:
            if given:
                raise MachineError(
                    f"cannot use {quote(str(folder), PATH_WIDTH)}: {error.strerror}; wait until another process "
                    f"has made this recording, or set STEELYARD_CACHE to a folder that all workers see"
                ) from None
            folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="steelyard-")))
        yield folder


@cache
def _code() -> str:
    """The hash of the engine's code, because a block of older code may differ."""
    root = Path(steelyard.__file__).parent
    return sha256(b"".join(path.read_bytes() for path in sorted(root.rglob("*.py")))).hexdigest()


SCHEDULER_SECONDS = 10.0  # seconds that a scheduler may take to answer


def scheduled(address: str) -> Executor:
    """The executor of the cluster whose scheduler is at this address, such as ``tcp://127.0.0.1:8786``.

    Its workers need this version of Steelyard, and the cache folder (STEELYARD_CACHE) at the same path. Raises
    MachineError without the extra, and when no scheduler answers.
    """
    require("dask", "--scheduler")
    distributed = import_module("distributed")
    try:
        client = distributed.Client(address, timeout=SCHEDULER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MachineError(
            f"no Dask scheduler answers at {quote(address)} ({quote(str(error), 80)}); start one: dask scheduler"
        ) from None
    return cast("Executor", client.get_executor(pure=False))
