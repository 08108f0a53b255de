"""The search for weights: exact sweeps beside grids, exact coordinate ascent beside general optimisers.

Values are compared as one measure says them, in float64 at the weights that each contender names. Optimisers are
given our fastest evaluation: a vector at a time in float64, or a whole generation on the replay kernel.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import synthetic
from timing import DisagreementError, Race, race

from steelyard.fusion import parse_strategy
from steelyard.systems import find_system
from steelyard_eval.measures.metrics import Judgments, parse_measures
from steelyard_eval.weights.exact.ascent import Ascent, climb
from steelyard_eval.weights.exact.objective import Objective
from steelyard_eval.weights.exact.sweep import segment
from steelyard_eval.weights.kernel import Form, Kernel

try:
    import ranx
except ImportError:
    ranx = None
try:
    import optuna
except ImportError:
    optuna = None
try:
    import cmaes
except ImportError:
    cmaes = None
try:
    import fastrank
except ImportError:
    fastrank = None

(MEASURE,) = parse_measures(["nDCG@10"])
PAIR = ("bm25", "vector")
SIX = ("fts", "bm25", "vector", "cosine", "tfidf", "l1")
OURS = "steelyard: exact ascent"
TRIALS = 400
FASTER = 4.0
"""How many times faster than our own grid the sweep is to be."""
LONGEST = 30.0
"""Seconds after which no optimiser is waited for."""
Trace = list[tuple[float, float]]


def races(quick: bool, rounds: int) -> list[Race]:
    """One pair of weights along its line, and six weights."""
    size = (40, 30) if quick else (500, 150)
    return [line(*size, rounds), six(*size, 20 if quick else TRIALS)]


def made(queries: int, candidates: int, names: tuple[str, ...]):
    """A synthetic recording, its form, and what ranx needs of it."""
    table, qrels = synthetic.recording(queries, candidates, list(names))
    config = find_system("plain").config(10)
    terms = ", ".join(f"{1 / len(names)}*{name}" for name in names)
    kept = {name: replace(own, depth=None) for name, own in config.retrievers.items() if name in names}
    strategy = parse_strategy(f"weighted_sum({terms}, normalize=minmax)")
    config = replace(config, strategy=strategy, retrievers=kept, finish=())
    form = Form.of(table, config, strategy, Judgments.of(qrels, table.queries, table.entries))
    return table, qrels, form


# One pair of weights


def line(queries: int, candidates: int, rounds: int) -> Race:
    """The best value on the whole line, and the best of a grid on it."""
    table, qrels, form = made(queries, candidates, PAIR)
    objective, kernel = Objective.of(form, MEASURE), Kernel.of(form, [MEASURE])
    first, second = np.eye(2)
    grid = np.linspace(0, 1, 1001)
    points = np.stack([grid, 1 - grid], axis=1)

    def exactly(_):
        return segment(objective, second, first).curve().choose()

    def by_grid(_):
        return kernel.means(points, threads=1)[MEASURE]

    contenders = {"steelyard: exact sweep, the whole line": exactly, "1001-point grid on our kernel": by_grid}
    best = exactly(None)
    reached = [float(by_grid(None).max())]
    if ranx is not None:
        contenders["ranx: optimize_fusion, 11 points"] = optimise_by_ranx(table, qrels)
        share = contenders["ranx: optimize_fusion, 11 points"](None)
        reached.append(objective.mean(np.array(share)))
    if max(reached) > best.value + 1e-6:  # the kernel's float32
        raise DisagreementError(f"the exact best is {best.value}, grids reach {reached}")
    found = race(contenders, [None], rounds)
    ours, grids = (float(np.median([cpu for _, cpu in found[name]])) for name in list(contenders)[:2])
    others = ", ".join(
        f"{best.value - value:.4f} above {name}"
        for name, value in zip(("the grid", "ranx"), reached, strict=False)
    )
    notes = (
        f"nDCG@10 {best.value:.4f} on {best.low:.5f}..{best.high:.5f}: {others}",
        f"{grids / ours:.1f} times faster than the grid; {FASTER:g} are asked for: {said(grids >= FASTER * ours)}",
    )
    return Race("tuning", f"a pair of weights, {queries} queries x {candidates}", found, notes=notes)


def optimise_by_ranx(table, qrels) -> Callable[[object], tuple[float, ...]]:
    """The best of 11 weightings by ranx."""
    runs = []
    for name in PAIR:
        lists = {query: {} for query in table.queries}
        for query, entry, score in zip(table.query, table.entry, table.columns[name], strict=True):
            if not np.isnan(score):
                lists[table.queries[query]][table.entries[entry]] = float(score)
        runs.append(ranx.Run(lists))
    judged = ranx.Qrels({query: qrels[query] for query in table.queries})

    def work(_):
        found = ranx.optimize_fusion(
            qrels=judged, runs=runs, norm="min-max", method="wsum", metric="ndcg@10", step=0.1, show_progress=False
        )
        return tuple(found["weights"])

    return work


# Six weights


def six(queries: int, candidates: int, trials: int) -> Race:
    """Time to the value of Optuna's trials; who cannot reach it is timed as a whole, and said to fall short."""
    _, _, form = made(queries, candidates, SIX)
    objective, kernel = Objective.of(form, MEASURE), Kernel.of(form, [MEASURE])
    searches = {OURS: lambda: ascents(objective)}
    if optuna is not None:
        searches[f"optuna: TPE, {trials} trials"] = lambda: tpe(objective, trials)
    if cmaes is not None:
        searches["cmaes: CMA-ES, generations on our kernel"] = lambda: evolution(objective, kernel)
    if fastrank is not None:
        searches["fastrank: coordinate ascent"] = lambda: ascent_by_fastrank(objective, form)
    theirs = [name for name in searches if name.startswith("optuna")]
    goal = max(searches[theirs[0]]()) if theirs else next(searches[OURS]())
    ours = trace(searches[OURS])
    notes = [
        f"the goal is nDCG@10 {goal:.4f}, {'the best of those trials' if theirs else 'our first ascent'}; "
        f"ours takes {ours[-1][0]:.2f} s and finds {ours[-1][1]:.4f}"
    ]
    samples = {}
    for name, search in searches.items():
        own = ours if name == OURS else trace(search, goal, ours[-1][0])
        needed = 1e3 * min((at for at, value in own if value >= goal - 1e-12), default=own[-1][0])
        samples[name] = [(needed, needed)]
        notes.append(f"{name}: {within(own, ours[-1][0])} in our time, {own[-1][1]:.4f} in {own[-1][0]:.2f} s")
    if theirs:
        notes.append(f"TPE's value in less time than TPE: {said(samples[OURS] < samples[theirs[0]])}")
    return Race(
        "tuning", f"six weights, {queries} queries x {candidates}: time to the goal", samples, notes=tuple(notes)
    )


def said(met: bool) -> str:
    return "met" if met else "not met"


def trace(search: Callable[[], Iterator[float]], goal: float = np.inf, seconds: float = LONGEST) -> Trace:
    """(seconds of the processor, best value so far), until it has the goal and the time is over."""
    begin, found = time.process_time(), []
    for value in search():
        found.append((time.process_time() - begin, max(value, found[-1][1] if found else 0.0)))
        at, best = found[-1]
        if at > LONGEST or (at > seconds and best >= goal - 1e-12):
            break
    return found


def within(found: Trace, seconds: float) -> str:
    """The best value that a trace had by then."""
    return max((f"{value:.4f}" for at, value in found if at <= seconds), default="nothing")


def ascents(objective: Objective) -> Iterator[float]:
    """From equal weights."""
    start = np.full(len(SIX), 1 / len(SIX))
    yield climb(objective, Ascent(start, objective.mean(start)), np.arange(len(SIX)), 0).value


def tpe(objective: Objective, trials: int) -> Iterator[float]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    for _ in range(trials):
        trial = study.ask()
        weights = np.array([trial.suggest_float(name, 0, 1) for name in SIX])
        value = objective.mean(weights / weights.sum())
        study.tell(trial, value)
        yield value


def evolution(objective: Objective, kernel: Kernel) -> Iterator[float]:
    """Generations of 64, a tile of the kernel; the best of each is evaluated in float64."""
    bounds = np.array([[0.0, 1.0]] * len(SIX))
    search = cmaes.CMA(mean=np.full(len(SIX), 0.5), sigma=0.3, bounds=bounds, population_size=64, seed=0)
    while not search.should_stop():
        asked = np.array([search.ask() for _ in range(search.population_size)])
        weights = asked / asked.sum(axis=1, keepdims=True)
        values = kernel.means(weights, threads=1)[MEASURE]
        search.tell([(point, -value) for point, value in zip(asked, values, strict=True)])
        yield objective.mean(weights[int(np.argmax(values))])


def ascent_by_fastrank(objective: Objective, form: Form) -> Iterator[float]:
    """Metzler and Croft's coordinate ascent with growing steps, without restarts; weights may be negative."""
    grade = np.zeros(len(form))
    grade[form.relevant] = form.grade
    query = np.repeat(np.arange(form.queries), np.diff(form.offsets)).astype(np.int64)
    rows = np.ascontiguousarray(form.columns.T, dtype=np.float32)
    data = fastrank.CDataset.from_numpy(rows, grade, query)
    asked = fastrank.TrainRequest.coordinate_ascent()
    asked.measure = "ndcg@10"
    asked.params.num_restarts, asked.params.seed, asked.params.quiet = 1, 0, True
    yield objective.mean(np.array(data.train_model(asked).to_dict()["Linear"]["weights"]))
