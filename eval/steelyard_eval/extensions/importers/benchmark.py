"""Retrieval benchmarks in their published forms: BEIR and MTEB folders, TREC files, ids of ir_datasets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import unescape
from typing import Any

from steelyard.base.errors import DataError, MachineError, shown
from steelyard.base.extras import require
from steelyard_eval.datasets.qrels import whole_number
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, filled, identifier
from steelyard_eval.extensions.importers.source import ForeignStore
from steelyard_eval.extensions.importers.table import rows_of

SPLITS = ("test", "dev", "validation", "train")
"""A query that several files judge belongs to the first of these, so that test queries are never tuned on."""
IR_DATASETS = "irds:"
"""How a source begins that is the id of a data set of ir_datasets."""
RECIPE = "{title} {text}"
_TOP = re.compile(r"<top>([^<]*+(?:<(?!/?top>)[^<]*+)*+)</top>", re.IGNORECASE)
_DOC = re.compile(r"<DOC>([^<]*+(?:<(?!/?DOC>)[^<]*+)*+)</DOC>", re.IGNORECASE)
"""Up to the next mark of the same name, so that many that are never closed are not each read to the end."""
_TAGS = re.compile(r"<[^<>]+>")


def _one(names: Iterable[str], *stems: str) -> str | None:
    """The first name that is one of these with an ending of a table."""
    endings = (".jsonl", ".jsonl.gz", ".parquet")
    return next((name for name in names for stem in stems if any(name == stem + end for end in endings)), None)


def matches_beir(source: ForeignStore) -> bool:
    """A folder with a corpus, queries and a folder of judgments, without dataset.json."""
    if not source.path.is_dir() or source.has("dataset.json"):
        return False
    return (source.folder / "qrels").is_dir() and any(
        source.has(f"corpus{end}") for end in (".jsonl", ".jsonl.gz", ".parquet")
    )


def read_beir(source: ForeignStore) -> Imported:
    """Corpus, queries with the split that judges them, and judgments."""
    names = list(source.files(".jsonl", ".jsonl.gz", ".parquet", ".tsv"))
    corpus, queries = _one(names, "corpus"), _one(names, "queries")
    if corpus is None or queries is None:
        raise DataError(f"{source} has no corpus or no queries; both are needed beside qrels")
    imported = Imported(recipe=RECIPE)
    imported.entries = [_document(row) for row in rows_of(source, corpus)]
    splits: dict[str, str] = {}
    for split in SPLITS:
        for name in (name for name in names if re.fullmatch(rf"qrels/{split}\.\w+", name)):
            for query, entry, grade in _judgments(source, name):
                if splits.setdefault(query, split) == split:
                    imported.qrels.setdefault(query, {})[entry] = grade
    for row in rows_of(source, queries):
        id_ = _id(row)
        split = splits.get(id_, "").replace("validation", "dev")
        imported.queries.append(filled({"id": id_, "text": row["text"], "split": split}))
    return imported


def _document(row: Mapping[str, object]) -> Record:
    rest = {name: value for name, value in row.items() if name not in ("_id", "id")}
    return filled({"id": _id(row), **rest})


def _id(row: Mapping[str, object]) -> str:
    return identifier(str(row.get("_id", row.get("id"))))


def _judgments(source: ForeignStore, name: str) -> Iterator[tuple[str, str, int]]:
    """Query, entry and grade; negative grades, which mark spam, count as 0."""
    for row in rows_of(source, name):
        values = [row.get(key) for key in ("query-id", "corpus-id", "score")]
        if None in values:
            values = list(row.values())
        query, entry, grade = values[:3]
        yield identifier(str(query)), identifier(str(entry)), _grade(str(grade), f"{source}: {name}")


def _grade(written: str, place: str) -> int:
    """A grade of 0 and more; DataError for what is no whole number."""
    if (number := whole_number(written)) is None:
        raise DataError(f"{place}: grade {shown(written)} is not a whole number; map the grades onto 0..4")
    return max(0, number)


def matches_trec(source: ForeignStore) -> bool:
    """A folder with topics, judgments and documents, named so."""
    if not source.path.is_dir() or source.has("dataset.json"):
        return False
    names = [name.rpartition("/")[2].lower() for name in source.files("")]
    return all(any(name.startswith(stem) for name in names) for stem in ("topics", "qrels", "doc"))


def read_trec(source: ForeignStore) -> Imported:
    """Documents, topics, judgments, and every run."""
    imported = Imported(recipe=RECIPE)
    for name in source.files(""):
        base = name.rpartition("/")[2].lower()
        if base.startswith("topics"):
            imported.queries += _topics(source, name)
        elif base.startswith("qrels"):
            for number, line in source.lines(name):
                words = line.split()
                if len(words) != 4:
                    raise DataError(f"{source}: {name}:{number} is no judgment; write query, 0, document, grade")
                imported.qrels.setdefault(words[0], {})[words[2]] = _grade(words[3], f"{source}: {name}:{number}")
        elif base.endswith(".run"):
            imported.runs[identifier(base.removesuffix(".run"))] = _run(source, name)
        elif base.startswith("doc"):
            imported.entries += _documents(source, name)
    return imported


def _topics(source: ForeignStore, name: str) -> Iterator[Record]:
    """Topics in TREC's markup, else lines of an id, a tab and a text."""
    text = source.text(name, None)
    tops = _TOP.findall(text)
    for top in tops:
        fields = {key: _field(top, key) for key in ("num", "title", "desc")}
        number = fields["num"].removeprefix("Number:").strip()
        query = (
            fields["title"].removeprefix("Topic:").strip() or fields["desc"].removeprefix("Description:").strip()
        )
        yield filled({"id": identifier(number), "text": " ".join(query.split())})
    for line in () if tops else text.split("\n"):
        id_, tab, query = line.partition("\t")
        if tab:
            yield {"id": identifier(id_), "text": query.strip()}


def _documents(source: ForeignStore, name: str) -> Iterator[Record]:
    """Documents in TREC's markup, else the rows of a table, else lines of an id, a tab and a text."""
    if name.endswith((".jsonl", ".jsonl.gz", ".parquet")):
        yield from map(_document, rows_of(source, name))
        return
    text = source.text(name, None)
    documents = _DOC.findall(text)
    for document in documents:
        body = " ".join(unescape(_TAGS.sub(" ", document.partition("</DOCNO>")[2] or document)).split())
        yield filled(
            {"id": identifier(_field(document, "DOCNO")), "title": _field(document, "TITLE"), "text": body}
        )
    for line in () if documents else text.split("\n"):
        id_, tab, words = line.partition("\t")
        if tab:
            yield {"id": identifier(id_), "text": words.strip()}


def _field(markup: str, name: str) -> str:
    """The text after a tag, up to its end or the next tag: TREC's topics often close none."""
    match = re.search(rf"<{name}>(.*?)(?=<|\Z)", markup, re.DOTALL | re.IGNORECASE)
    return unescape(match[1]).strip() if match else ""


def _run(source: ForeignStore, name: str) -> dict[str, list[tuple[str, float | None]]]:
    lists: dict[str, list[tuple[str, float | None]]] = {}
    for number, line in source.lines(name):
        words = line.split()
        if len(words) < 5:
            raise DataError(
                f"{source}: {name}:{number} is no line of a run; write query, Q0, document, rank, score"
            )
        lists.setdefault(words[0], []).append((words[2], float(words[4])))
    return lists


def matches_ir_datasets(source: ForeignStore) -> bool:
    """An id such as irds:vaswani."""
    return str(source.path).startswith(IR_DATASETS)


def read_ir_datasets(source: ForeignStore) -> Imported:
    """A data set by its id of ir_datasets, which downloads what is not on this machine yet.

    Raises DataError for an unknown id, MachineError where it cannot be had.
    """
    require("ir_datasets", "reading irds: sources")
    import ir_datasets

    name = str(source.path).removeprefix(IR_DATASETS)
    try:
        return of_ir_dataset(ir_datasets.load(name))
    except KeyError:
        raise DataError(f"ir_datasets knows no {shown(name)}; see its catalogue") from None
    except (OSError, RuntimeError) as error:
        raise MachineError(f"ir_datasets cannot give {shown(name)} ({shown(str(error), 200)})") from None


def of_ir_dataset(dataset: Any) -> Imported:  # noqa: ANN401 -- ir_datasets has no types
    """A data set that ir_datasets has loaded: documents, queries, and judgments where it has them."""
    imported = Imported(recipe=RECIPE)
    imported.entries = [_ir_document(doc._asdict()) for doc in dataset.docs_iter()]
    imported.queries = [{"id": identifier(q.query_id), "text": q.default_text()} for q in dataset.queries_iter()]
    for row in dataset.qrels_iter() if dataset.has_qrels() else ():
        imported.qrels.setdefault(identifier(row.query_id), {})[identifier(row.doc_id)] = max(0, row.relevance)
    return imported


def _ir_document(fields: dict[str, object]) -> Record:
    id_ = identifier(str(fields.pop("doc_id")))
    plain = {name: value for name, value in fields.items() if isinstance(value, str)}
    text = plain.pop("text", None) or plain.pop("body", None) or "\n".join(plain.values())
    return filled({"id": id_, "title": plain.pop("title", None), "text": text})


BEIR = Importer("beir", "BEIR and MTEB: corpus, queries, a folder of qrels", matches_beir, read_beir)
TREC = Importer("trec", "TREC: doc*, topics*, qrels*, *.run in one folder", matches_trec, read_trec)
IRDS = Importer("ir_datasets", "a data set of ir_datasets: irds:NAME", matches_ir_datasets, read_ir_datasets)
IMPORTERS = (BEIR, TREC, IRDS)
