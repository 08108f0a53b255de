"""Limits at their last value and one beyond it; the numbers are those of the documents and messages."""

import ctypes
import dataclasses
import json
import resource

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.base.errors import ConfigError, MachineError, VaultError
from steelyard.base.files import open_regular
from steelyard.base.machine import MEMORY, budget
from steelyard.config import SearchConfig
from steelyard.extensions.network import wire
from steelyard.fusion import parse_strategy
from steelyard.memory.entry import Entry, Relation
from steelyard.stores.base import Space
from steelyard.stores.sqlite import Vault, guard
from steelyard.stores.sqlite.schema import COLUMNS, from_rows, to_row
from steelyard.systems import analyses, find_system


def test_memory_is_a_number_of_mib_of_nine_digits_at_most(monkeypatch):
    monkeypatch.setenv(MEMORY, "999999999")
    assert budget() == 999_999_999 * 1_048_576
    monkeypatch.setenv(MEMORY, "1000000000")
    with pytest.raises(ConfigError, match="number of MiB"):
        budget()


def test_a_file_may_be_as_large_as_is_allowed_and_not_a_byte_larger(tmp_path, monkeypatch):
    monkeypatch.setenv("STEELYARD_LARGEST_FILE_MB", "1")
    path = tmp_path / "file"
    path.write_bytes(bytes(1_048_576))
    open_regular(path).close()
    path.write_bytes(bytes(1_048_577))
    with pytest.raises(OSError, match="MB; set STEELYARD_LARGEST_FILE_MB"):
        open_regular(path)


def test_a_strategy_may_be_as_long_as_is_allowed():
    fits, long = "a" * 9_986, "a" * 9_987  # "rrf(b, " before and ", k=60)" behind are 14 more
    assert len(str(parse_strategy(f"rrf(b, {fits})", [fits, "b"]))) == 10_000
    with pytest.raises(ConfigError, match="10001 characters when"):
        parse_strategy(f"rrf(b, {long})", [long, "b"])


def test_of_a_wrong_value_80_characters_are_shown_and_of_damage_200(tmp_path):
    config = find_system("echovault").config(10, "minilm").to_json()
    (tmp_path / "w.json").write_text(json.dumps({**config, "limit": "x" * 900}))
    with pytest.raises(ConfigError) as caught:
        SearchConfig.load(tmp_path / "w.json")
    told = str(caught.value)
    assert f"'limit' = '{'x' * 76}...: it is" in told
    assert f"('{'r' * 196}...)" in str(guard.damaged("v", "r" * 900))  # quote, 196, three dots


def limit_memory(vault, size):
    """Set how many bytes a vault in memory may have; the answer is how many it may have now."""
    most = ctypes.c_int64(size)
    vault._db.file_control("main", apsw.SQLITE_FCNTL_SIZE_LIMIT, ctypes.addressof(most))
    return most.value


def test_a_vault_in_memory_has_2_gib_at_most_and_says_so():
    entries = [Entry(f"e{at}", text="x" * 9_000) for at in range(100)]
    space, vectors = Space("m", "text", "{text}"), np.ones((100, 4_000), np.float32)
    with Vault(":memory:") as vault:
        assert limit_memory(vault, -1) == 2_147_418_112  # 64 KiB less
        vault.upsert(entries[:1])
        limit_memory(vault, 500_000)
        with pytest.raises(MachineError, match="memory holds 2"):
            vault.upsert(entries)
        assert vault.count() == 1
        limit_memory(vault, 1_500_000)
        vault.upsert(entries)
        with pytest.raises(MachineError, match="memory holds 2"):
            vault.put_vectors(space, [entry.id for entry in entries], vectors)
        assert (vault.count(), vault.spaces()) == (100, [])


def test_a_vault_file_that_finds_no_room_for_vectors_says_so(tmp_path):
    """A megabyte, for sqlite-vec's first 1,024 places of 16 kB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Vault(tmp_path / "vault", create=True) as vault:
        vault.upsert([Entry("a")])
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
        try:
            with pytest.raises(MachineError, match=r"write .*vault: .*;"):
                vault.put_vectors(Space("m", "text", "{text}"), ["a"], np.ones((1, 4_000), np.float32))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert (vault.count(), vault.spaces()) == (1, [])


def test_the_words_of_two_thousand_entries_are_stored_and_of_fewer_are_not(tmp_path):
    entries = [Entry(f"e{at}", text="token") for at in range(2_000)]
    [own] = analyses([find_system("bm25")])
    with Vault(tmp_path / "vault", create=True) as vault:
        vault.upsert(entries[:-1])
        vault.ensure_words([own])
        assert vault.word_indexes() == []
        vault.upsert(entries[-1:])
        vault.ensure_words([own])
        assert len(vault.word_indexes()) == 1


def test_a_pragma_that_is_not_listed_is_denied():
    def allowed(name):
        return guard._authorize(apsw.SQLITE_PRAGMA, name, None, None, None) == apsw.SQLITE_OK

    assert allowed("user_version")
    assert not allowed("writable_schema")
    assert not allowed(None)


def test_no_second_is_left_at_the_deadline_itself(monkeypatch):
    monkeypatch.setattr(wire.time, "monotonic", lambda: 100.0)
    monkeypatch.setattr(wire, "_exchange", wire._Exchange())
    wire.begin(0.5, 1)
    assert wire._seconds() == 0.5
    wire.begin(0.0, 1)
    with pytest.raises(TimeoutError):
        wire._seconds()


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
    found = from_rows(COLUMNS, [to_row(entry) for entry in given])

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
    rows[1][COLUMNS.index(name)] = value

    with pytest.raises(
        VaultError, match=f"entry '{'a b' if name == 'id' else 'second'}' of the vault is damaged"
    ) as alone:
        from_rows(COLUMNS, [rows[1]])
    with pytest.raises(VaultError) as among:
        from_rows(COLUMNS, rows)
    assert str(among.value) == str(alone.value)
