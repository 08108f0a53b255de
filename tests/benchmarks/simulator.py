"""Feedback with known truth: lists shown for labelled queries, acted upon by a click model. Deterministic by seed.

Nothing simulated is evidence about people. It shows what a learner can recover when its assumptions hold, and when
they are broken in known ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from clicks import MODELS, SAYS_NONE, Shown, looks, nothing_of_use

from steelyard.base.arrays import Bools, Floats, Indices, Ints
from steelyard.base.errors import ConfigError, nearest, shown
from steelyard.config import SearchConfig
from steelyard.feedback import draft_teams
from steelyard.fusion import leaves
from steelyard.memory.query import Query
from steelyard.table.signal_table import SignalTable
from steelyard_eval.candidates.grid import Block
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.learn.top10 import PLACES, LoggedPairs, rows_of, rows_of_form, unlabelled

EXPLORATIONS = ("none", "interleave")
"""What is shown instead of the policy's list in a share of the sessions."""
ZIPF = 1.0
SHARE = 0.1

COLUMNS = 600
"""Weights that are laid out where more than two move."""


@dataclass(frozen=True)
class CandidateLists:
    """The lists of a strategy under many weights, its own first: `top` int32[G, Q, PLACES] are rows of pairs."""

    pairs: LoggedPairs
    top: Ints
    block: Block

    @classmethod
    def of(cls, table: SignalTable, config: SearchConfig, queries: Sequence[Query]) -> CandidateLists:
        """Over a recording of these queries; ConfigError where weights cannot be searched."""
        form = unlabelled(table.at_depth(config.depths), config)
        block = Block.of(config, form, COLUMNS)
        signals = list(dict.fromkeys(map(str, leaves(config.effective))))
        pairs = LoggedPairs.of(table, signals, unit_numbers(queries))
        return cls(pairs, rows_of_form(form, block.weights, rows_of(pairs, table)), block)

    def __len__(self) -> int:
        return len(self.top)

    def config(self, candidate: int) -> SearchConfig:
        """The configuration of a candidate."""
        return self.block.config if candidate == 0 else self.block.written(candidate)


@dataclass(frozen=True)
class Sessions:
    """S sessions, each a list that was shown and acted upon.

    Attributes
    ----------
    query : int64[S]
    row : int64[S, PLACES]
        Rows of the pairs; -1 where nothing stands.
    acted : bool[S, PLACES]
    none : bool[S]
        Whether the reader said that nothing was of use.
    explored : int64[S]
        The candidate whose list was mixed in; -1 in a session that shows the policy's own list.
    team : int64[S, PLACES]
        The candidate that placed each hit.
    worth : float64[S, PLACES]
        Grade over the highest grade.
    """

    query: Indices
    row: Indices
    acted: Bools
    none: Bools
    explored: Indices
    team: Indices
    worth: Floats

    def __len__(self) -> int:
        return len(self.query)


def simulate(
    lists: CandidateLists,
    grades: Floats,
    policy: int,
    model: str,
    sessions: int,
    rng: np.random.Generator,
    *,
    explore: str = "none",
    share: float = SHARE,
    zipf: float = ZIPF,
    signal: int = 0,
) -> Sessions:
    """Show the lists of one candidate for queries of Zipf frequency, and act on them.

    Parameters
    ----------
    grades : float64[N]
        The grade of every row.
    policy : the candidate that ranks; model : one of `clicks.MODELS`; signal : the feature that attracts.
    explore : one of `EXPLORATIONS`, in a share of the sessions.
    """
    for name, valid in ((model, MODELS), (explore, EXPLORATIONS)):
        if name not in valid:
            raise ConfigError(f"there is no model or exploration {shown(name)}{nearest(name, valid)}")
    asked = rng.permutation(np.arange(len(lists.pairs.queries)))
    weight = 1.0 / np.arange(1, len(asked) + 1) ** zipf
    query = asked[rng.choice(len(asked), sessions, p=weight / weight.sum())].astype(np.int64)
    row, explored, team = _shown(lists, query, policy, explore, share, rng)
    view = _view(lists, grades, query, row, signal)
    real = row >= 0
    acted = MODELS[model](view, rng) & real
    none = nothing_of_use(view, acted, rng) if model in SAYS_NONE else np.zeros(sessions, dtype=bool)
    return Sessions(query, row, acted, none, explored, team, view.worth)


def _view(lists: CandidateLists, grades: Floats, query: Indices, row: Indices, signal: int) -> Shown:
    """What a reader sees of the rows."""
    worth = np.append(grades, 0.0)[row] / max(float(grades.max(initial=0.0)), 1.0)
    drawn = np.append(lists.pairs.features[:, signal], 0.0)[row]
    return Shown(worth, drawn, looks(query, row - lists.pairs.offsets[query][:, None]))


def _shown(
    lists: CandidateLists, query: Indices, policy: int, explore: str, share: float, rng: np.random.Generator
) -> tuple[Indices, Indices, Indices]:
    """The rows shown, the candidate explored with, and the candidate that placed each hit."""
    row = lists.top[policy, query].astype(np.int64)
    explored = np.full(len(query), -1, dtype=np.int64)
    team = np.full(row.shape, policy, dtype=np.int64)
    if explore == "none":
        return row, explored, team
    chosen = np.flatnonzero(rng.random(len(query)) < share)
    other = rng.integers(0, len(lists), len(chosen))
    explored[chosen] = other
    for session, with_ in zip(chosen.tolist(), other.tolist(), strict=True):
        ours, theirs = lists.top[policy, query[session]], lists.top[with_, query[session]]
        row[session], team[session] = _mixed(ours, theirs, policy, with_, rng)
    return row, explored, team


def _mixed(
    ours: Indices, theirs: Indices, policy: int, other: int, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """A list that two teams drafted."""
    team = np.full(PLACES, policy, dtype=np.int64)
    rows = [[row for row in top.tolist() if row >= 0] for top in (ours, theirs)]
    drafted = draft_teams(rows[0], rows[1], PLACES, lambda: bool(rng.random() < 0.5))
    made = np.full(PLACES, -1, dtype=np.int64)
    for place, (row, first) in enumerate(drafted):
        made[place], team[place] = row, policy if first else other
    return made, team
