"""The answer that a choice is: a key with its facts, and what to do."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from steelyard.base.errors import ConfigError, quote
from steelyard.base.files import backup_path, canonical, read_bytes, write_text
from steelyard.config import LISTS, SearchConfig, read_json
from steelyard.systems import find_system
from steelyard_eval.candidates.choice_limits import Best, describe_cost
from steelyard_eval.choose.blockers import DRAWN, MIN_TO_SHIP
from steelyard_eval.choose.choice import Decided, decide
from steelyard_eval.choose.few_labels import UnlabelledAdvice
from steelyard_eval.choose.rule import Ruling
from steelyard_eval.common.configurations import written_name
from steelyard_eval.datasets import Dataset
from steelyard_eval.datasets.dataset import UNNAMED
from steelyard_eval.export import TARGETS, unsupported, vector_notes
from steelyard_eval.measures.paired import MARGIN
from steelyard_eval.recording.next_steps import (
    WEIGHTS,
    current_path,
    describe_config,
    installed_first,
    label_more_step,
    label_random_step,
    label_step,
    round_up,
    shell_word,
    to_do,
    try_path,
)
from steelyard_eval.recording.provenance import tuned_on_dataset
from steelyard_eval.result import structs
from steelyard_eval.result.sentences import say
from steelyard_eval.result.structs import Answer, Estimate, Fact, Message, Step
from steelyard_eval.views.frames import Answered

MAX_SENTENCE_CHARS = 320  # characters of a sentence
MAX_RANGE = 20  # times as many labels: a wider range is no better than its middle
SHORT_FORMULA = 60  # characters of a formula that a sentence can hold


def answer_of(decided: Decided, empty: bool = False) -> Answer:
    """Verdict, gain and odds; what to do; the formula. `empty`: nothing that was tried finds anything."""
    choice, dataset, model = decided.choice, decided.choice.source.dataset, decided.choice.source.model
    written = decided.picked or decided.instead
    formula = "" if written is None else describe_config(written)
    verdict: str = choice.advice.verdict
    if decided.public:
        answer = advised(choice.advice, dataset, formula, model)
    else:
        ruling, label, before = decided.ruling, choice.current.label, choice.current.values[choice.metric]
        verdict, blocker = ruling.verdict, ruling.blocker
        said = describe_decision(ruling, label, str(choice.metric), _spoken_name(written), float(before.mean()))
        if empty and verdict == "keep":
            said, last = Message("keep_nothing_found", {"current": label}), [Step("check_language")]
        elif blocker is None:
            last = label_more_step(dataset, ruling.more, "settle" if verdict == "try" else "halve")
        elif blocker.remedy in DRAWN:
            last = [label_random_step(dataset, blocker.remedy, **blocker.facts)]
        else:
            last = [Step(blocker.remedy, blocker.facts)]
        answer = Answer(said.key, said.facts, [], to_do(verdict, last, dataset, model), formula)
    if (cost := restriction_cost(decided)) is None:
        return answer
    kept_out = verdict == "keep" and choice.not_allowed is not None  # what is used cannot be written
    above = [Message("best_allowed")] if kept_out and answer.formula else []
    steps = for_target(answer.steps, choice.restriction.target, verdict, kept_out)
    return structs.replace(answer, because=[*answer.because, *above, cost], steps=steps)


def _spoken_name(config: SearchConfig | None) -> str:
    if config is None:
        return ""
    system, _, options = written_name(config).rstrip("]").partition("[")
    if config.system not in ("plain", LISTS):
        documented = find_system(config.name).config(config.limit).effective
        new = "new weights" if config.effective.weights and config.effective != documented else ""
        return say(Message("name_system", {"system": system, "what": options or new}))
    formula, strategy = describe_config(config), config.effective
    facts: dict[str, Fact] = {"family": strategy.shown_as, "signals": sorted(strategy.signals)}
    facts |= {"what": options} if options else {}
    return formula if len(formula) <= SHORT_FORMULA else say(Message("name_family", facts))


def restriction_cost(decided: Decided) -> Message | None:
    """What the restriction costs; None without one."""
    choice = decided.choice
    if choice.free is None:
        return None
    sides = _best(decide(choice.free)), _best(decided, always=bool(choice.not_allowed))
    facts: dict[str, Fact] = {"kept": len(choice.candidates.grid), "of": len(choice.free.candidates.grid)}
    facts["not_allowed"] = say(choice.not_allowed) if choice.not_allowed else None
    return describe_cost(choice.restriction, *sides, choice.scored.units, str(choice.metric), facts)


def _best(decided: Decided, always: bool = False) -> Best:
    """By the estimator of every promise; `always` where what is used today cannot be kept."""
    choice, candidate = decided.choice, decided.ruling.candidate
    expect = replace(choice.expect, always=always)
    formula = describe_config(decided.picked or choice.written_as(choice.top))
    return Best(formula, expect.unseen, expect.of(choice.top if candidate is None else candidate))


def describe_decision(decision: Ruling, current: str, metric: str, name: str = "", before: float = 0.0) -> Message:
    """What is said of a decision: of what is named, the metric today and as it is expected, with its range."""
    facts: dict[str, Fact] = {"current": current, "metric": metric}
    if decision.verdict == "keep" and decision.blocker:
        return Message(f"keep_{decision.blocker.key}", {**facts, **decision.blocker.facts})
    if decision.verdict == "keep":
        return Message("keep", {**facts, "bound": decision.bound, "open": decision.bound > MARGIN})
    gain, ends = decision.gain, (-before, 1 - before)
    mean, low, high = (min(max(value, ends[0]), ends[1]) for value in (gain.mean, gain.low, gain.high))
    facts |= {"choice": name, "before": before, "after": before + mean, "gain": Estimate(mean, low, high)}
    if decision.verdict == "ship":
        return Message("ship", {**facts, "worse": gain.worse if low <= 0 else None})
    if decision.blocker:
        said = Message(f"try_{decision.blocker.key}", {**facts, **decision.blocker.facts})
        return said if len(say(said)) <= MAX_SENTENCE_CHARS else Message("try_blocked", facts)
    more, least, most = (count and round_up(count) for count in (decision.more, *decision.more_range))
    facts |= {"strict": gain.low > 0, "more": more}
    narrow = least != most and least is not None and most is not None and most <= MAX_RANGE * least
    facts |= {"least": least, "most": most} if narrow else {"rough": more is not None and least != most}
    return Message("try_more", facts)


def advised(advice: UnlabelledAdvice, dataset: Dataset, formula: str, model: str) -> Answer:
    """What to do without proof; `formula` is what is worth trying, `model` of the vectors."""
    if advice.pairs:
        last = [label_step(dataset, "judge_more_pairs", pairs=advice.more)]
    elif advice.labels_needed:
        last = label_more_step(dataset, advice.labels_needed, "decide")
    else:
        last = [label_step(dataset, "judge_pairs" if dataset.queries else "write_and_judge", pairs=dataset.pairs)]
        if dataset.unlabelled >= MIN_TO_SHIP:
            last.append(label_step(dataset, "judge_whole", option="--random", fewest=MIN_TO_SHIP))
    steps = to_do(advice.verdict, last, dataset, model)
    return Answer(advice.message.key, advice.message.facts, [], steps, formula)


def for_target(steps: Sequence[Step], target: str, verdict: str, kept_out: bool = False) -> list[Step]:
    """Steps of a choice that is written for a target; it is searched there, not here."""
    if not target:
        return list(steps)
    path = try_path(WEIGHTS) if kept_out or verdict not in ("ship", "keep") else WEIGHTS
    command = ["steelyard", "export", str(path), "--to", target]
    written = Step("export_best" if kept_out else "export", {"target": target}, command)
    return [written, *(() if verdict == "ship" else steps[-1:])]


@dataclass(frozen=True, repr=False)
class ChosenAnswer(Answered):
    """An answer on which weights to use.

    `config` is what to run, as the weights file holds it: what was chosen under ship, else the current
    configuration, None where that is known by its lists alone. `attempt` is what is worth trying under try;
    `interrupted` says whether Ctrl-C left something out.
    """

    config: SearchConfig | None = None
    attempt: SearchConfig | None = None
    interrupted: bool = False

    def save_weights(self, path: str | Path) -> list[Path]:
        """Write the weights file, or under try `*.current.json` and `*.try.json`; returns what was written.

        What an earlier run left beside it is removed, or it would be taken for what this one says, but not by
        `learn`, which may follow `recommend`; `path` itself stays as it was under try. What is replaced or removed
        is copied first, and that is logged.
        """
        return write_and_log(self._planned_files(Path(path)))

    def saved(self, path: str | Path, dataset: Dataset) -> tuple[Self, list[str]]:
        """The same answer about these files, which are written; a line each on what is in it.

        `dataset` is the one whose kept runs have what earlier runs wrote there.
        """
        target = Path(path)
        files = self._planned_files(target)
        before = write_weights(files, dataset)
        content = "file_chosen" if self.verdict == "ship" else "file_today"
        other = "file_attempt" if self.verdict == "try" else "file_allowed"
        keys = {one: other if one == try_path(target) else content for one, config in files.items() if config}
        beside = (target, current_path(target), try_path(target))
        keys |= dict.fromkeys((one for one in beside if one not in files and one.is_file()), "file_unchanged")
        assumed = None if dataset.system else self.result.provenance.baseline
        today: dict[str, Fact] = {"assumed": assumed if assumed == UNNAMED else None}
        today |= {"known": today["assumed"] is None}
        lines = [say(Message(key, {"file": str(one), **today})) for one, key in keys.items()]
        if (offered := self.attempt or self.config) is not None and self.verdict != "keep":
            written = next(file for file, config in files.items() if config is offered)
            why = {name: unsupported(system, offered) for name, system in TARGETS.items() if not system.complete}
            takes, lacks = ([name for name in why if bool(why[name]) == lost] for lost in (False, True))
            briefest = min(why, key=lambda name: len(why[name]))
            facts: dict[str, Fact] = {"file": str(written), "takes": takes, "lacks": lacks, "tried": [*why]}
            facts["vectors"] = vector_notes(offered)
            key = "file_exports" if takes else "file_exports_nowhere"
            lines.append(say(Message(key, {**facts, "target": briefest, "why": why[briefest]})))
        words = {str(of(WEIGHTS)): str(of(target)) for of in (Path, try_path, current_path)}
        again = [*self.result.provenance.command, *([] if target == WEIGHTS else ["--out", str(target)])]
        steps = [
            structs.replace(step, command=[words.get(word, word) for word in step.command])
            for step in self.result.answer.steps
        ]
        steps = installed_first(steps, again if again[:1] == ["steelyard"] else ())
        answer = structs.replace(self.result.answer, steps=steps)
        return replace(self, result=structs.replace(self.result, answer=answer)), lines + before

    def _planned_files(self, target: Path) -> "Files":
        suggested = {current_path(target): self.attempt and self.config, try_path(target): self.attempt}
        files = suggested if self.attempt or self.result.kind != "learn" else {}
        return files if self.attempt or self.config is None else {**files, target: self.config}


Files = Mapping[Path, SearchConfig | None]  # what each file is to hold; None for one that is to be removed
_log = logging.getLogger(__name__)


def write_weights(files: Files, dataset: Dataset | None = None) -> list[str]:
    """Write these files, and remove those that are None; a line on each that was replaced, and how to undo that.

    Each is copied first, but for one that is replaced by the same search, and nothing of that is lost.
    """
    new = [_without_provenance(config.to_json()) for config in files.values() if config is not None]
    lines = []
    for file, config in files.items():
        record: object = None
        with suppress(ConfigError):  # it may hold anything, and be missing
            record = read_json(file)
        if file.is_file() and (config is None or _without_provenance(record) not in new):
            copy, name = backup_path(file), tuned_on_dataset(record)
            write_text(copy, read_bytes(file))
            facts: dict[str, Fact] = {"file": str(file), "done": "removed" if config is None else "replaced"}
            facts["data"] = quote(name) if dataset and name not in ("", dataset.name) else None
            lines.append(say(Message("file_kept", {**facts, "undo": ["cp", shell_word(copy), shell_word(file)]})))
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


def _without_provenance(record: object) -> Any:  # noqa: ANN401 -- whatever the file holds
    return canonical({**record, "provenance": None}) if isinstance(record, dict) else record
