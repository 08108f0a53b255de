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
    default_config,
    near_default,
    public_table,
    vectors_of,
)
from steelyard_eval.datasets import Dataset
from steelyard_eval.result.structs import Fact, Said

FEWEST = 20
"""Labelled queries from which on labels choose better than the default; five do not (docs/start.md)."""
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
    """What to do without proof, and what is said of it.

    `attempt` is the default under try, `shown` what public collections showed; `labelled` and `pairs` are what was
    judged: different questions, and single pairs by duel; `more` pairs count.
    """

    verdict: Literal["try", "keep"]
    said: Said
    attempt: SearchConfig | None = None
    shown: PublicGains | None = None
    labelled: int = 0
    pairs: int = 0
    more: int = 0

    @property
    def labels_needed(self) -> int | None:
        """How many more queries to label; None where it is pairs."""
        return max(FEWEST - self.labelled, 1) if self.labelled and not self.pairs else None


def advise(
    label: str,
    config: SearchConfig | None,
    limit: int,
    model: str,
    sha256: str = "",
    labelled: int = 0,
    pairs: int = 0,
    facts: Sequence[str] = (),
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
    facts : by what it ranks here and could not rank there (`lacked`), so that its figures there are of
        something else.
    """
    known: dict[str, Fact] = {"current": label, "unmeasured": not labelled}
    known |= {
        "pairs": pairs if labelled and pairs else None,
        "labelled": labelled if labelled and not pairs else None,
    }
    advice = partial(Advice, labelled=labelled, pairs=pairs)
    if not model:
        return advice("keep", Said("public_no_vectors", known))
    if config is not None and near_default(config):
        return advice("keep", Said("public_as_good", known))
    shown = None if config is None or facts else public_table().against(config, model, sha256)
    if shown is None:
        lacks = Said("public_lacks", {**known, "facts": list(facts)})
        return advice("keep", lacks if facts else Said("public_not_run", known))
    known |= {**shown.facts, "vectors": vectors_of(model)}
    if not shown.likely:
        return advice("keep", Said("public_keep", known), shown=shown)
    attempt = default_config(config, limit, model)
    return advice("try", Said("public_try", known), attempt, shown)


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
