"""Results that say what to run: a weights file, or under try two, `*.current.json` and `*.try.json`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from steelyard.config.search_config import SearchConfig
from steelyard_eval.choose.weights_files import holds, write_and_log, write_weights
from steelyard_eval.common.documents.parts import DecidedDocument, StepRecord
from steelyard_eval.common.results import Reported
from steelyard_eval.datasets import Dataset
from steelyard_eval.decide.steps import (
    WEIGHTS,
    beside,
    exporting,
    indexing,
    installed_first,
    taking_turns,
    today,
    using,
)
from steelyard_eval.export import TARGETS

DecidedT = TypeVar("DecidedT", bound=DecidedDocument)
ChosenT = TypeVar("ChosenT", bound="ChosenWeights[Any]")
SAME = ", the same search as before"


@dataclass(frozen=True, repr=False)
class ChosenWeights(Reported[DecidedT]):
    """An answer on which weights to use; `record` is its JSON document.

    Attributes
    ----------
    config : SearchConfig or None
        What to run, as the weights file holds it: what was chosen under ship, else the current configuration;
        None where that is known by its lists alone.
    attempt : SearchConfig or None
        What is worth trying under try.
    interrupted : bool
        Whether Ctrl-C left something out.
    aside : tuple of str
        Notices that a terminal leaves out: settings that were not tuned, signals that nothing in sight reads.
    """

    config: SearchConfig | None
    attempt: SearchConfig | None = None
    interrupted: bool = False
    aside: tuple[str, ...] = ()

    def save_weights(self, path: str | Path) -> list[Path]:
        """Write the weights file, or under try `*.current.json` and `*.try.json`; returns what was written.

        What an earlier run left beside it is removed, or it would be taken for what this one says; `path` itself
        stays as it was under try. What is replaced or removed is copied first, and that is logged.
        """
        return write_and_log(weights_files(path, self.config, self.attempt))

    def saved(self: ChosenT, path: str | Path, dataset: Dataset) -> tuple[ChosenT, list[str]]:
        """The same answer about these files, which are written; a line each on what is in it.

        `dataset` is the one whose kept runs have what earlier runs wrote there.
        """
        target = Path(path)
        to = (self.record.get("restriction") or {}).get("target") or ""
        moved = {taking_turns(WEIGHTS, dataset): taking_turns(target, dataset)}
        for usual, file in ((WEIGHTS, target), (beside(WEIGHTS), beside(target))):
            moved[using(usual, dataset)] = using(file, dataset)
            moved |= {exporting(usual, each): exporting(file, each) for each in TARGETS}
            indexed = (indexing(each, dataset, "") for each in (usual, file))
            moved |= {old.command: new.command for old, new in zip(*indexed, strict=True)}
        steps = [
            StepRecord(what=step["what"], command=moved.get(step["command"], step["command"]))
            for step in self.record["steps"]
        ]
        content = "what was chosen" if self.record["verdict"] == "ship" else "what you run today"
        files = weights_files(target, self.config, self.attempt)
        same = {file for file, config in files.items() if config is not None and holds(file, config.to_json())}
        before = write_weights(files, dataset)
        written = [file for file, config in files.items() if config is not None]
        other = (
            "what to try"
            if self.record["verdict"] == "try"
            else f"the best that may be chosen{to and ' for '}{to}"
        )
        lines = [
            f"{file}: {other if file == beside(target) else content}{SAME if file in same else ''}"
            for file in written
        ]
        if target not in files and target.is_file():
            lines.append(f"{target}: unchanged, from before this run")
        again, here = self.record.get("command"), [] if target == WEIGHTS else ["-o", str(target)]
        said = {
            "steps": installed_first(steps, again and " ".join([again, *map(shlex.quote, here)])),
            **({"replaced": before} if before else {}),
        }
        return replace(self, record={**self.record, **said}), lines + before


def weights_files(
    path: str | Path, config: SearchConfig | None, attempt: SearchConfig | None
) -> dict[Path, SearchConfig | None]:
    """What each file is to hold; None for one that is to be removed."""
    target = Path(path)
    pair = {today(target): None if attempt is None else config, beside(target): attempt}
    return pair | ({target: config} if attempt is None and config is not None else {})
