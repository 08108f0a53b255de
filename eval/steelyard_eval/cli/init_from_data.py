"""`steelyard init`: a description of the data set, a first baseline and a workflow, without a question.

What can be found out is: where the data set is, its name and clock, what is used today. Files that exist are kept.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from steelyard.base.errors import MASK, PATH_WIDTH, ConfigError, DataError, quote, visible
from steelyard.base.fields import format_time
from steelyard.base.files import canonical, regular_target, write_text
from steelyard.config import read_json
from steelyard_eval.cli.workflow import GITLAB, named, recorded, remedy, usual_workflow, workflow_text
from steelyard_eval.common import extension
from steelyard_eval.compare.contenders import Given, read
from steelyard_eval.compare.list_contenders import ListContender
from steelyard_eval.datasets import check, load
from steelyard_eval.datasets.file_reader import FolderReader
from steelyard_eval.datasets.folder import FOLDER as JUDGMENTS
from steelyard_eval.datasets.folder import data_sets, fault_message, is_beir
from steelyard_eval.datasets.labels import JudgedPool, sampling, sampling_notice
from steelyard_eval.datasets.manifest import FILE as MANIFEST
from steelyard_eval.datasets.manifest import FILES, Naming, holds_hash
from steelyard_eval.gate.baseline import Baseline
from steelyard_eval.gate.gate import update
from steelyard_eval.gate.lists import read_contenders
from steelyard_eval.gate.setup import BASELINE, Gate
from steelyard_eval.recording.next_steps import shell_word
from steelyard_eval.recording.provenance import tuned_on_dataset
from steelyard_eval.recording.workspace import embedder_of

WEIGHTS = Path("search-weights.json")
_PLAIN = re.compile(r"[\w./ -]+", re.ASCII)  # paths that mean nothing else in a workflow


@dataclass(frozen=True)
class InitResult:
    """What `init` found out, the files it wrote, those that were there and are kept, and what is left open.

    `needed` is all that has to be committed, `command` gates here, and `gates` says whether there is a workflow.
    """

    dataset: str
    gated: str
    written: list[str]
    kept: list[str]
    notices: list[str]
    needed: list[str]
    command: str
    gates: bool

    def __str__(self) -> str:
        lines = [f"{self.dataset} is gated with {self.gated}"]
        lines += [f"written: {path}" for path in self.written] + [f"kept: {path}" for path in self.kept]
        lines += [f"note: {notice}" for notice in self.notices]
        lines += [f"commit what the gate reads: {shlex.join(['git', 'add', *self.needed])}"]
        then = "The workflow then gates every pull request; here" if self.gates else "next"
        return "\n".join([*lines, f"{then}: {self.command}"])


def start(
    folder: str | Path | None = None,
    current: Given | None = None,
    *,
    baseline: Path = BASELINE,
    workflow: str | Path = "",
    embedder: str = "auto",
    sampled: str = "",
    pool: JudgedPool | None = None,
    install: str = "",
) -> InitResult:
    """Write what is missing of dataset.json, the baseline and the workflow; see the command for the parameters.

    Raises DataError when there is no data set, or it has faults; nothing is written then; ConfigError when it has
    no labels, for a path or an endpoint that a workflow cannot hold, for weights or a run of another folder, which
    a baseline may not name, for the baseline of another data set, and when dataset.json says otherwise how the
    labels came about; MachineError when a file cannot be written.
    """
    place = find_dataset(Path()) if folder is None else Path(folder)
    asked, source = _asked(current), named(install) if install else recorded()
    _check_paths(place, baseline, current)
    workflow = Path(workflow or usual_workflow(_top()))
    for path in (place / MANIFEST, baseline, workflow):
        regular_target(path)
    files = {place / MANIFEST: _describe(place, sampled, pool)}  # whether it was written
    dataset = load(place)
    notices = [*sampling_notice(dataset.sampled, dataset.pool, dataset.provenance), *_misplaced(place)]
    given, others = current, ""
    if given is None:
        with suppress(ConfigError):  # whoever reads the file whole says what is wrong with it
            others = tuned_on_dataset(read_json(WEIGHTS)) if WEIGHTS.is_file() else ""
        given = str(WEIGHTS) if WEIGHTS.is_file() and others in ("", dataset.name) else dataset.today
    embedder = embedder_of(dataset, embedder, [given] if isinstance(given, str) else [])
    gate = Gate.of(dataset, baseline, embedder)
    files[baseline] = gate.baseline is None
    if gate.baseline is None:
        gated = str(given)
        if others not in ("", dataset.name):
            told = f"{WEIGHTS} was chosen on the data set {quote(others)}, so it is not taken"
            notices.append(f"{told}; --current {WEIGHTS} takes it")
        update(gate, given, reason="the first baseline")
    else:
        _check_own(gate.baseline, gate)
        labels = [contender.label for contender in gate.baseline.contenders]
        gated = ", ".join(labels)
        if current is not None and (label := read(current).label) not in labels:
            instead = gate.replacing(visible(str(current)))
            notices.append(f"{baseline} still gates {gated} alone; to gate {quote(label)} in its place: {instead}")
    if workflow.exists():
        files[workflow] = False
        if workflow.name == GITLAB and b"steelyard gate" not in workflow.read_bytes():
            other = usual_workflow(_top(), "relevance")
            notices.append(f"add --workflow {other}, and include that file in {workflow}, which runs no gate")
    elif source:
        files[workflow] = True
        write_text(workflow, workflow_text(workflow, place, baseline, source, embedder, asked))
    else:
        notices.append(remedy(place))
    gated_by = Gate.of(dataset, baseline).needed().contenders
    own = [Path(one.written) for one in gated_by if one.kind in FILES.values()]
    log = dataset.feedback
    unread = [place / JUDGMENTS, *place.glob("*.bak"), *([log] if log and not holds_hash(place, log.name) else [])]
    vendored = [Path(source)] if source and Path(source).exists() else []
    there = [workflow, *vendored] if workflow in files else []
    needed = [shell_word(path) for path in (place, *own, baseline, *there)]
    needed += [f":!{shell_word(path)}" for path in unread if path.exists()]
    written, kept = ([str(path) for path, new in files.items() if new is wanted] for wanted in (True, False))
    return InitResult(
        str(place), gated, written, kept, notices, needed, shlex.join(gate.command), gates=bool(there)
    )


def _top() -> Path:
    """The repository that the working directory is in, else that directory."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def _misplaced(place: Path) -> Iterator[str]:
    """What keeps a workflow from running, as it is read at the top of a repository alone."""
    top = _top()
    if top != Path.cwd():
        where = quote(str(top), PATH_WIDTH)
        yield f"workflows run only at the top of a repository; run steelyard init there, in {where}"
    if not place.resolve().is_relative_to(top) or place.is_absolute():
        yield f"the workflow names {shell_word(place)}, which its host lacks; name a folder of the repository"


def _check_own(old: Baseline, gate: Gate) -> None:
    """ConfigError for a baseline of another data set, which would be kept and gate nothing of this one."""
    name = gate.dataset.name
    if old.dataset != name and gate.differing:
        other = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "other"
        raise ConfigError(
            f"{shell_word(gate.path)} gates {quote(old.dataset)}, not {quote(name)}; to gate both, "
            f"add --baseline {BASELINE.with_stem(f'baseline.{other}')} --workflow {usual_workflow(_top(), other)}"
        )


def find_dataset(root: Path) -> Path:
    """The only folder with a corpus, at most two levels below; DataError when there is none or several."""
    folders = data_sets(root)
    if len(folders) == 1:
        return folders[0]
    there = f"there are {len(folders)}: {', '.join(map(str, folders[:10]))}" if folders else "there is none"
    raise DataError(f"name the folder of the data set (corpus.jsonl, queries.jsonl, qrels.txt); {there}")


def _check_paths(place: Path, baseline: Path, current: Given | None) -> None:
    """ConfigError for a path that means something in a workflow, and for a file that no workflow could open."""
    for path in (place, baseline):
        if not _PLAIN.fullmatch(str(path)):
            raise ConfigError(
                f"a workflow cannot contain {quote(str(path), PATH_WIDTH)}; use letters, digits, ., -, _ and /"
            )
    naming = Naming.of_baseline(baseline)  # it names files of its folder alone
    for asked in read_contenders(current) if current is not None else ():
        if asked.one.kind in FILES.values() and not Path(asked.written).exists():
            raise ConfigError(f"--current {quote(asked.written, PATH_WIDTH)}: there is no such file")
        if asked.one.kind in FILES.values() and not naming.holds(asked.written):
            where = quote(str(naming.folder.resolve()), PATH_WIDTH)
            raise ConfigError(
                f"{quote(asked.written, PATH_WIDTH)} is outside {where}, and a gate opens only files inside it; "
                "copy the file there, or run steelyard init in a folder that holds both"
            )


def _asked(current: Given | None) -> str:
    """An endpoint, which the workflow has to name because no baseline may; empty for anything else."""
    if current is None or (contender := read(current)).kind != "endpoint":
        return ""
    keyed = isinstance(contender, ListContender) and MASK in contender.source
    if not isinstance(current, str) or keyed or extension("endpoints").holds_key(current) or "${{" in current:
        raise ConfigError("a workflow cannot contain an endpoint with a key; run `steelyard gate` yourself")
    return current


def _describe(folder: Path, sampled: str, pool: JudgedPool | None) -> bool:
    """Write what is missing of dataset.json; whether anything was. DataError for faults, which write nothing."""
    path = folder / MANIFEST
    said = {name: value for name, value in sampling(sampled, pool).items() if value is not None}
    if path.exists():
        return _state(path, said) if said else False
    if is_beir(folder):
        return False
    faults = [fault for fault in check(folder).faults if fault.file != MANIFEST]
    if faults or not folder.is_dir():
        raise DataError(fault_message(str(folder), faults or check(folder).faults))
    record: dict[str, object] = {"name": folder.resolve().name, **said}
    write_text(path, canonical(record))
    record["as_of"] = format_time(load(folder).as_of)
    write_text(path, canonical(record))
    return True


def _state(path: Path, said: Mapping[str, object]) -> bool:
    """Add what a dataset.json does not say of its labels; whether anything was added."""
    dataset = load(path.parent)
    known = {name: value for name, value in sampling(dataset.sampled, dataset.pool).items() if value is not None}
    for name in said.keys() & known.keys():
        if said[name] != known[name]:
            raise ConfigError(
                f"{quote(str(path), PATH_WIDTH)} says {name} is {quote(known[name])}, not {quote(said[name])}; "
                f"correct it there, or leave out --{name}"
            )
    if new := not said.keys() <= known.keys():
        write_text(path, canonical({**(FolderReader(path.parent).json_object(MANIFEST) or {}), **said}))
    return new
