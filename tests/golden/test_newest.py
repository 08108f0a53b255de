"""The profiles `newest`, against what functions of the programs gave for our own texts; data has the commits."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from pytest import approx

from steelyard import Entry, Query, fuse, parse_strategy
from steelyard.base.fields import parse_time
from steelyard.finish import Mmr, order
from steelyard.fusion.routing import ByIntent
from steelyard.retrievers.heuristics import bonus, entities, keywords
from steelyard.stores.base import ScoredId
from steelyard.systems import cortex_mem, spec_kit
from steelyard.systems.spec_kit import words
from steelyard.table.join import join

DATA = Path(__file__).parents[1] / "data"
CORTEX, KIT = (
    json.loads((DATA / f"{name}_newest.json").read_text("utf-8")) for name in ("cortex_mem", "spec_kit")
)


def test_cortex_mem_reads_queries_as_its_program():
    routes = next(node for node in cortex_mem.NEWEST.searching.strategy.walk() if isinstance(node, ByIntent))
    for query, program, *expected in CORTEX["intents"]:
        intent = cortex_mem.intent_newest(query).name
        layered = dict(routes.cases).get(intent, routes.default)
        read = [*keywords(query)], [*entities(query)], cortex_mem.rewritten_newest(query)
        assert intent == re.sub(r"(?<=[a-z])(?=[A-Z])", "_", program).lower()
        assert [layered.threshold, list(layered.weights), *read] == expected


def test_cortex_mem_adds_for_places_and_words_what_its_program_adds():
    for text, uri, added in CORTEX["bonuses"]:
        query = Query(text, intent=cortex_mem.intent_newest(text).name)
        assert bonus(query, Entry("e", uri=uri, text=CORTEX["text"])) == approx(added, abs=1e-6)


def test_spec_kit_classifies_as_its_program_and_its_search_above_a_floor():
    for query, intent, confidence, scores in KIT["intents"]:
        found = words.intent_newest(query)
        assert [found.scores[name] for name in KIT["order"]] == approx(scores, abs=1e-6)
        assert found.name == (intent if confidence >= 0.25 else "understand")


def test_spec_kit_reads_words_as_its_program():
    for text, fts, bm25 in KIT["lexical"]:
        pieces = [piece if piece[0] == '"' else f'"{piece}"' for piece in fts]
        assert (words.any_word_newest(text), words.tokens_newest(text)) == (" OR ".join(pieces), bm25)
    [(row, text)] = KIT["documents"]
    entry = Entry("e", row["title"], row["content_text"], tags=("tide", "level"), uri=row["file_path"])
    assert words.indexed_text_newest(entry) == text
    assert list(spec_kit.NEWEST.searching.field_weights.values()) == KIT["field_weights"]


def test_spec_kit_fuses_as_its_program_where_fts_finds_as_many_as_the_limit():
    for case in KIT["cases"]:
        lists = {name: [(id_, 1.0 / at) for at, id_ in enumerate(case[name], 1)] for name in KIT["channels"]}
        if len(lists["fts"]) in (0, 4):
            strategy = str(dict(spec_kit.NEWEST.searching.strategy.cases)[case["intent"]]).replace("50]", "44]")
            table = of_lists(lists)
            scores = fuse(table, parse_strategy(strategy))
            found = {int(table.entries[table.entry[row]]): scores[row] for row in order(table, scores).row}
            assert found == approx(dict(case["again"]), abs=5e-6)


def of_lists(lists):
    places = ((name, enumerate(pairs, 1)) for name, pairs in lists.items())
    hits = {name: [ScoredId(str(id_), score, at) for at, (id_, score) in own] for name, own in places}
    dated = [Entry(id_, created_at=parse_time(date)) for id_, date in KIT["dates"].items()]
    clock = parse_time(KIT["meta"]["now"])
    return join([Query("q")], [clock], [hits], {}, lambda ids, *_: [entry for entry in dated if entry.id in ids])


def test_mmr_over_scores_as_they_are_chooses_as_the_program():
    table = of_lists({"vector": [pair[:2] for pair in KIT["candidates"]]})
    table = replace(table, vectors=np.array([[np.cos(angle), np.sin(angle)] for *_, angle in KIT["candidates"]]))
    for weight, expected in KIT["mmr"]:
        ranking = Mmr(20, weight, scaled=0)(table, order(table, fuse(table, parse_strategy("vector"))))
        assert [int(table.entries[table.entry[row]]) for row in ranking.row] == expected
