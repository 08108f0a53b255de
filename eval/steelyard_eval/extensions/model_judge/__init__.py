"""A language model as a judge of pairs: its labels, and whether they may count beside a person's."""

from steelyard_eval.extensions.model_judge.judging import (
    ModelSession,
    agreed,
    ask,
    cost,
    judge_name,
    judged_by_person,
    model_agreement,
    model_labels,
    opened,
)

__all__ = [
    "ModelSession",
    "agreed",
    "ask",
    "cost",
    "judge_name",
    "judged_by_person",
    "model_agreement",
    "model_labels",
    "opened",
]
