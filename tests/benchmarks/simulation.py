"""A feedback log over a data set's labelled queries, simulated, in the log's own format.

    python tests/benchmarks/simulation.py qrels/starter --policy bm25 --sessions 3000 --out feedback.jsonl

made the logs of the starter and the workshop set (their READMEs have the options) and, with --transcripts, the
sessions of notebook 08. Nothing simulated is evidence about people.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from simulated_transcripts import write_transcripts
from simulator import SHARE, CandidateLists, Sessions, simulate

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import ConfigError
from steelyard.base.fields import format_time
from steelyard.base.files import write_text
from steelyard.config import policy_of, ranking_of
from steelyard.feedback import SCHEMA_VERSION, line
from steelyard.memory.query import Query
from steelyard_eval.candidates.source import Source, configured
from steelyard_eval.compare.contenders import Given
from steelyard_eval.datasets import Dataset, load
from steelyard_eval.learn.searches import DAY
from steelyard_eval.learn.top10 import PLACES
from steelyard_eval.measures.metrics import Judgments
from steelyard_eval.recording.record import record
from steelyard_eval.recording.workspace import Workspace

CLIENTS = 40
DAYS = 90
"""Before the data set's clock, over which sessions are spread by default."""
UNDATED = 1_600_000_000.0
"""The clock of a data set without dates: 2020-09-13."""


@dataclass(frozen=True)
class Simulated:
    """What was simulated: the lines of the log, and the counts that are printed."""

    lines: tuple[str, ...]
    record: dict[str, object]

    def save(self, path: str | Path) -> None:
        """Write the log, whole or not at all."""
        write_text(path, "".join(self.lines))


def simulate_log(
    dataset: Dataset,
    policies: Sequence[Given],
    *,
    model: str = "pbm",
    sessions: int = 10_000,
    seed: int = 0,
    explore: str = "none",
    share: float = SHARE,
    act: str = "clicked",
    signal: str | None = None,
    days: float = DAYS,
    embedder: str = "auto",
    workspace: Workspace | None = None,
) -> Simulated:
    """Simulate a log: lists of the policies in turn, for labelled queries, acted upon by a click model.

    Parameters
    ----------
    policies : contenders
        What ranks; each gets an equal share of the sessions, one after the other.
    model, explore, share : see `simulator.simulate`.
    act : the kind of every act; or `mixed`, acts of several kinds, some of which mean more than others.
    signal : the signal that attracts, where the model has one; the first of the strategy by default.
    days : before the data set's clock, over which the sessions are spread.

    Raises ConfigError without labelled queries, and for a policy that is no configuration.
    """
    space = workspace or Workspace.open(dataset, embedder)
    queries = [query for query in dataset.queries if any(dataset.qrels.get(query.id, {}).values())]
    if not queries:
        raise ConfigError(f"{dataset.name} has no labelled query to simulate feedback for; add qrels")
    configs = [configured(given, PLACES, Source.live(space)).config for given in policies]
    rng = np.random.default_rng(seed)
    parts = np.array_split(np.arange(sessions), len(configs))
    end = max(dataset.as_of, UNDATED)
    times = np.sort(rng.uniform(end - days * DAY, end, sessions))
    lines = [line({"schema_version": SCHEMA_VERSION, "simulated": True})]
    clicks = 0
    for config, part in zip(configs, parts, strict=True):
        table = record(space, queries, [config])
        judgments = Judgments.of(dataset.qrels, table.queries, table.entries)
        lists = CandidateLists.of(table, config, queries)
        grades = np.maximum(judgments.grades(lists.pairs.query, lists.pairs.entry), 0).astype(np.float64)
        column = _signal(lists, signal)
        simulated = simulate(lists, grades, 0, model, len(part), rng, explore=explore, share=share, signal=column)
        clicks += int(simulated.acted.sum())
        lines += _policy_lines(lists, simulated)
        lines += _impressions(queries, lists, simulated, times[part], act, rng)
    record_ = {"sessions": sessions, "queries": len(queries), "acts": clicks, "model": model, "seed": seed}
    return Simulated(tuple(lines), {**record_, "policies": [policy_of(config) for config in configs]})


def _signal(lists: CandidateLists, name: str | None) -> int:
    if name is None:
        return 0
    if name not in lists.pairs.names:
        raise ConfigError(f"the policy has no signal {name}; it has {', '.join(lists.pairs.names)}")
    return lists.pairs.names.index(name)


def _policy_lines(lists: CandidateLists, sessions: Sessions) -> Iterator[str]:
    """The configurations that ranked, under their hashes."""
    explored = sessions.explored[sessions.explored >= 0]
    ranked = sorted({0, *(explored.tolist() if (sessions.team != 0).any() else [])})[:PLACES]
    for candidate in ranked:
        config = lists.config(candidate)
        named = {"configuration": ranking_of(config), "policy": policy_of(config)}
        yield line({"schema_version": SCHEMA_VERSION, **named})


def _impressions(
    queries: Sequence[Query],
    lists: CandidateLists,
    sessions: Sessions,
    times: Floats,
    act: str,
    rng: np.random.Generator,
) -> Iterator[str]:
    names = {team: policy_of(lists.config(team)) for team in {0, *sessions.team.ravel().tolist()}}
    clients = rng.integers(0, CLIENTS, len(sessions))
    for i, time in enumerate(times.tolist()):
        query = queries[int(sessions.query[i])]
        mixed = bool(sessions.explored[i] >= 0)
        teams = [names[team] for team in sessions.team[i].tolist()] if mixed else None
        hits = _hits(lists, sessions.row[i], teams)
        acts = [
            {"object_id": hit["object_id"], "action_name": kind}
            for hit in hits
            if (kind := _kind(act, sessions, i, hit["position"] - 1, rng))
        ]
        acts += [{"action_name": "none_useful"}] if sessions.none[i] else []
        yield line(
            {
                "schema_version": SCHEMA_VERSION,
                "timestamp": format_time(float(int(time))),
                "query_id": query.id,
                "user_query": query.text,
                "client_id": f"simulated-{clients[i]}",
                "policy": names[0],
                "hits": hits,
                "actions": acts,
            }
        )


MIXED = {True: (("accepted", 0.5), ("cited", 0.3), ("opened", 0.2)), False: (("opened", 0.8), ("accepted", 0.2))}
"""Kinds of acts on relevant entries and on others, where kinds are mixed."""
DISMISSED = 0.1
"""How often an examined entry that is not relevant is dismissed, where kinds are mixed."""


def _kind(act: str, sessions: Sessions, session: int, place: int, rng: np.random.Generator) -> str:
    """What is done with one hit; empty for nothing."""
    done, relevant = bool(sessions.acted[session, place]), bool(sessions.worth[session, place] > 0)
    if act != "mixed":
        return act if done else ""
    if not done:
        return "dismissed" if not relevant and rng.random() < DISMISSED / (place + 1) else ""
    names, weights = zip(*MIXED[relevant], strict=True)
    return str(rng.choice(names, p=weights))


def _hits(lists: CandidateLists, rows: Indices, teams: Sequence[str] | None) -> list[dict[str, Any]]:
    hits = []
    for place, row in enumerate(rows.tolist()):
        if row >= 0:
            team = {} if teams is None else {"interleaved": teams[place]}
            hits.append({"object_id": lists.pairs.entries[lists.pairs.entry[row]], "position": place + 1, **team})
    return hits


def main() -> None:
    """Read the options, and write the log or the sessions."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("dataset")
    options.add_argument("--policy", action="append", dest="policies")
    options.add_argument("--model", default="pbm")
    options.add_argument("--sessions", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--explore", default="none")
    options.add_argument("--share", type=float, default=SHARE)
    options.add_argument("--act", default="clicked")
    options.add_argument("--signal")
    options.add_argument("--days", type=float, default=DAYS)
    options.add_argument("--out", default="feedback.jsonl")
    options.add_argument("--transcripts", help="write sessions of a coding agent to this folder instead")
    chosen = vars(options.parse_args())
    dataset, out, folder = load(chosen.pop("dataset")), chosen.pop("out"), chosen.pop("transcripts")
    log = simulate_log(dataset, chosen.pop("policies") or [dataset.system or "bm25"], **chosen)
    if folder:
        write_transcripts(dataset, log.lines, folder, server="steelyard")
    else:
        log.save(out)
    print(log.record)


if __name__ == "__main__":
    main()
