"""The statements of documents that are rows of tables, system by system."""

from contextlib import nullcontext

import pytest
from tables import NEWEST, TABLES, named

from steelyard.base import errors


@pytest.mark.parametrize(("check", "row"), [check for table in TABLES for check in table.checks()])
def test_a_row_of_a_table_holds(check, row):
    error, said = row.get("refused", ("", ""))
    with pytest.raises(getattr(errors, error), match=said) if error else nullcontext():
        check(row)


@pytest.mark.parametrize("table", NEWEST, ids=lambda table: table.system.key)
def test_the_section_newest_names_the_rows_of_its_table(table):
    assert named(f"{table.system.name}.md", after="## Newest") == table.statements
