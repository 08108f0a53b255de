"""Search engines: `targets.json` declares what each of them takes, and a template beside it writes its documents.

A reason why an engine cannot have a strategy, and a note on an export, stand behind the traits of the exports that
they hold for. Traits are the names of a strategy's signals and its kind of fusion, and

- ``keywords``: it has a list of them; ``unsized``: it has vectors whose length is not known;
- ``fused``: more than one list is fused, or the kind is not ``alone``; ``weighted``: their weights differ;
  ``zero``: one of the weights is 0; ``k``: the constant of rrf is not 0;
- ``priors``: recency or importance is added to the score of the lists; ``fields``: keywords weigh some more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from steelyard.base.files import STRICT_JSON
from steelyard.config import SearchConfig
from steelyard.fusion import RECIPROCAL, Signal, Term, leaves
from steelyard.grammar import number_text
from steelyard_eval.export import base
from steelyard_eval.export.base import DATES, Fusion, Loss, Parts, Target

if TYPE_CHECKING:
    from jinja2 import Environment

ANY_SIZE = 384  # what stands for a length of vectors that is not known, which a note tells


@dataclass(frozen=True)
class Engine:
    """What is declared of an engine; `follows` and `says` are those of a `Target`."""

    follows: str
    says: str
    lacks: Mapping[str, str]  # why it has no other fusion, by kind, and why the constant of rrf is limited, by k
    notes: Sequence[tuple[str, str]]  # what to know of an export, behind the traits
    takes: Sequence[str] = ()  # the kinds of fusion of two lists that it has
    refuses: Sequence[tuple[str, str]] = ()  # why it cannot have these all the same, behind the traits
    k: tuple[int, int] = (0, 0)  # the least and the largest constant of rrf
    depth: tuple[str, int] | None = None  # what it calls the depth that all lists share, and the largest
    priors: bool = False  # whether recency and importance can be added to its scores
    program: bool = False  # whether it is searched by a program, and not by a document


ENGINES = {
    name: Engine(**declared)
    for name, declared in STRICT_JSON.decode(
        resources.files(__package__).joinpath("targets.json").read_text("utf-8")
    ).items()
}


@dataclass(frozen=True)
class Lists:
    """A search as an engine runs it: a fusion of lists, times `weight` where priors are added to its score.

    A prior is its `weight` alone for importance / 10, and has a `date` and a half-life in `seconds` for recency.
    """

    config: SearchConfig
    fusion: Fusion
    weight: float = 1.0
    priors: Sequence[Mapping[str, Any]] = ()

    @cached_property
    def depths(self) -> dict[str, int]:
        """The depth of each list; Lost where one has none."""
        return {name: base.depth_of(self.config, name) for name in self.fusion.weights}

    @cached_property
    def fields(self) -> dict[str, float]:
        """The weight of every field of its keywords."""
        keyword = base.keyword_of(self.fusion.weights)
        return base.fields(self.config, keyword) if keyword else {}

    @cached_property
    def traits(self) -> set[str]:
        """See the module."""
        fusion = self.fusion
        found = {
            "keywords": base.keyword_of(fusion.weights) is not None,
            "fused": fusion.kind != "alone",
            "weighted": not fusion.equal,
            "zero": not all(fusion.weights.values()),
            "k": fusion.k != 0,
            "unsized": "vector" in fusion.weights and base.dims(self.config) is None,
            "priors": bool(self.priors),
            "fields": len({*self.fields.values()}) > 1,
        }
        return {fusion.kind, *self.config.effective.signals, *(trait for trait, holds in found.items() if holds)}

    def told(self, behind: Sequence[tuple[str, str]]) -> list[str]:
        """The texts whose traits this search has."""
        return [text for traits, text in behind if self.traits.issuperset(traits.split())]

    def notes(self, engine: Engine, **words: str) -> list[str]:
        """What to know of its export; `words` replace ``$NAME`` in what is declared."""
        fields = ", ".join(f"{name} {number_text(weight)}" for name, weight in self.fields.items())
        notes = [Template(text).safe_substitute(words, fields=fields) for text in self.told(engine.notes)]
        dates = base.dates_of(leaves(self.config.effective))
        notes += [f"{date} is {DATES[date]}" for date in dates]
        if "updated_at" in dates:
            notes.append("an entry with valid_until fades at the end of its window here, and by its age there")
        if "importance" in self.traits:
            notes.append("importance is a number of 1 to 10")
        return notes + base.index_notes(self.config, self.fusion.weights)

    def facts(self) -> dict[str, Any]:
        """What every template gets."""
        config = self.config
        return {
            "strategy": config.effective,
            "limit": config.limit,
            "fusion": self.fusion,
            "fields": self.fields,
            "vector": "vector" in self.fusion.weights,
            "dims": base.dims(config),
            "size": base.dims(config) or ANY_SIZE,
            "dates": base.dates_of(leaves(config.effective)),
        }


def lists_in(config: SearchConfig, engine: Engine) -> Lists:
    """The lists of any strategy, for an engine with a language of its own for scores; Lost for two of keywords."""
    names = [name for name in base.LISTS if name in config.effective.signals]
    if {*base.KEYWORDS} <= {*names}:
        raise Loss(engine.lacks["fts bm25"])
    return Lists(config, Fusion("alone" if len(names) == 1 else "lists", dict.fromkeys(names, 1.0)))


def _read(config: SearchConfig, engine: Engine) -> Lists:
    """A strategy as lists and priors; Lost, with every reason, where the engine has no such search."""
    found, others = (engine.priors and base.with_priors(config.effective)) or ([], [])
    if not others:
        lists = Lists(config, base.hybrid(config.effective, engine.takes, engine.lacks))
    elif len(found) != 1:
        raise Loss(engine.lacks["none"])
    else:
        fusion = base.hybrid(found[0].expr, engine.takes, engine.lacks, scores=True)
        lists = Lists(config, fusion, found[0].weight, [*map(_prior, others)])
    losses, k = lists.told(engine.refuses), lists.fusion.k
    if lists.fusion.kind == RECIPROCAL and not (k == int(k) and engine.k[0] <= k <= engine.k[1]):
        limits = f"it is a whole number in {engine.k[0]}..{engine.k[1]} there"
        losses.append(f"k={number_text(k)}: {engine.lacks.get('k', limits)}")
    if losses:
        raise Loss(*losses)
    return lists


def _prior(term: Term) -> dict[str, Any]:
    if not isinstance(term.expr, Signal) or term.expr.name not in ("recency", "importance"):
        raise Loss(f"{term.expr} cannot be added to a score there; recency and importance can")
    found = {"weight": term.weight, "date": "", "seconds": 0.0}
    if term.expr.name == "recency":
        found |= {"date": base.date_of(term.expr), "seconds": base.half_life_of(term.expr)}
    return found


def _depths(lists: Lists, shared: tuple[str, int] | None) -> tuple[dict[str, int], list[str]]:
    """How deep each list is there, at least the limit, with a note on each that was tuned at another depth."""
    asked = lists.depths
    least = max([lists.config.limit, *(asked.values() if shared else ())])
    deep = {name: max(depth, least) for name, depth in asked.items()}
    if shared and least > shared[1]:
        what = f"depth {least} is beyond {shared[1]}, the most that {shared[0]} takes"
        raise Loss(f"{what}; tune with shallower lists")
    return deep, [
        f"{name} was tuned at depth {depth}, and is {deep[name]} deep there"
        for name, depth in asked.items()
        if depth != deep[name]
    ]


def _write(name: str, config: SearchConfig) -> Parts:
    """The parts of a JSON document, or a program, as the template of the engine has them."""
    engine = ENGINES[name]
    lists = _read(config, engine)
    depths, deeper = _depths(lists, engine.depth) if engine.depth or engine.priors else ({}, [])
    facts = lists.facts() | {"weight": lists.weight, "priors": lists.priors, "depths": depths}
    notes = [*lists.notes(engine), *deeper]
    if engine.program:
        return lambda: {"program": render(f"{name}.py.jinja", **facts)}, notes
    return lambda: STRICT_JSON.decode(render(f"{name}.json.jinja", **facts)), notes


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=PackageLoader("steelyard_eval", "export"),
        undefined=StrictUndefined,
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["number"] = number_text
    return made


def render(template: str, **facts: object) -> str:
    """The text of a template beside this module; it gets numbers, checked names, and texts of our own."""
    return _templates().get_template(template).render(facts)


OPENSEARCH, ELASTICSEARCH, WEAVIATE, QDRANT, LANCEDB = (
    Target(
        name, one.follows, one.says, partial(_write, name), "text" if one.program else "json", layout="$program"
    )
    for name in ("opensearch", "elasticsearch", "weaviate", "qdrant", "lancedb")
    for one in [ENGINES[name]]
)
