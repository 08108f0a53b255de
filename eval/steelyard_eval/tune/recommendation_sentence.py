"""The first line of a recommendation: what to do, what to expect of it, how sure that is."""

from __future__ import annotations

from steelyard.config.search_config import SearchConfig
from steelyard.systems import find_system, written_name
from steelyard_eval.decide.decision import Decision


def is_stated(decision: Decision, queries: int, fewest: int) -> bool:
    """Whether the gain is printed: of what ships, from so many labelled queries on."""
    return decision.verdict == "ship" and queries >= fewest


def named(config: SearchConfig) -> str:
    """A configuration as one would write it: a system, its changed parameters, the strategy, unusual depths."""
    usual = find_system(config.name).config(config.limit).depths
    deep = {depth for name, depth in depths_read(config).items() if depth and depth != usual.get(name, depth)}
    depths = f" at depth {', '.join(map(str, sorted(deep)))}" if deep else ""
    system, _, parameters = written_name(config).rstrip("]").partition("[")
    moved = f" with {parameters}" if parameters else ""
    return f"{'' if system == 'plain' else f'{system} with '}{config.effective}{moved}{depths}"


def depths_read(config: SearchConfig) -> dict[str, int | None]:
    """The depth of every retriever whose list the strategy uses."""
    used = config.effective.signals()
    return {name: depth for name, depth in config.depths.items() if name in used}


def sentence(decision: Decision, chosen: str, current: str, metric: str, fewest: int = 0) -> str:
    """One sentence to act on; a gain that is not stated, for want of `fewest` labelled queries, is left open.

    >>> from steelyard_eval.measures.statistics import Interval
    >>> decision = Decision("ship", 3, Interval(0.0612, 0.02, 0.1), 0.02, 0.1, None)
    >>> sentence(decision, "rrf(bm25, vector)", "echovault", "nDCG@10")
    'Use rrf(bm25, vector): +0.061 nDCG@10 expected over your echovault (1 in 50 that it is worse).'
    """
    sure = f"your {current} ({odds(decision.harm)} that it is worse)"
    if decision.verdict == "ship" and fewest:
        return f"Use {chosen}: better than {sure}, by how much fewer than {fewest} labelled queries cannot tell."
    if decision.verdict == "ship":
        return f"Use {chosen}: {decision.gain.mean:+.3f} {metric} expected over {sure}."
    if decision.verdict == "try":
        likely = str(decision.refusal or f"likely better than {sure}; {_settle(decision)}")
        return f"Try {chosen}, unproven: {likely}."
    return (
        f"Keep your {current}: nothing found beats it by more than {decision.bound:.3f} {metric}; "
        f"about {rough(decision.more)} more labelled queries would halve that."
    )


def _settle(decision: Decision) -> str:
    if decision.more is None:
        return "label more queries to settle it"
    return f"label about {rough(decision.more)} more queries to settle it"


def odds(probability: float) -> str:
    """A probability in words: 1 in so many, in one digit from 20 on.

    >>> odds(0.02), odds(0.2), odds(0.0019), odds(0.00001)
    ('1 in 50', '1 in 5', '1 in 500', 'less than 1 in 1,000')
    """
    if probability < 0.001:
        return "less than 1 in 1,000"
    number = round(1 / probability)
    step = 10 ** (len(str(number)) - 1) if number >= 20 else 1
    return f"1 in {round(number / step) * step:,}"


def rough(more: int | None) -> str:
    """A rough number of queries that are still needed, in two digits.

    >>> rough(37), rough(183)
    ('40', '180')
    """
    number = more or 1
    step = 10 ** max(len(str(number)) - 2, 1 if number >= 20 else 0)
    return f"{max(step, round(number / step) * step):,}"
