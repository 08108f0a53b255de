"""What a log and a few labels recover, by readers who were not built beside the learner: `make feedback`.

Half of the queries of a collection are logged, the other half is never shown: every gain below is nDCG@10 on that
half, against the ranking that was in use. Labels are of queries drawn at random from the distinct queries of the
log. A row is one log; every row is a file under --folder, and a run that was broken off, by --minutes or not, goes
on from there and prints what there is.
"""

import argparse
import itertools
import sys
from functools import cache
from pathlib import Path

import numpy as np
from evidence import Folder
from evidence_matrices import DATA, METRIC, save_whole
from feedback_readers import CHOOSE, FOLLOWERS, HONEST, READERS, ROBOT, Seen

from steelyard import find_system, parse_strategy
from steelyard_eval.candidates.grid import LabelledRecording, LabelScorer
from steelyard_eval.choose.differences import Scored, SecondMeasurement
from steelyard_eval.choose.public import PriorGains, table_weight
from steelyard_eval.choose.rule import FROM_A_LOG, OVER_FUSION, Expectation, apply_rule
from steelyard_eval.datasets import load
from steelyard_eval.datasets.groups import judged, unit_numbers
from steelyard_eval.learn.counts import CODE, KINDS, PositionCounts
from steelyard_eval.learn.first_ten import PLACES, LoggedPairs, first_rows, rows_of
from steelyard_eval.learn.gains import FeedbackGains
from steelyard_eval.learn.searchers import FOLDS, weights
from steelyard_eval.measures.metrics import Judgments
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace

SETS = ("cosqa", "scifact", "locomo", "beam-128k", "cranfield")
CHOSEN_ON = frozenset({"cosqa", "scifact"})
"""Collections that settings of the learner may be chosen on; the others confirm."""
POLICIES = ("usual", "keywords", "likeness", "rrf")
SHARES = {"usual": 0.3, "keywords": 0.9, "likeness": 0.1}  # of bm25 in the weighted sum that is in use
SESSIONS = (300, 1_000, 10_000)
LABELS = (15, 30, 60)
DRAWS = 2
CLIENTS = 40
SEEDS = 2
MOST = 600  # queries of a collection that are used
WORTH, HARM = 0.02, 0.001
"""Labels of all logged queries gain at least so much: where there is something to recover. A loss that counts."""
SETTINGS = (
    "weighted_sum(0.3*bm25, 0.7*vector, normalize=minmax)",
    "weighted_sum(0.3*bm25, 0.7*vector, normalize=max)",
    "weighted_sum(0.3*bm25, 0.7*vector, normalize=zscore)",
    "rrf(bm25, vector, k=60)",
    "rrf(bm25, vector, k=10)",
)
"""Each under 71 weights: the two common families over words and vectors."""


class World:
    """A collection under the candidates of two strategies, with what each is worth on every query."""

    def __init__(self, name, folder):
        kept = folder / f"{name}.npz"
        if not kept.exists():
            save_whole(kept, _made(name))
        with np.load(kept) as z:
            found = {key: z[key] for key in z.files}
        self.metric, self.composite = found["metric"], found["composite"]
        queries, entries = (tuple(map(str, range(count))) for count in found["sizes"].tolist())
        own = (found[key] for key in ("offsets", "entry", "features"))
        self.pairs = LoggedPairs(queries, entries, *own, ("bm25", "vector"), found["unit"])
        self.top, self.worth, share = found["top"], found["worth"], found["share"]
        self.current = {name: int(np.abs(share - one).argmin()) for name, one in SHARES.items()}
        self.current["rrf"] = int(found["rrf"])
        self.age, self.looks = np.random.default_rng(0).random((2, len(entries)))

    def seen(self, query, now, robot):
        row = self.top[now, query].astype(np.int64)
        entry = np.append(self.pairs.entry, 0)[row]
        words, like = (np.append(column, 0.0)[row] for column in self.pairs.features.T)
        return row, Seen(self.worth[row], words, like, self.age[entry], self.looks[entry], robot)


def _made(name):
    dataset = load(DATA / name)
    every = judged(dataset, dataset.queries)
    queries = [every[at] for at in np.random.default_rng(0).permutation(len(every))[:MOST].tolist()]
    plain = find_system("plain").config(PLACES, "minilm")
    configs = [plain.with_strategy(parse_strategy(text)) for text in SETTINGS]
    table = record(Workspace.open(dataset), queries, configs)
    judgments = Judgments.of(dataset.qrels, table.queries, table.entries)
    made = LabelScorer(METRIC).grid(LabelledRecording(table, judgments), configs)
    pairs = LoggedPairs.of(table, ("bm25", "vector"), unit_numbers(queries))
    own = rows_of(pairs, table)
    grade = np.maximum(judgments.grades(pairs.query, pairs.entry), 0)
    return {
        "metric": made.metric,
        "composite": made.composite,
        "unit": pairs.unit,
        "offsets": pairs.offsets,
        "entry": pairs.entry,
        "features": pairs.features,
        "sizes": np.array([len(pairs.queries), len(pairs.entries)]),
        "top": np.concatenate([*first_rows(table, made.blocks, own)]),
        "worth": np.append(grade / max(float(grade.max()), 1.0), 0.0),
        "share": made.blocks[0].weights[:, 0],
        "rrf": sum(len(block.weights) for block in made.blocks[:3]),
    }


world = cache(World)


@cache
def prior(name, folder, policy):
    """What the other collections show of every candidate against the same current one."""
    others = [world(one, folder) for one in SETS if one != name]

    def side(which):
        own = [getattr(one, which) - getattr(one, which)[one.current[policy]] for one in others]
        kept = (np.mean([getattr(one, of)(axis=1) for one in own], axis=0) for of in ("mean", "var"))
        return PriorGains(*kept, table_weight(np.full(len(own[0]), len(own))))

    return side("metric"), side("composite")


def log_of(own, policy, reader, sessions, inside, rng, zipf):
    """The cells of a log, and those without each fold of its clients and without the largest client."""
    now = own.current[policy]
    chance = 1 / np.arange(1, len(inside) + 1) ** zipf
    query = rng.permutation(inside)[rng.choice(len(inside), sessions, p=chance / chance.sum())]
    client = rng.integers(1, CLIENTS, sessions)
    if reader in ROBOT:
        client[rng.random(sessions) < 0.3] = 0
    row, seen = own.seen(query, now, client == 0)
    acted = READERS[reader](seen, rng) & (row >= 0)
    weight = weights(np.bincount(client, minlength=CLIENTS))[client]

    def cells(kept):
        acts = np.zeros((int(kept.sum()) * PLACES, len(KINDS)))
        acts[:, CODE["clicked"]] = (acted[kept] * weight[kept, None]).ravel()
        place = np.tile(np.arange(PLACES), int(kept.sum()))
        return PositionCounts.of(own.pairs, row[kept].ravel(), place, np.repeat(weight[kept], PLACES), acts)

    largest = client != np.bincount(client, weight).argmax()
    return (
        cells(np.ones(sessions, bool)),
        [cells(client % FOLDS != fold) for fold in np.unique(client % FOLDS)],
        cells(largest),
    )


def row(name, folder, policy, reader, sessions, seed):
    """One log: what labels, clicks and both choose, as gains on the queries that were never logged."""
    own = world(name, folder)
    rng = np.random.default_rng([seed, sessions, *map(ord, f"{name}{policy}{reader}")])
    order = rng.permutation(len(own.pairs.queries))
    inside, outside = np.split(order, [len(order) // 2])
    cells, parts, largest = log_of(own, policy, reader, sessions, inside, rng, (0.8, 1.3)[seed % 2])
    if not cells.positive.any():
        return None
    now = own.current[policy]
    learned = FeedbackGains.of(own.pairs, cells, clients=parts)
    queries = cells.queries
    clicks = learned.values(own.top[:, queries])
    clicks = clicks - clicks[now]
    unseen = own.metric[:, outside].mean(axis=1)
    gain = lambda candidate: round(float(unseen[candidate] - unseen[now]), 5)  # noqa: E731 -- a shorthand
    metric, composite = own.metric - own.metric[now], own.composite - own.composite[now]
    attempt = learned.suggested(clicks, lambda one: own.top[[now, one]], largest)
    asked = {"set": name, "policy": policy, "reader": reader, "sessions": sessions, "seed": seed}
    found = asked | {
        "queries": len(queries),
        "labels": gain(metric[:, queries].mean(axis=1).argmax()),
        "favourite": gain(clicks.mean(axis=1).argmax()),
        "tried": None if attempt is None else gain(attempt),
        "drawn": [],
    }
    for draw, n in itertools.product(range(DRAWS), LABELS):
        if n > 0.8 * len(queries):
            continue
        at = np.random.default_rng([seed, draw]).permutation(len(queries))[:n]
        second = SecondMeasurement.of(clicks, np.arange(n), at, own.pairs.unit[queries])
        for kind, one in (("alone", None), ("both", second)):
            groups = own.pairs.unit[queries[at]]
            labelled = metric[:, queries[at]], composite[:, queries[at]]
            evidence = Scored.of(*labelled, prior(name, folder, policy), groups, one)
            decision = apply_rule(Expectation(evidence, OVER_FUSION), FROM_A_LOG)
            candidate = now if decision.candidate is None else decision.candidate
            told = {"verdict": decision.verdict, "gain": gain(candidate), "promise": round(decision.gain.mean, 5)}
            found["drawn"].append({"labels": n, "kind": kind, "share": round(evidence.share, 3), **told})
    return found


def shuffled(sets, seeds):
    """All rows, seed by seed shuffled: a run that is broken off has seen some of everything."""
    for seed in range(seeds):
        every = list(itertools.product(sets, POLICIES, READERS, SESSIONS))
        for at in np.random.default_rng(seed).permutation(len(every)).tolist():
            yield *every[at], seed


def tally(rows, labels, kind):
    """(decisions, shipped, recovered, harm, worst, obtained / promised) over logs."""
    drawn = [
        (one["gain"] if one["verdict"] == "ship" else None, one["promise"], row["labels"])
        for row in rows
        for one in row["drawn"]
        if (one["labels"], one["kind"]) == (labels, kind)
    ]
    shipped = [(gain, promise) for gain, promise, _ in drawn if gain is not None]
    harmed = sum(gain < -HARM for gain, _ in shipped)
    worth = [(gain or 0.0, possible) for gain, _, possible in drawn if possible >= WORTH]
    recovered, kept = (ratio(np.sum(pairs, axis=0)) for pairs in (worth, shipped))
    worst = min((0.0, *(gain for gain, _ in shipped)))
    return len(drawn), len(shipped), recovered, harmed / max(len(drawn), 1), worst, kept


def ratio(pair):
    return pair[0] / pair[1] if np.size(pair) == 2 and pair[1] else float("nan")


def line(head, rows, labels, kind):
    count, shipped, share, harm, worst, kept = tally(rows, labels, kind)
    told = f"{shipped / max(count, 1):5.0%} {share:9.0%} {harm:6.1%} {worst:+8.3f} {kept:6.2f}"
    return f"{head:34} {count:5} {told}"


HEAD = f"{'':34} {'n':>5} {'ship':>5} {'recovered':>9} {'harm':>6} {'worst':>8} {'kept':>6}"


def kinds(rows):
    for name, readers in (("honest", HONEST), ("followers", FOLLOWERS)):
        yield name, [row for row in rows if row["reader"] in readers]


def tables(rows):
    """The tables of docs/feedback.md, as text, the worst cells first."""
    yield f"{len(rows)} logs"
    groups = {
        "to choose on": lambda row: row["reader"] in CHOOSE and row["set"] in CHOSEN_ON,
        "other readers": lambda row: row["reader"] not in CHOOSE and row["set"] in CHOSEN_ON,
        "other collections": lambda row: row["set"] not in CHOSEN_ON,
    }
    yield from ("", "labels and acts, by number of labels", HEAD)
    for labels, kind in itertools.product(LABELS, ("alone", "both")):
        for name, own in kinds(rows):
            yield line(f"{labels} {kind}, {name}", own, labels, kind)
    yield from ("", "30 labels and acts, confirmed", HEAD)
    for (title, pick), (name, own) in itertools.product(groups.items(), kinds(rows)):
        yield line(f"{title}, {name}", [row for row in own if pick(row)], 30, "both")
    yield from ("", "30 labels and acts, by sessions", HEAD)
    for sessions, (name, own) in itertools.product(SESSIONS, kinds(rows)):
        yield line(f"{sessions} sessions, {name}", [row for row in own if row["sessions"] == sessions], 30, "both")
    for key, title in (("reader", "by reader"), ("policy", "by what is in use"), ("set", "by collection")):
        yield from ("", f"30 labels and acts, {title}, least recovered first", HEAD)
        parts = {name: [row for row in rows if row[key] == name] for name in sorted({row[key] for row in rows})}
        for name in sorted(parts, key=lambda name: np.nan_to_num(tally(parts[name], 30, "both")[2], nan=9)):
            yield line(name, parts[name], 30, "both")
    yield from ("", "no labels: what acts alone suggest as a try; nothing ships")
    for sessions, (name, own) in itertools.product(SESSIONS, kinds(rows)):
        logs = [row for row in own if row["sessions"] == sessions]
        tried = [row["tried"] for row in logs if row["tried"] is not None]
        gained, harmed = sum(one > HARM for one in tried), sum(one < -HARM for one in tried)
        yield f"{sessions:6} {name:10} {len(tried):4} tries of {len(logs)}: {gained} gained, {harmed} harmed"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("reports/feedback"))
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    asked = parser.parse_args()
    folder = Folder(asked.folder, asked.minutes)
    rows = []
    for own in shuffled(asked.sets, asked.seeds):
        found = folder.row(".".join(map(str, own)), lambda own=own: row(own[0], asked.folder, *own[1:]))
        if found:
            rows.append(found)
    print("\n".join(tables(rows)))
    print(f"{len(rows)} rows", file=sys.stderr)


if __name__ == "__main__":
    main()
