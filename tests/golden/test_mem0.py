"""mem0's search, statement by statement; docs/mem0.md lists which test holds which."""

import pytest
from statements import Spy, named, statements
from tables import MEM0 as TABLE

from steelyard.base.errors import EmbedderError

HERONS = {"world": "herons"}


def found(embedder):
    return TABLE.searcher(HERONS, embedder).search("heron").hits


def test_a_failing_embedder_ends_the_search():
    with pytest.raises(EmbedderError, match="down"):
        found(Spy(down=True))


def test_a_result_has_the_names_of_the_real_program():
    shown = [TABLE.system.showing.present(hit) for hit in found(Spy())]
    assert [set(one) for one in shown] == [{"id", "memory", "created_at", "updated_at", "score"}] * 2
    assert shown[0]["memory"] == "the heron stands"


def test_the_table_of_statements_names_these_tests_and_no_others():
    assert named("mem0.md") == statements(globals()) | TABLE.statements
