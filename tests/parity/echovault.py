"""EchoVault, profile documented, against the recording of the version its document describes.

`cases` yields a plain tuple a comparison: (group, case, verdict, error). The verdict is "" when both
agree, "differs: ..." when they do not, and "left out: ..." where systems/echovault.md says that the
code of that version departs from the document.

Rankings that involve vectors cannot be compared score by score: the recording merges 1 - L2 distance,
the document says cosine. They are compared with a reference that follows the document's listings and
shares no code with the engine: the recorded keyword pool, and the recorded distances turned into
cosines (|a - b|^2 = |a|^2 + |b|^2 - 2ab; the vectors are of length 1 only to 1e-5, so lengths stay in).
"""

from datetime import datetime

import apsw
import numpy as np
from echovault_recording import (
    HYBRID,
    SPACE,
    Fixture,
    Lookup,
    compare,
    entry,
    failed,
    key,
    keyed,
    keyword_lists,
    keyword_totals,
    listed,
    match_expressions,
    merge,
    merge_function,
    merged_tolerance,
    refused,
    scope,
    scored,
    settings,
)
from echovault_service import merged_on_save, provider_down_on_save, updated
from verdicts import EXACT, SINGLE, both, run_groups, same

from steelyard.base.errors import ConfigError, DimensionMismatchError
from steelyard.base.fields import parse_time
from steelyard.memory.entry import Hit
from steelyard.memory.query import Filters, Query
from steelyard.systems.echovault import DOCUMENTED, result

KEYS = ["id", "title", "what", "why", "impact", "category", "tags"]
KEYS += ["project", "source", "score", "has_details", "created_at"]

# It quotes the line of systems/echovault.md by its words.
STAYS = "left out: 'delete ... the vector row stays': the document describes no deleting; here the vector goes too"
UNRECORDED = "left out: 'the database row carries all columns': the recording has no memory with a value of it"


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


def context(fixture):
    """Rows, total and embedding calls of context retrieval; recent rows carry no score."""
    for number, case in enumerate(fixture.recorded["context"], 1):
        yield f"call {number}", context_case(fixture, case)


def context_case(fixture, case):
    args, label = case["args"], case["label"]
    text, limit, filters = args.get("query", ""), args["limit"], scope(args)
    mode, topup = settings(label, args)
    mode = {True: "always", False: "never"}.get(mode, mode)
    if failed(case):  # 'with blanks it raises', in its search; here search refuses it too, a context has no query
        return refused(lambda: fixture.searcher(limit).search(text))
    unknown = mode not in ("auto", "always", "never")
    # Whether the model was loaded is part of the recording; it shows in the call.
    embedder = fixture.lookup(warm="ollama" not in label or case["embed_called"])
    searcher = fixture.searcher(limit, embedder)
    # 'unknown strings to auto': here an unknown mode is an error, and what it means there is compared.
    error = raises(lambda: searcher.context(text, semantic=mode), ConfigError, "valid: always") if unknown else OK
    hits, total = searcher.context(text, filters, semantic="auto" if unknown else mode, topup_recent=topup)
    recent = [key(rowid) for rowid, score in case["out"] if score is None]
    tail = same(recent, [hit.entry.id for hit in hits if hit.score is None])
    found = [hit for hit in hits if hit.score is not None]
    if case["embed_called"]:
        expected, show, tolerance, embedded = fixture.reference.tiered(text, filters, limit)
        head = both(compare(expected, scored(found), tolerance, 1.0, show), same(1, embedded))
    else:
        head = compare(keyed(row for row in case["out"] if row[1] is not None), over_top(found))
    return both(error, head, tail, same(case["total"], total), same(len(case["out"]), len(hits)))


OK = "", 0.0


def raises(act, kind, *words):
    """Verdict of what has to fail, with these words."""
    try:
        act()
    except kind as error:
        return same([True] * len(words), [word in str(error) for word in words])
    return "differs: an error is expected, here there is none", 0.0


def result_form(fixture):
    """The documented keys, the other columns, and the values of the rows that the tools showed."""
    shown = list(result(Hit(1, 0.5, entry(fixture.memories[0]))))
    for name in fixture.recorded["result_keys"]:
        yield f"key {name}", same(True, name in shown) if name in KEYS else kept(fixture, name)
    yield "order of the keys", same(KEYS, shown)
    rowids = {memory["id"]: memory for memory in fixture.memories}
    for row in fixture.recorded["tool_search"]:
        ours = result(Hit(1, 0.5, entry(rowids[row["id"]])))
        values = {name: value or "" for name, value in row.items() if name not in ("id", "score", "created_at")}
        got = {name: ours[name] or "" for name in values}
        yield f"row {row['id'][:8]}", both(same(values, got), same(row["created_at"], ours["created_at"][:10]))
    yield "tool_context", tool_context(fixture, fixture.recorded["tool_context"])


def kept(fixture, name):
    """A column that the documented pointer does not show: the vault keeps its values all the same."""
    if name not in fixture.memories[0]:
        return UNRECORDED, 0.0
    entries = fixture.vault.get([key(memory["rowid"]) for memory in fixture.memories])
    if name == "updated_at":
        return same([parse_time(memory[name]) for memory in fixture.memories], [e.updated_at for e in entries])
    return same([memory[name] for memory in fixture.memories], [e.extra[name] for e in entries])


def tool_context(fixture, recorded):
    """'That tool passes no query and mode never': its newest memories, in its own form of a date."""
    hits, total = fixture.searcher(recorded["showing"]).context("", Filters.of({"project": "vault"}))
    numbers = {key(memory["rowid"]): memory["id"] for memory in fixture.memories}
    ours = [
        {
            **{name: value for name, value in result(hit).items() if name in ("title", "category", "tags")},
            "id": numbers[hit.entry.id],
            "date": datetime.fromisoformat(result(hit)["created_at"]).strftime("%b %d"),
        }
        for hit in hits
    ]
    return both(same(recorded["memories"], ours), same(recorded["total"], total))


def scenarios(fixture):
    recorded = fixture.recorded["scenarios"]
    bare = fixture.searcher(5, fixture.lookup(), vault=fixture.filled(scale=0))
    found, none = bare.search("zephyrine"), recorded["no_vec_table"]
    rows = compare(keyed(none["service_search"]), over_top(found.hits))
    yield "no vectors", both(rows, same(none["embed_calls"], found.embedding_calls))
    yield from other_dimension(fixture, recorded["dimension_mismatch"])
    yield from updated(fixture, recorded["update"])
    yield from provider_down_on_save(fixture, recorded["provider_down_on_save"])
    yield from merged_on_save(recorded["dedup"], DOCUMENTED)
    yield from deleted(fixture, recorded["delete"])


def other_dimension(fixture, recorded):
    vault, wrong = fixture.filled(), np.ones((1, 32), dtype=np.float32)
    ours = {
        "64": "64",
        "32": "32",
        "reindex": "--rebuild",
    }  # our command in the place of theirs
    said = [word for theirs, word in ours.items() if theirs in recorded["ensure"]["error"]]
    for name, act in (
        ("storing 32 beside 64", lambda: vault.put_vectors(SPACE, [key(1)], wrong)),
        ("searching with 32 in 64", lambda: vault.nearest(SPACE, wrong[0], Filters(), 5, True)),
    ):
        yield name, raises(act, DimensionMismatchError, *said)
    # 'tiered and service.search fall back to FTS': here it is an error, and keywords alone find the same.
    searcher = fixture.searcher(5, fixture.lookup(dim=32), vault)
    for name in ("tiered", "service_search"):
        alone = searcher.search("zephyrine", semantic="never").hits
        error = raises(lambda: searcher.search("zephyrine"), DimensionMismatchError, *said)
        yield f"{name} with 32 in 64", both(compare(keyed(recorded[name]), over_top(alone)), error)
    vault.drop_space(SPACE)
    vault.put_vectors(SPACE, [key(1)], wrong)
    yield "reindex", same(recorded["stored_dim_after"], vault.spaces()[0][1])


def deleted(fixture, recorded):
    """A deleted memory is found no more, and the others as they were; its vector stays there."""
    vault, id_, query = fixture.filled(), key(recorded["deleted"]), Query("zephyrine")
    fixture.asked |= {"its own": fixture.stored[id_]}
    searcher = fixture.searcher(5, Lookup({query.text: fixture.stored[id_]}), vault)
    for when in ("before", "after"):
        fts, _ = listed(searcher, query, "fts")
        vector, _ = listed(searcher, query, "vector")
        pool = fixture.cosines("its own", recorded[f"vec_{when}"])
        yield f"delete: keywords {when}", compare(keyed(recorded[f"fts_{when}"]), fts)
        # There the deleted one still takes one of the ten places.
        yield f"delete: vectors {when}", compare(pool, vector[: len(pool)], SINGLE, 1.0, tie=SINGLE)
        vault.delete([id_])
    yield "delete: what stays", (STAYS, 0.0)
