"""What to do next with a data set: steps by key, with the words of the command that does each.

A command that needs another one first is two steps, in the order in which they are done.
"""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from steelyard.base.errors import ConfigError, visible
from steelyard.base.extensions import installing, missing_modules
from steelyard.config import SearchConfig
from steelyard.embedders.embed import KINDS, TORCH_FREE, indexing_kind
from steelyard.systems import find_system
from steelyard_eval.common.configurations import written_name
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.corpus_and_queries import QUERIES
from steelyard_eval.datasets.manifest import holds_hash
from steelyard_eval.result.structs import Fact, Step

WEIGHTS = Path("search-weights.json")  # where weights go, unless another file is named
NEW = Path("search-weights.new.json")  # where other weights go, so that those which are named stay
SHORT = 60  # characters of a query that is printed in a command


def try_path(path: Path) -> Path:
    """search-weights.try.json for search-weights.json."""
    return path.with_name(f"{path.name.removesuffix('.json')}.try.json")


def current_path(path: Path) -> Path:
    """search-weights.current.json for search-weights.json."""
    return path.with_name(f"{path.name.removesuffix('.json')}.current.json")


def vault_of(dataset: Dataset) -> str:
    """The vault that the printed commands make of a data set: mine.db of the folder mine."""
    return "VAULT" if dataset.in_memory else shell_word(Path(f"{dataset.path.resolve().name}.db"))


def chosen_for(dataset: Dataset) -> str | None:
    """The weights file here that was chosen on a data set, instead of what is used today; None without one."""
    for file in (WEIGHTS, try_path(WEIGHTS)):
        with suppress(ConfigError):
            facts = SearchConfig.load(file).provenance
            if facts.get("dataset") == dataset.name and facts.get("verdict") != "keep":
                return str(file)
    return None


def using(key: str, path: Path, dataset: Dataset) -> Step:
    """Search with a weights file for the first query that is short and can be pasted; QUERY without any."""
    texts = (query.text for query in dataset.queries if len(query.text) <= SHORT and query.text.isprintable())
    asked = next((text for text in texts if not text.startswith("-")), "QUERY")
    return Step(key, {}, ["steelyard", "search", vault_of(dataset), asked, "--weights", str(path)])


def taking_turns(key: str, path: Path, dataset: Dataset) -> Step:
    """Serve a vault by both files of a try, in turns, and log what is done."""
    both = ["--weights", str(current_path(path)), "--explore", str(try_path(path)), "--share", "1"]
    return Step(key, {}, ["steelyard", "serve", vault_of(dataset), *both, "--log", "feedback.jsonl"])


def indexing(path: Path, dataset: Dataset, model: str) -> list[Step]:
    """Make the vault for a weights file; nothing for a data set in memory.

    `model` is of the vectors; where no embedder makes them, `index` cannot take it from the file.
    """
    weights = path if not model or indexing_kind(model) else None
    command = words_of("index", dataset, vault_of(dataset), options={"--weights": weights})
    return [Step("index_once", {}, command)] if command else []


def installed_first(steps: Sequence[Step], again: Sequence[str] = ()) -> list[Step]:
    """The steps, below the one that installs the model that they embed with, where it is not installed here.

    Which model that is stands in the weights file that is indexed for, which is there by now. `again` are the
    words of the command that made the answer; of a model that brings PyTorch it is also said how to do without.
    """
    files = [step.command[-1] for step in steps if step.key == "index_once" and "--weights" in step.command]
    models = {indexing_kind(model) for file in files for model in SearchConfig.load(file).models}
    absent: list[Step] = []
    for kind in filter(models.__contains__, KINDS):
        if needed := _installing("install_large" if kind in TORCH_FREE else "install", kind):
            absent += needed
            if again and (other := TORCH_FREE.get(kind)):
                absent += _installing("install_light", other)
                absent.append(Step("choose_light", {}, [*again, "--embedder", other]))
    return [*absent, *steps]


def _installing(key: str, kind: str) -> list[Step]:
    """Install what a kind of embedder needs; nothing for one that has no extra, or whose extra is here."""
    extra = KINDS.get(kind)
    return [Step(key, {}, shlex.split(installing(extra)))] if extra and missing_modules(extra) else []


def to_do(verdict: str, last: Sequence[Step], dataset: Dataset, model: str) -> list[Step]:
    """What to do under a verdict: which file to search with and, `last`, what would settle the rest.

    `model` is of the vectors that the weights were chosen with.
    """
    if verdict == "ship":
        return [*indexing(WEIGHTS, dataset, model), using("search", WEIGHTS, dataset)]
    if verdict == "try":
        file = try_path(WEIGHTS)
        return [*indexing(file, dataset, model), using("try_it", file, dataset), *last]
    return [*last]


def deciding(dataset: Dataset, job: str = "recommend") -> Step:
    """Decide by labels that are new; by `learn` they decide together with a log."""
    file = next((str(path) for path in (WEIGHTS, try_path(WEIGHTS)) if path.is_file()), None)
    return Step("decide", {"replaced": file}, words_of(job, dataset, options={}))


def label_step(dataset: Dataset, key: str, *contenders: str, option: str = "", **facts: Fact) -> Step:
    """Give the labels that tell most, of the usual contenders or of these; `option` has no value."""
    return Step(key, facts, words_of("judge", dataset, *contenders, options={option: True} if option else {}))


def label_random_step(dataset: Dataset, key: str, **facts: Fact) -> Step:
    """Label queries that are drawn at random, as `judge` does by itself but for duels."""
    return label_step(dataset, key, option="--random" if dataset.by_pairs else "", **facts)


def label_more_step(dataset: Dataset, wanted: int | None, purpose: str = "") -> list[Step]:
    """Label so many more queries, but never more than there are; None: how many is not known.

    `purpose` is "settle", "halve", "decide" or empty. Where all have labels, new queries are written first.
    """
    left, more = dataset.unlabelled, round_up(wanted) if wanted else None
    if left and more is None:
        return [label_random_step(dataset, "label_more")]
    if left and more is not None:
        key, meant = "label_and_write" if more > left else "label_so_many", {purpose: True} if purpose else {}
        return [label_random_step(dataset, key, left=left, more=more, **meant)]
    return writing(dataset, more, purpose)


def writing(dataset: Dataset, more: int | None = None, purpose: str = "") -> list[Step]:
    """Write so many new queries, accept their file, and label them; None: it is not known how many."""
    file = QUERIES if dataset.in_memory else shell_word(dataset.path / QUERIES)
    known: dict[str, Fact] = {"all": not dataset.unlabelled, "more": more, "file": file}
    known |= {purpose: True} if purpose else {}
    if not dataset.in_memory and (models := sorted(dataset.query_vectors)):  # which new queries need, too
        known["vectors"] = [f"queries.{visible(model)}.f16.npy" for model in models]
        known["embedders"] = [f"--embedder {kind}" for kind in _kinds_recorded(dataset)] or ["--embedder KIND"]
    told = label_random_step(dataset, "write_queries", **known)
    steps = [told]
    if queries_are_fixed(dataset) and not dataset.in_memory:
        accept = Step(told.key, told.facts, words_of("check", dataset, options={"--accept": True}))
        steps = [accept, Step("label_them", {}, told.command)]
    # what embeds new queries as the recorded ones were, where that is not here
    return [*steps, *(step for kind in _kinds_recorded(dataset) for step in _installing("install", kind))]


def queries_are_fixed(dataset: Dataset) -> bool:
    """Whether its queries.jsonl cannot grow by itself."""
    return dataset.in_memory or bool(dataset.query_vectors) or holds_hash(dataset.path, QUERIES)


def _kinds_recorded(dataset: Dataset) -> list[str]:
    return [] if dataset.in_memory else sorted({*map(indexing_kind, dataset.query_vectors)} - {""})


def round_up(more: int) -> int:
    """A number of queries that are still needed, in two digits.

    >>> round_up(37), round_up(183)
    (40, 180)
    """
    step = 10 ** max(len(str(more)) - 2, 1 if more >= 20 else 0)
    return max(step, round(more / step) * step)


def _unusual_depths(config: SearchConfig) -> dict[str, int | None]:
    usual, used = find_system(config.name).config(config.limit).depths, config.effective.signals
    return {
        name: depth for name, depth in config.depths.items() if name in used and depth != usual.get(name, depth)
    }


def describe_config(config: SearchConfig) -> str:
    """A configuration as one would write it: a system, its changed parameters, the strategy, unusual depths."""
    deep = sorted({depth for depth in _unusual_depths(config).values() if depth})
    depths = f" at depth {', '.join(map(str, deep))}" if deep else ""
    system, _, parameters = written_name(config).rstrip("]").partition("[")
    moved = f" with {parameters}" if parameters else ""
    lead = "" if system in ("plain", str(config.effective)) else f"{system} with "
    return f"{lead}{config.effective}{moved}{depths}"


def settings(config: SearchConfig) -> str | None:
    """What a search has that its system has not, apart from the strategy; None without anything.

    >>> settings(find_system("spec_kit[graph.hops=1]").config())
    'graph.hops=1'
    """
    told = [written_name(config).rstrip("]").partition("[")[2]]
    told += [f"{name}.depth={depth}" for name, depth in _unusual_depths(config).items()]
    usual = find_system(config.name).config(config.limit).finish
    told += [f"finish={', '.join(map(str, config.finish)) or 'none'}"] if config.finish != usual else []
    return ", ".join(filter(None, told)) or None


TAKE_EMBEDDER = frozenset("compare recommend tune learn judge gate explain".split())  # noqa: SIM905 -- one line


def words_of(job: str, dataset: Dataset, *words: str, options: Mapping[str, object]) -> list[str]:
    """The words of a command for the data set; none for a data set that is in memory alone.

    Options that are None are left out, and those that are True have no value. What embeds is named where it was
    chosen and dataset.json does not say it. No word is read as an option: it may be an id that anybody chose.

    >>> from steelyard_eval.datasets import load
    >>> from steelyard_eval.datasets.manifest import starter
    >>> options = {"--baseline": "bm25", "--split": None}
    >>> words_of("compare", load(starter()), "rrf(bm25, vector)", options=options)[3:]
    ['rrf(bm25, vector)', '--baseline', 'bm25']
    """
    if dataset.in_memory:
        return []
    own, chosen = [shell_word(dataset.path), *words], []
    if job in TAKE_EMBEDDER and "--recording" not in options:
        options = {**({"--embedder": dataset.embedder} if dataset.chosen else {}), **options}
    for name, value in options.items():
        chosen += [] if value is None else [name] if value is True else [name, str(value)]
    dashed = any(text.startswith("-") for text in words)
    return ["steelyard", job, *([*chosen, "--", *own] if dashed else [*own, *chosen])]


def shell_command(job: str, dataset: Dataset, *words: str, options: Mapping[str, object]) -> str | None:
    """The same, quoted for a shell; None for a data set that is in memory alone."""
    return shlex.join(words_of(job, dataset, *words, options=options)) or None


def shell_word(path: Path) -> str:
    """A path as a word of a command that is never read as an option.

    >>> shell_word(Path("--update")), shell_word(Path("mine"))
    ('./--update', 'mine')
    """
    return f"./{path}" if str(path).startswith("-") else str(path)
