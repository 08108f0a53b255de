"""Workspaces: a data set indexed in a store, with its embedder, from which every command starts."""

import os
import signal
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from multiprocessing import get_context

from steelyard.base.errors import PATH_WIDTH, ConfigError, EmbedderError, RerankError, SteelyardError, quote
from steelyard.config import SearchConfig, open_reranker, requested_reranker
from steelyard.embedders import embed
from steelyard.embedders.embed import LSA, Embedder, RecordedEmbedder
from steelyard.embedders.lsa import LsaEmbedder
from steelyard.finish import Document, reranked
from steelyard.live.search import Searcher
from steelyard.memory.query import Query
from steelyard.memory.text import render
from steelyard.retrievers import layers_read
from steelyard.stores.sqlite import Vault
from steelyard.systems import EMBEDDED, System, keyword_indexes
from steelyard.table.signal_table import SignalTable
from steelyard_eval.common.configurations import split_label
from steelyard_eval.common.console import bar
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.manifest import EMBEDDERS
from steelyard_eval.datasets.vectors import completed, recorded
from steelyard_eval.recording.replay import only

WORTH = 2.0  # seconds of a recording, as `estimate_cost` has them, for each process, which takes as long to start
NUMBERS = 20_000_000
"""How many numbers are kept, about 160 MB: the recordings of all families on some hundreds of queries."""
SECONDS, SECONDS_AN_ENTRY = 0.3e-3, 0.12e-6
"""Of one query and one retriever: always, and for each entry of the corpus."""
BYTES, BYTES_A_COLUMN = 24, 16  # of one row: always, and for each retriever


def estimate_cost(queries: int, retrievers: int, depth: int, entries: int) -> tuple[float, float]:
    """Seconds of one processor and bytes of a table, for lists of this depth: rough, and rather too much.

    >>> seconds, size = estimate_cost(50_000, 2, 100, 5_000)
    >>> round(seconds), round(size / 1e6)
    (90, 560)
    """
    rows = queries * min(entries, retrievers * depth)
    seconds = queries * retrievers * (SECONDS + SECONDS_AN_ENTRY * entries)
    return seconds, float(rows * (BYTES + BYTES_A_COLUMN * retrievers))


class RecordingCache:
    """The last recordings, each under all that it depends on beside its queries.

    The next command may ask the same of the same queries, or of some of them.
    """

    def __init__(self) -> None:
        self._held: list[tuple[object, dict[str, Query], SignalTable, int]] = []

    def find(self, key: object, queries: Sequence[Query]) -> SignalTable | None:
        """The recording of these queries, in their order; None where there is none of all of them."""
        for held, known, table, _ in self._held:
            if held == key and all(known.get(query.id) == query for query in queries):
                return only(table, [query.id for query in queries])
        return None

    def keep(self, key: object, queries: Sequence[Query], table: SignalTable) -> None:
        """Keep a recording, if it is no larger than all that may be kept; the oldest give way to it."""
        size = len(table) * (len(table.columns) + len(table.positions))
        if size <= NUMBERS:
            self._held.append((key, {query.id: query for query in queries}, table, size))
            while sum(size for *_, size in self._held) > NUMBERS:
                del self._held[0]


class Workers:
    """Who computes the blocks of a recording: processes of this machine, or an executor."""

    def __init__(self, jobs: int | Executor = 1) -> None:
        self.jobs = jobs if isinstance(jobs, int) else 1
        self.given = None if isinstance(jobs, int) else jobs
        self.copies: dict[int, str] = {}
        """The file of a vault in memory by its revision, as long as a recording is under way."""

    def share(self, seconds: float) -> bool:
        """Whether a recording that takes so long is theirs, and not made in this process."""
        return seconds > 0 and (self.given is not None or min(self.jobs, seconds // WORTH) > 1)

    @cached_property
    def executor(self) -> Executor:
        """Where blocks are submitted; processes of this machine are started, and import while others index."""
        if self.given is not None:
            return self.given
        ignored = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; whoever started a process ends it
        # A fork would share open connections.
        pool = ProcessPoolExecutor(self.jobs, get_context("spawn"), signal.signal, ignored)
        # Threads of one worker would take the cores of others; NumPy reads how many when it is loaded there.
        unset = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"} - os.environ.keys()
        os.environ.update(dict.fromkeys(unset, "1"))
        for _ in range(self.jobs):
            pool.submit(int)  # starts a process, because none is free yet
        for name in unset:
            del os.environ[name]
        weakref.finalize(self, pool.shutdown, wait=False, cancel_futures=True)
        return pool

    @property
    def started(self) -> bool:
        """Whether a recording may have been made elsewhere."""
        return "executor" in vars(self)

    def end(self) -> None:
        """End the processes of this machine, after a failure; a later recording starts others."""
        if self.given is None and self.started:
            self.executor.shutdown(cancel_futures=True)
            del self.executor


@dataclass(frozen=True)
class Workspace:
    """A data set, the store it is indexed in, and the embedder of its queries (None: keywords only).

    Whatever the number of `workers` that record, a recording has the same bits. `requested` names the embedder, as
    `open` takes it.
    """

    dataset: Dataset
    store: Vault
    embedder: Embedder | None
    requested: str = "auto"
    workers: Workers = field(default_factory=Workers, repr=False, compare=False)
    tables: RecordingCache = field(default_factory=RecordingCache, init=False, repr=False, compare=False)

    @classmethod
    def open(
        cls, dataset: Dataset, embedder: str = "auto", vault: Vault | None = None, jobs: int | Executor = 1
    ) -> "Workspace":
        """Index the data set, in memory unless a vault is given.

        `embedder` is recorded (the vectors of the data set; recorded:MODEL if of several), lsa (fitted on its
        texts), none, one of `embedders.embed.KINDS`, or auto: recorded where there are recorded vectors, else lsa.
        Vectors are added by `index_for`. `jobs` processes record, or the workers of an executor.
        """
        workers = Workers(jobs)
        if workers.given is None and workers.share(
            estimate_cost(len(dataset.queries), 2, 0, len(dataset.entries))[0]
        ):
            _ = workers.executor
        store = Vault(":memory:") if vault is None else vault
        store.upsert(dataset.entries)
        store.set_languages(dataset.language)
        return cls(dataset, store, choose_embedder(dataset, embedder), embedder, workers)

    def about(self, change: Callable[[Dataset], Dataset]) -> "Workspace":
        """The same workspace, with what it keeps, for a data set with other labels."""
        changed = change(self.dataset)
        if changed is self.dataset:
            return self
        other = replace(self, dataset=changed)
        vars(other).update(tables=self.tables)  # no list depends on a label
        return other

    @property
    def options(self) -> dict[str, object]:
        """What a command needs to search in the same way."""
        named = None if self.requested in ("auto", self.dataset.embedder) else self.requested
        named = named or (self.dataset.embedder if self.dataset.chosen else None)
        return {**({"--embedder": named} if named else {}), "--intents": self.dataset.intents}

    @property
    def model(self) -> str:
        """The name of the vectors' model; empty without an embedder."""
        return self.embedder.model if self.embedder else ""

    def index_for(self, systems: Iterable[System], signals: Iterable[str]) -> None:
        """Build the keyword indexes of the systems and the vectors that the signals need."""
        layers = {self._layer(layer) for layer in layers_read(set(signals))}
        systems = list(systems)
        for index in keyword_indexes(systems):
            self.store.ensure_index(index)
        if self.embedder is not None:
            asked = [(layer, system.reading.recipe) for system in systems for layer in sorted(layers)]
            spaces = dict.fromkeys(embed.space_of(self.embedder, *one) for one in asked)
            embed.embed_missing(self.store, self.embedder, *spaces, progress=partial(bar, "embedding"))

    def shares(self, queries: int, signals: int) -> bool:
        """Whether workers make a recording of so many queries and signals."""
        return self.workers.share(estimate_cost(queries, signals, 0, len(self.dataset.entries))[0])

    def searcher(self, config: SearchConfig) -> Searcher:
        """Make a searcher whose clock is the data set's as-of date."""
        reranker = open_reranker(config.rerank, os.environ) if reranked(config.finish) else None
        return Searcher(self.store, config, self.embedder, clock=lambda: self.dataset.as_of, reranker=reranker)

    def unranked(self, config: SearchConfig) -> str:
        """Why nobody re-ranks for a configuration that asks for it without naming who; empty otherwise.

        A model on this machine is loaded; providers that have a key are not asked.
        """
        if reranked(config.finish) is None or requested_reranker(config.rerank, os.environ) != "local":
            return ""
        try:
            open_reranker(config.rerank, os.environ).score("", [Document("probe", "probe")])
        except RerankError as error:
            return str(error)
        return ""

    def usable(self, names: Iterable[str]) -> list[str]:
        """Keep the signals that this data set can supply: vectors need an embedder, layers their texts."""
        return [name for name in names if all(map(self._has_layer, map(self._layer, layers_read({name}))))]

    def stood_in(self, configs: Iterable[SearchConfig]) -> list[str]:
        """The layers that one of these reads and that the text stands in for, although others have vectors."""
        layered = self._has_layer("l0") or self._has_layer("l1")
        lacking = layered and not self._has_layer("l2")
        return ["l2"] if lacking and any("l2" in config.effective.signals for config in configs) else []

    def _layer(self, layer: str) -> str:
        """The layer whose vectors exist; the text is used when the data set lacks l2."""
        return "text" if layer == "l2" and not self._has_layer(layer) else layer

    def _has_layer(self, layer: str) -> bool:
        if self.embedder is None:
            return False
        if isinstance(self.embedder, RecordedEmbedder):
            return (self.embedder.model, layer) in self.dataset.vectors
        return layer == "text" or layer in embed.layers_of(self.store)


def choose_embedder(dataset: Dataset, requested: str) -> Embedder | None:
    """Make the embedder of a kind for a data set.

    Raises ConfigError when the data set has no recorded vectors, or none of that model, or the environment
    names no usable provider; MachineError for a missing extra. For auto the data set may name another one.
    """
    requested = dataset.embedder or requested if requested == "auto" else requested
    kind, _, model = requested.partition(":")
    if kind not in EMBEDDERS or (model and kind != "recorded"):
        raise ConfigError(f"unknown embedder {quote(requested)}; valid: {', '.join(EMBEDDERS)}")
    if kind in embed.KINDS:
        return completed(dataset, embed.open_embedder(kind, os.environ), dataset.recipe)
    if kind == "none":
        return None
    models = sorted(each for each in dataset.query_vectors if (each, "text") in dataset.vectors)
    if kind == "recorded" and not models:
        raise ConfigError(
            f"{dataset.called} has no recorded vectors of corpus and queries; use the embedder lsa, it needs none"
        )
    if models and kind != "lsa":
        if model and model not in models:
            raise ConfigError(
                f"{dataset.called} has no recorded vectors of {quote(model)}; it has those of {', '.join(models)}"
            )
        return recorded(dataset, model or models[0])
    try:
        return LsaEmbedder.fit([render(EMBEDDED, entry) for entry in dataset.entries], dataset.language)
    except EmbedderError:
        if kind == "lsa":
            raise
        return None  # auto: too few texts to fit on, keywords are what there is


def embedder_of(dataset: Dataset, requested: str, named: Sequence[str | None]) -> str:
    """The embedder that was asked for; for auto that of the vectors that the named weights files were tuned with.

    Where they cannot be had here it stays auto, and the job says what is wrong. ConfigError for files of several
    models, which cannot be searched at once.
    """
    if requested != "auto":
        return requested
    files = [path for path in (split_label(word)[1] for word in named if word) if path.endswith(".json")]
    try:
        read = {path: SearchConfig.load(path).models for path in files}
    except SteelyardError:  # the job says it
        return requested
    models = {model for own in read.values() for model in own}
    if len(models) > 1 and len(files) > 1:
        several = {quote(path, PATH_WIDTH): map(quote, sorted(own)) for path, own in read.items() if own}
        told = "; ".join(f"{path}: {', '.join(own)}" for path, own in several.items())
        again = "run the recommend that wrote one of them again, with the --embedder of the other"
        raise ConfigError(f"only vectors of one model can be searched at once ({told}); {again}")
    if len(models) != 1 or models & dataset.query_vectors.keys():
        return requested
    (model,) = models
    return model if model in [*embed.installed(), LSA] else requested
