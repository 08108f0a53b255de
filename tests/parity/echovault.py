"""EchoVault, profile documented, against the recording of the version its document describes.

`cases` yields a plain tuple a comparison: (group, case, verdict, error). The verdict is "" when both
agree, "differs: ..." when they do not, and "left out: ..." where systems/echovault.md says that the
code of that version departs from the document. What surrounds the ranking (contexts, forms of results, saving and
deleting) is compared for the profile shipped alone: the two profiles differ there in what golden tests state.

Rankings that involve vectors cannot be compared score by score: the recording merges 1 - L2 distance,
the document says cosine. They are compared with a reference that follows the document's listings and
shares no code with the engine: the recorded keyword pool, and the recorded distances turned into
cosines (|a - b|^2 = |a|^2 + |b|^2 - 2ab; the vectors are of length 1 only to 1e-5, so lengths stay in).
"""

import apsw
import echovault_recording
import numpy as np
from echovault_recording import (
    HYBRID,
    Fixture,
    compare,
    failed,
    key,
    keyed,
    listed,
    merge,
    merged_tolerance,
    refused,
    scope,
    scored,
)
from verdicts import EXACT, SINGLE, both, run_groups, same

from steelyard.memory.query import Filters, Query
from steelyard.systems.echovault import DOCUMENTED


def cases(folder):
    """Every comparison of EchoVault with its recording."""
    return run_groups("echovault documented", vars(echovault_recording) | globals(), Documented(folder))


class Documented(Fixture):
    """The recording with what the document makes of it."""

    def __init__(self, folder):
        super().__init__(folder, DOCUMENTED)
        self.reference = Reference(self)

    def keyword_runs(self):
        """The runs; where the query holds quotes, with the keyword side that the document asks for.

        'seed_era does not escape double quotes', so its expression is another one there. What it recorded of
        the keywords is replaced by what SQLite finds with the quotes doubled.
        """
        for qid, limit, query, run in self.runs():
            yield qid, limit, query, run | self.reference.escaped(query, limit) if '"' in query.text else run

    def cosines(self, text, pool, scale=1.0):
        """Recorded (rowid, 1 - distance) pairs as cosines, best first.

        The recording is in the order of distances, and lengths are 1 only to 1e-5, so neighbours may
        change places.
        """
        asked = np.array(self.asked[text])
        found = []
        for id_, score in keyed(pool):
            vector, distance = np.array(self.stored[id_]), (1.0 - score) / scale
            dot = (asked @ asked + vector @ vector - distance * distance) / 2
            found.append((id_, float(dot / np.sqrt(asked @ asked) / np.sqrt(vector @ vector))))
        return sorted(found, key=lambda row: -row[1])


def over_top(hits):
    """Scores divided by the best, as the recording has them; the document shows them undivided."""
    return scored(hits, hits[0].score if hits and hits[0].score else 1.0)


# The document's tiered search once more, on SQLite and numpy alone


class Reference:
    """Tiered search over an FTS5 table as the document creates it."""

    COLUMNS = ("title", "what", "why", "impact", "tags", "category", "project", "source")

    def __init__(self, fixture):
        self.memories = {memory["rowid"]: memory for memory in fixture.memories}
        self.asked, self.stored = fixture.asked, fixture.stored
        self.db = apsw.Connection(":memory:")
        names = ", ".join(self.COLUMNS)
        self.db.execute(f"CREATE VIRTUAL TABLE f USING fts5({names}, tokenize='porter unicode61')")
        for rowid, memory in self.memories.items():
            values = [" ".join(memory[c]) if c == "tags" else memory[c] for c in self.COLUMNS]
            self.db.execute(f"INSERT INTO f(rowid, {names}) VALUES(?{', ?' * 8})", (rowid, *values))

    def admits(self, rowid, filters):
        rules = [rule for clause in filters.clauses for rule in clause]
        return all(self.memories[rowid][rule.field] in rule.values for rule in rules)

    def tiered(self, text, filters, limit, min_results=3):
        """The document's tiered_search: uncut rows, how many are shown, tolerance, embedding calls."""
        fts = [(key(rowid), score) for rowid, score in self.keywords(text, filters)][: 2 * limit]
        if len(fts) >= min_results:
            return fts, limit, EXACT, 0
        asked = np.array(self.asked[text])
        near = [(id_, float(asked @ v / np.sqrt(asked @ asked) / np.sqrt(v @ v))) for id_, v in self._vectors()]
        near = sorted(near, key=lambda row: -row[1])[: 2 * limit]
        near = [row for row in near if self.admits(int(row[0]), filters)]
        return merge(fts, near), limit, merged_tolerance(near), 1

    def keywords(self, text, filters):
        """All (rowid, score) of the document's expression, quotes in a term doubled as SQL does."""
        rows = self.db.execute(
            "SELECT rowid, -rank FROM f WHERE f MATCH ? ORDER BY rank, rowid", (expression(text),)
        )
        return [(rowid, score) for rowid, score in rows if self.admits(rowid, filters)]

    def escaped(self, query, limit):
        """The keyword side of a recorded run, from this table instead."""
        rows = self.keywords(query.text, query.filters)
        pool = rows[: 2 * limit]
        over = [[rowid, score / pool[0][1]] for rowid, score in pool[:limit]]
        return {
            "match": expression(query.text),
            "fts_pool": pool,
            "fts_top40": rows[:40],
            "fts_total": len(rows),
            "embed_called": len(pool) < 3,
            "tiered": over,
            "tiered_no_provider": over,
            "tiered_provider_down": over,
        }

    def _vectors(self):
        return ((id_, np.array(vector)) for id_, vector in self.stored.items())


def expression(text):
    """The document's prefix expression, with quotes doubled."""
    terms = (term.replace('"', '""') for term in text.split())
    return " OR ".join(f'"{term}"*' for term in terms)


# The groups: generators of (case, (verdict, error))


def vector_lists(fixture):
    """vec_pool with its filter after the cut (positions show the gaps), and vec20 without filters."""
    for qid, limit, query, run in fixture.runs():
        rows, positions = listed(fixture.searcher(limit, fixture.lookup()), query, "vector")
        expected = fixture.cosines(query.text, run["vec_pool"])
        whole = [rowid for rowid, _ in run.get("vec_pool_unfiltered", run["vec_pool"])]
        places = [whole.index(rowid) + 1 for rowid, _ in run["vec_pool"]]
        verdict = compare(expected, rows, SINGLE, 1.0, tie=SINGLE)
        yield f"{qid} vec_pool", both(verdict, same(places, positions), descending(run["vec_pool"]))
    for qid, pool in fixture.recorded["vec20"].items():
        text = fixture.queries[qid]["query"]
        rows, positions = listed(fixture.searcher(10, fixture.lookup()), Query(text), "vector")
        verdict = compare(fixture.cosines(text, pool), rows, SINGLE, 1.0, tie=SINGLE)
        yield f"{qid} vec20", both(verdict, same(list(range(1, 21)), positions), descending(pool))


def descending(pool):
    """Verdict on a recorded list, whose order the cosines do not keep."""
    scores = [score for _, score in pool]
    return same(sorted(scores, reverse=True), scores)


def tiered_by_keywords(fixture):
    """Tiered rankings where at least 3 keyword rows answer; the recording divides by their maximum."""
    for qid, limit, query, run in fixture.keyword_runs():
        searcher = fixture.searcher(limit, fixture.lookup())
        if failed(run["tiered"]):
            yield qid, refused(lambda s=searcher, q=query: s.search(q))
        elif not run["embed_called"]:
            yield qid, compare(keyed(run["tiered"]), over_top(searcher.search(query).hits))
        elsewhere = run.get("tiered_unfiltered")
        if elsewhere and not fixture.reference.tiered(query.text, Filters(), limit)[-1]:
            found = searcher.search(Query(query.text))
            verdict = both(compare(keyed(elsewhere), over_top(found.hits)), same(0, found.embedding_calls))
            yield f"{qid} unfiltered", verdict


def keywords_alone(fixture):
    """Without a provider, and with one that is down."""
    for qid, limit, query, run in fixture.keyword_runs():
        for name, embedder in (("no_provider", None), ("provider_down", fixture.lookup(down=True))):
            expected, searcher = run[f"tiered_{name}"], fixture.searcher(limit, embedder)
            if failed(expected):
                yield f"{qid} {name}", refused(lambda s=searcher, q=query: s.search(q))
            else:
                verdict = compare(keyed(expected), over_top(searcher.search(query).hits))
                yield f"{qid} {name}", verdict


def embedding_calls(fixture):
    for qid, limit, query, run in fixture.keyword_runs():
        if not failed(run["tiered"]):
            found = fixture.searcher(limit, fixture.lookup()).search(query)
            yield qid, same(int(run["embed_called"]), found.embedding_calls)


def tiered_by_vectors(fixture):
    """Tiered rankings where keywords find fewer than 3 rows."""
    for qid, limit, query, run in fixture.keyword_runs():
        if run["embed_called"]:
            yield qid, against_reference(fixture, limit, query, run, None)
        if run.get("tiered_unfiltered"):
            expected, show, tolerance, embedded = fixture.reference.tiered(query.text, Filters(), limit)
            if embedded:
                hits = fixture.searcher(limit, fixture.lookup()).search(Query(query.text)).hits
                yield f"{qid} unfiltered", compare(expected, scored(hits), tolerance, 1.0, show)


def hybrid_always(fixture):
    """The merge without the tier test."""
    for qid, limit, query, run in fixture.keyword_runs():
        if failed(run["hybrid"]):
            searcher = fixture.searcher(limit, fixture.lookup(), strategy=HYBRID)
            yield qid, refused(lambda s=searcher, q=query: s.search(q))
        else:
            yield qid, against_reference(fixture, limit, query, run, HYBRID)


def against_reference(fixture, limit, query, run, strategy, scale=1.0, vault=None, pool=None):
    vector = fixture.cosines(query.text, run["vec_pool"] if pool is None else pool, scale)
    expected = merge(keyed(run["fts_pool"]), vector)
    found = fixture.searcher(limit, fixture.lookup(scale=scale), vault, strategy).search(query)
    return compare(expected, scored(found.hits), merged_tolerance(vector), 1.0, limit)


def scaled_vectors(fixture):
    """Cosine does not depend on length: vectors eight times as long give the same rankings."""
    vault = fixture.filled(8.0)
    for qid, recorded in fixture.recorded["scaled_x8"].items():
        asked, run = fixture.queries[qid], fixture.recorded["runs"].get(qid)
        query = Query(asked["query"], filters=scope(asked))
        rows, _ = listed(fixture.searcher(asked["limit"], fixture.lookup(scale=8.0), vault), query, "vector")
        pool = recorded["vec_pool"]
        yield f"{qid} vec_pool", compare(fixture.cosines(query.text, pool, 8.0), rows, SINGLE, 1.0, tie=SINGLE)
        if run and not failed(run["hybrid"]):
            run = run | (fixture.reference.escaped(query, asked["limit"]) if '"' in query.text else {})
            verdict = against_reference(
                fixture, asked["limit"], query, run, HYBRID, scale=8.0, vault=vault, pool=pool
            )
            yield f"{qid} hybrid", verdict


def min_results(fixture):
    """min_fts_results from 0 to 100; the keyword tier answers where the list is that of 0."""
    reference = fixture.reference
    for qid, sweep in fixture.recorded["min_fts_sweep"].items():
        asked = fixture.queries[qid]
        query, limit = Query(asked["query"], filters=scope(asked)), asked["limit"]
        for least, recorded in sweep.items():
            strategy = f"tiered(fts, min_results={least}, then={HYBRID})"
            found = fixture.searcher(limit, fixture.lookup(), strategy=strategy).search(query)
            if recorded == sweep["0"]:
                verdict = compare(keyed(recorded), over_top(found.hits))
            else:
                expected, show, tolerance, _ = reference.tiered(query.text, query.filters, limit, int(least))
                verdict = compare(expected, scored(found.hits), tolerance, 1.0, show)
            yield f"{qid} {least}", verdict
