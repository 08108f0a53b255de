"""What every column means, in words for people who dislike statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from steelyard_eval.measures.metrics import meaning
from steelyard_eval.measures.paired import ALPHA, MARGIN
from steelyard_eval.show.report.blocks import Section, TableBlock, TermList

COLUMNS = {
    "configuration": "what searched: a system, a strategy, a weights file or a list of another engine. The number "
    "is its place in the leaderboard, and comes before a name that a chart cuts.",
    "family": "how it combines signals.",
    "difference": "how much higher its mean is than the baseline's, on the same queries, with the interval that "
    "contains the true difference in 95 of 100 such samples of queries.",
    "verdict": f"better and worse: the corrected p is below {ALPHA}, and 0 is outside the interval. No "
    f"difference: the whole interval is within \u00b1{MARGIN}. Too few queries to tell: these cannot decide it, "
    "which does not mean that the two are equal.",
    "p50 ms": "half of the searches took less time than this, on the machine that measured it.",
    "p95 ms": "95 of 100 searches took less time than this.",
    "queries embedded": "how many of the queries had to be sent to the embedding model.",
    "unbeaten": "no other row is at least as good in metric, latency and queries embedded, and better in one.",
    "challenger": "what is compared with the baseline.",
    "baseline": "what the others are compared with, such as what you run today.",
    "metric": "what was compared.",
    "p": "how often a difference at least this large would appear if the two were equally good and each query's "
    "difference had its sign by chance.",
    "corrected p": "p after Holm's correction: with many challengers one looks good by chance.",
    "wins / ties / losses": "the number of queries on which the challenger is better, equal and worse.",
    "detectable": "the smallest true difference that as many queries would show in 4 of 5 cases.",
    "category": "the kind of query, as the data set names it.",
    "queries": "how many queries the row is about.",
    "before": "the mean of what is used today, or of the baseline.",
    "after": "the mean of what is proposed instead, or of the best of the others.",
    "p by category": "p after the correction of Benjamini and Hochberg over the categories: exploratory, a hint "
    "where to look and no proof.",
    "layered search": "a configuration that searches abstracts, then overviews, then details.",
    "at threshold": "queries for which an abstract was similar enough.",
    "lower step": "queries for which one was similar enough at a lower threshold only.",
    "all details": "queries for which none was, so that all details were searched.",
    "no result": "queries for which nothing was found.",
    "L0, L1, L2 found": "the share of queries on which each layer let something through.",
    "p50 ms L0, L1, L2, all": "half of the searches took less, in each layer and as a whole.",
    "p99 ms L0, L1, L2, all": "99 of 100 searches took less.",
    "contender": "what is gated: a system, a strategy, a weights file or a list.",
    "kind": "what the finding is about: the lists themselves, the baseline, the anchor, a slice, a promise.",
    "finding": "what was found, in words.",
    "now": "the mean today.",
    "change": "the mean today less that of the baseline, on the same queries.",
    "p worse": "how often a drop at least this large would appear by chance, on the mean that the gate tests.",
    "lists changed": "queries whose list differs from that of the baseline at any place.",
    "catches": "how often the gate would stop a drop of the size that it is meant to stop.",
    "slice": "the queries of one category or intent.",
    "p by slice": "p of a drop in the slice, corrected over all slices.",
    "regression": "what was made worse on purpose.",
    "drop": "how much nDCG@10 it costs.",
    "date": "when the baseline was updated.",
    "who": "who updated it.",
    "reason": "why, in the words of whoever did it.",
    "act": "the kind of act.",
    "acts": "how many there are in the log.",
    "lift": "acts on relevant entries over acts on others: at 1 an act tells nothing.",
    "rule": "how weights are chosen.",
    "gain": "the gain that the learner expects of that choice.",
    "would use": "what the rule would choose.",
    "policy": "the configuration that ranked the logged lists.",
    "searches": "how many of them it ranked.",
    "agreement": "the share of places that we can reproduce; below 80% a log is foreign.",
    "how": "replayed: its configuration is known; reconstructed: it is a candidate's; foreign: neither.",
    "set aside": "the rule that these lines break.",
    "count": "how many there are.",
    "lines": "the first of them.",
    "query": "the text of the query, its id and its category.",
}
"""The meaning of every column that is not a metric or a configuration."""


def explained(
    sections: Sequence[Section],
    provenance: Iterable[tuple[str, str]],
    metrics: Iterable[str] = (),
    method: Section | None = None,
) -> tuple[Section, ...]:
    """The sections that have something in them, what their columns and metrics mean, and where all comes from."""
    terms = tuple(dict([*_measures(metrics), *_columns(sections)]).items())
    last = [
        Section("glossary", "What the columns mean", (TermList(terms),) if terms else (), folded=True),
        *([method] if method else []),
        Section("provenance", "Where this comes from", (TermList(tuple(provenance), code=True),), folded=True),
    ]
    return tuple(section for section in (*sections, *last) if section.blocks)


def _measures(metrics: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in metrics:
        if words := meaning(name):
            yield name, words


def _columns(sections: Iterable[Section]) -> Iterator[tuple[str, str]]:
    for section in sections:
        for block in section.blocks:
            for column in block.columns if isinstance(block, TableBlock) else ():
                if column.name in COLUMNS:
                    yield column.name, COLUMNS[column.name]
