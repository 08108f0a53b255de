"""The statements of documents that are rows of tables, system by system."""

import pytest
from tables import TABLES


@pytest.mark.parametrize(("check", "row"), [check for table in TABLES for check in table.checks()])
def test_a_row_of_a_table_holds(check, row):
    check(row)
