"""EchoVault's document, statement by statement; docs/echovault.md lists which test holds which.

Expected values come from the document's own listings and examples, or are worked out by hand beside
the test. Vectors are placed by their cosine with the query, which is always the vector (1, 0).
"""

import apsw
import numpy as np
import pytest
from tables import ECHOVAULT as TABLE, Spy, ids, merged, named, noted, scores, statements
from tests.unit.shared import tabled

from steelyard import Entry, Searcher, Vault, parse_strategy
from steelyard.base.errors import DimensionMismatchError
from steelyard.embedders.embed import embed_missing
from steelyard.systems.echovault import DOCUMENTED

vault_of, SPACE = TABLE.bench.vault, TABLE.bench.space
OTHERS = [Entry(f"other{i}", title="unrelated") for i in range(8)]
"""A word in more than half of the entries weighs next to nothing; these keep the words rare."""


def searcher(vault, embedder=None):
    return Searcher(vault, DOCUMENTED.config(None, "spy"), embedder, clock=lambda: 0.0)


def test_the_index_covers_the_documented_columns_with_porter_over_unicode61(tmp_path):
    with Vault(tmp_path / "vault.db", create=True) as vault:
        searcher(vault).search("anything")
    db = apsw.Connection(str(tmp_path / "vault.db"))
    ((sql,),) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'fts_echovault'").fetchall()
    columns = [name for _, name, *_ in db.execute("PRAGMA table_info(fts_echovault)")]
    # The document's `what` is our `text`.
    assert columns == ["title", "text", "why", "impact", "tags", "category", "project", "source"]
    assert "using fts5" in sql.lower()
    assert "tokenize='porter unicode61'" in sql
    assert "content_rowid='rowid'" in sql


def test_enough_keyword_results_are_returned_as_they_are_cut_to_the_limit():
    vault = vault_of(*noted("heron", 7), *OTHERS, cosines={"06": 1.0, "other0": 0.9})
    hits = searcher(vault, Spy()).search("heron").hits
    assert ids(hits) == ["00", "01", "02", "03", "04"]
    assert [hit.score for hit in hits] == [hit.score for hit in searcher(vault).search("heron").hits]
    assert max(scores(hits).values()) != 1.0  # not divided by the maximum


SUM = parse_strategy("weighted_sum(0.3*fts, 0.7*vector, normalize=max)")


@tabled
def test_merging_divides_by_the_maximum_weighs_three_to_seven_and_adds_by_id(fts, vector, expected):
    ranked, first = (
        merged(SUM, DOCUMENTED.config(limit).finish, fts=fts.items(), vector=vector.items()) for limit in (5, 1)
    )
    assert [id_ for id_, _ in ranked] == list(expected)
    assert dict(ranked) == pytest.approx(expected)
    assert first == ranked[:1]


def test_another_dimension_is_refused_with_both_numbers_and_the_remedy():
    vault = vault_of(Entry("a", text="one"), cosines={"a": 1.0})
    for attempt in (
        lambda: vault.put_vectors(SPACE, ["a"], np.ones((1, 768), dtype=np.float32)),
        lambda: searcher(vault, Spy(dim=768)).search("nothing"),
    ):
        with pytest.raises(DimensionMismatchError, match=r"\b2\b.*\b768\b.*--rebuild"):
            attempt()
    assert vault.spaces() == [(SPACE, 2)]
    vault.drop_space(SPACE)  # as --rebuild does; the first embedding fixes the dimension
    assert vault.spaces() == []
    embed_missing(vault, Spy(dim=768), SPACE)
    assert (vault.spaces(), vault.missing(SPACE)) == ([(SPACE, 768)], [])
    assert ids(searcher(vault, Spy(dim=768)).search("nothing").hits) == ["a"]


def test_details_are_neither_indexed_nor_embedded():
    texts = {"title": "Title", "text": "What", "why": "Why", "impact": "Impact", "details": "secret"}
    vault, spy = vault_of(Entry("a", tags=("one", "two"), **texts)), Spy()
    embed_missing(vault, spy, SPACE)
    # Which fields are embedded the document leaves open; the code of its date joins these by blanks.
    assert spy.texts == ["Title What Why Impact one two"]
    assert not searcher(vault).search("secret").hits


def test_results_come_back_from_the_vault_as_they_went_in():
    first, *_ = TABLE.shown["test_a_result_is_the_documented_pointer_key_by_key"]["rows"]
    vault = vault_of(TABLE.entry(first["id"], first["entry"]), *OTHERS)
    (hit,) = searcher(vault).search("JWT auth").hits
    shown = DOCUMENTED.showing.present(hit)
    assert shown | {"score": 0.87} == first["shown"]
    assert shown["score"] > 0
    assert [entry.details for entry in vault.get(["a1b2c3d4", "absent"])] == ["The whole story"]


def test_the_table_of_statements_names_these_tests_and_no_others():
    assert (
        named("echovault.md", before="## Documented against shipped") == statements(globals()) | TABLE.statements
    )
