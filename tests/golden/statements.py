"""What the statements of documents are tested with: vaults, vectors that are placed, the tables of tests."""

import math
import re
from dataclasses import fields

import numpy as np
from tests.unit.shared import ROOT, vault_with

from steelyard import Entry, Query, fuse
from steelyard.base.errors import EmbedderError
from steelyard.embedders.embed import space_of
from steelyard.finish import finish
from steelyard.stores.base import ScoredId
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
