"""The result of one search, for a notebook."""

from dataclasses import dataclass
from typing import Any

from steelyard.base.errors import visible
from steelyard.fusion.plan import Explanation
from steelyard.memory.entry import Hit
from steelyard.memory.query import Query
from steelyard.results import SearchResult
from steelyard_eval.common.tabular import Figure, Frame, Tabular, as_frame
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.explain.view import contributions
from steelyard_eval.views.drawing import plots


@dataclass(frozen=True, repr=False)
class SearchHits(Tabular):
    """The hits of one search; `result` is the engine's own, and `notices` list what the search lacked."""

    contender: Contender
    query: Query | str
    result: SearchResult
    notices: tuple[str, ...] = ()

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The hits, best first."""
        return self.result.hits

    @property
    def text(self) -> str:
        """The text of the query."""
        return self.query if isinstance(self.query, str) else self.query.text

    def explain(self, hit: Hit | str) -> Explanation:
        """Explain the score of a hit, or of an entry by its id; ConfigError when it was not ranked."""
        return self.result.explain(hit)

    def to_json(self) -> dict[str, Any]:
        """The query, the strategy that answered, and the hits with their signals."""
        return {
            "query": self.text,
            "strategy": str(self.result.strategy),
            "degraded": self.result.degraded,
            "notices": list(self.notices),
            "hits": [
                {"rank": h.rank, "score": h.score, "signals": dict(h.signals), **h.entry.to_json()}
                for h in self.hits
            ],
        }

    def to_frame(self) -> Frame:
        """Return a row for each hit: rank, score, id, title and signals."""
        rows = [
            {"rank": h.rank, "score": h.score, "id": h.entry.id, "title": h.entry.title, **h.signals}
            for h in self.hits
        ]
        return as_frame(rows, columns=None if rows else ["rank", "score", "id", "title"])

    def __repr__(self) -> str:
        return visible(f"FoundHits({len(self.hits)} for {self.text!r} by {self.contender.label})")

    def plot(self) -> Figure:
        """Plot what each signal adds to the score of each hit."""
        rows = []
        for hit in self.hits:
            tree = self.explain(hit)
            terms = contributions(tree)[0] if tree.parts else []
            rows.append((hit.entry.title or hit.entry.id, {t["signal"]: t["contribution"] for t in terms}))
        return plots.contributions(rows, str(self.result.strategy))
