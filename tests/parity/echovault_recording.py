"""EchoVault's recording beside the engine on the same memories: what both profiles share.

`Fixture` holds the recording, a vault with its memories and vectors, and searchers of one profile. What a profile
makes of the recording are methods: `near` (a recorded list of vectors), `fusion` (a recorded merge), `alone`.
"""

import numpy as np
from verdicts import SINGLE, both, compare, differs, found as found_in, recording, same

from steelyard import Entry, Filters, Query, Searcher, Vault, fuse, parse_strategy
from steelyard.base.errors import ConfigError, EmbedderError
from steelyard.base.fields import parse_time
from steelyard.embedders.embed import space_of
from steelyard.finish import Cut, finish
from steelyard.live.search import rank_table
from steelyard.stores.base import ScoredId
from steelyard.systems.echovault import DOCUMENTED
from steelyard.table.join import join

HYBRID = "weighted_sum(0.3*fts, 0.7*vector, normalize=max)"


class Lookup:
    """The recorded query vectors by text, as an embedder that can be down or cold, and counts its calls."""

    recipe = None
    model = "fixture"

    def __init__(self, vectors, scale=1.0, down=False, warm=True, dim=None):
        self.vectors, self.scale, self.down, self.loaded, self.dim = vectors, scale, down, warm, dim
        self.calls = 0

    def embed(self, texts, kind="entry"):
        self.calls += 1
        if self.down:
            raise EmbedderError("the provider is down")
        if self.dim:
            return np.ones((len(texts), self.dim), dtype=np.float32)
        return np.array([self.vectors[text] for text in texts], dtype=np.float32) * np.float32(self.scale)

    def warm(self):
        return self.loaded


SPACE = space_of(Lookup({}), "text", DOCUMENTED.reading.recipe)  # both profiles embed the same text


class Fixture:
    """The recording of a version, that which the document describes, and the engine under one profile."""

    version = "seed_era"

    def entry(self, memory):
        return entry(memory)

    def __init__(self, folder, system):
        recorded = recording(folder, "echovault")
        self.system = system
        self.memories = recorded["memories"]
        self.queries = {query["qid"]: query for query in recorded["queries"]}
        self.recorded = recorded["runs"][self.version]
        self.asked = {query["query"]: query["embedding"] for query in recorded["queries"]}
        self.stored = {key(m["rowid"]): m["embedding"] for m in self.memories if m["embedding"]}
        self.vault = self.filled()

    def filled(self, scale=1.0):
        """A vault with the memories, and their vectors unless the scale is 0."""
        vault = Vault(":memory:")
        vault.ensure_index(self.system.reading.index)
        vault.upsert(map(self.entry, self.memories))
        if scale:
            matrix = np.array(list(self.stored.values()), dtype=np.float32) * np.float32(scale)
            vault.put_vectors(SPACE, list(self.stored), matrix)
        return vault

    def searcher(self, limit, embedder=None, vault=None, strategy=None):
        config = self.system.config(limit, Lookup.model)
        if strategy:
            config = config.with_strategy(parse_strategy(strategy))
        return Searcher(vault or self.vault, config, embedder, clock=lambda: 0.0)

    def lookup(self, **how):
        return Lookup(self.asked, **how)

    def query(self, qid):
        asked = self.queries[qid]
        return asked["limit"], Query(asked["query"], filters=scope(asked))

    def keyword_runs(self):
        """The runs, with the keyword side that is expected of the profile."""
        return self.runs()

    def runs(self):
        """(qid, limit, our query, recorded run) of every recorded run."""
        for qid, run in self.recorded["runs"].items():
            yield qid, *self.query(qid), run


# Their words and ours


def key(rowid):
    """Ids that sort as the rowids do, so that ties come out in the recorded order."""
    return f"{rowid:05d}"


def keyed(rows):
    return [(key(rowid), score) for rowid, score in rows]


def entry(memory):
    same = ("title", "why", "impact", "category", "project", "source", "details")
    return Entry(
        key(memory["rowid"]),
        text=memory["what"],
        tags=tuple(memory["tags"]),
        created_at=parse_time(memory["created_at"]),
        updated_at=parse_time(memory["updated_at"]),
        extra={name: memory[name] for name in ("rowid", "file_path", "related_files")},
        **{name: memory[name] or "" for name in same},
    )


def scope(args):
    return Filters.of({name: args[name] for name in ("project", "source") if args.get(name)})


def listed(searcher, query, name):
    """The list of one retriever through the system's own wiring: (id, score), and positions."""
    table = searcher.candidates(query, parse_strategy(name))
    if name not in table.columns:
        return [], []
    at = np.argsort(table.positions[name])
    rows = [(table.entries[table.entry[row]], float(table.columns[name][row])) for row in at]
    return rows, table.positions[name][at].tolist()


def scored(hits, divisor=1.0):
    return [(hit.entry.id, None if hit.score is None else hit.score / divisor) for hit in hits]


def settings(label, args):
    """The semantic mode and whether to fill up with recent rows, of a recorded context call.

    An argument beats the configuration, which the label names: ``config semantic=never``.
    """
    mode = args.get("semantic_mode", label.partition("config semantic=")[2] or "auto")
    return mode, args.get("topup_recent", True)


def fused(lists, strategy, limit, query=None, **scorers):
    numbered = {name: enumerate(rows, 1) for name, rows in lists.items()}
    found = {name: [ScoredId(*row, place) for place, row in rows] for name, rows in numbered.items()}
    table = join([query or Query("fused")], [0.0], [found], scorers, lambda ids, *_: [Entry(id_) for id_ in ids])
    return found_in(finish(table, fuse(table, parse_strategy(strategy)), (Cut(limit),)), table)


def hybrid(searcher, query):
    """Hybrid search, whose errors reach the caller, as (id, score)."""
    strategy = parse_strategy(HYBRID)
    table, ranking, _ = rank_table(searcher.candidates(query, strategy), searcher.config, strategy)
    return found_in(ranking, table)


def merge(fts, vector, fts_weight=0.3, vec_weight=0.7):
    """The document's merge_results, with the decided guard, uncut."""
    total = {}
    for rows, weight in ((fts, fts_weight), (vector, vec_weight)):
        top = max((score for _, score in rows), default=0.0)
        for id_, score in rows:
            total[id_] = total.get(id_, 0.0) + weight * (score / top if top > 0 else 0.0)
    return sorted(total.items(), key=lambda row: -row[1])


def over_maximum(pool):
    """A keyword pool as the first tier scores it."""
    return [(id_, score / pool[0][1]) for id_, score in keyed(pool)] if pool else []


def merged_tolerance(vector):
    """Dividing by a maximum below 1 magnifies what float32 leaves open."""
    top = max((score for _, score in vector), default=1.0)
    return SINGLE / min(1.0, top) if top > 0 else SINGLE


def refused(search, *asked):
    """Verdict where the recording holds an error: ours must be an error that names the remedy."""
    try:
        search(*asked)
    except ConfigError as error:
        return ("", 0.0) if "type at least one word" in str(error) else differs(error)
    return differs("an error is recorded, here there is none")


def failed(recorded):
    return isinstance(recorded, dict) and "error" in recorded


def match_expressions(fixture):
    for qid, _, query, run in fixture.keyword_runs():
        yield qid, same(run["match"], fixture.system.reading.match(query.text))


def keyword_lists(fixture):
    """fts_pool (depth 2 x limit) and fts_top40, filters applied."""
    for qid, limit, query, run in fixture.keyword_runs():
        for name, size in (("fts_pool", limit), ("fts_top40", 20)):
            searcher = fixture.searcher(size)
            if failed(run[name]):
                yield f"{qid} {name}", refused(searcher.candidates, query, parse_strategy("fts"))
            else:
                rows, _ = listed(searcher, query, "fts")
                yield f"{qid} {name}", compare(keyed(run[name]), rows, beyond=keyed(run["fts_top40"]))


def keyword_totals(fixture):
    for qid, _, query, run in fixture.keyword_runs():
        if run["fts_total"] is not None:
            rows, _ = listed(fixture.searcher(len(fixture.memories)), query, "fts")
            yield qid, same(run["fts_total"], len(rows))


def vector_lists(fixture):
    """vec_pool with its filter after the cut (positions show the gaps), without it, and vec20 without filters."""
    for qid, limit, query, run in fixture.runs():
        whole = run.get("vec_pool_unfiltered", run["vec_pool"])
        places = [[rowid for rowid, _ in whole].index(rowid) + 1 for rowid, _ in run["vec_pool"]]
        beyond = fixture.near(query.text, fixture.recorded["vec20"].get(qid, ()))
        yield f"{qid} vec_pool", near_vectors(fixture, limit, query, run["vec_pool"], places, beyond)
        if "vec_pool_unfiltered" in run:
            every = list(range(1, len(whole) + 1))
            verdict = near_vectors(fixture, limit, Query(query.text), whole, every, beyond)
            yield f"{qid} vec_pool_unfiltered", verdict
    for qid, pool in fixture.recorded["vec20"].items():
        query = Query(fixture.queries[qid]["query"])
        yield f"{qid} vec20", near_vectors(fixture, 10, query, pool, list(range(1, 21)))


def near_vectors(fixture, limit, query, pool, places, beyond=()):
    """Verdict on a list of vectors with its places, and on the order of the recorded one."""
    rows, positions = listed(fixture.searcher(limit, fixture.lookup()), query, "vector")
    verdict = compare(fixture.near(query.text, pool), rows, SINGLE, 1.0, beyond=beyond, tie=fixture.tie)
    scores = [score for _, score in pool]
    return both(verdict, same(places, positions), same(sorted(scores, reverse=True), scores))


def keywords_alone(fixture):
    """Without a provider, and with one that is down."""
    for qid, limit, query, run in fixture.keyword_runs():
        for name, (down, strategy) in fixture.alone.items():
            searcher = fixture.searcher(limit, fixture.lookup(down=True) if down else None, strategy=strategy)
            if failed(run[name]):
                yield f"{qid} {name}", refused(searcher.search, query)
            else:
                shown, beyond = fixture.shown(searcher.search(query).hits), over_maximum(run["fts_pool"])
                yield f"{qid} {name}", compare(keyed(run[name]), shown, beyond=beyond)


def hybrid_always(fixture):
    """The merge without the tier test."""
    for qid, limit, query, run in fixture.keyword_runs():
        searcher = fixture.searcher(limit, fixture.lookup(), strategy=HYBRID)
        if failed(run["hybrid"]):
            yield qid, refused(searcher.search, query)
        else:
            yield qid, fixture.fusion(qid, limit, query, run, scored(searcher.search(query).hits))


def scaled_vectors(fixture):
    vault = fixture.filled(8.0)
    for qid, recorded in fixture.recorded["scaled_x8"].items():
        limit, query = fixture.query(qid)
        searcher = fixture.searcher(limit, fixture.lookup(scale=8.0), vault)
        rows, _ = listed(searcher, query, "vector")
        expected = fixture.near(query.text, recorded["vec_pool"], 8.0)
        yield f"{qid} vec_pool", compare(expected, rows, SINGLE, 1.0, tie=fixture.tie)
        for name, verdict in fixture.scaled(qid, limit, query, recorded, searcher):
            yield f"{qid} {name}", verdict


def merge_function(fixture):
    """The recorded direct calls of the merge function; both profiles merge alike."""
    for number, case in enumerate(fixture.recorded["merge_cases"], 1):
        given = case["kw"]
        fts, vector = given.get("fts_weight", 0.3), given.get("vec_weight", 0.7)
        strategy = f"weighted_sum({fts}*fts, {vector}*vector, normalize=max)"
        got = fused({"fts": case["fts"], "vector": case["vec"]}, strategy, given.get("limit", 5))
        yield f"case {number}", compare([tuple(row) for row in case["out"]], got)
