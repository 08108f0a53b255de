"""EchoVault, profile shipped, against the recording of the code of its document's date.

Every ranking is compared score by score, twice where vectors count: the strategy on the recorded pools,
to 1e-9, and the whole search from the memories on, to 1e-6.
"""

import echovault_recording as shared
from echovault import Documented
from verdicts import EXACT, SINGLE, TIE, both, compare, same

from steelyard.memory.query import Query
from steelyard.systems.echovault import SHIPPED

TIERED = "tiered(weighted_sum(1*fts, normalize=max), min_results={}, then=" + shared.HYBRID + ")"
NEAR_ZERO = {"e079"}
"""Dividing by a maximum that is close to 0 magnifies what float32 leaves open (oracles/README.md)."""


def fixture(folder):
    return Shipped(folder, SHIPPED)


class Shipped(shared.Fixture):
    tie = TIE
    alone = Documented.alone | {"hybrid_no_provider": (False, shared.HYBRID)}
    shown = staticmethod(shared.scored)

    def near(self, text, pool, scale=1.0):
        return shared.keyed(pool)

    def fusion(self, qid, limit, query, run, got):
        return against(run["hybrid"], got, run, tolerance_of(qid, run["vec_pool"]))

    def scaled(self, qid, limit, query, recorded, searcher):
        """Most scores fall below 0, and then keywords decide alone."""
        run = self.recorded["runs"].get(qid, {"fts_pool": [], "embed_called": None})
        run = run | {"vec_pool": recorded["vec_pool"]}
        for name, search in (
            ("tiered", lambda own, query: shared.scored(own.search(query).hits)),
            ("hybrid", shared.hybrid),
        ):
            if shared.failed(recorded[name]):
                yield name, shared.refused(search, searcher, query)
            elif name == "tiered" and run["embed_called"] is False:
                beyond = shared.over_maximum(run["fts_pool"])
                yield name, compare(shared.keyed(recorded[name]), search(searcher, query), beyond=beyond)
            else:
                tolerance = tolerance_of(qid, recorded["vec_pool"])
                yield name, against(recorded[name], search(searcher, query), run, tolerance)


def against(expected, got, run, tolerance):
    """Verdict of a merged ranking; what the cut left out of the recording comes from its pools.

    What single precision went into is compared relative to 1 or, above it, to itself.
    """
    pools = [[] if shared.failed(run[name]) else shared.keyed(run[name]) for name in ("fts_pool", "vec_pool")]
    floor = 0.0 if tolerance == EXACT else 1.0
    return compare(shared.keyed(expected), got, tolerance, floor, beyond=shared.merge(*pools))


def tolerance_of(qid, pool):
    return shared.merged_tolerance(pool) if qid in NEAR_ZERO else SINGLE


def ranked(qid, run, expected, result):
    if result.embedding_calls:
        return against(expected, shared.scored(result.hits), run, tolerance_of(qid, run["vec_pool"]))
    return compare(shared.keyed(expected), shared.scored(result.hits), beyond=shared.over_maximum(run["fts_pool"]))


def recorded_pools(fixture):
    """The strategy on the recorded pools, to 1e-9."""
    for qid, limit, _, run in fixture.runs():
        if shared.failed(run["fts_pool"]):
            continue
        pools = {"fts": shared.keyed(run["fts_pool"]), "vector": shared.keyed(run["vec_pool"])}
        tier = shared.fused(pools, str(SHIPPED.searching.strategy), limit)
        if run["embed_called"]:
            yield f"{qid} tiered", against(run["tiered"], tier, run, EXACT)
        else:
            beyond = shared.over_maximum(run["fts_pool"])
            yield f"{qid} tiered", compare(shared.keyed(run["tiered"]), tier, beyond=beyond)
        yield f"{qid} hybrid", against(run["hybrid"], shared.fused(pools, shared.HYBRID, limit), run, EXACT)
        if scaled := fixture.recorded["scaled_x8"].get(qid):
            pools["vector"] = shared.keyed(scaled["vec_pool"])
            own, got = run | {"vec_pool": scaled["vec_pool"]}, shared.fused(pools, shared.HYBRID, limit)
            yield f"{qid} hybrid x8", against(scaled["hybrid"], got, own, EXACT)


def tiered(fixture):
    """Tiered search, the service's search on top of it, and whether the query was embedded."""
    for qid, limit, query, run in fixture.runs():
        searcher = fixture.searcher(limit, fixture.lookup())
        result = None if shared.failed(run["tiered"]) else searcher.search(query)
        for name in ("tiered", "service_search"):
            if result is None:
                verdict = shared.refused(searcher.search, query)
                yield f"{qid} {name}", both(verdict, same(True, shared.failed(run[name])))
            else:
                calls = same(int(run["embed_called"]), result.embedding_calls)
                yield f"{qid} {name}", both(ranked(qid, run, run[name], result), calls)
        if "tiered_unfiltered" in run:
            result = fixture.searcher(limit, fixture.lookup()).search(Query(query.text))
            own = run | {"vec_pool": run["vec_pool_unfiltered"]}
            yield f"{qid} tiered_unfiltered", ranked(qid, own, run["tiered_unfiltered"], result)


def min_results(fixture):
    for qid, sweep in fixture.recorded["min_fts_sweep"].items():
        limit, query = fixture.query(qid)
        for least, recorded in sweep.items():
            strategy = TIERED.format(least)
            found = fixture.searcher(limit, fixture.lookup(), strategy=strategy).search(query)
            run = fixture.recorded["runs"].get(qid)
            yield f"{qid} {least}", ranked(qid, run or {"fts_pool": [], "vec_pool": []}, recorded, found)
