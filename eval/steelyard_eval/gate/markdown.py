"""A gate's result as Markdown for a pull request: what to know in ten lines at most, and the numbers folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard_eval.common.answer import below_in_markdown
from steelyard_eval.common.documents.gate import GateDocument, GatedRecord
from steelyard_eval.common.markup import clip, markdown, verbatim
from steelyard_eval.gate.gate_text import SHOWN, fall, reason, rewritten, rows_of, trust

CLIPPED = 160
"""Characters of a query that are shown beside its rankings."""
BRIEF = 60
"""Characters of a query in the lines above."""
MARKS = {"pass": "✅", "fail": "❌", "inconclusive": "⚠️", "mismatch": "⛔"}
UNDECIDED = "The gate could not decide, so nothing is known of this change."


def markdown_page(record: GateDocument) -> str:
    """The page, ending with a line break."""
    rows = record["contenders"]
    open_ = [row for row in rows if row["worst"] and row["verdict"] != "pass"]
    said = [*map(_lost, open_[:SHOWN]), below_in_markdown(record)]
    said += [] if rows else [f"- {markdown(finding['text'])}" for finding in record["findings"]]
    blocks = [f"{MARKS[record['verdict']]} **{markdown(record['sentence'])}**", "\n".join(filter(None, said))]
    if rows:
        rankings = ", and both rankings of the queries that lost most" if open_ else ""
        why = (f"{code(row['label'])}: {markdown(text)}." for row in rows if (text := reason(row, record)))
        inside = [*why, markdown(trust(record)), *_slices(record), *map(_rankings, open_)]
        numbers = f"<details><summary>the numbers{rankings}</summary>"
        blocks += [numbers, "\n".join(_table(record)), *inside, "</details>"]
    return "\n\n".join(block for block in blocks if block) + "\n"


def undecided_page(error: str) -> str:
    """The page of a gate that an error ended: its message, a list item a line."""
    lines = "\n".join(f"- {verbatim(line)}" for line in error.splitlines())
    return f"{MARKS['mismatch']} **{UNDECIDED}**\n\n{lines}\n"


def _lost(row: GatedRecord) -> str:
    """The queries of a contender that lost most, in a line."""
    lost = (
        f"{code(clip(query['id'], BRIEF))} {code(clip(query['text'] or '', BRIEF))} "
        f"({query['before']:.2f} → {query['now']:.2f})"
        for query in row["worst"][:SHOWN]
    )
    lines = [f"- lost most under {code(row['label'])}: {', '.join(lost)}"]
    if formulas := rewritten(row):
        lines += [f"- it was {code(formulas[0])}, and is {code(formulas[1])}"]
    return "\n".join(lines)


def _table(record: GateDocument) -> Iterator[str]:
    rows = [*rows_of(record)]
    yield f"| {' | '.join(rows[0])} |"
    yield f"|{'---|' * len(rows[0])}"
    for row in rows:
        verdict = str(row["verdict"])
        marked = {"": code(str(row[""])), "verdict": f"{MARKS[verdict]} {verdict}"}
        cells = {head: markdown(str(cell)) for head, cell in row.items()} | marked
        yield f"| {' | '.join(cells.values())} |"


def _rankings(row: GatedRecord) -> str:
    """The queries that lost most, with both rankings."""
    lines = [
        f"{len(row['worst'])} queries of {code(row['label'])} that lost most:",
        "",
        "| query | nDCG@10 | before | now |",
        "|---|---|---|---|",
    ]
    for query in row["worst"]:
        cells = (
            f"{code(query['id'])} {code((query['text'] or '')[:CLIPPED])}",
            f"{query['before']:.3f} → {query['now']:.3f}",
            _ranking(query["list_before"]),
            _ranking(query["list_now"]),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _ranking(ids: Sequence[str]) -> str:
    return "<br>".join(f"{rank}. {code(id_)}" for rank, id_ in enumerate(ids, 1)) or "nothing"


def _slices(record: GateDocument) -> Iterator[str]:
    for row in record["contenders"]:
        for part in row["slices"]:
            if part["worse"]:
                where = f"{markdown(part['field'])} {code(part['value'])}"
                yield f"{code(row['label'])} is worse on {where}: {fall(part)}."


def code(text: str) -> str:
    """Text of others in a fixed font; there nothing mentions people or links."""
    return f"<code>{markdown(text)}</code>"
