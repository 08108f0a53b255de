"""What to say where the labels say nothing: a default that did well elsewhere, never a gain for these notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from steelyard.config.search_config import SearchConfig
from steelyard_eval.decide.duel import ENOUGH
from steelyard_eval.decide.public import (
    DEFAULT,
    PublicGains,
    as_good,
    default_config,
    measured_with,
    public_table,
)

FEWEST = 20
"""Labelled queries from which on labels choose better than the default; five do not (docs/start.md)."""
NOTHING = "Nothing was measured on your notes."


@dataclass(frozen=True)
class Advice:
    """What to do without proof; `attempt` is the default under try, `shown` what public collections showed."""

    verdict: Literal["try", "keep"]
    sentence: str
    attempt: SearchConfig | None = None
    shown: PublicGains | None = None

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
    """
    lead, then = _lead(labelled, pairs), _next(labelled, pairs)
    if reason := _nothing_known(label, config, model):
        return Advice("keep", f"Keep your {label}. {lead} {reason} {then}")
    shown = None if config is None else public_table().against(config, model, sha256)
    if shown is None:
        reason = f"Your {label} was not run on the public collections, so they say nothing about it."
        return Advice("keep", f"Keep your {label}. {lead} {reason} {then}")
    told = shown.sentence(f"your {label}")[:-1] + f"{measured_with(model)}."
    if not shown.likely:
        told = told.replace("this was", f"{DEFAULT} was")
        return Advice("keep", f"Keep your {label}. {lead} {told} {then}", shown=shown)
    attempt = default_config(config, limit, model)
    return Advice("try", f"Try {DEFAULT}. {lead} {told} {then}", attempt, shown)


def _nothing_known(label: str, config: SearchConfig | None, model: str) -> str:
    """Why nothing else is worth trying; empty where something may be."""
    if not model:
        return "There are no vectors, so there is nothing to mix words with."
    if config is not None and as_good(config):
        return "No method without labels tells which sum of bm25 and vector between 0.4 and 0.6 is better."
    return ""


def _lead(labelled: int, pairs: int) -> str:
    if not labelled:
        return NOTHING
    counted = f"{pairs} judged pairs" if pairs else f"{labelled} labelled queries"
    return f"The {counted} of your notes prove nothing yet."


def _next(labelled: int, pairs: int) -> str:
    if pairs:
        return f"Judge {max(ENOUGH - pairs, 1)} more pairs, and they count (steelyard judge)."
    more = max(FEWEST - labelled, 1)
    return f"Label {more}{' more' if labelled else ''} queries, and they decide (steelyard judge)."
