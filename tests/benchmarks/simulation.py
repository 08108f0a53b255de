"""A feedback log over a data set's labelled queries, simulated, in the log's own format.

    python tests/benchmarks/simulation.py qrels/starter --policy bm25 --sessions 3000 --out feedback.jsonl

made the logs of the starter and the workshop set; their READMEs have the options. Nothing simulated is evidence
about people.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from simulator import SHARE, CandidateLists, simulate

from steelyard.base.fields import format_time
from steelyard.base.files import write_text
from steelyard.config import policy_of, ranking_of
from steelyard.feedback import SCHEMA_VERSION, line
from steelyard_eval.compare.contenders import read_config
from steelyard_eval.compare.source import Source
from steelyard_eval.datasets import load
from steelyard_eval.learn.first_ten import PLACES
from steelyard_eval.learn.searchers import DAY
from steelyard_eval.measures.metrics import Judgments
from steelyard_eval.recording.workspace import Workspace

CLIENTS = 40
DAYS = 90  # before the data set's clock, over which sessions are spread by default
UNDATED = 1_600_000_000.0  # the clock of a data set without dates: 2020-09-13
MIXED = {True: (("accepted", 0.5), ("cited", 0.3), ("opened", 0.2)), False: (("opened", 0.8), ("accepted", 0.2))}
"""Kinds of acts on relevant entries and on others, where kinds are mixed."""
DISMISSED = 0.1  # how often an examined entry that is not relevant is dismissed, where kinds are mixed


@dataclass(frozen=True)
class Simulated:
    lines: tuple
    record: dict

    def save(self, path):
        write_text(path, "".join(self.lines))


def simulate_log(
    dataset,
    policies,
    *,
    model="pbm",
    sessions=10_000,
    seed=0,
    act="clicked",
    signal=None,
    days=DAYS,
    workspace=None,
    **exploring,
):
    """Simulate a log: lists of the policies in turn, for labelled queries, acted upon by a click model.

    Each policy, a contender, gets an equal share of the sessions, one after the other. `act` is the kind of every
    act, or `mixed`; `signal` what attracts, the first of the strategy by default; `exploring` as of `simulate`.
    """
    source = Source.live(workspace or Workspace.open(dataset))
    queries = [query for query in dataset.queries if any(dataset.qrels.get(query.id, {}).values())]
    configs = [source.supplied(read_config(given), PLACES)[0].config for given in policies]
    rng = np.random.default_rng(seed)
    parts = np.array_split(np.arange(sessions), len(configs))
    end = max(dataset.as_of, UNDATED)
    times = np.sort(rng.uniform(end - days * DAY, end, sessions))
    lines, clicks = [line({"schema_version": SCHEMA_VERSION, "simulated": True})], 0
    for config, part in zip(configs, parts, strict=True):
        table = source.record(queries, [config])
        judgments = Judgments.of(dataset.qrels, table.queries, table.entries)
        lists = CandidateLists.of(table, config, queries)
        grades = np.maximum(judgments.grades(lists.pairs.query, lists.pairs.entry), 0).astype(np.float64)
        column = lists.pairs.names.index(signal) if signal else 0
        made = simulate(lists, grades, 0, model, len(part), rng, signal=column, **exploring)
        clicks += int(made.acted.sum())
        lines += policy_lines(lists, made)
        lines += impressions(queries, lists, made, times[part], act, rng)
    told = {"sessions": sessions, "queries": len(queries), "acts": clicks, "model": model, "seed": seed}
    return Simulated(tuple(lines), {**told, "policies": [policy_of(config) for config in configs]})


def policy_lines(lists, sessions):
    explored = sessions.explored[sessions.explored >= 0]
    for candidate in sorted({0, *(explored.tolist() if (sessions.team != 0).any() else [])})[:PLACES]:
        config = lists.config(candidate)
        named = {"configuration": ranking_of(config), "policy": policy_of(config)}
        yield line({"schema_version": SCHEMA_VERSION, **named})


def impressions(queries, lists, sessions, times, act, rng):
    names = {team: policy_of(lists.config(team)) for team in {0, *sessions.team.ravel().tolist()}}
    clients = rng.integers(0, CLIENTS, len(sessions))
    for i, time in enumerate(times.tolist()):
        query, hits, acts = queries[int(sessions.query[i])], [], []
        for place, row in enumerate(sessions.row[i].tolist()):
            if row >= 0:
                team = {"interleaved": names[int(sessions.team[i, place])]} if sessions.explored[i] >= 0 else {}
                id_ = lists.pairs.entries[lists.pairs.entry[row]]
                hits.append({"object_id": id_, "position": place + 1, **team})
                if kind := kind_of(act, sessions, i, place, rng):
                    acts.append({"object_id": id_, "action_name": kind})
        stamp = {"schema_version": SCHEMA_VERSION, "timestamp": format_time(float(int(time)))}
        asked = {"query_id": query.id, "user_query": query.text, "client_id": f"simulated-{clients[i]}"}
        yield line({**stamp, **asked, "policy": names[0], "hits": hits, "actions": acts})


def kind_of(act, sessions, session, place, rng):
    """What is done with one hit; empty for nothing."""
    done, relevant = bool(sessions.acted[session, place]), bool(sessions.worth[session, place] > 0)
    if act != "mixed":
        return act if done else ""
    if not done:
        return "dismissed" if not relevant and rng.random() < DISMISSED / (place + 1) else ""
    names, weights = zip(*MIXED[relevant], strict=True)
    return str(rng.choice(names, p=weights))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--policy", action="append", dest="policies")
    defaults = {"model": "pbm", "sessions": 10_000, "seed": 0, "explore": "none", "share": SHARE, "act": "clicked"}
    for name, value in {**defaults, "days": float(DAYS), "out": "feedback.jsonl"}.items():
        options.add_argument(f"--{name}", type=type(value), default=value)
    options.add_argument("--signal")
    chosen = vars(options.parse_args())
    dataset, out = load(chosen.pop("dataset")), chosen.pop("out")
    log = simulate_log(dataset, chosen.pop("policies") or [dataset.system or "bm25"], **chosen)
    log.save(out)
    print(log.record)


if __name__ == "__main__":
    main()
