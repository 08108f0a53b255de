"""mem0's search, statement by statement; docs/mem0.md lists which test holds which."""

from tables import MEM0 as TABLE, named, statements


def test_the_table_of_statements_names_these_tests_and_no_others():
    assert named("mem0.md") == statements(globals()) | TABLE.statements
