"""The result of a gate as Markdown for a pull request: ten lines at most, and the numbers folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard_eval.common.markup import clip, markdown, verbatim
from steelyard_eval.result.sentences import heading, say
from steelyard_eval.result.structs import Cell, QueryRow, Result
from steelyard_eval.views.markdown import section, step_line
from steelyard_eval.views.sheets import sheets

CLIPPED = 160
"""Characters of a query that are shown beside its rankings."""
BRIEF = 60
"""Characters of a query in the lines above."""
SHOWN = 3
"""Contenders whose lost queries are named at once."""
MARKS = {"pass": "✅", "fail": "❌", "inconclusive": "⚠️", "mismatch": "⛔"}


def render(result: Result) -> str:
    """The page, ending with a line break."""
    lost: dict[str, list[dict[str, Cell]]] = {}
    for row in result.table("lost"):
        lost.setdefault(str(row["contender"]), []).append(row)
    said = [_lost(label, rows) for label, rows in [*lost.items()][:SHOWN]]
    said += [f"- {step_line(step)}" for step in result.answer.steps]
    said += [] if result.rows else [f"- {markdown(say(finding))}" for finding in result.findings]
    blocks = [f"{MARKS[result.answer.key]} **{markdown(say(result.answer))}**", "\n".join(said)]
    if result.rows:
        summary = heading("summary_rankings" if lost else "summary_numbers")
        inside = [*map(section, sheets(result, short=True)), "\n".join(_found(result))]
        inside += [_rankings(result, label) for label in lost]
        blocks += [f"<details><summary>{summary}</summary>", *inside, "</details>"]
    return "\n\n".join(block for block in blocks if block) + "\n"


def undecided(error: str) -> str:
    """The page of a gate that an error ended: its message, a list item a line."""
    lines = "\n".join(f"- {verbatim(line)}" for line in error.splitlines())
    return f"{MARKS['mismatch']} **{heading('undecided')}**\n\n{lines}\n"


def _lost(label: str, rows: Sequence[dict[str, Cell]]) -> str:
    """The queries of a contender that lost most, in a line."""
    told = (
        f"{code(clip(str(row['query']), BRIEF))} {code(clip(str(row['text'] or ''), BRIEF))} "
        f"({row['before']:.2f} → {row['now']:.2f})"
        for row in rows
    )
    return f"- {heading('lost_most')} {code(label)}: {', '.join(told)}"


def _found(result: Result) -> Iterator[str]:
    """What else was found, and what to know."""
    for found in result.findings:
        if found.key != result.answer.facts.get("finding"):
            yield f"- {code(found.contender)}: {markdown(found.verdict)}: {markdown(say(found))}"
    yield from (f"- {markdown(say(notice))}" for notice in result.notices)


def _rankings(result: Result, label: str) -> str:
    """The queries that a contender lost most on, with both rankings."""
    before = next(row.label for row in result.rows if row.label.startswith(label) and row.label != label)
    rows = [query for query in result.queries if label in query.lists]
    lines = [
        f"{len(rows)} {heading('queries_of')} {code(label)}:",
        "",
        f"| {heading('query')} | nDCG@10 | {heading('before')} | {heading('now')} |",
        "|---|---|---|---|",
        *(_row(query, label, before) for query in rows),
    ]
    return "\n".join(lines)


def _row(query: QueryRow, label: str, before: str) -> str:
    cells = (
        f"{code(query.id)} {code(query.text[:CLIPPED])}",
        f"{query.values[before]:.3f} → {query.values[label]:.3f}",
        *(_ranking(query.lists[side].entries) for side in (before, label)),
    )
    return f"| {' | '.join(cells)} |"


def _ranking(ids: Sequence[str]) -> str:
    return "<br>".join(f"{rank}. {code(id_)}" for rank, id_ in enumerate(ids, 1)) or heading("nothing")


def code(text: str) -> str:
    """Text of others in a fixed font; there nothing mentions people or links."""
    return f"<code>{markdown(text)}</code>"
