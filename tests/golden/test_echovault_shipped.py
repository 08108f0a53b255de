"""EchoVault as it shipped: what its code does otherwise than its document says, in figures worked out by hand.

The facts are those of the section "Documented against shipped" of docs/echovault.md. Vectors are of length
1 and placed by their cosine with the query, which is always the vector (1, 0); their distance is then the
square root of 2 - 2 * cosine.
"""

import dataclasses
import re

import pytest
from tables import DOCS, ECHOVAULT_SHIPPED as TABLE, Spy, differing, ids, named, scores, statements

from steelyard import Entry, Filters, Query, Searcher, find_system, parse_strategy
from steelyard.base.errors import ConfigError
from steelyard.systems.echovault import DELETED, DOCUMENTED, SHIPPED

OTHERS = [Entry(f"other{i}", title="reeds moor") for i in range(4)]
HEADING = "## Documented against shipped"
vault_of, SPACE = TABLE.bench.vault, TABLE.bench.space


def searcher(vault, embedder=None, limit=5, strategy=None):
    config = SHIPPED.config(limit, "spy")
    return Searcher(
        vault, config.with_strategy(parse_strategy(strategy)) if strategy else config, embedder, clock=lambda: 0.0
    )


def test_the_profiles_differ_in_these_parameters_and_in_no_others():
    table = (DOCS / "echovault.md").read_text(encoding="utf-8").partition(HEADING)[2]
    assert {*re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)} == differing(DOCUMENTED, SHIPPED) - {"profile"}
    assert find_system("echovault:shipped") is SHIPPED


def test_no_text_is_no_query_and_blanks_are_one_that_is_refused():
    dated = searcher(vault_of(*(Entry(id_, created_at=float(at)) for at, id_ in enumerate("abc"))))
    assert ids(dated.context("")[0]) == ["c", "b", "a"]
    with pytest.raises(ConfigError, match="type at least"):
        dated.context("   ")


def test_a_memory_that_was_merged_is_near_to_what_it_said_before():
    vault = vault_of(Entry("a", title="heron"), *OTHERS, cosines={"a": 1.0})
    vault.upsert([Entry("a", title="newt")], keep_vectors=True)
    assert scores(searcher(vault, Spy(), strategy="vector").search("q").hits) == {"a": 1.0}


def test_a_deleted_memory_is_hidden_and_takes_one_of_the_places():
    cosines = {f"m{i}": 0.9 - i / 10 for i in range(4)}
    entries = [Entry(id_, title="heron", project="marsh") for id_ in cosines]
    vault = vault_of(*entries, *OTHERS, cosines=cosines)
    before = searcher(vault, Spy(), limit=2, strategy="fts").search("heron").hits
    vault.upsert([dataclasses.replace(entries[0], kind=DELETED)], keep_vectors=True)
    for filters in (Filters(), Filters.of({"project": "marsh"})):
        table = searcher(vault, Spy(), limit=1).candidates(Query("q", filters=filters), parse_strategy("vector"))
        assert (table.entries, table.positions["vector"].tolist()) == (("m1",), [2])  # a pool of 2 x 1
    # Keywords leave it out before the cut, and its words still count for the rest.
    after = searcher(vault, Spy(), limit=2, strategy="fts").search("heron").hits
    assert (ids(before), ids(after)) == (["m0", "m1"], ["m1", "m2"])
    assert {hit.score for hit in after} == {hit.score for hit in before}
    assert searcher(vault).context("")[1] == 7


def test_the_table_names_these_tests_and_no_others():
    assert named("echovault.md", HEADING, before="## Newest") == statements(globals()) | TABLE.statements
