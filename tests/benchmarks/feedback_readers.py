"""How strangers act on a list of ten: click models of the literature, agents, and readers who follow a signal.

They were written from their papers, without regard to the learner, and nothing in the project is tuned on those
that are not in `CHOOSE`. Honest readers act on what is relevant, whatever else moves them. Followers act on what
has words in common with the query, is like it, or is new, so no log tells them from honest ones.

Each is a function of what is shown and of chance; `acted` is bool[S, 10]. What is shown: `worth` is the grade over
the highest one, `words` and `like` are bm25 and vector over the query's candidates, `age` and `looks` belong to
the entry alone, all float64[S, 10] between 0 and 1; `robot` bool[S] are searches of a client that is no person.
"""

from dataclasses import dataclass

import numpy as np

PLACE = np.arange(1, 11)


@dataclass(frozen=True)
class Seen:
    """What is shown in S searches; see the module."""

    worth: np.ndarray
    words: np.ndarray
    like: np.ndarray
    age: np.ndarray
    looks: np.ndarray
    robot: np.ndarray

    def chance(self, rng, probability):
        return rng.random(self.worth.shape) < probability


def before(going_on):
    """Which places are reached, where the reader goes on after some."""
    return np.cumprod(np.c_[np.ones(len(going_on), bool), going_on[:, :-1]], axis=1).astype(bool)


def pbm(seen, rng):
    """Position-based model: examined with probability 1 / place (Richardson, Dominowska and Ragno, WWW 2007)."""
    return seen.chance(rng, (0.05 + 0.8 * seen.worth) / PLACE)


def ubm(seen, rng):
    """User browsing model: examined by the distance to the last act (Dupret and Piwowarski, SIGIR 2008)."""
    acted = np.zeros(seen.worth.shape, bool)
    last = np.zeros(len(acted), int)
    for at in range(10):
        examined = rng.random(len(acted)) < 1 / (1 + 0.6 * (at + 1 - last))
        acted[:, at] = examined & (rng.random(len(acted)) < 0.06 + 0.75 * seen.worth[:, at])
        last = np.where(acted[:, at], at + 1, last)
    return acted


def reading(base, slope, going_on):
    """One who reads from the top: acts by worth, and goes on with a chance that follows the act and the worth."""

    def reader(seen, rng):
        would = seen.chance(rng, base + slope * seen.worth)
        return would & before(seen.chance(rng, going_on(would, seen.worth)))

    return reader


def looking(chance):
    """One whose acts on entries have a chance each."""
    return lambda seen, rng: seen.chance(rng, chance(seen))


def cascade(seen, rng):
    """Read from the top until the first act (Craswell, Zoeter, Taylor and Ramsey, WSDM 2008)."""
    would = seen.chance(rng, 0.05 + 0.7 * seen.worth)
    return would & before(~would)


def abandonment(seen, rng):
    """Good abandonment: what is read in the list needs no act (Li, Huffman and Tokuda, SIGIR 2009)."""
    acted = seen.chance(rng, (0.05 + 0.75 * seen.worth) / PLACE**0.8)
    content = (seen.worth[:, :2] > 0).any(axis=1) & (rng.random(len(acted)) < 0.5)
    return acted & ~content[:, None]


def cites_one(seen, rng):
    """An agent cites one entry by a soft choice, or none (McFadden, 1974), first places sooner."""
    appeal = np.c_[4.5 * seen.worth - 0.6 * np.log(PLACE), np.full(len(seen.worth), 1.5)]
    drawn = appeal + rng.gumbel(size=appeal.shape)
    return (drawn.argmax(axis=1)[:, None] == np.arange(10)) & (drawn.argmax(axis=1) < 10)[:, None]


def lost_in_the_middle(seen, rng):
    """An agent reads a context from both ends (Liu et al., TACL 2024) and uses two entries at most."""
    would = seen.chance(rng, (0.04 + 0.7 * seen.worth) * (0.5 + 0.5 * np.abs(PLACE - 5.5) / 4.5))
    return would & (np.cumsum(would, axis=1) <= 2)


def opens_all(seen, rng):
    """People by place, and a robot that opens whatever it is shown."""
    return pbm(seen, rng) | seen.robot[:, None]


def random_third(seen, rng):
    """People by place, and a third of acts that hit anything."""
    astray = rng.random((len(seen.worth), 1)) < 0.33
    return np.where(astray, seen.chance(rng, 0.12), pbm(seen, rng))


def word_robot(seen, rng):
    """People by place, and a robot that opens the best match by words."""
    best = seen.words == seen.words.max(axis=1, keepdims=True)
    return np.where(seen.robot[:, None], best, pbm(seen, rng))


def copied(seen, rng):
    """An agent quotes what repeats its own question: mostly words, half of the searches."""
    quoting = rng.random((len(seen.worth), 1)) < 0.5
    return np.where(quoting, seen.chance(rng, 0.6 * seen.words**2 * (PLACE <= 5)), pbm(seen, rng))


HONEST = {
    "pbm": pbm,
    "ubm": ubm,
    "cascade": cascade,
    # Dependent click model: after an act on, by place (Guo, Liu and Wang, WSDM 2009).
    "dcm": reading(0.05, 0.65, lambda would, worth: np.where(would, 0.75 - 0.05 * PLACE, 1.0)),
    # Dynamic Bayesian network: read until satisfied or tired (Chapelle and Zhang, WWW 2009).
    "dbn": reading(0.06, 0.7, lambda would, worth: np.where(would, 0.9 * (1 - 0.8 * worth), 0.9)),
    # The same without tiredness (ibid., section 5).
    "sdbn": reading(0.06, 0.7, lambda would, worth: np.where(would, 1 - 0.7 * worth, 1.0)),
    # Click chain model: after an act on, by its relevance (Guo, Liu, Kannan et al., WWW 2009).
    "ccm": reading(0.05, 0.7, lambda would, worth: np.where(would, 0.8 * (1 - worth) + 0.35 * worth, 0.85)),
    # What is irrelevant is trusted the more the higher it is (Agarwal, Wang, Li et al., WWW 2019).
    "trust": looking(lambda s: ((0.98 - 0.03 * PLACE) * s.worth + 0.45 / PLACE * (1 - s.worth)) / PLACE**0.7),
    "abandonment": abandonment,
    "cites_one": cites_one,
    # An agent reads the first five, all alike, and uses what it finds of use.
    "reads_five": looking(lambda s: (0.04 + 0.7 * s.worth) * (PLACE <= 5)),
    "lost_in_the_middle": lost_in_the_middle,
    # Worth and a taste for what is new.
    "recent": looking(lambda s: (0.03 + 0.75 * s.worth * (0.4 + 0.6 * s.age) + 0.15 * s.age) / PLACE**0.8),
    "opens_all": opens_all,
    "random_third": random_third,
    # Entries have looks of their own, relevant ones better ones on average (Yue, Patel and Roehrig, WWW 2010).
    "appealing": looking(lambda s: (0.1 * s.looks + (0.25 + 0.6 * s.looks) * s.worth) / PLACE),
}
FOLLOWERS = {
    # Half of what is looked at is a title with the words of the query (Clarke et al., SIGIR 2007).
    "titles": looking(lambda s: (0.5 * s.worth + 0.4 * s.words * (s.worth == 0)) * (PLACE <= 4)),
    # Three snippets are read, and what is like the query is taken (Joachims et al., SIGIR 2005, on trust).
    "snippets": looking(lambda s: (0.45 * s.worth + 0.45 * s.like) * (PLACE <= 3)),
    # Weak pulls of likeness and of words at every place.
    "liked": looking(lambda s: (0.03 + 0.6 * s.worth + 0.15 * s.like * (1 - s.worth)) / PLACE**0.7),
    "worded": looking(lambda s: (0.03 + 0.6 * s.worth + 0.15 * s.words * (1 - s.worth)) / PLACE**0.7),
    "word_robot": word_robot,
    "copied": copied,
}
READERS = HONEST | FOLLOWERS
CHOOSE = frozenset([*list(HONEST)[::2], *list(FOLLOWERS)[::2]])
"""Readers that settings of the learner may be chosen on, every second one; the others confirm."""
ROBOT = ("opens_all", "word_robot")  # of whose searches one client, no person, makes 30%
