"""EchoVault, profile documented, against the recording of the version its document describes.

`cases` yields a plain tuple a comparison: (group, case, verdict, error). The verdict is "" when both
agree, "differs: ..." when they do not, and "left out: ..." where systems/echovault.md says that the
code of that version departs from the document.

Rankings that involve vectors cannot be compared score by score: the recording merges 1 - L2 distance,
the document says cosine. They are compared with a reference that follows the document's listings and
shares no code with the engine: the recorded keyword pool, and the recorded distances turned into
cosines (|a - b|^2 = |a|^2 + |b|^2 - 2ab; the vectors are of length 1 only to 1e-5, so lengths stay in).
"""

from dataclasses import replace

import apsw
import numpy as np
from echovault_recording import (
    EXACT,
    HYBRID,
    SINGLE,
    SPACE,
    Fixture,
    both,
    compare,
    entry,
    failed,
    key,
    keyed,
    listed,
    merge,
    merge_function,
    merged_tolerance,
    refused,
    run_groups,
    same,
    scope,
    scored,
)

from steelyard.entry import Hit
from steelyard.errors import DimensionMismatchError
from steelyard.filters import Filters
from steelyard.fusion import parse_strategy
from steelyard.query import Query
from steelyard.systems.echovault import DOCUMENTED, prefix_or, result

KEYS = ["id", "title", "what", "why", "impact", "category", "tags"]
KEYS += ["project", "source", "score", "has_details", "created_at"]

# Each quotes the line of systems/echovault.md by its words.
QUOTES = "left out: 'seed_era does not escape double quotes'"
BLANK = "left out: 'get_context ... with blanks it raises'; here a blank text is no query"
UNKNOWN_MODE = "left out: 'unknown strings to auto'; here an unknown mode is an error"
COLUMNS = "left out: 'the database row carries all columns'"
SAVING = "left out: 'dedup on save', 'delete', failures on save: the document describes none of it"
SWALLOWED = "left out: 'tiered and service.search fall back to FTS' on a wrong dimension; here it is an error"
TOOL = "left out: 'that tool passes no query and mode never' and shows other fields"


def cases(folder):
    """Every comparison of EchoVault with its recording."""
    groups = (
        match_expressions,
        keyword_lists,
        keyword_totals,
        vector_lists,
        tiered_by_keywords,
        keywords_alone,
        embedding_calls,
        tiered_by_vectors,
        hybrid_always,
        scaled_vectors,
        min_results,
        merge_function,
        context,
        result_form,
        scenarios,
    )
    return run_groups(groups, Documented(folder))


class Documented(Fixture):
    """The recording with what the document makes of it."""

    def __init__(self, folder):
        super().__init__(folder, DOCUMENTED)
        self.reference = Reference(self)

    def keyword_runs(self):
        """The runs whose keyword side obeys the document; the others with the reason."""
        for qid, limit, query, run in self.runs():
            yield qid, limit, query, run, (QUOTES, 0.0) if '"' in query.text else None

    def cosines(self, text, pool, scale=1.0):
        """Recorded (rowid, 1 - distance) pairs as cosines."""
        asked = np.array(self.asked[text])
        found = []
        for id_, score in keyed(pool):
            vector, distance = np.array(self.stored[id_]), (1.0 - score) / scale
            dot = (asked @ asked + vector @ vector - distance * distance) / 2
            found.append((id_, float(dot / np.sqrt(asked @ asked) / np.sqrt(vector @ vector))))
        return found


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
        match = " OR ".join(f'"{term}"*' for term in text.split())
        rows = self.db.execute("SELECT rowid, -rank FROM f WHERE f MATCH ? ORDER BY rank, rowid", (match,))
        fts = [(key(rowid), score) for rowid, score in rows if self.admits(rowid, filters)][: 2 * limit]
        if len(fts) >= min_results:
            return fts, limit, EXACT, 0
        asked = np.array(self.asked[text])
        near = [(id_, float(asked @ v / np.sqrt(asked @ asked) / np.sqrt(v @ v))) for id_, v in self._vectors()]
        near = sorted(near, key=lambda row: -row[1])[: 2 * limit]
        near = [row for row in near if self.admits(int(row[0]), filters)]
        return merge(fts, near), limit, merged_tolerance(near), 1

    def _vectors(self):
        return ((id_, np.array(vector)) for id_, vector in self.stored.items())


# The groups: generators of (case, (verdict, error))


def match_expressions(fixture):
    for qid, _, query, run, left_out in fixture.keyword_runs():
        yield qid, left_out or same(run["match"], prefix_or(query.text))


def keyword_lists(fixture):
    """fts_pool (depth 2 x limit) and fts_top40, filters applied."""
    for qid, limit, query, run, left_out in fixture.keyword_runs():
        for name, size in (("fts_pool", limit), ("fts_top40", 20)):
            searcher = fixture.searcher(size)
            if left_out:
                yield f"{qid} {name}", left_out
            elif failed(run[name]):
                yield f"{qid} {name}", refused(lambda s=searcher, q=query: s.candidates(q, parse_strategy("fts")))
            else:
                rows, _ = listed(searcher, query, "fts")
                verdict = compare(keyed(run[name]), rows, beyond=keyed(run["fts_top40"]))
                yield f"{qid} {name}", verdict


def keyword_totals(fixture):
    for qid, _, query, run, left_out in fixture.keyword_runs():
        if run["fts_total"] is None:
            continue
        rows = [] if left_out else listed(fixture.searcher(len(fixture.memories)), query, "fts")[0]
        yield qid, left_out or same(run["fts_total"], len(rows))


def vector_lists(fixture):
    """vec_pool with its filter after the cut (positions show the gaps), and vec20 without filters."""
    for qid, limit, query, run in fixture.runs():
        rows, positions = listed(fixture.searcher(limit, fixture.lookup()), query, "vector")
        expected = fixture.cosines(query.text, run["vec_pool"])
        whole = [rowid for rowid, _ in run.get("vec_pool_unfiltered", run["vec_pool"])]
        places = [whole.index(rowid) + 1 for rowid, _ in run["vec_pool"]]
        yield f"{qid} vec_pool", both(compare(expected, rows, SINGLE, 1.0), same(places, positions))
    for qid, pool in fixture.recorded["vec20"].items():
        text = fixture.queries[qid]["query"]
        rows, positions = listed(fixture.searcher(10, fixture.lookup()), Query(text), "vector")
        verdict = compare(fixture.cosines(text, pool), rows, SINGLE, 1.0)
        yield f"{qid} vec20", both(verdict, same(list(range(1, 21)), positions))


def tiered_by_keywords(fixture):
    """Tiered rankings where at least 3 keyword rows answer; the recording divides by their maximum."""
    for qid, limit, query, run, left_out in fixture.keyword_runs():
        searcher = fixture.searcher(limit, fixture.lookup())
        if failed(run["tiered"]):
            yield qid, refused(lambda s=searcher, q=query: s.search(q))
        elif not run["embed_called"]:
            yield qid, left_out or compare(keyed(run["tiered"]), over_top(searcher.search(query).hits))
        elsewhere = run.get("tiered_unfiltered")
        if elsewhere and not left_out and not fixture.reference.tiered(query.text, Filters(), limit)[-1]:
            found = searcher.search(Query(query.text))
            verdict = both(compare(keyed(elsewhere), over_top(found.hits)), same(0, found.embedding_calls))
            yield f"{qid} unfiltered", verdict


def keywords_alone(fixture):
    """Without a provider, and with one that is down."""
    for qid, limit, query, run, left_out in fixture.keyword_runs():
        for name, embedder in (("no_provider", None), ("provider_down", fixture.lookup(down=True))):
            expected, searcher = run[f"tiered_{name}"], fixture.searcher(limit, embedder)
            if failed(expected):
                yield f"{qid} {name}", refused(lambda s=searcher, q=query: s.search(q))
            else:
                verdict = left_out or compare(keyed(expected), over_top(searcher.search(query).hits))
                yield f"{qid} {name}", verdict


def embedding_calls(fixture):
    for qid, limit, query, run, left_out in fixture.keyword_runs():
        if not failed(run["tiered"]):
            found = fixture.searcher(limit, fixture.lookup()).search(query)
            yield qid, left_out or same(int(run["embed_called"]), found.embedding_calls)


def tiered_by_vectors(fixture):
    """Tiered rankings where keywords find fewer than 3 rows."""
    for qid, limit, query, run, left_out in fixture.keyword_runs():
        if run["embed_called"]:
            yield qid, left_out or against_reference(fixture, limit, query, run, None)
        if run.get("tiered_unfiltered") and not left_out:
            expected, show, tolerance, embedded = fixture.reference.tiered(query.text, Filters(), limit)
            if embedded:
                hits = fixture.searcher(limit, fixture.lookup()).search(Query(query.text)).hits
                yield f"{qid} unfiltered", compare(expected, scored(hits), tolerance, 1.0, show)


def hybrid_always(fixture):
    """The merge without the tier test."""
    for qid, limit, query, run, left_out in fixture.keyword_runs():
        if failed(run["hybrid"]):
            searcher = fixture.searcher(limit, fixture.lookup(), strategy=HYBRID)
            yield qid, refused(lambda s=searcher, q=query: s.search(q))
        else:
            yield qid, left_out or against_reference(fixture, limit, query, run, HYBRID)


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
        yield f"{qid} vec_pool", compare(fixture.cosines(query.text, pool, 8.0), rows, SINGLE, 1.0)
        if run and not failed(run["hybrid"]):
            left_out = (QUOTES, 0.0) if '"' in query.text else None
            verdict = left_out or against_reference(
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


def context(fixture):
    """Rows, total and embedding calls of context retrieval; recent rows carry no score."""
    for number, case in enumerate(fixture.recorded["context"], 1):
        yield f"call {number}", context_case(fixture, case)


def context_case(fixture, case):
    args, label = case["args"], case["label"]
    text, limit, filters = args.get("query", ""), args["limit"], scope(args)
    set_by_config = label.removeprefix("config semantic=") if label.startswith("config semantic=") else "auto"
    mode = args.get("semantic_mode", set_by_config)
    mode = {True: "always", False: "never"}.get(mode, mode)
    if failed(case):
        return BLANK, 0.0
    if mode not in ("auto", "always", "never"):
        return UNKNOWN_MODE, 0.0
    # Whether the model was loaded is part of the recording; it shows in the call.
    embedder = fixture.lookup(warm="ollama" not in label or case["embed_called"])
    searcher = fixture.searcher(limit, embedder)
    hits, total = searcher.context(text, filters, semantic=mode, topup_recent=args.get("topup_recent", True))
    recent = [key(rowid) for rowid, score in case["out"] if score is None]
    tail = same(recent, [hit.entry.id for hit in hits if hit.score is None])
    found = [hit for hit in hits if hit.score is not None]
    if case["embed_called"]:
        expected, show, tolerance, embedded = fixture.reference.tiered(text, filters, limit)
        head = both(compare(expected, scored(found), tolerance, 1.0, show), same(1, embedded))
    else:
        head = compare(keyed(row for row in case["out"] if row[1] is not None), over_top(found))
    return both(head, tail, same(case["total"], total), same(len(case["out"]), len(hits)))


def result_form(fixture):
    """The documented keys, and the values of the rows that the search tool showed."""
    shown = list(result(Hit(1, 0.5, entry(fixture.memories[0]))))
    for name in fixture.recorded["result_keys"]:
        yield f"key {name}", same(True, name in shown) if name in KEYS else (COLUMNS, 0.0)
    yield "order of the keys", same(KEYS, shown)
    rowids = {memory["id"]: memory for memory in fixture.memories}
    for row in fixture.recorded["tool_search"]:
        ours = result(Hit(1, 0.5, entry(rowids[row["id"]])))
        values = {name: value or "" for name, value in row.items() if name not in ("id", "score", "created_at")}
        got = {name: ours[name] or "" for name in values}
        yield f"row {row['id'][:8]}", both(same(values, got), same(row["created_at"], ours["created_at"][:10]))
    yield "tool_context", (TOOL, 0.0)


def scenarios(fixture):
    recorded = fixture.recorded["scenarios"]
    bare = fixture.searcher(5, fixture.lookup(), vault=fixture.filled(scale=0))
    found, none = bare.search("zephyrine"), recorded["no_vec_table"]
    rows = compare(keyed(none["service_search"]), over_top(found.hits))
    yield "no vectors", both(rows, same(none["embed_calls"], found.embedding_calls))

    vault, wrong = fixture.filled(), np.ones((1, 32), dtype=np.float32)
    named = ("64", "32", "reindex")
    asked = [word in recorded["dimension_mismatch"]["ensure"]["error"] for word in named]
    for name, act in (
        ("storing 32 beside 64", lambda: vault.put_vectors(SPACE, [key(1)], wrong)),
        ("searching with 32 in 64", lambda: vault.nearest(SPACE, wrong[0], Filters(), 5, True)),
    ):
        try:
            act()
            yield name, same("an error", "none")
        except DimensionMismatchError as error:
            yield name, same(asked, [word in str(error) for word in named])
    vault.drop_space(SPACE)
    vault.put_vectors(SPACE, [key(1)], wrong)
    yield "reindex", same(recorded["dimension_mismatch"]["stored_dim_after"], vault.spaces()[0][1])
    for name in ("tiered", "service_search"):
        yield f"{name} with 32 in 64", (SWALLOWED, 0.0)

    rowid = recorded["update"]["rowid"]
    old = entry(fixture.memories[rowid - 1])
    before = [id_ for id_, _ in listed(fixture.searcher(5, vault=vault), Query("zephyrine"), "fts")[0]]
    vault.upsert([replace(old, title="new", text="other words", why="", impact="", tags=())])
    after = [id_ for id_, _ in listed(fixture.searcher(5, vault=vault), Query("zephyrine"), "fts")[0]]
    expected = [recorded["update"][name] for name in ("old_text_matched_before", "old_text_still_matches")]
    yield "update", same(expected, [old.id in before, old.id in after])
    for name in ("dedup", "delete", "provider_down_on_save"):
        yield name, (SAVING, 0.0)
