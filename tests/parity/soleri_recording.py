"""The recording of Soleri, the engine on the same entries, and when two rankings are the same.

Rankings are compared as what they are, orders of a pool. `Pool` says which candidates stand above the
cut of their list, which are tied at it, and what each scores; the recorded ranking and ours both have to
be rankings of that pool, of the same length. So rows of equal score may change places, also at a cut,
and a candidate may stand for another that is tied with it where the candidates are cut.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from verdicts import SINGLE, TIE, Rule, both, counted, differs, letters, near, recording, same

from steelyard.base.errors import ConfigError
from steelyard.embedders.embed import space_of
from steelyard.live.search import Searcher
from steelyard.memory.entry import Entry
from steelyard.memory.query import Filters, Query, is_blank
from steelyard.memory.text import render
from steelyard.stores.base import plain_id
from steelyard.stores.federation import Federation, Tier
from steelyard.stores.sqlite import Vault
from steelyard.systems.soleri import FACTORS, SHIPPED

SIGNS = 10


class Fixture:
    def __init__(self, folder):
        recorded = recording(folder, "soleri")
        self.recorded = recorded["seed_version"]
        self.now = recorded["corpus"]["now"]
        self.entries = [entry(at, raw) for at, raw in enumerate(recorded["corpus"]["entries"])]
        self.vault = vault(self.entries)
        self.hybrid = self.with_vectors()
        self.federation = self.federated()

    def with_vectors(self):
        bare = self.recorded["hybrid"]["without_vectors"]
        own = [entry for id_, entry in self.by_id().items() if id_ not in bare]
        store = vault(self.entries)
        matrix = RULE.embed([render(SHIPPED.reading.recipe, entry) for entry in own])
        store.put_vectors(SPACE, [entry.id for entry in own], matrix)
        return store

    def by_id(self):
        return {plain(entry.id): entry for entry in self.entries}

    def federated(self):
        """The vaults that `manager.tiers` of the recording describes."""

        def some(belongs, change=lambda entry: entry):
            return vault(change(entry) for at, entry in enumerate(self.entries) if belongs(at))

        tiers = [
            Tier("agent", some(lambda at: at % 4 == 0)),
            Tier("project", some(lambda at: at % 4 < 2, lambda e: replace(e, text=e.text + " Project copy."))),
            Tier("team", some(lambda at: at % 3 == 0, lambda e: replace(e, severity="critical"))),
            Tier("ext-high", some(lambda at: at % 7 == 0), 0.9),
            Tier("ext-default", some(lambda at: at % 5 == 0)),
        ]
        return Federation(tiers, SHIPPED.federation)

    def query(self, run):
        asked = run.get("options", {})
        return Query(
            run["query"],
            filters=Filters.of({name: asked[name] for name in ("domain", "type", "severity") if name in asked}),
            tags=tuple(asked.get("tags", ())),
            domain=asked.get("domain", ""),
            asked_at=self.now,
        )


RULE = Rule("rule", 16, counted(16, letters))
"""The embedder of the recording."""
SPACE = space_of(RULE, "text", SHIPPED.reading.recipe)


def key(number, id_):
    """An id that sorts in the recorded order, where ties go by row: so each tier gives the same ten.

    The signs before the id are no characters of a word, so the index holds the same terms.
    """
    return f"{number:0{SIGNS}b}".replace("0", "!").replace("1", "#") + id_


def plain(id_):
    return id_[SIGNS:]


def entry(number, raw):
    same = ("type", "domain", "title", "severity")
    return Entry(
        key(number, raw["id"]),
        text=raw["description"],
        context=raw.get("context", ""),
        tags=tuple(raw["tags"]),
        created_at=raw.get("createdAt"),
        updated_at=raw.get("updatedAt"),
        valid_from=raw.get("validFrom"),
        valid_until=raw.get("validUntil"),
        **{name: raw[name] for name in same},
    )


def vault(entries):
    store = Vault(":memory:")
    store.upsert(entries)
    return store


def named(hit):
    """The recorded id; memories have none there and go by their title."""
    return hit.entry.title if hit.entry.kind == "memory" else plain(hit.entry.id)


def factors(hit):
    """Score and breakdown, under Soleri's names."""
    parts = {name: hit.signals.get(ours, 0.0) for name, ours in FACTORS.items()}
    return {"score": hit.score, "total": hit.score, **parts}


def score(hit):
    return {"score": hit.score}


class Setup:
    """A search whose rankings are compared; `show` says what of a hit."""

    def __init__(self, store, config, embedder=None, show=factors):
        self.depths, self.show = config.depths, show
        whole = {name: replace(settings, depth=None) for name, settings in config.retrievers.items()}
        self.searcher = Searcher(store, config, embedder)
        self.deep = Searcher(store, replace(config, retrievers=whole, finish=()), embedder)

    def compare(self, query, recorded, size=None):
        """Verdict on a recorded ranking of `size` rows, of which the first, or all, are given."""
        if is_blank(query.text):
            return self.refused(query, recorded)
        hits = self.searcher.search(query).hits
        pool, ours = self.pool(query, hits), [(named(hit), self.show(hit)) for hit in hits]
        counted = same(len(recorded) if size is None else size, len(ours))
        return both(counted, pool.verdict(recorded), pool.verdict(ours[: len(recorded)]))

    def refused(self, query, recorded):
        """The engine refuses a blank query, where the recording finds nothing: equal when neither gives a row."""
        try:
            self.searcher.search(query)
        except ConfigError:
            return same(recorded, [])
        return differs("a blank query was searched")

    def pool(self, query, hits):
        """The candidates of the query, from a search that cuts nothing, and the memories beside them."""
        found = self.deep.search(query)
        cuts = [cut(found.table, self.depths[name], name) for name in found.table.positions]
        memories = [hit for hit in hits if hit.entry.kind == "memory"]
        values = {named(hit): self.show(hit) for hit in (*found.hits, *memories)}
        return Pool(values, set(map(named, memories)).union(*(sure for sure, _, _ in cuts)), [c[1:] for c in cuts])


def cut(table, depth, name):
    """Ids above the cut of a list; those tied at it, and how many places are left for them."""
    values, position = table.columns[name], table.positions[name]
    ids = np.array([plain(plain_id(table.entries[at])) for at in table.entry], dtype=object)
    inside = (position > 0) & (position <= depth)
    if not (position > depth).any() or not inside.any():
        return set(ids[inside]), set(), 0
    edge = values[inside].min()
    tied = np.abs(values - edge) <= (SINGLE if name == "vector" else TIE * edge)
    return set(ids[inside & ~tied]), set(ids[tied]), int((inside & tied).sum())


@dataclass
class Pool:
    """What may be ranked: values by id; the ids that are sure; of each list (tied ids, places left for them)."""

    values: dict
    sure: set
    ties: list

    def verdict(self, rows):
        """Whether (id, values) rows are the first of a ranking of this pool, and the worst error."""
        strange = [id_ for id_, _ in rows if id_ not in self.sure.union(*(tied for tied, _ in self.ties))]
        if strange:
            return differs(f"{strange[0]} is no candidate")
        order = self.order([values["score"] for _, values in rows], {id_ for id_, _ in rows})
        return both(*(near(values, self.values[id_]) for id_, values in rows), (order, 0.0))

    def order(self, scores, shown):
        """Whether what is missing may be: it scores too little, or another that is tied with it has its place."""
        if len(shown) < len(scores):
            return "differs: an id appears twice"
        if any(later > earlier + TIE for earlier, later in pairwise(scores)):
            return "differs: the scores are not in order"
        least = scores[-1] + TIE if scores else -np.inf
        low = {id_ for id_, values in self.values.items() if values["score"] <= least}
        if missing := self.sure - shown - low:
            return f"differs: {min(missing)} is missing"
        for tied, places in self.ties:
            if not len((tied & shown) - self.sure) <= places <= len(tied & (shown | self.sure | low)):
                return f"differs: {places} of {sorted(tied)} are candidates, {sorted(tied & shown)} are there"
        return ""
