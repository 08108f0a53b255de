"""What else stands in the TypeScript code of system-spec-kit, against its recording: see `speckit`.

The recording dropped the columns that its composite scores read beside the memories (``rows`` is empty). They
follow a rule, which `remembered` states; that all 480 recorded scores, 240 patterns and 60 parts come out to 1e-15
shows that it is the rule.
"""

from dataclasses import astuple, replace

import speckit_uncalled as uncalled
from speckit_recording import Fixture, close, numbered, ranked, same

from steelyard.finish import Cut, finish
from steelyard.fusion import fuse, parse_strategy
from steelyard.memory.forgetting import DAY
from steelyard.memory.query import Query
from steelyard.stores.base import Found
from steelyard.table.join import join


def cases(folder):
    """Every comparison of the program's other searches and rankings."""
    fixture = Fixture(folder)
    for group in (
        composite_scores,
        composite_parts,
        smart_ranking,
        substrings,
        constitutional,
        simple_fusion,
        term_bonus,
        later_reranking,
    ):
        for case, (verdict, error) in group(fixture):
            yield group.__name__.replace("_", " "), case, verdict, error


def remembered(fixture, number, record):
    """The memory with what the composite scores read; `number` counts from 0."""
    entry = fixture.entries[number]
    return replace(
        entry,
        access_count=record["access_count"],
        stability=1.0 if number % 5 == 0 else 1.0 + 4 * (number % 7),
        last_review=fixture.now - 2 * number * DAY if number % 4 == 0 else None,
        last_accessed_at=None if number % 3 == 0 else fixture.now - number * DAY,
    )


def similarity(number):
    return 98.0 - 1.3 * number


def memories(fixture):
    return [remembered(fixture, at, record) for at, record in enumerate(fixture.shipped["memories"][:60])]


def composite_scores(fixture):
    for run in fixture.shipped["composite"]["runs"]:
        five, six, patterns = {}, {}, {}
        for at, entry in enumerate(memories(fixture)):
            five[at + 1] = uncalled.five_factors(entry, run["query"], similarity(at), fixture.now)
            six[at + 1] = uncalled.six_factors(entry, similarity(at), fixture.now)
            patterns[at + 1] = uncalled.pattern(entry, run["query"], similarity(at) / 100)
        yield f"five factors, {run['query']!r}", close({row[0]: row[1] for row in run["five"]}, five)
        yield f"patterns, {run['query']!r}", close({row[0]: row[2] for row in run["five"]}, patterns)
        yield f"six factors, {run['query']!r}", close(dict(run["legacy"]), six)
    recorded = fixture.shipped["composite"]
    names = ("temporal", "usage", "importance", "pattern", "citation")
    yield "weights of five", close(recorded["five_weights"], dict(zip(names, uncalled.FIVE, strict=True)))
    names = ("similarity", "importance", "recency", "popularity", "tierBoost", "retrievability")
    yield "weights of six", close(recorded["legacy_weights"], dict(zip(names, uncalled.SIX, strict=True)))


def composite_parts(fixture):
    every = memories(fixture)
    for id_, *expected in fixture.shipped["composite"]["parts"]:
        entry = every[id_ - 1]
        temporal, usage, importance, _, citation = astuple(uncalled.factors(entry, "", 0.0, fixture.now))
        here = (temporal, usage, importance, citation)
        here += (uncalled.recency(entry, fixture.now), uncalled.popularity(entry, fixture.now))
        yield f"memory {id_}", close(dict(enumerate(expected)), dict(enumerate(here)))


def smart_ranking(fixture):
    recorded = fixture.shipped["smart_ranking"]
    relevance, recency, use = uncalled.SMART
    yield "weights", close(recorded["weights"], {"recency": recency, "access": use, "relevance": relevance})
    scores = {
        at + 1: uncalled.smart_score(entry, similarity(at), fixture.now)
        for at, entry in enumerate(memories(fixture)[:30])
    }
    best = sorted(scores.items(), key=lambda pair: -pair[1])
    yield "30 memories", ranked([tuple(row) for row in recorded["out"]], best)


def substrings(fixture):
    for run in fixture.shipped["keyword"]:
        expected = [(numbered(id_), score) for id_, score in run["results"]]
        here = uncalled.substring_scores(fixture.active, run["query"])[: len(expected)]
        verdict = ranked(expected, here)
        yield repr(run["query"]), verdict if verdict[0] else same(expected, [(i, s) for i, s in here])


def constitutional(fixture):
    """Similarities have two decimals, so that those behind the constitutional entries are the recorded ones."""
    for run in fixture.shipped["vector_constitutional"]:
        rows = [(numbered(id_), value) for id_, value in run["results"]]
        behind = [row for row in rows if row[1] != 100]
        here = uncalled.constitutional_first(fixture.active, behind, len(rows))
        yield repr(run["query"]), same(rows, here)


def simple_fusion(fixture):
    """Of each source, scores between its least and its best; the best of an entry counts."""
    lists = {name: {run["query"]: run["results"] for run in fixture.shipped[name]} for name in ("vector", "fts")}
    for run in fixture.shipped["hybrid_simple"]:
        found = {name: list_of(own[run["query"]]) for name, own in lists.items()}
        table = join([Query("q")], [0.0], [found], {}, None)
        strategy = parse_strategy("comb_max(vector, fts, normalize=minmax)")
        ranking = finish(table, fuse(table, strategy), (Cut(1000),))
        here = {
            table.entries[table.entry[row]]: float(s) for row, s in zip(ranking.row, ranking.score, strict=True)
        }
        expected = {numbered(row[0]): row[1] for row in run["results"] if not isinstance(row[0], str)}
        yield repr(run["query"]), close(expected, {id_: here.get(id_, -1.0) for id_ in expected})


def list_of(rows):
    """A recorded list, under our ids; what decides is the score."""
    best = sorted(((numbered(row[0]), row[1]) for row in rows), key=lambda pair: -pair[1])
    return [Found(id_, score, place) for place, (id_, score) in enumerate(best, 1)]


def term_bonus(fixture):
    fused = {numbered(at): 1 / (60 + at) for at in range(1, 6)}
    for run in fixture.shipped["rrf_term_bonus"]:
        expected = [(numbered(row[0]), row[1]) for row in run["out"]]
        here = uncalled.term_bonus(fused, fixture.entries[:5], run["query"])
        yield repr(run["query"]), ranked(expected, here)
    for query, text, expected in fixture.js["term_matches"]:
        yield f"words of {query!r}", same(expected, uncalled.matching_words(query, text))


def later_reranking(fixture):
    recorded = fixture.shipped["cross_encoder"]
    for characters, expected in fixture.shipped["length_penalty"]:
        yield f"penalty of {characters} characters", same(expected, uncalled.step_penalty(characters))
    for query, ids, expected in recorded["cache_keys"]:
        yield f"key of {query!r}, {ids}", same(expected, uncalled.cache_key(query, ids))
    for case in recorded["fallback"]:
        here = dict(enumerate(uncalled.positional(case["n"])))
        yield (
            f"no re-ranker, {case['n']} results",
            close({row[0]: row[1] for row in case["out"]}, {at: here[at] for at, *_ in case["out"]}),
        )
    stub = recorded["voyage_stub"]
    raw = {at: at * 37 % 11 / 11 for at in range(len(stub["content_lengths"]))}
    # The program sorts by the raw score, and penalises afterwards.
    order = sorted(raw, key=lambda at: -raw[at])
    here = [(at, raw[at] * uncalled.step_penalty(stub["content_lengths"][at])) for at in order]
    yield "sorted, then penalised", same([at for at, *_ in stub["with_penalty"]], [at for at, _ in here])
    yield "penalised", close({row[0]: row[1] for row in stub["with_penalty"]}, dict(here))
