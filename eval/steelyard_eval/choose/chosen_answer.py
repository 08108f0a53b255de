"""Answers that say what to run: a weights file, or under try two, `*.current.json` and `*.try.json`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from steelyard.config.search_config import SearchConfig
from steelyard_eval.choose.choice import Choice
from steelyard_eval.choose.result import free_weights
from steelyard_eval.choose.weights_files import Files, contains_config, write_and_log, write_weights
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.paired import mean_interval
from steelyard_eval.recording.provenance import estimate, origin, promised, vouched
from steelyard_eval.recording.steps import WEIGHTS, beside, installed_first, today
from steelyard_eval.result import structs
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Said, Step
from steelyard_eval.views.answered import Answered


@dataclass(frozen=True, repr=False)
class ChosenAnswer(Answered):
    """An answer on which weights to use.

    Attributes
    ----------
    config : SearchConfig or None
        What to run, as the weights file holds it: what was chosen under ship, else the current configuration;
        None where that is known by its lists alone.
    attempt : SearchConfig or None
        What is worth trying under try.
    interrupted : bool
        Whether Ctrl-C left something out.
    aside : tuple of Said
        Notices that a terminal leaves out: settings that were not tuned, signals that nothing in sight reads.
    """

    config: SearchConfig | None = None
    attempt: SearchConfig | None = None
    interrupted: bool = False
    aside: tuple[Said, ...] = ()

    @property
    def verdict(self) -> str:
        """ship, try or keep."""
        return self.result.decision.verdict if self.result.decision else "keep"

    def save_weights(self, path: str | Path) -> list[Path]:
        """Write the weights file, or under try `*.current.json` and `*.try.json`; returns what was written.

        What an earlier run left beside it is removed, or it would be taken for what this one says; `path` itself
        stays as it was under try. What is replaced or removed is copied first, and that is logged.
        """
        return write_and_log(_files(path, self.config, self.attempt))

    def saved(self, path: str | Path, dataset: Dataset) -> tuple[Self, list[str]]:
        """The same answer about these files, which are written; a line each on what is in it.

        `dataset` is the one whose kept runs have what earlier runs wrote there.
        """
        target, files = Path(path), _files(path, self.config, self.attempt)
        same = {one for one, config in files.items() if config and contains_config(one, config.to_json())}
        before = write_weights(files, dataset)
        content = "file_chosen" if self.verdict == "ship" else "file_today"
        other = "file_attempt" if self.verdict == "try" else "file_allowed"
        lines = [
            say(Said(other if one == beside(target) else content, {"file": str(one), "same": one in same}))
            for one, config in files.items()
            if config is not None
        ]
        if target not in files and target.is_file():
            lines.append(say(Said("file_unchanged", {"file": str(target)})))
        again = [*self.result.provenance.command, *([] if target == WEIGHTS else ["-o", str(target)])]
        steps = installed_first(
            _about(self.result.answer.steps, target), again if again[:1] == ["steelyard"] else ()
        )
        answer = structs.replace(self.result.answer, steps=steps)
        return replace(self, result=structs.replace(self.result, answer=answer)), lines + before


def _about(steps: Sequence[Step], target: Path) -> list[Step]:
    """The steps with these files in the place of the usual ones."""
    words = {str(of(WEIGHTS)): str(of(target)) for of in (Path, beside, today)}
    return [structs.replace(step, command=[words.get(word, word) for word in step.command]) for step in steps]


def _files(path: str | Path, config: SearchConfig | None, attempt: SearchConfig | None) -> Files:
    """What each file is to hold; None for one that is to be removed."""
    target = Path(path)
    pair = {today(target): None if attempt is None else config, beside(target): attempt}
    return pair | ({target: config} if attempt is None and config is not None else {})


def weights_of(choice: Choice, now: Callable[[], float]) -> tuple[SearchConfig | None, SearchConfig | None]:
    """What to run, and what is worth trying, each with where it comes from; `now` gives the date."""
    shown, queries, metric = choice.picked or choice.current.config, len(choice.queries), str(choice.metric)
    known = choice.candidates.recordings[0] if shown is None else choice.candidates.recorded(shown)
    facts = origin(choice.source.dataset, dict(known.table.fingerprint), choice.seed, now)
    facts |= {"objective": metric, "verdict": choice.decision.verdict}
    facts["promise"] = promised(choice.decision.gain, metric, queries)
    units = choice.scored.units.tolist()
    facts["baseline"] = estimate(mean_interval(choice.current.values[choice.metric], units), queries)
    config = choice.current.config
    current = None if config is None else replace(config, provenance=facts)
    if choice.picked is None:
        return current, choice.instead and vouched(choice.instead, facts)
    values = choice.candidates.values(choice.picked, [choice.metric])[choice.metric]
    sample = estimate(mean_interval(values, units), queries)
    plateau = list(free_weights(choice, choice.picked).plateau())
    picked = vouched(choice.picked, {**facts, "in_sample": sample, "plateau": plateau})
    return (picked, None) if choice.decision.verdict == "ship" else (current, picked)
