"""EchoVault, profile shipped, around its ranking: context, result forms, saving and deleting."""

import json
from dataclasses import replace
from datetime import datetime
from functools import partial

import echovault_recording as shared
import numpy as np
from verdicts import EXACT, SINGLE, both, compare, differs, near, same

from steelyard import Entry, Filters, Hit, Query, Vault
from steelyard.base.errors import DimensionMismatchError, EmbedderError
from steelyard.embedders.embed import embed_missing
from steelyard.memory.query import EVERYTHING
from steelyard.memory.text import render
from steelyard.systems.echovault import DELETED, SHIPPED, row, tool_result


def context(fixture):
    """Rows, scores, total, embedding calls and fields of context retrieval; recent rows carry no score."""
    for number, case in enumerate(fixture.recorded["context"], 1):
        yield f"call {number}", context_case(fixture, case)


def context_case(fixture, case):
    args, label = case["args"], case["label"]
    text, limit, filters = args.get("query", ""), args["limit"], shared.scope(args)
    mode, topup = shared.settings(label, args)
    # Whether the model was loaded is part of the recording; it shows in the call.
    embedder = fixture.lookup(warm="ollama" not in label or case.get("embed_called", True))
    searcher = fixture.searcher(limit, embedder)
    if shared.failed(case):
        return shared.refused(partial(searcher.context, text, filters, semantic=mode, topup_recent=topup))
    hits, total = searcher.context(text, filters, semantic=mode, topup_recent=topup)
    found = [hit for hit in hits if hit.score is not None]
    recent = [shared.key(rowid) for rowid, score in case["out"] if score is None]
    expected = shared.keyed(row for row in case["out"] if row[1] is not None)
    tolerance = SINGLE if embedder.calls else EXACT
    head = compare(expected, shared.scored(found), tolerance, 1.0, beyond=tied_at_zero(fixture, text, limit))
    tail = same(recent, [hit.entry.id for hit in hits if hit.score is None])
    fields = same(case["keys_last"], sorted(row(hits[-1])) if hits else None)
    return both(head, tail, fields, same(case["total"], total), same(case["embed_called"], embedder.calls == 1))


def tied_at_zero(fixture, text, limit):
    """The pool of a query near to nothing: all of its vectors tie at 0."""
    qid = next((qid for qid, asked in fixture.queries.items() if asked["query"] == text), None)
    pool = shared.keyed(fixture.recorded["vec20"].get(qid, ()))[: 2 * limit]
    return [(id_, 0.0) for id_, _ in pool] if pool and pool[0][1] <= 0 else []


def result_form(fixture):
    memory = fixture.memories[0]
    shown = row(Hit(1, 0.5, shared.entry(memory)))
    for name in fixture.recorded["result_keys"]:
        yield f"key {name}", same(True, name in shown)
    yield "no other key", same(sorted(fixture.recorded["result_keys"]), sorted(shown))
    yield "values of the rows", both(*map(row_values, fixture.memories))


def row_values(memory):
    named = ("rowid", "title", "what", "why", "impact", "category", "project", "source", "file_path")
    expected = {name: memory[name] for name in (*named, "created_at", "updated_at")}
    expected |= {"tags": json.dumps(memory["tags"]), "has_details": int(bool(memory["details"])), "score": 0.5}
    shown = row(Hit(1, 0.5, shared.entry(memory)))
    return same(expected, {name: shown[name] for name in expected})


def search_tool(fixture):
    """What the search and the context tool of the real program showed; its search asked for `cache stampede`."""
    numbers = {shared.key(memory["rowid"]): memory["id"] for memory in fixture.memories}
    hits = fixture.searcher(5, fixture.lookup()).search("cache stampede").hits
    ours = [tool_result(hit) | {"id": numbers[hit.entry.id]} for hit in hits]
    recorded = fixture.recorded["tool_search"]
    yield "order of the rows", same([r["id"] for r in recorded], [r["id"] for r in ours if r in recorded])
    for shown in recorded:
        mine = next((r for r in ours if r["id"] == shown["id"]), {})
        yield f"row {shown['id'][:8]}", same(shown, mine)
    recorded = fixture.recorded["tool_context"]
    hits, total = fixture.searcher(recorded["showing"]).context("", Filters.of({"project": "vault"}))
    yield "tool_context total", same([recorded["total"], recorded["showing"]], [total, len(hits)])
    for shown, hit in zip(recorded["memories"], hits, strict=True):
        mine = row(hit)
        day = datetime.fromisoformat(mine["created_at"]).strftime("%b %d")
        mine = {"title": mine["title"], "category": mine["category"], "date": day}
        mine |= {"id": numbers[hit.entry.id], "tags": list(hit.entry.tags)}
        yield f"tool_context {shown['id'][:8]}", same(shown, mine)


def scenarios(fixture):
    recorded = fixture.recorded["scenarios"]
    yield from without_vectors(fixture, recorded["no_vec_table"])
    yield from other_dimension(fixture, recorded["dimension_mismatch"])
    yield "provider down on save", provider_down_on_save(fixture, recorded["provider_down_on_save"])
    yield from merged_on_save(recorded["dedup"])
    yield from deleted(fixture, recorded["delete"])
    yield "update", updated(fixture, recorded["update"])


def without_vectors(fixture, recorded):
    bare, lookup = fixture.filled(scale=0), fixture.lookup()
    searcher = fixture.searcher(5, lookup, vault=bare)
    vector = np.array(fixture.asked["zephyrine"], dtype=np.float32)
    found = shared.scored(searcher.search("zephyrine").hits)
    here = {
        "vector_search": bare.nearest(shared.SPACE, vector, EVERYTHING, 9, True),
        "has_vec_table": bool(bare.spaces()),
        "embed_calls": lookup.calls,
    }
    searched = compare(shared.keyed(recorded["service_search"]), found)
    yield "no vectors: search", both(searched, near(here, recorded))
    merged = shared.hybrid(searcher, Query("zephyrine codec compression"))
    yield "no vectors: hybrid", compare(shared.keyed(recorded["hybrid"]), merged)


def other_dimension(fixture, recorded):
    vault, wrong = fixture.filled(), np.ones((1, 32), dtype=np.float32)
    lookup = fixture.lookup(dim=32)
    searcher = fixture.searcher(5, lookup, vault=vault)
    for name, call in (
        ("ensure", partial(vault.put_vectors, shared.SPACE, [shared.key(1)], wrong)),
        ("insert_vector_wrong_dim", partial(vault.put_vectors, shared.SPACE, [shared.key(1)], wrong)),
        ("vector_search_wrong_dim", partial(vault.nearest, shared.SPACE, wrong[0], EVERYTHING, 5, True, "l2")),
        ("hybrid", partial(shared.hybrid, searcher, Query("zephyrine"))),
    ):
        said = [word in recorded[name]["error"] for word in ("64", "32")]
        yield f"dimension: {name}", mismatch(said, call)
    for name in ("tiered", "service_search"):
        hits = searcher.search("zephyrine").hits
        yield f"dimension: {name}", compare(shared.keyed(recorded[name]), shared.scored(hits))
    title, text = "Mismatch save flibbertigibbet", "note saved while dimensions differ"
    saved = Entry("saved", title=title, text=text, tags=("x",))
    vault.upsert([saved])
    yield "dimension: save", mismatch([True, True], partial(embed_missing, vault, lookup, shared.SPACE))
    here = {
        "search_after_save": len(searcher.search("flibbertigibbet").hits),
        "vec_rows_before_reindex": vectors_in(vault),
        "reindex_text_example": render(SHIPPED.reading.recipe, saved),
    }
    vault.drop_space(shared.SPACE)
    embed_missing(vault, lookup, shared.SPACE)
    result = searcher.search("zephyrine")
    here |= {
        "vec_rows_after_reindex": vectors_in(vault),
        "stored_dim_after": vault.spaces()[0][1],
        "tiered_after_reindex_ok": bool(result.hits) and not result.degraded,
    }
    yield "dimension: reindex", both(near(here, recorded), same(recorded["reindex"]["count"], vault.count()))


def mismatch(said, call):
    """Verdict where another dimension is an error there: it is here, and names what it named."""
    try:
        call()
    except DimensionMismatchError as error:
        return same(said, [word in str(error) for word in ("64", "32")])
    return differs("an error is recorded, here there is none")


def vectors_in(vault):
    return len(vault.vectors(shared.SPACE, EVERYTHING)[0])


def provider_down_on_save(fixture, recorded):
    vault, down = fixture.filled(), fixture.lookup(down=True)
    ten = list(fixture.stored)[:10]
    vault.delete([memory.id for memory in vault.entries() if memory.id not in ten])
    vault.upsert([Entry("saved", title="saved while down")])
    try:
        embed_missing(vault, down, shared.SPACE)
    except EmbedderError:
        found = fixture.searcher(5, down, vault).search("saved while down").hits
        return near({"searchable": len(found), "total": vault.count(), "vec": vectors_in(vault)}, recorded)
    return differs("an embedder that is down belongs here")


def merged_on_save(recorded):
    """What a dedup leaves in the store: a memory as it was saved, and as a second save of the same left it.

    Deciding what is a duplicate is no part of search.
    """
    text, merged = "Consumer lag grew because the poll interval was too long", recorded["merged"]
    saved = Entry("a", title=merged["title"], text=text, tags=("kafka",), details="d1")
    counted = {"updated_count": merged["updated_count"]}
    tags = tuple(json.loads(merged["tags"]))
    new = replace(saved, text=merged["what"], tags=tags, details=recorded["details"], extra=counted)
    vault = Vault(":memory:")
    vault.upsert([saved, Entry("b"), Entry("c")])
    vault.put_vectors(shared.SPACE, ["a", "b", "c"], np.eye(3, 64, dtype=np.float32))
    vault.upsert([new], keep_vectors=True)
    here = {
        "embed_text_on_save": render(SHIPPED.reading.recipe, saved),
        "embed_text_on_update": render(SHIPPED.reading.recipe, new),
        "vector_replaced": vault.vectors_of(shared.SPACE, ["a"])["a"].tolist() != np.eye(3, 64)[0].tolist(),
        "vec_rows": vectors_in(vault),
    }
    yield "dedup", both(near(here, recorded), same([new], vault.get(["a"])))
    yield "dedup: the row", near(merged, row(Hit(1, 1.0, new)))


def deleted(fixture, recorded):
    """A deleted memory is hidden, yet its words are counted and its vector takes one of the places.

    The recording searched for its only word, and near its own vector.
    """
    vault, id_, query = fixture.filled(), shared.key(recorded["deleted"]), Query("zephyrine")
    searcher = fixture.searcher(5, shared.Lookup({query.text: fixture.stored[id_]}), vault)
    for when in ("before", "after"):
        fts, _ = shared.listed(searcher, query, "fts")
        vector, _ = shared.listed(searcher, query, "vector")
        yield f"delete: keywords {when}", compare(shared.keyed(recorded[f"fts_{when}"]), fts)
        yield f"delete: vectors {when}", compare(shared.keyed(recorded[f"vec_{when}"]), vector, SINGLE, 1.0)
        vault.upsert([replace(vault.get([id_])[0], kind=DELETED)], keep_vectors=True)
    everywhere = vault.keyword(SHIPPED.reading.index, '"zephyrine"', [1.0] * 8, EVERYTHING, 5)
    expected = [recorded["vec_rows"], recorded["fts_index_still_has_row"]]
    yield "delete: what stays", same(expected, [vectors_in(vault), id_ in [hit.id for hit in everywhere]])


def updated(fixture, recorded):
    vault = fixture.filled()
    old = shared.entry(next(memory for memory in fixture.memories if memory["rowid"] == recorded["rowid"]))
    before, _ = shared.listed(fixture.searcher(5, vault=vault), Query("zephyrine"), "fts")
    vault.upsert([replace(old, title="new", text="other words", why="", impact="", tags=())])
    after, _ = shared.listed(fixture.searcher(5, vault=vault), Query("zephyrine"), "fts")
    expected = [recorded[name] for name in ("old_text_matched_before", "old_text_still_matches")]
    return same(expected, [old.id in dict(before), old.id in dict(after)])
