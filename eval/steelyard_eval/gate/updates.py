"""What an update of a baseline is refused for, unless it is accepted: it would hide that search got worse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from steelyard.base.errors import ConfigError, shown, visible
from steelyard_eval.gate.answers import GateAnswers
from steelyard_eval.gate.baseline import Baseline
from steelyard_eval.gate.result import Gating
from steelyard_eval.gate.rule import SMALL


def refuse_worse(answers: Sequence[GateAnswers], old: Baseline | None, gating: Gating | None) -> None:
    """ConfigError for an adverse update: it fails, loses more than .01 nDCG@10, or drops a contender."""
    labels = {answer.label for answer in answers}
    gone = [kept.label for kept in old.contenders if kept.label not in labels] if old else []
    reasons = [f"{', '.join(map(visible, gone))} would no longer be gated"] if gone else []
    rows = gating.record["contenders"] if gating else []
    reasons += [
        f"{row['label']}: {row['text']}"
        for row in rows
        if row["verdict"] == "fail" or row["metrics"][0]["delta"] < -SMALL
    ]
    if reasons:
        raise ConfigError(
            f"{'; '.join(reasons)}: the update would hide that, so nothing was written. "
            "Add --accept-worse if that is meant"
        )


def refuse_both(
    answers: Sequence[GateAnswers], old: Baseline, differing: Iterable[str], made: Mapping[str, str]
) -> None:
    """ConfigError where a contender changed together with the data, so that nobody can tell what it cost.

    `differing` names what changed of the data, `made` has the hash of each configuration where it does not depend
    on that.
    """
    pairs = [(answer, kept) for answer in answers if (kept := old.find(answer.label)) is not None]
    changed = [
        shown(answer.label)
        for answer, kept in pairs
        if answer.strategy != kept.strategy or made.get(answer.label, kept.configuration) != kept.configuration
    ]
    if changed:
        raise ConfigError(
            f"{', '.join(differing)} changed and so did {', '.join(changed)}, so a decline could not be told; "
            "nothing was written. Update once with what was searched before and once with what is now, or add "
            "--accept-worse"
        )
