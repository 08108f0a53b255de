"""What a derived signal declares beside its formula: options with their defaults, and how tuning may use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from steelyard.grammar import Duration
from steelyard.signals.derived import Derived
from steelyard.table.signal_table import SignalTable

NO_OPTIONS: Mapping[str, Duration | str] = MappingProxyType({})


@dataclass(frozen=True)
class Prior:
    """A derived signal with its options: spans of time with their defaults, and words, the first the default.

    It is used as a decorator: `@Prior`, or `@partial(Prior, reads="dates")` where there is something to declare.
    """

    compute: Callable[..., Derived]
    spans: dict[str, Duration] = field(default_factory=dict)
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    intents: frozenset[str] = frozenset()
    """The intents of a query that change it."""
    first: dict[str, Duration] = field(default_factory=dict)
    """The spans that tuning starts from, where they are not the defaults."""

    factor: bool = False
    """Whether it is made to multiply a score, which 1 leaves as it is, and not to be added to one."""

    unit: bool = True
    """Whether its values lie in 0..1."""

    reads: str | None = ""
    """The facts that it is computed from, in words; empty where its name says them, None where it reads none."""

    def written(self) -> list[str]:
        """The signal as tuning tries it at first: once with each of its words, as expressions write them."""
        spans = [f"{option}={span.amount:g}{span.unit}" for option, span in self.first.items()]
        words = [(f"{option}={word}",) for option, valid in self.words.items() for word in valid[1:]]
        tried = [[*spans, *word] for word in [(), *words]]
        return [f"{self.name}({', '.join(options)})" if options else self.name for options in tried]

    @property
    def name(self) -> str:
        """What expressions call it: the name of its function."""
        return self.compute.__name__

    def __call__(self, table: SignalTable, options: Mapping[str, Duration | str] = NO_OPTIONS) -> Derived:
        """Compute the signal with these options and the defaults of the others."""
        return self.compute(table, **{**self.spans, **{name: v[0] for name, v in self.words.items()}, **options})
