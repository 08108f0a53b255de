"""Entries, queries, filters and times as they are read from JSON."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.base.errors import ConfigError
from steelyard.base.fields import format_time, parse_time
from steelyard.memory.entry import Relation, read_entry
from steelyard.memory.query import Filters
from steelyard_eval.datasets.corpus_and_queries import read_query

# date -u -d @1795305600  ->  2026-11-22T00:00:00Z
MIDNIGHT = 1795305600.0


@pytest.fixture
def far_east(monkeypatch):
    """Put the machine's clock nine hours ahead of UTC."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


class TestTimes:
    @pytest.mark.parametrize(
        ("written", "seconds"),
        [
            ("2026-11-22", MIDNIGHT),
            ("2026-11-22T00:00:00", MIDNIGHT),
            ("2026-11-22T00:00:00Z", MIDNIGHT),
            ("2026-11-22T02:00:00+02:00", MIDNIGHT),
            ("2026-11-22T00:00:00.250Z", MIDNIGHT + 0.25),
            ("1969-12-31T23:59:59", -1.0),
            (1795305600, MIDNIGHT),
            (1.5, 1.5),
        ],
    )
    def test_a_time_without_zone_is_utc_wherever_the_machine_stands(self, written, seconds, far_east):
        assert parse_time(written) == seconds

    @pytest.mark.parametrize(
        "written",
        ["", "yesterday", "2026-13-01", "22.11.2026", True, None, [], float("nan"), float("inf")],
    )
    def test_what_is_not_a_time_is_refused(self, written):
        with pytest.raises(ValueError, match=r"\w"):
            parse_time(written)

    @pytest.mark.parametrize("written", [1e17, 1795305600000, 1e300, "9999-12-31T23:59:59-14:00"])
    def test_a_time_beyond_the_calendar_is_refused(self, written):
        with pytest.raises((ValueError, OverflowError)):
            parse_time(written)

    @given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)))
    def test_whole_seconds_survive_writing_and_reading(self, moment):
        seconds = float(int(moment.replace(tzinfo=UTC).timestamp()))
        assert parse_time(format_time(seconds)) == seconds


class TestFields:
    def test_an_entry_is_read_field_by_field(self):
        record = {
            "id": "e1",
            "title": "Ann",
            "tags": ["a", "b"],
            "importance": 7,
            "created_at": "2026-11-22",
            "relations": [{"type": "next", "target": "e2", "strength": 0.5}, {"type": "old", "target": "e3"}],
            "severity": None,
            "turn_index": 4,
        }
        entry, faults = read_entry(record)

        assert faults == []
        assert (entry.id, entry.title, entry.text, entry.severity) == ("e1", "Ann", "", "")
        assert (entry.tags, entry.importance, entry.created_at) == (("a", "b"), 7.0, MIDNIGHT)
        assert entry.relations == (Relation("next", "e2", 0.5), Relation("old", "e3"))
        assert entry.extra == {"turn_index": 4}

    @pytest.mark.parametrize(
        ("field", "value", "rule"),
        [
            ("title", 5, "must be a string"),
            ("text", "\ud800", "must be a string of valid Unicode"),
            ("importance", "high", "must be a finite number"),
            ("importance", float("nan"), "must be a finite number"),
            ("importance", 10**400, "must be a finite number"),
            ("tags", "a b", "must be a list of strings"),
            ("tags", ["a", 1], "must be a list of strings"),
            ("relations", [{"type": "next"}], "must be a list of relations"),
            ("relations", [{"type": "next", "target": "e2", "strength": "strong"}], "list of relations"),
            ("created_at", "soon", "must be an ISO 8601 date or time"),
            ("created_at", 1795305600000, "must be an ISO 8601 date or time"),
        ],
    )
    def test_a_faulty_value_is_named_with_its_rule(self, field, value, rule):
        entry, faults = read_entry({"id": "e1", field: value}, "corpus.jsonl", 3)

        assert entry is None
        [fault] = faults
        assert (fault.file, fault.line, fault.field) == ("corpus.jsonl", 3, field)
        assert rule in fault.rule
        assert str(fault).isascii()

    @pytest.mark.parametrize("identifier", ["", "a b", "a\tb", "a\n"])
    def test_an_id_without_letters_or_with_white_space_is_refused(self, identifier):
        _, faults = read_entry({"id": identifier})
        assert [(f.field, "white space" in f.rule) for f in faults] == [("id", True)]


class TestQueries:
    def test_a_query_is_read_with_its_filter(self):
        record = {"id": "q1", "text": "who?", "filter": {"project": "p"}, "asked_at": "2026-11-22"}
        query, faults = read_query(record)

        assert faults == []
        assert (query.id, query.text, query.asked_at, query.split) == ("q1", "who?", MIDNIGHT, "")
        assert query.filters == Filters.of({"project": "p"})

    @pytest.mark.parametrize("scope", [["project"], "project", 3, {"projekt": "p"}, {"project": [["p"]]}])
    def test_a_filter_that_cannot_be_used_is_a_fault(self, scope):
        query, faults = read_query({"id": "q1", "text": "t", "filter": scope}, "queries.jsonl", 2)
        assert query is None
        assert [(f.line, f.field) for f in faults] == [(2, "filter")]


class TestFilters:
    def test_every_problem_is_named(self):
        with pytest.raises(ConfigError) as raised:
            Filters.of({"projekt": "p", "type": None, "severity": True})
        message = str(raised.value)
        assert "'projekt'; did you" in message
        assert "'type' = None" in message
        assert "'severity' = True" in message

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            ({"created_at": {"from": "soon"}}, "'created_at' = 'soon' must be a number or a date"),
            ({"created_at": {"form": 1}}, "unknown test 'form'; did you mean 'from'?"),
            ({"superseded": "no"}, "'superseded' = 'no' must be true or false"),
            ({"tags": [1]}, "'tags' = [1] must be"),
        ],
    )
    def test_what_a_field_cannot_be_asked_is_named(self, asked, message):
        with pytest.raises(ConfigError) as raised:
            Filters.of(asked)
        assert message in str(raised.value)

    def test_scopes_combine(self):
        both = Filters.of({"project": "p"}) & Filters.of({"type": "t", "project": "p"})

        assert both == Filters.of({"project": "p", "type": "t"})
        assert Filters() & both == both & Filters() == both
