"""Reads contenders, and reduces their configurations to what a data set can supply.

A contender is a configuration (`steelyard_eval.common.configurations`), a TREC run (``*.run``), an HTTP endpoint
(``http://...``), a tool of an MCP server (``mcp:COMMAND#TOOL``), a table of lists, a function, a retriever in
Python, a transformer of PyTerrier, or a run of ranx; ``label=`` may precede any of them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, cast

from steelyard.base.errors import ConfigError, collect_errors, nearest, quote
from steelyard.base.extensions import installing, missing_modules
from steelyard.config import SearchConfig
from steelyard.embedders.embed import KINDS, TORCH_FREE
from steelyard.finish import stages_without
from steelyard.systems import SYSTEMS as KNOWN
from steelyard.table.signal_table import RERANK
from steelyard_eval.common import SYSTEMS, extension
from steelyard_eval.common.configurations import (
    NamedConfig,
    lists_alone,
    read_configuration,
    refuse_lists,
    split_contenders,
    split_label,
)
from steelyard_eval.common.tabular import Frame
from steelyard_eval.compare import python_searches as objects
from steelyard_eval.compare.list_contenders import ListContender, is_run, of_run
from steelyard_eval.datasets.manifest import EMBEDDERS
from steelyard_eval.recording.record import needed
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.structs import Fact, Message

Given: TypeAlias = (
    str | Path | SearchConfig | objects.Search | objects.AtAddress | NamedConfig | ListContender | Frame
    | objects.Transformer | objects.HasScores | objects.Invoked | objects.Retrieving
    | Mapping[str, Mapping[str, float] | Sequence[str]]
)  # fmt: skip
GivenMany: TypeAlias = Given | Sequence[Given] | Mapping[str, Given]
"""Several contenders: a string separated by commas, a list of strings and others, or a mapping from labels."""


@dataclass(frozen=True)
class Contender:
    """A configuration with a label, one row of a comparison; `kind` is system, strategy or weights."""

    label: str
    config: SearchConfig
    kind: str

    @property
    def family(self) -> str:
        """The kind of its fusion, or "single" for one signal."""
        return self.config.effective.shown_as


def read(given: Given, label: str = "", lists: Collection[str] = ()) -> NamedConfig | ListContender:
    """Read one contender; `lists` are the names of recorded lists.

    Raises ConfigError for anything that is not a contender, and DataError for a run that cannot be read.

    >>> read("mine=rrf(fts, vector)").label, read("bm25").kind, read("a", lists=["a"]).kind
    ('mine', 'system', 'strategy')
    """
    if isinstance(given, str | Path):
        prefix, text = split_label(str(given))
        kind = lists_alone(text)
        if kind == "run":
            return of_run(label or prefix or Path(text).name, Path(text))
        if kind:
            return read(extension("endpoints").endpoint(text), label or prefix)
        return read_configuration(text, label or prefix, lists)
    if isinstance(given, SearchConfig):
        return NamedConfig(label or given.name, "weights", given)
    if isinstance(given, NamedConfig | ListContender):
        return replace(given, label=label or given.label)
    from steelyard_eval.compare.python_contenders import of_object  # which most comparisons have none of

    return of_object(given, label)


def read_config(given: Given, lists: Collection[str] = ()) -> NamedConfig:
    """Read a contender that is a configuration; ConfigError for one that has lists alone."""
    named = read(given, lists=lists)
    if isinstance(named, NamedConfig):
        return named
    raise refuse_lists(named.label, named.kind)


def labelled(many: GivenMany) -> list[tuple[Given, str]]:
    """Each of several contenders, with the label that a mapping gives it, else an empty one."""
    if isinstance(many, Mapping) and not (many and is_run(many)):
        return [(cast("Given", given), label) for label, given in many.items()]
    several = many if isinstance(many, Sequence) and not isinstance(many, str) else [cast("Given", many)]
    parts = (split_contenders(given) if isinstance(given, str) else [given] for given in several)
    return [(part, "") for own in parts for part in own]


def read_all(
    many: GivenMany | None, lists: Collection[str] = ()
) -> list[Callable[[], NamedConfig | ListContender]]:
    """Make a reader for each contender, so that the faults of all of them can be reported together."""
    return [] if many is None else [partial(read, given, label, lists) for given, label in labelled(many)]


def with_newest(many: GivenMany | None) -> list[Given]:
    """The contenders, and the newest generation of each system among them, of all systems where none is named."""
    pairs = labelled(list(SYSTEMS) if many is None else many)
    named = {split_label(given)[1].partition("[")[0] for given, _ in pairs if isinstance(given, str)}
    newest = {f"{name.partition(':')[0]}:newest" for name in (named if many else KNOWN)} & KNOWN.keys()
    return [*(read(given, label) if label else given for given, label in pairs), *sorted(newest - named)]


def distinct(readers: Iterable[Callable[[], NamedConfig | ListContender]]) -> list[NamedConfig | ListContender]:
    """Read the contenders and check that labels are distinct; ConfigError lists every fault at once."""
    contenders = collect_errors(*readers)
    labels = [contender.label for contender in contenders]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ConfigError(f"duplicate label {', '.join(twice)}; rename one: label=CONTENDER")
    if not contenders:
        raise ConfigError("there is nothing to compare; name a system or a strategy")
    return contenders


def usable(space: Workspace, row: Contender) -> tuple[Contender, list[Message]]:
    """Reduce a contender to the signals that can be had, with a notice when any are missing, or a re-ranker.

    Raises ConfigError when nothing is left, or when weights were tuned with other vectors.
    """
    _check_model(space, row)
    if why := space.unranked(row.config):
        finish = stages_without(row.config.finish, {RERANK})
        bare, notices = usable(space, replace(row, config=replace(row.config, finish=finish)))
        return bare, [*notices, Message("not_reranked", {"label": row.label, "why": why})]
    asked = needed([row.config])
    missing = sorted(set(asked) - set(space.usable(asked)))
    left = row.config.without(missing)
    if left is None:
        raise ConfigError(
            f"{row.label} needs {', '.join(missing)}, which {space.dataset.called} cannot supply (embedder: "
            f"{space.model or 'none'}); leave it out, or use another embedder"
        )
    if left == row.config.effective:
        return row, []
    facts: dict[str, Fact] = {"label": row.label, "left": str(left), "missing": missing}
    facts |= {"data": space.dataset.called, "model": space.model or "none"}
    config = replace(row.config, strategy=left, by_intent={})
    return replace(row, config=config), [Message("reduced", facts)]


def _check_model(space: Workspace, row: Contender) -> None:
    models = {settings.model for settings in row.config.retrievers.values() if settings.model}
    if not (others := sorted(models - {space.model})):
        return
    dataset = space.dataset
    known, use = f"recorded:{others[0]}" if others[0] in dataset.query_vectors else others[0], ""
    if known.partition(":")[0] in EMBEDDERS:
        extra = KINDS.get(known)
        lacks = f", which needs {installing(extra)}" if extra and missing_modules(extra) else ""
        lacks += ", with PyTorch" if lacks and known in TORCH_FREE else ""
        use = f"use --embedder {known}{lacks}, or "
    raise ConfigError(
        f"{row.label} was tuned with the vectors of {', '.join(others)}, and {dataset.called} is searched with "
        f"{f'those of {space.model}' if space.model else 'none'} here; {use}tune it again here"
    )


def usual(lists: tuple[str, ...] | None) -> list[str]:
    """What is compared where nothing is named: the usual systems, or recorded lists, each alone and fused."""
    if lists is None:
        return list(SYSTEMS)
    return [*lists, *([f"rrf({', '.join(lists)})"] if len(lists) > 1 else [])]


def with_baseline(
    named: list[NamedConfig | ListContender], given: Given | None, lists: Collection[str], today: str
) -> tuple[str, list[NamedConfig | ListContender]]:
    """The label of the baseline, and the contenders including it, in front if it was not among them.

    Where none is given it is the label `today`, what is used today, if that is compared, else the first.
    """
    labels = [contender.label for contender in named]
    if given is None:
        return today if today in labels else labels[0], named
    if isinstance(given, str) and given.removesuffix(":documented") in labels:
        return given.removesuffix(":documented"), named
    try:
        added = read(given, lists=lists)
    except ConfigError as error:
        if isinstance(given, str) and "=" not in given and "(" not in given:
            raise ConfigError(f"baseline {quote(given)} is not compared{nearest(given, labels)}") from None
        raise ConfigError(f"baseline: {error}") from None
    return added.label, named if added.label in labels else [added, *named]
