"""Answers that say what to run: a weights file, or under try two, `*.current.json` and `*.try.json`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from steelyard.base.errors import ConfigError, shown
from steelyard.base.files import canonical, spare, write_text
from steelyard.base.inputs import read_bytes
from steelyard.config.search_config import SearchConfig, read_json
from steelyard_eval.choose.choice import Choice
from steelyard_eval.choose.result import free_weights
from steelyard_eval.datasets import Dataset
from steelyard_eval.measures.paired import mean_interval
from steelyard_eval.recording.provenance import chosen_on, estimate, origin, promised, vouched
from steelyard_eval.recording.steps import WEIGHTS, beside, installed_first, today, word
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


Files = Mapping[Path, SearchConfig | None]  # what each file is to hold; None for one that is to be removed
_log = logging.getLogger(__name__)


def write_weights(files: Files, dataset: Dataset | None = None) -> list[str]:
    """Write these files, and remove those that are None; a line on each that was replaced."""
    lines = backup_and_describe(files, dataset)
    for file, config in files.items():
        if config is not None:
            config.save(file)
    for file, config in files.items():
        if config is None:
            file.unlink(missing_ok=True)
    return lines


def write_and_log(files: Files) -> list[Path]:
    """The same for Python, where the lines are logged; returns what was written."""
    for line in write_weights(files):
        _log.warning(line)
    return [file for file, config in files.items() if config is not None]


def backup_and_describe(files: Files, dataset: Dataset | None = None) -> list[str]:
    """Copy each of these files that is replaced, or removed where it is None, and say how to undo that.

    A file whose search one of the new files has is passed over: nothing of it is lost.
    """
    new = [_search(config.to_json()) for config in files.values() if config is not None]
    lines = []
    for file in filter(Path.is_file, files):
        record, done = _record(file), "removed" if files[file] is None else "replaced"
        if _search(record) not in new:
            copy = spare(file)
            write_text(copy, read_bytes(file))
            undo, of = ["cp", word(copy), word(file)], _of_another(dataset, record)
            lines.append(say(Said("file_kept", {"file": str(file), "done": done, "data": of, "undo": undo})))
        elif files[file] is None:
            lines.append(say(Said("file_earlier", {"file": str(file), "done": done})))
    return lines


def contains_config(file: Path, record: object) -> bool:
    """Whether a file has this search."""
    return os.path.isfile(file) and _search(_record(file)) == _search(record)  # noqa: PTH113 -- fails for no name


def _of_another(dataset: Dataset | None, record: object) -> str | None:
    """Whose file it was, where its provenance names another data set."""
    name = chosen_on(record)
    return shown(name) if dataset and name not in ("", dataset.name) else None


def _record(file: Path) -> object:
    """The JSON of a file, which may hold anything; None where it is no JSON."""
    try:
        return read_json(file)
    except ConfigError:
        return None


def _search(record: object) -> Any:  # noqa: ANN401 -- whatever the file holds
    """A weights file without when and how it was chosen."""
    return canonical({**record, "provenance": None}) if isinstance(record, dict) else record
