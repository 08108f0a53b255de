"""Replay: configurations over a recording, beside tools that fuse and evaluate runs held as dictionaries.

Then weights tried a second: the kernel of search beside tools that evaluate one setting after another, by nDCG@10
of a weighted sum after min-max. A contender's time is given for 100,000 configurations x queries, because
contenders try different numbers.
"""

import sys
from contextlib import redirect_stdout
from dataclasses import replace

import numpy as np
import pytrec_eval
import synthetic
from ir_measures import calc_aggregate, nDCG
from timing import DisagreementError, Race, once, peer, race

from steelyard import Searcher, Vault, find_system, parse_strategy
from steelyard_eval.candidates.kernel import Kernel
from steelyard_eval.candidates.linear_form import Form
from steelyard_eval.datasets import load
from steelyard_eval.datasets.manifest import starter
from steelyard_eval.measures.metrics import Judgments, evaluate, parse_measures
from steelyard_eval.recording.record import record
from steelyard_eval.recording.replay import replay
from steelyard_eval.recording.workspace import Workspace

ranx = peer("ranx")

MEASURES = parse_measures(["nDCG@10", "R@10"])
TREC = ("ndcg_cut_10", "recall_10")
WEIGHTS = {"fts": 0.4, "bm25": 0.3, "vector": 0.2, "cosine": 0.1}
Runs = dict[str, dict[str, dict[str, float]]]


def races(quick, data, rounds):
    """The synthetic recording, the starter's, and scifact's where the shared data are."""
    queries, candidates = (40, 30) if quick else (500, 150)
    table, qrels = synthetic.recording(queries, candidates, list(WEIGHTS))
    config = whole_lists(find_system("plain").config(10), WEIGHTS)
    with Vault(":memory:") as vault:
        table = replace(table, fingerprint=Searcher(vault, config).fingerprint("synthetic", {}))
    made = compete(f"synthetic, {queries} queries x {candidates} x {len(WEIGHTS)}", table, qrels, config, rounds)
    folders = [("starter", starter())]
    if data is not None and not quick:
        folders += [(name, data / name) for name in ("scifact", "locomo")]
    for name, folder in folders:
        if folder.is_dir():
            made += of_data_set(name, folder, rounds)
    return made


def of_data_set(name, folder, rounds):
    """Half bm25, half vectors on the queries of the split that is reported on."""
    space = Workspace.open(load(folder))
    config = whole_lists(find_system("plain").config(10, space.model), {"bm25": 0.5, "vector": 0.5})
    config = replace(config, retrievers={k: replace(v, depth=100) for k, v in config.retrievers.items()})
    queries = space.dataset.split("test") if name == "scifact" else space.dataset.queries
    queries = [query for query in queries if query.id in space.dataset.qrels]
    table = record(space, queries, [config])
    kept = fusable(table, ("bm25", "vector"))
    if len(kept) < len(queries):
        table = record(space, [query for query in queries if query.id in kept], [config])
    case = f"{name}, {len(table.queries)} queries x {len(table) / len(table.queries):.0f} x 2"
    return compete(case, table, space.dataset.qrels, config, rounds)


def fusable(table, names):
    """Queries whose lists all hold two entries or more: a list of one is 1 after our min-max, 0 after ranx's."""
    found = set(table.queries)
    for name in names:
        counts = np.bincount(table.query[~np.isnan(table.columns[name])], minlength=len(table.queries))
        found -= {query for query, count in zip(table.queries, counts, strict=True) if count < 2}
    return found


def whole_lists(config, weights):
    terms = ", ".join(f"{weight}*{name}" for name, weight in weights.items())
    kept = {k: replace(v, depth=None) for k, v in config.retrievers.items() if k in weights}
    return replace(config, strategy=parse_strategy(f"weighted_sum({terms}, normalize=minmax)"), retrievers=kept)


def compete(case, table, qrels, config, rounds):
    """Fuse, rank and evaluate; then evaluation alone, on the whole fused lists."""
    judgments = Judgments.of(qrels, table.queries, table.entries)
    asked = {query: qrels.get(query, {}) for query in table.queries}
    weights = {term.expr.name: term.weight for term in config.strategy.terms}
    oracle = pytrec_eval.RelevanceEvaluator(asked, {*TREC})
    lists = dictionaries(table, weights)
    uncut = replay(table, replace(config, finish=()))
    finished = finished_runs(uncut)

    def scripted():
        return oracle.evaluate({query: fused(lists, weights, query) for query in table.queries})

    fusing = {
        "steelyard: fuse, rank, evaluate": lambda _: means(replay(table, config).metrics(judgments, MEASURES)),
        "dictionaries fused in Python, pytrec_eval": lambda _: trec_means(scripted()),
        "pytrec_eval: evaluates finished runs, fuses nothing": lambda _: trec_means(oracle.evaluate(finished)),
    }
    evaluating = {
        "steelyard: metrics.evaluate": lambda _: means(
            evaluate(uncut.ranking.offsets, uncut.entry, judgments, MEASURES)
        ),
        "pytrec_eval": lambda _: trec_means(oracle.evaluate(finished)),
    }
    if ranx is not None:
        theirs, ready = ranx.Qrels(asked), ranx.Run(finished)
        runs = [ranx.Run(lists[name]) for name in weights]
        fusing["ranx: fuse, evaluate"] = lambda _: ranx_means(theirs, fused_by_ranx(runs, weights.values()))
        evaluating["ranx: evaluate"] = lambda _: ranx_means(theirs, ready)
    exact = case.startswith("synthetic")
    notes = agreement(case, fusing, exact), agreement(case, evaluating, True)
    return [
        Race("replay", case, race(fusing, [None], rounds), notes=notes[0]),
        Race("evaluation", case, race(evaluating, [None], rounds), notes=notes[1]),
        searching(case, table, qrels, replace(config, finish=()), lists, finished, rounds),
    ]


def dictionaries(table, names):
    made: Runs = {name: {query: {} for query in table.queries} for name in names}
    for name, runs in made.items():
        for query, entry, score in zip(table.query, table.entry, table.columns[name], strict=True):
            if not np.isnan(score):
                runs[table.queries[query]][table.entries[entry]] = float(score)
    return made


def fused(lists, weights, query):
    total: dict[str, float] = {}
    for name, own in lists.items():
        scores = own[query]
        low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
        for entry, score in scores.items():
            part = (score - low) / (high - low) if high > low else 1.0
            total[entry] = total.get(entry, 0.0) + weights[name] * part
    return total


def finished_runs(done):
    """Our lists as dictionaries whose scores fall with the rank, so that no tool can reorder them."""
    ends, ids = done.ranking.offsets, done.table.entries
    return {
        query: {ids[entry]: float(end - at) for at, entry in enumerate(done.entry[begin:end], begin)}
        for query, begin, end in zip(done.table.queries, ends[:-1], ends[1:], strict=True)
    }


def means(values):
    return [float(values[measure].mean()) for measure in MEASURES]


def trec_means(values):
    return [float(np.mean([own[name] for own in values.values()])) for name in TREC]


def fused_by_ranx(runs, weights):
    return ranx.fuse(runs=runs, norm="min-max", method="wsum", params={"weights": list(weights)})


def ranx_means(qrels, run):
    values = ranx.evaluate(qrels, run, ["ndcg@10", "recall@10"])
    return [float(values["ndcg@10"]), float(values["recall@10"])]


def agreement(case, contenders, exact):
    """Notes of small differences; DisagreementError when they are not small, or exact means exact.

    Real lists hold ties, which the tools order each in their own way.
    """
    (ours, *others) = [(name, work(None)) for name, work in contenders.items()]
    notes = []
    for name, values in others:
        away = max(abs(a - b) for a, b in zip(ours[1], values, strict=True))
        if away > (1e-9 if exact else 0.01):
            raise DisagreementError(f"{case}: {ours[0]} gives {ours[1]}, {name} gives {values}")
        if away > 1e-9:
            notes.append(f"{name} differs by {away:.1e} in the mean, by its order of ties")
    return tuple(notes)


THREE = parse_measures(["nDCG@10", "R@10", "RR@10"])
OURS, THREADED = "steelyard kernel: fuses, evaluates", "steelyard kernel, two threads"
OPTIMIZE, PYTREC = "ranx: optimize_fusion", "pytrec_eval: evaluates dictionaries, fuses nothing"
BARS = {OPTIMIZE: 3000, PYTREC: 500}
"""How many times as many configurations x queries a second the kernel is asked for."""


def searching(case, table, qrels, config, lists, finished, rounds):
    """One race: `lists` are the dictionaries of every signal, `finished` the fused ones."""
    queries, terms = len(table.queries), config.strategy.terms
    judgments = Judgments.of(qrels, table.queries, table.entries)
    form, prepared = once(lambda: Form.of(table, config, config.strategy, judgments))
    one, three = Kernel.of(form, THREE[:1]), Kernel.of(form, THREE)
    tried = np.random.default_rng(0).dirichlet(np.ones(len(terms)), size=max(64, 5_000_000 // queries))
    asked = {query: qrels.get(query, {}) for query in table.queries}
    oracle = pytrec_eval.RelevanceEvaluator(asked, {"ndcg_cut_10"})
    works = {
        OURS: (lambda _: one.values(tried, threads=1), len(tried)),
        THREADED: (lambda _: one.values(tried, threads=2), len(tried)),
        "steelyard kernel: nDCG@10, R@10, RR@10": (lambda _: three.values(tried, threads=1), len(tried)),
        PYTREC: (lambda _: oracle.evaluate(finished), 1),
        "ir_measures: evaluates dictionaries, fuses nothing": (
            lambda _: calc_aggregate([nDCG @ 10], asked, finished),
            1,
        ),
    }
    if ranx is not None:
        theirs, runs = ranx.Qrels(asked), [ranx.Run(own) for own in lists.values()]
        weights = [term.weight for term in terms]

        def optimize(_):
            options = {"return_optimization_report": True, "step": 0.25 if len(runs) > 2 else 0.1}
            with redirect_stdout(sys.stderr):  # its progress bar
                return ranx.optimize_fusion(theirs, runs, metric="ndcg@10", **options)

        works["ranx: fuse, evaluate"] = (
            lambda _: ranx.evaluate(theirs, fused_by_ranx(runs, weights), "ndcg@10"),
            1,
        )
        works[OPTIMIZE] = (optimize, len(optimize(None)[1].configs))
    taken = race({name: work for name, (work, _) in works.items()}, [None], min(rounds, 3))
    samples = {
        name: [(wall * scale, cpu * scale) for wall, cpu in taken[name]]
        for name, (_, count) in works.items()
        for scale in [1e5 / (count * queries)]
    }
    case = f"{case}, ms for 100,000 configurations x queries"
    prepared = f"the form took {prepared * 1e3:.0f} ms, once"
    return Race("search", case, samples, notes=(*verdicts(Race("search", case, samples)), prepared))


def verdicts(made):
    """Configurations x queries a second, and each bar met or not, by medians of processor time."""
    rows = {row["contender"]: row for row in made.rows()}
    alone, shared = 1e2 / rows[OURS]["cpu_ms"], 1e2 / rows[THREADED]["median_ms"]
    notes = [f"{alone:.1f} million configurations x queries a second; {shared:.1f} with two threads, by the clock"]
    for name, bar in BARS.items():
        if name in rows:
            ratio = rows[name]["ratio"]
            notes.append(f"{ratio:,.0f} x {name}; asked for: {bar:,}; {'met' if ratio >= bar else 'not met'}")
    return notes
