"""Changes what a caller may not see, at random, and looks whether anything that he sees moves by a bit.

    python tests/faults/noninterference.py [--minutes 5] [--goal 100000] [--fresh] [--only NUMBER]

A piece of work is a random corpus in one vault or several under one system and profile, a caller, and rounds of
changes of entries outside his scope: texts, ids, number, relations that claim to supersede what he sees, dates,
vectors, models. After each round searches with their explanations, contexts, recordings, lists, entries by id
and counts are compared with those before, as text. Every 50th piece goes through the command line, with LSA.
"""

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import campaign
import numpy as np
import small

sys.path.append(str(Path(__file__).resolve().parents[1] / "contracts"))
import worlds

from steelyard import Query, Searcher, SteelyardError, Vault, find_system
from steelyard.embedders.embed import space_of
from steelyard.memory.entry import Relation
from steelyard.memory.query import EVERYTHING, visible_to
from steelyard.stores.base import Space
from steelyard.systems import SYSTEMS
from steelyard_eval.datasets import load
from steelyard_eval.vaults import index_dataset

ROUNDS, CHANGES = 4, 12  # after each round of changes the answers are compared

NAMES = sorted(SYSTEMS)
TEXTS = (*worlds.WORDS, "heron newt", "heron -newt", '"heron reed"', "nothing")


def sees(entry, scopes):
    return any(getattr(entry, name) in values for name, values in scopes.items())


def caller(rng):
    return {"tenant": ("t1",)} if rng.random() < 0.5 else {"vault": ("v1",), "tenant": worlds.some(rng, ("t1",))}


def hidden(rng, id_, scopes, visible):
    """An entry that the caller does not see, and that claims whatever it likes about what he sees."""
    entry = worlds.random_entry(rng, id_, 12)
    claims = tuple(Relation("supersedes", target, None, "accepted") for target in worlds.some(rng, visible, 3))
    noise = " ".join(worlds.one(rng, *worlds.WORDS, "zebra", "yak") for _ in range(rng.integers(0, 40)))
    outside = dict.fromkeys(("vault", "tenant"), worlds.one(rng, "", "elsewhere"))
    return replace(entry, text=noise, relations=claims, valid_until=None, **outside)


def disturb(rng, vault, scopes, spaces):
    entries = list(vault.entries())
    visible = [e.id for e in entries if sees(e, scopes)] or ["e0"]
    others = [e.id for e in entries if not sees(e, scopes)]
    kind = rng.integers(6)
    if kind == 0 and others:
        vault.delete(worlds.some(rng, others))
        return
    new = [f"{worlds.one(rng, 'a', 'e', 'z')}{rng.integers(10**6)}x" for _ in range(rng.integers(1, 4))]
    ids = [*new, *worlds.some(rng, others, 3)]
    vault.upsert([hidden(rng, id_, scopes, visible) for id_ in ids])
    space = worlds.one(rng, *spaces, Space("another", "text", "{text}"), Space("random", "l0", "{l0}"))
    if kind > 2:
        vault.put_vectors(space, ids, rng.normal(size=(len(ids), 3)).astype(np.float32))


def answers(world, searcher, scopes):
    given = []
    store = searcher.store
    for text, filters in zip(world.texts, (EVERYTHING, world.filters, EVERYTHING), strict=True):
        try:
            result = searcher.search(Query(text, filters=filters, asked_at=worlds.NOW))
            given += [[hit.entry.id, hit.entry.vault, hit.score, dict(hit.signals)] for hit in result.hits]
            given += [str(result.strategy), *(str(result.explain(hit)) for hit in result.hits[:3]), result.notes]
        except SteelyardError as error:
            given.append(str(error))
    try:
        hits, total = searcher.context("heron", topup_recent=True)
        given += [[hit.entry.id, hit.score] for hit in hits] + [total]
    except SteelyardError as error:
        given.append(str(error))
    given += [store.count(), store.count(world.filters)]
    given += [e.id for e in store.recent(world.filters, 5)] + [e.to_json() for e in store.entries()]
    given += [sorted(map(str, store.spaces()))]
    signals = [name for name in searcher.config.retrievers if name not in ("l0", "l1", "l2")]
    table = searcher.record([Query("heron reed", id="q", asked_at=worlds.NOW)], signals, 5, "corpus")
    given += [table.entries, {n: column.tobytes().hex() for n, column in table.columns.items()}]
    return json.dumps(given, default=str, sort_keys=True)


class Directions(worlds.Directions):
    """A direction a text, the same whatever was embedded before."""

    def embed(self, texts, kind="entry"):
        rows = [np.random.default_rng(list(text.encode())).normal(size=3) for text in texts]
        return np.array(rows, dtype=np.float32)


def work(number):
    if number % 50 == 49:
        return by_command(number)
    rng = np.random.default_rng([number, 12])
    system = find_system(NAMES[number % len(NAMES)])
    world = worlds.World(system, int(rng.integers(2**62)))
    embedder, scopes = Directions(rng), caller(rng)
    world.filters, world.texts = worlds.scope(rng)[0], rng.choice(TEXTS, 3, replace=False).tolist()
    config = world.searcher.config
    seen = visible_to(scopes)
    searcher = Searcher(world.searcher.store, config, embedder, clock=lambda: worlds.NOW, visible=seen)
    spaces = [space_of(embedder, "text", system.reading.recipe)]
    before = answers(world, searcher, scopes)
    for _ in range(ROUNDS):
        for _ in range(CHANGES):
            disturb(rng, worlds.one(rng, *(vault for vault, _ in world.tiers.values())), scopes, spaces)
        if answers(world, searcher, scopes) != before:
            raise AssertionError(f"{NAMES[number % len(NAMES)]}: something visible moved")
    world.close()
    return {"changes": ROUNDS * CHANGES, NAMES[number % len(NAMES)]: ROUNDS * CHANGES}


COMMANDS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""Words, VAULT and OTHER in the place of paths."""


def by_command(number):
    """The same through the command line, over files with LSA fitted on everything."""
    rng = np.random.default_rng([number, 13])
    system, scopes = NAMES[(number // 50) % len(NAMES)], caller(rng)
    with tempfile.TemporaryDirectory() as folder:
        paths = {"VAULT": f"{folder}/a.db", "OTHER": f"{folder}/b.db"}
        kept = {name: [worlds.random_entry(rng, f"e{at}", 12) for at in range(12)] for name in paths}
        changes, before = 0, None
        for turn in range(3):
            for name, path in paths.items():
                own = [e for e in kept[name] if sees(e, scopes)]
                embedder = "lsa" if len(own) > 2 else "none"  # fewer cannot be fitted
                ids = [f"{worlds.one(rng, 'a', 'z')}{at}" for at in range(rng.integers(0, 9))]
                own += [hidden(rng, id_, scopes, [e.id for e in kept[name]]) for id_ in ids]
                changes += len(ids) if turn else 0
                written(path, own, embedder)
            after = [asked(words, paths, scopes, system) for words in COMMANDS]
            if before is not None and after != before:
                moved = next(words for words, a, b in zip(COMMANDS, before, after, strict=True) if a != b)
                raise AssertionError(f"{system} {' '.join(moved)}: something visible moved")
            before = after
    return {"changes": changes, "changes by command line": changes}


def written(path, entries, embedder):
    Path(path).unlink(missing_ok=True)
    with Vault(path, create=True) as vault:
        vault.upsert(entries)
    dataset = replace(load(Path(__file__).parents[2] / "qrels" / "starter"), entries=tuple(entries))
    index_dataset(dataset, path, embedder)


def asked(words, paths, scopes, system):
    line = [word.partition("=") for word in words]
    line = [f"{head}{mark}{paths.get(tail, tail)}" if mark else paths.get(head, head) for head, mark, tail in line]
    line += [part for name, values in scopes.items() for v in values for part in ("--scope", f"{name}={v}")]
    if words[0] in ("search", "context"):
        line += ["--system", system]
    with patch.dict(Searcher.__init__.__kwdefaults__, clock=lambda: worlds.NOW):  # explained: ages
        outcome = small.steelyard(*line)
    return outcome.exit_code, outcome.output


if __name__ == "__main__":
    # 100,000 changes and a few: 2,150 worlds, of which 50 go through the command line.
    campaign.main("noninterference", __doc__, 2_150, work)
