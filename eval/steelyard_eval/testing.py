"""The gate inside pytest: `assert_no_regression`, and a summary in which an inconclusive one is not silent.

The package registers this module as a pytest plugin, so that the summary is printed wherever it is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard_eval.compare.contenders import GivenMany
    from steelyard_eval.datasets import Dataset
    from steelyard_eval.views.frames import Gating


_GATED: list[Gating] = []


def assert_no_regression(
    dataset: str | Path | Dataset,
    contender: GivenMany | None = None,
    *,
    baseline: str | Path = "reports/baseline.json",
    strict: bool = False,
    **options: Any,  # noqa: ANN401 -- those of `Gate`
) -> Gating:
    """Fail the test when search got worse since the baseline; return the result otherwise.

    Raises AssertionError with verdict, table and worst queries; also if data or labels differ from the baseline's.

    Parameters
    ----------
    dataset: The data set, or its folder.
    contender: One or several: a system, a strategy, a weights file, a TREC run, an endpoint, a function; all that
        the baseline names by default. A single one is compared with a baseline of one whatever their names.
    baseline: The committed file.
    strict: Whether inconclusive fails, too.
    options: budget, block_slices, embedder, split, limit.
    """
    from steelyard_eval.gate.gate import check  # a session that gates nothing loads nothing
    from steelyard_eval.gate.setup import Gate

    found = check(Gate.of(dataset, baseline, **options), contender)
    _GATED.append(found)
    if found.exit_code(strict):
        raise AssertionError(str(found))
    return found


def pytest_terminal_summary(terminalreporter: Any) -> None:  # noqa: ANN401 -- pytest's own class, which it may lack
    """Print a line for every gate that ran."""
    if _GATED:
        terminalreporter.section("steelyard gate")
        for found in _GATED:
            terminalreporter.line(found.sentence, yellow=found.verdict == "inconclusive")
