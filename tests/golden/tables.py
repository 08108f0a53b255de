"""Statements of documents: what they are tested with, and those that are rows of JSON, with one runner for all.

A table is named for its system. It has for each statement, by the name under which docs/ lists it, why its values
are so (`says`) and its rows; `worlds` are what several rows share. Times count from the moment of the search, in
the unit of the system. What a row expects under which name is the table `EXPECTED` below, or it is `refused`: by
which error, which says what.
"""

import math
import re
from dataclasses import fields, replace

import numpy as np
import pytest
from tests.unit.shared import ROOT, beside, vault_with

from steelyard import Entry, Filters, Hit, Query, Searcher, find_system, fuse, parse_strategy
from steelyard.base.errors import EmbedderError
from steelyard.embedders.embed import space_of
from steelyard.finish import finish
from steelyard.memory.entry import Relation
from steelyard.memory.query import EVERYTHING, visible_to
from steelyard.stores.base import ScoredId
from steelyard.stores.federation import Federation, Tier
from steelyard.systems import echovault, mem0, moltnet, soleri
from steelyard.table.join import join

DOCS = ROOT / "docs"


class Spy:
    """An embedder that keeps what it was asked for, batch by batch; every text is the vector (1, 0)."""

    recipe = None

    def __init__(self, model="spy", down=False, dim=2, warm=True):
        self.model, self.down, self.dim, self.loaded = model, down, dim, warm
        self.batches = []

    @property
    def texts(self):
        return [text for batch in self.batches for text in batch]

    def embed(self, texts, kind="entry"):
        self.batches.append(list(texts))
        if self.down:
            raise EmbedderError("the provider is down")
        return np.tile(np.eye(1, self.dim, dtype=np.float32), (len(texts), 1))

    def warm(self):
        return self.loaded


class Bench:
    """Vaults for one system: `cosines` places the vectors of some entries by their cosine with the query."""

    def __init__(self, system):
        self.recipe = system.reading.recipe
        self.space = self.of("spy")

    def of(self, model):
        return space_of(Spy(model), "text", self.recipe)

    def vault(self, *entries, cosines=None, path=":memory:"):
        vault = vault_with(*entries, path=path)
        if cosines:
            self.place(vault, cosines)
        return vault

    def place(self, vault, cosines, model="spy"):
        sides = [[value, math.sqrt(1 - value * value)] for value in cosines.values()]
        vault.put_vectors(self.of(model), list(cosines), np.array(sides, dtype=np.float32))


def merged(strategy, stages, **lists):
    """[(id, score)] of lists by name, as a strategy and stages make one of them."""
    found = {
        name: [ScoredId(id_, score, at) for at, (id_, score) in enumerate(own, 1)] for name, own in lists.items()
    }
    table = join([Query("q")], [0.0], [found], {}, lambda ids, *_: [Entry(id_) for id_ in ids])
    ranking = finish(table, fuse(table, strategy), stages)
    rows = zip(ranking.row, ranking.score, strict=True)
    return [(table.entries[table.entry[row]], score) for row, score in rows]


def ids(hits):
    return [hit.entry.id for hit in hits]


def scores(hits):
    return {hit.entry.id: hit.score for hit in hits}


def noted(word, count, prefix=""):
    """Entries that all say the word, the later the longer, so that the first matches best."""
    return [Entry(f"{prefix}{i:02d}", title=word, text="filler " * i) for i in range(count)]


def named(document, after="", before="\0"):
    """The tests that a document names, in the part of it after one heading and before another."""
    text = (DOCS / document).read_text(encoding="utf-8").partition(before)[0]
    return {*re.findall(r"`(test_\w+)`", text.partition(after)[2] if after else text)}


def differing(one, other):
    """The traits in which two systems differ, those of their groups by their own names."""
    traits = {field.name: (getattr(one, field.name), getattr(other, field.name)) for field in fields(one)}
    found = {name for name, (mine, others) in traits.items() if mine != others}
    groups = found & {"reading", "searching", "showing", "contexts"}
    return found.difference(groups).union(*(differing(*traits[name]) for name in groups))


def statements(module):
    """The tests of a module's globals, but those of the table itself."""
    return {name for name in module if name.startswith("test_") and "_table_" not in name}


# Statements as rows

TIMES = {"created_at", "updated_at", "last_accessed_at", "valid_from", "valid_until"}
LISTS = {"tags", "participants"}
TOLD = {"says", "rows", "within", "texts", "refused"}
STORED = {"world", "entries", "noted", "others", "cosines", "falling", "vectors", "tiers", "priority"}
ASKED = {"query", "filters", "tags", "domain", "at"}
HOW = {"system", "limit", "strategy", "by", "semantic", "visible", "vector_filters"}
EXPECTED = {
    "ids": lambda found: ids(found.hits),
    "set": lambda found: sorted(ids(found.hits)),
    "first": lambda found: found.hits[0].entry.id,
    "count": lambda found: len(found.hits),
    "ranks": lambda found: [hit.rank for hit in found.hits],
    "scores": lambda found: scores(found.hits),
    "tier": lambda found: {hit.entry.id: hit.entry.vault for hit in found.hits},
    "signals": lambda found: {hit.entry.id: [*hit.signals] for hit in found.hits},
    "signal": lambda found: {
        f"{name} {hit.entry.id}": value for hit in found.hits for name, value in hit.signals.items()
    },
    "calls": lambda found: found.embedding_calls,
    "degraded": lambda found: found.degraded,
    "candidates": lambda found: list(found.table.entries),
    "columns": lambda found: {name: int(present(column).sum()) for name, column in found.table.columns.items()},
    "column": lambda found: {
        f"{name} {id_}": value for name, values in by_entry(found.table).items() for id_, value in values.items()
    },
    "places": lambda found: {name: own[own > 0].tolist() for name, own in found.table.positions.items()},
}
"""Name in a row -> what of a result it is. Of dictionaries a row names the part that it is about."""
CONFIGURED = {
    "limit": lambda config: config.limit,
    "depths": lambda config: config.depths,
    "strategy": lambda config: str(config.strategy),
    "keywords_only": lambda config: str(config.keywords_only),
    "finish": lambda config: [str(stage) for stage in config.finish],
    "field_weights": lambda config: config.retrievers["fts"].field_weights,
}
"""Name in a row -> what of a system's configuration it is."""


def present(column):
    return ~np.isnan(column)


def by_entry(table):
    """Column -> id -> value."""
    names = [table.entries[entry] for entry in table.entry]
    return {name: dict(zip(names, column.tolist(), strict=True)) for name, column in table.columns.items()}


class Table:
    """The statements of one system, and how its rows are searched.

    `field` is where the text of an entry goes that is no dictionary; `other` are the fields of an entry that no
    query finds, which keeps words rare; `now` is the moment of the search.
    """

    def __init__(self, name, system, *functions):
        self.content = content = beside(__file__, f"{name}.json")
        self.worlds, self.calls, self.configs = content["worlds"], content["calls"], content.get("configs", {})
        self.searches, self.contexts, self.shown = content["searches"], content["contexts"], content["shown"]
        self.system, self.bench, self.field, self.within = system, Bench(system), "title", 1e-12
        self.unit, self.now, self.other = 86_400.0, 0.0, {"title": "unrelated"}
        vars(self).update(content["settings"])
        self.functions = {function.__name__: function for function in functions}

    @property
    def statements(self):
        return {name for _, statements in self.kinds() for name in statements}

    @staticmethod
    def rows(statements):
        """The rows of all statements, for `parametrize`."""
        return [
            pytest.param(statement | row, id=f"{name}-{at}")
            for name, statement in statements.items()
            for at, row in enumerate(statement["rows"])
        ]

    def kinds(self):
        """How the rows of a statement are checked, and the statements of that kind."""
        yield from ((self.call, self.calls), (self.search, self.searches), (self.context, self.contexts))
        yield from ((self.show, self.shown), (self.configure, self.configs))

    def checks(self):
        """For each row of all statements how it is checked, and the row."""
        for check, statements in self.kinds():
            yield from (pytest.param(check, *row.values, id=row.id) for row in self.rows(statements))

    # What is stored

    def entry(self, id_, fields):
        fields = {self.field: fields} if isinstance(fields, str) else dict(fields)
        fields |= {name: self.now + self.unit * fields[name] for name in TIMES & fields.keys()}
        fields |= {name: tuple(fields[name]) for name in LISTS & fields.keys()}
        fields["relations"] = tuple(Relation(*relation) for relation in fields.get("relations", ()))
        return Entry(**{"id": id_} | fields)

    def store(self, row, path=":memory:"):
        """A vault, or a federation of `tiers`. `noted` says a word so often; `falling` are cosines in steps."""
        row = self.worlds.get(row.get("world"), {}) | row
        if tiers := row.get("tiers"):
            priority = row.get("priority", {})
            vaults = [Tier(name, self.store(own), priority.get(name)) for name, own in tiers.items()]
            return Federation(vaults, self.system.federation)
        entries = [self.entry(id_, fields) for id_, fields in row.get("entries", {}).items()]
        for many in row.get("noted", ()):
            said = noted(many["word"], many["count"], many.get("prefix", ""))
            entries += [replace(entry, **many.get("fields", {})) for entry in said]
        others = [Entry(f"other{at}", **self.other) for at in range(row.get("others", 0))]
        cosines = dict(row.get("cosines", {}))
        if falling := row.get("falling"):
            of = [entry.id for entry in entries if entry.id.startswith(falling.get("prefix", ""))]
            cosines |= {id_: falling["from"] - at * falling["by"] for at, id_ in enumerate(of)}
        vault = self.bench.vault(*entries, *others, cosines=cosines, path=path)
        if vectors := row.get("vectors"):
            matrix = np.array([*vectors.values()], dtype=np.float32)
            vault.put_vectors(self.bench.space, [*vectors], matrix)
        return vault

    # What is asked

    def searcher(self, row, embedder=None, store=None):
        system = find_system(row["system"]) if "system" in row else self.system
        config = system.config(row.get("limit"), embedder.model if embedder else "")
        if strategy := row.get("strategy"):
            config = config.with_strategy(parse_strategy(strategy))
        if where := row.get("vector_filters"):
            vector = replace(config.retrievers["vector"], filters=where)
            config = replace(config, retrievers=config.retrievers | {"vector": vector})
        visible = {name: tuple(values) for name, values in row.get("visible", {}).items()}
        sees = visible_to(visible) if "visible" in row else EVERYTHING
        store = self.store(row) if store is None else store
        return Searcher(store, config, embedder, clock=lambda: self.now, visible=sees)

    def query(self, row):
        how = {"tags": tuple(row.get("tags", ())), "domain": row.get("domain", "")}
        how["filters"] = Filters.of(row.get("filters", {}))
        return Query(row["query"], asked_at=self.now + self.unit * row["at"] if "at" in row else None, **how)

    @staticmethod
    def embedder(row):
        """By meaning, by a provider that is down, a model that is not loaded, a dimension; else no embedder."""
        by = row.get("by")
        dimension = by if isinstance(by, int) else 2
        return Spy(down=by == "down", dim=dimension, warm=by != "cold") if by else None

    # What is found

    def search(self, row):
        """Search, and hold what was found against what the row expects."""
        assert row.keys() <= TOLD | STORED | ASKED | HOW | EXPECTED.keys()
        spy = self.embedder(row)
        found = self.searcher(row, spy).search(self.query(row), semantic=row.get("semantic", "always"))
        for name in EXPECTED.keys() & row.keys():
            told, expected = EXPECTED[name](found), row[name]
            if name in ("signal", "column", "columns"):
                told = {part: told[part] for part in expected}
            if name in ("scores", "signal", "column"):
                expected = pytest.approx(expected, abs=row.get("within", self.within), nan_ok=True)
            assert told == expected, name
        if "texts" in row:
            assert (spy.texts if spy else []) == row["texts"]

    def context(self, row):
        """Retrieve a context: its ids in order, those without a score, and how many pass the filters."""
        spy, usual = self.embedder(row), self.system
        how = {"semantic": usual.semantic, "topup_recent": usual.topup_recent} | row.get("how", {})
        hits, total = self.searcher(row, spy).context(row["query"], Filters.of(row.get("filters", {})), **how)
        assert (ids(hits), [hit.rank for hit in hits]) == (row["ids"], [*range(1, len(hits) + 1)])
        assert [hit.entry.id for hit in hits if hit.score is None] == row.get("recent", [])
        assert row.get("total", total) == total
        assert row.get("texts", spy and spy.texts) == (spy and spy.texts)

    def show(self, row):
        """How a hit is shown, key by key, where it is `ordered` in that order."""
        hit = Hit(1, row["score"], self.entry(row["id"], row["entry"]))
        shown = getattr(self.system.showing, row["by"])(hit)
        assert shown == row["shown"]
        assert not row.get("ordered") or list(shown) == list(row["shown"])

    def configure(self, row):
        """The documented configuration, which is that of the system's bare name."""
        assert find_system(self.system.name) is self.system
        config = self.system.config(row.get("limit"))
        assert {name: CONFIGURED[name](config) for name in row["is"]} == row["is"]
        assert {name: getattr(self.system, name) for name in row.get("contexts", ())} == row.get("contexts", {})

    def call(self, row):
        """A pure function of a query or another text."""
        result = self.functions[row["function"]](row["of"])
        assert (list(result) if isinstance(result, tuple) else result) == row["is"]


ECHOVAULT = Table("echovault", echovault.DOCUMENTED, echovault.prefix_or)
ECHOVAULT_SHIPPED = Table("echovault_shipped", echovault.SHIPPED, echovault.prefix_or_bare)
MEM0 = Table("mem0", mem0.DOCUMENTED)
MOLTNET = Table("moltnet", moltnet.DOCUMENTED)
SOLERI = Table("soleri", soleri.DOCUMENTED, soleri.soleri_or)
NEWEST = (
    Table("echovault_newest", echovault.NEWEST, echovault.prefix_or_words),
    Table("moltnet_newest", moltnet.NEWEST),
    Table("soleri_newest", soleri.NEWEST, soleri.soleri_parts_or),
)
"""What was recorded of the programs of today, on worlds of our own; docs/ says of which commit."""
TABLES = (ECHOVAULT, ECHOVAULT_SHIPPED, MEM0, MOLTNET, SOLERI, *NEWEST)
