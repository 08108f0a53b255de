"""Whether a scope leaves out nothing: asked by indexes."""

import pytest

from steelyard import Vault
from steelyard.live.sources import UNLIMITED
from steelyard.memory.entry import Entry
from steelyard.memory.query import Filters, valid_at

OF_A_KIND = Filters.of({"kind": {"none": ["directory", "draft"]}})
ENTRIES = (Entry("a", kind="memory"), Entry("b", valid_from=1.0, valid_until=9.0), Entry("c", kind="draft"))


@pytest.mark.parametrize("scope", [UNLIMITED, valid_at(2.0), OF_A_KIND, UNLIMITED & OF_A_KIND])
def test_entries_outside_are_found_without_reading_all(scope, monkeypatch):
    """Limits of validity and kinds have an index each; and what is told is what the rules admit."""
    asked, one, vault = [], Vault._one, Vault(":memory:")
    monkeypatch.setattr(Vault, "_one", lambda vault, *said: asked.append(said) or one(vault, *said))
    for end in range(len(ENTRIES) + 1):
        vault.upsert(ENTRIES[:end])
        asked.clear()
        clauses = [[rule.admits(entry) for rule in clause] for entry in ENTRIES[:end] for clause in scope.clauses]
        assert vault.covers(scope) == all(map(any, clauses))
        plans = [vault._db.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall() for sql, values in asked]
        steps = [step for plan in plans for *_, step in plan if step.startswith(("SCAN ", "SEARCH "))]
        assert {step.split()[0] for step in steps if step.split()[1] == "e"} == {"SEARCH"}
