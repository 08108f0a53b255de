"""EchoVault, profile shipped, against the recording of the code of its document's date.

Every ranking is compared score by score, twice where vectors count: the strategy on the recorded pools,
to 1e-9, and the whole search from the memories on, to 1e-6. `cases` is as in echovault.py.
"""

import echovault_recording
import echovault_service
from echovault_recording import (
    HYBRID,
    Fixture,
    compare,
    failed,
    fused,
    hybrid,
    keyed,
    listed,
    merge,
    merged_tolerance,
    refused,
    scope,
    scored,
)
from verdicts import EXACT, SINGLE, both, run_groups, same

from steelyard.memory.query import Query
from steelyard.systems.echovault import SHIPPED

TIERED = "tiered(weighted_sum(1*fts, normalize=max), min_results={}, then=" + HYBRID + ")"
NEAR_ZERO = {"e079"}
"""Dividing by a maximum that is close to 0 magnifies what float32 leaves open (oracles/README.md)."""


def cases(folder):
    """Every comparison of the shipped EchoVault with its recording."""
    return run_groups(
        "echovault shipped",
        vars(echovault_recording) | vars(echovault_service) | globals(),
        Fixture(folder, SHIPPED),
    )


# Helpers


def against(expected, got, run, tolerance):
    """Verdict of a merged ranking; what the cut left out of the recording comes from its pools.

    What single precision went into is compared relative to 1 or, above it, to itself.
    """
    pools = [[] if failed(run[name]) else keyed(run[name]) for name in ("fts_pool", "vec_pool")]
    floor = 0.0 if tolerance == EXACT else 1.0
    return compare(keyed(expected), got, tolerance, floor, beyond=merge(*pools))


def over_maximum(pool):
    """A keyword pool as the first tier scores it."""
    return [(id_, score / pool[0][1]) for id_, score in keyed(pool)] if pool else []


def tolerance_of(qid, pool):
    return merged_tolerance(pool) if qid in NEAR_ZERO else SINGLE


# The groups: generators of (case, (verdict, error))


def vector_lists(fixture):
    """1 - distance: vec_pool with its filter after the cut (positions show the gaps), and vec20 without."""
    for qid, limit, query, run in fixture.runs():
        rows, positions = listed(fixture.searcher(limit, fixture.lookup()), query, "vector")
        whole = [rowid for rowid, _ in run.get("vec_pool_unfiltered", run["vec_pool"])]
        places = [whole.index(rowid) + 1 for rowid, _ in run["vec_pool"]]
        beyond = keyed(fixture.recorded["vec20"].get(qid, ()))
        pool = compare(keyed(run["vec_pool"]), rows, SINGLE, 1.0, beyond=beyond)
        yield f"{qid} vec_pool", both(pool, same(places, positions))
        if "vec_pool_unfiltered" in run:
            rows, _ = listed(fixture.searcher(limit, fixture.lookup()), Query(query.text), "vector")
            verdict = compare(keyed(run["vec_pool_unfiltered"]), rows, SINGLE, 1.0, beyond=beyond)
            yield f"{qid} vec_pool_unfiltered", verdict
    for qid, pool in fixture.recorded["vec20"].items():
        rows, positions = listed(
            fixture.searcher(10, fixture.lookup()), Query(fixture.queries[qid]["query"]), "vector"
        )
        yield f"{qid} vec20", both(compare(keyed(pool), rows, SINGLE, 1.0), same(list(range(1, 21)), positions))


def recorded_pools(fixture):
    """The strategy on the recorded pools, to 1e-9."""
    for qid, limit, _, run in fixture.runs():
        if failed(run["fts_pool"]):
            continue
        pools = {"fts": keyed(run["fts_pool"]), "vector": keyed(run["vec_pool"])}
        tier = fused(pools, str(SHIPPED.searching.strategy), limit)
        expected = run["tiered"]
        if run["embed_called"]:
            yield f"{qid} tiered", against(expected, tier, run, EXACT)
        else:
            verdict = compare(keyed(expected), tier, beyond=over_maximum(run["fts_pool"]))
            yield f"{qid} tiered", verdict
        yield f"{qid} hybrid", against(run["hybrid"], fused(pools, HYBRID, limit), run, EXACT)
        if scaled := fixture.recorded["scaled_x8"].get(qid):
            pools["vector"] = keyed(scaled["vec_pool"])
            own = run | {"vec_pool": scaled["vec_pool"]}
            yield f"{qid} hybrid x8", against(scaled["hybrid"], fused(pools, HYBRID, limit), own, EXACT)


def tiered(fixture):
    """Tiered search, the service's search on top of it, and whether the query was embedded."""
    for qid, limit, query, run in fixture.runs():
        searcher = fixture.searcher(limit, fixture.lookup())
        if failed(run["tiered"]):
            for name in ("tiered", "service_search"):
                yield (
                    f"{qid} {name}",
                    both(refused(lambda s=searcher, q=query: s.search(q)), same(True, failed(run[name]))),
                )
            continue
        result = searcher.search(query)
        calls = same(int(run["embed_called"]), result.embedding_calls)
        for name in ("tiered", "service_search"):
            yield f"{qid} {name}", both(ranked(qid, run, run[name], result), calls)
        if "tiered_unfiltered" in run:
            result = fixture.searcher(limit, fixture.lookup()).search(Query(query.text))
            own = run | {"vec_pool": run["vec_pool_unfiltered"]}
            yield f"{qid} tiered_unfiltered", ranked(qid, own, run["tiered_unfiltered"], result)


def ranked(qid, run, expected, result):
    """Verdict of a tiered ranking: exact where keywords answered."""
    if result.embedding_calls:
        return against(expected, scored(result.hits), run, tolerance_of(qid, run["vec_pool"]))
    return compare(keyed(expected), scored(result.hits), beyond=over_maximum(run["fts_pool"]))


def keywords_alone(fixture):
    """Without a provider, tiered and hybrid, and with one that is down."""
    for qid, limit, query, run in fixture.runs():
        for name, down, strategy in (
            ("tiered_no_provider", False, None),
            ("tiered_provider_down", True, None),
            ("hybrid_no_provider", False, HYBRID),
        ):
            searcher = fixture.searcher(limit, fixture.lookup(down=True) if down else None, strategy=strategy)
            if failed(run[name]):
                yield f"{qid} {name}", refused(lambda s=searcher, q=query: s.search(q))
            else:
                hits = scored(searcher.search(query).hits)
                yield f"{qid} {name}", compare(keyed(run[name]), hits, beyond=over_maximum(run["fts_pool"]))


def hybrid_always(fixture):
    """The merge without the tier test."""
    for qid, limit, query, run in fixture.runs():
        searcher = fixture.searcher(limit, fixture.lookup())
        if failed(run["hybrid"]):
            yield qid, refused(lambda s=searcher, q=query: hybrid(s, q))
        else:
            tolerance = tolerance_of(qid, run["vec_pool"])
            yield qid, against(run["hybrid"], hybrid(searcher, query), run, tolerance)


def scaled_vectors(fixture):
    """Vectors eight times as long: most scores fall below 0, and then keywords decide alone."""
    vault = fixture.filled(8.0)
    for qid, recorded in fixture.recorded["scaled_x8"].items():
        asked = fixture.queries[qid]
        query, limit = Query(asked["query"], filters=scope(asked)), asked["limit"]
        searcher = fixture.searcher(limit, fixture.lookup(scale=8.0), vault)
        rows, _ = listed(searcher, query, "vector")
        yield f"{qid} vec_pool", compare(keyed(recorded["vec_pool"]), rows, SINGLE, 1.0)
        run = fixture.recorded["runs"].get(qid, {"fts_pool": [], "embed_called": None}) | {
            "vec_pool": recorded["vec_pool"]
        }
        for name, search in (("tiered", lambda s, q: scored(s.search(q).hits)), ("hybrid", hybrid)):
            if failed(recorded[name]):
                yield f"{qid} {name}", refused(lambda s=searcher, q=query, f=search: f(s, q))
            elif name == "tiered" and run["embed_called"] is False:
                verdict = compare(
                    keyed(recorded[name]), search(searcher, query), beyond=over_maximum(run["fts_pool"])
                )
                yield f"{qid} {name}", verdict
            else:
                tolerance = tolerance_of(qid, recorded["vec_pool"])
                yield f"{qid} {name}", against(recorded[name], search(searcher, query), run, tolerance)


def min_results(fixture):
    """min_fts_results from 0 to 100."""
    for qid, sweep in fixture.recorded["min_fts_sweep"].items():
        asked = fixture.queries[qid]
        query = Query(asked["query"], filters=scope(asked))
        for least, recorded in sweep.items():
            strategy = TIERED.format(least)
            found = fixture.searcher(asked["limit"], fixture.lookup(), strategy=strategy).search(query)
            run = fixture.recorded["runs"].get(qid)
            yield f"{qid} {least}", ranked(qid, run or {"fts_pool": [], "vec_pool": []}, recorded, found)
