"""The scope of a search: which entries it may return at all.

Filters are clauses that all hold; a clause is one rule, or several of which one holds. As JSON, a field
stands with what is asked of it::

    {"project": "api"}                                      is api
    {"type": ["rule", "pattern"]}                           is one of them
    {"tags": ["auth", "jwt"]}                               holds all of them
    {"tags": {"all": [...], "none": [...]}}                 ... and none of those
    {"created_at": {"from": "2026-01-01", "before": ...}}   from, after, before, until
    {"uri": {"prefix": "cortex://session/"}}                begins with it, as plain text
    {"superseded": false}                                   no other entry has taken its place
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.errors import ConfigError, nearest, shown
from steelyard.fields import LIST_FIELDS, NUMBER_FIELDS, TEXT_FIELDS, parse_time, read_number, read_text

if TYPE_CHECKING:
    from steelyard.entry import Entry

Value = str | float
SUPERSEDED = "superseded"
"""Stands for a field: whether another entry has taken an entry's place."""
FILTERABLE = (TEXT_FIELDS | NUMBER_FIELDS | LIST_FIELDS | {SUPERSEDED}) - {"id"}
"""Fields a filter may name."""
RANGES = ("from", "after", "before", "until")
"""At least, more than, less than, at most."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What is asked of one field.

    `test` is any (is one of the values; tags: holds one), all (tags: holds every one), none (is, or
    holds, none), absent (no value is given), prefix (begins with one of the values, case and all), or one of
    `RANGES`, which an entry without a value fails.
    """

    field: str
    test: str
    values: tuple[Value, ...] = ()

    def admits(self, entry: Entry) -> bool:
        """Whether the entry passes. Relations of other entries, which also supersede, are not known here."""
        if self.field == SUPERSEDED:
            return bool(entry.superseded_by) == bool(self.values[0])
        value = getattr(entry, self.field)
        if self.test == "absent":
            return value in ("", None, ())
        if self.test in RANGES:
            return value is not None and _compare(self.test, value, self.values[0])
        if self.test == "prefix":
            return value.startswith(tuple(map(str, self.values)))  # type: ignore[no-any-return]  # a text field
        held = set(value) if self.field in LIST_FIELDS else {value}
        if self.test == "all":
            return held.issuperset(self.values)
        return held.isdisjoint(self.values) == (self.test == "none")


def _compare(test: str, value: Any, bound: Any) -> bool:  # noqa: ANN401 -- two numbers or two texts
    if test in ("from", "after"):
        return bool(value > bound or (test == "from" and value == bound))
    return bool(value < bound or (test == "until" and value == bound))


@dataclass(frozen=True, slots=True)
class Filters:
    """The scope of a search: of every clause, at least one rule holds (case-sensitive)."""

    clauses: tuple[tuple[Rule, ...], ...] = ()

    @classmethod
    def of(cls, mapping: Mapping[str, Any]) -> Filters:
        """Read the JSON form; see the module.

        Raises ConfigError naming every unknown field, every unknown test and every value that is of
        another kind than its field.
        """
        problems: list[str] = []
        rules = [rule for name, asked in mapping.items() for rule in _rules(name, asked, problems)]
        if problems:
            raise ConfigError("; ".join(problems))
        return cls.all_of(*((rule,) for rule in rules))

    @classmethod
    def all_of(cls, *clauses: tuple[Rule, ...]) -> Filters:
        """These clauses in their one order, each once, so that equal scopes are equal values."""
        return cls(tuple(sorted(set(clauses), key=repr)))

    def __and__(self, other: Filters) -> Filters:
        """The entries that both admit."""
        return Filters.all_of(*self.clauses, *other.clauses) if self and other else self or other

    def __bool__(self) -> bool:
        return bool(self.clauses)

    def split(self, fields: Collection[str]) -> tuple[Filters, Filters]:
        """The clauses about other fields, and those about none but these; both together are this scope."""
        own = tuple(clause for clause in self.clauses if all(rule.field in fields for rule in clause))
        return Filters(tuple(clause for clause in self.clauses if clause not in own)), Filters(own)

    def failed(self, entry: Entry) -> list[str]:
        """What the entry is, and what was asked, for every clause it does not pass; see `Rule.admits`."""
        return [
            f"{_held(clause, entry)}, the query asks for {_wanted(clause)}"
            for clause in self.clauses
            if not any(rule.admits(entry) for rule in clause)
        ]

    def __str__(self) -> str:
        return ", ".join(" or ".join(map(_in_words, clause)) for clause in self.clauses)


EVERYTHING = Filters()
"""The scope that leaves nothing out."""


def valid_at(clock: float) -> Filters:
    """The entries whose validity window holds the clock (seconds UTC): from `valid_from`, before `valid_until`."""
    return Filters.all_of(
        (Rule("valid_until", "absent"), Rule("valid_until", "after", (clock,))),
        (Rule("valid_from", "absent"), Rule("valid_from", "until", (clock,))),
    )


def visible_to(scopes: Mapping[str, tuple[str, ...]]) -> Filters:
    """The entries a caller may see: those that lie in one of the scopes named, by field (MoltNet's document).

    Without any scope it is none.

    >>> str(visible_to({"vault": ("notes",), "tenant": ("team-a", "team-b")}))
    "tenant is one of 'team-a', 'team-b' or vault is 'notes'"
    """
    clause = tuple(Rule(name, "any", values) for name, values in sorted(scopes.items()))
    return Filters.all_of(clause or (Rule("vault", "any"),))


_WORDS = {"all": "holds all of", "none": "is none of", "absent": "is not given", "prefix": "begins with"}


def _in_words(rule: Rule) -> str:
    values = ", ".join(shown(value) for value in rule.values)
    if rule.test == "any":
        return f"{rule.field} is {values}" if len(rule.values) == 1 else f"{rule.field} is one of {values}"
    return f"{rule.field} {_WORDS.get(rule.test, rule.test)} {values}".strip()


def _wanted(clause: tuple[Rule, ...]) -> str:
    first = clause[0]
    plain = len(clause) == 1 and first.test == "any" and len(first.values) == 1
    return shown(first.values[0]) if plain else " or ".join(map(_in_words, clause))


def _held(clause: tuple[Rule, ...], entry: Entry) -> str:
    fields = dict.fromkeys("superseded_by" if rule.field == SUPERSEDED else rule.field for rule in clause)
    return ", ".join(f"{name} is {shown(getattr(entry, name))}" for name in fields)


def _rules(name: str, asked: object, problems: list[str]) -> list[Rule]:
    """What is asked of one field, as rules; what cannot be read is added to the problems."""
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
