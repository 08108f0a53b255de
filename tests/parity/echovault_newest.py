"""EchoVault, profile newest, against the recording of commit d2f5d2d: keywords, and what lists are made into.

Lists of vectors differ for what docs/echovault.md says of scopes and archived memories.
"""

from dataclasses import replace
from types import SimpleNamespace

import echovault_recording as shared
from echovault_shipped import Shipped
from verdicts import compare, found

from steelyard.finish import Cut, finish
from steelyard.fusion import fuse, parse_strategy
from steelyard.memory.entry import Entry
from steelyard.retrievers.housekeeping import HOUSEKEEPING
from steelyard.stores.base import ScoredId
from steelyard.systems.echovault import ARCHIVED, NEWEST
from steelyard.table.join import join

HYBRID = f"boost({shared.HYBRID}, housekeeping)"


class Newest(Shipped):
    version = "head"
    alone = Shipped.alone | {"hybrid_no_provider": (False, HYBRID)}

    def entry(self, memory):
        return replace(shared.entry(memory), kind=ARCHIVED if memory["status"] == "archived" else "")


fixtures = {"newest": lambda folder: Newest(folder, NEWEST)}


def recorded_pools(fixture):
    """Both strategies on the recorded lists, to 1e-9."""
    scorer = {"housekeeping": HOUSEKEEPING.build(SimpleNamespace(store=fixture.vault))}
    for qid, limit, query, run in fixture.runs():
        if shared.failed(run["fts_pool"]):
            continue
        pools = {name: shared.keyed(run[f"{short}_pool"]) for name, short in (("fts", "fts"), ("vector", "vec"))}
        lists = {name: [ScoredId(*row, at) for at, row in enumerate(rows, 1)] for name, rows in pools.items()}
        table = join([query], [0.0], [lists], scorer, lambda ids, *_: [Entry(id_) for id_ in ids])
        for name, strategy in (("tiered", NEWEST.searching.strategy), ("hybrid", parse_strategy(HYBRID))):
            whole, cut = (found(finish(table, fuse(table, strategy), by), table) for by in ((), (Cut(limit),)))
            yield f"{qid} {name}", compare(shared.keyed(run[name]), cut, beyond=whole)
