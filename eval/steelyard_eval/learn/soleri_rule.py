"""Soleri's rule, by its document: one weight follows the rate of accepted results (`config/adaptive.py`)."""

from __future__ import annotations

import numpy as np

from steelyard.base.errors import ConfigError
from steelyard.config.adaptive import Feedback, adapt
from steelyard.config.search_config import SearchConfig
from steelyard.systems import find_system
from steelyard_eval.learn.acts import KINDS
from steelyard_eval.learn.case import LogCase


def adapted(case: LogCase) -> tuple[SearchConfig, dict[str, float]]:
    """The current configuration after the rule, and what it counted; ConfigError where its system has no rule."""
    rule = find_system(case.config.name).adaptive
    if rule is None:
        raise ConfigError(
            f"{case.config.name} documents no rule that adapts weights to feedback; name --current soleri"
        )
    acts = case.hits.tally.acts
    counts = dict(zip(KINDS, np.rint(acts.sum(axis=0)).astype(int).tolist(), strict=True))
    names = ("accepted", "dismissed", "modified", "failed")
    feedback = Feedback(*(counts.get(name, 0) for name in names))
    return adapt(case.config, feedback, rule), {**vars(feedback), "rate": feedback.rate}
