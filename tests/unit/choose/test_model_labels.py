"""A language model's labels in `recommend`: when they count, what they change, and what they cannot change."""

import json
from dataclasses import replace

import numpy as np
import pytest

from steelyard.base.errors import ConfigError
from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.candidates.candidates import build_candidates, record_all
from steelyard_eval.candidates.families import StartingPoint, starts
from steelyard_eval.candidates.grid import LabelScorer
from steelyard_eval.candidates.source import Source
from steelyard_eval.choose.differences import ModelLabels
from steelyard_eval.choose.recommend import recommend
from steelyard_eval.compare.contenders import Contender
from steelyard_eval.datasets.groups import judged
from steelyard_eval.extensions.model_judge import model_labels
from steelyard_eval.measures.metrics import parse_measures
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.workbench import Workbench

(NDCG,) = parse_measures(["nDCG@10"])
LABELLED = 30


def laid_out(source, queries, tried, qrels=None):
    return build_candidates(record_all(source, queries, tried, qrels), tried, LabelScorer(NDCG))


@pytest.fixture(scope="module")
def few(dataset):
    """Half of the labels, as a user has them: the other queries are there and not judged."""
    own = [query.id for query in judged(dataset, dataset.queries)][:LABELLED]
    return replace(dataset, qrels={id_: dataset.qrels[id_] for id_ in own}, sampled="random")


@pytest.fixture(scope="module")
def bench(few):
    """Recorded once for all of them."""
    return Workbench(few)


@pytest.fixture(scope="module")
def alone(bench):
    return bench.recommend("bm25", timed=False).result


def written(path, dataset, grade):
    """A file of `judge --model`, of every judged pair and of pairs up to twenty a query."""
    rng, rows = np.random.default_rng(3), []
    ids = [entry.id for entry in dataset.entries]
    for query in judged(dataset, dataset.queries):
        known = dataset.qrels[query.id]
        for entry in dict.fromkeys([*known, *rng.choice(ids, 20).tolist()]):
            row = {"query": query.id, "entry": entry, "grade": grade(known.get(entry, 0), rng)}
            rows.append({**row, "note": "llm:tiny:relevance-1", "at": "2026-11-23T00:00:00Z"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class TestModelLabels:
    def test_a_model_that_says_the_same_makes_labels_worth_more(self, dataset, few, bench, alone, tmp_path):
        file = written(tmp_path / "model.jsonl", dataset, lambda grade, rng: grade)
        own = model_labels(file, few)
        assert own.agreement["counts"]
        both = bench.recommend("bm25", timed=False, model_labels=file).result
        queries = judged(dataset, dataset.queries)
        groups = {query.group or query.id for query in queries if query.id not in few.qrels}
        groups -= {query.group for query in queries if query.id in few.qrels}
        (said,) = [said for said in both.notices if said.key == "model_labels"]
        assert (said.facts["both"], said.facts["others"], said.facts["unrelated"]) == (
            LABELLED,
            len(groups),
            False,
        )
        assert "weighted kappa 1.00 [1.00, 1.00]" in said.facts["text"].lower()
        assert said.facts["worth"] > LABELLED
        assert both.provenance.command[-2:] == ["--model-labels", str(file)]
        assert not [said for said in alone.notices if said.key.startswith("model_labels")]

    def test_a_model_at_chance_changes_nothing(self, dataset, few, bench, alone, tmp_path):
        file = written(tmp_path / "model.jsonl", dataset, lambda grade, rng: int(rng.integers(0, 4)))
        both = bench.recommend("bm25", timed=False, model_labels=file).result
        assert both.notices[0].key == "model_labels_odd"
        for part in ("decision", "answer", "rows"):
            assert getattr(both, part) == getattr(alone, part)

    def test_a_query_counts_from_ten_judged_pairs_on(self, dataset, few):
        """As many as one search shows."""
        source, queries = Source.live(Workspace.open(few)), judged(few, few.queries)
        laid = laid_out(source, queries, starts(source, queries, 10)[:1])
        ids = [entry.id for entry in few.entries]

        def measured(pairs):
            qrels = {query.id: dict.fromkeys(ids[:pairs], 1) for query in dataset.queries}
            return ModelLabels("m", qrels, {"counts": True}, "").measured(
                source, queries, laid, laid.grid.config(0), NDCG
            )

        assert measured(9) is None
        assert measured(10) is not None

    def test_lists_and_files_without_judgments_are_refused(self, few, tmp_path):
        with pytest.raises(ConfigError, match="has no judgments"):
            model_labels(tmp_path / "none.jsonl", few)
        file = written(tmp_path / "model.jsonl", few, lambda grade, rng: grade)

        def lists(query):
            return [few.entries[0].id]

        with pytest.raises(ConfigError, match="configuration as --current"):
            recommend(few, lists, timed=False, model_labels=model_labels(file, few))

    def test_a_branch_that_other_queries_alone_reach_keeps_its_weights(self, dataset):
        """fts finds enough for the one query, so `then` is never asked; for the other it finds too little."""
        source = Source.live(Workspace.open(dataset, "lsa"))  # recorded vectors know no other queries
        many = replace(dataset.queries[0], text="the connection and the key of a service")
        few = replace(dataset.queries[1], text="QueuePool")
        config = find_system("plain").config(10, source.model)
        text = "tiered(fts, min_results=12, then=weighted_sum(0.3*bm25, 0.7*vector, normalize=max))"
        start = StartingPoint.around(
            Contender("own", config.with_strategy(parse_strategy(text)), "strategy"), source
        )
        qrels = {query.id: {entry.id: 1 for entry in dataset.entries[::3]} for query in (many, few)}
        laid = laid_out(source, (many,), [start], qrels)
        moved = replace(laid, recordings=record_all(source, (many, few), [start], qrels))
        values = moved.again(NDCG)
        block = laid.grid.blocks[0]
        known = moved.recorded(block.config)
        table, judgments = known.table, known.judgments
        own = replay(table, block.config).metrics(judgments, [NDCG])[NDCG]
        assert values.shape == (len(laid.grid), 2)
        assert values[0] == pytest.approx(own, abs=1e-6)
        assert own[1] > 0
