"""How strangers act on a list of ten: click models of the literature, agents, and readers who follow a signal.

They were written from their papers, without regard to the learner, and nothing in the project is tuned on those
that are kept (`CONFIRM`). Honest readers act on what is relevant, whatever else moves them. Followers act on what
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


def cascade(seen, rng):
    """Read from the top until the first act (Craswell, Zoeter, Taylor and Ramsey, WSDM 2008)."""
    would = seen.chance(rng, 0.05 + 0.7 * seen.worth)
    return would & before(~would)


def dcm(seen, rng):
    """Dependent click model: after an act on, by place (Guo, Liu and Wang, WSDM 2009)."""
    would = seen.chance(rng, 0.05 + 0.65 * seen.worth)
    return would & before(seen.chance(rng, np.where(would, 0.75 - 0.05 * PLACE, 1.0)))


def dbn(seen, rng):
    """Dynamic Bayesian network: read until satisfied or tired (Chapelle and Zhang, WWW 2009)."""
    would = seen.chance(rng, 0.06 + 0.7 * seen.worth)
    return would & before(seen.chance(rng, np.where(would, 0.9 * (1 - 0.8 * seen.worth), 0.9)))


def sdbn(seen, rng):
    """The same without tiredness (ibid., section 5)."""
    would = seen.chance(rng, 0.06 + 0.7 * seen.worth)
    return would & before(seen.chance(rng, np.where(would, 1 - 0.7 * seen.worth, 1.0)))


def ccm(seen, rng):
    """Click chain model: after an act on, by its relevance (Guo, Liu, Kannan et al., WWW 2009)."""
    would = seen.chance(rng, 0.05 + 0.7 * seen.worth)
    after = 0.8 * (1 - seen.worth) + 0.35 * seen.worth
    return would & before(seen.chance(rng, np.where(would, after, 0.85)))


def trust(seen, rng):
    """What is irrelevant is trusted the more the higher it is (Agarwal, Wang, Li et al., WWW 2019)."""
    trusted = (0.98 - 0.03 * PLACE) * seen.worth + 0.45 / PLACE * (1 - seen.worth)
    return seen.chance(rng, trusted / PLACE**0.7)


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


def reads_five(seen, rng):
    """An agent reads the first five, all alike, and uses what it finds of use."""
    return seen.chance(rng, (0.04 + 0.7 * seen.worth) * (PLACE <= 5))


def lost_in_the_middle(seen, rng):
    """An agent reads a context from both ends (Liu et al., TACL 2024) and uses two entries at most."""
    would = seen.chance(rng, (0.04 + 0.7 * seen.worth) * (0.5 + 0.5 * np.abs(PLACE - 5.5) / 4.5))
    return would & (np.cumsum(would, axis=1) <= 2)


def recent(seen, rng):
    """Worth and a taste for what is new."""
    return seen.chance(rng, (0.03 + 0.75 * seen.worth * (0.4 + 0.6 * seen.age) + 0.15 * seen.age) / PLACE**0.8)


def opens_all(seen, rng):
    """People by place, and a robot that opens whatever it is shown."""
    return pbm(seen, rng) | seen.robot[:, None]


def random_third(seen, rng):
    """People by place, and a third of acts that hit anything."""
    astray = rng.random((len(seen.worth), 1)) < 0.33
    return np.where(astray, seen.chance(rng, 0.12), pbm(seen, rng))


def appealing(seen, rng):
    """Entries have looks of their own, relevant ones better ones on average (Yue, Patel and Roehrig, WWW 2010)."""
    return seen.chance(rng, (0.1 * seen.looks + (0.25 + 0.6 * seen.looks) * seen.worth) / PLACE)


def titles(seen, rng):
    """Half of what is looked at is a title with the words of the query (Clarke et al., SIGIR 2007)."""
    return seen.chance(rng, (0.5 * seen.worth + 0.4 * seen.words * (seen.worth == 0)) * (PLACE <= 4))


def snippets(seen, rng):
    """Three snippets are read, and what is like the query is taken (Joachims et al., SIGIR 2005, on trust)."""
    return seen.chance(rng, (0.45 * seen.worth + 0.45 * seen.like) * (PLACE <= 3))


def liked(seen, rng):
    """A weak pull of likeness at every place."""
    return seen.chance(rng, (0.03 + 0.6 * seen.worth + 0.15 * seen.like * (1 - seen.worth)) / PLACE**0.7)


def worded(seen, rng):
    """A weak pull of words at every place."""
    return seen.chance(rng, (0.03 + 0.6 * seen.worth + 0.15 * seen.words * (1 - seen.worth)) / PLACE**0.7)


def word_robot(seen, rng):
    """People by place, and a robot that opens the best match by words."""
    best = seen.words == seen.words.max(axis=1, keepdims=True)
    return np.where(seen.robot[:, None], best, pbm(seen, rng))


def copied(seen, rng):
    """An agent quotes what repeats its own question: mostly words, half of the searches."""
    quoting = rng.random((len(seen.worth), 1)) < 0.5
    return np.where(quoting, seen.chance(rng, 0.6 * seen.words**2 * (PLACE <= 5)), pbm(seen, rng))


HONEST = {
    reader.__name__: reader
    for reader in (
        *(pbm, ubm, cascade, dcm, dbn, sdbn, ccm, trust, abandonment, cites_one, reads_five),
        *(lost_in_the_middle, recent, opens_all, random_third, appealing),
    )
}
FOLLOWERS = {reader.__name__: reader for reader in (titles, snippets, liked, worded, word_robot, copied)}
READERS = HONEST | FOLLOWERS
CHOOSE = frozenset([*list(HONEST)[::2], *list(FOLLOWERS)[::2]])
"""Readers that settings of the learner may be chosen on, every second one; the others confirm."""
CONFIRM = frozenset(READERS) - CHOOSE
ROBOT = ("opens_all", "word_robot")
"""Of whose searches one client, no person, makes 30%."""
