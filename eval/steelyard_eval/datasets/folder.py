"""Loads a data set from its folder, of our own format or of BEIR's, and checks one: every fault at once."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from steelyard.base.errors import DataError, Fault, visible
from steelyard_eval.common import extension
from steelyard_eval.common.formatting import counted
from steelyard_eval.datasets.assembly import DatasetParts, assemble
from steelyard_eval.datasets.corpus_and_queries import read_entries, read_queries
from steelyard_eval.datasets.dataset import Dataset, Report
from steelyard_eval.datasets.file_reader import FolderReader, grouped
from steelyard_eval.datasets.labels import Qrels
from steelyard_eval.datasets.manifest import Manifest, check_report_split, read_manifest
from steelyard_eval.datasets.second_labels import SECOND

OTHER_LABELS = "qrels.csv qrels.json qrels.jsonl qrels.trec labels.csv labels.tsv judgments.csv".split()  # noqa: SIM905 -- a list literal of so many words reads worse
"""Where others keep their judgments: a folder with one of these is not meant to be without labels."""


def load(path: str | Path, intents: str | None = None) -> Dataset:
    """Load a folder of Steelyard's own format or of BEIR's; `intents` as in `Dataset`.

    Raises DataError when there are faults, with their number and up to three of each rule.
    """
    report = check(path, log=False)
    if report.dataset is None:
        raise DataError(fault_message(str(path), report.faults))
    return replace(report.dataset, intents=intents)


def open_dataset(source: str | Path, intents: str | None = None) -> Dataset:
    """The data set in a folder, see `load`, else the one that a store of another program holds."""
    folder = Path(source)
    if is_data_set(folder) or (folder.is_dir() and not any(folder.iterdir())):
        return load(folder, intents)
    held: Dataset = extension("importers").open_store(source)
    return replace(held, intents=intents)


def as_dataset(source: Dataset | str | Path) -> Dataset:
    """Return a data set unchanged, or load the one in this folder; see `load`."""
    return source if isinstance(source, Dataset) else load(source)


def check(path: str | Path, *, log: bool = True, sealed: bool = True) -> Report:
    """Check every file of a data set; return the faults, the notices and, without faults, the data set.

    `log` is whether the lines of a feedback log are checked as well, `sealed` whether the hashes of files are.

    Raises MachineError when there is no permission to read a file.
    """
    folder, rule, remedy = Path(path), "", "Name the folder that holds dataset.json"
    if not folder.is_dir():
        rule = "is not a folder" if folder.exists() else "does not exist"
        if folder.is_file() and is_data_set(folder.parent):
            remedy += f": {visible(str(folder.parent))}"
        elif folders := data_sets(Path())[:5]:
            remedy += f", such as {', '.join(visible(str(one)) for one in folders)}"
    elif not is_data_set(folder) and any(next(folder.glob(depth), None) for depth in ("*.md", "*/*.md")):
        rule = "is a folder of Markdown notes, and a data set is wanted"
        remedy = f"Read the notes into one: steelyard import {shlex.quote(visible(str(folder)))} mine"
    if rule:
        return Report((Fault(str(folder), 0, "", "", rule, remedy),), (), None)
    reader = FolderReader(folder)
    return assemble(reader, read_beir(reader) if is_beir(folder) else read_folder(reader, sealed), log)


def read_folder(reader: FolderReader, sealed: bool = True) -> DatasetParts:
    """Read the parts of a folder of Steelyard's own format."""
    manifest = read_manifest(reader, sealed)
    entries, queries = read_entries(reader), read_queries(reader)
    if queries is not None:
        check_report_split(reader, manifest, {q.split for q in queries.items if q.split})
    qrels = Qrels(reader, queries, entries)
    file = qrels_file(reader)
    if reader.has(file):  # a set without labels can still be searched, and its lists compared
        qrels.read(file)
    else:
        for name in filter(reader.has, OTHER_LABELS):
            remedy = "Write qrels.txt, a line a judgment with blanks between: query 0 entry grade"
            reader.fault(name, 0, "", "", "is not read: judgments must be in qrels.txt or qrels.tsv", remedy)
    second = Qrels(reader, None, None)  # those of entries that an import removed wait for their first labels
    if reader.has(SECOND):
        second.read(SECOND)
    return DatasetParts(manifest, entries, queries, qrels.grades, [], second.grades)


def qrels_file(reader: FolderReader) -> str:
    """The name of the judgments' file, qrels.txt or qrels.tsv."""
    txt, tsv = (reader.has(name) for name in ("qrels.txt", "qrels.tsv"))
    if txt and tsv:
        reader.fault("qrels.txt", 0, "", "", "exists beside qrels.tsv", "Keep one of the two")
    return "qrels.tsv" if tsv and not txt else "qrels.txt"


def fault_message(source: str, faults: Sequence[Fault]) -> str:
    """Make the message of faults: a line with their number, then the faults grouped by rule."""
    return "\n".join([f"{source}: {counted(len(faults), 'fault')}", *grouped(faults)])


SPLITS = ("test", "dev", "train")
"""A query judged in several files belongs to the first of these, so that test queries are never tuned on."""

_RENAMED = {"_id": "id"}


def is_beir(folder: Path) -> bool:
    """Whether the folder has BEIR's layout: a folder of judgments and no dataset.json."""
    return (folder / "qrels").is_dir() and not (folder / "dataset.json").exists()


def read_beir(reader: FolderReader) -> DatasetParts:
    """Read a BEIR folder; each query gets the split of the file that judges it."""
    entries = read_entries(reader, _RENAMED)
    queries = read_queries(reader, _RENAMED)
    qrels = Qrels(reader, queries, entries)
    named = {s: qrels.read(f"qrels/{s}.tsv") for s in SPLITS if (reader.folder / "qrels" / f"{s}.tsv").exists()}
    if not named:
        reader.fault("qrels", 0, "", "", "contains none of test.tsv, dev.tsv, train.tsv", "Add one of them")
    split = {query: s for s in reversed(SPLITS) for query in named.get(s, ())}
    if queries is not None:
        items = tuple(replace(q, split=split.get(q.id, "")) for q in queries.items)
        queries = replace(queries, items=items)
    manifest = Manifest(
        name=reader.folder.resolve().name,
        description="BEIR folder",
        recipe="{title} {text}",  # what BEIR's own retrievers embed
        report_split="test" if named.get("test") else "",
    )
    shared = sum(map(len, named.values())) - len(split)
    notices = [f"{shared} queries are judged in more than one split; test goes before dev, dev before train"]
    return DatasetParts(manifest, entries, queries, qrels.grades, notices if shared else [])


FOLDER = "judgments"  # where judgments are kept, in the folder of the data set


CORPORA = ("corpus.jsonl", "corpus.jsonl.gz")
OWN = ("dataset.json", *CORPORA, "qrels")
"""What a folder of our format or of BEIR's has one of, even if something is missing."""


def is_data_set(folder: Path) -> bool:
    """Whether a folder is a data set, perhaps a faulty one."""
    return any((folder / name).exists() for name in OWN)


def has_corpus(folder: Path) -> bool:
    """Whether a folder has a corpus."""
    return any((folder / name).is_file() for name in CORPORA)


def data_sets(root: Path) -> list[Path]:
    """The folders with a corpus: this one, then those at most two levels below by their names."""
    folders = {path.parent for name in CORPORA for depth in ("*/", "*/*/") for path in root.glob(depth + name)}
    return [*([root] if has_corpus(root) else []), *sorted(folders)]
