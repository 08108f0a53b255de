"""Filters define the scope of a search: the entries that it may return.

An entry passes when it satisfies every clause; a clause is one rule, or several of which one is enough. In
JSON, each field has the value or the tests that it must pass::

    {"project": "api"}                                      equals api
    {"type": ["rule", "pattern"]}                           is any of these
    {"tags": ["auth", "jwt"]}                               has all of these
    {"tags": {"all": [...], "none": [...]}}                 has all of these and none of those
    {"created_at": {"from": "2026-01-01", "before": ...}}   from, after, before, until
    {"uri": {"prefix": "cortex://session/"}}                begins with it, as plain text
    {"superseded": false}                                   no other entry replaces it
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.base.fields import LIST_FIELDS, NUMBER_FIELDS, TEXT_FIELDS, parse_time, read_number, read_text

if TYPE_CHECKING:
    from steelyard.memory.entry import Entry

Value = str | float
SUPERSEDED = "superseded"
"""A pseudo-field: whether another entry replaces the entry."""
FILTERABLE = (TEXT_FIELDS | NUMBER_FIELDS | LIST_FIELDS | {SUPERSEDED}) - {"id"}
"""The fields that a filter may name."""
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
            return value.startswith(tuple(map(str, self.values)))  # type: ignore[no-any-return]  # a text field
        held = set(value) if self.field in LIST_FIELDS else {value}
        if self.test == "all":
            return held.issuperset(self.values)
        return held.isdisjoint(self.values) == (self.test == "none")


@dataclass(frozen=True, slots=True)
class Filters:
    """The scope of a search: an entry has to pass at least one rule of every clause (case-sensitive)."""

    clauses: tuple[tuple[Rule, ...], ...] = ()

    @classmethod
    def of(cls, mapping: Mapping[str, object]) -> Filters:
        """Read the JSON form, which the module describes.

        Raises ConfigError listing every unknown field, every unknown test and every value of the wrong
        type for its field.
        """
        problems: list[str] = []
        rules = [rule for name, asked in mapping.items() for rule in _rules(name, asked, problems)]
        if problems:
            raise ConfigError("; ".join(problems))
        return cls.all_of(*((rule,) for rule in rules))

    @classmethod
    def all_of(cls, *clauses: tuple[Rule, ...]) -> Filters:
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
            if others or rule.test in tests or rule.test not in _tests(rule.field):
                return None
            values = [bool(value) if rule.field == SUPERSEDED else value for value in rule.values]
            tests[rule.test] = values[0] if rule.test in RANGES else values
        return record

    def __and__(self, other: Filters) -> Filters:
        """Combine two scopes to the entries that pass both."""
        return Filters.all_of(*self.clauses, *other.clauses) if self and other else self or other

    def __bool__(self) -> bool:
        return bool(self.clauses)

    def split(self, fields: Collection[str]) -> tuple[Filters, Filters]:
        """Split into the clauses that mention any other field and those that mention only these fields."""
        inside = tuple(clause for clause in self.clauses if all(rule.field in fields for rule in clause))
        return Filters(tuple(clause for clause in self.clauses if clause not in inside)), Filters(inside)

    def failed(self, entry: Entry) -> list[str]:
        """Describe every clause that the entry fails: its value, and what was wanted; see `Rule.admits`."""
        return [
            f"{_held(clause, entry)}, and the query asks: {' or '.join(map(_in_words, clause))}"
            for clause in self.clauses
            if not any(rule.admits(entry) for rule in clause)
        ]

    def __str__(self) -> str:
        return ", ".join(" or ".join(map(_in_words, clause)) for clause in self.clauses)


EVERYTHING = Filters()
"""The scope of all entries."""


@dataclass(frozen=True, slots=True)
class Visible(Filters):
    """What a caller may see, for `Searcher(visible=...)` and `seen_by` of a store.

    It is not a filter, and raises ConfigError where it is used as one: filters are asked of all entries, so
    that whether an entry is superseded would depend on some that the caller may not see.
    """

    def __and__(self, other: Filters) -> Filters:
        """Refuse; see the class."""
        raise ConfigError("what a caller may see is not a filter; pass it to seen_by and filter what that returns")

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


_WORDS = {"all": "holds all of", "none": "is none of", "absent": "is not given", "prefix": "begins with"}


def _in_words(rule: Rule) -> str:
    values = ", ".join(shown(value) for value in rule.values)
    if rule.test == "any":
        return f"{rule.field} is {values}" if len(rule.values) == 1 else f"{rule.field} is one of {values}"
    return f"{rule.field} {_WORDS.get(rule.test, rule.test)} {values}".strip()


def _held(clause: tuple[Rule, ...], entry: Entry) -> str:
    fields = dict.fromkeys("superseded_by" if rule.field == SUPERSEDED else rule.field for rule in clause)
    return ", ".join(f"{name} is {shown(getattr(entry, name))}" for name in fields)


def _rules(name: str, asked: object, problems: list[str]) -> list[Rule]:
    """The tests of one field as rules; what cannot be read is added to the problems."""
    if name not in FILTERABLE:
        problems.append(f"unknown filter field {shown(name)}{nearest(name, FILTERABLE)}")
        return []
    if not isinstance(asked, Mapping):
        asked = {"all" if name in LIST_FIELDS else "any": asked}
    rules = []
    valid = _tests(name)
    for test, values in asked.items():
        if test not in valid:
            problems.append(f"filter {shown(name)}: unknown test {shown(test)}{nearest(str(test), valid)}")
            continue
        many = values if isinstance(values, list | tuple) and test not in RANGES else [values]
        try:
            rules.append(Rule(name, test, tuple(_value(name, value) for value in many)))
        except (ValueError, OverflowError):
            problems.append(f"filter {shown(name)} = {shown(values)} must be {_kind(name)}")
    return rules


def _tests(name: str) -> tuple[str, ...]:
    if name in LIST_FIELDS:
        return ("all", "any", "none")
    if name == SUPERSEDED:
        return ("any",)
    return ("any", "none", *RANGES, *(() if name in NUMBER_FIELDS else ("prefix",)))


def _kind(name: str) -> str:
    if name == SUPERSEDED:
        return "true or false"
    return "a number or a date" if name in NUMBER_FIELDS else "a string of valid Unicode, or a list of such"


def _value(name: str, value: object) -> Value:
    if name == SUPERSEDED:
        if not isinstance(value, bool):
            raise ValueError("not a boolean")
        return float(value)
    if name not in NUMBER_FIELDS:
        return read_text(value)
    return parse_time(value) if isinstance(value, str) else read_number(value)
