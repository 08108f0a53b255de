"""MoltNet's document, statement by statement; docs/moltnet.md lists which test holds which.

Expected values are the document's own, or are worked out by hand beside the test. Vectors are placed by
their cosine with the query, which is always the vector (1, 0).
"""

import dataclasses
from importlib.util import find_spec

import numpy as np
import pytest
from tables import MOLTNET as TABLE, Spy, ids, named, statements
from tests.unit.shared import document, done

from steelyard import Entry, Filters, Query, Searcher, find_system
from steelyard.base.extensions import EXTRAS
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.extensions.models import MiniLmInt8Embedder
from steelyard.memory.text import render
from steelyard.systems.moltnet import DOCUMENTED, SHIPPED

HOUR = 3_600.0
vault_of = TABLE.bench.vault


def searcher(vault, embedder=None, limit=None):
    config = DOCUMENTED.config(limit, embedder.model if embedder else "")
    return Searcher(vault, config, embedder, clock=lambda: TABLE.now)


def test_the_table_of_statements_names_these_tests_and_no_others():
    assert named("moltnet.md", before="## Newest") == statements(globals()) | TABLE.statements


def test_the_profiles_differ_in_their_names_alone():
    assert dataclasses.replace(DOCUMENTED, profile="shipped") == SHIPPED
    assert find_system("moltnet:shipped") is SHIPPED


FILTERS = TABLE.content["filters"]
"""What is asked, and the fields of an entry that passes and of one that does not."""


@pytest.mark.parametrize("name", FILTERS)
def test_filters_act_inside_both_retrievers_before_the_pools_are_cut(name):
    """Ten better entries that do not pass take no place: pools of twice the limit hold the four that do."""
    asked, *fields = FILTERS[name]
    passing, failing = ({**own, "tags": tuple(own.get("tags", ()))} for own in fields)
    better = [Entry(f"better{i}", text="heron heron heron", **failing) for i in range(10)]
    inside = [Entry(f"inside{i}", text="heron", **passing) for i in range(4)]
    cosines = {entry.id: 0.9 - 0.01 * i for i, entry in enumerate((*better, *inside))}
    search = searcher(vault_of(*better, *inside, cosines=cosines), Spy(), limit=2)
    table = search.search(Query("heron", filters=Filters.of(asked))).table
    assert table.entries == ("inside0", "inside1", "inside2", "inside3")
    assert not np.isnan([table.column("fts"), table.column("vector")]).any()


SEEN = ("--scope", "vault=D1", "--scope", "tenant=TA")


def test_the_commands_obey_the_caller_s_scope(tmp_path):
    path = tmp_path / "vault.db"
    TABLE.store({"world": "diaries"}, path).close()
    searched = document("search", path, "heron", "--system", "moltnet", *SEEN)["hits"]
    listed = document("vault", "list", path, *SEEN)
    recent = document("vault", "context", path, *SEEN)
    for rows in (searched, listed["entries"], recent["entries"]):
        assert sorted(row["id"] for row in rows) == ["mine", "team"]
    assert (listed["total"], recent["total"]) == (2, 2)
    assert document("vault", "list", path, *SEEN, "--filter", "vault=D3")["total"] == 0
    got = document("vault", "get", path, "team", "mine", *SEEN)["entries"]
    assert [entry["id"] for entry in got] == ["team", "mine"]
    # What lies outside does not exist by its id, and a wrong id is not set right with a hidden one.
    absent, foreign, near = (
        done("vault", "get", path, name, *SEEN, code=2).stderr for name in ("absent", "foreign", "foreigm")
    )
    assert foreign == absent.replace("absent", "foreign")
    assert "foreign" not in near


def test_the_embedded_text_has_a_line_for_every_tag():
    entry = Entry("a", title="Rotation", text="Done.", tags=("scope:auth", "decision"))
    assert render(DOCUMENTED.reading.recipe, entry) == "Rotation\nDone.\ntag:scope:auth\ntag:decision"
    assert render(DOCUMENTED.reading.recipe, Entry("a", text="Done.")) == "Done."


@pytest.mark.skipif(
    any(find_spec(module) is None for module in EXTRAS["onnx"]), reason="the extra onnx is not installed"
)
def test_a_concept_that_stands_only_in_tags_is_found_by_meaning():
    embedder = MiniLmInt8Embedder()
    first = {}
    for tags in ((), ("scope:auth", "credentials", "passwords")):
        notes = TABLE.content["notes"].items()
        vault = vault_of(*(Entry(id_, text=text, tags=tags * (id_ == "rotated")) for id_, text in notes))
        embed_missing(vault, embedder, space_of(embedder, "text", DOCUMENTED.reading.recipe))
        result = searcher(vault, embedder).search("login secrets")
        assert np.isnan(result.table.columns["fts"]).all()  # no word of it stands anywhere
        first[tags] = ids(result.hits)[0], result.hits[0].score
    assert [id_ for id_, _ in first.values()] != ["rotated", "rotated"]
    assert list(first.values())[1] == ("rotated", pytest.approx(1 / 61, abs=1e-12))


@pytest.fixture
def diary(tmp_path):
    """Fifteen decisions about the heron and five about other things, on a file."""
    path = tmp_path / "diary.db"
    own = {"tags": ("decision",), "details": "the whole story"}
    many = [Entry(f"d{i:02d}", text="heron " * (i + 1), created_at=i * HOUR, **own) for i in range(15)]
    vault_of(*many, *(Entry(f"x{i}", text="heron reed", tags=("note",)) for i in range(5)), path=path).close()
    return path


def test_list_enumerates_all_that_passes_newest_first(diary):
    listed = document("vault", "list", diary, "--filter", "tags=decision")
    assert listed["total"] == 15
    assert [entry["id"] for entry in listed["entries"]] == [f"d{i:02d}" for i in reversed(range(15))]
    assert not any("score" in entry for entry in listed["entries"])


def test_search_ranks_under_the_same_filters_and_stops_at_the_limit(diary):
    rows = document("search", diary, "heron", "--system", "moltnet", "--filter", "tags=decision")["hits"]
    # ts_rank grows with the count and saturates, so the longest entries lead; ten is the default limit.
    assert [row["id"] for row in rows] == [f"d{i:02d}" for i in range(14, 4, -1)]
    assert rows[0]["combined_score"] == pytest.approx(1 / 61, abs=1e-12)
    [entry] = document("vault", "get", diary, "d03")["entries"]
    assert (entry["id"], entry["details"]) == ("d03", "the whole story")


def test_searching_and_reading_change_nothing():
    vault = vault_of(Entry("a", text="heron"), cosines={"a": 0.9})
    before = vault.revision(), vault.get(["a"])
    searcher(vault, Spy()).search("heron")
    assert (vault.revision(), vault.get(["a"])) == before
