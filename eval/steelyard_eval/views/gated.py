"""The result of a gate in Python: its verdict, its exit code, frames and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Estimate
from steelyard_eval.views.answered import Answered

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

EXIT_CODES = {"pass": 0, "fail": 1, "mismatch": 2, "inconclusive": 0}
STRICT = 3
"""The exit code of inconclusive where that counts as a failure."""


@dataclass(frozen=True, repr=False)
class Gating(Answered):
    """The result of a gate; docs/gate.md describes its document."""

    @property
    def verdict(self) -> str:
        """pass, fail, inconclusive or mismatch."""
        return self.result.answer.key

    def exit_code(self, strict: bool = False) -> int:
        """0 fine, 1 search got worse, 2 mismatch, 3 inconclusive where that counts as a failure."""
        return STRICT if strict and self.verdict == "inconclusive" else EXIT_CODES[self.verdict]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each contender: its verdict, the change of nDCG@10, and what the rule saw."""
        import pandas as pd

        seen = {row["contender"]: row for row in self.result.table("gate_rule") if row["side"] == "baseline"}
        checks = {row["contender"]: row["check"] for row in self.result.table("gate_check")}
        found = {one.contender: say(one) for one in reversed(self.result.findings)}
        rows = [
            {
                "label": row["contender"],
                "verdict": row["verdict"],
                **(_ends(row["change"]) if isinstance(row["change"], Estimate) else {}),
                "p_worse": seen[row["contender"]]["p_worse"],
                "top10_changed": row["top10_changed"],
                "check": checks[row["contender"]],
                "finding": found[str(row["contender"])],
            }
            for row in self.result.table("gated")
        ]
        columns = ["label", "verdict", "delta", "low", "high", "p_worse", "top10_changed", "check", "finding"]
        return pd.DataFrame(rows, columns=columns)

    def plot(self, metric: str | None = None, *, what: str = "gated") -> Figure:
        """Plot the change of nDCG@10 of every contender with its interval, beside the budget."""
        return super().plot(metric, what=what)

    def worst(self, label: str | None = None) -> pd.DataFrame:
        """Return the queries that lost most, of one contender or of all."""
        import pandas as pd

        rows = [row for row in self.result.table("lost") if label in (None, row["contender"])]
        return pd.DataFrame(rows, columns=["contender", "query", "text", "before", "now"])


def _ends(change: Estimate) -> dict[str, float | None]:
    return {"delta": change.mean, "low": change.low, "high": change.high}
