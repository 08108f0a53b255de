"""What is gated: a data set with its labels, the baseline that it is held against, and how it is searched.

Hashes say whether both are of the same data, labels, configuration, installed code and platform. Another processor
may exchange entries whose scores are equal to 1e-6; a change of code may not. So a list is kept with the runs of
places whose scores are that close. Its settled form has the ids of a run in ascending order, and none for the last
run, whose entries change places with some that the list no longer shows.
"""

import platform
import shlex
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from hashlib import sha256
from importlib import metadata, resources
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import asdict

from steelyard.base.arrays import Indices
from steelyard.base.errors import PATH_WIDTH, ConfigError, DataError, quote
from steelyard.config import SearchConfig
from steelyard.memory.query import Query
from steelyard_eval.compare.lists_and_latency import ties
from steelyard_eval.datasets import LOGGED, Dataset, as_dataset
from steelyard_eval.datasets.dataset import State, hashed, states
from steelyard_eval.datasets.groups import is_proposed, judged, unit_numbers
from steelyard_eval.datasets.manifest import Naming
from steelyard_eval.gate.baseline import Baseline, load_baseline
from steelyard_eval.gate.rule import BUDGET
from steelyard_eval.measures.metrics import parse_measures
from steelyard_eval.measures.trec_runs import Scored
from steelyard_eval.recording.next_steps import shell_word
from steelyard_eval.recording.workspace import Workspace, embedder_of
from steelyard_eval.result.sentences import dialect

BASELINE = Path("reports/baseline.json")
DIALECT = dialect(ties(["strategy"]))
PARTS = {"entries": "corpus", "queries": "queries", "labels": "labels"}
UPDATE = ("--update", "--reason", "...")
MAX_TRACKED_ITEMS = 5_000


@dataclass(frozen=True)
class Gate:
    """A data set with its baseline, and how it is searched; made by `Gate.of`."""

    dataset: Dataset
    path: Path
    baseline: Baseline | None  # None where there is no file at `path`
    opened: Callable[[str], Workspace]  # opens the data set with an embedder, by its name
    embedder: str | None  # the baseline's own where it is None
    split: str | None
    limit: int | None
    tokens: int | None  # where these are full, lists end
    budget: float = BUDGET  # the drop of nDCG@10 that is accepted unproven
    block_slices: bool = False  # whether a category or intent that is significantly worse fails the gate
    now: Callable[[], float] = time.time  # for the dates of updates

    @classmethod
    def of(
        cls,
        source: Dataset | str | Path,
        path: str | Path = BASELINE,
        embedder: str | None = None,
        opened: Callable[[str], Workspace] | None = None,
        *,
        split: str | None = None,
        limit: int | None = None,
        tokens: int | None = None,
        **options: Any,  # noqa: ANN401 -- the fields of the class
    ) -> "Gate":
        """The gate of a data set or its folder, which is indexed when a contender needs it.

        Default embedder, split, limit and tokens: the baseline's. Raises DataError for a cut or edited baseline.
        """
        dataset, path = as_dataset(source), Path(path)
        old = load_baseline(path, shlex.join([*_command("gate", dataset, path), *UPDATE]))
        if old:
            split, limit, tokens = split or old.split, limit or old.limit, old.tokens if tokens is None else tokens
        parse_measures(() if tokens is None else [f"nDCG@{tokens}t"])  # refuses what is no number of tokens
        opened = opened or cache(partial(Workspace.open, dataset))
        return cls(dataset, path, old, opened, embedder, split, limit, tokens, **options)

    @property
    def command(self) -> list[str]:
        """The words of the command that gates all that the baseline names."""
        return _command("gate", self.dataset, self.path)

    @property
    def rebaseline(self) -> list[str]:
        """The words of the command that writes a new baseline of the same contenders."""
        return [*self.command, *UPDATE]

    def replacing(self, contender: str) -> str:
        """The command that writes a new baseline of a contender alone."""
        drops = ["--accept-worse"] if self.baseline and len(self.baseline.contenders) > 1 else []
        return shlex.join([*self.command, contender, *drops, *UPDATE])

    def needed(self) -> Baseline:
        """The baseline; DataError, with the remedy, where there is none."""
        if self.baseline is not None:
            return self.baseline
        begin, place = shlex.join(_command("init", self.dataset, self.path)), quote(str(self.path), PATH_WIDTH)
        raise DataError(f"there is no baseline at {place}; write a first one of what you use today: {begin}")

    @cached_property
    def space(self) -> Workspace:
        """The data set as it is searched; a baseline may name no embedder that asks anybody."""
        if self.embedder or not self.baseline:
            return self.opened(self.embedder or "auto")
        tuned = embedder_of(self.dataset, "auto", [row.written for row in self.baseline.contenders])
        kept = Naming.of_baseline(self.path).embedder(self.baseline.embedder)
        return self.opened(kept if tuned == "auto" else tuned)  # weights files may be newer than the baseline

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """The judged queries of the split."""
        queries = judged(self.dataset, self.dataset.split(self.split))
        if not queries:
            raise ConfigError(f"{self.dataset.called}: no query of the split has judgments; add them to qrels.txt")
        return queries

    @cached_property
    def unit(self) -> Indices:
        """int64[Q]: which queries vary together."""
        return unit_numbers(self.queries)

    @cached_property
    def unanswerable(self) -> tuple[Query, ...]:
        """The queries of the split that nothing answers."""
        return tuple(
            query for query in self.dataset.split(self.split) if not query.answerable and query.split != LOGGED
        )

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The hashes of what both measurements have to share."""
        return data_hashes(self.dataset, self.queries, self.unanswerable)

    @property
    def differing(self) -> dict[str, tuple[str, str]]:
        """What was not measured on the same: name -> the baseline's hash and ours; empty without a baseline."""
        if self.baseline is None:
            return {}
        old = self.baseline
        theirs = asdict(old.hashes) | {"dialect": old.dialect, "tokens": str(old.tokens)}
        ours = self.hashes | {"dialect": DIALECT, "tokens": str(self.tokens)}
        return {name: (theirs[name], own) for name, own in ours.items() if theirs[name] != own}

    def states(self) -> dict[str, State]:
        """What is hashed, item by item, where it is not too much to keep."""
        qrels = {query.id: self.dataset.qrels[query.id] for query in self.queries}
        part = replace(self.dataset, queries=(*self.queries, *self.unanswerable), qrels=qrels)
        return {PARTS[name]: state for name, state in states(part, MAX_TRACKED_ITEMS).items() if state}

    def configuration(self, config: SearchConfig | None) -> str:
        """The hash of a configuration and of the vectors it searches; empty for lists, whose making is unknown."""
        if config is None:
            return ""
        model, dataset = self.space.model, self.dataset
        held = {name: value for name, value in config.to_json().items() if name != "provenance"}
        return hashed(
            [held, model, dataset.recipe, dataset.vectors_sha256 if model in dataset.query_vectors else ""]
        )

    @cached_property
    def platform_differs(self) -> bool:
        """Whether this platform is not the baseline's, so that rounding may differ."""
        return self.needed().platform != platform_name()


def _command(job: str, dataset: Dataset, path: Path) -> list[str]:
    extra = ["--baseline", shell_word(path)] if path != BASELINE else []
    return ["steelyard", job, shell_word(dataset.path), *extra]


def is_of_other_labels(dataset: Dataset) -> bool:
    """Whether there is a baseline of this data set that can be read, and its labels are not those of today."""
    try:
        gate = Gate.of(dataset)
        return gate.baseline is not None and gate.baseline.dataset == dataset.name and "labels" in gate.differing
    except (ConfigError, DataError):
        return False


LENGTH = 32  # hexadecimal digits of the hash of a list: 128 bits, against accidents
SOURCES = ("steelyard", "steelyard_eval")
STARTER = "starter"  # the data set inside the wheel, which is hashed as a data set
NUMERIC = ("apsw", "numpy", "scipy", "scikit-learn", "sqlite-vec", "PyStemmer", "snowballstemmer")
"""Packages that compute scores: another version of them is other code. SQLite comes with apsw."""

TOLERANCE = 1e-6  # how far a score may differ on another platform than the baseline's, relative to those above 1
Run = tuple[int, int]


def data_hashes(dataset: Dataset, queries: Sequence[Query], unanswerable: Sequence[Query] = ()) -> dict[str, str]:
    """The hashes of what must not change between two measurements: corpus, queries, labels of the first."""
    ids = [query.id for query in queries]
    entries = sorted((entry.to_json() for entry in dataset.entries), key=itemgetter("id"))
    asked: list[list[Any]] = [
        [of.id, of.text, repr(of.filters), of.asked_at, of.intent, of.category, group, list(of.tags), of.domain]
        for of in dataset.with_known_intents([*queries, *unanswerable])
        for group in ["" if is_proposed(of) else of.group]
    ]
    return {
        "corpus": hashed([dataset.as_of, entries]),
        "queries": hashed(sorted(asked)),
        "labels": hashed({id_: dataset.qrels[id_] for id_ in ids}),
    }


@cache
def sources_hash() -> str:
    """The hash of every file of both packages as they are installed here, compiled files apart, and `NUMERIC`."""
    files = (file_hash for package in SOURCES for file_hash in _files(Path(str(resources.files(package)))))
    return hashed([*files, *((name, metadata.version(name)) for name in NUMERIC)])


def _files(folder: Path) -> Iterable[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and name.parts[0] != STARTER and "__pycache__" not in name.parts:
            yield f"{folder.name}/{name.as_posix()}", sha256(path.read_bytes()).hexdigest()


@cache
def platform_name() -> str:
    """The machine, and a hash of what numpy's kernels round on it, which decide the last bits of scores."""
    some = np.linspace(0.1, 9, 2500).reshape(50, 50)
    bits = [
        array.tobytes() for a in (some, some.astype(np.float32)) for array in (np.exp(a), np.log(a), a**0.3, a @ a)
    ]
    python = ".".join(platform.python_version_tuple()[:2])
    rounding = sha256(b"".join(bits)).hexdigest()[:8]
    return f"{platform.system()} {platform.machine()}, python {python}, rounding {rounding}"


def list_hash(*lists: Sequence[Scored]) -> str:
    """The hash of the ids of lists, in order."""
    return hashed([[id_ for id_, _ in ranking] for ranking in lists])[:LENGTH]


def scores_hash(*lists: Sequence[Scored]) -> str:
    """The hash of the scores of lists, by their bits."""
    values = [score for ranking in lists for _, score in ranking]
    return sha256(struct.pack(f"<{len(values)}d", *values)).hexdigest()[:LENGTH]


def alike(own: Sequence[Scored], kept: Sequence[Scored]) -> bool:
    """Whether two lists have as many places, and scores that are equal within the tolerance."""
    return len(own) == len(kept) and all(_near(a, b) for (_, a), (_, b) in zip(own, kept, strict=True))


def _near(a: float, b: float, times: int = 1) -> bool:
    return abs(a - b) <= times * TOLERANCE * max(1.0, abs(b))


def runs(ranking: Sequence[Scored]) -> tuple[Run, ...]:
    """Places [begin, end) whose scores follow each other within twice the tolerance; and the last such run."""
    scores = [score for _, score in ranking]
    breaks = [i for i, (a, b) in enumerate(pairwise(scores), 1) if not _near(a, b, 2)]
    places = pairwise([0, *breaks, len(ranking)])
    return tuple((begin, end) for begin, end in places if end - begin > 1 or end == len(ranking))


def settled_hash(lists: Sequence[Sequence[Scored]], ties: Sequence[Sequence[Run]]) -> str:
    """The hash of the ids of lists, whatever their order within the runs of each."""
    settled = [[id_ for id_, _ in row] for row in lists]
    for ids, own in zip(settled, ties, strict=False):
        for begin, end in own:
            ids[begin:end] = sorted(ids[begin:end]) if end < len(ids) else [""] * (len(ids) - begin)
    return hashed(settled)[:LENGTH]
