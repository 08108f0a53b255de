"""Feedback with known truth: lists shown for labelled queries, acted upon by a click model. Deterministic by seed.

Nothing simulated is evidence about people. It shows what a learner can recover when its assumptions hold, and when
they are broken in known ways. The models:

pbm      Position-based: examined with probability 1 / place, acted upon by grade (Richardson et al., WWW 2007).
wild     Every entry draws by looks of its own, is trusted at the top, and all is read until satisfied.
attract  The first signal draws acts to irrelevant entries, by 0.3 of its value.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.feedback import draft_teams
from steelyard.fusion import leaves
from steelyard_eval.candidates.grid import Block
from steelyard_eval.datasets.groups import unit_numbers
from steelyard_eval.learn.first_ten import PLACES, LoggedPairs, rows_of, rows_of_form, unlabelled

SHARE = 0.1  # of the sessions, in which another list is mixed in
COLUMNS = 600  # weights that are laid out where more than two move
POSITIONS = np.arange(1, PLACES + 1)


def pbm(chance, worth, signal, looks):
    return chance((0.05 + 0.85 * worth) / POSITIONS)


def attract(chance, worth, signal, looks):
    return chance((0.85 * worth + 0.3 * signal * (1 - worth)) / POSITIONS)


def wild(chance, worth, signal, looks):
    """Relevant entries draw by their looks; of the others a tenth look good."""
    plain = np.where((looks * 7919) % 1 < 0.1, 0.15 + 0.5 * looks, 0.06 * looks)
    appeal = np.where(worth > 0, 0.25 + 0.65 * looks, plain)
    would = chance(appeal + 0.25 / POSITIONS * (1 - appeal))
    going_on = chance(np.where(would, 0.35, 0.85))
    first = np.ones((len(going_on), 1), dtype=bool)
    return would & np.concatenate([first, np.cumprod(going_on, axis=1).astype(bool)[:, :-1]], axis=1)


MODELS = {model.__name__: model for model in (pbm, wild, attract)}


@dataclass(frozen=True)
class CandidateLists:
    """The lists of a strategy under many weights, its own first: `top` int32[G, Q, PLACES] are rows of pairs."""

    pairs: LoggedPairs
    top: Any
    block: Block

    @classmethod
    def of(cls, table, config, queries):
        """Over a recording of these queries; ConfigError where weights cannot be searched."""
        form = unlabelled(table.at_depth(config.depths), config)
        block = Block.of(config, form, COLUMNS)
        names = list(dict.fromkeys(map(str, leaves(config.effective))))
        pairs = LoggedPairs.of(table, names, unit_numbers(queries))
        return cls(pairs, rows_of_form(form, block.weights, rows_of(pairs, table)), block)

    def __len__(self):
        return len(self.top)

    def config(self, candidate):
        return self.block.config if candidate == 0 else self.block.written(candidate)


@dataclass(frozen=True)
class Sessions:
    """S sessions: query int64[S]; rows of the pairs that were shown, int64[S, PLACES], -1 where nothing stands;
    acted bool[S, PLACES]; explored int64[S], the candidate whose list was mixed in, -1 for none; team
    int64[S, PLACES], the candidate that placed each hit; worth float64[S, PLACES], grade over the highest grade.
    """

    query: Any
    row: Any
    acted: Any
    explored: Any
    team: Any
    worth: Any

    def __len__(self):
        return len(self.query)


def simulate(lists, grades, policy, model, sessions, rng, *, explore="none", share=SHARE, signal=0):
    """Show the lists of one candidate for queries of Zipf frequency, and act on them.

    `grades` float64[N] are of the rows, `signal` is the feature that attracts; with `explore="interleave"` the
    list of another candidate is mixed in, in a share of the sessions.
    """
    asked = rng.permutation(np.arange(len(lists.pairs.queries)))
    weight = 1.0 / np.arange(1, len(asked) + 1)
    query = asked[rng.choice(len(asked), sessions, p=weight / weight.sum())].astype(np.int64)
    row = lists.top[policy, query].astype(np.int64)
    explored, team = np.full(len(query), -1, dtype=np.int64), np.full(row.shape, policy, dtype=np.int64)
    if explore != "none":
        chosen = np.flatnonzero(rng.random(len(query)) < share)
        explored[chosen] = rng.integers(0, len(lists.top), len(chosen))
        for session in chosen.tolist():
            pair = [lists.top[one, query[session]].tolist() for one in (policy, explored[session])]
            rows = [[at for at in top if at >= 0] for top in pair]
            row[session], team[session] = -1, policy
            drafted = draft_teams(*rows, PLACES, lambda: bool(rng.random() < 0.5))
            for place, (at, first) in enumerate(drafted):
                row[session, place], team[session, place] = at, policy if first else explored[session]
    worth = np.append(grades, 0.0)[row] / max(float(grades.max(initial=0.0)), 1.0)
    drawn = np.append(lists.pairs.features[:, signal], 0.0)[row]
    # A number in 0..1 that is the same whenever the entry is shown for the query.
    place = row - lists.pairs.offsets[query][:, None]
    looks = np.mod(np.sin(query[:, None] * 12.9898 + place * 78.233) * 43758.5453, 1.0)
    acted = MODELS[model](lambda probability: rng.random(worth.shape) < probability, worth, drawn, looks)
    return Sessions(query, row, acted & (row >= 0), explored, team, worth)
