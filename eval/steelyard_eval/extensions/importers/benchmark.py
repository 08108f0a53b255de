"""Benchmarks in their published forms: BEIR and MTEB folders, TREC files, LoCoMo, LongMemEval.

Of the last two, which are of memories of conversations, the unit is the turn, and every question is asked of its
own conversation.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from importlib import import_module
from typing import Any

from steelyard.base.errors import DataError, MachineError, quote
from steelyard.base.extensions import require
from steelyard.base.fields import format_time
from steelyard_eval.datasets.labels import read_integer
from steelyard_eval.extensions.importers.base import Imported, Record, Row, Scored, filled, identifier, importer
from steelyard_eval.extensions.importers.source import ForeignStore
from steelyard_eval.extensions.importers.table import rows_of

SPLITS = ("test", "dev", "validation", "train")
"""A query that several files judge belongs to the first of these, so that test queries are never tuned on."""
IR_DATASETS = "irds:"  # how a source begins that is the id of a data set of ir_datasets
TREC = ("topics", "qrels", "doc")  # How names of files begin of which each is needed
TABLES = (".jsonl", ".jsonl.gz")
RECIPE = "{title} {text}"
_TOP = re.compile(r"<top>([^<]*+(?:<(?!/?top>)[^<]*+)*+)</top>", re.IGNORECASE)
_DOC = re.compile(r"<DOC>([^<]*+(?:<(?!/?DOC>)[^<]*+)*+)</DOC>", re.IGNORECASE)
"""Up to the next mark of the same name, so that many that are never closed are not each read to the end."""
_TAGS = re.compile(r"<[^<>]+>")
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""LoCoMo's categories; adversarial questions have no answer in the conversation."""
_TURN = re.compile(r"D:?(\d+):0*(\d+)")  # A turn in an evidence list; a few are written as D:11:26 or D30:05
_LONGMEMEVAL = "%Y/%m/%d (%a) %H:%M"
LOOKED_AT = 65_536  # Characters of a file in which a benchmark is recognised


@importer(lambda source: (source.path / "qrels").is_dir() and "corpus" in _stems(source))
def beir(source: ForeignStore) -> Imported:
    """BEIR and MTEB: corpus, queries, a folder of qrels. Queries have the split that judges them."""
    names = list(source.files(*TABLES, ".tsv"))
    stems = {name.split(".")[0]: name for name in reversed(names) if name.endswith(TABLES) and "/" not in name}
    corpus, queries = stems.get("corpus", ""), stems.get("queries", "")
    if not corpus or not queries:
        raise DataError(f"{source} has no corpus or no queries; both are needed beside qrels")
    imported = Imported(entries=list(map(_document, rows_of(source, corpus))), recipe=RECIPE)
    splits: dict[str, str] = {}
    for split in SPLITS:
        for name in (name for name in names if re.fullmatch(rf"qrels/{split}\.\w+", name)):
            for row in rows_of(source, name):
                named = [row.get(key) for key in ("query-id", "corpus-id", "score")]
                query, entry, grade, *_ = map(str, row.values() if None in named else named)
                if splits.setdefault(identifier(query), split) == split:
                    grades = imported.qrels.setdefault(identifier(query), {})
                    grades[identifier(entry)] = _grade(grade, f"{source}: {name}")
    for row in rows_of(source, queries):
        split = splits.get(_id(row), "").replace("validation", "dev")
        imported.queries.append(filled({"id": _id(row), "text": row["text"], "split": split}))
    return imported


def _document(row: Row) -> Record:
    rest = {name: value for name, value in row.items() if name not in ("_id", "id")}
    return filled({"id": _id(row), **rest})


def _id(row: Row) -> str:
    return identifier(str(row.get("_id", row.get("id"))))


def _grade(written: str, place: str) -> int:
    """A grade of 0 and more, as negative ones mark spam; DataError for what is no whole number."""
    if (number := read_integer(written)) is None:
        raise DataError(f"{place}: grade {quote(written)} is not a whole number; map the grades onto 0..4")
    return max(0, number)


@importer(lambda source: all(any(stem.startswith(begin) for stem in _stems(source)) for begin in TREC))
def trec(source: ForeignStore) -> Imported:
    """TREC: doc*, topics*, qrels*, *.run in one folder. Documents, topics, judgments, and every run."""
    imported = Imported(recipe=RECIPE)
    for name in source.files(""):
        base = name.rpartition("/")[2].lower()
        if base.startswith("topics"):
            imported.queries += _topics(source.text(name, None))
        elif base.startswith("qrels"):
            for place, words in _lines(source, name, 4, "judgment; write query, 0, document, grade"):
                imported.qrels.setdefault(words[0], {})[words[2]] = _grade(words[3], place)
        elif base.endswith(".run"):
            lists: dict[str, list[Scored]] = {}
            for _, words in _lines(source, name, 5, "line of a run; write query, Q0, document, rank, score"):
                lists.setdefault(words[0], []).append((words[2], float(words[4])))
            imported.runs[identifier(base.removesuffix(".run"))] = lists
        elif base.startswith("doc"):
            rows = rows_of(source, name) if name.endswith(TABLES) else None
            imported.entries += _documents(source.text(name, None)) if rows is None else map(_document, rows)
    return imported


def _lines(source: ForeignStore, name: str, least: int, what: str) -> Iterator[tuple[str, list[str]]]:
    """The words of each line, with its place; DataError for fewer than are needed."""
    for number, line in source.lines(name):
        place, words = f"{source}: {name}:{number}", line.split()
        if len(words) < least or (least == 4 and len(words) > least):
            raise DataError(f"{place} is no {what}")
        yield place, words


def _topics(text: str) -> Iterator[Record]:
    tops = _TOP.findall(text)
    for top in tops:
        number, title, told = (_field(top, key) for key in ("num", "title", "desc"))
        query = title.removeprefix("Topic:").strip() or told.removeprefix("Description:").strip()
        yield filled({"id": identifier(number.removeprefix("Number:").strip()), "text": " ".join(query.split())})
    yield from () if tops else _tabbed(text)


def _documents(text: str) -> Iterator[Record]:
    documents = _DOC.findall(text)
    for document in documents:
        body = " ".join(unescape(_TAGS.sub(" ", document.partition("</DOCNO>")[2] or document)).split())
        id_ = identifier(_field(document, "DOCNO"))
        yield filled({"id": id_, "title": _field(document, "TITLE"), "text": body})
    yield from () if documents else _tabbed(text)


def _tabbed(text: str) -> Iterator[Record]:
    for id_, tab, words in (line.partition("\t") for line in text.split("\n")):
        if tab:
            yield {"id": identifier(id_), "text": words.strip()}


def _field(markup: str, name: str) -> str:
    """The text after a tag, up to its end or the next tag: TREC's topics often close none."""
    match = re.search(rf"<{name}>(.*?)(?=<|\Z)", markup, re.DOTALL | re.IGNORECASE)
    return unescape(match[1]).strip() if match else ""


@importer(lambda source: str(source.path).startswith(IR_DATASETS))
def ir_datasets(source: ForeignStore) -> Imported:
    """A data set of ir_datasets by its id: irds:NAME. The library downloads what is not on this machine yet."""
    require("ir_datasets", "reading irds: sources")
    name = str(source.path).removeprefix(IR_DATASETS)
    try:
        return of_ir_dataset(import_module("ir_datasets").load(name))
    except (KeyError, OSError, RuntimeError) as error:
        raise MachineError(f"ir_datasets cannot give {quote(name)} ({quote(str(error), 200)})") from None


def of_ir_dataset(dataset: Any) -> Imported:  # noqa: ANN401 -- ir_datasets has no types
    """A data set that ir_datasets has loaded: documents, queries, and judgments where it has them."""
    imported = Imported(recipe=RECIPE)
    for document in dataset.docs_iter():
        fields = {name: value for name, value in document._asdict().items() if isinstance(value, str)}
        id_, title = identifier(str(fields.pop("doc_id", document.doc_id))), fields.pop("title", None)
        text = fields.get("text") or fields.get("body") or "\n".join(filter(None, [title, *fields.values()]))
        imported.entries.append(filled({"id": id_, "title": title, "text": text}))
    imported.queries = [{"id": identifier(q.query_id), "text": q.default_text()} for q in dataset.queries_iter()]
    for row in dataset.qrels_iter() if dataset.has_qrels() else ():
        imported.qrels.setdefault(identifier(row.query_id), {})[identifier(row.doc_id)] = max(0, row.relevance)
    return imported


@importer(lambda source: _has(source, "qa") and (_has(source, "conversation") or _has(source, "evidence")))
def locomo(source: ForeignStore) -> Imported:
    """LoCoMo: locomo10.json. Ten conversations of two people over months, with questions."""
    found = Imported(recipe="{title}: {text}")
    asked: list[tuple[Record, list[str]]] = []
    for sample in _list(source):
        conversation, sessions, last = str(sample["sample_id"]), sample["conversation"], None
        numbers = sorted(int(match[1]) for name in sessions if (match := re.fullmatch(r"session_(\d+)", name)))
        for session in (f"session_{number}" for number in numbers):
            moment = _dated(sessions.get(f"{session}_date_time", ""), "%I:%M %p on %d %B, %Y")
            last = moment or last
            for turn in sessions[session]:
                caption = f"\n[shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                id_ = f"{conversation}:{turn['dia_id']}"
                entry: Record = {"id": id_, "project": conversation, "source": session, "created_at": moment}
                entry |= {"title": turn["speaker"], "speaker": turn["speaker"]}
                found.entries.append(filled(entry | {"text": f"{turn['text']}{caption}"}))
        for i, row in enumerate(sample["qa"]):
            turns = (match for part in row.get("evidence") or [] for match in _TURN.finditer(str(part)))
            category = CATEGORIES.get(row["category"], str(row["category"]))
            query: Record = {
                "id": f"{conversation}:q{i:03}",
                "text": row["question"],
                "filter": {"project": conversation},
                "category": category,
                "asked_at": last,
                "group": conversation,
                "answer": str(row.get("answer", "")),
                "answerable": False if category == "adversarial" else None,
            }
            asked.append((query, [f"{conversation}:D{match[1]}:{match[2]}" for match in turns]))
    return _asked(found, asked)


@importer(lambda source: _has(source, "question_id", "question_type"))
def longmemeval(source: ForeignStore) -> Imported:
    """LongMemEval: longmemeval_s.json, _m, _oracle. Questions, each with a haystack of sessions of its own."""
    found = Imported(recipe="{title}: {text}")
    asked: list[tuple[Record, list[str]]] = []
    for row in _list(source):
        question, named = str(row["question_id"]), list[str]()
        days = row.get("haystack_dates") or [None] * len(row["haystack_sessions"])
        for session, day, turns in zip(row["haystack_session_ids"], days, row["haystack_sessions"], strict=True):
            for i, turn in enumerate(turns):
                id_, role = f"{question}:{session}:{i}", turn["role"]
                entry: Record = {"id": id_, "project": question, "source": str(session)}
                entry |= {"title": role, "speaker": role}
                entry |= {"text": turn["content"], "created_at": _dated(day, _LONGMEMEVAL)}
                found.entries.append(filled(entry))
                named += [id_] if turn.get("has_answer") else []
        query: Record = {
            "id": question,
            "text": row["question"],
            "filter": {"project": question},
            "category": row["question_type"],
            "asked_at": _dated(row.get("question_date"), _LONGMEMEVAL),
            "answer": str(row.get("answer", "")),
            "answerable": False if question.endswith("_abs") else None,
        }
        asked.append((query, named))
    return _asked(found, asked)


def _asked(found: Imported, asked: list[tuple[Record, list[str]]]) -> Imported:
    """The entries with the questions, whose labels are the turns of their evidence."""
    known, absent = {entry["id"] for entry in found.entries}, 0
    for query, turns in asked:
        found.queries.append(filled(query))
        absent += len({*turns} - known)
        if there := [turn for turn in turns if turn in known]:
            found.qrels[str(query["id"])] = dict.fromkeys(there, 1)
    found.note(absent, "piece", "of evidence that no turn carries left out")
    return found


def _dated(text: object, form: str) -> str | None:
    """A time in this form as ISO 8601; any other text as it is, to be read or counted as other dates are."""
    try:
        return format_time(datetime.strptime(str(text).strip(), form).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return str(text) if text else None


def _list(source: ForeignStore) -> list[dict[str, Any]]:  # `BROKEN` names what is of another form
    rows = source.json(source.path.name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{source} is not a list of conversations; name the published file")
    return rows


def _stems(source: ForeignStore) -> list[str]:
    """How names of files begin in a folder that is no data set of ours."""
    named = source.files("") if source.path.is_dir() and not source.has("dataset.json") else ()
    return [name.rpartition("/")[2].lower().partition(".")[0] for name in named]


def _has(source: ForeignStore, *keys: str) -> bool:
    if source.path.is_dir() or not source.path.name.endswith(".json"):
        return False
    head = source.head(source.path.name, LOOKED_AT)
    return all(f'"{key}"' in head for key in keys)
