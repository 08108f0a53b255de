"""What to say where the labels say nothing: a default that did well elsewhere, never a gain for these notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from steelyard.config.search_config import SearchConfig
from steelyard_eval.common.answer import Conclusion, name_of
from steelyard_eval.datasets import Dataset
from steelyard_eval.decide.duel import ENOUGH
from steelyard_eval.decide.public import (
    DEFAULT,
    PublicGains,
    as_good,
    default_config,
    measured_with,
    public_table,
)
from steelyard_eval.decide.steps import to_do

FEWEST = 20
"""Labelled queries from which on labels choose better than the default; five do not (docs/start.md)."""
NOTHING = "nothing was measured on your notes"
OTHER = "the default sum of bm25 and vector"
"""The default, where it is not what is worth trying."""
LACKED = {
    "severity": "severity",
    "importance": "importance",
    "importance_tier": "importance_tier",
    "document_type": "document_type",
    "spec_level": "spec_level",
    "promised": "type",
    "popularity": "access_count",
    "retrievability": "stability",
    "corrections": "correction_count",
    "tags": "tags",
    "domain": "domain",
}
"""Signals that no public collection has, and the field of an entry that each reads."""
ASKED = frozenset({"tags", "domain"})
"""Those that compare an entry with what its query names."""


@dataclass(frozen=True)
class Advice:
    """What to do without proof: in a sentence, and what would decide.

    `attempt` is the default under try, `shown` what public collections showed, `pairs` whether to judge by duel.
    """

    verdict: Literal["try", "keep"]
    sentence: str
    remedy: str
    attempt: SearchConfig | None = None
    shown: PublicGains | None = None
    pairs: bool = False
    beside: str = ""

    def answer(self, dataset: Dataset, formula: str) -> Conclusion:
        """The same as an answer; `formula` is what is worth trying."""
        begin = "write queries and " if self.pairs and not dataset.queries else ""
        steps = to_do(self.verdict, dataset, begin + self.remedy, pairs=self.pairs)
        return Conclusion(self.sentence, steps, formula, self.beside)

    def to_json(self) -> dict[str, Any] | None:
        """What public collections showed, as plain JSON values."""
        return None if self.shown is None else {"default": DEFAULT, **self.shown.to_json()}


def advise(
    label: str,
    config: SearchConfig | None,
    limit: int,
    model: str,
    sha256: str = "",
    labelled: int = 0,
    pairs: int = 0,
    beside: str = "",
) -> Advice:
    """What to do with a current configuration of which the labels prove nothing.

    Parameters
    ----------
    label, config : what is used today; None where it is known by its lists alone.
    limit : length of the lists.
    model : the model of the vectors; empty without any.
    sha256 : of the data set, which says nothing about itself if it is one of the public collections.
    labelled : how many different questions have labels, fewer than `FEWEST`.
    pairs : how many pairs were judged, where they were chosen by duel.
    beside : what has to be known of a try (`lacked`).
    """
    lead, own = _lead(labelled, pairs), name_of(label)
    then, by_pair = _next(labelled, pairs), bool(pairs) or not labelled
    if reason := _nothing_known(label, config, model):
        return Advice("keep", f"Keep {own}: {lead}. {reason}", then, pairs=by_pair)
    shown = None if config is None else public_table().against(config, model, sha256)
    if shown is None:
        told = f"Keep {own}: {lead}, and it was not run on the public collections."
        return Advice("keep", told, then, pairs=by_pair)
    if not shown.likely:
        told = shown.in_words("it", OTHER)
        said = f"Keep {own}: {lead}; {told}{measured_with(model)}."
        return Advice("keep", said, then, shown=shown, pairs=by_pair)
    told = shown.in_words(own)
    attempt = default_config(config, limit, model)
    return Advice("try", f"Try: {lead}; {told}{measured_with(model)}.", then, attempt, shown, by_pair, beside)


def lacked(config: SearchConfig | None, dataset: Dataset) -> str:
    """By what the current configuration ranks here and could not rank there; empty where there is nothing."""
    used = () if config is None else sorted(LACKED.keys() & config.effective.signals())
    known = [
        name
        for name in used
        if len({getattr(entry, LACKED[name]) for entry in dataset.entries}) > 1
        and (name not in ASKED or any(getattr(query, name) for query in dataset.queries))
    ]
    if not known:
        return ""
    return (
        f"What you use ranks by {', '.join(known)}, which the public collections lack, so it may do better here."
    )


def _nothing_known(label: str, config: SearchConfig | None, model: str) -> str:
    """Why nothing else is worth trying; empty where something may be."""
    if not model:
        return "There are no vectors, so there is nothing to mix words with."
    if config is not None and as_good(config):
        return "Without labels no method tells which sum of bm25 and vector between 0.4 and 0.6 is better."
    return ""


def _lead(labelled: int, pairs: int) -> str:
    if not labelled:
        return NOTHING
    counted = f"{pairs} judged pairs" if pairs else f"{labelled} labelled queries"
    return f"the {counted} of your notes prove nothing yet"


def _next(labelled: int, pairs: int) -> str:
    if pairs or not labelled:
        return f"judge {max(ENOUGH - pairs, 1)}{' more' if pairs else ''} pairs, and they count"
    return f"label {max(FEWEST - labelled, 1)} more queries, and they decide"
