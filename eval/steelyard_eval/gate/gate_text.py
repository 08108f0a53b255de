"""A gate's result as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard_eval.common.answer import in_terminal
from steelyard_eval.common.console import brief, table, wrapped
from steelyard_eval.common.documents.gate import GateDocument, GatedRecord, SliceRecord
from steelyard_eval.common.markup import ends

SEEN = ("unchanged", "identity", "baseline")
"""Reasons of a pass that the change with its interval shows by itself."""
SHOWN = 3
"""Queries that lost most, a contender."""


def text(record: GateDocument) -> str:
    """The sentence, the table, what is behind it, and how far the gate can be trusted."""
    parts = [in_terminal(record)]
    if record["contenders"]:
        details = [_details(row, record) for row in record["contenders"]]
        parts += [table([*rows_of(record)]), *details, wrapped(trust(record))]
    else:
        parts += ["\n".join(wrapped(finding["text"], 2) for finding in record["findings"])]
    return "\n\n".join(part for part in parts if part)


def rows_of(record: GateDocument) -> Iterator[dict[str, object]]:
    """A row a contender, head to cell."""
    for row in record["contenders"]:
        yield {
            "": row["label"],
            "verdict": row["verdict"],
            "nDCG@10": f"{row['metrics'][0]['now']:.3f}",
            "change [95%]": change(row) if row["lists_changed"] else "same lists",
            f"moved of {row['queries']}": round(row["touched"] * row["queries"]),
        }


def reason(row: GatedRecord, record: GateDocument) -> str:
    """What decided, where neither the sentence above nor the change says it."""
    told = (row["reason"] in SEEN and row["verdict"] == "pass") or row["text"] in record["sentence"]
    return "" if told else row["text"]


def change(row: GatedRecord) -> str:
    """The change of nDCG@10 with its interval."""
    against = row["against"][0]
    return f"{against['delta']:+.3f} {ends(against['low'], against['high'], '+.3f')}"


def _details(row: GatedRecord, record: GateDocument) -> str:
    """What decided, and what to look at first, where something is not fine."""
    parts = [wrapped(f"{row['label']}: {why}", 2)] if (why := reason(row, record)) else []
    if row["verdict"] == "pass" and not any(part["worse"] for part in row["slices"]):
        return "\n".join(parts)
    if row["worst"]:
        parts += [f"{row['label']}, the {min(len(row['worst']), SHOWN)} queries that lost most:"]
    for query in row["worst"][:SHOWN]:
        parts += [wrapped(f"  {query['id']} ({query['before']:.2f} to {query['now']:.2f}): {query['text']}", 4)]
        parts += [wrapped(f"    before: {', '.join(query['list_before'][:5])}", 12)]
        parts += [wrapped(f"    now:    {', '.join(query['list_now'][:5])}", 12)]
    if formulas := rewritten(row):
        parts += [wrapped(f"  it was {formulas[0]}", 4), wrapped(f"  it is  {formulas[1]}", 4)]
    slices = [part for part in row["slices"] if part["worse"]]
    parts += [wrapped(f"  worse on {part['field']} {part['value']}: {fall(part)}", 4) for part in slices]
    return "\n".join(parts)


def rewritten(row: GatedRecord) -> tuple[str, str] | None:
    """The formula of the baseline and today's, each with its settings where both are known, if they differ."""
    known = row.get("settings_before") is not None
    sides = (row.get("strategy_before"), row.get("settings_before")), (row.get("strategy"), row.get("settings"))
    texts = [brief(f"{formula} with {more}" if known and more else formula or "") for formula, more in sides]
    return (texts[0], texts[1]) if all(texts) and texts[0] != texts[1] else None


def fall(part: SliceRecord) -> str:
    """The change on a category or an intent, as both faces write it."""
    return f"{part['delta']:+.3f} over {part['queries']} queries, corrected p = {part['p_adjusted']:.2g}"


def trust(record: GateDocument) -> str:
    """What this gate can see, in a sentence or two."""
    power, alarms = record["power"], record["false_alarm_rate"]
    if power is None:
        return ""
    worst = " Of several contenders, these are its worst values." if len(record["contenders"]) > 1 else ""
    seen = (
        f"This gate blocks about {percent(power['least'])} of changes that lower nDCG@10 by {power['drop']:g}. It "
        f"also blocks about {percent(alarms)} of changes that leave search as good as it was: false alarms.{worst}"
    )
    if power["asleep"]:
        of = f" of {', '.join(power['asleep'])}" if len(power["asleep"]) < len(record["contenders"]) else ""
        seen += f" It would miss most such drops{of}: too few queries have labels."
    return seen


def percent(share: float | None) -> str:
    """A share in whole percent."""
    return "-" if share is None else f"{share:.0%}"
