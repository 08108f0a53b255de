"""What differs between two strategies, part by part, and what an index elsewhere has to do for options of bm25."""

from dataclasses import dataclass
from typing import Any

from steelyard.config import SearchConfig
from steelyard.fusion import Expr, Signal, Term
from steelyard.grammar import number_text, value_text
from steelyard.retrievers import RETRIEVER_KINDS
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard_eval.result.sentences import ANALYZERS


@dataclass(frozen=True)
class Change:
    """A part of a strategy before and after; `dropped` where it does nothing any more."""

    name: str
    old: str
    new: str
    dropped: bool

    def __str__(self) -> str:
        return f"{self.name} {self.new} instead of {self.old}"


def changes(old: Expr, new: Expr, where: str = "") -> list[Change]:
    """Every weight and option that differs; of parts that do not correspond, the whole part.

    >>> from steelyard.fusion import parse_strategy
    >>> one, other = map(parse_strategy, ("rrf(fts, vector, k=60)", "rrf(fts, 0*vector, k=20)"))
    >>> [str(change) for change in changes(one, other)]
    ['weight of vector 0 instead of 1', 'k 20 instead of 60']
    """
    before, after = _parts(old), _parts(new)
    if (_name(old), len(old.own_terms)) != (_name(new), len(new.own_terms)):
        return [Change(f"strategy{where}", str(old), str(new), dropped=False)]
    found: list[Change] = []
    for name in before | after:
        was, now = before.get(name), after.get(name)
        if isinstance(was, Term) and isinstance(now, Term):
            if was.weight != now.weight:
                weights = number_text(was.weight), number_text(now.weight)
                found.append(Change(f"weight of {_name(was.expr)}{where}", *weights, dropped=not now.weight))
            found += changes(was.expr, now.expr, where)
        elif isinstance(was, Expr) and isinstance(now, Expr):
            bare = name in old.options() and old.options()[name].bare
            found += changes(was, now, where if bare else f" for {name}")
        elif was != now:
            old_text, new_text = ("none" if value in (None, ()) else value_text(value) for value in (was, now))
            found.append(Change(f"{name}{where}", old_text, new_text, dropped=now in (None, ())))
    return found


def _parts(expr: Expr) -> dict[str, Any]:
    """What an expression is made of: its options by name, its terms by place, its cases by theirs."""
    if isinstance(expr, Signal):
        return dict(expr.given)
    parts: dict[str, Any] = {}
    for name, option in expr.options().items():
        value = getattr(expr, name)
        if option.kind == "terms":
            parts |= {str(place): term for place, term in enumerate(value)}
        else:
            parts |= dict(value) if option.kind == "cases" else {name: value}
    return parts


def _name(expr: Expr) -> str:
    return str(expr).partition("(")[0]


def analysis_notes(config: SearchConfig, keyword: str) -> list[str]:
    """What the index of another engine has to do for each option of the keywords that is not the default."""
    usual = RETRIEVER_KINDS[keyword].values(RetrieverConfig())
    return [
        f"{keyword}.{name}={value_text(value)}: {ANALYZERS.get(f'{keyword}.{name}', ANALYZERS['bm25'])}"
        for name, value in config.retrievers.get(keyword, RetrieverConfig()).parameters.items()
        if value != usual[name]
    ]
