"""The view of one query by one configuration: the list, the place of every other entry, and each score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from steelyard.config.search_config import SearchConfig
from steelyard.finish import explain_rescore, floor_that_emptied
from steelyard.fusion import Plan, Signal, compile_plan, leaves
from steelyard.fusion.plan import Explanation
from steelyard.live.search import Searcher
from steelyard.memory.query import Query
from steelyard.retrievers import LAYERS, RETRIEVER_KINDS, RETRIEVERS
from steelyard.systems import find_system
from steelyard.table.signal_table import SignalTable
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets import Dataset
from steelyard_eval.explain.document import AboutView, FactorRecord, RawSignal, TermRecord
from steelyard_eval.measures.runs import Ranked
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import Replay, replay
from steelyard_eval.recording.workspace import Workspace


@dataclass(frozen=True)
class View:
    """The result of one configuration for one query.

    Attributes
    ----------
    deep, table : the recording with every list as long as the corpus, and masked to the depths.
    listed, ranked : id -> rank in the list that is shown, and among all that were scored.
    asked : the fetched signals that live search would have asked for.
    rows : id -> row of the tables.
    query : the query as the system reads it, with its intent and the text that keywords match.
    label : the configuration as it was named.
    searcher : live search by it, with every list as long as the corpus.
    """

    config: SearchConfig
    deep: SignalTable
    table: SignalTable
    plan: Plan
    run: Replay
    listed: Mapping[str, int]
    ranked: Mapping[str, int]
    asked: frozenset[str]
    rows: Mapping[str, int]
    query: Query
    label: str
    searcher: Searcher

    @classmethod
    def of(cls, space: Workspace, query: Query, asked_for: SearchConfig, label: str) -> View:
        """Record the query to the full depth and replay it, by the code of live search."""
        config = usable(space, Contender(label, asked_for, "system"))[0].config  # without what the data lack
        whole = reaching(config, len(space.dataset.entries))
        deep = record(space, [query], [whole])
        searcher = space.searcher(whole)
        (asked,) = space.dataset.asked([query], searcher.knows)
        run, ranked = replay(deep, config), replay(deep, replace(config, finish=()))
        needs = config.effective.needs(run.table, tuple(config.retrievers))
        return cls(
            config=config,
            deep=deep,
            table=run.table,
            plan=compile_plan(run.table, config.effective),
            run=run,
            listed=_ranks(run),
            ranked=_ranks(ranked),
            asked=frozenset(name for name, queries in needs.items() if queries.any()),
            rows={deep.entries[entry]: row for row, entry in enumerate(deep.entry)},
            query=searcher.admitted(asked),
            label=label,
            searcher=searcher,
        )

    @property
    def lists(self) -> Ranked:
        """The list that is shown."""
        return self.run.ranked

    def about(self) -> AboutView:
        """Describe the configuration for the document."""
        config = self.config
        return {
            "label": self.label,
            "system": config.system,
            "profile": config.profile,
            "strategy": str(config.effective),
            "limit": config.limit,
            "depths": {name: depth for name, depth in config.depths.items() if name in self.asked},
            "asked": sorted(self.asked),
            "unasked": self.unasked,
            "intent": self.query.intent,
            "confidence": self.query.confidence,
            "matched": self.query.keywords,
            "emptied": self._emptied(),
            "finish": [str(stage) for stage in config.finish],
        }

    def _emptied(self) -> str:
        """Which floor, step of a layered search or words left nothing to show; empty where there is a list."""
        if self.listed:
            return ""
        progress = self.config.effective.progress(self.table)
        below = floor_that_emptied(self.table, self.plan.scores(), self.config.finish)
        return below or ("" if progress is None else progress.emptied()) or "; ".join(self._unheld())

    @property
    def unasked(self) -> list[str]:
        """The retrievers of the strategy that were not searched, because others had found enough."""
        return sorted((self.config.effective.signals() & RETRIEVERS) - self.asked)

    def matching(self, id_: str) -> dict[str, list[str]]:
        """By keyword retriever, the words of the query by each of which alone it finds an entry."""
        words = dict.fromkeys(self.query.keywords.split())
        searched = [name for name in sorted(self.asked) if self.sought(name)]
        return {name: [word for word in words if self._matches(name, word, id_)] for name in searched}

    def _matches(self, name: str, word: str, id_: str) -> bool:
        alone = self.sought(name, word)
        if not alone or alone not in (self.sought(name) or ""):  # such as a stop word, which is sought alone only
            return False
        return id_ in self.searcher.candidates(replace(self.query, matched=word), Signal(name), False).entries

    def sought(self, name: str, text: str | None = None) -> str | None:
        """What words of the query a retriever looks for; None for one that looks for none or does not tell."""
        if name not in RETRIEVER_KINDS:
            return None
        text = self.query.keywords if text is None else text
        return RETRIEVER_KINDS[name].seeks(find_system(self.config.name).reading, text)

    def _unheld(self) -> Iterator[str]:
        """Of each retriever that found nothing in scope at any depth, what it looked for."""
        for name in sorted(self.asked & RETRIEVER_KINDS.keys()):
            sought = self.sought(name)
            if sought is None or not np.isnan(self.deep.columns[name]).all():
                continue
            none = f"no entry in scope holds what {name} looks for: {sought}"
            yield none if sought else f"the query has no word that {name} looks for"

    def fused(self, id_: str) -> Explanation | None:
        """Explain the score that the strategy gives an entry; None when it ranks it not."""
        return self.plan.explain(self.rows[id_]) if id_ in self.rows else None

    def finished(self, id_: str) -> Explanation | None:
        """Explain the score of a listed entry that a finish stage scored again; None for any other."""
        if id_ not in self.listed:
            return None
        return explain_rescore(self.table, self.plan.scores(), self.config.finish, self.rows[id_])

    def tree(self, id_: str) -> Explanation | None:
        """Explain the score of an entry as a tree; None when it was not ranked."""
        return self.finished(id_) or self.fused(id_)

    def score(self, id_: str) -> float:
        """Return the score of a ranked entry, or for a listed one its score in the list."""
        if id_ in self.listed:
            return float(self.run.ranking.score[self.listed[id_] - 1])
        return float(self.plan.scores()[self.rows[id_]])

    def signals(self, id_: str) -> dict[str, RawSignal]:
        """Return the raw value of every signal that the ranking used, with its position for a retriever."""
        row = self.rows[id_]
        return {str(leaf): self._raw(leaf, row) for leaf in self._used()}

    def _raw(self, leaf: Signal, row: int) -> RawSignal:
        everywhere = np.ones(len(self.table), dtype=bool)
        value = float(leaf.compile(self.table, everywhere).branches[0].columns[0].values[row])
        if np.isnan(value):
            return {"value": None, "position": None}
        position = int(self.table.positions[leaf.name][row]) if leaf.name in self.table.positions else None
        return {"value": value, "position": position}

    def _used(self) -> list[Signal]:
        """The signals of the branches that ranked something, as the strategy writes them, each once."""
        labels = {source.label for source in self.plan.sources()}
        return [leaf for leaf in leaves(self.config.effective) if str(leaf) in labels]


def contributions(tree: Explanation) -> tuple[list[TermRecord], FactorRecord | None]:
    """List the terms of a score, and the factor on their sum (None without one).

    The contributions, added from left to right and then multiplied by the factor, are the score to
    the last bit: they are the products that the plan adds.
    """
    factor: FactorRecord | None = None
    if tree.combine == "product":
        tree, last = tree.parts
        parts = {part.text: part.value for part in last.parts}
        factor = {"value": last.value, "formula": last.text, "parts": parts}
    terms: list[TermRecord] = []
    for part in tree.parts:
        weight, column = part.parts
        terms.append(
            {
                "signal": part.text.partition(" * ")[2],
                "weight": weight.value,
                "value": column.value,
                "formula": column.text,
                "contribution": part.value,
            }
        )
    return terms, factor


def _ranks(run: Replay) -> dict[str, int]:
    return {run.table.entries[entry]: rank for rank, entry in enumerate(run.entry, 1)}


def reaching(config: SearchConfig, size: int) -> SearchConfig:
    """Make every list as long as the corpus, to find the position of an entry beyond the depth."""
    retrievers = {
        name: settings if name in LAYERS else replace(settings, depth=max(settings.depth or 1, size))
        for name, settings in config.retrievers.items()
    }
    return replace(config, retrievers=retrievers)


@dataclass(frozen=True)
class ListView:
    """The list for one query: `scores` by id, best first, and the same list as `lists`."""

    contender: ListContender
    limit: int
    scores: Mapping[str, float]
    lists: Ranked

    @classmethod
    def of(cls, contender: ListContender, dataset: Dataset, query: Query, limit: int) -> ListView:
        """Ask the contender."""
        answers = contender.answers([query], limit, dataset)
        return cls(contender, limit, dict(answers.lists[0][:limit]), answers.ranked([query], limit))

    @property
    def listed(self) -> Mapping[str, int]:
        """The ranks by id."""
        return {id_: rank for rank, id_ in enumerate(self.scores, 1)}

    @property
    def ranked(self) -> Mapping[str, int]:
        """The ranks by id; nothing is known beyond the list."""
        return self.listed

    def fused(self, id_: str) -> Explanation | None:
        """Return None: the source of the score is not known."""
        return None

    finished = tree = fused

    def score(self, id_: str) -> float:
        """Return the score of a listed entry."""
        return self.scores[id_]

    def matching(self, id_: str) -> dict[str, list[str]]:
        """Return nothing: which words were sought is not known."""
        return {}

    def signals(self, id_: str) -> dict[str, RawSignal]:
        """Return no signals."""
        return {}

    def about(self) -> AboutView:
        """Describe the contender for the document."""
        return {
            "label": self.contender.label,
            "system": None,
            "profile": None,
            "strategy": self.contender.source,
            "limit": self.limit,
            "depths": {},
            "asked": [],
            "unasked": [],
            "intent": "",
            "matched": "",
            "finish": [],
        }
