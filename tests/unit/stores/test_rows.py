"""Entries are read from a file as they were written to it."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.base.errors import VaultError
from steelyard.memory.entry import Entry, Relation
from steelyard.stores.sqlite.schema import COLUMNS, from_row, to_row

entries = st.builds(
    Entry,
    id=st.text("abc", min_size=1, max_size=3),
    title=st.text(max_size=5),
    tags=st.lists(st.text(max_size=3), max_size=2).map(tuple),
    importance=st.none() | st.floats(0, 1),
    created_at=st.none() | st.floats(0, 1e9),
    relations=st.just(()) | st.just((Relation("supports", "b", 0.5),)),
    extra=st.just({}) | st.just({"a": 1}),
)


@given(entries)
def test_what_was_written_is_read(given):
    found = from_row(COLUMNS, to_row(given))

    assert found == given
    assert dataclasses.asdict(found) == dataclasses.asdict(given)


def test_fields_that_were_not_read_are_empty_and_not_shared():
    one, other = (from_row(("id", "title"), row) for row in (("a", "A"), ("b", "B")))

    assert (one, other) == (Entry("a", title="A"), Entry("b", title="B"))
    assert one.extra is not other.extra


@pytest.mark.parametrize(("name", "value"), [("title", 3), ("importance", "high"), ("tags", "{}"), ("id", "a b")])
def test_a_damaged_row_is_named(name, value):
    row = list(to_row(Entry("second")))
    row[COLUMNS.index(name)] = value

    with pytest.raises(VaultError, match=f"entry '{'a b' if name == 'id' else 'second'}' of the vault is damaged"):
        from_row(COLUMNS, row)
