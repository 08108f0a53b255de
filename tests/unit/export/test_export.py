"""Exports: the documented schemas of their targets, the rankings their numbers give, and what is refused.

system-spec-kit's own configs/search-weights.json is imported, exported, and not taken for ours.
"""

import itertools
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from jsonschema import Draft202012Validator, validate
from shared import ROOT, STARTER, beside, document, done, tabled

from steelyard import SearchConfig, find_system, fuse, parse_strategy
from steelyard.base.errors import ConfigError
from steelyard.extensions.spec_kit_file import DEFAULTS, read_foreign, write_foreign
from steelyard.finish import order, parse_stages
from steelyard.grammar import parse_call
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard.testing import random_table
from steelyard_eval.export import TARGETS, export

from .families import table as families_table

ECHOVAULT = "tiered(fts, min_results=3, then=weighted_sum(0.42*fts, 0.58*vector, normalize=max))"
MOLTNET = "weighted_sum(2*rrf(vector, fts, k=40), 0.3*recency(half_life=69h), 0.1*importance)"
SOLERI = "weighted_sum(0.5*tfidf, 0.3*cosine, 0.3*severity, 0.3*recency(half_life=365d), 0.4*tags, 0.2*domain)"
RRF = "rrf(fts, vector, k=60)"
MINMAX = "weighted_sum(0.3*fts, 0.9*vector, normalize=minmax)"


def config(strategy, system="plain", limit=10):
    return find_system(system).config(limit).with_strategy(parse_strategy(strategy))


def said(strategy, to, **more):
    return export(config(strategy, **more), to).to_json()


def only(document):
    return {name: part for name, part in document.items() if name != "about"}


# Rankings: the exported numbers in the target's own formula, beside the engine's


def tables(columns=("fts", "vector"), *, ties=False):
    return [random_table(np.random.default_rng(seed), 6, 15, columns, ties=ties) for seed in range(12)]


def ours(table, strategy):
    """id -> score of every query, best first."""
    ranking = order(table, fuse(table, parse_strategy(strategy)))
    ids = [table.entries[table.entry[row]] for row in ranking.row]
    ends = itertools.pairwise(ranking.offsets)
    return [dict(zip(ids[a:b], ranking.score[a:b].tolist(), strict=True)) for a, b in ends]


def lists(table, query, name):
    """What one retriever returned for one query, best first."""
    rows = range(table.offsets[query], table.offsets[query + 1])
    found = {table.entries[table.entry[row]]: float(table.columns[name][row]) for row in rows}
    return dict(sorted(((k, v) for k, v in found.items() if not math.isnan(v)), key=lambda kv: (-kv[1], kv[0])))


def added(*parts):
    total = {}
    for part in parts:
        for id_, value in part.items():
            total[id_] = total.get(id_, 0.0) + value
    return total


def expect_same(strategy, theirs, tables_, factor=1.0):
    """The same entries, and their scores are ours times one positive factor: so is their order ours."""
    for table in tables_:
        for query, scores in enumerate(ours(table, strategy)):
            assert {id_: factor * score for id_, score in scores.items()} == pytest.approx(theirs(table, query))


def test_the_numbers_of_echovault_rank_as_its_merge_does():
    number = only(said(ECHOVAULT, "echovault", system="echovault", limit=5))
    assert number["limit"] == document("export", "echovault", "--to", "echovault")["limit"]  # the page's own

    def merged(table, query):
        fts, vector = (lists(table, query, name) for name in ("fts", "vector"))
        if len(fts) >= number["min_fts_results"]:
            return fts
        parts = []
        for found, weight in ((fts, number["fts_weight"]), (vector, number["vec_weight"])):
            top = max(found.values(), default=0.0)
            parts.append({id_: weight * value / top if top > 0 else 0.0 for id_, value in found.items()})
        return added(*parts)

    numbers = {name: value for name, value in number.items() if not name.startswith("patch")}
    assert numbers == {"fts_weight": 0.42, "vec_weight": 0.58, "min_fts_results": 3, "limit": 5}
    expect_same(ECHOVAULT, merged, tables())


def facts(table, query):
    """id -> (importance, hours, severity, tags, domain) and the query's tags and domain, read from the table."""
    clock = table.query_facts.numbers["clock"][query]
    about, held = {}, table.entry_facts.tags
    for at, id_ in enumerate(table.entries):
        number = {name: table.entry_facts.numbers[name][at] for name in ("importance", "updated_at", "created_at")}
        born = number["created_at"] if math.isnan(number["updated_at"]) else number["updated_at"]
        words = {name: labels.words[labels.codes[at]] for name, labels in table.entry_facts.labels.items()}
        tags = set(held.codes[held.offsets[at] : held.offsets[at + 1]])
        hours = 0.0 if math.isnan(born) else max(0.0, (clock - born) / 3600)
        importance = 5.0 if math.isnan(number["importance"]) else number["importance"]
        about[id_] = (importance, hours, words["severity"], tags, words["domain"])
    asked = table.query_facts.tags
    own = set(asked.codes[asked.offsets[query] : asked.offsets[query + 1]])
    labels = table.query_facts.labels["domain"]
    return about, own, labels.words[labels.codes[query]]


def recent(table):
    """The same table, a thousand times younger, so that 69 hours make a difference."""
    clock = table.query_facts.numbers["clock"][0]
    numbers = {
        name: clock - (clock - values) / 1000 if name.endswith("_at") else values
        for name, values in table.entry_facts.numbers.items()
    }
    return replace(table, entry_facts=replace(table.entry_facts, numbers=numbers))


@tabled
def test_the_arguments_of_moltnet_rank_as_its_formula_does(arguments, weights, share, factor):
    number = said(MOLTNET, "moltnet")[arguments]

    def combined(table, query):
        about, _, _ = facts(table, query)
        found = (lists(table, query, name) for name in ("vector", "fts"))
        rrf = added(*({id_: 1 / (40 + rank) / share for rank, id_ in enumerate(own, 1)} for own in found))
        return {
            id_: number["w_relevance"] * value
            + number["w_recency"] * 0.99 ** about[id_][1]
            + number["w_importance"] * about[id_][0] / 10
            for id_, value in rrf.items()
        }

    # 68.967...h is ln 0.5 / ln 0.99; 69h, as it is written, gives the same arguments
    exact = MOLTNET.replace("69h", "68.96756393652842h")
    assert said(exact, "moltnet")[arguments] == number
    assert number.pop("limit") == 10
    assert [number[f"w_{name}"] for name in ("relevance", "recency", "importance")] == pytest.approx(weights)
    expect_same(exact, combined, [recent(table) for table in tables()], factor)


def test_the_weights_of_soleri_sum_to_one_and_rank_as_its_total_does():
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


@tabled
def test_the_numbers_of_an_export_follow_from_the_formula_of_the_engine(to, strategy, path, number):
    """The formulas stand in the templates of the engines."""
    found = said(strategy, to)
    for key in path:
        found = found[key]
    assert found == pytest.approx(number)


@pytest.mark.parametrize("to", ["opensearch", "elasticsearch", "qdrant", "weaviate"])
def test_a_fusion_of_one_list_is_that_list(to):
    assert only(said("rrf(3*fts, k=20)", to)) == only(said("fts", to))


# Schemas, written from the documentation of the targets

SCHEMAS = beside(__file__, "schemas.json")


# What is lost on the way is told, and told only there

DATED = "weighted_sum(1*rrf(vector, fts), 0.2*recency(half_life=69h, since={}))"


@tabled
def test_notes_say_what_is_otherwise_there(to, system, strategy, model, words, told):
    own = find_system(system).config(10, *([] if model is None else [model]))
    notes = export(own.with_strategy(parse_strategy(strategy)), to).notes
    assert sum(words in note for note in notes) == told


def test_depths_are_those_of_the_deepest_list_and_told_where_they_differ():
    """The code of MoltNet fetches 2 x limit of each list: 20 for ten results."""
    found = config(RRF)
    late = RetrieverConfig(depth=400, filters="after_cut")
    deeper = replace(found, retrievers={**found.retrievers, "vector": late})
    document = export(deeper, "elasticsearch").to_json()
    assert document["search"]["retriever"]["rrf"]["rank_window_size"] == 400 >= document["search"]["size"]
    for told in ("depth 100", "and then filtered"):
        assert any(told in note for note in document["about"]["notes"])
    found = config(MOLTNET)
    changed = {name: replace(own, depth=20 if name == "fts" else 37) for name, own in found.retrievers.items()}
    notes = export(replace(found, retrievers=changed), "moltnet").to_json()["about"]["notes"]
    deep = [note for note in notes if "deep there" in note]
    assert deep == ["lists are 2 x limit = 20 deep there; vector was tuned at depth 37"]


# Refusals

SIGNALS = ("fts", "bm25", "vector", "tfidf", "recency(half_life=69h)", "importance", "tags", "l0")


def any_strategy(rng, depth=3):
    if depth == 0 or rng.random() < 0.2:
        return str(rng.choice(SIGNALS))
    parts = [any_strategy(rng, depth - 1) for _ in range(rng.integers(1, 4))]
    terms = ", ".join(f"{rng.choice([0, 0.5, 3])}*{part}" for part in parts)
    fused = [
        f"rrf({terms}, k={rng.choice([0, 0.5, 60])})",
        f"weighted_sum({terms}, normalize={rng.choice(['none', 'none', 'max', 'minmax', 'rank'])})",
        f"tiered({parts[0]}, then={parts[-1]})",
    ]
    return str(rng.choice(fused))


@pytest.mark.parametrize("to", TARGETS)
def test_any_strategy_is_exported_or_refused_and_never_breaks_an_exporter(to):
    rng = np.random.default_rng(7)
    written = 0
    for _ in range(150):
        try:
            document = said(any_strategy(rng), to)
        except ConfigError as error:
            assert "cannot be expressed" in str(error)
        else:
            written += 1
            for name, part in only(document).items() if to in SCHEMAS else ():
                validate(part, SCHEMAS[to][name], Draft202012Validator)
    assert written or to not in SCHEMAS  # the memory systems say few strategies


@tabled
def test_what_a_target_cannot_say_is_refused_by_name_with_a_remedy(to, strategy, why):
    with pytest.raises(ConfigError, match=why) as refused:
        said(strategy, to)
    assert f"expressed in {to}" in str(refused.value)
    assert f"DATASET --for {to} --out {to}.json; by hand," in str(refused.value)


def test_the_table_of_the_documentation_is_what_the_exporters_say():
    page, targets = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("export.md", "targets.md"))
    assert targets.endswith(families_table(find_system("plain").config(10)))
    assert {name for name in TARGETS if f"`{name}`" in page} == set(TARGETS)


# The command


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "search-weights.json"
    config(MINMAX).save(path)
    return path


def test_the_command_writes_what_it_prints_and_the_notes_of_the_file_on_the_terminal(weights, tmp_path):
    printed = done("export", weights, "--to", "weaviate")
    document = json.loads(printed.stdout)
    assert printed.stderr == ""
    assert document["hybrid"]["alpha"] == pytest.approx(0.75)  # 0.9 of 1.2
    written = done("export", weights, "--to", "weaviate", "--out", tmp_path / "w.json")
    assert written.stdout == f"written: {tmp_path / 'w.json'}\n"
    assert json.loads((tmp_path / "w.json").read_text()) == document
    assert written.stderr.splitlines() == [f"note: {line}" for line in document["about"]["notes"]]
    config(RRF).save(weights)
    assert done("export", weights, "--to", "vespa").stdout.startswith("# strategy: rrf(fts, vector, k=60)\n")


@tabled
def test_a_refusal_exits_with_2_and_leaves_the_old_file(weights, tmp_path, to, told):
    out = tmp_path / "old.json"
    out.write_text("old")
    refused = done("export", weights, "--to", to, "--out", out, code=2)
    assert refused.stdout == ""
    assert all(part in refused.stderr for part in told)
    assert ("did you mean" in refused.stderr) == (to == "elasticserch")
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.json", "search-weights.json"]


@tabled
def test_recency_since_the_access_decays_by_the_access_elsewhere(since, field, other):
    both = "".join(str(export(config(DATED.format(since)), target)) for target in ("vespa", "qdrant"))
    assert f"attribute({field})" in both and f'"datetime_key": "{field}"' in both
    assert both.count(f"{field} is the last") == 2
    assert other not in both


def test_another_measure_of_vectors_and_another_order_are_refused_elsewhere():
    own = find_system("echovault:shipped").config(10).with_strategy(parse_strategy("rrf(vector, fts)"))
    with pytest.raises(ConfigError, match="compared by l2:"):
        export(own, "elasticsearch")
    lifted = replace(find_system("spec_kit:newest").config(10), finish=())
    with pytest.raises(ConfigError, match=r"vector\.lift adds"):
        export(lifted.with_strategy(parse_strategy(RRF)), "elasticsearch")
    weighed = export(lifted.with_strategy(parse_strategy("fts")), "qdrant").notes
    assert sum("(title 10, tags 5, uri 2, text 1)" in note for note in weighed) == 1
    for stage in ("mmr(10)", "rerank(20)", "rescore(vector)", "at_least(0.1)"):
        with pytest.raises(ConfigError, match=rf"qdrant: {re.escape(stage)} \w+s "):
            export(replace(config(RRF), finish=parse_stages([stage, "cut(10)"])), "qdrant")
    own = config("bm25", system="spec_kit")
    added = [export(replace(own, rewrite=rewrite), "qdrant").notes for rewrite in (True, False)]
    assert ["adds words" in str(notes) for notes in added] == [True, False]


@tabled
def test_an_export_is_not_taken_for_a_weights_file_or_a_run(to, name, system, strategy, told, tmp_path):
    (tmp_path / name).write_text(str(export(config(strategy, system=system), to)))
    assert told in " ".join(done("tune", STARTER, tmp_path / name, code=2).stderr.split())


@pytest.fixture
def theirs():
    """As in systems/spec-kit.md, section 10, with some values changed."""
    ranks = {"k": 40, "convergenceBonus": 0.2, "graphWeightBoost": 1.2}
    return DEFAULTS | {"_comment": "kept", "maxTriggersPerMemory": 7, "rrfFusion": ranks}


def test_what_is_read_is_what_it_says(theirs):
    config = read_foreign(theirs)
    assert str(config.strategy.expr) == "rrf(vector, bm25, 1.2*graph, k=40, bonus=times(0.2))"
    assert (config.rerank.p95_ms, config.rerank.cache_ttl_ms, config.rerank.cache_size) == (500, 300000, 1000)


def test_there_and_back_is_the_same(theirs, tmp_path, monkeypatch):
    size = (tmp_path / "theirs.json").write_text(json.dumps(theirs))
    monkeypatch.setattr("steelyard_eval.cli.import_record_demo.MAX_WEIGHTS_BYTES", size)
    done("import", tmp_path / "theirs.json", tmp_path / "ours.json")
    done("export", tmp_path / "ours.json", "--to", "spec_kit", "--out", tmp_path / "back.json")
    written = json.loads((tmp_path / "back.json").read_text())
    about = written.pop("about")
    assert written == theirs
    assert any("smartRanking and maxTriggersPerMemory" in note for note in about["notes"])
    assert SearchConfig.load(tmp_path / "ours.json").to_json() == json.loads((tmp_path / "ours.json").read_text())


def test_every_value_of_another_kind_is_named(theirs):
    theirs["rrfFusion"] = {"k": "sixty", "graphWeightBoost": -1}
    theirs["documentTypeMultipliers"] = {"spec": 9}
    with pytest.raises(ConfigError) as caught:
        read_foreign(theirs)
    for name in ("rrfFusion.k", "rrfFusion.graphWeightBoost", "documentTypeMultipliers"):
        assert name in str(caught.value)


RANKS = "rrf(vector, bm25, 1.5*graph, k=60, bonus=times(0.1))"


@tabled
def test_what_it_cannot_say_is_refused_by_name(strategy, lost):
    """It never says more than the strategy does: its program always promotes what an intent promises."""
    with pytest.raises(ConfigError) as told:
        write_foreign(find_system("spec_kit").config().with_strategy(parse_strategy(strategy)))
    assert str(told.value).endswith(f"it cannot say: {lost}")


@pytest.mark.parametrize("fused", [RANKS, "rrf(vector, bm25, k=60)", "rrf(bm25, 0.25*graph, vector, k=5)"])
@pytest.mark.parametrize("factors", ["promised, document_type", "promised, 0*document_type, 0*decay"])
def test_what_is_exported_comes_back(fused, factors, tmp_path):
    """The only file of other systems that is read: the same terms, weights and settings, or a note on the rest."""
    config = find_system("spec_kit").config(7).with_strategy(parse_strategy(f"boost({fused}, {factors})"))
    ours, theirs, back = (tmp_path / f"{name}.json" for name in ("ours", "theirs", "back"))
    config.save(ours)
    done("export", ours, "--to", "spec_kit", "--out", theirs)
    done("import", theirs, back)
    assert terms(SearchConfig.load(back).strategy) == terms(config.strategy)
    notes = json.loads(theirs.read_text())["about"]["notes"]
    assert [note.partition("not in the file: ")[2] for note in notes if "in the file" in note] == [
        "limit is 7, which comes back as 20"
    ]


def terms(strategy):
    """The lists and the factors that count, in no order, with the options of the fusion."""
    fused, *factors = parse_call(str(strategy)).call.items
    return {str(item) for item in (*fused.call.items, *factors) if item.weight != 0}, fused.call.options


def test_every_setting_that_does_not_come_back_is_named():
    environ = {"ENABLE_CROSS_ENCODER": "true", "ENABLE_FUZZY_MATCH": "false"}
    config = find_system("spec_kit").config(20, environ=environ)
    shallow = replace(config.retrievers["vector"], depth=5)
    config = replace(config, retrievers={**config.retrievers, "vector": shallow})
    notes = TARGETS["spec_kit"].write(config)[1]
    lost = [note.partition(": ")[2].replace(", which comes back as ", " is ").split(" is ") for note in notes[1:]]
    assert lost == [
        ["finish", "rerank(20, penalty=length)", "cut alone"],
        ["retrievers.vector.depth", "5", "20"],
        ["rewrite", "False", "True"],
    ]
