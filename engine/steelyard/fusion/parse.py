"""From the grammar's calls to strategies: which names exist, what they take, and every fault at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steelyard.errors import ConfigError, nearest, shown
from steelyard.fusion.base import Expr, Term
from steelyard.fusion.by_intent import ByIntent
from steelyard.fusion.layered import Layered
from steelyard.fusion.normalize import NORMALIZERS
from steelyard.fusion.rrf import Bonus, Rrf
from steelyard.fusion.signal import Signal
from steelyard.fusion.tiered import Tiered
from steelyard.fusion.weighted_sum import WeightedSum
from steelyard.grammar import (
    MAX_LENGTH,
    Call,
    Duration,
    Item,
    amount_of,
    number_text,
    parse_call,
    value_text,
)
from steelyard.signals import PRIORS, Prior
from steelyard.table import FETCHED

FAMILIES = ("weighted_sum", "rrf", "tiered", "layered", "by_intent")
"""Every family by its name in the grammar."""
BONUSES = ("times", "once", "each")
MAX_WEIGHT = 1_000_000
"""Far beyond any sensible weight; without a bound a weight can make scores infinite."""
Option = float | Duration | tuple[float, ...] | Item


def parse_strategy(text: str) -> Expr:
    """Read a strategy; ``str`` of the result reads back as an equal one.

    Raises ConfigError naming every unknown name, option and value at once, with nearest spellings.

    >>> str(parse_strategy("tiered(fts, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))"))
    'tiered(fts, min_results=3, then=weighted_sum(0.3*fts, 0.7*vector, normalize=max))'
    """
    item = parse_call(text)
    builder = _Builder()
    if item.weight is not None:
        builder.problems.append(
            f"weight {number_text(item.weight)} before the whole strategy changes nothing; drop it"
        )
    strategy = builder.build(item.call)
    if builder.problems:
        raise ConfigError(f"strategy {shown(text, 200)}: " + "; ".join(builder.problems))
    if (length := len(str(strategy))) > MAX_LENGTH:
        raise ConfigError(
            f"strategy {shown(text, 200)} is {length} characters when its defaults are written out, "
            f"longer than {MAX_LENGTH}; shorten it"
        )
    return strategy


@dataclass
class _Options:
    """The options of one call, taken one by one; what is left over is unknown."""

    call: Call
    problems: list[str]

    def __post_init__(self) -> None:
        self.left = dict(self.call.options)
        if len(self.left) < len(self.call.options):
            self.problems.append(f"{self.call.name} has an option twice; write each once")

    def take(self, name: str) -> Option | None:
        return self.left.pop(name, None)

    def number(self, name: str, default: float, low: float, whole: bool = False) -> float:
        """A number of at least `low`; its default when it is not written."""
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, float) or value < low or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            self.bad(name, value, f"must be {kind} of at least {number_text(low)}")
            return default
        return value

    def word(self, name: str, default: str, valid: tuple[str, ...]) -> str:
        """One of the given words."""
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, Item) or value.weight is not None or value.call.items or value.call.options:
            self.bad(name, value, f"must be one of {', '.join(valid)}")
            return default
        if value.call.name not in valid:
            self.problems.append(f"unknown {name} {value.call.name!r}{nearest(value.call.name, valid)}")
            return default
        return value.call.name

    def bad(self, name: str, value: Option, rule: str) -> None:
        self.problems.append(f"{self.call.name}: {name} = {value_text(value)} {rule}")

    def finish(self, valid: tuple[str, ...]) -> None:
        """Name what was written but is not an option."""
        for name in self.left:
            hint = nearest(name, valid) if valid else "; it takes no options"
            self.problems.append(f"{self.call.name}: unknown option {name!r}{hint}")


def _prior_options(prior: Prior, options: _Options) -> list[tuple[str, Duration | str]]:
    """Spans are always written out; a word only where it is not the default."""
    values: list[tuple[str, Duration | str]] = []
    for name, default in prior.spans.items():
        value = options.take(name)
        if value is not None and (not isinstance(value, Duration) or value.amount <= 0):
            options.bad(name, value, "must be a positive span of time such as 365d or 69h")
            value = None
        values.append((name, value if isinstance(value, Duration) else default))
    for name, valid in prior.words.items():
        if (word := options.word(name, valid[0], valid)) != valid[0]:
            values.append((name, word))
    options.finish((*prior.spans, *prior.words))
    return values


class _Builder:
    """Builds strategies and collects problems; a faulty part becomes the signal fts and goes on."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.layers = 0
        self.fusions: dict[str, Callable[[Call, _Options], Expr]] = {
            "weighted_sum": self._weighted_sum,
            "rrf": self._rrf,
            "tiered": self._tiered,
            "layered": self._layered,
            "by_intent": self._by_intent,
        }

    def build(self, call: Call) -> Expr:
        options = _Options(call, self.problems)
        if call.name in self.fusions:
            return self.fusions[call.name](call, options)
        return self._signal(call, options)

    def _signal(self, call: Call, options: _Options) -> Expr:
        if call.name not in FETCHED and call.name not in PRIORS:
            valid = (*self.fusions, *FETCHED, *PRIORS)
            self.problems.append(
                f"unknown signal or fusion {call.name!r}{nearest(call.name, valid)}"
                if call.name
                else "a number stands where a signal or fusion is expected"
            )
            for item in call.items:  # so that faults inside are named too
                self.build(item.call)
            return Signal("fts")
        if call.items:
            self.problems.append(f"signal {call.name!r} takes no signals in brackets; remove them")
        if call.name not in PRIORS:
            options.finish(())
            return Signal(call.name)
        values = _prior_options(PRIORS[call.name], options)
        return Signal(call.name, tuple(values))

    def _terms(self, call: Call, default: float | None) -> tuple[Term, ...]:
        terms = []
        if not call.items:
            self.problems.append(f"{call.name} needs at least one signal or fusion in its brackets")
        for item in call.items:
            if item.weight is None and default is None:
                self.problems.append(f"{call.name}: {item.call.name} needs a weight, as in 0.5*{item.call.name}")
            weight = item.weight if item.weight is not None else default or 1.0
            if not 0 <= weight <= MAX_WEIGHT:
                self.problems.append(f"{call.name}: weight {number_text(weight)} is outside 0..{MAX_WEIGHT}")
            terms.append(Term(weight, self.build(item.call)))
        return tuple(terms) or (Term(1.0, Signal("fts")),)

    def _weighted_sum(self, call: Call, options: _Options) -> Expr:
        normalize = options.word("normalize", "none", tuple(NORMALIZERS))
        options.finish(("normalize",))
        return WeightedSum(self._terms(call, None), normalize)

    def _rrf(self, call: Call, options: _Options) -> Expr:
        k = options.number("k", 60.0, 0.0)
        bonus = self._bonus(options)
        options.finish(("k", "bonus"))
        return Rrf(self._terms(call, 1.0), k, bonus)

    def _bonus(self, options: _Options) -> Bonus | None:
        value = options.take("bonus")
        if value is None or value == Item(None, Call("none")):
            return None
        amount = amount_of(value) if isinstance(value, Item) and value.call.name in BONUSES else None
        if isinstance(value, Item) and amount is not None and 0 <= amount <= MAX_WEIGHT:
            return Bonus(value.call.name, amount)
        options.bad("bonus", value, f"must be none, times(x), once(x) or each(x) with x in 0..{MAX_WEIGHT}")
        return None

    def _tiered(self, call: Call, options: _Options) -> Expr:
        count = int(options.number("min_results", 3.0, 0.0, whole=True))
        then = options.take("then")
        options.finish(("min_results", "then"))
        if len(call.items) != 1 or call.items[0].weight is not None:
            self.problems.append("tiered takes one unweighted first tier, as in tiered(fts, then=vector)")
        first = self.build(call.items[0].call) if call.items else Signal("fts")
        return Tiered(first, self._branch(call, "then", then), count)

    def _branch(self, call: Call, name: str, value: Option | None) -> Expr:
        if not isinstance(value, Item) or value.weight is not None:
            self.problems.append(f"{call.name} needs {name}=, a strategy without a weight before it")
            return Signal("fts")
        return self.build(value.call)

    def _layered(self, call: Call, options: _Options) -> Expr:
        threshold = options.number("threshold", 0.5, -1.0)
        relax = options.take("relax")
        if relax is not None and not isinstance(relax, tuple):
            options.bad("relax", relax, "must be a list of thresholds such as [0.4, 0.3]")
            relax = None
        options.finish(("threshold", "relax"))
        if self.layers:  # each would double the work of those around it
            self.problems.append("layered inside layered; name the layers l0, l1, l2 in one")
        self.layers += 1
        terms = self._terms(call, None)
        self.layers -= 1
        return Layered(terms, threshold, (0.4, 0.3) if relax is None else relax)

    def _by_intent(self, call: Call, options: _Options) -> Expr:
        if call.items:
            self.problems.append("by_intent takes default= and one intent=strategy each; name the strategies")
        default = self._branch(call, "default", options.take("default"))
        cases = tuple((intent, self._branch(call, intent, value)) for intent, value in options.left.items())
        return ByIntent(default, cases)
