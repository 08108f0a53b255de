"""Benchmarks of memories of conversations, in their published forms: LoCoMo, LongMemEval, BEAM.

The unit is the turn, or with `--unit sessions` the session, and every question is asked of its own conversation.
Evidence lists are as published; `--corrections FILE` (errors.json of the audit of LoCoMo) replaces those that were
found wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from steelyard.base.errors import DataError
from steelyard.base.fields import format_time
from steelyard_eval.extensions.importers.base import Imported, Importer, Record, filled
from steelyard_eval.extensions.importers.source import ForeignStore

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""LoCoMo's categories; adversarial questions have no answer in the conversation."""
UPDATED, OUTDATED = 2, 1
"""Grades of BEAM's evidence of a value that changed: the message with the new one, and with the old one."""
_TURN = re.compile(r"D:?(\d+):0*(\d+)")
"""A turn in an evidence list; a few are written as D:11:26 or D30:05."""
_MARKER = "->->"
"""What stands before the marks of a message that are no part of what was said."""
LOOKED_AT = 65_536
"""Characters of a file in which a benchmark is recognised."""
Json = dict[str, Any]
"""An object of a published file: another form of it is an error that `BROKEN` names."""


def _starts_with(source: ForeignStore, *keys: str) -> bool:
    name = source.path.name
    if source.path.is_dir() or not name.endswith(".json"):
        return False
    with source.path.open(encoding="utf-8", errors="replace") as stream:
        head = stream.read(LOOKED_AT)
    return all(f'"{key}"' in head for key in keys)


class _Set:
    """A data set that grows: turns of conversations, questions with their evidence."""

    def __init__(self, sessions: bool) -> None:
        self.found = Imported(recipe="{title}: {text}")
        self.sessions = sessions
        self._unit: dict[str, str] = {}
        self._texts: dict[str, Json] = {}
        self.absent = 0

    def turn(self, conversation: str, session: str, id_: str, record: Json) -> None:
        """A turn, as an entry or as a part of its session's."""
        if not self.sessions:
            self._unit[id_] = id_
            self.found.entries.append(filled({"id": id_, "project": conversation, "source": session, **record}))
            return
        whole = f"{conversation}:{session}"
        self._unit[id_] = whole
        line = ": ".join(part for part in (record.get("title", ""), record["text"]) if part)
        if whole not in self._texts:
            entry = {"id": whole, "title": session, "text": line, "project": conversation, "source": session}
            self._texts[whole] = filled({**entry, "created_at": record.get("created_at")})
            self.found.entries.append(self._texts[whole])
        else:
            self._texts[whole]["text"] += f"\n{line}"

    def question(self, id_: str, text: str, conversation: str, grades: Mapping[str, int], more: Record) -> None:
        """A question with the grades of its evidence by turn."""
        record = {"id": id_, "text": text, "filter": {"project": conversation}, **more}
        self.found.queries.append(filled(record))
        labels: dict[str, int] = {}
        for turn, grade in grades.items():
            unit = self._unit.get(turn)
            self.absent += unit is None
            if unit is not None:
                labels[unit] = max(grade, labels.get(unit, 0))
        if labels:
            self.found.qrels[id_] = labels

    def done(self) -> Imported:
        """What was read, with a note on evidence that no turn carries."""
        self.found.note(self.absent, "piece", "of evidence that no turn carries left out")
        return self.found


def read_locomo(source: ForeignStore) -> Imported:
    """locomo10.json: ten conversations of two people over months, with questions."""
    corrections = _corrections(source)
    made = _Set(source.options.unit == "sessions")
    for number, sample in enumerate(_list(source)):
        conversation = str(sample["sample_id"])
        last = None
        for session, moment, turns in _sessions(sample["conversation"]):
            last = moment or last
            for turn in turns:
                caption = f"\n[shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                record = {"title": turn["speaker"], "speaker": turn["speaker"], "created_at": moment}
                id_ = f"{conversation}:{turn['dia_id']}"
                made.turn(conversation, session, id_, {**record, "text": f"{turn['text']}{caption}"})
        for i, row in enumerate(sample["qa"]):
            key = f"locomo_{number}_qa{i}"
            evidence = corrections.get(key, row.get("evidence") or [])
            named = [
                f"{conversation}:D{match[1]}:{match[2]}"
                for part in evidence
                for match in _TURN.finditer(str(part))
            ]
            category = CATEGORIES.get(row["category"], str(row["category"]))
            more: Record = {
                "category": category,
                "asked_at": last,
                "group": conversation,
                "answer": str(row.get("answer", "")),
            }
            if category == "adversarial":
                more["answerable"] = False
            made.question(f"{conversation}:q{i:03}", row["question"], conversation, dict.fromkeys(named, 1), more)
    made.found.note(len(corrections), "question has", "corrected evidence", "questions have")
    return made.done()


def _sessions(conversation: Json) -> Iterator[tuple[str, str | None, list[Json]]]:
    """Sessions in order: name, time, turns."""
    numbers = sorted(int(match[1]) for name in conversation if (match := re.fullmatch(r"session_(\d+)", name)))
    for number in numbers:
        written = conversation.get(f"session_{number}_date_time", "")
        yield f"session_{number}", _dated(written, "%I:%M %p on %d %B, %Y"), conversation[f"session_{number}"]


def _corrections(source: ForeignStore) -> dict[str, list[str]]:
    """Question -> the right evidence, from the audit's errors.json, where it was named."""
    if not source.options.corrections:
        return {}
    path = Path(source.options.corrections)
    rows = ForeignStore(path).json(path.name)
    return {row["question_id"]: row["correct_evidence"] for row in rows if row.get("correct_evidence")}


def read_longmemeval(source: ForeignStore) -> Imported:
    """longmemeval_*.json: questions, each with a haystack of sessions of its own."""
    made = _Set(source.options.unit == "sessions")
    for row in _list(source):
        question = str(row["question_id"])
        grades: dict[str, int] = {}
        days = row.get("haystack_dates") or [None] * len(row["haystack_sessions"])
        evidence = set(row.get("answer_session_ids") or ())
        for session, day, turns in zip(row["haystack_session_ids"], days, row["haystack_sessions"], strict=True):
            moment = _dated(day, "%Y/%m/%d (%a) %H:%M")
            for i, turn in enumerate(turns):
                id_ = f"{question}:{session}:{i}"
                record = {
                    "title": turn["role"],
                    "speaker": turn["role"],
                    "text": turn["content"],
                    "created_at": moment,
                }
                made.turn(question, str(session), id_, record)
                if turn.get("has_answer") or (made.sessions and session in evidence):
                    grades[id_] = 1
        more = {
            "category": row["question_type"],
            "asked_at": _dated(row.get("question_date"), "%Y/%m/%d (%a) %H:%M"),
            "answer": str(row.get("answer", "")),
            "answerable": False if question.endswith("_abs") else None,
        }
        made.question(question, row["question"], question, grades, more)
    return made.done()


def matches_beam(source: ForeignStore) -> bool:
    """A chat.json beside its probing questions, or folders of such."""
    return source.path.is_dir() and bool(_chats(source))


def _chats(source: ForeignStore) -> list[str]:
    """The folders of chats, each with a final /."""
    names = set(source.files("chat.json", "probing_questions.json"))
    folders = [name.removesuffix("chat.json") for name in names if name.rpartition("/")[2] == "chat.json"]
    chats = [folder for folder in folders if f"{folder}probing_questions/probing_questions.json" in names]
    return sorted(chats, key=lambda folder: (len(folder), folder))


def read_beam(source: ForeignStore) -> Imported:
    """BEAM: chats of a user and an assistant, with ten kinds of questions about each."""
    made = _Set(source.options.unit == "sessions")
    for folder in _chats(source):
        chat = (
            f"chat-{int(number):02}" if (number := folder.strip("/").rpartition("/")[2]).isdigit() else "chat-01"
        )
        last = None
        for batch in source.json(f"{folder}chat.json"):
            messages = [message for turn in batch["turns"] for message in turn]
            anchors = (batch.get("time_anchor"), *(message.get("time_anchor") for message in messages))
            day = next((moment for anchor in anchors if (moment := _moment(anchor, "%B-%d-%Y"))), last)
            last = day
            for message in messages:
                record = {"type": message["role"], "text": _said(message["content"]), "created_at": day}
                made.turn(chat, f"batch {batch['batch_number']}", f"{chat}:{message['id']}", record)
        for kind, rows in source.json(f"{folder}probing_questions/probing_questions.json").items():
            for i, row in enumerate(rows):
                grades = {f"{chat}:{id_}": grade for id_, grade in _evidence(row.get("source_chat_ids")).items()}
                answer = next(
                    (row[key] for key in ("answer", "ideal_answer", "ideal_response") if row.get(key)), ""
                )
                more = {"category": kind.replace("_", "-"), "asked_at": last, "group": chat, "answer": str(answer)}
                if kind == "abstention":
                    more["answerable"] = False
                made.question(f"{chat}:{kind}:{i}", row["question"], chat, grades, more)
    return made.done()


def _said(content: str) -> str:
    said, marker, _ = content.partition(_MARKER)
    return said.rstrip() if marker else content


def _evidence(ids: object) -> dict[int, int]:
    """Message -> grade, from a list of ids or from lists by role; what is outdated has the lower grade."""
    if isinstance(ids, Mapping):
        updated = "updated_info" in ids
        grades: dict[int, int] = {}
        for role, messages in ids.items():
            grade = UPDATED if updated and role == "updated_info" else OUTDATED
            for id_ in _flat(messages):
                grades[id_] = max(grade, grades.get(id_, 0))
        return grades
    return dict.fromkeys(_flat(ids), 1)


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


LOCOMO = Importer(
    "locomo",
    "LoCoMo: locomo10.json",
    lambda source: _starts_with(source, "conversation", "qa") or _starts_with(source, "qa", "evidence"),
    read_locomo,
)
LONGMEMEVAL = Importer(
    "longmemeval",
    "LongMemEval: longmemeval_s.json, _m, _oracle",
    lambda source: _starts_with(source, "question_id", "question_type"),
    read_longmemeval,
)
BEAM = Importer("beam", "BEAM: folders of chat.json with probing questions", matches_beam, read_beam)
IMPORTERS = (LOCOMO, LONGMEMEVAL, BEAM)
