"""EchoVault, profile documented, against the recording of the version its document describes.

What surrounds the ranking (contexts, forms of results, saving and deleting) is compared for the profile shipped
alone: the two profiles differ there in what golden tests state.

Rankings that involve vectors cannot be compared score by score: the recording merges 1 - L2 distance,
the document says cosine. They are compared with a reference that follows the document's listings and
shares no code with the engine: the recorded keyword pool, and the recorded distances turned into
cosines (|a - b|^2 = |a|^2 + |b|^2 - 2ab; the vectors are of length 1 only to 1e-5, so lengths stay in).
"""

import apsw
import echovault_recording as shared
import numpy as np
from verdicts import EXACT, SINGLE, both, compare, same

from steelyard.memory.query import Query
from steelyard.systems.echovault import DOCUMENTED


def fixture(folder):
    return Documented(folder, DOCUMENTED)


class Documented(shared.Fixture):
    """The recording with what the document makes of it."""

    tie = SINGLE
    alone = {"tiered_no_provider": (False, None), "tiered_provider_down": (True, None)}  # noqa: RUF012 -- read alone

    def __init__(self, folder, system):
        super().__init__(folder, system)
        self.reference = Reference(self)

    def keyword_runs(self):
        """The runs; where the query holds quotes, with the keyword side that the document asks for.

        'seed_era does not escape double quotes', so its expression is another one there. What it recorded of
        the keywords is replaced by what SQLite finds with the quotes doubled.
        """
        for qid, limit, query, run in self.runs():
            yield qid, limit, query, run | self.reference.escaped(query, limit)

    def near(self, text, pool, scale=1.0):
        """Recorded (rowid, 1 - distance) pairs as cosines, best first.

        The recording is in the order of distances, and lengths are 1 only to 1e-5, so neighbours may
        change places.
        """
        asked = np.array(self.asked[text])
        found = []
        for id_, score in shared.keyed(pool):
            vector, distance = np.array(self.stored[id_]), (1.0 - score) / scale
            dot = (asked @ asked + vector @ vector - distance * distance) / 2
            found.append((id_, float(dot / np.sqrt(asked @ asked) / np.sqrt(vector @ vector))))
        return sorted(found, key=lambda row: -row[1])

    def fusion(self, qid, limit, query, run, got, scale=1.0):
        vector = self.near(query.text, run["vec_pool"], scale)
        expected = shared.merge(shared.keyed(run["fts_pool"]), vector)
        return compare(expected, got, shared.merged_tolerance(vector), 1.0, limit)

    def scaled(self, qid, limit, query, recorded, searcher):
        """Cosine does not depend on length: vectors eight times as long give the same rankings."""
        run = self.recorded["runs"].get(qid)
        if run and not shared.failed(run["hybrid"]):
            run = run | self.reference.escaped(query, limit) | {"vec_pool": recorded["vec_pool"]}
            searcher = self.searcher(limit, self.lookup(scale=8.0), searcher.store, shared.HYBRID)
            yield "hybrid", self.fusion(qid, limit, query, run, shared.scored(searcher.search(query).hits), 8.0)

    def shown(self, hits):
        """Scores divided by the best, as the recording has them; the document shows them undivided."""
        return shared.scored(hits, hits[0].score if hits and hits[0].score else 1.0)


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

    def tiered(self, query, limit, min_results=3):
        """The document's tiered_search: uncut rows, their tolerance, embedding calls."""
        fts = shared.keyed(self.keywords(query))[: 2 * limit]
        if len(fts) >= min_results:
            return fts, EXACT, 0
        asked, vectors = np.array(self.asked[query.text]), {id_: np.array(v) for id_, v in self.stored.items()}
        near = [(id_, float(asked @ v / np.sqrt(asked @ asked) / np.sqrt(v @ v))) for id_, v in vectors.items()]
        near = sorted(near, key=lambda row: -row[1])[: 2 * limit]
        near = [row for row in near if self.admits(int(row[0]), query.filters)]
        return shared.merge(fts, near), shared.merged_tolerance(near), 1

    def keywords(self, query):
        rows = self.db.execute(
            "SELECT rowid, -rank FROM f WHERE f MATCH ? ORDER BY rank, rowid", (expression(query.text),)
        )
        return [(rowid, score) for rowid, score in rows if self.admits(rowid, query.filters)]

    def escaped(self, query, limit):
        """The keyword side of a recorded run, from this table instead; nothing without quotes."""
        if '"' not in query.text:
            return {}
        rows = self.keywords(query)
        pool = rows[: 2 * limit]
        over = [[int(id_), score] for id_, score in shared.over_maximum(pool)[:limit]]
        lists = {"fts_pool": pool, "fts_top40": rows[:40], "fts_total": len(rows)}
        tiered = dict.fromkeys(("tiered", "tiered_no_provider", "tiered_provider_down"), over)
        return {"match": expression(query.text), "embed_called": len(pool) < 3, **lists, **tiered}


def expression(text):
    terms = (term.replace('"', '""') for term in text.split())
    return " OR ".join(f'"{term}"*' for term in terms)


def tiered_by_keywords(fixture):
    """Tiered rankings where at least 3 keyword rows answer; the recording divides by their maximum."""
    for qid, limit, query, run in fixture.keyword_runs():
        searcher = fixture.searcher(limit, fixture.lookup())
        if shared.failed(run["tiered"]):
            yield qid, shared.refused(searcher.search, query)
        elif not run["embed_called"]:
            yield qid, compare(shared.keyed(run["tiered"]), fixture.shown(searcher.search(query).hits))
        elsewhere = run.get("tiered_unfiltered")
        if elsewhere and not fixture.reference.tiered(Query(query.text), limit)[-1]:
            found = searcher.search(Query(query.text))
            verdict = both(
                compare(shared.keyed(elsewhere), fixture.shown(found.hits)), same(0, found.embedding_calls)
            )
            yield f"{qid} unfiltered", verdict


def embedding_calls(fixture):
    for qid, limit, query, run in fixture.keyword_runs():
        if not shared.failed(run["tiered"]):
            found = fixture.searcher(limit, fixture.lookup()).search(query)
            yield qid, same(int(run["embed_called"]), found.embedding_calls)


def tiered_by_vectors(fixture):
    """Tiered rankings where keywords find fewer than 3 rows."""
    for qid, limit, query, run in fixture.keyword_runs():
        searcher = fixture.searcher(limit, fixture.lookup())
        if run["embed_called"]:
            yield qid, fixture.fusion(qid, limit, query, run, shared.scored(searcher.search(query).hits))
        if run.get("tiered_unfiltered"):
            everywhere = Query(query.text)
            expected, tolerance, embedded = fixture.reference.tiered(everywhere, limit)
            if embedded:
                hits = searcher.search(everywhere).hits
                yield f"{qid} unfiltered", compare(expected, shared.scored(hits), tolerance, 1.0, limit)


def min_results(fixture):
    """min_fts_results from 0 to 100; the keyword tier answers where the list is that of 0."""
    for qid, sweep in fixture.recorded["min_fts_sweep"].items():
        limit, query = fixture.query(qid)
        for least, recorded in sweep.items():
            strategy = f"tiered(fts, min_results={least}, then={shared.HYBRID})"
            hits = fixture.searcher(limit, fixture.lookup(), strategy=strategy).search(query).hits
            if recorded == sweep["0"]:
                verdict = compare(shared.keyed(recorded), fixture.shown(hits))
            else:
                expected, tolerance, _ = fixture.reference.tiered(query, limit, int(least))
                verdict = compare(expected, shared.scored(hits), tolerance, 1.0, limit)
            yield f"{qid} {least}", verdict
