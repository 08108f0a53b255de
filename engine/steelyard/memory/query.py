"""Queries with the check and cleaning of their text, and filters, the scope of a search: what it may return.

An entry passes filters when it satisfies every clause; a clause is one rule, or several of which one is enough.
In JSON, each field has the value or the tests that it must pass::

    {"project": "api"}                                      equals api
    {"type": ["rule", "pattern"]}                           is any of these
    {"tags": ["auth", "jwt"]}                               has all of these
    {"tags": {"all": [...], "none": [...]}}                 has all of these and none of those
    {"created_at": {"from": "2026-01-01", "before": ...}}   from, after, before, until
    {"uri": {"prefix": "cortex://session/"}}                begins with it, as plain text
    {"superseded": false}                                   no other entry replaces it
"""

import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from steelyard.base.errors import ConfigError, collect_errors, nearest, quote
from steelyard.base.fields import LIST_FIELDS, READERS, parse_time, read_flag, read_number, read_text
from steelyard.memory.entry import Entry

Value = str | float
SUPERSEDED = "superseded"
"""A pseudo-field: whether another entry replaces the entry."""
FILTERABLE = frozenset(READERS.keys() | {SUPERSEDED}) - {"id"}
_ORDER = {"from": operator.ge, "after": operator.gt, "before": operator.lt, "until": operator.le}
RANGES = tuple(_ORDER)
"""Tests of order: at least, more than, less than, at most."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A test of one field.

    The test is ``any`` (the field is one of the values, or tags contain one), ``all`` (tags contain every value),
    ``none`` (the field is none of the values, or tags contain none), ``absent`` (the field is empty), ``prefix``
    (the text begins with one of the values, case and all), or one of `RANGES`, which an entry without a value
    fails. Times are seconds UTC.
    """

    field: str
    test: str
    values: tuple[Value, ...] = ()

    def admits(self, entry: Entry) -> bool:
        """Whether the entry passes. Relations of other entries, which may supersede it, are not considered."""
        if self.field == SUPERSEDED:
            return bool(entry.superseded_by) == bool(self.values[0])
        value = getattr(entry, self.field)
        if self.test == "absent":
            return value in ("", None, ())
        if self.test in RANGES:
            return value is not None and bool(_ORDER[self.test](value, self.values[0]))
        if self.test == "prefix":
            return bool(value.startswith(tuple(map(str, self.values))))
        held = set(value) if self.field in LIST_FIELDS else {value}
        if self.test == "all":
            return held.issuperset(self.values)
        return held.isdisjoint(self.values) == (self.test == "none")

    def __str__(self) -> str:
        words = {"all": "holds all of", "none": "is none of", "absent": "is not given", "prefix": "begins with"}
        test = "is one of" if len(self.values) != 1 else "is"
        test = test if self.test == "any" else words.get(self.test, self.test)
        return f"{self.field} {test} {', '.join(map(quote, self.values))}".strip()


@dataclass(frozen=True, slots=True)
class Filters:
    """The scope of a search: an entry has to pass at least one rule of every clause (case-sensitive)."""

    clauses: tuple[tuple[Rule, ...], ...] = ()

    @classmethod
    def of(cls, mapping: Mapping[str, object]) -> "Filters":
        """Read the JSON form, which the module describes; ConfigError says of every field what it cannot be."""
        rules = collect_errors(*(partial(_rules_of_field, name, asked) for name, asked in mapping.items()))
        return cls.all_of(*((rule,) for of_field in rules for rule in of_field))

    @classmethod
    def all_of(cls, *clauses: tuple[Rule, ...]) -> "Filters":
        """Make filters from clauses, sorted and without repetition, so that equal scopes are equal values."""
        return cls(tuple(sorted(set(clauses), key=repr)))

    def to_json(self) -> dict[str, dict[str, object]] | None:
        """The JSON form, which `of` reads back as equal filters; None for clauses that it cannot say.

        >>> Filters.of({"tags": "auth", "created_at": {"from": 5}}).to_json()
        {'created_at': {'from': 5.0}, 'tags': {'all': ['auth']}}
        """
        record: dict[str, dict[str, object]] = {}
        for clause in self.clauses:
            (rule, *others), tests = clause, record.setdefault(clause[0].field, {})
            if others or rule.test in tests or rule.test not in _taken(rule.field)[0]:
                return None
            values = [bool(value) if rule.field == SUPERSEDED else value for value in rule.values]
            tests[rule.test] = values[0] if rule.test in RANGES else values
        return record

    def __and__(self, other: "Filters") -> "Filters":
        """Combine two scopes to the entries that pass both."""
        return Filters.all_of(*self.clauses, *other.clauses) if self and other else self or other

    def __bool__(self) -> bool:
        return bool(self.clauses)

    def split(self, fields: Collection[str]) -> "tuple[Filters, Filters]":
        """Split into the clauses that mention any other field and those that mention only these fields."""
        inside = tuple(clause for clause in self.clauses if all(rule.field in fields for rule in clause))
        return Filters(tuple(clause for clause in self.clauses if clause not in inside)), Filters(inside)

    def failed(self, entry: Entry) -> list[str]:
        """Describe every clause that the entry fails: its value, and what was wanted; see `Rule.admits`."""
        described = []
        for clause in self.clauses:
            if not any(rule.admits(entry) for rule in clause):
                names = dict.fromkeys("superseded_by" if r.field == SUPERSEDED else r.field for r in clause)
                held = ", ".join(f"{name} is {quote(getattr(entry, name))}" for name in names)
                described.append(f"{held}, and the query asks: {' or '.join(map(str, clause))}")
        return described

    def __str__(self) -> str:
        return ", ".join(" or ".join(map(str, clause)) for clause in self.clauses)


EVERYTHING = Filters()


@dataclass(frozen=True, slots=True)
class Visible(Filters):
    """What a caller may see, for `Searcher(visible=...)` and `seen_by` of a store.

    It is not a filter, and raises ConfigError where it is used as one: filters are asked of all entries, so
    that whether an entry is superseded would depend on some that the caller may not see.
    """

    def __and__(self, other: Filters) -> Filters:
        raise ConfigError("a scope is not a filter; pass it to seen_by, and filter the result")

    __rand__ = __and__


def valid_at(clock: float) -> Filters:
    """Return the scope of entries valid at the clock (seconds UTC): from `valid_from`, before `valid_until`."""
    return Filters.all_of(
        (Rule("valid_until", "absent"), Rule("valid_until", "after", (clock,))),
        (Rule("valid_from", "absent"), Rule("valid_from", "until", (clock,))),
    )


def visible_to(scopes: Mapping[str, tuple[str, ...]]) -> Visible:
    """Return what a caller may see: entries in any of the named scopes (MoltNet's document).

    Without any scope the caller sees nothing.

    >>> str(visible_to({"vault": ("notes",), "tenant": ("team-a", "team-b")}))
    "tenant is one of 'team-a', 'team-b' or vault is 'notes'"
    """
    clause = tuple(Rule(name, "any", values) for name, values in sorted(scopes.items()))
    return Visible((clause or (Rule("vault", "any"),),))


def _rules_of_field(name: str, asked: object) -> list[Rule]:
    if name not in FILTERABLE:
        fields = f"; valid: {', '.join(sorted(FILTERABLE))}"
        raise ConfigError(f"unknown filter field {quote(name)}{nearest(name, FILTERABLE) or fields}")
    if not isinstance(asked, Mapping):
        asked = {"all" if name in LIST_FIELDS else "any": asked}
    rules = []
    valid, rule, read = _taken(name)
    for test, values in asked.items():
        if test not in valid:
            raise ConfigError(f"filter {quote(name)}: unknown test {quote(test)}{nearest(str(test), valid)}")
        many = values if isinstance(values, list | tuple) and test not in RANGES else [values]
        try:
            rules.append(Rule(name, test, tuple(map(read, many))))
        except (ValueError, OverflowError):
            raise ConfigError(f"filter {quote(name)} = {quote(values)} must be {rule}") from None
    return rules


def _number_or_date(value: object) -> float:
    return parse_time(value) if isinstance(value, str) else read_number(value)


def _taken(name: str) -> tuple[tuple[str, ...], str, Callable[[object], Value]]:
    """The tests that a field can be put to, what a value has to be, in words, and what reads it."""
    if name == SUPERSEDED:
        return ("any",), "true or false", lambda value: float(read_flag(value))
    if READERS[name] in (read_number, parse_time):
        return ("any", "none", *RANGES), "a number or a date", _number_or_date
    tests = ("all", "any", "none") if name in LIST_FIELDS else ("any", "none", *RANGES, "prefix")
    return tests, "a string of valid Unicode, or a list of such", read_text


class Intent(NamedTuple):
    """What a query is for; empty where that does not matter."""

    name: str = ""
    confidence: float | None = None
    """How sure the classifier is, 0..1; None where it has no measure."""
    scores: Mapping[str, float] = {}
    """The score of every intent that it considered."""


def no_intent(text: str) -> Intent:
    """No intent, whatever the text asks."""
    return Intent()


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a search or a data set: the text as the user wrote it, and the scope in `filters`.

    `asked_at` is the query's clock, seconds UTC; None for that of the searcher or the data set. `intent` chooses
    the strategy where a configuration has one for each, `confidence`, 0..1, is how sure the system's classifier is
    of it (None where it was given, or has no measure). Reports break results down by `category`; queries of one
    `group` share a cause, and statistics treat them as dependent. Signals compare `tags` and `domain` with those
    of entries. `split` is the part of the data set that it belongs to. `answerable` is False where a person or a
    source says that nothing in the memory answers it. Keywords match `matched`, None for the cleaned text;
    `rewritten` is embedded, None for the text.
    """

    text: str
    id: str = ""
    filters: Filters = EVERYTHING
    asked_at: float | None = None
    intent: str = ""
    category: str = ""
    group: str = ""
    tags: tuple[str, ...] = ()
    domain: str = ""
    split: str = ""
    answerable: bool = True
    matched: str | None = None
    rewritten: str | None = None
    confidence: float | None = None

    @property
    def embedded(self) -> str:
        """The text that is embedded."""
        return self.text if self.rewritten is None else self.rewritten

    @property
    def keywords(self) -> str:
        """The text that keywords match; ConfigError when it cannot be searched (see `clean_query`)."""
        return clean_query(self.text) if self.matched is None else self.matched


MAX_WORDS = 1000
"""More than any query needs; the time of FTS5's bm25 grows with the square of the number of words."""
_CONTROLS = dict.fromkeys((*range(32), 127), " ")


def clean_query(text: str) -> str:
    """Clean the text of a query for searching: control characters become blanks.

    Raises ConfigError when nothing is left, for more than `MAX_WORDS` words, and for invalid Unicode.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"query {quote(text)} is not valid Unicode; send it as UTF-8") from None
    if is_blank(text):
        raise ConfigError(f"query {quote(text)} is empty; type at least one word")
    if (words := count_words(text)) > MAX_WORDS:
        raise ConfigError(f"query {quote(text)} has {words} words, more than {MAX_WORDS}; shorten it")
    return text.translate(_CONTROLS)


def count_words(text: str) -> int:
    """Count the words that a query builder could make of the text, at most.

    >>> count_words("jwt-style tokens ?")
    3
    """
    return max(len(text.split()), len(re.findall(r"\w+", text)))


def is_blank(text: str) -> bool:
    """Whether the text consists of white space and control characters."""
    return not text.translate(_CONTROLS).strip()


def unchanged(text: str) -> str:
    """The text as it is."""
    return text
