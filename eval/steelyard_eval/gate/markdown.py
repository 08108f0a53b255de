"""A gate's result as Markdown for a pull request: one sentence, the table, the queries that lost most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard_eval.common.answer import in_markdown
from steelyard_eval.common.documents.gate import GateDocument, GatedRecord
from steelyard_eval.common.markup import markdown
from steelyard_eval.gate.gate_text import change, drop_text, fall, percent, trust, why

CLIPPED = 160
"""Characters of a query that are shown."""
MARKS = {"pass": "✅", "fail": "❌", "inconclusive": "⚠️", "mismatch": "⛔"}
UNDECIDED = "The gate could not decide, so nothing is known of this change."


def markdown_page(record: GateDocument) -> str:
    """The page, ending with a line break."""
    blocks = [f"{MARKS[record['verdict']]} {in_markdown(record)}"]
    if record["contenders"]:
        blocks += [
            "\n".join(_table(record)),
            *map(_worst, record["contenders"]),
            *_slices(record),
            markdown(trust(record)),
        ]
    else:
        blocks += ["\n".join(f"- {markdown(finding['text'])}" for finding in record["findings"])]
    return "\n\n".join(block for block in blocks if block) + "\n"


def undecided_page(error: str) -> str:
    """The page of a gate that an error ended: its message, a list item a line."""
    lines = "\n".join(f"- {markdown(line)}" for line in error.splitlines())
    return f"{MARKS['mismatch']} **{UNDECIDED}**\n\n{lines}\n"


def _table(record: GateDocument) -> Iterator[str]:
    heads = ("", "verdict", "nDCG@10", "change [95%]", "queries touched", f"catches {drop_text(record)}", "why")
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in record["contenders"]:
        power = row["power"]
        asleep = " (misses most)" if power["asleep"] else ""
        cells = (
            code(row["label"]),
            f"{MARKS[row['verdict']]} {row['verdict']}",
            f"{row['metrics'][0]['now']:.4f}",
            change(row) if row["lists_changed"] else "none",
            f"{row['touched']:.0%} of {row['queries']}",
            percent(power["caught"]) + asleep,
            markdown(why(row, record)),
        )
        yield f"| {' | '.join(cells)} |"


def _worst(row: GatedRecord) -> str:
    """The queries that lost most, with both rankings, folded; nothing for a contender that passed."""
    if not row["worst"] or row["verdict"] == "pass":
        return ""
    lines = [
        f"{len(row['worst'])} queries of {code(row['label'])} that lost most:",
        "",
        "<details><summary>both rankings of each</summary>",
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
    return "\n".join([*lines, "", "</details>"])


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
