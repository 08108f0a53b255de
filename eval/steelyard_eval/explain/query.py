"""One query of a data set, explained: as a record for JSON, frames and notebooks, and as text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard import __version__
from steelyard.config import SearchConfig
from steelyard.entry import Entry
from steelyard.errors import DataError, nearest, shown, visible
from steelyard.fields import format_time
from steelyard.query import Query
from steelyard_eval.datasets import Dataset
from steelyard_eval.explain.configs import Named, read_name
from steelyard_eval.explain.moves import moves
from steelyard_eval.explain.places import place
from steelyard_eval.explain.view import View, contributions
from steelyard_eval.measures.metrics import Judgments, parse_measures
from steelyard_eval.recording.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("nDCG@10", "R@10")
SCHEMA_VERSION = 1


@dataclass(frozen=True, repr=False)
class QueryExplanation:
    """What `steelyard explain` prints; `record` is its JSON document.

    Keys: `dataset`, `query`, `model`, `configurations` (one, or two with `against`; each with
    `strategy`, `metrics`, `asked`, `ranked`, the listed `entries` and the relevant ones that are
    `missing`), `changes` (a record an entry of either list, None without `against`), `entry` (the one
    asked for, else None).
    """

    record: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The document, as plain JSON values."""
        return dict(self.record)

    def to_frame(self) -> pd.DataFrame:
        """A row a configuration and listed entry: raw values as `raw NAME`, contributions as `from NAME`."""
        import pandas as pd

        return pd.DataFrame(
            [
                {"configuration": about["role"], "system": about["system"], **_flat(entry)}
                for about in self.record["configurations"]
                for entry in about["entries"]
            ]
        )

    def __repr__(self) -> str:
        return visible(f"QueryExplanation({self.record['query']['id']} of {self.record['dataset']['name']})")

    def __str__(self) -> str:
        from steelyard_eval.explain.show import text

        return text(self.record)

    def _repr_html_(self) -> str:
        from steelyard_eval.explain.show import html

        return html(self.record)


def explain(
    source: Dataset | Workspace,
    query_id: str,
    config: SearchConfig | Named | str,
    against: SearchConfig | Named | str | None = None,
    *,
    entry: str | None = None,
    limit: int | None = None,
    embedder: str = "auto",
) -> QueryExplanation:
    """Explain one query of a data set under a configuration, and what a second one changes.

    A configuration may be written as a system's name, a strategy (over the system `plain`) or the path
    of a weights file, or as `Named`, which says which; `limit` is the length of lists written so.
    `entry` is explained in full, ranked or not. `embedder` serves a data set that is no workspace yet.

    Raises DataError for an unknown query or entry, with the nearest spelling, and ConfigError.
    """
    space = source if isinstance(source, Workspace) else None
    dataset = source.dataset if isinstance(source, Workspace) else source
    query = _query(dataset, query_id)
    known = _known_entry(dataset, query, entry)
    names = [read_name(c) if isinstance(c, str) else c for c in (config, against) if c is not None]
    space = space or Workspace.open(dataset, embedder)
    configs = [c.config(limit, space.model) if isinstance(c, Named) else c for c in names]
    return QueryExplanation(_Case.of(space, query, configs).record(known))


@dataclass(frozen=True)
class _Case:
    """A query with its judgments and its views."""

    space: Workspace
    query: Query
    grades: Mapping[str, int]
    entries: Mapping[str, Entry]
    scope: frozenset[str]
    views: Sequence[View]

    @classmethod
    def of(cls, space: Workspace, query: Query, configs: Sequence[SearchConfig]) -> _Case:
        entries = {entry.id: entry for entry in space.dataset.entries}
        # The store says what is in scope, as it does for the retrievers.
        scope = frozenset(e.id for e in space.store.entries(query.filters)) if query.filters else entries.keys()
        views = [View.of(space, query, config) for config in configs]
        return cls(space, query, space.dataset.qrels.get(query.id, {}), entries, frozenset(scope), views)

    def record(self, entry: str | None) -> dict[str, Any]:
        """The document."""
        roles = ["before", "after"] if len(self.views) == 2 else ["only"]
        dataset = self.space.dataset
        return {
            "schema_version": SCHEMA_VERSION,
            "tool": f"steelyard {__version__}",
            "dataset": {"name": dataset.name, "sha256": dataset.sha256, "entries": len(dataset.entries)},
            "query": self._about_query(),
            "model": self.space.model,
            "configurations": [
                {"role": role, **self._configuration(view)} for role, view in zip(roles, self.views, strict=True)
            ],
            "changes": self._changes() if len(self.views) == 2 else None,
            "entry": None if entry is None else self._entry(entry, roles),
        }

    def _about_query(self) -> dict[str, Any]:
        query = self.query
        clock = self.space.dataset.as_of if query.asked_at is None else query.asked_at
        return {
            **{name: getattr(query, name) for name in ("id", "text", "intent", "category", "domain", "split")},
            "tags": list(query.tags),
            "filter": str(query.filters),
            "in_scope": len(self.scope),
            "clock": format_time(clock),
            "judged": len(self.grades),
            "relevant": sum(grade >= 1 for grade in self.grades.values()),
        }

    def _configuration(self, view: View) -> dict[str, Any]:
        config = view.config
        return {
            "system": config.system,
            "profile": config.profile,
            "strategy": str(config.effective),
            "limit": config.limit,
            "depths": {name: depth for name, depth in config.depths.items() if name in view.asked},
            "asked": sorted(view.asked),
            "metrics": self._metrics(view),
            "ranked": len(view.ranked),
            "entries": [self._hit(view, id_, rank) for id_, rank in view.listed.items()],
            "missing": self._missing(view),
        }

    def _metrics(self, view: View) -> dict[str, float] | None:
        """None for a query without judgments: it has no value, not the value 0."""
        if not self.grades:
            return None
        judgments = Judgments.of(self.space.dataset.qrels, [self.query.id], view.table.entries)
        found = view.run.metrics(judgments, parse_measures(METRICS))
        return {str(measure): float(values[0]) for measure, values in found.items()}

    def _hit(self, view: View, id_: str, rank: int) -> dict[str, Any]:
        tree = view.tree(id_)
        terms, factor = contributions(tree) if tree else ([], None)
        own = {"rank": rank, **self._about(id_), "score": view.score(id_), "signals": view.signals(id_)}
        return own | {"contributions": terms, "factor": factor}

    def _about(self, id_: str) -> dict[str, Any]:
        return {"id": id_, "headline": _headline(self.entries.get(id_)), "grade": self.grades.get(id_)}

    def _missing(self, view: View) -> list[dict[str, Any]]:
        """The relevant entries outside the list: best grade first, then the nearest to it."""
        lost = [id_ for id_, grade in self.grades.items() if grade >= 1 and id_ not in view.listed]
        last = len(view.ranked) + 1
        ordered = sorted(lost, key=lambda id_: (-self.grades[id_], view.ranked.get(id_, last), id_))
        return [{**self._about(id_), **self._place(view, id_)} for id_ in ordered]

    def _place(self, view: View, id_: str) -> dict[str, Any]:
        return place(view, self.query, self.entries.get(id_), id_, id_ in self.scope)

    def _changes(self) -> list[dict[str, Any]]:
        before, after = self.views
        sides = {"entered": before, "left": after}
        found: list[dict[str, Any]] = []
        for move in moves(before, after):
            id_, side = str(move["id"]), sides.get(str(move["kind"]))
            found.append({**self._about(id_), **move, "why": self._place(side, id_)["why"] if side else ""})
        return found

    def _entry(self, id_: str, roles: Sequence[str]) -> dict[str, Any]:
        trees = [(role, view, view.tree(id_)) for role, view in zip(roles, self.views, strict=True)]
        return {
            **self._about(id_),
            "configurations": [
                {"role": role, **self._place(view, id_), "explanation": _finite(tree.to_json()) if tree else None}
                for role, view, tree in trees
            ],
        }


def _query(dataset: Dataset, id_: str) -> Query:
    found = next((query for query in dataset.queries if query.id == id_), None)
    if found is None:
        close = nearest(id_, (query.id for query in dataset.queries))
        raise DataError(f"{dataset.name}: there is no query {shown(id_)}{close}")
    return found


def _known_entry(dataset: Dataset, query: Query, id_: str | None) -> str | None:
    """The id itself, if the corpus holds it or the query has a judgment of it."""
    ids = {entry.id for entry in dataset.entries} if id_ is not None else set()
    if id_ is not None and id_ not in ids and id_ not in dataset.qrels.get(query.id, {}):
        raise DataError(f"{dataset.name}: there is no entry {shown(id_)}{nearest(id_, ids)}")
    return id_


def _headline(entry: Entry | None) -> str:
    """Title, else the start of the text."""
    return "" if entry is None else (entry.title or entry.text[:120])


def _flat(entry: Mapping[str, Any]) -> dict[str, Any]:
    row = {name: entry[name] for name in ("rank", "id", "headline", "grade", "score")}
    row |= {f"raw {name}": signal["value"] for name, signal in entry["signals"].items()}
    row |= {f"from {term['signal']}": term["contribution"] for term in entry["contributions"]}
    return row | {"factor": entry["factor"]["value"] if entry["factor"] else 1.0}


def _finite(node: dict[str, Any]) -> dict[str, Any]:
    """A tree without NaN, which JSON has not: a rank in a list that does not hold the entry is None."""
    value = node["value"] if math.isfinite(node["value"]) else None
    return {**node, "value": value} | ({"parts": [_finite(p) for p in node["parts"]]} if "parts" in node else {})
