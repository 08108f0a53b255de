"""Exports: the documented schemas of their targets, the rankings their numbers give, and what is refused.

system-spec-kit's own configs/search-weights.json is imported, exported, and not taken for ours.
"""

import itertools
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from steelyard.base.errors import ConfigError
from steelyard.config import SearchConfig
from steelyard.extensions.spec_kit_file import DEFAULTS, read_foreign, write_foreign
from steelyard.finish import Mmr, order
from steelyard.fusion import FAMILIES, fuse, parse_strategy
from steelyard.grammar import parse_call
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard.systems import find_system
from steelyard.testing import random_table
from steelyard_eval.cli.main import main
from steelyard_eval.export import TARGETS, export

from .families import table as families_table

ROOT = Path(__file__).parents[3]
ECHOVAULT = "tiered(fts, min_results=3, then=weighted_sum(0.42*fts, 0.58*vector, normalize=max))"
MOLTNET = "weighted_sum(2*rrf(vector, fts, k=40), 0.3*recency(half_life=69h), 0.1*importance)"
SOLERI = "weighted_sum(0.5*tfidf, 0.3*cosine, 0.3*severity, 0.3*recency(half_life=365d), 0.4*tags, 0.2*domain)"
RRF = "rrf(fts, vector, k=60)"
WEIGHTED_RRF = "rrf(fts, 3*vector, k=20)"
MINMAX = "weighted_sum(0.3*fts, 0.9*vector, normalize=minmax)"


def config(strategy: str, system: str = "plain", limit: int = 10) -> SearchConfig:
    return find_system(system).config(limit).with_strategy(parse_strategy(strategy))


def said(strategy: str, to: str, **more) -> dict:
    return export(config(strategy, **more), to).to_json()


def only(document: dict) -> dict:
    return {name: part for name, part in document.items() if name != "about"}


# Rankings: the exported numbers in the target's own formula, beside the engine's


def tables(columns=("fts", "vector"), *, ties=False):
    return [random_table(np.random.default_rng(seed), 6, 15, columns, ties=ties) for seed in range(12)]


def ours(table, strategy: str) -> list[dict[str, float]]:
    """id -> score of every query, best first."""
    ranking = order(table, fuse(table, parse_strategy(strategy)))
    ids = [table.entries[table.entry[row]] for row in ranking.row]
    ends = itertools.pairwise(ranking.offsets)
    return [dict(zip(ids[a:b], ranking.score[a:b].tolist(), strict=True)) for a, b in ends]


def lists(table, query: int, name: str) -> dict[str, float]:
    """What one retriever returned for one query, best first."""
    rows = range(table.offsets[query], table.offsets[query + 1])
    found = {table.entries[table.entry[row]]: float(table.columns[name][row]) for row in rows}
    return dict(sorted(((k, v) for k, v in found.items() if not math.isnan(v)), key=lambda kv: (-kv[1], kv[0])))


def added(*parts: dict[str, float]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for id_, value in part.items():
            total[id_] = total.get(id_, 0.0) + value
    return total


def by_rank(found: dict[str, float], score) -> dict[str, float]:
    """`score` of each place, from 1."""
    return {id_: score(place) for place, id_ in enumerate(found, 1)}


def minmaxed(found: dict[str, float], weight: float) -> dict[str, float]:
    low, top = min(found.values(), default=0.0), max(found.values(), default=0.0)
    return {id_: weight * ((value - low) / (top - low) if top > low else 1.0) for id_, value in found.items()}


def expect_same(strategy: str, theirs, tables_, factor: float = 1.0) -> None:
    """The same entries, and their scores are ours times one positive factor: so is their order ours."""
    for table in tables_:
        for query, scores in enumerate(ours(table, strategy)):
            assert {id_: factor * score for id_, score in scores.items()} == pytest.approx(theirs(table, query))


def test_the_numbers_of_echovault_rank_as_its_merge_does() -> None:
    number = only(said(ECHOVAULT, "echovault", system="echovault", limit=5))

    def merged(table, query):
        fts, vector = (lists(table, query, name) for name in ("fts", "vector"))
        if len(fts) >= number["min_fts_results"]:
            return fts
        parts = []
        for found, weight in ((fts, number["fts_weight"]), (vector, number["vec_weight"])):
            top = max(found.values(), default=0.0)
            parts.append({id_: weight * value / top if top > 0 else 0.0 for id_, value in found.items()})
        return added(*parts)

    assert number == {"fts_weight": 0.42, "vec_weight": 0.58, "min_fts_results": 3, "limit": 5}
    expect_same(ECHOVAULT, merged, tables())


def facts(table, query):
    """id -> (importance, hours, severity, tags, domain) and the query's tags and domain, read from the table."""
    clock = table.asked.numbers["clock"][query]
    about = {}
    for at, id_ in enumerate(table.entries):
        number = {name: table.about.numbers[name][at] for name in ("importance", "updated_at", "created_at")}
        born = number["created_at"] if math.isnan(number["updated_at"]) else number["updated_at"]
        words = {name: labels.words[labels.codes[at]] for name, labels in table.about.labels.items()}
        tags = set(table.about.tags.codes[table.about.tags.offsets[at] : table.about.tags.offsets[at + 1]])
        hours = 0.0 if math.isnan(born) else max(0.0, (clock - born) / 3600)
        importance = 5.0 if math.isnan(number["importance"]) else number["importance"]
        about[id_] = (importance, hours, words["severity"], tags, words["domain"])
    asked = table.asked.tags
    own = set(asked.codes[asked.offsets[query] : asked.offsets[query + 1]])
    labels = table.asked.labels["domain"]
    return about, own, labels.words[labels.codes[query]]


def recent(table):
    """The same table, a thousand times younger, so that 69 hours make a difference."""
    clock = table.asked.numbers["clock"][0]
    numbers = {
        name: clock - (clock - values) / 1000 if name.endswith("_at") else values
        for name, values in table.about.numbers.items()
    }
    return replace(table, about=replace(table.about, numbers=numbers))


def test_the_arguments_of_moltnet_rank_as_its_formula_does() -> None:
    number = only(said(MOLTNET, "moltnet"))

    def combined(table, query):
        about, _, _ = facts(table, query)
        rrf = added(
            *(by_rank(lists(table, query, n), lambda r: 1 / (number["rrf_k"] + r)) for n in ("vector", "fts"))
        )
        return {
            id_: number["w_relevance"] * value
            + number["w_recency"] * 0.99 ** about[id_][1]
            + number["w_importance"] * about[id_][0] / 10
            for id_, value in rrf.items()
        }

    # 68.967...h is ln 0.5 / ln 0.99; 69h, as it is written, gives the same arguments
    exact = MOLTNET.replace("69h", "68.96756393652842h")
    assert only(said(exact, "moltnet")) == number
    # 2, 0.3 and 0.1 divided by the largest: the API takes 0 to 1
    assert number == {"w_relevance": 1.0, "w_recency": 0.15, "w_importance": 0.05, "rrf_k": 40, "limit": 10}
    expect_same(exact, combined, [recent(table) for table in tables()], 1 / 2)


def test_the_weights_of_soleri_sum_to_one_and_rank_as_its_total_does() -> None:
    weights = said(SOLERI, "soleri")["weights"]

    def total(table, query):
        about, own, domain = facts(table, query)
        scores = {}
        for row in range(table.offsets[query], table.offsets[query + 1]):
            id_ = table.entries[table.entry[row]]
            if not table.exists[row]:
                continue
            _, hours, severity, tags, place = about[id_]
            scores[id_] = (
                weights["semantic"] * table.columns["tfidf"][row]
                + weights["vector"] * table.columns["cosine"][row]
                + weights["severity"] * {"critical": 1.0, "warning": 0.7}.get(severity, 0.4)
                + weights["temporalDecay"] * math.exp(-math.log(2) * hours / 24 / 365)
                + weights["tagOverlap"] * (len(own & tags) / len(own | tags) if own else 0.0)
                + weights["domainMatch"] * float(domain != "" and domain == place)
            )
        return scores

    assert list(weights) == ["semantic", "vector", "severity", "temporalDecay", "tagOverlap", "domainMatch"]
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-12)
    assert weights["semantic"] == pytest.approx(0.25)  # 0.5 of a sum of 2
    expect_same(SOLERI, total, tables(("fts", "vector", "tfidf", "cosine")), 1 / 2)


def engine_scores(to: str, strategy: str):
    """The documented formula of an engine, over lists, with the numbers of the exported document."""
    document = said(strategy, to)
    weights, k, minmax = [1.0, 1.0], 60, False
    if to == "opensearch":
        ((kind, body),) = document["pipeline"]["phase_results_processors"][0].items()
        minmax = kind == "normalization-processor"
        weights = body["combination"].get("parameters", {}).get("weights", weights)
        k = body["combination"].get("rank_constant")
    elif to == "elasticsearch":
        ((kind, body),) = document["search"]["retriever"].items()
        minmax, k = kind == "linear", body.get("rank_constant")
        weights = [retriever.get("weight", 1.0) for retriever in body["retrievers"]]
        assert not minmax or {retriever["normalizer"] for retriever in body["retrievers"]} == {"minmax"}
    elif to == "weaviate":
        minmax = document["hybrid"]["fusion_type"] == "relativeScoreFusion"
        weights = [1 - document["hybrid"]["alpha"], document["hybrid"]["alpha"]]
    else:
        k, weights = (document["query"]["query"]["rrf"].get(name, weights) for name in ("k", "weights"))

    def scored(found, w):
        if minmax:
            return minmaxed(found, w)
        if to == "qdrant":  # r_d counts from 0: 1 / (k + (r_d + 1) / w - 1)
            return by_rank(found, lambda r: 1 / (k + r / w - 1))
        return by_rank(found, lambda r: w / (k + r))

    return lambda table, query: added(
        *(scored(lists(table, query, name), w) for name, w in zip(("fts", "vector"), weights, strict=True))
    )


@pytest.mark.parametrize(
    ("to", "strategy", "factor"),
    [
        ("opensearch", RRF, 1),
        ("opensearch", WEIGHTED_RRF, 1 / 4),  # 1 and 3 become 0.25 and 0.75
        ("opensearch", MINMAX, 1 / 1.2),
        ("elasticsearch", RRF, 1),
        ("elasticsearch", WEIGHTED_RRF, 1),
        ("elasticsearch", MINMAX, 1),
        ("weaviate", RRF, 1 / 2),  # alpha 0.5
        ("weaviate", "rrf(fts, 3*vector, k=60)", 1 / 4),
        ("weaviate", MINMAX, 1 / 1.2),
        ("qdrant", RRF, 1),
        ("qdrant", "rrf(fts, 3*vector, k=0)", 1),
        ("qdrant", "rrf(5*fts, 5*vector, k=2147483646)", 1 / 5),  # the largest k of 31 bits after one was added
    ],
)
def test_the_documented_formula_of_an_engine_scores_the_same_lists_as_we_do(
    to: str, strategy: str, factor: float
) -> None:
    # The 0.001 that OpenSearch gives the lowest score is left out: it is one of the document's notes.
    expect_same(strategy, engine_scores(to, strategy), tables(), factor)


# Schemas, written from the documentation of the targets

TEXT = {"type": "string"}
WHOLE = {"type": "integer", "minimum": 1}
ONE_TO_10000 = {**WHOLE, "maximum": 10_000}
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
WEIGHT = {"type": "number", "minimum": 0}


def closed(**properties) -> dict:
    """An object of these properties; a trailing underscore marks an optional one."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [name for name in properties if not name.endswith("_")],
        "properties": {name.rstrip("_"): schema for name, schema in properties.items()},
    }


def one_of(*schemas) -> dict:
    return {"oneOf": list(schemas)}


def array(items, **more) -> dict:
    return {"type": "array", "items": items, **more}


def enum(names: str) -> dict:
    return {"enum": names.split()}


MULTI_MATCH = closed(multi_match=closed(query=TEXT, type=enum("best_fields most_fields"), fields=array(TEXT)))
# OpenSearch documentation: search pipelines, normalization processor and score ranker processor
WEIGHTS = closed(weights=array(SHARE))
NORMALIZED = closed(
    normalization=closed(technique=enum("min_max l2 z_score")),
    combination=closed(technique=enum("arithmetic_mean geometric_mean harmonic_mean"), parameters_=WEIGHTS),
)
RANKED = closed(
    combination=closed(technique={"const": "rrf"}, rank_constant_=ONE_TO_10000, parameters_=WEIGHTS),
)
PROCESSORS = {"normalization-processor": NORMALIZED, "score-ranker-processor": RANKED}
OPENSEARCH_PIPELINE = closed(
    description_=TEXT,
    phase_results_processors=array(one_of(*(closed(**{name: own}) for name, own in PROCESSORS.items()))),
)
# OpenSearch documentation: hybrid query (at most 5 queries), k-NN query
KNN = {
    "type": "object",
    "maxProperties": 1,
    "additionalProperties": closed(vector=TEXT, k=ONE_TO_10000),
}
OPENSEARCH_QUERY = one_of(MULTI_MATCH, closed(knn=KNN))
HYBRID = closed(queries=array(OPENSEARCH_QUERY, maxItems=5), pagination_depth_=ONE_TO_10000)
OPENSEARCH_SEARCH = closed(
    size={"type": "integer"},
    query=one_of(OPENSEARCH_QUERY, closed(hybrid=HYBRID)),
)
# Elasticsearch reference: retrievers (standard, knn, rrf, linear)
LEAF = one_of(
    closed(standard=closed(query=MULTI_MATCH)),
    closed(knn=closed(field=TEXT, query_vector=TEXT, k=ONE_TO_10000, num_candidates=ONE_TO_10000)),
)
FUSED_BY_RANK = closed(
    retrievers=array(one_of(LEAF, closed(retriever=LEAF, weight_=WEIGHT)), minItems=2),
    rank_constant_=WHOLE,
    rank_window_size_=ONE_TO_10000,
)
LINEAR = closed(
    retrievers=array(closed(retriever=LEAF, weight_=WEIGHT, normalizer_=enum("none minmax l2_norm"))),
    rank_window_size_=ONE_TO_10000,
)
ELASTICSEARCH = closed(
    size={"type": "integer"},
    retriever=one_of(LEAF, closed(rrf=FUSED_BY_RANK), closed(linear=LINEAR)),
)
# Elasticsearch reference: mapping, text, dense_vector (dims of at most 4096; without, those of the first vector)
DENSE = closed(
    type={"const": "dense_vector"},
    dims_={**WHOLE, "maximum": 4096},
    similarity=enum("l2_norm dot_product cosine max_inner_product"),
    index_options=closed(type=enum("hnsw int8_hnsw int4_hnsw bbq_hnsw flat")),
)
FIELD = one_of(closed(type={"const": "text"}, analyzer={"const": "english"}), DENSE)
ELASTICSEARCH_INDEX = closed(mappings=closed(properties={"type": "object", "additionalProperties": FIELD}))
# Weaviate documentation: hybrid search; the Python client's collection.query.hybrid
WEAVIATE = closed(
    query=TEXT,
    vector_=TEXT,
    alpha=SHARE,
    fusion_type=enum("relativeScoreFusion rankedFusion"),
    limit=WHOLE,
    query_properties_=array(TEXT),
)
# Qdrant documentation: hybrid queries, score boosting
QUERY, EXPRESSION = {"$ref": "#/$defs/query"}, {"$ref": "#/$defs/expression"}
DECAY = closed(
    x=EXPRESSION,
    target_=EXPRESSION,
    scale_={"type": "number", "exclusiveMinimum": 0},
    midpoint_={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
)
QDRANT = {
    **QUERY,
    "$defs": {
        "query": closed(
            prefetch_=one_of(QUERY, array(QUERY)),
            query=one_of(
                TEXT,
                closed(text=TEXT, model=TEXT),
                closed(rrf=closed(k_=WHOLE, weights_={"type": "array"})),
                closed(formula=EXPRESSION, defaults_={"type": "object"}),
            ),
            using_=TEXT,
            limit_=WHOLE,
        ),
        "expression": one_of(
            {"type": "number"},
            TEXT,
            closed(sum=array(EXPRESSION)),
            closed(mult=array(EXPRESSION)),
            closed(datetime=TEXT),
            closed(datetime_key=TEXT),
            closed(exp_decay=DECAY),
        ),
    },
}
SCHEMAS = {
    "opensearch": {"pipeline": OPENSEARCH_PIPELINE, "search": OPENSEARCH_SEARCH},
    "elasticsearch": {"index": ELASTICSEARCH_INDEX, "search": ELASTICSEARCH},
    "weaviate": {"hybrid": WEAVIATE},
    "qdrant": {"query": QDRANT},
}


def valid(record: object, schema: dict) -> bool:
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema).is_valid(record)


def lines(profile: str) -> list[str]:
    return [line.strip() for line in profile.splitlines()]


def test_vespas_profile_ranks_only_hits_with_a_keyword_match_by_keywords() -> None:
    profile = said(WEIGHTED_RRF, "vespa")["profile"]

    # reciprocal_rank(feature, k) and rerank-count as the documentation of cross-hit normalization has them
    fusion = "expression: if (keywords > 0, reciprocal_rank(keywords, 20), 0) + 3 * reciprocal_rank(semantic, 20)"
    assert fusion in lines(profile)
    assert "rerank-count: 200" in lines(profile)  # two lists of 100
    assert profile.count("{") == profile.count("}")
    assert re.search(r"global-phase \{\s+rerank-count", profile)


def test_vespas_normalizers_take_functions_and_its_recency_is_our_formula() -> None:
    minmax = said("weighted_sum(0.8*vector, 0.2*importance, normalize=minmax)", "vespa")["profile"]
    decayed = said(MOLTNET, "vespa")["profile"]

    assert "expression: 0.8 * normalize_linear(semantic) + 0.2 * normalize_linear(importance)" in lines(minmax)
    # 69 h are 248400 s
    assert "expression: exp(-log(2) * max(0, now - attribute(updated_at)) / 248400)" in lines(decayed)
    score = next(line for line in lines(decayed) if "0.3 * recency_248400s" in line)
    assert score.startswith("expression: 2 * (reciprocal_rank(semantic, 40) + if (keywords > 0,")


# What is lost on the way is told, and told only there

DATED = "weighted_sum(1*rrf(vector, fts), 0.2*recency(half_life=69h, since={}))"
DIVIDED = "weighted_sum({}*rrf(vector, fts), 0.2*recency(half_life=69h, since=access))"


@pytest.mark.parametrize(
    ("to", "system", "strategy", "model", "words", "told"),
    [
        ("moltnet", "moltnet", DATED.format("update"), None, "last access", 1),
        ("moltnet", "moltnet", DATED.format("access"), None, "last access", 0),
        ("moltnet", "moltnet", DIVIDED.format(1), None, "divided by the", 0),
        ("moltnet", "moltnet", DIVIDED.format(1.5), None, "divided by the", 1),
        *((to, "plain", DATED.format("update"), None, "valid_until", 1) for to in ("vespa", "qdrant")),
        *((to, "plain", DATED.format("access"), None, "valid_until", 0) for to in ("vespa", "qdrant")),
        ("elasticsearch", "moltnet", "rrf(vector, fts)", None, "drop(lexical)", 1),
        # all-MiniLM-L6-v2 has 384 dimensions, by its model card
        ("opensearch", "vector", "vector", "minilm", "dimension 384, space_type", 1),
        ("opensearch", "vector", "vector", "other", "dimension 384, space_type", 0),
        ("qdrant", "vector", "vector", "minilm", "size 384, dist", 1),
        ("qdrant", "vector", "vector", "other", "size 384, dist", 0),
        ("qdrant", "plain", "vector", None, "Qdrant 1.16", 0),
        ("qdrant", "plain", "rrf(fts, vector, k=60)", None, "Qdrant 1.16", 1),
        ("qdrant", "plain", "rrf(fts, vector, k=60)", None, "Qdrant 1.17", 0),
        ("qdrant", "plain", "rrf(fts, 3*vector, k=0)", None, "Qdrant 1.17", 1),
        # a search is POST /INDEX/_search, and a pipeline is put before it is named there
        ("elasticsearch", "plain", RRF, None, "POST /INDEX/_search", 1),
        ("elasticsearch", "plain", RRF, None, "PUT /_search/pipeline/NAME", 0),
        ("opensearch", "plain", RRF, None, "PUT /_search/pipeline/NAME", 1),
        ("opensearch", "plain", "fts", None, "PUT /_search/pipeline/NAME", 0),
        ("vespa", "plain", RRF, "lsa", "fitted on your own texts", 1),
        ("vespa", "plain", RRF, "minilm", "so use that model there", 1),
        ("vespa", "plain", "fts", "lsa", "tuned with the vectors of", 0),
        ("vespa", "plain", RRF, "", "tuned with the vectors of", 0),
    ],
)
def test_notes_say_what_is_otherwise_there(to, system, strategy, model, words, told) -> None:
    own = find_system(system).config(10, *([] if model is None else [model]))
    notes = export(own.with_strategy(parse_strategy(strategy)), to).notes
    assert sum(words in note for note in notes) == told


def test_depths_are_those_of_the_deepest_list_and_told_where_they_differ() -> None:
    """The code of MoltNet fetches 2 x limit of each list: 20 for ten results."""
    found = config(RRF)
    deeper = replace(found, retrievers={**found.retrievers, "vector": RetrieverConfig(depth=400)})
    document = export(deeper, "elasticsearch").to_json()
    assert document["search"]["retriever"]["rrf"]["rank_window_size"] == 400 >= document["search"]["size"]
    assert any("depth 100" in note for note in document["about"]["notes"])

    found = config(MOLTNET)
    changed = {name: replace(own, depth=20 if name == "fts" else 37) for name, own in found.retrievers.items()}
    notes = export(replace(found, retrievers=changed), "moltnet").to_json()["about"]["notes"]
    deep = [note for note in notes if "deep there" in note]
    assert deep == ["lists are 2 x limit = 20 deep there; vector was tuned at depth 37"]


# Refusals

SIGNALS = ("fts", "bm25", "vector", "tfidf", "recency(half_life=69h)", "importance", "tags", "l0")


def any_strategy(rng: np.random.Generator, depth: int = 3) -> str:
    if depth == 0 or rng.random() < 0.2:
        return str(rng.choice(SIGNALS))
    parts = [any_strategy(rng, depth - 1) for _ in range(rng.integers(1, 4))]
    terms = ", ".join(f"{rng.choice([0, 0.5, 3])}*{part}" for part in parts)
    return str(
        rng.choice(
            [
                f"rrf({terms}, k={rng.choice([0, 0.5, 60])})",
                f"weighted_sum({terms}, normalize={rng.choice(['none', 'none', 'max', 'minmax', 'rank'])})",
                f"tiered({parts[0]}, then={parts[-1]})",
            ]
        )
    )


@pytest.mark.parametrize("to", TARGETS)
def test_any_strategy_is_exported_or_refused_and_never_breaks_an_exporter(to: str) -> None:
    rng = np.random.default_rng(7)
    written = 0
    for _ in range(150):
        try:
            document = export(config(any_strategy(rng)), to)
        except ConfigError as error:
            assert "cannot be expressed" in str(error)
        else:
            written += 1
            assert all(
                valid(part, SCHEMAS[to][name]) for name, part in only(document.to_json()).items() if to in SCHEMAS
            )
    assert written or to not in SCHEMAS  # the memory systems say few strategies


@pytest.mark.parametrize(
    ("to", "strategy", "why"),
    [
        ("echovault", RRF, "searches keywords first"),
        ("echovault", "tiered(fts, then=weighted_sum(0.3*fts, 0.7*vector))", "normalize=none has no counterpart"),
        ("echovault", "tiered(fts, then=weighted_sum(1*vector, normalize=max))", "no more and no less"),
        ("moltnet", WEIGHTED_RRF, "has no weights"),
        ("moltnet", "rrf(vector, fts, k=60.5)", "k 60.5 is not a whole number"),
        (
            "moltnet",
            "weighted_sum(1*rrf(vector, fts), 1*recency(half_life=30d))",
            "half_life=30d: its decay is fixed",
        ),
        (  # 69h is how 68.97 hours are written; half an hour more is another decay
            "moltnet",
            "weighted_sum(1*rrf(vector, fts), 1*recency(half_life=69.5h))",
            "half_life=69.5h: its decay is fixed",
        ),
        ("moltnet", "weighted_sum(1*rrf(vector, fts), 1*tags)", "tags is no part of its score"),
        ("moltnet", "rrf(vector, fts, bonus=once(0.1))", r"bonus=once\(0.1\)"),
        ("soleri", "weighted_sum(1*fts)", "its keyword signal is tfidf"),
        ("soleri", "weighted_sum(1*recency(half_life=30d), 1*tfidf)", "half-life of 365d"),
        ("soleri", "weighted_sum(0*tfidf)", "must sum to 1"),
        ("opensearch", "weighted_sum(0.3*fts, 0.7*vector, normalize=zscore)", "up to the mean to 0.001"),
        ("opensearch", "rrf(fts, vector, k=0)", "k 0 is not a whole number in 1..10000"),
        ("elasticsearch", "weighted_sum(0.3*fts, 0.7*vector)", r"\(1 \+ cosine\) / 2"),
        ("elasticsearch", "rrf(fts, bm25, k=60)", "two keyword lists"),
        ("elasticsearch", "rrf(0*fts, 0*vector)", "all weights are 0"),
        ("vespa", MINMAX, "minimum over all hits"),
        ("vespa", "weighted_sum(1*recency)", "no term finds entries"),
        ("vespa", "weighted_sum(1*vector, 1*tags)", "tags is computed from"),
        ("weaviate", "rrf(fts, vector, k=10)", "fixed at 60"),
        ("weaviate", "weighted_sum(1*vector, 0.2*recency)", "recency is no part of a hybrid query"),
        ("qdrant", MINMAX, "dbsf by mean and deviation"),
        ("qdrant", "weighted_sum(1*fts, 0.2*recency)", "raw BM25"),
        # w = 3 at place 3 counts as place 1: 1 / (60 + 3/3) = 1/61, where ours is 3 / (60 + 3)
        ("qdrant", WEIGHTED_RRF, "divide ranks"),
        ("qdrant", "rrf(fts, vector, k=2147483647)", "k"),  # a whole number of 31 bits after one was added
        ("soleri", "weighted_sum(1*tfidf, 1*recency(half_life=365d, since=access))", "last update,"),
        *((to, DATED.format("never"), r"since=never\) reads") for to in ("vespa", "qdrant", "moltnet")),
        *(
            (to, "by_intent(default=fts, fix=vector)", "export each in a file of its own")
            for to in TARGETS
            if to != "cortex_mem"
        ),
        ("cortex_mem", "by_intent(default=fts, fix=vector)", "its intents are fixed in its program"),
        *((to, "layered(1*l0)", ".") for to in TARGETS),
    ],
)
def test_what_a_target_cannot_say_is_refused_by_name_with_a_remedy(to: str, strategy: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        said(strategy, to)

    assert f"expressed in {to}" in str(refused.value)
    assert f"FOLDER --for {to} --out {to}.json; by hand," in str(refused.value)


def test_the_table_of_the_documentation_is_what_the_exporters_say() -> None:
    page, targets = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("export.md", "targets.md"))

    assert targets.endswith(families_table(find_system("plain").config(10)))
    assert {name for name in TARGETS if f"`{name}`" in page} == set(TARGETS)


@pytest.mark.parametrize(("model", "dims"), [("minilm", {"dims": 384}), ("other", {})])
def test_what_elasticsearch_searches_is_mapped_with_the_length_of_the_vectors(model, dims) -> None:
    """all-MiniLM-L6-v2 has 384 dimensions, by its model card."""
    found = export(find_system("plain").config(10, model).with_strategy(parse_strategy(MINMAX)), "elasticsearch")
    mapped = found.to_json()["index"]["mappings"]["properties"]
    (keywords, vectors) = found.to_json()["search"]["retriever"]["linear"]["retrievers"]

    assert mapped.pop(vectors["retriever"]["knn"]["field"]) == {
        "type": "dense_vector",
        "similarity": "cosine",
        "index_options": {"type": "hnsw"},
        **dims,
    }
    assert [*mapped] == keywords["retriever"]["standard"]["query"]["multi_match"]["fields"]
    assert ("(sentence-transformers/all-MiniLM-L6-v2), so use" in found.notes[0]) == bool(dims)


# The command


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "search-weights.json"
    replace(config(MINMAX, limit=10), provenance={"verdict": "keep"}).save(path)
    return path


def run(*words: object):
    return CliRunner().invoke(main, ["export", *map(str, words)], catch_exceptions=False)


def test_the_command_writes_what_it_prints_and_the_notes_of_the_file_on_the_terminal(
    weights: Path, tmp_path: Path
) -> None:
    printed = run(weights, "--to", "weaviate")
    document = json.loads(printed.stdout)
    assert (printed.exit_code, printed.stderr) == (0, "")
    assert document["hybrid"]["alpha"] == pytest.approx(0.75)  # 0.9 of 1.2

    written = run(weights, "--to", "weaviate", "--out", tmp_path / "w.json")
    assert written.stdout == f"written: {tmp_path / 'w.json'}\n"
    assert json.loads((tmp_path / "w.json").read_text()) == document
    assert written.stderr.splitlines() == [f"note: {line}" for line in document["about"]["notes"]]

    replace(config(RRF)).save(weights)
    assert run(weights, "--to", "vespa").stdout.startswith("# strategy: rrf(fts, vector, k=60)\n")


def test_a_refusal_exits_with_2_and_leaves_the_old_file(weights: Path, tmp_path: Path) -> None:
    out = tmp_path / "old.json"
    out.write_text("old")

    refused = run(weights, "--to", "qdrant", "--out", out)
    unknown = run(weights, "--to", "quadrant")

    assert (refused.exit_code, unknown.exit_code) == (2, 2)
    assert refused.stdout == unknown.stdout == ""
    assert "normalize=minmax has no" in refused.stderr
    assert "you mean 'elasticsearch'?" in run(weights, "--to", "elasticserch").stderr
    assert "did you mean" not in run(weights, "--to", "solr").stderr  # it is not a misspelt `soleri`
    assert "export for 'quadrant'," in unknown.stderr
    assert all(f" {name}" in unknown.stderr for name in TARGETS)
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.json", "search-weights.json"]


# What only the configuration's own system does


def test_recency_since_the_access_decays_by_the_access_elsewhere() -> None:
    for since, field, other in (
        ("access", "last_accessed_at", "updated_at"),
        ("update", "updated_at", "last_accessed_at"),
    ):
        vespa, qdrant = (str(export(config(DATED.format(since)), target)) for target in ("vespa", "qdrant"))

        assert f"attribute({field})" in vespa
        assert f'"datetime_key": "{field}"' in qdrant
        assert f"{field} is the last" in qdrant
        assert f"{field} (seconds; the last" in vespa
        assert other not in vespa + qdrant


def test_another_measure_of_vectors_and_another_order_are_refused_elsewhere() -> None:
    own = find_system("echovault:shipped").config(10).with_strategy(parse_strategy("rrf(vector, fts)"))
    with pytest.raises(ConfigError, match="compared by l2:"):
        export(own, "elasticsearch")
    own = config(RRF)
    with pytest.raises(ConfigError, match=r"mmr\(10\) orders"):
        export(replace(own, finish=(Mmr(10), *own.finish)), "qdrant")


def test_a_comb_sum_is_exported_as_the_weighted_sum_it_is() -> None:
    for target in ("elasticsearch", "opensearch", "weaviate"):
        ours, plain = (
            only(said(text, target))
            for text in ("comb_sum(fts, 3*vector)", "weighted_sum(1*fts, 3*vector, normalize=minmax)")
        )
        ours.get("pipeline", {}).pop("description", None)
        plain.get("pipeline", {}).pop("description", None)

        assert ours == plain


FUSED = sorted(FAMILIES.keys() - {"weighted_sum", "rrf", "tiered", "layered", "by_intent"})


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("to", TARGETS)
def test_other_fusions_are_refused_by_name(name, to) -> None:
    """comb_sum is a sum on the scale of minmax, which these three have."""
    own = config("boost(fts, decay)" if name == "boost" else f"{name}(fts, vector)")
    if (name, to) in {("comb_sum", other) for other in ("elasticsearch", "opensearch", "weaviate")}:
        assert export(own, to)
        return
    with pytest.raises(ConfigError, match=rf"strategy '{name}\(.*cannot be expressed in {to}"):
        export(own, to)


@pytest.fixture
def theirs():
    """As in systems/spec-kit.md, section 10, with some values changed."""
    return json.loads(json.dumps(DEFAULTS)) | {
        "_comment": "kept",
        "maxTriggersPerMemory": 7,
        "rrfFusion": {"k": 40, "convergenceBonus": 0.2, "graphWeightBoost": 1.2},
    }


def test_what_is_read_is_what_it_says(theirs):
    config = read_foreign(theirs)
    assert str(config.strategy.expr) == "rrf(vector, bm25, 1.2*graph, k=40, bonus=times(0.2))"
    assert (config.rerank.p95_ms, config.rerank.cache_ttl_ms, config.rerank.cache_size) == (500, 300000, 1000)


def test_there_and_back_is_the_same(theirs, tmp_path):
    (tmp_path / "theirs.json").write_text(json.dumps(theirs))
    runner = CliRunner()
    ours, back = tmp_path / "ours.json", tmp_path / "back.json"
    assert runner.invoke(main, ["import", str(tmp_path / "theirs.json"), str(ours)]).exit_code == 0
    assert runner.invoke(main, ["export", str(ours), "--to", "spec_kit", "--out", str(back)]).exit_code == 0

    written = json.loads(back.read_text())
    about = written.pop("about")
    assert written == theirs
    assert any("smartRanking and maxTriggersPerMemory" in note for note in about["notes"])
    assert SearchConfig.load(ours).to_json() == json.loads(ours.read_text())


def test_it_is_not_taken_for_a_weights_file(theirs, tmp_path):
    (tmp_path / "search-weights.json").write_text(json.dumps(theirs))
    with pytest.raises(ConfigError, match="steelyard import"):
        SearchConfig.load(tmp_path / "search-weights.json")


def test_every_value_of_another_kind_is_named(theirs):
    theirs["rrfFusion"] = {"k": "sixty", "graphWeightBoost": -1}
    theirs["documentTypeMultipliers"] = {"spec": 9}
    with pytest.raises(ConfigError) as caught:
        read_foreign(theirs)
    for name in ("rrfFusion.k", "rrfFusion.graphWeightBoost", "documentTypeMultipliers"):
        assert name in str(caught.value)


RANKS = "rrf(vector, bm25, 1.5*graph, k=60, bonus=times(0.1))"


@pytest.mark.parametrize(
    ("strategy", "lost"),
    [
        ("fts", "fts alone, a score without promised"),
        ("boost(weighted_sum(0.5*vector, 0.5*bm25, normalize=max), promised)", "weighted_sum(...)"),
        ("boost(rrf(vector, 2*bm25), promised)", "2*bm25"),
        ("boost(rrf(vector, tfidf), promised)", "tfidf, a fusion without bm25"),
        ("boost(rrf(vector, fts), promised)", "fts, a fusion without bm25"),
        ("boost(rrf(vector, bm25, 0*graph), promised)", "a list with the weight 0, or twice"),
        ("boost(rrf(vector, bm25, bonus=each(0.1)), promised)", "bonus=each(0.1)"),
        (f"boost({RANKS}, promised, 0.5*decay)", "0.5*decay"),
        (f"boost({RANKS}, 2*promised, 0.5*document_type)", "2*promised, 0.5*document_type"),
        (RANKS, "a score without promised"),
    ],
)
def test_what_it_cannot_say_is_refused_by_name(strategy, lost):
    """It never says more than the strategy does: its program always promotes what an intent promises."""
    with pytest.raises(ConfigError) as told:
        write_foreign(find_system("spec_kit").config().with_strategy(parse_strategy(strategy)))
    assert str(told.value).endswith(f"it has no words for {lost}")


@pytest.mark.parametrize("fused", [RANKS, "rrf(vector, bm25, k=60)", "rrf(bm25, 0.25*graph, vector, k=5)"])
@pytest.mark.parametrize("factors", ["promised, document_type", "promised, 0*document_type, 0*decay"])
def test_what_is_exported_comes_back(fused, factors, tmp_path):
    """The only file of other systems that is read: the same terms, weights and settings, or a note on the rest."""
    config = find_system("spec_kit").config(7).with_strategy(parse_strategy(f"boost({fused}, {factors})"))
    config.save(tmp_path / "ours.json")
    runner, theirs, back = CliRunner(), tmp_path / "theirs.json", tmp_path / "back.json"
    assert (
        runner.invoke(
            main, ["export", str(tmp_path / "ours.json"), "--to", "spec_kit", "--out", str(theirs)]
        ).exit_code
        == 0
    )
    assert runner.invoke(main, ["import", str(theirs), str(back)]).exit_code == 0

    read = SearchConfig.load(back)
    assert terms(read.strategy) == terms(config.strategy)
    notes = json.loads(theirs.read_text())["about"]["notes"]
    assert [note for note in notes if "in the file" in note] == [
        "not in the file: limit is 7, which comes back as 20"
    ]


def terms(strategy):
    """The lists and the factors that count, in no order, with the options of the fusion."""
    fused, *factors = parse_call(str(strategy)).call.items
    return {str(item) for item in (*fused.call.items, *factors) if item.weight != 0}, fused.call.options


def test_every_setting_that_does_not_come_back_is_named():
    config = find_system("spec_kit").config(
        20, environ={"ENABLE_CROSS_ENCODER": "true", "ENABLE_FUZZY_MATCH": "false"}
    )
    shallow = replace(config.retrievers["vector"], depth=5)
    config = replace(config, retrievers={**config.retrievers, "vector": shallow})
    notes = TARGETS["spec_kit"].write(config)[1]
    lost = [note.partition(": ")[2].replace(", which comes back as ", " is ").split(" is ") for note in notes[1:]]
    assert lost == [
        ["finish", "rerank(20, penalty=length)", "cut alone"],
        ["retrievers.vector.depth", "5", "20"],
        ["rewrite", "False", "True"],
    ]
