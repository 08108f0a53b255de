"""Exporters, which translate a configuration for another system or report what would be lost.

An exporter raises `Loss` with everything that its system cannot express; `steelyard_eval.export.export`
adds the strategy, the target and the remedy. A different ranking is never exported silently: what changes the
ranking of ordinary queries is a loss, and what depends on the system's own index, or on corner cases, is a note.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import Template
from typing import Any, cast

from steelyard.base.errors import quote, visible
from steelyard.base.files import canonical
from steelyard.config import SearchConfig
from steelyard.embedders.embed import DIMENSIONS
from steelyard.fusion import Expr, Linear, Signal, Term
from steelyard.grammar import Duration, number_text
from steelyard.retrievers import LAYERS, RETRIEVERS, SCORERS
from steelyard.stores.base import KeywordIndex
from steelyard.systems import find_system
from steelyard_eval.export.strategy_changes import analysis_notes

Documents = dict[str, Any] | Callable[[], dict[str, Any]]
"""The parts of a document by name, or what writes them: most exports are only asked whether there is one."""
Parts = tuple[Documents, list[str]]  # the parts of a document, and its notes


class Loss(Exception):  # noqa: N818 -- it names what is lost; users see the ConfigError made of it
    """What a system cannot express, one sentence for each loss."""

    def __init__(self, *losses: str) -> None:
        super().__init__("; ".join(losses))


@dataclass(frozen=True)
class Target:
    """A system to export to."""

    name: str  # as given to --to
    follows: str  # the documentation whose terms are used
    says: str  # a strategy that it can express, as the remedy in errors
    write: Callable[[SearchConfig], Parts]
    form: str = "json"  # or text
    intents: bool = False  # whether it has strategies by intent of its own
    layout: str = "$profile"  # what a text is made of, with $part for each part
    comment: str = "#"  # what a line of notes in a text begins with
    complete: bool = False  # whether it does all that a search does, finish stages and other similarities, too


@dataclass(frozen=True)
class Export:
    """An exported configuration: the parts of the document, and notes on them."""

    target: Target
    strategy: str
    made: Documents
    notes: tuple[str, ...]

    @cached_property
    def parts(self) -> dict[str, Any]:
        """The parts of the document by name."""
        return self.made() if callable(self.made) else self.made

    def to_json(self) -> dict[str, Any]:
        """Return the parts by name, and `about`: target, documentation, strategy and notes."""
        about: dict[str, Any] = {"target": self.target.name, "follows": self.target.follows}
        about |= {"strategy": self.strategy, "notes": list(self.notes)}
        return {"about": about, **self.parts}

    def __str__(self) -> str:
        """Return the text of the file: canonical JSON, or text with the notes as comments."""
        if self.target.form == "json":
            return canonical(self.to_json())
        head = [f"strategy: {self.strategy}", f"follows: {self.target.follows}", *self.notes]
        notes = "".join(f"{self.target.comment} {visible(line)}\n" for line in head)
        parts = {name: part if isinstance(part, str) else json.dumps(part) for name, part in self.parts.items()}
        return notes + Template(self.target.layout).substitute(parts)


KEYWORDS = ("fts", "bm25")
LISTS = (*KEYWORDS, "vector")
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")


@dataclass(frozen=True)
class Fusion:
    """Lists by the name of their signal, with their weights, in the order written.

    `kind` is ``alone`` (one list, unweighted), or the scale of a sum: `RECIPROCAL` with its `k`, or a
    normalisation. Multiplying all weights by a positive number multiplies every score of a weighted sum, or of RRF
    without a bonus, by the same number, so the order stays: `shares` relies on it, and is the only rescaling.
    """

    kind: str
    weights: Mapping[str, float]
    k: float = 0.0

    @property
    def equal(self) -> bool:
        """Whether all lists have the same weight."""
        return len(set(self.weights.values())) == 1

    def shares(self) -> dict[str, float]:
        """Return the weights divided by their sum, which changes no order; unchanged when they sum to 1."""
        total = sum(self.weights.values())
        if abs(total - 1.0) <= 1e-9:  # by rounding alone
            return dict(self.weights)
        return {name: weight / total for name, weight in self.weights.items()}


def hybrid(strategy: Expr, has: Collection[str], lacks: Mapping[str, str], *, scores: bool = False) -> Fusion:
    """Read the strategy as a fusion of at most one keyword list and one vector list.

    Raises Lost with everything that does not fit this form.

    Parameters
    ----------
    has: The kinds of fusion of two lists that the target expresses; all others are refused.
    lacks: By kind, why the target cannot express it; where it is not written, that there is no counterpart.
    scores: Whether scores matter and not only the order; if not, a fusion of one list is that list alone.
    """
    fusion = _fusion(strategy)
    if fusion.kind != "max" and len(fusion.weights) == 1 and any(fusion.weights.values()) and not scores:
        return Fusion("alone", fusion.weights)  # max flattens a list without a positive value
    losses = [] if fusion.kind in ("alone", *has) else [reason_for_fusion(fusion.kind, lacks)]
    if set(KEYWORDS) <= fusion.weights.keys():
        losses.append("fts and bm25 are two keyword lists, and a query there has one; keep one of them")
    if not any(fusion.weights.values()):
        losses.append("all weights are 0, so no list decides the order; weigh one of them")
    if losses:
        raise Loss(*losses)
    return fusion


def reason_for_fusion(kind: str, lacks: Mapping[str, str]) -> str:
    """Why a target cannot express a kind of fusion."""
    return lacks.get(kind, f"normalize={kind} has no counterpart")


def _fusion(strategy: Expr) -> Fusion:
    if isinstance(strategy, Signal):
        return Fusion("alone", weights_of([Term(1.0, strategy)]))
    described = strategy.describe()
    if described.beyond or not isinstance(described, Linear):
        raise Loss(described.beyond)
    return Fusion(described.scale, weights_of(described.terms), described.k)


def weights_of(terms: Sequence[Term]) -> dict[str, float]:
    """The weight of every list, summed when it is written twice; Lost for what is no list there."""
    if losses := [why for term in terms if (why := _why_no_list(term.expr))]:
        raise Loss(*dict.fromkeys(losses))
    weights: dict[str, float] = {}
    for term in terms:
        weights[str(term.expr)] = weights.get(str(term.expr), 0.0) + term.weight
    return weights


def _why_no_list(expr: Expr) -> str:
    """Why an expression is no list of keywords or vectors; empty where it is one."""
    if not isinstance(expr, Signal):
        return f"{expr} is a fusion inside a fusion"
    if expr.name in LISTS:
        return ""
    if expr.name in SCORERS:
        return f"{expr.name} re-scores what other retrievers found; a hybrid query only fuses lists"
    what = "a layer of entries, which is no list there" if expr.name in LAYERS else "no part of a hybrid query"
    return f"{expr.name} is {what}"


def with_priors(strategy: Expr) -> tuple[list[Term], list[Term]] | None:
    """The terms of a weighted sum of raw scores that find entries, and the others; None of anything else.

    Raises Lost when nothing finds entries.
    """
    described = strategy.describe()
    if not isinstance(described, Linear) or described.beyond or described.scale != "none":
        return None
    retrievers = [term for term in described.terms if term.expr.signals & RETRIEVERS]
    if not retrievers:
        raise Loss("no term finds entries of its own: the sum has neither a keyword list nor a vector list")
    return retrievers, [term for term in described.terms if term not in retrievers]


def keyword_of(names: Iterable[str]) -> str | None:
    """Return the keyword list among the names, or None."""
    return next((name for name in names if name in KEYWORDS), None)


def depth_of(config: SearchConfig, name: str) -> int:
    """Return the depth of a list; Lost when the configuration has none."""
    depth = config.depths.get(name)
    if depth is None:
        raise Loss(f"{name} has no depth here, and needs one there; write retrievers.{name}.depth")
    return depth


def integer(value: float, what: str, low: int, high: int) -> int:
    """Return a number that has to be an integer for the target; Lost when it is not, or is out of range."""
    if value != int(value) or not low <= value <= high:
        raise Loss(f"{what} {number_text(value)} is not a whole number in {low}..{high}")
    return int(value)


def fields(config: SearchConfig, name: str) -> dict[str, float]:
    """Return the weight of every keyword field; 1 for each when the configuration has no weights.

    Raises Lost for a name that would be more than a name there (a wildcard, a boost, a piece of a schema), or that
    of another field of the document.
    """
    weights = config.retrievers[name].field_weights if name in config.retrievers else {}
    if odd := [field for field in weights if not _FIELD.fullmatch(field) or field in TAKEN]:
        rule = "write at most 63 letters, digits, _, a letter first, and no name of another field there"
        raise Loss(f"{quote(odd[0])} is no name of a field; {rule}")
    index = find_system(config.name).reading.index
    return dict(weights) or dict.fromkeys(
        index.fields if isinstance(index, KeywordIndex) else ("title", "text"), 1.0
    )


def dims(config: SearchConfig) -> int | None:
    """How long the vectors are; None where the model is not one of ours."""
    return DIMENSIONS.get(config.retrievers["vector"].model) if "vector" in config.retrievers else None


def index_notes(config: SearchConfig, names: Collection[str]) -> list[str]:
    """Notes on what every engine decides by its own index."""
    notes = []
    if (keyword := keyword_of(names)) is not None:
        notes.append(f"{keyword} is the index's own keyword search: its analyzer, fields and BM25 make that list")
        notes.append(
            f"figures are of Steelyard's own {keyword}; to measure it there: docs/contenders.md, Endpoints"
        )
        notes += analysis_notes(config, keyword)
    if any(config.retrievers[name].filters == "after_cut" for name in names if name in config.retrievers):
        notes.append("there a filter acts before a list is cut; here some lists are cut first, and then filtered")
    return notes


DATES = {"updated_at": "the last update, else creation", "last_accessed_at": "the last access, else creation"}
"""The fields that age is counted from, and their meaning."""
TAKEN = {"id", "vector", "embedding", "keywords", "importance", "severity", "correction_count", *DATES}
"""The fields of documents that are none of keywords, and what engines call their own."""
_FIELDS = {"update": "updated_at", "access": "last_accessed_at"}


def date_of(recency: Signal) -> str:
    """Return the field that age is counted from; Lost when there is none."""
    if (since := str(recency.option("since"))) not in _FIELDS:
        raise Loss(f"{recency} reads no date: only valid_until moves it, and a decay there runs from a date")
    return _FIELDS[since]


def half_life_of(recency: Signal) -> float:
    """Return the half-life in seconds; Lost where age halves by another curve, or counts from creation alone."""
    if {"hyperbolic", "creation"} & {recency.option("curve"), recency.option("since")}:
        raise Loss(f"{recency} is no exponential decay since an update or access, and a decay there is")
    return cast(Duration, recency.option("half_life")).seconds


def dates_of(signals: Iterable[Signal]) -> list[str]:
    """The fields that signals named recency are counted from, each once, in order."""
    return list(dict.fromkeys(date_of(signal) for signal in signals if signal.name == "recency"))
