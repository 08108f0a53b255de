"""Random corpora in one vault or several, with random vectors, and filters beside predicates that say the same."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from steelyard import Entry, Filters, Searcher, Vault
from steelyard.embedders.embed import LAYER_RECIPES, space_of
from steelyard.memory.entry import Relation
from steelyard.memory.query import Rule
from steelyard.stores.base import plain
from steelyard.stores.federation import Federation, Tier

CHECKS = int(os.environ.get("STEELYARD_ISOLATION_CHECKS", "50"))
SEARCHES = 25  # searches in one world
VECTORS_ESCAPE = {key: {"vector", "graph"} for key in ("soleri:shipped", "soleri:newest")}
VECTORS_ESCAPE |= {f"cortex_mem:{profile}": {"l0", "l1", "l2", "unindexed"} for profile in ("shipped", "newest")}
"""Systems and their retrievers that know neither filters nor windows, as recorded of the real programs."""
WORDS = ("heron", "reed", "marsh", "newt", "pond")
TAGS = ("a", "b", "c")
FIELDS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""Of fields of random entries the values to choose from."""
MEMORIES = ("e3", "e7")
NOW = 20.0
TIERS = ("agent", "project", "team", "archive")


class Directions:
    """Every text has a random direction; the same text has the same."""

    model, recipe = "random", None

    def __init__(self, rng):
        self.rng, self.known = rng, {}

    def embed(self, texts, kind="entry"):
        rows = [self.known.setdefault(text, self.rng.normal(size=3).astype(np.float32)) for text in texts]
        return np.array(rows, dtype=np.float32)

    def warm(self):
        return True


def some(rng, values, most=None):
    """A random selection."""
    count = rng.integers(0, min(len(values), most or len(values)) + 1)
    return tuple(values[i] for i in sorted(rng.choice(len(values), size=count, replace=False)))


def one(rng, *values):
    return values[rng.integers(len(values))]


def random_entry(rng, id_, size):
    others = [f"e{at}" for at in range(size) if f"e{at}" != id_]
    related = [
        Relation(one(rng, "supersedes", "cites"), i, None, one(rng, "", "accepted", "proposed")) for i in others
    ]
    drawn = {name: one(rng, *values) for name, values in FIELDS.items()}
    lists = {"text": " ".join(some(rng, WORDS)), "tags": some(rng, TAGS)}
    return Entry(id_, **drawn, **lists, relations=some(rng, related, 2) if rng.random() < 0.2 else ())


# Filters, each beside the same in Python: (filters, entry, entries of its vault -> bool)


def asked(field, value, holds):
    return Filters.of({field: value}), lambda entry, _: holds(getattr(entry, field))


def kind(name, choices, asks, agrees):
    """A sort of filter: of a random field and value, or of random tags, what is asked and what agrees."""

    def drawn(rng):
        field, value = one(rng, *choices) if choices else ("tags", some(rng, TAGS, 2))
        return asked(field, asks(value), lambda own: agrees(own, value))

    drawn.__name__ = name
    return drawn


EQUAL = (("type", "rule"), ("domain", "auth"), ("tenant", "t1"), ("importance", 5.0), ("type", ""))
AMONG = (("domain", ["auth", "data"]), ("created_at", [10.0, 20.0]), ("severity", ["warning", ""]))
OUTSIDE = (("type", ["rule"]), ("kind", ["note", ""]), ("importance", [1.0]))
OF_FIELDS = (
    kind("same", EQUAL, lambda value: value, lambda own, value: own == value),
    kind("one_of", AMONG, lambda values: values, lambda own, values: own in values),
    kind("none_of", OUTSIDE, lambda values: {"none": values}, lambda own, values: own not in values),
    kind("every_tag", (), list, lambda own, values: {*values} <= {*own}),
    kind("any_tag", (), lambda values: {"any": list(values)}, lambda own, values: bool({*values} & {*own})),
    kind("no_tag", (), lambda values: {"none": list(values)}, lambda own, values: not {*values} & {*own}),
)


COMPARED = {
    "from": lambda own, bound: own >= bound,
    "after": lambda own, bound: own > bound,
    "before": lambda own, bound: own < bound,
    "until": lambda own, bound: own <= bound,
}


def between(rng):
    field, bound, other = one(rng, "created_at", "importance", "valid_until"), one(rng, 1.0, 10.0, 20.0), 25.0
    test = one(rng, *COMPARED)
    bounds = {test: bound} | ({"before": other} if test in ("from", "after") else {})
    return asked(
        field, bounds, lambda own: own is not None and all(COMPARED[t](own, value) for t, value in bounds.items())
    )


def of_text_order(rng):
    test = one(rng, *COMPARED)
    return asked("domain", {test: "b"}, lambda own: COMPARED[test](own, "b"))


def superseded(rng):
    wanted = bool(rng.integers(2))

    def holds(entry, around):
        own = [r for other in around for r in other.relations if r.target == entry.id]
        replaced = any(r.type == "supersedes" and r.status in ("", "accepted") for r in own)
        return (bool(entry.superseded_by) or replaced) == wanted

    return Filters.of({"superseded": wanted}), holds


def seen_by(rng):
    vaults, tenants = some(rng, ("v1", "v2")), some(rng, ("t1", "t2"))
    rules = Filters.all_of((Rule("vault", "any", vaults), Rule("tenant", "any", tenants)))
    return rules, lambda entry, _: entry.vault in vaults or entry.tenant in tenants


def absent(rng):
    field = one(rng, "domain", "importance", "tags", "valid_until")
    return Filters.all_of((Rule(field, "absent"),)), lambda entry, _: getattr(entry, field) in ("", None, ())


KINDS = (*OF_FIELDS, between, of_text_order, superseded, seen_by, absent)


def scope(rng):
    """Up to two filters of any kind, and what they say."""
    parts = [one(rng, *KINDS)(rng) for _ in range(one(rng, 0, 1, 1, 2))]
    filters = Filters()
    for part, _ in parts:
        filters &= part
    return filters, lambda entry, around: all(holds(entry, around) for _, holds in parts)


class World:
    """Up to four vaults that share some ids, with vectors, searched by one system."""

    def __init__(self, system, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.system = system
        self.embedder = Directions(rng)
        size = int(rng.integers(4, 16))
        self.tiers = {name: self.vault(size) for name in TIERS[: rng.integers(1, 5)]}
        made = [Tier(name, vault) for name, (vault, _) in self.tiers.items()]
        self.alone = len(made) == 1
        store = made[0].store if self.alone else Federation(made, system.federation)
        config = system.config(int(rng.integers(1, 12)), "random")
        self.searcher = Searcher(store, config, self.embedder)

    def vault(self, size):
        """A vault with about half of the ids, and its entries by id."""
        entries = [
            random_entry(self.rng, f"e{at}", size) for at in range(size) if not at or self.rng.random() < 0.6
        ]
        if self.system.federation.best_copy:  # copies that differ in this would be told apart by id alone
            entries = [replace(e, kind="memory" if e.id in MEMORIES else "note") for e in entries]
        layered = "l0" in self.system.searching.retrievers
        entries = [self.placed(e) for e in entries] if layered else entries
        vault = Vault(":memory:")
        vault.upsert(entries)
        for layer in ("text", *LAYER_RECIPES) if layered else ("text",):
            own = [e for e in entries if layer not in ("l0", "l1") or e.l0]
            ids = [e.id for e in own if e.id == "e0" or self.rng.random() < 0.9]
            space = space_of(self.embedder, layer, self.system.reading.recipe)
            if ids:
                vault.put_vectors(space, ids, self.rng.normal(size=(len(ids), 3)).astype(np.float32))
        return vault, {e.id: e for e in entries}

    def placed(self, entry):
        """A directory with an abstract, a message in one, or neither."""
        home = f"cortex://session/{self.rng.integers(3)}/timeline"
        kind = self.rng.integers(3)
        if kind == 0:
            return replace(entry, uri=home, l0="abstract", l1="overview")
        return replace(entry, uri=f"{home}/{entry.id}.md") if kind == 1 else entry

    def close(self):
        for vault, _ in self.tiers.values():
            vault.close()

    def copy(self, entry):
        """The entry as it was written, and the entries around it."""
        entry = plain(entry)
        _, around = self.tiers[next(iter(self.tiers)) if self.alone else entry.vault]
        return around[entry.id], around.values()


def returned(result, store):
    """(entry, retriever) of all that the retrievers returned, and of every hit the retriever that found it."""
    table = result.table
    finders = [name for name in table.positions if name in table.columns]
    names = {e.id: e for e in store.get(table.entries)}
    for name in finders:
        for row in np.flatnonzero(~np.isnan(table.columns[name])):
            yield names[table.entries[table.entry[row]]], name
