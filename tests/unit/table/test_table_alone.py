"""The table is the pivot: what reads it needs no store."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["steelyard.table", "steelyard.table.signal_table"])
def test_a_table_loads_no_store_and_no_sqlite(module):
    found = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )

    loaded = found.stdout.split()
    assert module in loaded
    assert [name for name in loaded if name.startswith("steelyard.stores") or name in ("apsw", "sqlite3")] == []
