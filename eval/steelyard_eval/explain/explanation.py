"""Explains one query of a data set, or one search: as a record for JSON, frames and notebooks, and as text."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from steelyard.base.errors import ConfigError, DataError, nearest, quote, visible
from steelyard.base.fields import format_time
from steelyard.fusion.plan import Explanation
from steelyard.memory.entry import Entry, Hit
from steelyard.memory.query import Query
from steelyard.results import SearchResult
from steelyard_eval.common.configurations import NamedConfig, Setting
from steelyard_eval.common.tabular import Figure, Frame, Tabular, as_frame
from steelyard_eval.compare.contenders import Contender, Given, read, read_config
from steelyard_eval.datasets import Dataset, as_dataset
from steelyard_eval.explain import document
from steelyard_eval.explain.moves import moves
from steelyard_eval.explain.text import text
from steelyard_eval.explain.view import ListView, contributions, list_view_of, view_of
from steelyard_eval.measures.metrics import evaluate_lists, parse_measures
from steelyard_eval.recording.next_steps import shell_command
from steelyard_eval.recording.provenance import TOOL
from steelyard_eval.recording.replay import described, headline, intents_of
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.views.drawing import plots

METRICS = ("nDCG@10", "R@10")
SCHEMA_VERSION = 1


@dataclass(frozen=True, repr=False)
class QueryExplanation(Tabular):
    """The result of `steelyard explain`; `record` is its JSON document.

    `explain/document.py` has its types: the query, a view for each configuration with the listed entries and the
    relevant ones that are missing, the changes between two, and the entry that was asked for.
    """

    record: document.ExplanationDocument

    def to_json(self) -> dict[str, Any]:
        """Return the document as plain JSON values."""
        return dict(self.record)

    def to_frame(self) -> Frame:
        """Return a row for each configuration and listed entry, with the columns `raw NAME` and `from NAME`."""
        return as_frame(
            {"configuration": about["role"], "system": about["system"], **_flat(entry)}
            for about in self.record["configurations"]
            for entry in about["entries"]
        )

    def __repr__(self) -> str:
        return visible(f"QueryExplanation({self.record['query']['id']} of {self.record['dataset']['name']})")

    def __str__(self) -> str:
        return text(self.record)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def plot(self) -> Figure:
        """Plot what each signal adds to the scores of the listed entries, in the last configuration."""
        about = self.record["configurations"][-1]
        rows = [
            (entry["headline"] or entry["id"], {t["signal"]: t["contribution"] for t in entry["contributions"]})
            for entry in about["entries"]
        ]
        return plots.contributions(rows, str(about["strategy"]))


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
        return visible(f"SearchHits({len(self.hits)} for {self.text!r} by {self.contender.label})")

    def plot(self) -> Figure:
        """Plot what each signal adds to the score of each hit."""
        rows = []
        for hit in self.hits:
            tree = self.explain(hit)
            terms = contributions(tree)[0] if tree.parts else []
            rows.append((hit.entry.title or hit.entry.id, {t["signal"]: t["contribution"] for t in terms}))
        return plots.contributions(rows, str(self.result.strategy))


def explain(
    source: Dataset | Workspace | str | Path,
    query_id: str,
    config: Given | NamedConfig | None = None,
    against: Given | NamedConfig | None = None,
    *,
    entry: str | None = None,
    limit: int | None = None,
    embedder: str = "auto",
) -> QueryExplanation:
    """Explain one query of a data set under a configuration, and what a second one changes.

    The parameters are those of `Workbench.explain` and of `Workspace.open`; `source` is the data set, indexed
    already or not, or its folder. Raises DataError for an unknown query or entry, with the nearest spelling, and
    ConfigError when `config` has lists only, without signals, or is the same as `against`.
    """
    dataset = source.dataset if isinstance(source, Workspace) else as_dataset(source)
    query = next((query for query in dataset.queries if query.id == query_id), None)
    if query is None:
        worst = shell_command("explain", dataset, options={})
        near = nearest(query_id, (query.id for query in dataset.queries))
        near = near or (f"; the worst queries are listed by: {worst}" if worst else "")
        raise DataError(f"{dataset.called}: there is no query {quote(query_id)}{near}")
    ids = {one.id for one in dataset.entries}
    if entry is not None and entry not in ids | dataset.qrels.get(query.id, {}).keys():
        raise DataError(f"{dataset.called}: there is no entry {quote(entry)}{nearest(entry, ids)}")
    first, second = read_config(config or dataset.today), None if against is None else read(against)
    if isinstance(second, NamedConfig) and first.given == second.given:
        raise ConfigError(f"{first.label} and {second.label} are the same; name another contender")
    space = source if isinstance(source, Workspace) else Workspace.open(dataset, embedder)
    setting = Setting(limit, space.model)
    views = [
        view_of(space, query, contender.config(setting), contender.label)
        if isinstance(contender, NamedConfig)
        else list_view_of(contender, dataset, query, setting.size)
        for contender in (first, second)
        if contender is not None
    ]
    grades, entries = dataset.qrels.get(query.id, {}), {one.id: one for one in dataset.entries}
    # The store decides what is in scope, as it does for the retrievers.
    scope = {one.id for one in space.store.entries(query.filters)} if query.filters else entries.keys()
    return QueryExplanation(_Case(space, query, grades, views, entries, scope).record(entry))


@dataclass(frozen=True)
class _Case:
    """A query with its judgments and its views; `entries` is the corpus by id, `scope` what the query may find."""

    space: Workspace
    query: Query
    grades: Mapping[str, int]
    views: Sequence[ListView]
    entries: Mapping[str, Entry]
    scope: Collection[str]

    def record(self, entry: str | None) -> document.ExplanationDocument:
        dataset, query = self.space.dataset, self.query
        views = list(zip(["before", "after"] if len(self.views) == 2 else ["only"], self.views, strict=True))
        return {
            "schema_version": SCHEMA_VERSION,
            "tool": TOOL,
            "dataset": described(dataset),
            "intents": intents_of(dataset),
            "query": {
                **{name: getattr(query, name) for name in ("id", "text", "intent", "category", "domain", "split")},
                "tags": list(query.tags),
                "filter": str(query.filters),
                "in_scope": len(self.scope),
                "clock": format_time(dataset.clock(query)),
                "judged": len(self.grades),
                "relevant": sum(grade >= 1 for grade in self.grades.values()),
            },
            "model": self.space.model,
            "configurations": [self._configuration(role, view) for role, view in views],
            "changes": self._changes(*self.views) if len(self.views) == 2 else None,
            "entry": None if entry is None else self._entry(entry, views),
        }

    def _configuration(self, role: str, view: ListView) -> document.ExplainedView:
        """One view; a query without judgments has no metrics, rather than 0."""
        measures = parse_measures(METRICS) if self.grades else []
        measured = evaluate_lists(view.lists, self.space.dataset.qrels, measures)
        lost = [id_ for id_, grade in self.grades.items() if grade >= 1 and id_ not in view.listed]
        last = len(view.ranked) + 1
        lost.sort(key=lambda id_: (-self.grades[id_], view.ranked.get(id_, last), id_))
        return {
            **view.about,
            "role": role,
            "metrics": {str(one): float(values[0]) for one, values in measured.items()} or None,
            "ranked": len(view.ranked),
            "entries": [self._listed(view, id_, rank) for id_, rank in view.listed.items()],
            "missing": [{**self._about(id_), **self._place(view, id_)} for id_ in lost],
        }

    def _listed(self, view: ListView, id_: str, rank: int) -> document.ListedEntry:
        tree, again = view.trees(id_)
        terms, factor = contributions(tree) if tree else ([], None)
        listed: document.ListedEntry = {
            "id": id_,
            "headline": headline(self.entries.get(id_)),
            "grade": self.grades.get(id_),
            "rank": rank,
            "score": view.scores[id_],
            "signals": view.signals(id_),
            "contributions": terms,
            "factor": factor,
        }
        if again is not None:
            listed["fused"] = None if tree is None else tree.value
            listed["finished"] = _finite(again)
        return listed

    def _about(self, id_: str) -> document.ExplainedEntry:
        return {"id": id_, "headline": headline(self.entries.get(id_)), "grade": self.grades.get(id_)}

    def _place(self, view: ListView, id_: str) -> document.PlaceRecord:
        return view.place(id_, self.query, self.entries.get(id_), id_ in self.scope)

    def _changes(self, before: ListView, after: ListView) -> list[document.ChangeRecord]:
        changes, sides = moves(before, after, self._about), {"entered": before, "left": after}
        for change in changes:
            if side := sides.get(change["kind"]):
                change["why"] = self._place(side, change["id"])["why"]
        return changes

    def _entry(self, id_: str, views: Sequence[tuple[str, ListView]]) -> document.RequestedEntry:
        explained: list[document.ExplainedTree] = []
        for role, view in views:
            tree, place = view.tree(id_), self._place(view, id_)
            explanation = _finite(tree) if tree else None
            explained.append({"role": role, **place, "matching": view.matching(id_), "explanation": explanation})
        return {**self._about(id_), "configurations": explained}


def _flat(entry: document.ListedEntry) -> dict[str, object]:
    row: dict[str, object] = {name: entry[name] for name in ("rank", "id", "headline", "grade", "score")}
    row |= {f"raw {name}": signal["value"] for name, signal in entry["signals"].items()}
    row |= {f"from {term['signal']}": term["contribution"] for term in entry["contributions"]}
    return row | {"factor": entry["factor"]["value"] if entry["factor"] else 1.0}


def _finite(tree: Explanation) -> document.ScoreTree:
    """The tree without NaN, which JSON lacks: a rank in a list without the entry becomes None."""
    node: document.ScoreTree = {"value": tree.value if math.isfinite(tree.value) else None, "text": tree.text}
    if tree.parts:
        node["combine"] = tree.combine
        node["parts"] = [_finite(part) for part in tree.parts]
    return node
