"""Shows the faults of a data set, grouped by rule and with the name that was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from steelyard.base.errors import Fault, shown
from steelyard_eval.common.markup import counted

EXAMPLES = 3
"""The number of faults of one rule that are shown."""
GROUPS = 20
"""The number of rules that are shown."""
_LIKENESS = 0.75
_FOREIGN = {
    "id": "_id _key key uuid guid doc_id docid document_id entry_id pid qid query_id".split(),  # noqa: SIM905 -- as below
    "text": "content contents body document passage message note what query question".split(),  # noqa: SIM905 -- a list literal of so many words reads worse
    "title": ("name", "heading", "headline", "subject"),
}
"""Names that other formats have for our fields."""


def meant(field: str, names: Collection[str]) -> str | None:
    """Return the name that was probably meant for `field`: a foreign name for it, or a misspelling.

    >>> meant("id", ["project", "_id"]), meant("text", ["txet"]), meant("id", ["project"])
    ('_id', 'txet', None)
    """
    folded = {name.casefold(): name for name in sorted(names, reverse=True)}
    known = [name for name in _FOREIGN.get(field, ()) if name in folded]
    close = known or difflib.get_close_matches(field, folded, n=1, cutoff=_LIKENESS)
    return folded[close[0]] if close else None


def hinted(fault: Fault, names: Collection[str]) -> Fault:
    """Add to the fault of a missing field the unknown field of the same line that was probably meant."""
    other = meant(fault.field, names) if fault.rule == "is missing" else None
    if other is None:
        return fault
    return replace(
        fault, remedy=f"Did you mean `{fault.field}` where it says {shown(other, 40)}? Rename that field"
    )


def grouped(faults: Sequence[Fault]) -> list[str]:
    """Show faults as lines: the first three of each rule, then how many more break the same rule."""
    groups: dict[tuple[str, str, str], list[Fault]] = {}
    for fault in faults:
        groups.setdefault((fault.file, fault.field, _bare(fault.rule)), []).append(fault)
    lines = [line for group in list(groups.values())[:GROUPS] for line in _group(group)]
    left = sum(len(group) for group in list(groups.values())[GROUPS:])
    return lines + ([f"... and {counted(left, 'fault')} of other rules"] if left else [])


def _group(faults: Sequence[Fault]) -> list[str]:
    lines = [str(fault) for fault in faults[:EXAMPLES]]
    more = len(faults) - len(lines)
    if not more:
        return lines
    last = f", the last in line {faults[-1].line}" if faults[-1].line else ""
    return [*lines, f"... and {more} more like these in {faults[0].file}{last}"]


def _bare(rule: str) -> str:
    """The rule without the values in it, so that the faults of many lines form one group."""
    return re.sub(r"'[^']*'|\d+", "", rule)
