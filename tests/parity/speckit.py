"""system-spec-kit, profiles shipped and js, against the recordings of its two generations.

Rows of the recording whose ids are strings come from a channel that
can never merge with the others (systems/spec-kit.md, section 4); they are dropped before comparison.
"""

from dataclasses import replace

import numpy as np
from speckit_text import RULE, numbered, ranked
from verdicts import SINGLE, Rule, close, differs, found, near, same

from steelyard import Entry, Filters, Query, Searcher, Vault, fuse, parse_strategy
from steelyard.base.errors import RerankError
from steelyard.embedders.embed import embed_missing, space_of
from steelyard.extensions.rerank import CachedReranker, GuardedReranker
from steelyard.finish import Cut, Document, Rerank, Rescore, finish
from steelyard.memory.entry import DAY, fsrs
from steelyard.retrievers.graph import GraphRetriever
from steelyard.signals.formulas import DOCUMENT_TYPES, TIERS
from steelyard.signals.reviews import GRADES, difficulty_after, stability_after
from steelyard.stores.base import ScoredId
from steelyard.systems.spec_kit import SHIPPED
from steelyard.table.join import join
from steelyard.table.signal_table import RERANK


def fused(lists, strategy):
    places = {
        name: [ScoredId(numbered(id_), 1.0 - place / 1000, place + 1) for place, id_ in enumerate(ids)]
        for name, ids in lists.items()
    }
    return [(id_, score) for id_, score in of_lists(places, strategy) if int(id_) < FILLER]


def of_lists(lists, strategy):
    table = join([Query("q")], [0.0], [lists], {}, None)
    return found(finish(table, fuse(table, parse_strategy(strategy)), (Cut(1000),)), table)


USUAL = {"graph": 1.5}
REPEATED, FILLER = "bm25", 9000


def repeated_apart(lists, weights):
    """An id that a list holds twice stands there once, and once in a list of its own, each in its place.

    Our retrievers never return an id twice; the program counts both places, and each as a source.
    """
    apart = {name: first_and_again(ids) for name, ids in lists.items()}
    first = {name: own for name, (own, _) in apart.items()}
    again = {name: own for name, (_, own) in apart.items() if own}
    for name, own in again.items():
        first[REPEATED], weights = own, weights | {REPEATED: weights[name]}
    return first, weights


def first_and_again(ids):
    """The ids with fillers in place of repetitions, and the repetitions with fillers in place of the others."""
    new = [id_ not in ids[:at] for at, id_ in enumerate(ids)]
    pairs = list(enumerate(zip(ids, new, strict=True)))
    first = [id_ if own else FILLER + at for at, (id_, own) in pairs]
    return first, [] if all(new) else [FILLER + 100 + at if own else id_ for at, (id_, own) in pairs]


def fused_shipped(fixture):
    for run in fixture.shipped["rrf_multi"]:
        options = run.get("options", {})
        lists = {own["source"]: own["ids"] for own in run["lists"]}
        if any(isinstance(id_, str) for ids in lists.values() for id_ in ids):
            lists = {name: ids for name, ids in lists.items() if not isinstance(ids[0], str)}
        weights = {own["source"]: own.get("weight") or USUAL.get(own["source"], 1) for own in run["lists"]}
        lists, weights = repeated_apart(lists, weights)
        terms = [f"{weights[name]}*{name}" for name in lists]
        k, bonus = options.get("k") or 60, options.get("convergenceBonus") or 0.1
        strategy = f"rrf({', '.join(terms)}, k={k}, bonus=each({bonus}))"
        here = fused(lists, strategy) if any(lists.values()) else []
        expected = [(numbered(row["id"]), row["rrfScore"]) for row in run["out"] if not isinstance(row["id"], str)]
        yield run["name"], ranked(expected, here)
    for number, run in enumerate(fixture.shipped["rrf_two"]):
        lists = {"vector": run["a"], "fts": run["b"]}
        here = fused(lists, "rrf(vector, fts, k=60, bonus=once(0.1))") if any(lists.values()) else []
        yield f"two lists {number}", ranked([(numbered(r["id"]), r["rrfScore"]) for r in run["out"]], here)


def fused_js(fixture):
    """An item of the graph alone has its whole score times 1.5: its term, since it has no other."""
    for run in fixture.js["rrf_unified"]:
        lists = {name: run[name] for name in ("vector", "bm25", "graph")}
        yield run["name"], js_case(lists, run["out"], 1.5)
    recorded = fixture.js["rrf_unified"][1]
    lists = {name: recorded[name] for name in ("vector", "bm25", "graph")}
    yield "no boost", js_case(lists, fixture.js["rrf_no_boost"], 1.0)


def js_case(lists, out, boost):
    others = {id_ for name in ("vector", "bm25") for id_ in lists[name]}
    here = fused(lists, "rrf(vector, bm25, graph, k=60, bonus=once(0.1))") if any(lists.values()) else []
    # A single list that found something is returned as it is (systems/spec-kit.md, section 4).
    alone = {numbered(id_) for id_ in lists["graph"] if id_ not in others} if others else set()
    here = [(id_, score * (boost if id_ in alone else 1.0)) for id_, score in here]
    here.sort(key=lambda pair: (-pair[1], pair[0]))
    return ranked([(numbered(row["id"]), row["rrf_score"]) for row in out], here)


def simple_fusion(fixture):
    """Of each source, scores between its least and its best; the best of an entry counts."""
    lists = {name: {run["query"]: run["results"] for run in fixture.shipped[name]} for name in ("vector", "fts")}
    for run in fixture.shipped["hybrid_simple"]:
        of_query = {name: list_of(own[run["query"]]) for name, own in lists.items()}
        here = of_lists(of_query, "comb_max(vector, fts, normalize=minmax)")
        yield repr(run["query"]), near(dict(numbers_only(run["results"])), dict(here))


def list_of(rows):
    best = sorted(((numbered(row[0]), row[1]) for row in rows), key=lambda pair: -pair[1])
    return [ScoredId(id_, score, place) for place, (id_, score) in enumerate(best, 1)]


def intent_weights(fixture):
    (sorting,) = [stage.strategy for stage in SHIPPED.searching.finish(20) if isinstance(stage, Rescore)]
    for name, own in fixture.shipped["intent"]["weights"].items():
        yield name, same((own["recency"], own["importance"], own["similarity"]), dict(sorting.cases)[name].weights)


class Stub:
    """The recorded provider: ((i * 37) % 11) / 11."""

    name = "stub"

    def __init__(self, clock=None):
        self.calls, self.clock, self.taken = 0, clock, 0.0

    def score(self, query, documents):
        self.calls += 1
        if self.clock is not None:
            self.clock.now += self.taken
        return np.array([(at * 37) % 11 / 11 for at in range(len(documents))])


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def table_of(lengths, blanks=0):
    """One query that found entries of these lengths, in this order, with blanks behind."""
    ids = [f"{at:04}" for at in range(1, len(lengths) + 1)]
    found = {"fts": [ScoredId(id_, 1.0 - at / 1000, at + 1) for at, id_ in enumerate(ids)]}
    texts = {id_: "x" * length + " " * blanks for id_, length in zip(ids, lengths, strict=True)}
    return join([Query("q")], [0.0], [found], {}, lambda ids, _: [Entry(id_, text=texts[id_]) for id_ in ids])


def length_penalties(fixture):
    for length, other, expected in fixture.js["length_penalty"]:
        table = table_of([other], blanks=length - other)
        here = Rerank(1, "length").final(replace(table, columns={**table.columns, RERANK: np.ones(1)}))[0]
        yield f"{other} characters of {length}", close(expected, float(here))


def reranked(fixture):
    recorded = fixture.js["cross_encoder"]
    table = table_of([9 * at for at in range(25)])
    scores = np.full(len(table), np.nan)
    scores[:20] = Stub().score("q", [Document(str(at), "") for at in range(20)])
    table = replace(table, columns={**table.columns, RERANK: scores})
    ranking = finish(table, fuse(table, parse_strategy("fts")), (Rerank(20, "length"), Cut(20)))
    ours = [(int(id_), score) for id_, score in found(ranking, table)]
    yield "first", ranked([row[:2] for row in recorded["first"]], ours)
    yield "best five", same(recorded["cached"]["ids"], [id_ for id_, _ in ours[:5]])
    stub = fixture.shipped["cross_encoder"]["voyage_stub"]["no_penalty_no_cache"]
    scores = Stub().score("q", [Document(str(at), "") for at in range(len(stub))])
    here = sorted(enumerate(map(float, scores)), key=lambda pair: -pair[1])
    yield "without penalty", ranked([row[:2] for row in stub], here)


def cache_and_guard(fixture):
    recorded, clock = fixture.js["cross_encoder"], Clock()
    stub = Stub()
    cached = CachedReranker(stub, clock=clock)
    documents = [Document("1", "one"), Document("2", "two")]
    cached.score("q", documents)
    for name, hits, later in (("cached", 1, 0), ("after_ttl", 2, 301)):
        clock.now += later
        cached.score("q", documents)
        known = [recorded[name]["cache_hit"], recorded[name]["calls"]]
        yield name, same(known, [cached.hits == hits, stub.calls])
    guarded = GuardedReranker(slow := Stub(clock), clock=clock)
    slow.taken = 0.1
    guarded.score("q", documents)
    guarded.score("q", documents)
    slow.taken = 0.6
    for number, applied, disabled, _ in recorded["p95_guard"]["steps"]:
        try:
            guarded.score("q", documents)
            done = True
        except RerankError:
            done = False
        yield f"slow call {number}", same([applied, disabled], [done, not done])


def spaced_repetition(fixture):
    recorded = fixture.shipped["fsrs"]
    for stability, days, expected in recorded["retrievability"]:
        here = float(fsrs(np.array([float(days)]), np.array([float(stability)]))[0])
        yield f"after {days} days, stability {stability}", close(expected, here)
    for given, expected in recorded["update"]:
        days, difficulty, grade, known = given
        after = stability_after(days, difficulty, list(GRADES)[grade - 1], known)
        yield f"stability {given}", close(expected, after)
    for given, expected in recorded["difficulty"]:
        after = difficulty_after(given[0], list(GRADES)[given[1] - 1])
        yield f"difficulty {given}", close(expected, after)


def tables(fixture):
    for name, own in fixture.shipped["tiers"]["config"].items():
        ours = {"value": TIERS["value"][name], "searchBoost": TIERS["boost"][name]}
        yield f"tier {name}", near(ours, own)
    for name, expected in fixture.shipped["tiers"]["boost"]:
        own = TIERS["boost"].get(name, TIERS["boost"]["normal"])
        yield f"half of the boost of {name}", close(expected, own * 0.5)
    recorded = fixture.shipped["composite"]
    yield "document types", close(recorded["document_type_multipliers"], DOCUMENT_TYPES)
    yield "importance", close(recorded["importance_multipliers"], TIERS["multiplier"])


def coactivation(fixture):
    recorded = fixture.shipped["coactivation"]
    for run in (*recorded["spread"], *recorded["spread_opts"]):
        name = f"spread {run['seeds']} {run.get('hops', 2)} {run.get('limit', 20)}"
        yield name, spread(all_related(recorded), run)


def all_related(recorded):
    """The recording holds 63 of 120 rows; its paths follow the rule of those 63 through the others, too."""
    rule = {
        str(at): [{"id": 3 * at * step % 120 + 1, "similarity": 95 - at % 5 - 6 * step} for step in range(1, 6)]
        for at in range(1, 121)
    }
    return rule | recorded["related"]


def spread(related, run):
    """The program follows relations as they point; ours in both directions, so what points back is left away."""
    with Vault(":memory:") as store:
        ids = {str(own["id"]) for rows in related.values() for own in rows} | related.keys()
        store.upsert(Entry(numbered(id_)) for id_ in ids | set(map(str, run["seeds"])))
        graph = Outward(store, 100, run.get("hops", 2), 0.5, 0.01, 5, again=0)
        for id_, rows in related.items():
            graph.related[numbered(id_)] = [(r["similarity"] / 100, numbered(r["id"])) for r in rows]
        lists = {"vector": [ScoredId(numbered(id_), 1.0, at + 1) for at, id_ in enumerate(run["seeds"])]}
        here = {hit.id: hit.score for hit in graph.follow(Query("q"), None, lists)}
    out = {numbered(row["id"]): row["activationScore"] for row in run["out"]}
    verdict, _ = near(out, dict.fromkeys(out, 0.0) | here, 0.00051)  # the program rounds to three decimals
    return verdict, 0.0


class Outward(GraphRetriever):
    """Relations as the program keeps them: at one of their ends, at most five."""

    related = {}  # noqa: RUF012 -- filled before use, one graph at a time

    def _edges(self, query, start, known):
        return {id_: rows[: self.fan] for id_, rows in self.related.items()}


def settings(strategy, limit, **changes):
    config = SHIPPED.config(limit)
    retrievers = {name: replace(own, depth=limit) for name, own in config.retrievers.items()}
    return replace(
        config, strategy=parse_strategy(strategy), retrievers=retrievers, finish=(Cut(limit),), **changes
    )


def listed(fixture, query, strategy, limit, folder=None, embedder=True):
    rules = {"visibility": {"none": ["archived"]}} | ({"project": folder} if folder else {})
    searcher = Searcher(fixture.vault, settings(strategy, limit), RULE if embedder else None)
    result = searcher.search(Query(query, filters=Filters.of(rules), asked_at=fixture.now))
    return [(hit.entry.id, hit.score) for hit in result.hits]


def numbers_only(rows):
    return [(numbered(row[0]), row[1]) for row in rows if not isinstance(row[0], str)]


def keyword_lists(fixture):
    for run in fixture.shipped["fts"]:
        expected = numbers_only(run["results"])
        here = listed(fixture, run["query"], "fts", 20, embedder=False)
        yield repr(run["query"]), ranked(expected, here[: len(expected)])
    for run in fixture.shipped["lexical"]:
        expected = [row for row in run["results"] if row[-1] == "fts"]
        here = listed(fixture, run["query"], "fts", 20, embedder=False)
        yield f"lexical {run['query']!r}", ranked(numbers_only(expected), here[: len(expected)])


def vector_lists(fixture):
    """Similarity in percent with two decimals, in the order of similarity and importance."""
    importance = {entry.id: entry.importance / 10 for entry in fixture.entries}
    for run in fixture.shipped["vector"]:
        found = listed(fixture, run["query"], "vector", 20)
        here = [(id_, round((1 + score - 0.1 * importance[id_]) / 2 * 100, 2)) for id_, score in found]
        yield repr(run["query"]), in_order(run, here, found, importance)


def in_order(run, here, found, importance):
    """Equal similarities of the ids that both list; others only tied at the cut."""
    ours, expected = dict(here), {numbered(row[0]): row[1] for row in run["results"]}
    adjusted = dict(found)
    last = min(adjusted.values(), default=0.0)
    for id_, value in expected.items():
        if id_ not in ours:
            score = value / 50 - 1 + 0.1 * importance[id_]
            if abs(score - last) > 2e-4:
                return differs(f"{id_} is missing")
        elif abs(ours[id_] - value) > 0.0101:
            return differs(f"{id_} has {value}, here {ours[id_]}")
    return same(len(expected), len(ours))


def fused_lists(fixture):
    strategy = "rrf(vector, 0.8*fts, k=60, bonus=each(0.1))"
    for name in ("hybrid_enhanced", "hybrid_spec_folder", "hybrid_no_embedding"):
        for run in fixture.shipped[name]:
            expected = numbers_only(run["results"])
            alone = name == "hybrid_no_embedding"
            # Without vectors the code still weighs its one list by 0.8.
            own = "rrf(0.8*fts, k=60, bonus=each(0.1))" if alone else strategy
            here = listed(fixture, run["query"], own, 20, run.get("specFolder"), not alone)
            # The rows of BM25 took places of the recorded cut, so ours may list more.
            yield f"{name} {run['query']!r}", near(dict(expected), dict(here))


COSINES = {"a": 0.6, "b": 0.8, "c": 0.0, "asked": 1.0}
PLACED = Rule("placed", 2, lambda text: (COSINES[text], (1 - COSINES[text] ** 2) ** 0.5), "{text}")
"""Vectors by their cosine with the query, which is (1, 0)."""
DATED = (
    Entry("a", text="a", created_at=100 * DAY, updated_at=990 * DAY, importance=5),
    Entry("b", text="b", created_at=500 * DAY, importance=9, valid_from=0.0, valid_until=1010 * DAY),
    Entry("c", text="c", created_at=900 * DAY, importance=1),
)
SORTED = {
    "fix_bug": [("b", 0.70), ("c", 0.67), ("a", 0.34)],
    "find_spec": [("b", 0.86), ("a", 0.57), ("c", 0.35)],
    "understand": [("b", 0.82), ("a", 0.55), ("c", 0.48)],
}
"""Made, and derived by hand from systems/spec-kit.md, section 6, for the recording has no dates.

Recency is the place of created_at between the first and the last, 0, 0.5 and 1, whatever was updated or expires;
importance 0.5, 0.9 and 0.1; similarity (1 + cosine) / 2, 0.8, 0.9 and 0.5. So, for a, b and c:

fix_bug, 0.5, 0.2 and 0.3: 0.10 + 0.24, 0.25 + 0.18 + 0.27, 0.50 + 0.02 + 0.15;
find_spec, 0.1, 0.5 and 0.4: 0.25 + 0.32, 0.05 + 0.45 + 0.36, 0.10 + 0.05 + 0.20;
understand, 0.2, 0.3 and 0.5: 0.15 + 0.40, 0.10 + 0.27 + 0.45, 0.20 + 0.03 + 0.25.
"""


def sorted_again(fixture):
    """The last sorting of the handler, over entries with dates."""
    with Vault(":memory:") as store:
        store.upsert(DATED)
        store.ensure_index(SHIPPED.reading.index)
        embed_missing(store, PLACED, space_of(PLACED, "text", "{text}"))
        searcher = Searcher(store, SHIPPED.config(10), PLACED)
        for intent, expected in SORTED.items():
            found = searcher.search(Query("asked", intent=intent, asked_at=1000 * DAY))
            yield intent, ranked(expected, [(hit.entry.id, hit.score) for hit in found.hits], SINGLE)
