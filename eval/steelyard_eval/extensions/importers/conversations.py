"""Benchmarks of memories of conversations, in their published forms: LoCoMo, LongMemEval, BEAM.

The unit is the turn, or with `--set unit=sessions` the session, and every question is asked of its own
conversation. Evidence lists are as published; `--set corrections=FILE` (errors.json of the audit of LoCoMo)
replaces those that were found wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steelyard.base.errors import DataError
from steelyard.base.fields import format_time
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, filled, first
from steelyard_eval.extensions.importers.source import ForeignStore

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""LoCoMo's categories; adversarial questions have no answer in the conversation."""
UPDATED, OUTDATED = 2, 1
"""Grades of BEAM's evidence of a value that changed: the message with the new one, and with the old one."""
_TURN = re.compile(r"D:?(\d+):0*(\d+)")
"""A turn in an evidence list; a few are written as D:11:26 or D30:05."""
_MARKER = "->->"
"""What stands before the marks of a message that are no part of what was said."""
_LONGMEMEVAL = "%Y/%m/%d (%a) %H:%M"
LOOKED_AT = 65_536
"""Characters of a file in which a benchmark is recognised."""
Json = dict[str, Any]
"""An object of a published file: another form of it is an error that `BROKEN` names."""


class _Set:
    """A data set that grows: turns of conversations, questions with their evidence."""

    def __init__(self, source: ForeignStore) -> None:
        self.found = Imported(recipe="{title}: {text}")
        self.sessions = source.options.unit == "sessions"
        self._unit: dict[str, str] = {}
        self._texts: dict[str, Json] = {}
        self._absent = 0

    def turn(self, conversation: str, session: str, id_: str, record: Json) -> None:
        """A turn, as an entry or as a part of its session's."""
        beside = {"project": conversation, "source": session}
        self._unit[id_] = id_
        if not self.sessions:
            self.found.entries.append(filled({"id": id_, **beside, **record}))
            return
        self._unit[id_] = whole = f"{conversation}:{session}"
        line = ": ".join(part for part in (record.get("title", ""), record["text"]) if part)
        if whole in self._texts:
            self._texts[whole]["text"] += f"\n{line}"
        else:
            entry = {"id": whole, "title": session, "text": line, **beside, "created_at": record.get("created_at")}
            self._texts[whole] = filled(entry)
            self.found.entries.append(self._texts[whole])

    def question(self, id_: str, text: str, conversation: str, grades: Mapping[str, int], more: Record) -> None:
        """A question with the grades of its evidence by turn."""
        self.found.queries.append(filled({"id": id_, "text": text, "filter": {"project": conversation}, **more}))
        self._absent += len(grades.keys() - self._unit.keys())
        for turn in (turn for turn in grades if turn in self._unit):
            labels = self.found.qrels.setdefault(id_, {})
            labels[self._unit[turn]] = max(grades[turn], labels.get(self._unit[turn], 0))

    def done(self) -> Imported:
        """What was read, with a note on evidence that no turn carries."""
        self.found.note(self._absent, "piece", "of evidence that no turn carries left out")
        return self.found


def read_locomo(source: ForeignStore) -> Imported:
    """locomo10.json: ten conversations of two people over months, with questions."""
    corrections: dict[str, list[str]] = {}
    if source.options.corrections:  # question -> the right evidence, from the audit's errors.json
        path = Path(source.options.corrections)
        rows = ForeignStore(path).json(path.name)
        corrections = {row["question_id"]: row["correct_evidence"] for row in rows if row.get("correct_evidence")}
    made = _Set(source)
    for number, sample in enumerate(_list(source)):
        conversation, sessions, last = str(sample["sample_id"]), sample["conversation"], None
        numbers = sorted(int(match[1]) for name in sessions if (match := re.fullmatch(r"session_(\d+)", name)))
        for session in (f"session_{number}" for number in numbers):
            moment = _dated(sessions.get(f"{session}_date_time", ""), "%I:%M %p on %d %B, %Y")
            last = moment or last
            for turn in sessions[session]:
                caption = f"\n[shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                record = {"title": turn["speaker"], "speaker": turn["speaker"], "created_at": moment}
                record["text"] = f"{turn['text']}{caption}"
                made.turn(conversation, session, f"{conversation}:{turn['dia_id']}", record)
        for i, row in enumerate(sample["qa"]):
            evidence = corrections.get(f"locomo_{number}_qa{i}", row.get("evidence") or [])
            turns = (match for part in evidence for match in _TURN.finditer(str(part)))
            grades = {f"{conversation}:D{match[1]}:{match[2]}": 1 for match in turns}
            category = CATEGORIES.get(row["category"], str(row["category"]))
            more: Record = {"category": category, "asked_at": last, "group": conversation}
            more |= {
                "answer": str(row.get("answer", "")),
                "answerable": False if category == "adversarial" else None,
            }
            made.question(f"{conversation}:q{i:03}", row["question"], conversation, grades, more)
    made.found.note(len(corrections), "question has", "corrected evidence", "questions have")
    return made.done()


def read_longmemeval(source: ForeignStore) -> Imported:
    """longmemeval_*.json: questions, each with a haystack of sessions of its own."""
    made = _Set(source)
    for row in _list(source):
        question, grades = str(row["question_id"]), dict[str, int]()
        days = row.get("haystack_dates") or [None] * len(row["haystack_sessions"])
        evidence = set(row.get("answer_session_ids") or ())
        for session, day, turns in zip(row["haystack_session_ids"], days, row["haystack_sessions"], strict=True):
            for i, turn in enumerate(turns):
                id_, role = f"{question}:{session}:{i}", turn["role"]
                record = {"title": role, "speaker": role, "text": turn["content"]}
                made.turn(question, str(session), id_, {**record, "created_at": _dated(day, _LONGMEMEVAL)})
                if turn.get("has_answer") or (made.sessions and session in evidence):
                    grades[id_] = 1
        more: Record = {
            "category": row["question_type"],
            "asked_at": _dated(row.get("question_date"), _LONGMEMEVAL),
        }
        more |= {"answer": str(row.get("answer", "")), "answerable": False if question.endswith("_abs") else None}
        made.question(question, row["question"], question, grades, more)
    return made.done()


def _chats(source: ForeignStore) -> list[str]:
    """The folders of BEAM's chats, each with a final /: a chat.json beside its probing questions."""
    names = set(source.files("chat.json", "probing_questions.json")) if source.path.is_dir() else set()
    folders = [name.removesuffix("chat.json") for name in names if name.rpartition("/")[2] == "chat.json"]
    chats = [folder for folder in folders if f"{folder}probing_questions/probing_questions.json" in names]
    return sorted(chats, key=lambda folder: (len(folder), folder))


def read_beam(source: ForeignStore) -> Imported:
    """BEAM: chats of a user and an assistant, with ten kinds of questions about each."""
    made = _Set(source)
    for folder in _chats(source):
        number, last = folder.strip("/").rpartition("/")[2], None
        chat = f"chat-{int(number):02}" if number.isdigit() else "chat-01"
        for batch in source.json(f"{folder}chat.json"):
            messages = [message for turn in batch["turns"] for message in turn]
            anchors = (batch.get("time_anchor"), *(message.get("time_anchor") for message in messages))
            last = next((moment for anchor in anchors if (moment := _moment(anchor, "%B-%d-%Y"))), last)
            for message in messages:
                record = {"type": message["role"], "text": _said(message["content"]), "created_at": last}
                made.turn(chat, f"batch {batch['batch_number']}", f"{chat}:{message['id']}", record)
        for kind, rows in source.json(f"{folder}probing_questions/probing_questions.json").items():
            for i, row in enumerate(rows):
                grades = {f"{chat}:{id_}": grade for id_, grade in _evidence(row.get("source_chat_ids")).items()}
                answer = first(row, "answer", "ideal_answer", "ideal_response") or ""
                more: Record = {"category": kind.replace("_", "-"), "asked_at": last, "group": chat}
                more |= {"answer": str(answer), "answerable": False if kind == "abstention" else None}
                made.question(f"{chat}:{kind}:{i}", row["question"], chat, grades, more)
    return made.done()


def _said(content: str) -> str:
    said, marker, _ = content.partition(_MARKER)
    return said.rstrip() if marker else content


def _evidence(ids: object) -> dict[int, int]:
    """Message -> grade, from a list of ids or from lists by role; what is outdated has the lower grade."""
    roles = ids if isinstance(ids, Mapping) else {"": ids}
    grades: dict[int, int] = {}
    for role, messages in roles.items():
        grade = UPDATED if role == "updated_info" else OUTDATED
        for id_ in _flat(messages):
            grades[id_] = max(grade, grades.get(id_, 0))
    return grades


def _flat(ids: object) -> Iterator[int]:
    """The ids in a list of lists of any depth."""
    if isinstance(ids, list):
        for part in ids:
            yield from _flat(part)
    elif isinstance(ids, int):
        yield ids


def _moment(text: object, form: str) -> str | None:
    """A time that is written in this form, in ISO 8601; None for anything else."""
    try:
        return format_time(datetime.strptime(str(text).strip(), form).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def _dated(text: object, form: str) -> str | None:
    """A time in this form as ISO 8601; any other text as it is, to be read or counted as other dates are."""
    return _moment(text, form) or (str(text) if text else None)


def _list(source: ForeignStore) -> list[Json]:
    rows = source.json(source.path.name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{source} is no list of conversations; name the published file")
    return rows


def _has(source: ForeignStore, *keys: str) -> bool:
    """Whether a JSON file has these keys near its beginning."""
    if source.path.is_dir() or not source.path.name.endswith(".json"):
        return False
    head = source.head(source.path.name, LOOKED_AT)
    return all(f'"{key}"' in head for key in keys)


IMPORTERS = (
    Importer(
        "locomo",
        "LoCoMo: locomo10.json",
        lambda source: _has(source, "qa") and (_has(source, "conversation") or _has(source, "evidence")),
        read_locomo,
    ),
    Importer(
        "longmemeval",
        "LongMemEval: longmemeval_s.json, _m, _oracle",
        lambda source: _has(source, "question_id", "question_type"),
        read_longmemeval,
    ),
    Importer(
        "beam", "BEAM: folders of chat.json with probing questions", lambda source: bool(_chats(source)), read_beam
    ),
)
