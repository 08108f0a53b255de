"""What a derived signal declares, and the formulas: fields as they are, what fades, what kind an entry is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from steelyard.base.arrays import Floats
from steelyard.base.fields import END_OF_TIME, FIRST_TIME
from steelyard.base.files import data
from steelyard.grammar import Duration
from steelyard.memory.entry import DAY, fsrs
from steelyard.node import Option
from steelyard.table.signal_table import SignalTable


@dataclass(frozen=True)
class DerivedSignal:
    """A signal that is computed from facts, with its options: a decorator, or `partial` of it with options."""

    compute: "Callable[..., SignalValues]"
    options: Mapping[str, Option] = field(default_factory=dict)
    """Spans of time, which are printed always, and words, where they are not the default."""
    intents: frozenset[str] = frozenset()
    """The intents of a query that change it."""
    factor: bool = False
    """Whether it is made to multiply a score, which 1 leaves as it is, and not to be added to one."""
    unit: bool = True
    """Whether its values lie in 0..1."""
    reads: str | None = ""
    """The facts that it is computed from, in words; empty where its name says them, None where it reads none."""

    @property
    def name(self) -> str:
        """What expressions call it: the name of its function."""
        return self.compute.__name__

    def __call__(self, table: SignalTable, options: Mapping[str, Duration | str] | None = None) -> "SignalValues":
        """Compute the signal with these options and the defaults of the others."""
        return self.compute(table, **{name: o.default for name, o in self.options.items()} | dict(options or {}))


@dataclass(frozen=True)
class SignalValues:
    """Values float64[N], finite on every row, with the formula in words and its inputs (float64[N])."""

    values: Floats
    formula: str
    inputs: Mapping[str, Floats] = field(default_factory=dict)


@partial(DerivedSignal, reads=None)
def one(table: SignalTable) -> SignalValues:
    """1 for every entry, which shifts a scale: ``0.5*cosine + 0.5*one`` is (1 + cosine) / 2."""
    return SignalValues(np.ones(len(table)), "1")


@partial(DerivedSignal, factor=True, reads="lengths of texts")
def length(table: SignalTable) -> SignalValues:
    """``0.8 + 0.2 * characters / 100`` for a text of fewer than 100 characters, else 1. Source: REQ-008.

    White space around the text does not count.
    """
    characters = np.nan_to_num(table.fact("length"))
    values = 0.8 + (1.0 - 0.8) * np.minimum(1.0, characters / 100.0)
    return SignalValues(values, "0.8 + 0.2 * characters / 100, at most 1", {"characters": characters})


UNSTATED = 5.0
"""What MoltNet stores when no importance is given."""


@DerivedSignal
def importance(table: SignalTable) -> SignalValues:
    """Score ``importance / 10`` on a 1..10 scale; 0.5 where none is given. Source: MoltNet's document."""
    raw = np.nan_to_num(table.fact("importance"), nan=UNSTATED)
    return SignalValues(raw / 10.0, "importance / 10", {"importance": raw})


@partial(DerivedSignal, factor=True)
def corrections(table: SignalTable) -> SignalValues:
    """``1 / (1 + n)`` for an entry that was corrected n times, in (0, 1].

    The document says that the program learns from corrections, and not how; the formula is ours.
    """
    count = np.maximum(np.nan_to_num(table.fact("correction_count")), 0.0)
    return SignalValues(1.0 / (1.0 + count), "1 / (1 + corrections)", {"corrections": count})


@DerivedSignal
def domain(table: SignalTable) -> SignalValues:
    """Score 1.0 when the query names a domain and the entry has the same, else 0.0. Source: Soleri's document."""
    asked, about = table.query_facts.labels["domain"], table.entry_facts.labels["domain"]
    code = {word: float(place) for place, word in enumerate(asked.words) if word}
    same = asked.codes[table.query] == about.mapped(code, -1.0)[table.entry]
    return SignalValues(same.astype(np.float64), "1 when the query's domain equals the entry's, else 0")


@DerivedSignal
def tags(table: SignalTable) -> SignalValues:
    """Score the Jaccard similarity of the two tag sets, case-sensitive, in 0..1; 0 when the query has no tags.

    The tags in common are counted by one sorted look-up of pairs. Source: Soleri's document.
    """
    asked, about = table.query_facts.tags, table.entry_facts.tags
    sizes = np.diff(asked.offsets)[table.query]
    width = int(max(asked.codes.max(initial=-1), about.codes.max(initial=-1))) + 1
    held = np.repeat(np.arange(len(about.offsets) - 1), np.diff(about.offsets)) * width + about.codes
    rows = np.repeat(np.arange(len(table)), sizes)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    wanted = table.entry[rows].astype(np.int64) * width + asked.codes[asked.offsets[table.query[rows]] + within]
    places = np.searchsorted(held, wanted)  # sorted: owners ascend, codes ascend within an owner
    shared = np.bincount(rows[np.append(held, -1)[places] == wanted], minlength=len(table)).astype(np.int64)
    union = sizes + np.diff(about.offsets)[table.entry] - shared
    values = np.where(sizes > 0, shared / np.maximum(union, 1), 0.0)
    inputs = {"shared tags": shared.astype(np.float64), "tags of both": union.astype(np.float64)}
    return SignalValues(values, "shared tags / tags of both", inputs)


# What fades. Ages run to the query's clock, in seconds UTC.


def _first(table: SignalTable, *dates: str) -> Floats:
    """float64[N]: the first of these dates that an entry has; NaN without any."""
    since = np.full(len(table), np.nan)
    for name in reversed(dates):
        times = table.fact(name)
        since = np.where(np.isnan(times), since, times)
    return since


def _days(table: SignalTable, *dates: str) -> Floats:
    """float64[N]: days since the first of these dates that an entry has, none below 0; NaN without any."""
    return np.maximum((table.query_facts.numbers["clock"][table.query] - _first(table, *dates)) / DAY, 0.0)


@partial(DerivedSignal, unit=False, reads="dates")
def created(table: SignalTable) -> SignalValues:
    """When an entry was created among all dates that there are, in 0..1; an undated one is as new as the query."""
    dates = table.fact("created_at")
    stated = np.where(np.isnan(dates), table.query_facts.numbers["clock"][table.query], dates)
    values = np.clip((stated - FIRST_TIME) / (END_OF_TIME - FIRST_TIME), 0.0, 1.0)
    return SignalValues(values, "creation among the years 1 to 9999", {"days from 1970": stated / 86_400})


TABLES = data(__package__, "tables.json")
"""The numbers of system-spec-kit, from its code, null is without end; and the dates that recency reads."""
HALF_LIVES = {name: np.inf if days is None else days for name, days in TABLES["half_life_days"].items()}
"""Days in which a memory of each of the nine types fades to a half. Source: the code of system-spec-kit."""


@partial(DerivedSignal, reads="dates")
def decay(table: SignalTable) -> SignalValues:
    """``0.5 ^ (age / half-life)``, with the half-life of the entry's memory type, or its own, in (0, 1].

    Age runs from the last update, else creation; an entry of no type is declarative. Entries of an importance tier
    above normal, meta-cognitive ones and undated ones do not fade. Source: system-spec-kit's document and code.
    """
    labels, stated = table.entry_facts.labels, table.fact("half_life_days")
    usual = labels["memory_type"].mapped(HALF_LIVES, HALF_LIVES["declarative"])[table.entry]
    half = np.where(stated > 0, stated, usual)
    age = _days(table, "updated_at", "created_at")
    fades = labels["importance_tier"].equal("", "normal", "temporary")[table.entry]
    values = np.where(fades, 0.5 ** (np.nan_to_num(age) / half), 1.0)
    return SignalValues(values, "0.5 ^ (age in days / half-life)", {"age in days": age, "half-life": half})


@partial(DerivedSignal, reads="reviews")
def retrievability(table: SignalTable) -> SignalValues:
    """``(1 + 19/81 * t / S) ^ -0.5``: the chance of recall t days after the last review, in (0, 1].

    S is the stability, 1 day where none is given; t runs from creation where there was no review, and is 0 without
    any date. Source: FSRS (Ye, Su and Cao, 2022), as system-spec-kit's code has it.
    """
    stated = table.fact("stability")
    stability = np.where(stated > 0, stated, 1.0)
    age = _days(table, "last_review", "created_at")
    values = fsrs(np.nan_to_num(age), stability)
    return SignalValues(values, "(1 + 19/81 * t / stability) ^ -0.5", {"t": age, "stability": stability})


@partial(DerivedSignal, reads="counts of accesses")
def popularity(table: SignalTable) -> SignalValues:
    """``0.6 * min(1, log2(n + 1) / 5) + 0.4 * max(0, 1 - d / 90)`` for n uses, the last d days ago, in 0..1.

    0 for an entry that was never used. Source: system-spec-kit's code.
    """
    uses = np.nan_to_num(table.fact("access_count"))
    often = 0.6 * np.minimum(1.0, np.log2(np.maximum(uses, 0.0) + 1.0) / 5.0)
    lately = 0.4 * np.maximum(0.0, 1.0 - np.nan_to_num(_days(table, "last_accessed_at"), nan=90.0) / 90.0)
    values = np.where(uses > 0, often + lately, 0.0)
    return SignalValues(values, "0.6 * min(1, log2(uses + 1) / 5) + 0.4 * max(0, 1 - days / 90)", {"uses": uses})


SINCE: dict[str, list[str]] = TABLES["recency_since"]
"""What age is counted from: the last update, the last access, creation, or nothing in a system without dates."""


@partial(
    DerivedSignal,
    options={
        "half_life": Option("half_life", Duration(365, "d"), kind="span", tried=(Duration(90, "d"),)),
        "since": Option("since", "update", kind="word", words=tuple(SINCE), quiet=True),
        "curve": Option("curve", "exponential", kind="word", words=("exponential", "hyperbolic"), quiet=True),
    },
    reads="dates",
)
def recency(table: SignalTable, half_life: Duration, since: str, curve: str) -> SignalValues:
    """Score ``exp(-ln 2 * age / half_life)``; with curve=hyperbolic ``1 / (1 + age / half_life)``; in 0..1.

    Age is counted from the last update or access, else from creation, as `since` says; with ``never``, and without
    a date or with one after the clock, an entry counts as new: 1.0. Sources: Soleri's document, temporal decay;
    MoltNet's 0.99^hours since the last access is a half-life of 68.97 hours.

    Unless age is counted since the last access or creation, an entry with a `valid_until` is scored by its
    validity window instead: 1.0 while more than a quarter of it remains, then linearly down to 0 at its end
    (Soleri's document). The window opens at `valid_from`, else at creation; an empty window counts as full.
    """
    clock = table.query_facts.numbers["clock"][table.query]
    age = np.maximum(np.nan_to_num(clock - _first(table, *SINCE[since])), 0.0)
    span = f"half-life {half_life.amount:.4g}{half_life.unit}"
    if curve == "hyperbolic":
        values, formula = 1.0 / (1.0 + age / half_life.seconds), f"1 / (1 + age in days / {span})"
    else:
        values = np.exp(-np.log(2.0) * age / half_life.seconds)
        formula = f"exp(-ln 2 * age in days / {span})"
    inputs = {"age in days": age / DAY}
    if since not in ("access", "creation") and not np.isnan(table.entry_facts.numbers["valid_until"]).all():
        opened = _first(table, "valid_from", *(() if since == "never" else ("created_at",)))
        closes = table.fact("valid_until")
        width = closes - np.where(np.isnan(opened), clock, opened)
        left = np.where(width > 0, (closes - clock) / np.where(width > 0, width, 1.0), 1.0)
        left = np.where(np.isnan(closes), np.nan, np.where(closes <= clock, 0.0, left))
        values = np.where(np.isnan(left), values, np.clip(left / 0.25, 0.0, 1.0))
        formula += "; with a validity window, min(1, part of it left / 0.25)"
        inputs["part of the window left"] = left
    return SignalValues(values, formula, inputs)


# What kind of entry it is


def _looked_up(table: SignalTable, name: str, numbers: Mapping[str, float], other: float) -> SignalValues:
    words = ", ".join(f"{word} {value:g}" for word, value in numbers.items())
    values = table.entry_facts.labels[name].mapped(numbers, other)[table.entry]
    return SignalValues(values, f"{name}: {words}, else {other:g}")


@DerivedSignal
def severity(table: SignalTable) -> SignalValues:
    """Score critical 1.0, warning 0.7, suggestion 0.4, and any other label 0.4. Source: Soleri's document."""
    return _looked_up(table, "severity", {"critical": 1.0, "warning": 0.7, "suggestion": 0.4}, 0.4)


DOCUMENT_TYPES: dict[str, float] = TABLES["document_types"]
"""What a document type multiplies by. Source: the code of system-spec-kit (its document names no numbers)."""


@partial(DerivedSignal, factor=True, reads="document types")
def document_type(table: SignalTable) -> SignalValues:
    """The multiplier of the entry's document type, 0.6..2; 1 for any other type or none."""
    return _looked_up(table, "document_type", DOCUMENT_TYPES, 1.0)


@partial(DerivedSignal, factor=True, reads="spec levels")
def spec_level(table: SignalTable) -> SignalValues:
    """1 for a specification of level 1, 0.1 more for each level up to 3+; 1 where none is given.

    The numbers are ours: the document has the field and none.
    """
    return _looked_up(table, "spec_level", {"1": 1.0, "2": 1.1, "3": 1.2, "3+": 1.3}, 1.0)


TIERS: dict[str, dict[str, float]] = TABLES["importance_tiers"]
"""Three scales of the six importance tiers: the first is the default. Source: the code of system-spec-kit."""


@partial(
    DerivedSignal,
    options={"scale": Option("scale", "multiplier", kind="word", words=tuple(TIERS), quiet=True)},
    factor=True,
    reads="importance tiers",
)
def importance_tier(table: SignalTable, scale: str) -> SignalValues:
    """The entry's importance tier on one of three scales; an entry without one is normal."""
    return _looked_up(table, "importance_tier", TIERS[scale], TIERS[scale]["normal"])


PROMISED: dict[str, dict[str, list[str]]] = TABLES["preferred_types"]
"""The types of entries that each of the seven intents prefers.

The document names contents (patterns, error history, decisions ...); which memory and document types hold them
is our reading. The context types are those of the code.
"""


@partial(DerivedSignal, intents=frozenset(PROMISED), factor=True, reads="types of entries that an intent prefers")
def promised(table: SignalTable) -> SignalValues:
    """1.5 for an entry of a memory, document or context type that the query's intent prefers, else 1.

    The factor is ours: the document says that an intent prioritises types, and not by how much.
    """
    values = np.ones(len(table))
    for intent, fields in PROMISED.items():
        asked = table.query_facts.labels["intent"].equal(intent)[table.query]
        if asked.any():
            held = [table.entry_facts.labels[name].equal(*words) for name, words in fields.items()]
            values[asked & np.logical_or.reduce(held)[table.entry]] = 1.5
    return SignalValues(values, "1.5 for a type that the intent prefers, else 1")


FORMULAS = (
    *(recency, severity, importance, tags, domain, document_type, spec_level, importance_tier),
    *(decay, retrievability, popularity, corrections, created, one, length, promised),
)
