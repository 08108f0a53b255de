"""Entries are read column by column as they are read one by one."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.base.errors import VaultError
from steelyard.memory.entry import EVERY_FIELD, Entry, Relation
from steelyard.stores.sqlite.schema import from_rows, to_row

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


@given(st.lists(entries, max_size=4))
def test_what_was_written_is_read(given):
    found = from_rows(EVERY_FIELD, [to_row(entry) for entry in given])

    assert found == given
    assert [dataclasses.asdict(entry) for entry in found] == [dataclasses.asdict(entry) for entry in given]


def test_fields_that_were_not_read_are_empty_and_not_shared():
    one, other = from_rows(("id", "title"), [("a", "A"), ("b", "B")])

    assert (one, other) == (Entry("a", title="A"), Entry("b", title="B"))
    assert one.extra is not other.extra


@pytest.mark.parametrize(
    ("name", "value"), [("title", 3), ("importance", "high"), ("tags", "{}"), ("tags", b"[]"), ("id", "a b")]
)
def test_a_damaged_row_among_others_is_named_as_by_itself(name, value):
    rows = [to_row(Entry("first")), list(to_row(Entry("second")))]
    rows[1][EVERY_FIELD.index(name)] = value

    with pytest.raises(
        VaultError, match=f"entry '{'a b' if name == 'id' else 'second'}' of the vault is damaged"
    ) as alone:
        from_rows(EVERY_FIELD, [rows[1]])
    with pytest.raises(VaultError) as among:
        from_rows(EVERY_FIELD, rows)
    assert str(among.value) == str(alone.value)
