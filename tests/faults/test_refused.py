"""What `make fuzz` and both attacks found and is refused since, row by row: how it is made, the error, why."""

import json
import os
import re
from functools import partial
from io import BytesIO

import fuzz
import numpy as np
import pytest
from small import steelyard, whole
from tests.unit.shared import tabled, vault_with

from steelyard import LsaEmbedder, RecordedEmbedder, SearchConfig, Searcher, Vault, find_system, parse_strategy
from steelyard.base.errors import ConfigError, DataError, DimensionMismatchError, VaultError
from steelyard.base.files import MAX_NESTING, STRICT_JSON
from steelyard.extensions.cortex_client.uris import vault_of
from steelyard.memory.entry import Entry, Relation
from steelyard.memory.query import MAX_WORDS, Filters, Query, clean_query
from steelyard.stores.base import KeywordIndex, Space
from steelyard_eval.recording import disk as recordings
from steelyard_eval.vaults.arguments import Settings
from steelyard_eval.vaults.read import RankedBy, open_searcher

FTS = find_system("fts").config()
SPACE = Space("tiny", "text", "{title}\n{text}")
LSA = LsaEmbedder.fit(["one two three", "two three four", "four five six"]).to_arrays()[1]


def npy(array):
    np.save(stream := BytesIO(), array)
    return stream.getvalue()


def weights(**changed):
    return partial(SearchConfig.from_json, FTS.to_json() | changed)


def stored(entry):
    def store():
        with Vault(":memory:") as vault:
            try:
                vault.upsert([Entry("sound"), entry])
            finally:
                assert vault.count() == 0

    return store


def asked(text, strategy, query=(1, 0)):
    """A query with this vector, of a vault whose one vector has two numbers."""

    def search():
        with vault_with(Entry("a", text="token")) as vault:
            vault.put_vectors(SPACE, ["a"], np.array([[1, 0]], dtype=np.float32))
            embedder = RecordedEmbedder("tiny", SPACE.recipe, {text: np.array(query, dtype=np.float32)})
            config = find_system("plain").config().with_strategy(parse_strategy(strategy))
            Searcher(vault, config, embedder).search(text)

    return search


def index_of_other_settings():
    with Vault(":memory:") as vault:
        vault.ensure_index(KeywordIndex("content", ("title", "text"), "unicode61"))
        Searcher(vault, FTS).search("token")


def nested(levels, opening="[", closing="]"):
    return partial(STRICT_JSON.decode, opening * levels + ("1" if opening != "[" else "") + closing * levels)


ODD_ENTRIES = (
    *(Entry(id_) for id_ in (7, "", "a\x1fb", "a b", "a\n", "\ud800")),
    *(Entry("a", title=1), Entry("a", text="\udc80"), Entry("a", tags="abc"), Entry("a", tags=(1,))),
    *(Entry("a", importance=value) for value in (float("nan"), float("inf"), True, "3")),
    *(Entry("a", created_at=value) for value in (float("inf"), 1e300, "2026-01-01", np.float32(1))),
    *(Entry("a", relations=(one,)) for one in (("supersedes", "b"), Relation("x", "y", float("inf")))),
    *(Entry("a", extra={"x": value}) for value in (float("nan"), object())),
)
REFUSED = [
    *((weights(by_intent={intent: "bm25"}), ConfigError, "by_intent") for intent in ("fix\n", "default")),
    (weights(by_intent={f"i{at}": "fts" for at in range(1001)}), ConfigError, "more than 1000"),
    *(
        (partial(LsaEmbedder.from_arrays, {**LSA, name: raw}), VaultError, "damaged .*--rebuild")
        for name, raw in (
            *(("idf", b"PK\x03\x04"), ("components", LSA["idf"]), ("vocabulary", b"[1")),
            ("idf", npy(np.ones(len(json.loads(LSA["vocabulary"]))))),
            ("idf", npy(np.ones(2, np.float32))),
        )
    ),
    # JSON nests to a limit.
    *(
        (nested(levels, *signs), ValueError, "deeper than 64")
        for levels in (MAX_NESTING + 1, 400, 900)
        for signs in ("[]", ('{"a":', "}"))
    ),
    *(
        (partial(Filters.of, {"importance": number}), ConfigError, "'importance' = ")
        for number in (10**400, float("nan"), float("inf"), True, None, [[]])
    ),
    # What no data set could hold stands in no vault.
    *((stored(entry), DataError, "^entry ") for entry in ODD_ENTRIES),
    *(
        (asked(text, strategy), ConfigError, "type at least")
        for text in ("", " ", "\0", "\n\t")
        for strategy in ("fts", "bm25", "vector", "rrf(fts, vector)", "importance")
    ),
    (asked("\udc80", "vector"), ConfigError, "valid Unicode"),
    *(
        (asked("token", strategy, (1, 0, 0)), DimensionMismatchError, r"(?s)dimension 2.*returned 3.*--rebuild")
        for strategy in ("vector", "l2", "layered(1*l2)", "weighted_sum(1*fts, 1*cosine)")
    ),
    (index_of_other_settings, VaultError, r"covers \[.title., .text.\].*asks for.*'steelyard'.*--rebuild"),
]


@pytest.mark.parametrize(("make", "error", "why"), REFUSED, ids=range(len(REFUSED)))
def test_what_was_found_is_refused(make, error, why):
    with pytest.raises(error, match=why):
        make()


READERS = {
    "strategy": (parse_strategy, ConfigError),
    "query": (clean_query, ConfigError),
    "json": (STRICT_JSON.decode, ValueError),
    "priority": (lambda text: Settings.of({"priority.team": text}), ConfigError),
    "index": (lambda name: KeywordIndex(name, ("title",), "unicode61"), ConfigError),
    "tokenizer": (lambda name: KeywordIndex("x", ("title",), name), ConfigError),
}


@tabled
def test_a_text_is_refused(reader, text, why):
    read, error = READERS[reader]
    with pytest.raises(error, match=why):
        read(whole(text))


def test_what_is_just_inside_is_taken():
    parse_strategy("weighted_sum(1*layered(1*l0), 1*layered(1*l1))")
    assert clean_query("token " * MAX_WORDS)
    assert nested(MAX_NESTING)() and nested(MAX_NESTING, '{"a":', "}")()
    assert len(STRICT_JSON.decode("[" + "[]," * 500 + "[]]")) == 501
    entry = Entry("a", tags=("x",), importance=3, created_at=-1.5, relations=(Relation("r", "b", 0.5, ""),))
    with vault_with(entry) as vault:
        assert vault.get(["a"]) == [entry]
        vault.upsert([Entry(f"n{n}", importance=float(n)) for n in (10**18, 10**30, -(10**30), 1.5, 1e308)])
        for number in (10**18, 10**30, -(10**30), 1.5, 1e308):
            assert [e.id for e in vault.entries(Filters.of({"importance": number}))] == [f"n{number}"]
        vault.rebuild_indexes([find_system("fts").reading.index])


def test_links_and_half_characters_in_files_are_refused(tmp_path):
    path = tmp_path / "search-weights.json"
    path.write_text(json.dumps(FTS.to_json() | {"$schema": "\ud800"}))
    with pytest.raises(ConfigError, match="valid Unicode"):
        SearchConfig.load(path)
    (tmp_path / "cortex-mem-other.db").write_bytes(b"")
    os.link(tmp_path / "cortex-mem-other.db", tmp_path / "cortex-mem-mine.db")
    with pytest.raises(ConfigError, match="is a link"):
        vault_of(tmp_path, "mine")


@tabled
def test_a_damaged_vault_says_what_to_do(tmp_path, change, message):
    path, raw = tmp_path / "memory.vault", fuzz.world().vault_file
    path.write_bytes(raw if isinstance(change, str) else re.sub(*map(str.encode, change), raw))
    if isinstance(change, str):
        with Vault(path) as vault:
            vault._db.execute(change)
    with pytest.raises(VaultError, match=message), open_searcher([str(path)], RankedBy("fts"), None) as searcher:
        searcher.search("token")
    assert steelyard("search", path, "token").exit_code == 2


CASES = (
    ("offsets", lambda a: a[::-1], "offsets must ascend from 0 to"),
    ("offsets", lambda a: a[:-1], "offsets.npy has shape"),
    ("entry", lambda a: a + 100, "entry must lie in 0..8"),
    ("entry", lambda a: -a - 1, "entry must lie in 0..8"),
    ("entry", lambda a: a.astype(np.float64), "entry must be .* integers"),
    ("column.fts", lambda a: a + np.inf, "column.fts holds .* large"),
    ("column.fts", lambda a: a.astype(np.float32), "column.fts must be .* float64"),
    ("position.fts", lambda a: a.astype(np.float64), "position.fts must be one integer a row"),
    ("about.importance", lambda a: a * np.inf, "about.importance holds .* large"),
    ("about.severity", lambda a: a + 50, "about.severity must lie in"),
    ("about.tags.codes", lambda a: -a - 1, "about.tags.codes must lie in"),
    ("asked.tags.offsets", lambda a: a + 1, "asked.tags.offsets must ascend from 0"),
    *(("column.fts", raw, "") for raw in (b"PK\x03\x04", b"", b"\x93NUMPY\x01\x00\x04\x00((((", b"\x80\x04.")),
)


@pytest.mark.parametrize(("name", "change", "message"), CASES)
def test_a_changed_column_of_a_recording_is_refused(tmp_path, name, change, message):
    """A changed number never gives other results without a word, and never a traceback."""
    recordings.save(fuzz.world().table, tmp_path / "r")
    file = tmp_path / "r" / f"{name}.npy"
    if isinstance(change, bytes):
        file.write_bytes(change)
    else:
        np.save(file, change(np.load(file)))
    with pytest.raises(DataError, match=rf"is not a complete recording \(.*{message}.*\); record again"):
        recordings.load(tmp_path / "r")


def test_hostile_values_of_a_filter_match_themselves_only():
    with Vault(":memory:") as vault:
        vault.upsert([Entry("a", text="token", project="' OR 1=1 --"), Entry("b", text="token", project="p")])
        filters = Filters.of({"project": "' OR 1=1 --"})
        hits = Searcher(vault, FTS).search(Query("token", filters=filters)).hits
        assert [h.entry.id for h in hits] == ["a"]
