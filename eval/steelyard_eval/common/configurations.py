"""The grammar of what names a configuration, for commands, Python, data sets and baselines alike.

A configuration is a system (``echovault:shipped``, ``spec_kit[graph.hops=1]``), a strategy (``rrf(bm25, vector)``)
or a weights file; ``label=`` may precede it. What has lists alone is a contender too
(`steelyard_eval.compare.contenders`); here it is told from the others, and refused in one sentence.
"""

import os
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.base.errors import ConfigError, nearest, quote
from steelyard.base.files import open_unpacked
from steelyard.config import LISTS, SearchConfig
from steelyard.fusion import parse_strategy
from steelyard.grammar import number_text
from steelyard.retrievers import FETCHED
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard.signals import PRIORS
from steelyard.systems import SYSTEMS, find_system, plain_name

MCP_PREFIX = "mcp:"
USUAL_LIMIT = 10
LIST_KINDS = {"endpoint": "an endpoint", "run": "a run", "frame": "a table of lists", "function": "a function"}
_TERM = r"\s*(?:[0-9.]+\s*\*\s*)?[A-Za-z_]\w*\s*"
_SUM_WITHOUT_FUSION = re.compile(rf"(?=.*[+*]){_TERM}(?:\+{_TERM})*")
_LABELLED = re.compile(rf"\s*+(?!{MCP_PREFIX})([^=()/{{}}\[\]]+?)\s*=\s*(.+)", re.DOTALL)


@dataclass(frozen=True)
class Setting:
    """What configurations are built for."""

    limit: int | None  # length of the lists; None keeps the limit of a weights file, 0 that of a system, too
    model: str = ""  # of the vectors
    lists: tuple[str, ...] | None = None  # recorded lists of other engines; None where our retrievers search

    @property
    def size(self) -> int:
        """The limit, or the usual cutoff of metrics without one."""
        return self.limit or USUAL_LIMIT

    def strategy(self, text: str) -> SearchConfig:
        """Make a configuration of a strategy over the system `plain`, or over the recorded lists."""
        if self.lists is None:
            return find_system("plain").config(self.size, self.model).with_strategy(parse_strategy(text))
        config = find_system(LISTS).config(self.size)
        retrievers = {name: RetrieverConfig() for name in self.lists}
        return replace(config, strategy=parse_strategy(text, self.lists), retrievers=retrievers)


@dataclass(frozen=True)
class NamedConfig:
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
            return config.with_limit(setting.limit) if setting.limit else config
        if setting.lists is not None:
            raise ConfigError(
                f"{self.label} searches with its own retrievers, but the recording has lists of other engines "
                f"({', '.join(setting.lists)}); write a strategy over these"
            )
        size = None if setting.limit == 0 else setting.size
        return find_system(str(self.given)).config(size, setting.model, os.environ)


def lists_alone(text: str) -> str:
    """What kind of lists a text without a label names; empty where it names a configuration, if anything.

    >>> lists_alone("prod.run"), lists_alone("mcp:serve#find"), lists_alone("bm25")
    ('run', 'endpoint', '')
    """
    if text.startswith(("http://", "https://", MCP_PREFIX)):
        return "endpoint"
    return "run" if text.endswith(".run") or _is_run(text) else ""


def _is_run(text: str) -> bool:
    """Whether it is a file of another name that does not begin as a weights file does, or an export of one."""
    file = Path(text)
    if text.endswith(".json") or not file.is_file():
        return False
    try:
        with open_unpacked(file) as opened:
            return not (opened.read(12) or b"{").startswith((b"{", b"# strategy: ", b"-- strategy:"))
    except OSError:
        return False  # whoever reads it says why it cannot be read


def refuse_lists(label: str, kind: str) -> ConfigError:
    """Why lists cannot stand where weights are needed, and where they can."""
    return ConfigError(
        f"{label} is {LIST_KINDS[kind]}, which has lists and no weights; name a system, a strategy or a "
        "weights file here (lists go into compare, gate, judge, --current and --against)"
    )


def read_configuration(text: str, label: str = "", lists: Collection[str] = ()) -> NamedConfig:
    """Read a configuration; a name that is both a system and a signal means the system.

    `lists` are the names of recorded lists. Raises ConfigError for anything else.

    >>> read_configuration("mine=rrf(fts, vector)").label, read_configuration("w.json").kind
    ('mine', 'weights')
    """
    prefix, text = split_label(text)
    label = label or prefix
    if kind := lists_alone(text):
        raise refuse_lists(quote(label or text), kind)
    if text.endswith(".json"):
        return NamedConfig(label or Path(text).name, "weights", text)
    if text in lists or (lists and "(" in text):
        return NamedConfig(label or str(parse_strategy(text, lists)), "strategy", text)
    systems = {name.removesuffix(":documented"): name for name in SYSTEMS} | {name: name for name in SYSTEMS}
    if plain_name(text)[0] in systems:
        return NamedConfig(label or text.removesuffix(":documented"), "system", text)
    if "(" in text or text in FETCHED | PRIORS.keys():
        return NamedConfig(label or str(parse_strategy(text)), "strategy", text)
    if Path(text).exists():
        return NamedConfig(label or Path(text).name, "weights", text)
    if _SUM_WITHOUT_FUSION.fullmatch(text):
        terms = ", ".join(part.strip() if "*" in part else f"1*{part.strip()}" for part in text.split("+"))
        written = f"weighted_sum({terms}, normalize=minmax)"
        raise ConfigError(f"{quote(text)} names no fusion; a weighted sum is written '{written}'")
    raise ConfigError(
        f"{quote(text)} is not a system, strategy, weights file (*.json), TREC run (*.run), URL, mcp:COMMAND#TOOL"
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


def split_contenders(text: str) -> list[str]:
    """Split a string into contenders at commas and semicolons outside brackets.

    If a string has a URL or an MCP server, which may contain commas, a separator is a comma before white space.

    >>> split_contenders("bm25, rrf(bm25, vector); mine=prod.run")
    ['bm25', 'rrf(bm25, vector)', 'mine=prod.run']
    """
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        plain = "://" not in text and MCP_PREFIX not in text
        comma = character == "," and (plain or text[i + 1 : i + 2].isspace())
        if not depth and (comma or character == ";"):
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def split_label(text: str) -> tuple[str, str]:
    """Split text into its label, empty without one, and the rest.

    >>> split_label("today=http://localhost/search?q={query}#ids=hits"), split_label("bm25")
    (('today', 'http://localhost/search?q={query}#ids=hits'), ('', 'bm25'))
    """
    labelled = _LABELLED.fullmatch(text)
    return (labelled[1], labelled[2]) if labelled else ("", text.strip())


def short_name(label: str) -> str:
    """Drop the options of a prior, so that recency of two half-lives is one signal; others are unchanged.

    >>> short_name("recency(half_life=69h)"), short_name("rrf(fts, vector, k=60)")
    ('recency', 'rrf(fts, vector, k=60)')
    """
    name = label.partition("(")[0]
    return name if name in PRIORS else label


def written_name(config: SearchConfig) -> str:
    """How a command names the system of a configuration, with the parameters that are not the system's own."""
    usual = find_system(config.name).config().retrievers
    changed = [
        f"{name}.{parameter}={value if isinstance(value, str) else number_text(value)}"
        for name, retriever in config.retrievers.items()
        for parameter, value in retriever.parameters.items()
        if name not in usual or value != usual[name].parameters.get(parameter)
    ]
    return config.name.removesuffix(":documented") + (f"[{', '.join(changed)}]" if changed else "")
