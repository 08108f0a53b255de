"""The answer of one contender to one query: the list, the place of every other entry, and each score."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from steelyard.config import SearchConfig
from steelyard.finish import explain_rescore, floor_that_emptied
from steelyard.fusion import Plan, Signal, compile_plan, leaves
from steelyard.fusion.layered import progress as layered_progress
from steelyard.fusion.plan import Explanation
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import Query
from steelyard.retrievers import LAYERS, RETRIEVER_KINDS, RETRIEVERS
from steelyard.systems import find_system
from steelyard.table.signal_table import SignalTable
from steelyard_eval.compare.buried import as_new, dated
from steelyard_eval.compare.contenders import Contender, usable
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets import Dataset
from steelyard_eval.explain import document
from steelyard_eval.measures.judgments import Ranked
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.result.sentences import heading


@dataclass(frozen=True)
class ListView:
    """The list of a contender that has lists only, which tells nothing of how its scores came about.

    `about` is the contender for the document, `lists` the list that is shown, `scores` its scores by id, best
    first, and `ranked` has the ranks of all that were scored; `as_new` those in the list if all entries were new.
    """

    about: document.AboutView
    lists: Ranked
    scores: Mapping[str, float]
    ranked: Mapping[str, int]
    as_new: Mapping[str, int]

    @cached_property
    def listed(self) -> dict[str, int]:
        """The ranks in the list by id."""
        return {id_: rank for rank, id_ in enumerate(self.scores, 1)}

    def rank(self, id_: str) -> int | None:
        """Return the rank in the list, else among all that were scored."""
        return self.listed.get(id_) or self.ranked.get(id_)

    def trees(self, id_: str) -> tuple[Explanation | None, Explanation | None]:
        """Explain the score by the strategy, and that of a listed entry by a finish stage; None without one."""
        return None, None

    def tree(self, id_: str) -> Explanation | None:
        """Explain the score of an entry as a tree; None when it was not ranked."""
        fused, finished = self.trees(id_)
        return finished or fused

    def signals(self, id_: str) -> dict[str, document.RawSignal]:
        """Return the raw value of every signal that the ranking used, with its position for a retriever."""
        return {}

    def matching(self, id_: str) -> dict[str, list[str]]:
        """By keyword retriever, the words of the query by each of which alone it finds an entry."""
        return {}

    def positions(self, id_: str) -> dict[str, document.ListPosition]:
        """Find an entry in the whole list of every retriever that was used, with the configured depth."""
        return {}

    def place(self, id_: str, query: Query, entry: Entry | None, in_scope: bool) -> document.PlaceRecord:
        """Find an entry: `where` it is, its `rank` if it has one, `why` in words, and its position in all `lists`.

        `where` is listed, dropped (by a finish stage), below_cut, not_in_corpus, out_of_scope, not_ranked,
        beyond_depth or not_returned.
        """
        lists, rank = self.positions(id_), self.rank(id_)
        if id_ in self.listed:
            where, why = "listed", f"rank {rank}"
        elif rank is not None and rank <= len(self.listed):
            where, why = "dropped", f"rank {rank}, dropped by a finish stage"
        elif rank is not None:
            where, why = "below_cut", f"rank {rank}, the list ends at {len(self.listed)}"
        elif entry is None:
            where, why = "not_in_corpus", "judged, but not in the corpus"
        elif not in_scope:  # the store has decided it
            failed = "; ".join(query.filters.failed(entry)) or "the filters exclude it"
            where, why = "out_of_scope", f"outside the scope: {failed}"
        else:
            where, why = self._unranked(lists)
        held = [f"place {at['position']} in {name}" for name, at in lists.items() if rank and at["position"]]
        new, day = None if where == "listed" else self.as_new.get(id_), dated(entry)
        aged = [heading("only_age", {"day": day, "place": new})] if new else []
        why = "; ".join([why, *held, *aged])
        place: document.PlaceRecord = {"where": where, "rank": rank, "why": why, "lists": lists}
        return {**place, "dated": day, "as_new": new} if new else place

    def _unranked(self, lists: Mapping[str, document.ListPosition]) -> tuple[str, str]:
        return "not_returned", f"not among the {len(self.listed)} that were returned"


@dataclass(frozen=True)
class View(ListView):
    """The answer of a configuration.

    `deep` is the recording with every list as long as the corpus, `table` the same masked to the depths, `rows`
    their rows by id, and `plan` the compiled strategy over `table`. Live search would have `searched` for these
    signals. `query` is the query as the system reads it, with its intent and the text that keywords match, and
    `searcher` searches live, with every list as long as the corpus.
    """

    config: SearchConfig
    deep: SignalTable
    table: SignalTable
    plan: Plan
    searched: frozenset[str]
    rows: Mapping[str, int]
    query: Query
    searcher: Searcher

    def trees(self, id_: str) -> tuple[Explanation | None, Explanation | None]:
        """See ListView."""
        if id_ not in self.rows:
            return None, None
        row, scores = self.rows[id_], self.plan.scores()
        again = explain_rescore(self.table, scores, self.config.finish, row) if id_ in self.scores else None
        return self.plan.explain(row), again

    def signals(self, id_: str) -> dict[str, document.RawSignal]:
        """See ListView; the signals are those of the branches that ranked something, each once."""
        labels = {source.label for source in self.plan.sources()}
        used = (leaf for leaf in leaves(self.config.effective) if str(leaf) in labels)
        return {str(leaf): self._raw(leaf, self.rows[id_]) for leaf in used}

    def _raw(self, leaf: Signal, row: int) -> document.RawSignal:
        everywhere = np.ones(len(self.table), dtype=bool)
        value = float(leaf.compile(self.table, everywhere).branches[0].columns[0].values[row])
        absent, places = np.isnan(value), self.table.positions.get(leaf.name)
        position = None if absent or places is None else int(places[row])
        return {"value": None if absent else value, "position": position}

    def matching(self, id_: str) -> dict[str, list[str]]:
        """See ListView."""
        words = dict.fromkeys(self.query.keywords.split())
        searched = [name for name in sorted(self.searched) if sought(self.config, name, self.query.keywords)]
        return {name: [word for word in words if self._matches(name, word, id_)] for name in searched}

    def _matches(self, name: str, word: str, id_: str) -> bool:
        alone, among = (sought(self.config, name, text) for text in (word, self.query.keywords))
        if not alone or alone not in (among or ""):  # such as a stop word, which is sought alone only
            return False
        return id_ in self.searcher.candidates(replace(self.query, matched=word), Signal(name), False).entries

    def positions(self, id_: str) -> dict[str, document.ListPosition]:
        """See ListView."""
        row = self.rows.get(id_)
        found: dict[str, document.ListPosition] = {}
        for name in sorted(self.searched & RETRIEVERS & self.deep.columns.keys()):
            absent = row is None or np.isnan(self.deep.columns[name][row])
            position = None if absent else int(self.deep.positions[name][row])
            found[name] = {"position": position, "depth": self.config.depths.get(name)}
        return found

    def _unranked(self, lists: Mapping[str, document.ListPosition]) -> tuple[str, str]:
        """Whether it was returned and not ranked, returned beyond the depth, or not returned."""
        words = []
        for name, at in lists.items():
            looked = sought(self.config, name, self.query.keywords)
            absent = f"not found by {name}{f' (holds none of {looked})' if looked else ''}"
            words.append(absent if at["position"] is None else f"place {at['position']} in {name}")
        if any(at["position"] and not too_deep(**at) for at in lists.values()):
            return "not_ranked", "; ".join(["found, but not ranked by the strategy", *words])
        return "beyond_depth" if any(too_deep(**at) for at in lists.values()) else "not_returned", "; ".join(words)


def view_of(space: Workspace, query: Query, requested: SearchConfig, label: str) -> View:
    """Record a query to the full depth and replay it, by the code of live search."""
    config = usable(space, Contender(label, requested, "system"))[0].config  # without what the data lack
    size = len(space.dataset.entries)  # lists as long as the corpus show where an entry is beyond the depth
    whole = {
        name: own if name in LAYERS else replace(own, depth=max(own.depth or 1, size))
        for name, own in config.retrievers.items()
    }
    searcher = space.searcher(replace(config, retrievers=whole))
    deep = record(space, [query], [searcher.config])
    run, ranked = replay(deep, config), replay(deep, replace(config, finish=()))
    plan = compile_plan(run.table, config.effective)
    needs = config.effective.needs(run.table, tuple(config.retrievers))
    asked = frozenset(name for name, queries in needs.items() if queries.any())
    (read,) = map(searcher.admitted, space.dataset.with_known_intents([query], searcher.knows))
    about: document.AboutView = {
        "label": label,
        "system": config.system,
        "profile": config.profile,
        "strategy": str(config.effective),
        "limit": config.limit,
        "depths": {name: depth for name, depth in config.depths.items() if name in asked},
        "searched_retrievers": sorted(asked),
        "skipped_retrievers": sorted((config.effective.signals & RETRIEVERS) - asked),
        "intent": read.intent,
        "confidence": read.confidence,
        "matched": read.keywords,
        "emptied": "",
        "finish": [str(stage) for stage in config.finish],
    }
    if not len(run.entry):  # which floor, step of a layered search or words left nothing to show
        progress = layered_progress(config.effective, run.table)
        below = floor_that_emptied(run.table, plan.scores(), config.finish)
        about["emptied"] = (
            below or (progress.emptied() if progress else "") or "; ".join(_unheld(config, deep, asked, read))
        )
    return View(
        about=about,
        lists=run.ranked,
        scores=dict(zip((run.table.entries[i] for i in run.entry), run.ranking.score.tolist(), strict=True)),
        ranked={deep.entries[entry]: rank for rank, entry in enumerate(ranked.entry, 1)},
        as_new={deep.entries[entry]: rank for rank, entry in enumerate(replay(as_new(deep), config).entry, 1)},
        config=config,
        deep=deep,
        table=run.table,
        plan=plan,
        searched=asked,
        rows={deep.entries[entry]: row for row, entry in enumerate(deep.entry)},
        query=read,
        searcher=searcher,
    )


def list_view_of(contender: ListContender, dataset: Dataset, query: Query, limit: int) -> ListView:
    """Ask a contender for its list; nothing is known beyond it."""
    answers = contender.answers([query], limit, dataset)
    scores = dict(answers.lists[0][:limit])
    about: document.AboutView = {
        "label": contender.label,
        "system": None,
        "profile": None,
        "strategy": contender.source,
        "limit": limit,
        "depths": {},
        "searched_retrievers": [],
        "skipped_retrievers": [],
        "intent": "",
        "matched": "",
        "finish": [],
    }
    ranks = {id_: rank for rank, id_ in enumerate(scores, 1)}
    return ListView(about, answers.ranked([query], limit), scores, ranks, {})


def sought(config: SearchConfig, name: str, text: str) -> str | None:
    """What words of a text a retriever looks for; None for one that looks for none or does not tell."""
    kind = RETRIEVER_KINDS.get(name)
    return kind.seeks(find_system(config.name).reading, text) if kind else None


def _unheld(config: SearchConfig, deep: SignalTable, asked: frozenset[str], query: Query) -> Iterator[str]:
    """Of each retriever that found nothing in scope at any depth, what it looked for."""
    for name in sorted(asked):
        looked = sought(config, name, query.keywords)
        if looked is not None and np.isnan(deep.columns[name]).all():
            none = f"no entry in scope holds what {name} looks for: {looked}"
            yield none if looked else f"the query has no word that {name} looks for"


def too_deep(position: int | None, depth: int | None) -> bool:
    """Whether a place is below the depth to which its list is read, so that it does not count."""
    return position is not None and depth is not None and position > depth


def contributions(tree: Explanation) -> tuple[list[document.TermRecord], document.FactorRecord | None]:
    """List the terms of a score, and the factor on their sum (None without one).

    The contributions, added from left to right and then multiplied by the factor, are the score to
    the last bit: they are the products that the plan adds.
    """
    factor: document.FactorRecord | None = None
    if tree.combine == "product":
        tree, last = tree.parts
        parts = {part.text: part.value for part in last.parts}
        factor = {"value": last.value, "formula": last.text, "parts": parts}
    terms: list[document.TermRecord] = []
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
