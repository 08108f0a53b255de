"""What a gate found: its document, its words, its exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steelyard.memory.query import Query
from steelyard_eval.common.documents.gate import GateDocument
from steelyard_eval.common.renderers import drawn
from steelyard_eval.common.results import Reported
from steelyard_eval.gate.gate_text import text
from steelyard_eval.gate.lists import ContenderLists

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

EXIT_CODES = {"pass": 0, "fail": 1, "mismatch": 2, "inconclusive": 0}
STRICT = 3
"""The exit code of inconclusive where that counts as a failure."""


@dataclass(frozen=True, repr=False)
class Gating(Reported[GateDocument]):
    """The result of a gate. `record` is the JSON document; docs/gate.md describes it.

    `by_query` has what kept runs hold of each query, as documents of comparisons have it.
    """

    by_query: Mapping[str, object] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """pass, fail, inconclusive or mismatch."""
        return self.record["verdict"]

    def exit_code(self, strict: bool = False) -> int:
        """0 fine, 1 search got worse, 2 mismatch, 3 inconclusive where that counts as a failure."""
        return STRICT if strict and self.verdict == "inconclusive" else EXIT_CODES[self.verdict]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each contender."""
        import pandas as pd

        rows = [
            {**row, **row["metrics"][0], **row["against"][0], "verdict": row["verdict"]}
            for row in self.record["contenders"]
        ]
        columns = [
            "label",
            "verdict",
            "before",
            "now",
            "delta",
            "low",
            "high",
            "p_worse",
            "touched",
            "check",
            "text",
        ]
        return pd.DataFrame(rows, columns=columns)

    def worst(self, label: str | None = None) -> pd.DataFrame:
        """Return the queries that lost most, of one contender or of the first one that lost any."""
        import pandas as pd

        rows = [row for row in self.record["contenders"] if label in (None, row["label"])]
        queries = next((row["worst"] for row in rows if row["worst"]), [])
        return pd.DataFrame(queries, columns=["id", "text", "before", "now", "delta", "list_before", "list_now"])

    def __str__(self) -> str:
        return text(self.record)

    def plot(self) -> Figure:
        """Plot the change of nDCG@10 of every contender with its interval, beside the budget."""
        return drawn("gated", self.record)


def by_query(many: Sequence[ContenderLists], queries: Sequence[Query]) -> dict[str, object]:
    """nDCG@10 of each contender on each query, as the documents of comparisons have it."""
    values = {one.label: one.values.ndcg.tolist() for one in many}
    rows = [
        {"id": query.id, "values": {label: own[i] for label, own in values.items()}}
        for i, query in enumerate(queries)
    ]
    return {"per_query": rows}
