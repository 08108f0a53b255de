"""EchoVault, profile newest, against the recording of d2f5d2d but for lists of vectors (docs/echovault.md)."""

from dataclasses import replace
from types import SimpleNamespace

import echovault_recording as shared
from echovault_shipped import Shipped
from verdicts import compare

from steelyard.retrievers.heuristics import HOUSEKEEPING
from steelyard.systems.echovault import ARCHIVED, NEWEST

HYBRID = f"boost({shared.HYBRID}, housekeeping)"


class Newest(Shipped):
    version = "head"
    alone = Shipped.alone | {"hybrid_no_provider": (False, HYBRID)}

    def entry(self, memory):
        return replace(shared.entry(memory), kind=ARCHIVED if memory["status"] == "archived" else "")


fixtures = {"newest": lambda folder: Newest(folder, NEWEST)}


def recorded_pools(fixture):
    """Both strategies on the recorded lists, to 1e-9."""
    scorer = HOUSEKEEPING.build(SimpleNamespace(store=fixture.vault))
    for qid, limit, query, run in fixture.runs():
        if shared.failed(run["fts_pool"]):
            continue
        lists = {"fts": shared.keyed(run["fts_pool"]), "vector": shared.keyed(run["vec_pool"])}
        for name, text in (("tiered", str(NEWEST.searching.strategy)), ("hybrid", HYBRID)):
            cut, whole = (shared.fused(lists, text, size, query, housekeeping=scorer) for size in (limit, 10**6))
            yield f"{qid} {name}", compare(shared.keyed(run[name]), cut, beyond=whole)
