"""What a gate tells the shell: the codes of docs/gate.md."""

import pytest

from steelyard_eval.result.structs import Answer, DataFacts, Provenance, Result
from steelyard_eval.views.frames import Gating


@pytest.mark.parametrize(
    ("verdict", "code", "strict"),
    [("pass", 0, 0), ("fail", 1, 1), ("mismatch", 2, 2), ("inconclusive", 0, 3)],
)
def test_each_verdict_has_its_exit_code(verdict, code, strict):
    about = Provenance("steelyard", DataFacts("mine"))
    found = Gating(Result("gate", Answer(verdict), about))
    assert (found.exit_code(), found.exit_code(strict=True)) == (code, strict)
