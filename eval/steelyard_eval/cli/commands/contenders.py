"""Contenders as several commands take them: arguments and repeated options."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard_eval.compare.contenders import Given, read_run_file, read_weights, separate


def contenders_of(
    named: Sequence[str], more: Sequence[str], weights: Sequence[str], runs: Sequence[str]
) -> list[Given] | None:
    """Collect the contenders of a command, in the order of its options; None when there are none."""
    texts = [part for text in (*named, *more) for part in separate(text)]
    found: list[Given] = [*texts, *map(read_weights, weights), *map(read_run_file, runs)]
    return found or None


def strategies_of(texts: Sequence[str]) -> list[str]:
    """Split --strategies options at semicolons, because strategies contain commas."""
    return [part.strip() for text in texts for part in text.split(";") if part.strip()]
