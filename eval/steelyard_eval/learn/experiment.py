"""How many interleaved searches would tell whether a candidate is preferred to what is used today.

Lists of both are drafted as `steelyard serve --explore` drafts them, for the queries of the log as often as they
were asked, and acted upon at the rates that were learned from it. The winner of a search is whose entries are
acted upon more often. Entries that the log never showed are relevant with the probability imputed to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from steelyard.base.arrays import Ints
from steelyard.feedback.team_draft import draft_teams
from steelyard_eval.common.documents.learn import ExperimentRecord
from steelyard_eval.learn.acts import POSITIVE
from steelyard_eval.learn.first_ten import PLACES
from steelyard_eval.learn.gains import ClickGains
from steelyard_eval.learn.interleaving import searches_needed
from steelyard_eval.learn.tally import sums

SEARCHES = 20_000
"""Simulated; the shares of wins and losses have errors of less than .004."""
ROUNDS = PLACES // 2
"""Coins of a draft: each decides who picks first of two places."""


def experiment(learned: ClickGains, top: Ints) -> ExperimentRecord:
    """Simulate searches in which two rankings take turns; `top` int[2, Q, PLACES] has today's lists first.

    Wins, ties and losses of the candidate are shares of the searches. `searches` is how many tell the two apart in
    four of five such experiments, at 5%; None where neither is preferred.
    """
    rng = np.random.default_rng(0)
    queries = learned.cells.queries
    asked = sums(learned.cells.query, learned.cells.shown)[queries]
    drafts = [_drafts(*top[:, query].tolist()) for query in queries.tolist()]
    drawn = rng.choice(len(queries), SEARCHES, p=asked / asked.sum())
    lists = np.array(drafts)[drawn, rng.integers(2**ROUNDS, size=SEARCHES)]  # (row, team) at each place
    rows, team = lists[..., 0], lists[..., 1]
    relevance = np.append(learned.relevance(), 0.0)[rows]
    acts = [rates[:, POSITIVE].sum(axis=1) for rates in (learned.classes.relevant, learned.classes.other)]
    rate = np.where(rows >= 0, relevance * acts[0] + (1 - relevance) * acts[1], 0.0)
    balance = ((rng.random(rate.shape) < rate) * team).sum(axis=1)
    wins, losses = float((balance > 0).mean()), float((balance < 0).mean())
    needed = searches_needed(wins, losses)
    return {"wins": wins, "ties": 1 - wins - losses, "losses": losses, "searches": needed}


def _drafts(today: Sequence[int], candidate: Sequence[int]) -> list[list[tuple[int, int]]]:
    """The list of (row, team) under every fall of the coins, team 1 being the candidate; -1 fills empty places."""
    challenger, other = ([row for row in rows if row >= 0] for rows in (candidate, today))

    def draft(fall: Sequence[bool]) -> list[tuple[int, int]]:
        coins = iter(fall)
        made = draft_teams(challenger, other, PLACES, lambda: next(coins, True))
        placed = [(row, 1 if first else -1) for row, first in made]
        return placed + [(-1, 0)] * (PLACES - len(placed))

    return [draft(fall) for fall in product((True, False), repeat=ROUNDS)]
