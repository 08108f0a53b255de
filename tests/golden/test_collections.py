"""Real collections: baselines against the recorded ones, metrics against trec_eval."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from by_trec_eval import oracle

from steelyard import find_system, parse_strategy
from steelyard_eval.candidates.kernel import Kernel
from steelyard_eval.candidates.linear_form import Form
from steelyard_eval.compare import compare
from steelyard_eval.datasets import load
from steelyard_eval.datasets.groups import judged
from steelyard_eval.measures.metrics import Judgments, parse_measures
from steelyard_eval.measures.trec_runs import write_run
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace

LARGE = ("scifact", "beam-128k", "cosqa")  # what takes long to index, and is tried at night
NIGHTLY = (pytest.param(name, marks=pytest.mark.nightly) for name in ("locomo", *LARGE))
SETS = ("locomo temporal", "cranfield", "cacm", *NIGHTLY)  # a category of locomo has recorded means of its own
MOST = 200  # queries of a large collection; of so many one in a hundred is several
CHECKED = ("nDCG@10", "R@10", "RR@10", "AP@10", "P@5", "Success@5")


def run_of(path):
    run = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        query, _, entry, _, score, _ = line.split(" ")
        run.setdefault(query, {})[entry] = float(score)
    return run


@pytest.fixture(scope="module")
def space_of(data_root):
    """Each collection is indexed once: a recording in it keeps its lists for the next."""
    return cache(lambda name: Workspace.open(load(data_root / name)))


def answerable(dataset, recorded):
    """The recorded means over the queries that have an answer: locomo's adversarial ones are recorded apart."""
    whole = recorded[dataset.report_split or "all"]
    none = sum(not query.answerable for query in dataset.queries)
    if not none:
        return whole
    count, apart = len(dataset.queries), recorded["category adversarial"]
    left = count - none
    return {
        name: {"nDCG@10": (count * own["nDCG@10"] - none * apart[name]["nDCG@10"]) / left}
        for name, own in whole.items()
    }


@pytest.mark.parametrize("name", SETS)
def test_compare_reproduces_the_recorded_baselines_and_trec_eval(name, data_root, space_of, tmp_path):
    name, _, category = name.partition(" ")
    space = space_of(name)
    dataset = space.dataset
    recorded = json.loads((data_root / name / "dataset.json").read_text())["baselines"]["results"]
    if category:
        own = [query for query in dataset.queries if query.category == category]
        space = replace(space, dataset=(dataset := replace(dataset, queries=own)))
    recorded = recorded[f"category {category}"] if category else answerable(dataset, recorded)
    how = {"metrics": CHECKED, "runs": tmp_path, "timed": False, "workspace": space}
    found = compare(dataset, ("bm25", "vector"), **how)
    some = replace(
        dataset, queries=dataset.queries[:: 1 + len(dataset.queries) // MOST]
    )  # a mix has no recorded mean
    mixed = compare(some, "echovault", **{**how, "workspace": replace(space, dataset=some)})
    means = {row.label: row.means["nDCG@10"].mean for row in found.result.rows}
    assert means["vector"] == pytest.approx(recorded["dense"]["nDCG@10"], abs=0.002)
    assert means["bm25"] == pytest.approx(recorded["bm25"]["nDCG@10"], abs=0.02)
    measures = parse_measures(CHECKED)
    for label, own in (("bm25", found), ("vector", found), ("echovault", mixed)):
        expected = oracle(run_of(tmp_path / f"{label}.documented.run"), dataset.qrels, measures)
        for measure in measures:
            ours = dict(zip(own.queries, own.values[label][str(measure)], strict=True))
            theirs = np.array([expected[measure][query] for query in ours])
            np.testing.assert_allclose([*ours.values()], theirs, rtol=0, atol=1e-9, err_msg=f"{label} {measure}")


FUSED = ("weighted_sum(0.3*fts, 0.7*vector, normalize=minmax)", "rrf(fts, vector, k=60)")
EVERY = parse_measures(
    [f"{family}@{k}" for family in ("nDCG", "R", "P", "RR", "Success", "AP") for k in (1, 5, 10, 100)]
    + ["nDCG", "RR", "AP"]
)


def test_every_metric_of_every_query_is_trec_evals_and_the_kernel_finds_it(shared_set, space_of, tmp_path):
    space = space_of(shared_set)
    dataset = space.dataset
    plain = find_system("plain").config(100, space.model)
    table = record(space, judged(dataset, dataset.queries)[:MOST], [plain.with_strategy(parse_strategy(FUSED[0]))])
    judgments = Judgments.of(dataset.qrels, table.queries, table.entries)
    for strategy in map(parse_strategy, FUSED):
        done = replay(table, plain.with_strategy(strategy))
        ours = done.metrics(judgments, EVERY)
        form = Form.of(table, plain, strategy, judgments)
        found = Kernel.of(form, EVERY).values(form.weights)

        path = tmp_path / "written.run"
        write_run(path, table.queries, done.ranking.offsets, done.entry, table.entries, "written")
        theirs = oracle(run_of(path), dataset.qrels, EVERY)
        for measure in EVERY:
            expected = [theirs[measure][query] for query in table.queries]
            np.testing.assert_allclose(ours[measure], expected, rtol=0, atol=1e-9, err_msg=str(measure))
            # Where float32 cannot tell two scores apart, one query in a hundred at most may differ.
            assert np.mean(found[measure][0] != ours[measure]) <= 0.01, measure
            assert abs(np.mean(found[measure][0]) - np.mean(ours[measure])) < 1e-3, measure
