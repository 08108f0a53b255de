"""PostgreSQL with pgvector: a table, and one statement that searches it.

A strategy becomes a chain of ``WITH`` queries: one for each list, and one for each fusion, whose rows (id, score)
may be a list of the next. `pgvector.json` has what families add up, by their names, in PostgreSQL's words; the
formulas are those of `steelyard.fusion.sums` and `steelyard.fusion.ranks`.
"""

import math
from importlib import resources
from string import Template
from typing import Any

from steelyard.base.files import STRICT_JSON
from steelyard.config import SearchConfig
from steelyard.fusion import Expr, Fallback, Signal
from steelyard.grammar import number_text
from steelyard.retrievers import RETRIEVER_KINDS, RETRIEVERS
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard_eval.export import base
from steelyard_eval.export.base import Loss, Parts, Target
from steelyard_eval.export.engines import ENGINES, lists_in, render
from steelyard_eval.result.sentences import ANALYZERS

ENGINE = ENGINES["pgvector"]
SQL = STRICT_JSON.decode(resources.files(__package__).joinpath("pgvector.json").read_text("utf-8"))
LETTERS = "ABCD"
UNDERFLOW = -700  # PostgreSQL refuses a number that is too small for a double: exponents of e go no further
TYPES = {"query text": "text", "query vector": "vector", "time of the search": "timestamptz"}


def write(config: SearchConfig) -> Parts:
    """The table and its indexes as `schema`, and the statement as `search`."""
    lists = lists_in(config, ENGINE)
    statement = _Statement(config)
    statement.ranked(config.effective)
    facts = lists.facts()
    weights = sorted({*facts["fields"].values()}, reverse=True)
    if len(weights) > len(LETTERS):
        raise Loss(f"keywords of fields with {len(weights)} weights: a tsvector has {len(LETTERS)}")
    facts["letters"] = dict(zip(LETTERS, weights, strict=False))
    columns = [column for name, column in SQL["columns"].items() if name in config.effective.signals]
    asked = ", ".join(f"${place} {what}" for place, what in enumerate(statement.asked, 1))
    return lambda: {
        "schema": render("pgvector.schema.sql.jinja", columns=columns, **facts),
        "search": render("pgvector.search.sql.jinja", steps=statement.steps, **facts),
    }, [note for note in lists.notes(ENGINE, parameters=asked) if not note.endswith(ANALYZERS["bm25"])]


class _Statement:
    """The ``WITH`` queries of a strategy, each after those that it reads, and what is asked, by place from 1."""

    def __init__(self, config: SearchConfig) -> None:
        self.config = config
        self.steps: list[dict[str, Any]] = []
        self.asked: list[str] = []

    def _ask(self, what: str) -> str:
        """The parameter that has this value."""
        if what not in self.asked:
            self.asked.append(what)
        return f"${self.asked.index(what) + 1}::{TYPES[what]}"

    def _step(self, kind: str, **facts: object) -> str:
        """The name of a new query, or that of an equal one."""
        known = (step["name"] for step in self.steps if step == {"name": step["name"], "kind": kind, **facts})
        name = next(known, f"{kind}{len(self.steps) + 1}")
        if all(step["name"] != name for step in self.steps):
            self.steps.append({"name": name, "kind": kind, **facts})
        return name

    def ranked(self, expr: Expr) -> str:
        """The query that ranks what an expression ranks; Lost where there is none with the same order."""
        told, options = expr.describe(), {name: getattr(expr, name) for name in expr.options()}
        if isinstance(expr, Signal):
            return self._list(expr)
        if isinstance(told, Fallback):
            first, then = self.ranked(told.first), self.ranked(told.then)
            return self._step("tiers", first=first, then=then, least=told.min_results)
        if "factors" in options:
            return self._boosted(options)
        if expr.keyword not in SQL["added"]:
            raise Loss(ENGINE.lacks.get(expr.keyword, told.beyond))
        return self._sum(expr, options)

    def _list(self, signal: Signal) -> str:
        if signal.name not in base.LISTS:
            raise Loss(f"{signal} is neither a list of keywords nor of vectors")
        depth = base.depth_of(self.config, signal.name)
        if signal.name == "vector":
            return self._step("vector", depth=depth, vector=self._ask("query vector"))
        settings = self.config.retrievers["bm25"] if signal.name == "bm25" else RetrieverConfig()
        options = RETRIEVER_KINDS["bm25"].values(settings)
        formula = {name: number_text(options[name]) for name in ("k1", "b")}
        mean = number_text(options["mean_length"]) if options["mean_length"] else "avg(length(keywords))"
        return self._step("keywords", depth=depth, text=self._ask("query text"), mean=mean, **formula)

    def _sum(self, expr: Expr, options: dict[str, Any]) -> str:
        """Terms that are added up: those that find entries, and what is computed of what they found."""
        terms = options["terms"]
        how = options.get("normalize", expr.keyword)
        if how not in SQL["scaled"]:
            raise Loss(base.reason_for_fusion(how, ENGINE.lacks))
        if how == "none" and len(terms) > 1 and any(_raw(term.expr) for term in terms):
            raise Loss(ENGINE.lacks["keywords none"])
        found = {term: self.ranked(term.expr) for term in terms if term.expr.signals & RETRIEVERS}
        if not found:
            raise Loss("no term finds entries of its own: the sum has neither a keyword list nor a vector list")
        rows = []
        for place, term in enumerate(terms):
            name = found.get(term) or self._step("prior", value=self._value(term.expr), lists=[*found.values()])
            k, phi = options.get("k", 0.0), options.get("phi", 0.0)
            given = {"k": k[place] if isinstance(k, tuple) else k, "phi": phi}
            given["low"] = -1.0 if str(term.expr) in ("vector", "cosine") else 0.0
            given["most"] = UNDERFLOW // math.log(phi) if phi else 1
            numbers = {key: number_text(value) for key, value in given.items()}
            rows.append((name, term.weight, Template(SQL["scaled"][how]).substitute(numbers)))
        added = SQL["added"][expr.keyword]
        if bonus := options.get("bonus"):
            added = Template(SQL["bonus"][bonus.kind]).substitute(sum=added, amount=number_text(bonus.amount))
        return self._step("sum", added=added, terms=rows)

    def _boosted(self, options: dict[str, Any]) -> str:
        if _raw(options["expr"]):
            raise Loss(ENGINE.lacks["keywords none"])
        name = self.ranked(options["expr"])
        factors = [
            f"(1 + {number_text(term.weight)} * ({self._value(term.expr)} - 1))" for term in options["factors"]
        ]
        low, high = number_text(options["low"]), number_text(options["high"])
        return self._step("boost", list=name, factors=factors, low=low, high=high)

    def _value(self, expr: Expr) -> str:
        """What is computed of an entry that was found."""
        if not isinstance(expr, Signal) or expr.name not in SQL["priors"]:
            raise Loss(f"{expr} is computed from what the statement does not ask for")
        words = {}
        if expr.name == "recency":
            words = {"date": base.date_of(expr), "seconds": number_text(base.half_life_of(expr))}
            words["now"] = self._ask("time of the search")
        elif expr.name == "cosine":
            words["vector"] = self._ask("query vector")
        return Template(SQL["priors"][expr.name]).substitute(words)


def _raw(expr: Expr) -> bool:
    """Whether a score is a raw one of FTS5, or made of such: its BM25 has another idf."""
    if isinstance(expr, Signal):
        return expr.name == "fts"
    scaled = "terms" in expr.options() and getattr(expr, "normalize", expr.keyword) != "none"
    return not scaled and any(map(_raw, expr.children))


LAYOUT = "$schema\nPREPARE search AS\n$search;\n"
PGVECTOR = Target("pgvector", ENGINE.follows, ENGINE.says, write, "text", layout=LAYOUT, comment="--")
