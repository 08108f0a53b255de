"""A check of a data set: every fault at once, else counts and notices."""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steelyard.base.errors import quote, visible
from steelyard_eval.common.console import folded
from steelyard_eval.common.formatting import counted
from steelyard_eval.common.tabular import Frame, Tabular, as_frame
from steelyard_eval.datasets import LOGGED, Dataset, Report, check
from steelyard_eval.datasets.file_reader import FolderReader, grouped
from steelyard_eval.datasets.groups import duplicates, duplicates_in_words, judged, lack_groups, nearly
from steelyard_eval.datasets.labels import in_words, sampling, sampling_notice
from steelyard_eval.datasets.manifest import accept
from steelyard_eval.datasets.second_labels import judged_twice
from steelyard_eval.result.sentences import say

MAX_LISTED = 10


@dataclass(frozen=True, repr=False)
class Checked(Tabular):
    """What a check found; `messages` are further lines, and `more` their part of the document."""

    report: Report
    messages: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices, one line with a count for each kind."""
        data = self.report.dataset
        if data is None:
            return self.report.notices
        labels = sampling_notice(data.sampled, data.pool, data.provenance) if data.qrels else ()
        twice = [say(judged_twice(data))] if data.qrels else ()
        return (*self.report.notices, *labels, *_without_relevant(data), *twice)

    def to_json(self) -> dict[str, Any]:
        """The document of `steelyard check --json`."""
        document: dict[str, Any] = {"faults": [str(fault) for fault in self.report.faults]}
        document["notices"] = list(self.notices)
        if data := self.report.dataset:
            document |= {"name": data.name, "entries": len(data.entries), "queries": len(data.queries)}
            document |= {"sha256": data.sha256, **sampling(data.sampled, data.pool)}
            document |= {"provenance": [one.to_json() for one in data.provenance]} if data.provenance else {}
            document |= {"vectors": sorted("/".join(key) for key in data.vectors)}
            document |= {"duplicates": duplicates(data.entries), "groups": _proposed(data)}
        return {**document, **self.more}

    def to_frame(self) -> Frame:
        """Return a row for each query: id, text, split, group, and numbers of judged and relevant entries."""
        data = self.report.dataset
        rows = [(query, data.qrels.get(query.id, {})) for query in data.queries] if data else []
        return as_frame(
            {
                "query": query.id,
                "text": query.text,
                "split": query.split,
                "group": query.group,
                "judged": len(grades),
                "relevant": sum(grade > 0 for grade in grades.values()),
            }
            for query, grades in rows
        )

    def __repr__(self) -> str:
        return repr(self.report.dataset).replace("Dataset", "Checked", 1)

    def __str__(self) -> str:
        document, data = self.to_json(), self.report.dataset
        repeated = duplicates_in_words(document.get("duplicates", []))
        notices = [*self.notices, *document.get("groups", []), *([repeated] if repeated else [])]
        lines = [*grouped(self.report.faults), *(f"note: {notice}" for notice in notices)]
        if data is not None:
            lines += in_words(data.sampled, data.pool, data.provenance) if data.qrels else ()
        notes = f", {counted(len(notices), 'note')}" if notices else ""
        last = data.check_summary if data else f"{counted(len(self.report.faults), 'fault')}{notes}"
        return "\n".join(map(folded, [*lines, *self.messages, last]))

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html.escape(notice)}</li>" for notice in self.notices)
        return f"<p>{html.escape(repr(self.report.dataset))}</p><ul>{items}</ul>" + super()._repr_html_()


def checked(
    folder: Path,
    *,
    accepts: bool = False,
    known_items: bool = False,
    null: bool = False,
    current: str | None = None,
    embedder: str = "auto",
    seed: int = 0,
) -> Checked:
    """Check a folder; take files that changed, ask for known items, or shuffle labels, where that is wanted."""
    report = check(folder)
    said: list[str] = []
    more: dict[str, Any] = {}
    if accepts:
        taken = accept(folder, report.faults)
        report = check(folder) if taken else report
        said = _changes(report, taken)
        more = {"accepted": taken, "changes": [*said]}
    if report.dataset and report.dataset.queries and not report.faults:
        from steelyard_eval.explain.known_items import dead_retrievers  # with all that searches

        more["retrievers"] = list(map(say, dead_retrievers(report.dataset)))
        said += (f"note: {text}" for text in more["retrievers"])
    if known_items and report.dataset:
        from steelyard_eval.explain.known_items import ask_known_items

        more["known_items"] = ask_known_items(report.dataset, current, embedder=embedder, seed=seed)
        said.append(more["known_items"]["sentence"])
    made = Checked(report, tuple(said), more)
    return with_null(made, current, embedder, seed) if null else made


def with_null(made: Checked, current: str | None = None, embedder: str = "auto", seed: int = 0) -> Checked:
    """The same with the null check of its labels, where there are no faults."""
    from steelyard_eval.explain.known_items import null_check

    if made.report.dataset is None:
        return made
    found = null_check(made.report.dataset, current, embedder, seed)
    more = {**made.more, "null_check": dict(found.facts)}
    return replace(made, messages=(*made.messages, say(found)), more=more)


def _changes(report: Report, taken: Mapping[str, str | None]) -> list[str]:
    """What was accepted, a line each: files, what differs since the last kept run, vectors of the texts before."""
    from steelyard_eval.recording.history import changes_since_last_run

    if report.dataset is None or not taken:
        return ["accepted: nothing, as " + ("there are other faults" if report.faults else "no file differs")]
    lines = [f"accepted: {visible(name)}{'' if digest else ', which is gone'}" for name, digest in taken.items()]
    lines += changes_since_last_run(report.dataset)
    arrays = FolderReader(report.dataset.path).arrays()
    for name in taken:
        part = f"{name.partition('.jsonl')[0]}."
        if old := [array for array in arrays if array.startswith(part) and array not in taken]:
            remedy = "if a text changed, record them again or delete them"
            lines.append(f"warning: vectors of the texts before in {', '.join(map(visible, old))}; {remedy}")
    return lines


def _without_relevant(data: Dataset) -> Iterator[str]:
    """Which queries measure nothing: those without a label, where others have some, and those with zeros alone."""
    asked = [query for query in data.queries if data.qrels and query.answerable and query.split != LOGGED]
    none = [query.id for query in asked if query.id not in data.qrels]
    zeros = [query.id for query in asked if query.id in data.qrels and not any(data.qrels[query.id].values())]
    if 0 < len(none) <= MAX_LISTED:
        yield f"without labels: {_ids(none)}"
    if zeros:
        count = counted(len(zeros), "query has", "queries have")
        yield f"{count} labels and no relevant entry, so every search scores 0: {_ids(zeros)}"


def _ids(ids: Sequence[str]) -> str:
    return ", ".join([*(quote(id_, 40) for id_ in ids[:MAX_LISTED]), *(["..."] if len(ids) > MAX_LISTED else [])])


def _proposed(dataset: Dataset) -> list[str]:
    """Groups that queries seem to have; what measures them is loaded where there are any."""
    queries = judged(dataset, dataset.split("all")) if dataset.qrels else ()
    said = nearly(queries)
    if lack_groups(queries):
        from steelyard_eval.explain.known_items import shared_scopes

        said = [*shared_scopes(dataset, queries), *said]
    return list(map(say, said))
