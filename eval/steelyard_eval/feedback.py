"""Reads feedback logs, which record what people did with the results they were shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from steelyard.adaptive import Feedback
from steelyard.errors import DataError, Fault, shown
from steelyard.files import STRICT_JSON


def count_actions(lines: Iterable[str]) -> Feedback:
    """Count how often results were accepted, dismissed, modified or failed in a feedback.jsonl.

    Other actions, such as clicked and cited, are not verdicts and are not counted; blank lines are skipped.
    Raises DataError listing every line that cannot be read.
    """
    counts: Counter[str] = Counter()
    faults = []
    for number, line in enumerate(lines, 1):
        try:
            counts.update(_actions(line) if line.strip() else ())
        except (ValueError, LookupError, TypeError, RecursionError):
            rule, remedy = "is no impression list", 'Write {"actions": [{"action_name": "accepted", ...}]}'
            faults.append(Fault("feedback.jsonl", number, "", shown(line.strip()), rule, remedy))
    if faults:
        raise DataError("\n".join(map(str, faults)))
    return Feedback(counts["accepted"], counts["dismissed"], counts["modified"], counts["failed"])


def _actions(line: str) -> list[str]:
    return [str(action["action_name"]) for action in STRICT_JSON.decode(line)["actions"]]
