"""Explains one query of a data set, as a record for JSON, frames and notebooks, and as text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard import __version__
from steelyard.base.errors import ConfigError, DataError, nearest, shown, visible
from steelyard.base.fields import format_time
from steelyard.fusion.plan import Explanation
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard_eval.common.configurations import Named, Setting
from steelyard_eval.common.tabular import Tabular
from steelyard_eval.compare.contenders import Given, read, read_config
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets import Dataset, as_dataset
from steelyard_eval.explain.document import (
    ChangeRecord,
    ExplainedEntry,
    ExplainedQuery,
    ExplainedView,
    ExplanationDocument,
    ListedEntry,
    MissingEntry,
    PlaceRecord,
    RequestedEntry,
    ScoreTree,
)
from steelyard_eval.explain.moves import moves
from steelyard_eval.explain.places import place
from steelyard_eval.explain.text import html, text
from steelyard_eval.explain.view import ListView, View, contributions
from steelyard_eval.measures.metrics import parse_measures
from steelyard_eval.recording.replay import intents_of
from steelyard_eval.recording.shown_lists import described, headline
from steelyard_eval.recording.steps import spelled
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.views.drawing import plots

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

AnyView = View | ListView
METRICS = ("nDCG@10", "R@10")
SCHEMA_VERSION = 1


@dataclass(frozen=True, repr=False)
class QueryExplanation(Tabular):
    """The result of `steelyard explain`; `record` is its JSON document.

    `explain/document.py` has its types: the query, a view for each configuration with the listed entries and the
    relevant ones that are missing, the changes between two, and the entry that was asked for.
    """

    record: ExplanationDocument

    def to_json(self) -> dict[str, Any]:
        """Return the document as plain JSON values."""
        return dict(self.record)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each configuration and listed entry, with the columns `raw NAME` and `from NAME`."""
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
        return text(self.record)

    def _repr_html_(self) -> str:
        return html(self.record)

    def plot(self) -> Figure:
        """Plot what each signal adds to the scores of the listed entries, in the last configuration."""
        about = self.record["configurations"][-1]
        rows = [
            (entry["headline"] or entry["id"], {t["signal"]: t["contribution"] for t in entry["contributions"]})
            for entry in about["entries"]
        ]
        return plots.contributions(rows, str(about["strategy"]))


def explain(
    source: Dataset | Workspace | str | Path,
    query_id: str,
    config: Given | Named | None = None,
    against: Given | Named | None = None,
    *,
    entry: str | None = None,
    limit: int | None = None,
    embedder: str = "auto",
) -> QueryExplanation:
    """Explain one query of a data set under a configuration, and what a second one changes.

    The parameters are those of `Workbench.explain` and of `Workspace.open`; `source` is the data set, indexed
    already or not, or its folder.

    Raises
    ------
    DataError
        For an unknown query or entry, with the nearest spelling.
    ConfigError
        When `config` has lists only, without signals, or is the same as `against`.
    """
    space = source if isinstance(source, Workspace) else None
    dataset = source.dataset if isinstance(source, Workspace) else as_dataset(source)
    query = _query(dataset, query_id)
    ids = {one.id for one in dataset.entries}
    if entry is not None and entry not in ids | dataset.qrels.get(query.id, {}).keys():
        raise DataError(f"{dataset.called}: there is no entry {shown(entry)}{nearest(entry, ids)}")
    named: list[Named | ListContender] = [
        read_config(config or dataset.today),
        *([] if against is None else [read(against)]),
    ]
    first, *second = named
    if second and isinstance(first, Named) and isinstance(second[0], Named) and first.given == second[0].given:
        raise ConfigError(
            f"{first.label} would be held against {second[0].label}, which is the same; name another contender"
        )
    space = space or Workspace.open(dataset, embedder)
    setting = Setting(limit, space.model)
    views = [
        View.of(space, query, contender.config(setting), contender.label)
        if isinstance(contender, Named)
        else ListView.of(contender, dataset, query, setting.size)
        for contender in named
    ]
    return QueryExplanation(_Case.of(space, query, views).record(entry))


@dataclass(frozen=True)
class _Case:
    """A query with its judgments and its views."""

    space: Workspace
    query: Query
    grades: Mapping[str, int]
    entries: Mapping[str, Entry]
    scope: frozenset[str]
    views: Sequence[AnyView]

    @classmethod
    def of(cls, space: Workspace, query: Query, views: Sequence[AnyView]) -> _Case:
        entries = {entry.id: entry for entry in space.dataset.entries}
        # The store decides what is in scope, as it does for the retrievers.
        scope = frozenset(e.id for e in space.store.entries(query.filters)) if query.filters else entries.keys()
        return cls(space, query, space.dataset.qrels.get(query.id, {}), entries, frozenset(scope), views)

    def record(self, entry: str | None) -> ExplanationDocument:
        """The document."""
        roles = ["before", "after"] if len(self.views) == 2 else ["only"]
        dataset = self.space.dataset
        return {
            "schema_version": SCHEMA_VERSION,
            "tool": f"steelyard {__version__}",
            "dataset": described(dataset),
            "intents": intents_of(dataset),
            "query": self._about_query(),
            "model": self.space.model,
            "configurations": [
                self._configuration(role, view) for role, view in zip(roles, self.views, strict=True)
            ],
            "changes": self._changes() if len(self.views) == 2 else None,
            "entry": None if entry is None else self._entry(entry, roles),
        }

    def _about_query(self) -> ExplainedQuery:
        query = self.query
        clock = self.space.dataset.clock(query)
        return {
            "id": query.id,
            "text": query.text,
            "intent": query.intent,
            "category": query.category,
            "domain": query.domain,
            "split": query.split,
            "tags": list(query.tags),
            "filter": str(query.filters),
            "in_scope": len(self.scope),
            "clock": format_time(clock),
            "judged": len(self.grades),
            "relevant": sum(grade >= 1 for grade in self.grades.values()),
        }

    def _configuration(self, role: str, view: AnyView) -> ExplainedView:
        return {
            **view.about(),
            "role": role,
            "metrics": self._metrics(view),
            "ranked": len(view.ranked),
            "entries": [self._hit(view, id_, rank) for id_, rank in view.listed.items()],
            "missing": self._missing(view),
        }

    def _metrics(self, view: AnyView) -> dict[str, float] | None:
        """The metrics; None for a query without judgments, which has no value rather than 0."""
        if not self.grades:
            return None
        measured = view.lists.metrics(self.space.dataset.qrels, parse_measures(METRICS))
        return {str(measure): float(values[0]) for measure, values in measured.items()}

    def _hit(self, view: AnyView, id_: str, rank: int) -> ListedEntry:
        tree, again = view.fused(id_), view.finished(id_)
        terms, factor = contributions(tree) if tree else ([], None)
        listed: ListedEntry = {
            "rank": rank,
            "id": id_,
            "headline": headline(self.entries.get(id_)),
            "grade": self.grades.get(id_),
            "score": view.score(id_),
            "signals": view.signals(id_),
            "contributions": terms,
            "factor": factor,
        }
        if again is not None:
            listed["fused"] = None if tree is None else tree.value
            listed["finished"] = _finite(again)
        return listed

    def _about(self, id_: str) -> ExplainedEntry:
        return {"id": id_, "headline": headline(self.entries.get(id_)), "grade": self.grades.get(id_)}

    def _missing(self, view: AnyView) -> list[MissingEntry]:
        """The relevant entries outside the list: best grade first, then the nearest to it."""
        lost = [id_ for id_, grade in self.grades.items() if grade >= 1 and id_ not in view.listed]
        last = len(view.ranked) + 1
        ordered = sorted(lost, key=lambda id_: (-self.grades[id_], view.ranked.get(id_, last), id_))
        return [{**self._about(id_), **self._place(view, id_)} for id_ in ordered]

    def _place(self, view: AnyView, id_: str) -> PlaceRecord:
        return place(view, self.query, self.entries.get(id_), id_, id_ in self.scope)

    def _changes(self) -> list[ChangeRecord]:
        before, after = self.views
        if not isinstance(before, View):
            raise TypeError("the first view is that of a configuration")
        sides = {"entered": before, "left": after}
        changes: list[ChangeRecord] = []
        for move in moves(before, after):
            id_, side = move["id"], sides.get(move["kind"])
            changes.append({**self._about(id_), **move, "why": self._place(side, id_)["why"] if side else ""})
        return changes

    def _entry(self, id_: str, roles: Sequence[str]) -> RequestedEntry:
        trees = [(role, view, view.tree(id_)) for role, view in zip(roles, self.views, strict=True)]
        return {
            **self._about(id_),
            "configurations": [
                {
                    "role": role,
                    **self._place(view, id_),
                    "matching": view.matching(id_),
                    "explanation": _finite(tree) if tree else None,
                }
                for role, view, tree in trees
            ],
        }


def _query(dataset: Dataset, id_: str) -> Query:
    known = next((query for query in dataset.queries if query.id == id_), None)
    if known is None:
        worst = spelled("explain", dataset, options={})
        close = nearest(id_, (query.id for query in dataset.queries))
        close = close or (f"; the worst queries are listed by: {worst}" if worst else "")
        raise DataError(f"{dataset.called}: there is no query {shown(id_)}{close}")
    return known


def _flat(entry: ListedEntry) -> dict[str, object]:
    row: dict[str, object] = {name: entry[name] for name in ("rank", "id", "headline", "grade", "score")}
    row |= {f"raw {name}": signal["value"] for name, signal in entry["signals"].items()}
    row |= {f"from {term['signal']}": term["contribution"] for term in entry["contributions"]}
    return row | {"factor": entry["factor"]["value"] if entry["factor"] else 1.0}


def _finite(tree: Explanation) -> ScoreTree:
    """The tree without NaN, which JSON lacks: a rank in a list without the entry becomes None."""
    node: ScoreTree = {"value": tree.value if math.isfinite(tree.value) else None, "text": tree.text}
    if tree.parts:
        node["combine"] = tree.combine
        node["parts"] = [_finite(part) for part in tree.parts]
    return node
