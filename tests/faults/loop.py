"""Searches without end, with vectors and in scopes: their memory and the files they hold open stay what they are.

    python tests/faults/loop.py [--minutes 5] [--goal 200] [--fresh]

A piece of work is 500 searches of the vault of the piece before; the first one of a process says what is held.
"""

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path

import campaign

from steelyard import Filters, Query, Searcher, Vault
from steelyard.memory.query import visible_to
from steelyard.systems import SYSTEMS
from steelyard_eval.datasets import load
from steelyard_eval.vaults import index_dataset, vault_embedder

STARTER = Path(__file__).resolve().parents[2] / "qrels" / "starter"
SEARCHES = 500
MOST_GROWN = 48  # MB over what was held after the first piece: the allocator's own to and fro is a few


class World:
    """A vault on disk, a searcher of every system over it, one of each in a scope, and what was held first."""

    def __init__(self):
        folder = Path(tempfile.mkdtemp(prefix="steelyard-loop-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        starter = load(STARTER)
        index_dataset(starter, str(folder / "vault"))
        self.vault = Vault(folder / "vault")
        embedder = vault_embedder(self.vault)
        scopes = [visible_to({"project": (name,)}) for name in sorted({e.project for e in starter.entries})[:4]]
        self.searchers = [
            Searcher(self.vault, system.config(), embedder, clock=lambda: 1.77e9, visible=scope)
            for at, system in enumerate(SYSTEMS.values())
            for scope in (Filters(), scopes[at % len(scopes)])
        ]
        self.texts = [query.text for query in starter.queries]
        self.held = None


world = functools.cache(World)


def work(number, searches=SEARCHES):
    """So many searches; every tenth asks for a moment and a scope of its own, which nothing has kept."""
    own = world()
    for at in range(number * searches, (number + 1) * searches):
        searcher = own.searchers[at % len(own.searchers)]
        filters = Filters.of({"created_at": {"from": float(at)}}) if at % 10 == 0 else Filters()
        text = own.texts[at // len(own.searchers) % len(own.texts)]
        searcher.search(Query(text, filters=filters, asked_at=1.7e9 + at))
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    held = pages * os.sysconf("SC_PAGE_SIZE") / 2**20, len(list(Path("/proc/self/fd").iterdir()))
    if own.held is None:
        own.held = held
    grown, files = (now - before for now, before in zip(held, own.held, strict=True))
    assert grown < MOST_GROWN, f"{grown:.0f} MB more than after the first piece"
    assert files <= 0, f"{files} more files are open than after the first piece"
    return {"searches": searches}


if __name__ == "__main__":
    campaign.main("loop", __doc__, 200, work)
