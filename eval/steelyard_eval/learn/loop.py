"""The whole loop in one call: refresh, read what use left behind, learn, recommend, gate, propose.

Nothing that is in use is replaced unless that is asked for. The day that files name is that of the newest
evidence, so the same input gives the same bytes whenever it is run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from steelyard import __version__
from steelyard.base.errors import ConfigError, DataError
from steelyard.config.search_config import SearchConfig, read_json
from steelyard_eval.common.answer import in_terminal
from steelyard_eval.common.documents.learn import EvidenceRecord, LoopDocument, RefreshedRecord
from steelyard_eval.common.extensions import extension
from steelyard_eval.common.results import Reported, RunsOf
from steelyard_eval.compare.contenders import Given
from steelyard_eval.datasets import Dataset, load
from steelyard_eval.datasets.logs import HeldLog, decode, lines_of
from steelyard_eval.decide.steps import beside
from steelyard_eval.gate.gating import BASELINE, Gate
from steelyard_eval.gate.result import EXIT_CODES, Gating
from steelyard_eval.learn.learned import Learned, learn
from steelyard_eval.recording.runs import keep
from steelyard_eval.recording.workspace import Workspace
from steelyard_eval.tune.recommendation import Recommendation, recommend
from steelyard_eval.tune.replaced import write_weights

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

WEIGHTS = "search-weights.json"
Gathered: TypeAlias = Any
"""What the extension that reads use has gathered."""
_RANK = ("keep", "try", "ship")


@dataclass(frozen=True, repr=False)
class Looped(Reported[LoopDocument]):
    """What a run of the loop found and wrote; `record` is its document."""

    learned: Learned | None = None
    recommended: Recommendation | None = None

    @property
    def verdict(self) -> str:
        """ship, try or keep."""
        return self.record["verdict"]

    @property
    def exit_code(self) -> int:
        """0 fine, 1 search got worse than the baseline, 3 nothing could be told and that counts as a failure."""
        return self.record["exit_code"]

    def to_frame(self) -> pd.DataFrame:
        """A row an evidence: acts, labels, the baseline."""
        import pandas as pd

        return pd.DataFrame(self.record["evidence"], columns=["from", "verdict", "sentence"])

    def plot(self) -> Figure:
        """What acts show, as `Learned.plot`, else the means of the recommendation."""
        chosen = self.learned or self.recommended
        if chosen is None:
            raise ConfigError("nothing was learned or recommended, so there is nothing to plot")
        return chosen.plot()

    def report(self, path: str | Path, runs: RunsOf | None = None) -> list[Path]:
        """Write the reports of what was learned and recommended below this folder; returns their paths."""
        paths: list[Path] = []
        for name, part in (("learn", self.learned), ("recommend", self.recommended)):
            paths += part.report(Path(path) / name, runs) if part is not None else []
        return paths

    def __str__(self) -> str:
        lines = [in_terminal(self.record), ""]
        lines += [f"{row['from']}: {row['sentence']}" for row in self.record["evidence"]]
        lines += [f"note: {note}" for note in self.record["notes"]]
        return "\n".join([*lines, f"written: {', '.join(self.record['files']) or 'nothing new'}"])


def loop(
    folder: str | Path,
    sources: Sequence[str] = (),
    current: Given | None = None,
    *,
    weights: str | Path = WEIGHTS,
    baseline: str | Path = BASELINE,
    reports: str | Path = "reports/loop",
    adopt: bool = False,
    strict: bool = False,
    keep_queries: bool = False,
    embedder: str = "auto",
    now: Callable[[], float] = time.time,
) -> Looped:
    """Run the loop once over the folder of a data set; the run is kept beside it (`steelyard runs`).

    Parameters
    ----------
    sources : sequence of str
        Logs of other programs, ``KIND`` or ``KIND:PATH``; the transcripts on this machine by default. The data
        set's own feedback.jsonl is always read.
    current : any contender
        What is used today; the file `weights` by default, where it is there, else what the data set names.
    weights : str or Path
        What is in use. What is proposed goes beside it, as *.ship.json or *.try.json.
    baseline : str or Path
        Of the gate; without such a file nothing is gated.
    reports : str or Path
        A folder for the reports.
    adopt : bool
        Whether what ships replaces `weights`.
    strict : bool
        Whether an inconclusive gate, or one that is of other data, is a failure.

    Raises
    ------
    DataError, ConfigError
        For a data set, a source or a contender that cannot be used.
    """
    notes: list[str] = []
    data, refreshed = _refreshed(Path(folder), notes)
    data = data.embedded_by(embedder)
    read = [_gathered(data, source, sources, keep_queries, notes) for source in sources or ("transcripts",)]
    used = [gathered for gathered in read if gathered is not None]
    for gathered in used:
        gathered.write()
    clock = _clock(data, used, now)
    today = current if current is not None else _in_use(Path(weights)) or data.system or None
    space = Workspace.open(data, embedder)
    learned = _learned(data, used, today, space, clock, notes)
    recommended = recommend(data, today, workspace=space, timed=False, now=clock)
    chosen = _chosen(learned, recommended)
    proposal = chosen.config if chosen.record["verdict"] == "ship" else chosen.attempt
    gate = _gate(data, Path(baseline), embedder, clock, notes)
    verdict, why = _gated(chosen, proposal, gate, notes)
    files = _written(Path(weights), verdict, proposal, adopt, data, notes)
    evidence = _evidence(learned, recommended, gate[1] if gate else None)
    record: LoopDocument = {
        "schema_version": 1,
        "tool": f"steelyard {__version__}",
        "kind": "loop",
        "sentence": why or chosen.sentence,
        "formula": chosen.record.get("formula"),
        "verdict": verdict,
        "dataset": {"name": data.name, "sha256": data.sha256},
        "refreshed": refreshed,
        "use": [gathered.record for gathered in used],
        "evidence": evidence,
        "adopted": adopt and verdict == "ship",
        "exit_code": _exit_code(gate[1] if gate else None, strict),
        "notes": notes,
        "files": files,
    }
    result = Looped(record, learned, recommended)
    written = [str(path) for path in result.report(reports)]
    contents = {name: chosen.record.get(name) for name in ("chosen", "formula")} | {"verdict": verdict}
    contents = recommended.to_json() | contents
    keep(data, "loop", contents)
    return replace(result, record={**result.record, "reports": written})


def _refreshed(folder: Path, notes: list[str]) -> tuple[Dataset, RefreshedRecord | None]:
    """The data set, imported again where it was imported here."""
    about = folder / "dataset.json"
    try:
        imported = about.is_file() and "source" in read_json(about)
    except ConfigError:
        imported = False  # `load` says what is wrong with it
    if not imported:
        return load(folder), None
    try:
        done = extension("importers").refresh(folder)
    except (ConfigError, DataError) as error:
        notes.append(f"not refreshed: {error}")
        return load(folder), None
    return load(folder), {"changed": done.changed, "counts": done.counts}


def _gathered(
    data: Dataset, source: str, asked: Sequence[str], keep_queries: bool, notes: list[str]
) -> Gathered | None:
    """What a source holds; that this machine has no transcripts is no fault where nobody named them."""
    try:
        return extension("usage").gather(data, source, keep_queries=keep_queries)
    except ConfigError as error:
        if asked:
            raise
        notes.append(str(error))
        return None


def _clock(data: Dataset, used: Sequence[Gathered], now: Callable[[], float]) -> Callable[[], float]:
    """The time of the newest evidence, and never one that is still to come."""
    times = [data.as_of]
    logs: list[HeldLog | Path] = [gathered.held for gathered in used]
    for log in [*logs, data.feedback] if data.feedback else logs:
        for _, raw in lines_of(log):
            try:
                times.append(decode(raw).seconds or 0.0)
            except ValueError:
                continue
    newest = min(max(times), now())
    return lambda: newest


def _in_use(weights: Path) -> SearchConfig | None:
    return SearchConfig.load(weights) if weights.is_file() else None


def _learned(
    data: Dataset,
    used: Sequence[Gathered],
    current: Given | None,
    space: Workspace,
    clock: Callable[[], float],
    notes: list[str],
) -> Learned | None:
    """What all logs together suggest; None, with a note, where there is none that can be used."""
    lines = [raw for gathered in used for raw in gathered.held.lines]
    if data.feedback:
        lines += [raw for _, raw in lines_of(data.feedback)]
    if not lines:
        notes.append("no log of use: only labels and public collections speak")
        return None
    try:
        return learn(data, HeldLog("the logs of use", tuple(lines)), current, workspace=space, now=clock)
    except DataError as error:
        notes.append(f"nothing is learned from use: {error}")
        return None


def _chosen(learned: Learned | None, recommended: Recommendation) -> Learned | Recommendation:
    """The one decision on labels and acts where both speak; else the stronger verdict, and what labels say first.

    What public collections showed counts only where use says nothing yet.
    """
    if learned is None:
        return recommended
    public = not recommended.record.get("labelled", 1)
    if learned.record["labels"] is not None or (public and not learned.record["refusal"]):
        return learned
    mine, theirs = (_RANK.index(result.record["verdict"]) for result in (learned, recommended))
    return learned if mine > theirs or (mine == theirs and not mine) else recommended


def _gate(
    data: Dataset, baseline: Path, embedder: str, clock: Callable[[], float], notes: list[str]
) -> tuple[Gate, Gating] | None:
    """The gate, and what it says of what is in use."""
    if not baseline.is_file():
        notes.append(f"no baseline at {baseline}: nothing is gated (steelyard init writes one)")
        return None
    gate = Gate.of(data, baseline, None if embedder == "auto" else embedder, now=clock)
    gating = gate.check()
    if gating.verdict == "mismatch":
        notes.append(f"the baseline is of other data: {gating.sentence}")
    return gate, gating


def _gated(
    chosen: Learned | Recommendation,
    proposal: SearchConfig | None,
    gate: tuple[Gate, Gating] | None,
    notes: list[str],
) -> tuple[str, str]:
    """The verdict after the gate, and a sentence where the gate changes it."""
    verdict = chosen.record["verdict"]
    if verdict != "ship" or proposal is None or gate is None or gate[1].verdict == "mismatch":
        return verdict, ""
    try:
        gating = gate[0].check([proposal])
    except ConfigError as error:
        notes.append(f"what ships was not gated: {error}")
        return verdict, ""
    if gating.verdict != "fail":
        return verdict, ""
    return "try", "Try: do not ship it, for the gate says that it is worse."


def _written(
    weights: Path, verdict: str, proposal: SearchConfig | None, adopt: bool, data: Dataset, notes: list[str]
) -> list[str]:
    """Write what is proposed, where that differs from what is there; a proposal of an earlier run is removed."""
    ship = weights.with_name(f"{weights.name.removesuffix('.json')}.ship.json")
    wanted = {ship: verdict == "ship", beside(weights): verdict == "try", weights: adopt and verdict == "ship"}
    files = {path: proposal if due else None for path, due in wanted.items() if due or path != weights}
    moved = {path: config for path, config in files.items() if config is None or _in_use(path) != config}
    notes += write_weights(moved, data)
    return [str(path) for path, config in files.items() if config is not None]


def _evidence(learned: Learned | None, recommended: Recommendation, gating: Gating | None) -> list[EvidenceRecord]:
    rows: dict[str, Learned | Recommendation | Gating | None]
    rows = {"use": learned, "labels": recommended, "gate": gating}
    return [
        {"from": name, "verdict": result.record["verdict"], "sentence": result.sentence}
        for name, result in rows.items()
        if result
    ]


def _exit_code(gating: Gating | None, strict: bool) -> int:
    """1 where what is in use got worse; other data than the baseline's are no failure, as memories grow."""
    if gating is None:
        return 0
    unsure = gating.verdict in ("mismatch", "inconclusive")
    return 3 if strict and unsure else 0 if unsure else EXIT_CODES[gating.verdict]
