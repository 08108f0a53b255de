"""What is compared with what: the contenders that a call names, or the usual ones, and the baseline."""

from __future__ import annotations

from collections.abc import Collection

from steelyard.base.errors import ConfigError, nearest, shown
from steelyard_eval.common.configurations import Named
from steelyard_eval.common.default_systems import SYSTEMS
from steelyard_eval.compare.contenders import Given, read
from steelyard_eval.compare.list_contenders import ListContender


def usual(lists: tuple[str, ...] | None) -> list[str]:
    """What is compared where nothing is named: the usual systems, or recorded lists, each alone and fused."""
    if lists is None:
        return list(SYSTEMS)
    return [*lists, *([f"rrf({', '.join(lists)})"] if len(lists) > 1 else [])]


def with_baseline(
    named: list[Named | ListContender], given: Given | int | None, lists: Collection[str], today: str
) -> tuple[str, list[Named | ListContender]]:
    """The label of the baseline, and the contenders including it, in front if it was not among them.

    Where none is given it is the label `today`, what is used today, if that is compared, else the first.
    """
    labels = [contender.label for contender in named]
    if given is None:
        return today if today in labels else labels[0], named
    if isinstance(given, int):
        if not 0 <= given < len(labels):
            places = f"0..{len(labels) - 1}, the places of {', '.join(labels)}"
            raise ConfigError(f"baseline {given} is outside {places}")
        return labels[given], named
    if isinstance(given, str) and given.removesuffix(":documented") in labels:
        return given.removesuffix(":documented"), named
    try:
        added = read(given, lists=lists)
    except ConfigError as error:
        if isinstance(given, str) and "=" not in given and "(" not in given:
            raise ConfigError(f"baseline {shown(given)} is not compared{nearest(given, labels)}") from None
        raise ConfigError(f"baseline: {error}") from None
    if added.label in labels:
        return added.label, named
    return added.label, [added, *named]
