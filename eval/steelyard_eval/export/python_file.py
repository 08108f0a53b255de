"""Python: the search of a configuration as one file, which ranks the lists that anybody's retrievers found.

The file needs neither Steelyard nor any package. Every node of the strategy is a call of a function of
``python/functions.txt``, and only the functions that are called are in the file; ``python/file.py.j2`` writes the
calls, the finish stages and the rest. Sums are taken in the order of the engine, so that scores have its bits;
numpy may round powers, logarithms and exponentials otherwise than Python, by 1e-16.
"""

import ast
import re
from functools import cache
from importlib import resources
from inspect import getdoc
from textwrap import wrap
from typing import Any

from steelyard.base.errors import visible
from steelyard.config import LISTS, SearchConfig
from steelyard.finish.stages import Stage
from steelyard.fusion import Expr, Signal, Term
from steelyard.fusion.routing import Boost
from steelyard.retrievers import CANDIDATE_RETRIEVERS, EMBEDDING, SCORER_KINDS, SCORERS
from steelyard.retrievers.vector import COSINES
from steelyard.signals import PRIORS
from steelyard.stores.base import COSINE
from steelyard_eval.export.base import Loss, Parts, Target

TEXTS = resources.files(__package__) / "python"
MODULES = {"functools", "math", "operator", "statistics"}


@cache
def _macros() -> Any:  # noqa: ANN401 -- a module of macros, known by their names alone
    from jinja2 import Environment  # other targets do without it

    made = Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701 -- names pass `repr`
    made.filters["code"] = repr
    return made.from_string(TEXTS.joinpath("file.py.j2").read_text("utf-8")).module


@cache
def _functions() -> dict[str, str]:
    """The text of every function by its name; each stands behind those that it calls."""
    texts = TEXTS.joinpath("functions.txt").read_text("utf-8").rstrip().split("\n\n")
    return {text.removeprefix("def ").partition("(")[0]: text for text in texts}


def _names(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


class _File:
    """The file of a configuration, while it is written; the macros ask it for what they name.

    `parts` are the names of parts by the calls that make them, `depths` those of the lists that are read,
    `arguments` examples of the others, `known` what each of the values is, `features` what layered searches do.
    """

    def __init__(self, config: SearchConfig) -> None:
        self.config, self.others = config, config.system == LISTS  # other engines' order ranks equal scores
        self.order = "in_order" if self.others else "ordered"
        self.parts: dict[str, str] = {}
        self.depths: dict[str, int | None] = {}
        self.arguments: dict[str, Any] = {}
        self.known: dict[str, str] = {}
        self.features: set[str] = set()

    def text(self) -> str:
        """The whole file; Lost for what needs more than scores, and for what another package brings."""
        lines = [f"ranking = {self.order}(among({', '.join(self.answering(self.config.effective))}).items())"]
        for stage in self.config.finish:
            lines += self.finished(stage).splitlines()
        lines = [*(f"{name} = {call}" for call, name in self.parts.items()), *lines]
        functions, names = [], _names("\n".join([self.order, *lines]))
        for name, text in reversed(_functions().items()):
            if name in names:  # without the lines that are marked for a feature that this search lacks
                marked = (line.partition("  #? ") for line in text.split("\n"))
                functions.append("\n".join(line for line, _, mark in marked if mark in ("", *self.features)))
                names |= _names(functions[-1])
        return str(_macros().whole(self, functions[::-1], sorted(names & MODULES), lines))

    def finished(self, stage: Stage) -> str:
        return str(getattr(_macros(), stage.keyword, _macros().foreign)(self, stage))

    def lost(self, why: str) -> None:
        """Raise Loss."""
        raise Loss(why)

    def found(self, name: str) -> str:
        """A list of one retriever."""
        self.depths[name] = self.config.depths.get(name)
        return f"lists[{name!r}]"

    def values(self, signal: Signal | str) -> str:
        """The values of a signal that every entry has; the macros know what a scorer is."""
        kind, name = PRIORS.get(getattr(signal, "name", "")), str(signal)
        doc = (getdoc(kind.compute) or "").partition("\n")[0] if kind else ""
        self.known[name] = re.sub(r"[\\\"`]+", "", visible(doc))
        self.arguments.setdefault("values", {})[name] = {"a": 0.5, "b": 0.5, "c": 0.5}
        return f"values[{name!r}]"

    def ends(self, fusion: Expr, signal: Signal) -> str:
        """Between which ends the values of a signal lie: those of its formula, else those of a query."""
        if signal.name not in fusion.reads_ends:
            return str(SCORER_KINDS[signal.name].ends if signal.name in SCORER_KINDS else (0.0, 1.0))
        own = self.config.retrievers[signal.name]
        if signal.name in EMBEDDING and own.similarity == COSINE and not own.parameters.get("lift"):
            return str(COSINES)
        self.arguments.setdefault("ends", {})[signal.name] = (0.0, 1.0)
        return f"ends[{signal.name!r}]"

    def named(self, kind: str, call: str) -> str:
        """The name of a part that a call makes, the same for the same call; a long one is broken."""
        glued = re.sub(r"(?<![)\]}],) ", "\0", " ".join(call.split()))
        text = "\n        ".join(wrap(glued, 100, break_long_words=False)).replace("\0", " ")
        return self.parts.setdefault(text, f"{kind}_{len(self.parts) + 1}")

    def answering(self, expr: Expr, times: str = "") -> tuple[str, str]:
        """The part of an expression that answers alone, and what it may rank: candidates if it finds none."""
        part = self.part(expr, times)
        if expr.retrievers:
            return part, "ids"
        own = self.config.retrievers.keys()
        names = sorted(own if self.others else CANDIDATE_RETRIEVERS & own)
        return part, f"sorted({{{', '.join(f'*{self.found(name)}' for name in names)}}})"

    def whole(self, expr: Expr, times: str) -> str:
        """The part of an expression that answers some queries alone."""
        part, ids = self.answering(expr, times)
        return part if expr.retrievers else self.named("candidates", f"only({part}, {ids})")

    def part(self, expr: Expr, times: str = "") -> str:
        """A part that scores what an expression ranks; `times` is what multiplies a score, of its id."""
        if isinstance(expr, Boost):
            factor = self.named("factors", _macros().factors(self, expr))
            return self.part(expr.expr, " * ".join(filter(None, (f"{factor}(id)", times))))
        if isinstance(expr, Signal) and not times:
            return self.values(expr) if expr.name in PRIORS or expr.name in SCORERS else self.found(expr.name)
        if (macro := getattr(_macros(), expr.keyword, None)) is not None:
            call = macro(self, expr, times)
        else:
            terms = expr.own_terms or [Term(1.0, child) for child in expr.children or (expr,)]
            if expr.keyword in ("weighted_sum", "comb_sum"):  # at weight 0 a value of every entry adds nothing
                terms = [term for term in terms if term.weight or term.expr.retrievers]
            finds = [place for place, term in enumerate(terms) if term.expr.retrievers]
            call = _macros().fused(self, expr, times, terms, finds)
        part = self.named(expr.keyword, call)
        if self.others and len(expr.retrievers) == 1:  # ties follow the order of that list
            return self.named(expr.keyword, f"only({part}, {self.found(*expr.retrievers)})")
        return part


def _python(config: SearchConfig) -> Parts:
    for stage in config.finish:  # which alone can be lost of what is Steelyard's own
        _File(config).finished(stage)
    return lambda: {"profile": _File(config).text()}, []


PYTHON = Target("python", "Python 3.9", "omit rerank and mmr", _python, form="text", intents=True, complete=True)
