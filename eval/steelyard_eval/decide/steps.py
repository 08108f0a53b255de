"""What to do with a verdict: which file to search with, and what would settle the rest."""

from __future__ import annotations

import shlex
from pathlib import Path

from steelyard_eval.common.answer import Step
from steelyard_eval.datasets import Dataset
from steelyard_eval.recording.rankings import spelled

WEIGHTS = Path("search-weights.json")
"""Where weights go, unless another file is named."""


def beside(path: Path) -> Path:
    """search-weights.try.json for search-weights.json."""
    return path.with_name(f"{path.name.removesuffix('.json')}.try.json")


def today(path: Path) -> Path:
    """search-weights.current.json for search-weights.json."""
    return path.with_name(f"{path.name.removesuffix('.json')}.current.json")


def using(path: Path) -> str:
    """The command that searches with a weights file."""
    return shlex.join(["steelyard", "search", "VAULT", "QUERY", "--weights", str(path)])


def taking_turns(path: Path) -> str:
    """The command that serves a vault by both files of a try, in turns, and logs what is done."""
    both = ["--weights", str(today(path)), "--explore", str(beside(path)), "--share", "1"]
    return shlex.join(["steelyard", "serve", "VAULT", *both, "--log", "feedback.jsonl"])


def exporting(path: Path, target: str) -> str:
    """The command that writes a weights file for another system."""
    return shlex.join(["steelyard", "export", str(path), "--to", target])


def to_do(
    verdict: str, dataset: Dataset, remedy: str = "", *, labels: bool = True, pairs: bool = False
) -> tuple[Step, ...]:
    """What to do under a verdict: which file to search with, and what would settle the rest.

    `remedy` says it in words, `labels` whether more of them are one, and `pairs` whether of single pairs.
    """
    words = () if pairs else ("--random",)
    judge = (spelled("judge", dataset, *words, options={}) or "") if labels else ""
    more = Step(remedy or "label more of your queries", judge)
    if verdict == "ship":
        return (Step("search with it", using(WEIGHTS)),)
    return (Step("try it", using(beside(WEIGHTS))), more) if verdict == "try" else (more,)
