"""What to say where the labels say nothing: a default that did well elsewhere, never a gain for these notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from steelyard.config.search_config import SearchConfig
from steelyard.fusion import Expr
from steelyard_eval.choose.public import (
    PublicGains,
    as_good,
    default_config,
    measured_with,
    public_table,
)
from steelyard_eval.common.answer import Conclusion, Step, name_of
from steelyard_eval.common.documents.results import PublicRecord
from steelyard_eval.datasets import Dataset
from steelyard_eval.decide.steps import judging, labelling, to_do

FEWEST = 20
"""Labelled queries from which on labels choose better than the default; five do not (docs/start.md)."""
NOTHING = "nothing was measured on your notes"
NOT_RUN = "was not run on the public collections"
OTHER = "the default sum of bm25 and vector"
"""The default, where it is not what is worth trying."""
LACKED = {
    "severity": ("severity",),
    "importance": ("importance",),
    "importance_tier": ("importance_tier",),
    "document_type": ("document_type",),
    "spec_level": ("spec_level",),
    "promised": ("memory_type", "document_type", "context_type"),
    "popularity": ("access_count",),
    "retrievability": ("stability",),
    "corrections": ("correction_count",),
    "tags": ("tags",),
    "domain": ("domain",),
}
"""Signals that no public collection has, and the fields of an entry that each reads."""
ASKED = frozenset({"tags", "domain"})
"""Those that compare an entry with what its query names."""


@dataclass(frozen=True)
class Advice:
    """What to do without proof, in a sentence.

    `attempt` is the default under try, `shown` what public collections showed; `labelled` and `pairs` are what was
    judged: different questions, and single pairs by duel; `more` pairs count.
    """

    verdict: Literal["try", "keep"]
    sentence: str
    attempt: SearchConfig | None = None
    shown: PublicGains | None = None
    labelled: int = 0
    pairs: int = 0
    more: int = 0

    def answer(self, dataset: Dataset, formula: str, model: str) -> Conclusion:
        """The same as an answer; `formula` is what is worth trying, `model` of the vectors."""
        return Conclusion(self.sentence, to_do(self.verdict, self._last(dataset), dataset, model), formula)

    def _last(self, dataset: Dataset) -> Step:
        """What to judge until labels count."""
        if self.pairs:
            return judging(dataset, f"judge {self.more} more pairs, and they count")
        if self.labels_needed:
            return labelling(dataset, self.labels_needed, ", and they decide")
        begin = "" if dataset.queries else "write queries and "
        return judging(dataset, begin + dataset.first_pairs)

    @property
    def labels_needed(self) -> int | None:
        """How many more queries to label; None where it is pairs."""
        return max(FEWEST - self.labelled, 1) if self.labelled and not self.pairs else None

    def to_json(self) -> PublicRecord | None:
        """What public collections showed, as plain JSON values."""
        return None if self.shown is None else self.shown.to_json()


def advise(
    label: str,
    config: SearchConfig | None,
    limit: int,
    model: str,
    sha256: str = "",
    labelled: int = 0,
    pairs: int = 0,
    facts: Sequence[str] = (),
    more: int = 1,
) -> Advice:
    """What to do with a current configuration of which the labels prove nothing.

    Parameters
    ----------
    label, config : what is used today; None where it is known by its lists alone.
    limit : length of the lists.
    model : the model of the vectors; empty without any.
    sha256 : of the data set, which says nothing about itself if it is one of the public collections.
    labelled : how many different questions have labels, fewer than `FEWEST`.
    pairs, more : how many pairs were judged, where they were chosen by duel, and how many more are needed.
    facts : by what it ranks here and could not rank there (`lacked`), so that its figures there are of
        something else.
    """
    lead, name = _lead(labelled, pairs), name_of(label)
    advice = partial(Advice, labelled=labelled, pairs=pairs, more=more)
    if reason := _nothing_known(label, config, model):
        return advice("keep", f"Keep {name}: {lead}. {reason}")
    shown = None if config is None or facts else public_table().against(config, model, sha256)
    if shown is None:
        why = f"ranks by {', '.join(facts)}, which public collections lack" if facts else NOT_RUN
        told = f"Keep {name}: {lead}, and it {why}."
        return advice("keep", told)
    if not shown.likely:
        told = shown.in_words("it", OTHER)
        said = f"Keep {name}: {lead}; {told}{measured_with(model)}."
        return advice("keep", said, shown=shown)
    told = shown.in_words(name)
    attempt = default_config(config, limit, model)
    return advice("try", f"Try: {lead}; {told}{measured_with(model)}.", attempt, shown)


def lacked(config: SearchConfig | None, dataset: Dataset) -> list[str]:
    """The signals by which a configuration ranks these notes, and which no public collection has the facts for.

    On workshop, which has them, the default loses .034 to .161 to soleri, over which it was better on all ten
    public collections (docs/start.md).
    """
    used = set() if config is None else LACKED.keys() & _counted(config.effective)
    return [
        name
        for name in sorted(used)
        if any(len({getattr(entry, field) for entry in dataset.entries}) > 1 for field in LACKED[name])
        and (name not in ASKED or any(getattr(query, name) for query in dataset.queries))
    ]


def _counted(strategy: Expr) -> frozenset[str]:
    """The signals of a strategy but for those that a weight of 0 takes out of every score."""
    silent = [term.expr for term in strategy.own_terms if term.weight == 0]
    children = strategy.children()
    signals = strategy.signals().difference(*(child.signals() for child in children))
    return signals.union(*(_counted(child) for child in children if child not in silent))


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
