"""The kernel of search: forms against the engine's plans, its values against replay and pytrec_eval."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from by_trec_eval import oracle
from hypothesis import given, settings, strategies as st
from shared import beside, tabled

from steelyard import Entry, Query, SearchConfig, SignalTable, fuse, parse_strategy
from steelyard.base.errors import ConfigError, DataError
from steelyard.finish import Cut, Drop, Files
from steelyard.live.sources import identity
from steelyard.retrievers import RETRIEVERS
from steelyard.retrievers.kinds import RetrieverConfig
from steelyard.table.join import entry_facts, query_facts
from steelyard.testing import random_table, same_bits
from steelyard_eval.candidates import compiled_loops
from steelyard_eval.candidates.kernel import Kernel
from steelyard_eval.candidates.linear_form import Form
from steelyard_eval.measures.metrics import Judgments, parse_measures
from steelyard_eval.measures.trec_runs import run_lines
from steelyard_eval.recording.replay import replay

TABLES = beside(__file__)
STRATEGIES = [text for (text,) in TABLES["strategies"]]


def configured(text, limit=10, depth=None):
    """A configuration of the strategy, every retriever to one depth."""
    depths = {name: RetrieverConfig(depth=depth) for name in RETRIEVERS}
    finish = () if limit is None else (Cut(limit),)  # None: whole lists
    return SearchConfig("plain", "documented", limit or 10, parse_strategy(text), depths, finish)


def recorded(table):
    """The table with the fingerprint of a recording under `configured`."""
    return replace(table, fingerprint={**identity(configured("fts")), "model": "", "max_depth": {}})


def judged(table, rng, share=0.25):
    """Random qrels: some relevant entries of each query, some irrelevant, some that the corpus lacks."""
    qrels = {}
    for query in table.queries:
        row = {id_: int(rng.integers(0, 4)) for id_ in table.entries if rng.random() < share}
        qrels[query] = {**row, "lost": int(rng.integers(0, 3))}
    return qrels


def case(seed, *, ties=True, **sizes):
    """A random table with qrels and judgments."""
    rng = np.random.default_rng(seed)
    table = recorded(random_table(rng, ties=ties, **sizes))
    qrels = judged(table, rng)
    sizes = {id_: 1 + at * 7 % 40 for at, id_ in enumerate(table.entries)}
    return table, qrels, Judgments.of(qrels, table.queries, table.entries, sizes)


@pytest.mark.parametrize("text", STRATEGIES)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([9, None]))
def test_a_form_scores_the_rows_that_the_strategy_ranks_as_the_engine_does_under_any_weights(text, seed, depth):
    table, _, judgments = case(seed)
    config = configured(text, depth=depth)
    strategy, found = config.strategy, table.at_depth(config.depths)
    form = Form.of(table, config, strategy, judgments)
    rows = np.flatnonzero(~np.isnan(fuse(found, strategy)))
    weights = np.random.default_rng(seed).uniform(-1, 2, size=(1, len(strategy.weights)))
    for own, weighed in ((strategy, form.weights), (strategy.with_weights(weights[0]), form.spread(weights)[0])):
        np.testing.assert_allclose(form.scores(weighed), fuse(found, own)[rows], rtol=0, atol=1e-12)
    assert np.diff(form.offsets).tolist() == np.bincount(table.query[rows], minlength=len(table.queries)).tolist()


@given(seed=st.integers(0, 2**32 - 1))
def test_a_form_knows_the_relevant_rows_of_the_qrels(seed):
    table, qrels, judgments = case(seed)
    config = configured("fts")
    form = Form.of(table, config, config.strategy, judgments)
    rows = np.flatnonzero(~np.isnan(table.columns["fts"]))
    grades = [qrels[table.queries[table.query[row]]].get(table.entries[table.entry[row]], 0) for row in rows]
    relevant = [at for at, grade in enumerate(grades) if grade >= 1]
    assert form.relevant.tolist() == relevant
    assert form.grade.tolist() == [grades[at] for at in relevant]
    owners = np.repeat(np.arange(form.queries), np.diff(form.relevant_offsets))
    assert owners.tolist() == [table.query[rows[at]] for at in relevant]
    assert form.judgments.relevant.tolist() == [sum(g >= 1 for g in qrels[q].values()) for q in table.queries]


def test_queries_without_judgments_are_refused():
    table, qrels, _ = case(3)
    del qrels["q1"]
    config = configured("fts")
    with pytest.raises(DataError, match="'q1' and 0"):
        Form.of(table, config, config.strategy, Judgments.of(qrels, table.queries, table.entries))


def test_a_form_keeps_the_first_of_several_cuts_and_refuses_other_stages():
    table, _, judgments = case(3)
    config = configured("fts")
    cut = Form.of(table, replace(config, finish=(Cut(8), Cut(3), Cut(5))), config.strategy, judgments)
    assert cut.limit == 3
    assert Form.of(table, replace(config, finish=()), config.strategy, judgments).limit is None
    with pytest.raises(ConfigError, match="cannot search weights"):
        Form.of(table, replace(config, finish=(lambda table, ranking: ranking,)), config.strategy, judgments)


@tabled
def test_the_weights_of_a_strategy_are_read_and_replaced_in_the_order_written(text, weights, other):
    strategy = parse_strategy(text)
    assert list(strategy.weights) == weights
    assert strategy.with_weights(weights) == strategy
    assert strategy.with_weights(10.0 + np.arange(len(weights))) == parse_strategy(other)


# Against the engine, and against trec_eval

MEASURES = parse_measures(
    [
        *(f"{family}@{k}" for family in ("nDCG", "R", "P", "RR", "Success", "AP") for k in (1, 3, 10, 100)),
        *("nDCG", "RR", "AP", "RecallAny@5", "RecallAll@5"),
    ]
)
BUDGETS = parse_measures(["nDCG@40t", "R@90t", "AP@90t", "RR@20t", "RecallAll@90t", "Success@20t"])
CHECKED = (0, 1, 127, 128, 129)  # of 130 configurations: both ends of two tiles


def clear(table, strategy, form, weights):
    """bool[Q]: queries in which every relevant row is 1e-5 of the scale, or nothing at all, from every other."""
    scores = form.scores(weights)
    found = np.ones(form.queries, dtype=bool)
    for q in range(form.queries):
        rows = slice(form.offsets[q], form.offsets[q + 1])
        scale = np.abs(form.columns[:, rows].T * weights).max(initial=0.0)
        for row in form.relevant[form.relevant_offsets[q] : form.relevant_offsets[q + 1]]:
            same = (form.columns[:, rows] == form.columns[:, row : row + 1]).all(axis=0)
            found[q] &= (same | (np.abs(scores[rows] - scores[row]) > 1e-5 * scale)).all()
    return found


@pytest.mark.parametrize("text", STRATEGIES)
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1), limit=st.sampled_from([None, 2, 10]), ties=st.booleans())
def test_where_margins_are_clear_the_kernel_gives_the_bits_of_replay(text, seed, limit, ties):
    table, _, judgments = case(seed, ties=ties)
    config = configured(text, limit)
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(config.strategy.weights) or 1), size=130)
    weights = weights[:, : len(config.strategy.weights)]
    form = Form.of(table, config, config.strategy, judgments)
    ours = Kernel.of(form, MEASURES).values(form.spread(weights))
    ours |= Kernel.of(form, BUDGETS).values(form.spread(weights))
    for w in CHECKED:
        sure = clear(table, config.strategy, form, form.spread(weights)[w])
        reweighted = config.with_strategy(config.strategy.with_weights(weights[w]))
        theirs = replay(table, reweighted).metrics(judgments, ours)
        for measure in ours:
            assert same_bits(ours[measure][w][sure], theirs[measure][sure]), measure


def test_most_queries_of_random_tables_have_clear_margins():
    config = configured("weighted_sum(0.3*fts, 0.7*vector, normalize=zscore)")
    sure = []
    for seed in range(20):
        table, _, judgments = case(seed, ties=False)
        form = Form.of(table, config, config.strategy, judgments)
        sure.extend(clear(table, config.strategy, form, form.weights))
    assert np.mean(sure) > 0.95


@given(seed=st.integers(0, 2**32 - 1))
def test_ranks_are_those_of_float32_sums_in_the_order_of_the_columns(seed):
    rng = np.random.default_rng(seed)
    values = np.float32(0.5) + rng.integers(0, 40, size=(5, 400)).astype(np.float32) * np.float32(2**-24)
    table = plain_table(dict(zip(SIGNALS, values[:, None, :], strict=True)))
    target = rng.integers(400)
    judgments = Judgments.of({"q0": {table.entries[target]: 1}}, table.queries, table.entries)
    config = configured(f"weighted_sum({', '.join(f'1*{name}' for name in SIGNALS)})", limit=None)
    weights = (rng.integers(2**23, 2**24, size=(3, 5)) * 2.0**-24).astype(np.float32)
    form = Form.of(table, config, config.strategy, judgments)
    ours = Kernel.of(form, parse_measures(["RR"])).values(weights)
    for own, (reciprocal,) in zip(weights, *ours.values(), strict=True):
        score = own[0] * values[0]
        for s in range(1, 5):
            score = score + own[s] * values[s]
        assert score.dtype == np.float32
        assert round(1 / reciprocal) == np.sum(score > score[target]) + np.sum(score[:target] == score[target]) + 1


SIGNALS = ("fts", "bm25", "vector", "tfidf", "cosine")


def plain_table(columns):
    """A recording of signals given as float64[Q, C]: every query has all C entries."""
    count, size = next(iter(columns.values())).shape
    entries, queries = tuple(f"e{at:05}" for at in range(size)), tuple(f"q{at}" for at in range(count))
    table = SignalTable(
        queries=queries,
        entries=entries,
        offsets=np.arange(count + 1, dtype=np.int64) * size,
        entry=np.tile(np.arange(size, dtype=np.int32), count),
        columns={name: values.reshape(-1).astype(np.float64) for name, values in columns.items()},
        positions={},
        entry_facts=entry_facts([Entry(id_) for id_ in entries], {}),
        query_facts=query_facts([Query("", id=id_) for id_ in queries], [0.0] * count, {}),
    )
    return recorded(table)


def adversary(kind):
    """Two signals over three queries, hard in one way."""
    rng = np.random.default_rng(7)
    size = {"one candidate": 1, "10,000 candidates": 10_000}.get(kind, 40)
    grid = np.stack([rng.permutation(16_384)[:size] for _ in range(6)]).reshape(2, 3, size) / 16_384
    if kind == "all tied":
        grid[:] = 0.25
    elif kind == "all absent":
        grid[:] = np.nan
    elif kind == "duplicate scores":
        grid = np.round(grid * 4) / 4
    elif kind == "denormals":
        grid = grid * 16_384 * 5e-324
    elif kind == "huge and tiny":
        grid = grid * np.array([2.0**330, 2.0**-330])[:, None, None]
    return plain_table({"fts": grid[0], "vector": grid[1]})


ADVERSARIES = {
    **dict.fromkeys(("all tied", "all absent", "one candidate", "nothing relevant retrieved"), (0.5, 0.5)),
    "duplicate scores": (0.5, 0.25),
    "denormals": (1.0, 2.0),
    "huge and tiny": (2.0**-300, 2.0**360),
    "10,000 candidates": (1.0, 0.0),
    "opposite weights": (1.0, -1.0),
}


@pytest.mark.parametrize("limit", [None, 10])
@pytest.mark.parametrize("normalize", ["none", "max", "minmax", "zscore", "rank", "rrf"])
@pytest.mark.parametrize("kind", ADVERSARIES)
def test_replay_equals_trec_eval_on_written_runs_and_the_kernel_equals_replay(kind, normalize, limit):
    table = adversary(kind)
    qrels = judged(table, np.random.default_rng(1), 40 / 10_000 if kind.startswith("10,000") else 0.3)
    if kind == "nothing relevant retrieved":
        qrels = {query: dict.fromkeys(("lost", "gone"), 1) for query in qrels}
    judgments = Judgments.of(qrels, table.queries, table.entries)
    pair = "fts, vector" if normalize == "rrf" else f"1*fts, 1*vector, normalize={normalize}"
    strategy = parse_strategy(f"{'rrf' if normalize == 'rrf' else 'weighted_sum'}({pair})")
    strategy = strategy.with_weights(ADVERSARIES[kind])
    config = configured("fts", limit).with_strategy(strategy)
    done = replay(table, config)
    ours = done.metrics(judgments, MEASURES)
    run = {query: {} for query in table.queries}
    for line in run_lines(table.queries, done.ranking.offsets, done.entry, table.entries, "x"):
        query, _, entry, _, score, _ = line.split(" ")
        run[query][entry] = float(score)
    theirs = oracle(run, qrels, MEASURES)
    for measure, values in theirs.items():
        np.testing.assert_allclose(ours[measure], [values[query] for query in table.queries], rtol=0, atol=1e-9)
    form = Form.of(table, config, strategy, judgments)
    # without normalisation every score is exact in float32
    sure = clear(table, strategy, form, form.weights) | (normalize == "none")
    found = Kernel.of(form, MEASURES).values(form.weights)
    for measure in MEASURES:
        assert same_bits(found[measure][0][sure], ours[measure][sure]), measure


# The same bits, however the work is cut


@pytest.mark.parametrize("threads", [2, 64])
@pytest.mark.parametrize("seed", range(2))
def test_the_bits_do_not_depend_on_threads(seed, threads):
    table, _, judgments = case(seed, queries=30, entries=60, ties=False)
    config = configured("weighted_sum(0.4*fts, 0.3*vector, 0.2*bm25, 0.1*tfidf, 0.1*recency, normalize=minmax)")
    weights = np.random.default_rng(seed).dirichlet(np.ones(5), size=300)
    kernel = Kernel.of(Form.of(table, config, config.strategy, judgments), MEASURES)
    singly, together = kernel.values(weights, threads=1), kernel.values(weights, threads=threads)
    assert len(compiled_loops.compiled().signatures) == 1  # parts of the result have other strides
    for measure in MEASURES:
        assert same_bits(singly[measure], together[measure])
        for some in (slice(0, 1), slice(5, 190), slice(299, 300)):  # nor on the other weights
            assert same_bits(kernel.values(weights[some])[measure], singly[measure][some])


def test_weights_of_another_shape_or_without_value_and_metrics_that_do_not_follow_from_ranks_are_refused():
    table, _, judgments = case(3)
    config = configured("rrf(fts, vector)")
    form = Form.of(table, config, config.strategy, judgments)
    for weights in ([[1.0]], [[1.0, 2.0, 3.0]], [[np.nan, 1.0]], [[1.0, np.inf]]):
        with pytest.raises(ConfigError, match="give one finite"):
            Kernel.of(form, MEASURES).values(weights)
    with pytest.raises(ConfigError, match="Judged@10 rewards no ranks"):
        Kernel.of(form, parse_measures(["nDCG@10", "Judged@10"]))


def test_a_form_of_no_rows_earns_nothing_under_any_weights():
    table, _, judgments = case(3)
    empty = replace(table, columns={**table.columns, "fts": np.full(len(table), np.nan)})
    config = configured("rrf(fts)")
    form = Form.of(empty, config, config.strategy, judgments)
    found = Kernel.of(form, MEASURES).values(np.ones((130, 1)))
    assert all(not values.any() and len(values) == 130 for values in found.values())
    assert all(len(values) == 0 for values in Kernel.of(form, MEASURES).values(np.ones((0, 1))).values())


USE = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("lanes", sys.argv[1])
for home in map(str.strip, sys.stdin):
    os.environ |= {"HOME": home, "XDG_CACHE_HOME": home + "/cache"}
    lanes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lanes)
    print(lanes.compiled().signatures, flush=True)
"""
"""Loads the file, and compiles its loops, for each home that it is told."""
SHORT = """rows, offsets, relevant, ends, grade, tiles, kinds, cutoffs, divisors, logs, each):
    each[0, 0, 0] = rows[0, 0]
"""


def test_the_loops_compile_where_nothing_can_be_kept_and_where_what_is_kept_is_broken(tmp_path):
    source = tmp_path / "package" / "lanes.py"
    source.parent.mkdir()
    head, loops, _ = Path(compiled_loops.__file__).read_text(encoding="utf-8").partition("def fill_metrics(")
    source.write_text(f"{head}{loops}{SHORT}", encoding="utf-8")  # compiles in a tenth of the time
    kept, blocked = source.parent / "__pycache__", tmp_path / "blocked"
    blocked.touch()

    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    how = {
        "env": environment | {"NUMBA_OPT": "1"},
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
    }
    with subprocess.Popen([sys.executable, "-B", "-c", USE, str(source)], bufsize=1, **how) as process:

        def use(home):
            process.stdin.write(f"{home}\n")
            assert "Array(float32, 2" in process.stdout.readline()

        use(tmp_path)
        assert {file.suffix for file in kept.iterdir()} == {".nbi", ".nbc"}
        for file in kept.iterdir():
            file.write_bytes(b"broken")
        use(tmp_path)
        shutil.rmtree(kept)
        kept.touch()  # a file where the folder should be, and another where the user's folders are
        use(blocked)


CUT = "layered(0.2*l0, 0.3*l1, 0.5*l2, threshold=0.4, relax=[0.1], cut={cut}, then={then})"


@pytest.mark.parametrize("then", ["last", "best"])
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), cut=st.sampled_from([0, 0.4, 1, 1.6, "step"]))
def test_the_kernel_earns_nothing_below_a_cut(then, seed, cut):
    """Against replays that drop what lies below; scores are apart, so float32 orders them as float64 does."""
    table, _, judgments = case(seed, ties=False)
    config = configured(CUT.format(cut=cut, then=then), limit=5)
    weights = np.random.default_rng(seed).uniform(0, 2, size=(4, 3))
    measures = parse_measures(["nDCG@5", "R@5", "RR@5"])
    form = Form.of(table, config, config.strategy, judgments)
    values = Kernel.of(form, measures).values(form.spread(weights))
    for at, own in enumerate(weights):
        replayed = replay(table, config.with_strategy(config.strategy.with_weights(own)))
        expected = replayed.metrics(judgments, measures)
        for measure in measures:
            np.testing.assert_allclose(values[measure][at], expected[measure], rtol=0, atol=1e-6)


def test_rows_that_a_stage_drops_are_no_rows_of_a_form():
    """drop(lexical) keeps what is not 0; of the entries each second one lies in the directory before it."""
    table, _, judgments = case(7)
    lexical = np.arange(len(table)) % 3 / 2.0  # 0, a half and 1 in turn
    directory = (np.arange(len(table.entries)) // 2 * 2).astype(np.int64)
    bare = np.where(table.entry % 2 == 0, np.nan, table.columns["l2"])
    table = replace(table, directory=directory, columns={**table.columns, "lexical": lexical, "l2": bare})
    for text, stage in (("0.4*fts, 0.6*bm25", Drop("lexical")), ("0.4*l0, 0.6*bm25", Files("none"))):
        config = replace(configured(f"weighted_sum({text})"), finish=(stage, Cut(50)))
        form = Form.of(table, config, config.strategy, judgments)
        assert np.diff(form.offsets).tolist() == np.diff(replay(table, config).ranking.offsets).tolist()
        assert len(form) < np.isfinite(fuse(table, config.strategy)).sum()
    with pytest.raises(ConfigError, match="cannot search weights"):
        Form.of(table, replace(config, finish=(Files("entries"), Cut(50))), config.strategy, judgments)
