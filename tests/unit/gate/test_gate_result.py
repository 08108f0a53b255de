"""What a gate tells the shell: the codes of docs/gate.md."""

import pytest

from steelyard_eval.gate.result import Gating


@pytest.mark.parametrize(
    ("verdict", "code", "strict"),
    [("pass", 0, 0), ("fail", 1, 1), ("mismatch", 2, 2), ("inconclusive", 0, 3)],
)
def test_each_verdict_has_its_exit_code(verdict, code, strict):
    found = Gating({"verdict": verdict})
    assert (found.exit_code(), found.exit_code(strict=True)) == (code, strict)
