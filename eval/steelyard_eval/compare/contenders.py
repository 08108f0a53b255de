"""Reads contenders, and reduces their configurations to what a data set can supply.

A contender is a system (``echovault:shipped``, ``spec_kit[graph.hops=1]``), a strategy (``rrf(bm25, vector)``), a
weights file (``*.json``), a TREC run (``*.run``), an HTTP endpoint (``http://...``), a tool of an MCP server
(``mcp:COMMAND#TOOL``), a table of lists, a function, a transformer of PyTerrier, or a run of
ranx; ``label=`` may precede any of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from steelyard.base.errors import ConfigError, nearest, shown, together
from steelyard.config.search_config import LISTS, SearchConfig
from steelyard.finish import stages_without
from steelyard.fusion import parse_strategy
from steelyard.retrievers import RetrieverConfig
from steelyard.signals import PRIORS
from steelyard.systems import SYSTEMS, find_system, plain_name
from steelyard.table.signal_table import FETCHED, RERANK
from steelyard_eval.compare.http_search import HttpSearch
from steelyard_eval.compare.list_contenders import (
    HasScores,
    ListContender,
    Search,
    Transformer,
    of_frame,
    of_run,
    of_scores,
    of_search,
    of_transformer,
)
from steelyard_eval.compare.mcp_search import PREFIX, McpSearch
from steelyard_eval.recording.record import needed
from steelyard_eval.recording.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd

Given: TypeAlias = (
    "str | Path | SearchConfig | Search | HttpSearch | McpSearch | Named | ListContender "
    "| pd.DataFrame | Transformer | HasScores"
)
"""One contender, as it may be written."""
GivenMany: TypeAlias = "Given | Sequence[Given] | Mapping[str, Given]"
"""Several contenders: one string separated by commas, a list, or a mapping from labels to contenders."""

LIMIT = 10
_TERM = r"\s*(?:[0-9.]+\s*\*\s*)?[A-Za-z_]\w*\s*"
_SUM = re.compile(rf"(?=.*[+*]){_TERM}(?:\+{_TERM})*")
"""A sum without the name of its fusion."""
_LABELLED = re.compile(rf"\s*+(?!{PREFIX})([^=()/{{}}\[\]]+?)\s*=\s*(.+)", re.DOTALL)


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


@dataclass(frozen=True)
class Setting:
    """What configurations are built for.

    Attributes
    ----------
    limit : int or None
        Length of the lists; None keeps the limit of a weights file.
    model : str
        The model of the vectors.
    lists : tuple of str or None
        The names of recorded lists of other engines; None when our own retrievers search.
    """

    limit: int | None
    model: str = ""
    lists: tuple[str, ...] | None = None

    @property
    def size(self) -> int:
        """The limit, or the usual cutoff of metrics without one."""
        return self.limit or LIMIT

    def strategy(self, text: str) -> SearchConfig:
        """Make a configuration of a strategy over the system `plain`, or over the recorded lists."""
        if self.lists is None:
            return find_system("plain").config(self.size, self.model).with_strategy(parse_strategy(text))
        config = find_system(LISTS).config(self.size)
        retrievers = {name: RetrieverConfig() for name in self.lists}
        return replace(config, strategy=parse_strategy(text, self.lists), retrievers=retrievers)


@dataclass(frozen=True)
class Named:
    """A configuration as it was written, not yet built for a data set; `kind` is system, strategy or weights."""

    label: str
    kind: str
    given: str | SearchConfig

    @property
    def word(self) -> str | None:
        """How a command names it; None for a configuration that exists in Python alone."""
        if not isinstance(self.given, str):
            return None
        return written_as(self.label, self.given)

    def config(self, setting: Setting) -> SearchConfig:
        """Build the configuration; ConfigError when it cannot be read, or needs retrievers that are not there."""
        if self.kind == "strategy":
            return setting.strategy(str(self.given))
        if self.kind == "weights":
            config = self.given if isinstance(self.given, SearchConfig) else SearchConfig.load(self.given)
            return config if setting.limit is None else config.with_limit(setting.limit)
        if setting.lists is not None:
            raise ConfigError(
                f"{self.label} searches with its own retrievers, and the recording has lists of other engines "
                f"({', '.join(setting.lists)}); write a strategy over these"
            )
        return find_system(str(self.given)).config(setting.size, setting.model, os.environ)


def read(given: Given, label: str = "", lists: Collection[str] = ()) -> Named | ListContender:
    """Read one contender; a name that is both a system and a signal means the system.

    `lists` are the names of recorded lists. Raises ConfigError for anything that is not a contender, and
    DataError for a run that cannot be read.

    >>> read("mine=rrf(fts, vector)").label, read("w.json").kind, read("bm25").kind, read("a", lists=["a"]).kind
    ('mine', 'weights', 'system', 'strategy')
    """
    if isinstance(given, str | Path):
        return _read_text(str(given), label, lists)
    if isinstance(given, SearchConfig):
        return Named(label or given.name, "weights", given)
    if isinstance(given, Named | ListContender):
        return replace(given, label=label or given.label)
    if isinstance(given, HttpSearch):
        return of_search(label or given.address, "endpoint", given.shown, given)
    if isinstance(given, McpSearch):
        return of_search(label or given.tool, "endpoint", given.shown, given)
    if isinstance(given, type):
        raise ConfigError(f"{shown(given)} is a class; give one of its objects")
    if hasattr(given, "columns"):
        return of_frame(label or "frame", cast("pd.DataFrame", given))
    if isinstance(given, HasScores):  # before transformers: a column of a table has both
        return of_scores(label or str(getattr(given, "name", None) or "run"), given)
    if isinstance(given, Transformer):
        return of_transformer(label or type(given).__name__, given)
    if callable(given):
        name = getattr(given, "__name__", type(given).__name__)
        return of_search(label or name, "function", name, given)
    raise ConfigError(
        f"{shown(given)} is no contender; name a system, a strategy, a file, a URL, a DataFrame, a function, a "
        "transformer or a run"
    )


def _read_text(text: str, label: str, lists: Collection[str]) -> Named | ListContender:
    own, text = _parted(text)
    label = label or own
    if text.startswith(("http://", "https://")):
        search = HttpSearch.of(text)
        return of_search(label or search.address, "endpoint", search.shown, search)
    if text.startswith(PREFIX):
        tool = McpSearch.of(text)
        return of_search(label or tool.tool, "endpoint", tool.shown, tool)
    if text.endswith(".run"):
        return of_run(label or Path(text).name, Path(text))
    if text.endswith(".json"):
        return Named(label or Path(text).name, "weights", text)
    return _read_name(text, label, lists)


def _read_name(text: str, label: str, lists: Collection[str]) -> Named:
    if text in lists or (lists and "(" in text):
        return Named(label or str(parse_strategy(text, lists)), "strategy", text)
    systems = {name.removesuffix(":documented"): name for name in SYSTEMS} | {name: name for name in SYSTEMS}
    if plain_name(text)[0] in systems:
        return Named(label or text.removesuffix(":documented"), "system", text)
    if "(" in text or text in FETCHED | PRIORS.keys():
        return Named(label or str(parse_strategy(text)), "strategy", text)
    if Path(text).is_file():
        return read_weights(text if not label else f"{label}={text}")
    if _SUM.fullmatch(text):
        terms = ", ".join(part.strip() if "*" in part else f"1*{part.strip()}" for part in text.split("+"))
        raise ConfigError(f"{shown(text)} names no fusion; a weighted sum is written 'weighted_sum({terms})'")
    raise ConfigError(
        f"{shown(text)} is no system, strategy, weights file (*.json), TREC run (*.run), URL or mcp:COMMAND#TOOL"
        f"{nearest(text.partition(':')[0], {name.removesuffix(':documented') for name in SYSTEMS} | set(lists))}"
    )


def written_as(label: str, given: str) -> str:
    """A contender as a command names it, with its label where that is not the usual one.

    >>> written_as("bm25", "bm25"), written_as("prod.run", "runs/prod.run"), written_as("mine", "bm25")
    ('bm25', 'runs/prod.run', 'mine=bm25')
    """
    labelled = f"{label}={given}"
    usual = label in (given, given.removesuffix(":documented"), Path(given).name)
    return given if usual or not _LABELLED.fullmatch(labelled) else labelled


def separate(text: str) -> list[str]:
    """Split a string into contenders at commas and semicolons outside brackets.

    In a string with a URL or an MCP server only a comma before white space separates, because both may contain
    commas.

    >>> separate("bm25, rrf(bm25, vector); mine=prod.run")
    ['bm25', 'rrf(bm25, vector)', 'mine=prod.run']
    """
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        plain = "://" not in text and PREFIX not in text
        comma = character == "," and (plain or text[at + 1 : at + 2].isspace())
        if not depth and (comma or character == ";"):
            parts.append(text[start:at])
            start = at + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def read_all(many: GivenMany | None, lists: Collection[str] = ()) -> list[Callable[[], Named | ListContender]]:
    """Make a reader for each contender, so that the faults of all of them can be reported together."""
    if many is None:
        return []
    if isinstance(many, Mapping):
        return [partial(read, given, label, lists) for label, given in many.items()]
    if isinstance(many, str):
        return [partial(read, part, "", lists) for part in separate(many)]
    if isinstance(many, Sequence):
        return [partial(read, given, "", lists) for given in many]
    return [partial(read, many, "", lists)]


def read_systems(many: str | Iterable[str]) -> list[Callable[[], Named | ListContender]]:
    """Make a reader for each system; an unknown name is reported as an unknown system."""
    names = separate(many) if isinstance(many, str) else list(many)
    return [partial(read_system, name) for name in names]


def read_system(text: str) -> Named:
    """Read one system, with an optional label; ConfigError for an unknown name."""
    label, name = _parted(text)
    find_system(name)
    return Named(label or name.removesuffix(":documented"), "system", name)


def read_strategies(
    many: str | Iterable[str], lists: Collection[str] = ()
) -> list[Callable[[], Named | ListContender]]:
    """Make a reader for each strategy, including a single signal that has the name of a system."""
    texts = separate(many) if isinstance(many, str) else list(many)
    return [partial(read_strategy, text, lists) for text in texts]


def read_strategy(text: str, lists: Collection[str] = ()) -> Named:
    """Read one strategy, with an optional label; ConfigError when it cannot be parsed."""
    label, written = _parted(text)
    return Named(label or str(parse_strategy(written, lists)), "strategy", written)


def read_weights(text: str) -> Named:
    """Read one weights file of any name, with an optional label."""
    label, path = _parted(text)
    return Named(label or Path(path).name, "weights", path)


def read_run_file(text: str) -> ListContender:
    """Read one TREC run of any name, with an optional label; DataError when it cannot be read."""
    label, path = _parted(text)
    return of_run(label or Path(path).name, Path(path))


def without_label(text: str) -> str:
    """The text of a contender without its label.

    >>> without_label("today=http://localhost/search?q={query}#ids=hits"), without_label("bm25")
    ('http://localhost/search?q={query}#ids=hits', 'bm25')
    """
    return _parted(text)[1]


def _parted(text: str) -> tuple[str, str]:
    """Split text into its label, empty without one, and the rest."""
    labelled = _LABELLED.fullmatch(text)
    return (labelled[1], labelled[2]) if labelled else ("", text.strip())


def distinct(readers: Iterable[Callable[[], Named | ListContender]]) -> list[Named | ListContender]:
    """Read the contenders and check that labels are distinct; ConfigError lists every fault at once."""
    found = together(*readers)
    labels = [one.label for one in found]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ConfigError(f"{', '.join(twice)} is named twice; write label= before one of them")
    if not found:
        raise ConfigError("there is nothing to compare; name a system or a strategy")
    return found


def usable(space: Workspace, row: Contender) -> tuple[Contender, list[str]]:
    """Reduce a contender to the signals that can be had, with a notice when any are missing, or a re-ranker.

    Raises ConfigError when nothing is left.
    """
    if why := space.unranked(row.config):
        finish = stages_without(row.config.finish, {RERANK})
        bare, notices = usable(space, replace(row, config=replace(row.config, finish=finish)))
        return bare, [*notices, f"{row.label} is not re-ranked: {why}"]
    asked = needed([row.config])
    missing = sorted(set(asked) - set(space.usable(asked)))
    left = row.config.without(missing)
    lack = f"{', '.join(missing)}, which {space.dataset.name} cannot supply (embedder: {space.model or 'none'})"
    if left is None:
        raise ConfigError(f"{row.label} needs {lack}; leave it out, or use another embedder")
    if left == row.config.effective:
        return row, []
    config = replace(row.config, strategy=left, by_intent={})
    return replace(row, config=config), [f"{row.label} runs as {left}, without {lack}"]
